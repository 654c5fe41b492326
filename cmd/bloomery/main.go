// Bloomery remembers which lines it has seen, in a few bits each: it plans and
// builds Bloom filters, checks lines against them, and removes repeated lines
// from a stream.
//
// Every subcommand is in the file of its name here. What they share is in packages
// below internal/: anyfile opens filter files of every format, lines reads and writes
// lines, and human reads and prints numbers as people do.
package main

import (
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	// A closed pipe means "enough"; it is not a failure. With the signal ignored,
	// the write returns an error instead, which exit.go understands.
	signal.Ignore(closedPipe)
	root := newRoot()
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__complete") {
		dropQuotes(root)
	}
	root.SetArgs(os.Args[1:])
	os.Exit(execute(root))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "bloomery",
		Short: "Bloom filters for lines: have I seen this before?",
		Long: `Bloomery answers "have I seen this before?" for more lines than fit in memory.
It keeps a few bits of each line in a Bloom filter: no line is forgotten, and you
choose how often it says yes by mistake.

Exit codes follow grep: 0 if something was selected or done, 1 if nothing was
selected, 2 on an error; with --strict 3 if the filter is past its rate; 130 after
Ctrl-C.

Filters of other programs (Guava, RedisBloom, DCSO bloom, Parquet and more; see
'bloomery convert --list') can be read, queried and updated in place.`,
		Example: `  bloomery dedupe access.log > lines.txt              # each line once
  bloomery build -o seen.bloom -p 0.01% urls.txt      # remember a set
  bloomery check -v seen.bloom new.txt                # what is not in it
  bloomery add seen.bloom today.txt                   # remember more
  bloomery info seen.bloom                            # how full it is
  bloomery plan -n 1e9 -p 0.1%                        # what it would cost`,
		SilenceErrors: true, // execute prints them, in our form
		SilenceUsage:  true,
		Version:       readVersion().String(),

		PersistentPreRunE: refuseEmpty,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.SetHelpTemplate(helpTemplate)
	addGroup(root, "Lines", newDedupe(), newBuild(), newAdd(), newRemove(), newCheck())
	addGroup(root, "Filter files", newInfo(), newVerify(), newMeta(), newMerge(), newIntersect(), newFold(), newConvert())
	addGroup(root, "Planning", newPlan(), newBench(), newPlay())
	addGroup(root, "Server", newServe(), newProbe(), newBackup(), newPush(), newPull(), newFsck())
	addGroup(root, "Other", newCompletion(), newMan(), newVersion())
	root.SetHelpCommandGroupID("Other")
	for _, cmd := range root.Commands() {
		cmd.Flags().SortFlags = false // help lists them as written: the important ones first
	}
	return root
}
