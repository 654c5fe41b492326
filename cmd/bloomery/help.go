package main

import (
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Help, and messages about a command line that cannot be understood.

// helpTemplate is the help of every command. The examples come first: most readers
// need nothing else.
const helpTemplate = `{{with .Short}}{{.}}{{end}}

Usage:
  {{if .Runnable}}{{.UseLine}}{{else}}{{.CommandPath}} COMMAND{{end}}
{{with .Example}}
Examples:
{{.}}
{{end}}{{with .Long}}
{{. | trimTrailingWhitespaces}}
{{end}}{{if .HasAvailableSubCommands}}{{$commands := .Commands}}{{range .Groups}}
{{.Title}}:{{$id := .ID}}{{range $commands}}{{if eq .GroupID $id}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}{{end}}{{if .HasAvailableLocalFlags}}
Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}{{if .HasAvailableSubCommands}}
'{{.CommandPath}} COMMAND --help' explains a command.
{{end}}`

// addGroup adds commands that help lists together under a title.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// newHelp is `bloomery help`. Cobra's own exits with 0 if there is no such command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (words []string, _ cobra.ShellCompDirective) {
			for _, c := range cmd.Root().Commands() {
				if len(args) == 0 && c.IsAvailableCommand() {
					words = append(words, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command %q: 'bloomery --help' lists them", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
		DisableFlagsInUseLine: true,
	}
}

// flagError is a usage error that names the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	var long *pflag.NotExistError
	if !errors.As(err, &long) {
		return usagef("%w", err)
	}
	name := long.GetSpecifiedName()
	switch {
	case long.GetSpecifiedShortnames() == "":
		if near := nearestFlag(cmd, name); near != "" {
			return usagef("%w: did you mean --%s?", err, near)
		}
	case name == "i" && cmd.Flags().Lookup("normalize") != nil:
		return usagef("%w: --normalize lower makes upper and lower case the same", err)
	}
	return usagef("%w", err)
}

// nearestFlag is the command's flag with the most similar name, "" if none is close.
func nearestFlag(cmd *cobra.Command, name string) (nearest string) {
	least := 3 // with this many letters wrong it is another word
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); d < least && !f.Hidden {
			nearest, least = f.Name, d
		}
	})
	return nearest
}

// distance is the number of letters to insert, delete or replace to turn a into b
// (Levenshtein 1965).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0] // of the row above
		row[0] = i + 1
		for j := range len(b) {
			replaced := corner
			if a[i] != b[j] {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}

// together matches what cobra says of flags that exclude each other.
var together = regexp.MustCompile(`^if any flags in the group .* are set none of the others can be; \[(.*)\] were all set$`)

// plainUsage rewrites what cobra says about flags that exclude each other.
func plainUsage(err error) error {
	found := together.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	return usagef("--%s cannot be combined", strings.Join(strings.Fields(found[1]), " and --"))
}
