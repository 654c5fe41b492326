package main

import (
	"fmt"

	"github.com/bloomery/bloom"
	"github.com/spf13/cobra"
)

// checkCommand is `bloomery check`.
type checkCommand struct {
	invert bool
	count  bool
	quiet  bool
	null   bool
	asJSON bool
	secret string
}

func newCheck() *cobra.Command {
	c := &checkCommand{}
	cmd := &cobra.Command{
		Use:   "check F [FILE...]",
		Short: "Print the lines that are probably in a filter, or surely not",
		Long: `Check prints the lines of the files, or of standard input, that are probably in
the filter F: every line that was added, and others at the filter's rate. With
-v it prints the lines that are certainly not in it. F is mapped, not read: it
is ready at once, whatever its size.`,
		Example: `  bloomery check seen.bloom urls.txt
  tail -f access.log | bloomery check -v known.bloom
  if echo "$url" | bloomery check -q seen.bloom; then echo 'seen before'; fi`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("name the filter file: bloomery check seen.bloom urls.txt")
			}
			return nil
		},
		RunE:                  c.run,
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.BoolVarP(&c.invert, "invert-match", "v", false, "select the lines that are certainly not in the filter")
	flags.BoolVarP(&c.count, "count", "c", false, "print only how many lines were selected")
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "print nothing, stop at the first selected line")
	addNull(cmd, &c.null)
	addSecret(cmd, &c.secret)
	addJSON(cmd, &c.asJSON, "print only a summary, as one JSON object")
	cmd.MarkFlagsMutuallyExclusive("count", "quiet", "json")
	return cmd
}

// checkJSON is check's summary.
type checkJSON struct {
	Filter   string `json:"filter"`
	Lines    uint64 `json:"lines"`
	Probably uint64 `json:"probably_in"`
	Not      uint64 `json:"certainly_not"`
	Selected uint64 `json:"selected"`
}

func (c *checkCommand) run(cmd *cobra.Command, args []string) error {
	f, err := openFilter(args[0], c.secret)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.NeedsSecret() {
		return fmt.Errorf("%s: the filter is keyed: give --secret the file that it was built with", args[0])
	}
	sources, err := findSources(args[1:], cmd.InOrStdin())
	if err != nil {
		return err
	}
	printing := !c.count && !c.quiet && !c.asJSON
	if err := refuseLoop(printing, cmd.OutOrStdout(), sources); err != nil {
		return err
	}
	tell := newTeller(cmd.ErrOrStderr(), cmd.OutOrStdout(), printing, sources)
	hintTerminal(tell, sources)
	out := newLineWriter(cmd.OutOrStdout())
	sum, err := c.look(f, &lineReader{
		sources:    sources,
		separator:  separator(c.null),
		count:      tell.read,
		beforeWait: out.flush,
	}, out, printing)
	tell.finish()
	if flushed := out.flush(); err == nil {
		err = flushed
	}
	if err != nil {
		return err
	}
	sum.Filter = args[0]
	return c.print(cmd, sum)
}

// look checks all lines, and prints the selected ones.
func (c *checkCommand) look(f *bloom.Filter, reader *lineReader, out *lineWriter, printing bool) (sum checkJSON, err error) {
	answers := make([]bool, batchKeys)
	err = reader.each(func(b batch) error {
		found := uint64(f.ContainsMany(b.keys, answers[:len(b.keys)]))
		lines := uint64(len(b.keys))
		sum.Lines += lines
		sum.Probably += found
		sum.Not += lines - found
		sum.Selected = sum.Probably
		if c.invert {
			sum.Selected = sum.Not
		}
		if c.quiet && sum.Selected > 0 {
			return errEnough
		}
		if printing {
			return out.write(b, answers, !c.invert)
		}
		return nil
	})
	if err == errEnough {
		err = nil
	}
	return sum, err
}

func (c *checkCommand) print(cmd *cobra.Command, sum checkJSON) error {
	var err error
	switch {
	case c.count:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), sum.Selected)
	case c.asJSON:
		err = printJSON(cmd.OutOrStdout(), sum)
	}
	if err != nil {
		return err
	}
	return selected(sum.Selected)
}
