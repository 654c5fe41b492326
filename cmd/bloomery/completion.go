package main

import (
	"strings"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/interop"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newCompletion is `bloomery completion`.
func newCompletion() *cobra.Command {
	shells := map[string]func(*cobra.Command) error{
		"bash":       func(cmd *cobra.Command) error { return cmd.Root().GenBashCompletionV2(cmd.OutOrStdout(), true) },
		"zsh":        func(cmd *cobra.Command) error { return cmd.Root().GenZshCompletion(cmd.OutOrStdout()) },
		"fish":       func(cmd *cobra.Command) error { return cmd.Root().GenFishCompletion(cmd.OutOrStdout(), true) },
		"powershell": func(cmd *cobra.Command) error { return cmd.Root().GenPowerShellCompletionWithDesc(cmd.OutOrStdout()) },
	}
	names := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long: `Completion prints a script for a shell. With it, Tab completes commands, flags,
formats, schemes and file names.`,
		Example: `  bloomery completion bash > ~/.local/share/bash-completion/completions/bloomery
  bloomery completion zsh > "${fpath[1]}/_bloomery"
  bloomery completion fish > ~/.config/fish/completions/bloomery.fish
  bloomery completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return usagef("name the shell: one of %s", joined(names))
			}
			return shells[args[0]](cmd)
		},
		DisableFlagsInUseLine: true,
	}
}

// What the shell offers when Tab is pressed. Flags without an entry here complete
// file names.

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// fixed offers some words.
func fixed(words ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFormats offers the formats, each with what it is.
func completeFormats(*cobra.Command, []string, string) (words []string, _ cobra.ShellCompDirective) {
	for _, f := range interop.Formats {
		words = append(words, cobra.CompletionWithDesc(f.Name, f.About))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func completeSchemes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return anyfile.SchemeNames(), cobra.ShellCompDirectiveNoFileComp
}

// dropQuotes removes the back-quotes from the usage texts of flags: help turns the
// quoted word into the name of the value, but a shell would show the quotes.
func dropQuotes(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	}
}

func joined(names []string) string { return strings.Join(names, ", ") }
