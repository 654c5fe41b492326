package main

import (
	"bufio"
	"errors"
	"fmt"
	"syscall"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/spf13/cobra"
)

// removeCommand is `bloomery remove`.
type removeCommand struct {
	refused   bool
	null      bool
	asJSON    bool
	secret    string
	normalize string
	anyfile.Options
}

func newRemove() *cobra.Command {
	r := &removeCommand{}
	cmd := &cobra.Command{
		Use:   "remove F [FILE...]",
		Short: "Remove lines from a filter file of a kind that allows it",
		Long: `Remove removes the lines of the files, or of standard input, from the filter F, each
once. F must be a counting, scalablecounting or cuckoo filter ('bloomery build --kind
counting'), or RedisBloom's dump of a cuckoo filter; it keeps its format. The result
goes to a temporary file, which replaces F at the end: if the command is interrupted,
F stays as it was.
It reports on standard error how many lines were removed and how many were refused,
as they were certainly not in F. For those nothing changes; --refused prints them.

REMOVE ONLY LINES THAT WERE ADDED, as often as they were added. A line that was never
added is refused, unless F finds it by mistake, which happens at the filter's rate.
Removing it then damages what F knows of other lines: some that were added may be
missing afterwards, and no command can tell which. So take the lines from a list of
your own, and not from what 'bloomery check' found. If lines were refused, the report
estimates how many like them were removed by mistake.

Exit code: 0 if a line was removed, 1 if none was.
` + normalizeHelp,
		Example: `  bloomery build -o sessions.bloom --kind counting -n 1M sessions.txt
  bloomery remove sessions.bloom ended.txt
  bloomery remove --refused sessions.bloom ended.txt > unknown.txt
  if echo "$id" | bloomery remove sessions.bloom; then echo 'was there'; fi`,
		Args:                  someFilters("bloomery remove seen.bloom lines.txt"),
		RunE:                  r.run,
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.BoolVarP(&r.refused, "refused", "r", false, "print the lines that were refused, because they were certainly not in the filter")
	addNull(cmd, &r.null)
	addSecret(cmd, &r.secret)
	addNormalize(cmd, &r.normalize)
	addFormat(cmd, &r.Options)
	addJSON(cmd, &r.asJSON, "print the report as one JSON object on standard output")
	cmd.MarkFlagsMutuallyExclusive("refused", "json")
	return cmd
}

// removing is a filter from which keys can be removed.
type removing interface {
	RemoveMany(keys [][]byte, removed []bool) int
}

func (r *removeCommand) run(cmd *cobra.Command, args []string) error {
	exitWhenInterrupted()
	f, err := r.OpenToSave(args[0], anyfile.ToChange)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.RefuseIdle(f); err != nil {
		return err
	}
	from, ok := f.Filter.(removing)
	if !ok {
		return cannotRemove(f)
	}
	if err := f.SetNormalize(&r.Options, r.normalize); err != nil {
		return err
	}
	if err := anyfile.Unlock(r.secret, f); err != nil {
		return err
	}
	sources, err := lines.Find(args[1:], cmd.InOrStdin())
	if err != nil {
		return err
	}
	if err := lines.RefuseLoop(r.refused, cmd.OutOrStdout(), sources); err != nil {
		return err
	}
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), r.refused, sources)
	watching.Store(tell)
	lines.HintTerminal(tell, sources)
	run := &removeRun{removeCommand: r, from: from, file: f, rate: f.Report().Rate, out: bufio.NewWriter(cmd.OutOrStdout())}
	err = run.do(&lines.Reader{
		Sources:   sources,
		Separator: separator(r.null),
		Count:     tell.Read,
	})
	tell.Finish()
	if err != nil {
		return err
	}
	if run.removed > 0 {
		if err := save(f); err != nil {
			return err
		}
	}
	if err := run.report(cmd, tell); err != nil {
		return err
	}
	return selected(run.removed)
}

// cannotRemove says which kind to build instead.
func cannotRemove(f *anyfile.File) error {
	what := "of the kind " + f.Kind()
	if f.Foreign != nil {
		what = "in the format " + f.Format()
	}
	return fmt.Errorf("%s: nothing can be removed from a filter %s: build a counting filter from its keys, with 'bloomery build --kind counting', or a new one without the keys that are gone",
		f.Path, what)
}

// removeRun is one run over the input.
type removeRun struct {
	*removeCommand
	from    removing
	file    *anyfile.File
	rate    float64 // before
	out     *bufio.Writer
	answers [lines.BatchKeys]bool

	lines, removed uint64
}

func (r *removeRun) do(reader *lines.Reader) error {
	return reader.Each(func(b lines.Batch) error {
		keys, err := r.file.Keys.Of(b.Keys)
		if err != nil {
			return err
		}
		answers := r.answers[:len(keys)]
		r.removed += uint64(r.from.RemoveMany(keys, answers))
		r.lines += uint64(len(keys))
		if !r.refused {
			return nil
		}
		err = r.print(b.Keys, answers)
		if errors.Is(err, syscall.EPIPE) { // the reader has enough, but the lines are still to be removed
			r.refused = false
			return nil
		}
		return err
	})
}

// print prints the lines that were refused.
func (r *removeRun) print(lines [][]byte, removed []bool) error {
	for i, line := range lines {
		if removed[i] {
			continue
		}
		r.out.Write(line) // Flush returns the error
		r.out.WriteByte(separator(r.null))
	}
	return r.out.Flush()
}

// mistaken is how many lines were probably removed though they were not there. Of x lines
// that are not there a filter finds x*rate by mistake, and refuses the others.
func (r *removeRun) mistaken() float64 {
	if r.rate >= 1 {
		return float64(r.removed)
	}
	return min(float64(r.lines-r.removed)*r.rate/(1-r.rate), float64(r.removed))
}

// removedJSON is what remove reports.
type removedJSON struct {
	File    string `json:"file"`
	Lines   uint64 `json:"lines"`
	Removed uint64 `json:"removed"`
	Refused uint64 `json:"refused"`

	Mistaken float64 `json:"mistaken_expected"` // of the removed, lines that were not there
	Kind     string  `json:"kind"`
	human.FilterJSON
}

func (r *removeRun) report(cmd *cobra.Command, tell *lines.Reporter) error {
	now := r.file.Condition()
	refused, mistaken := r.lines-r.removed, r.mistaken()
	if r.asJSON {
		return printJSON(cmd.OutOrStdout(), removedJSON{r.file.Path, r.lines, r.removed, refused, mistaken, r.file.Kind(), human.Describe(now)})
	}
	tell.Say("%s: %s, %s removed, %s refused as certainly not there", r.file.Path, human.Count(r.lines, "line"), human.Commas(r.removed), human.Commas(refused))
	if mistaken >= 0.01 {
		tell.Warn("%s: about %s of the removed lines were probably not there either, but found by mistake at this rate: lines that were added may now be missing",
			r.file.Path, roughly(mistaken))
	}
	tell.Say("%s: %s", r.file.Path, human.Fullness(now))
	return nil
}

// roughly writes a number that was estimated.
func roughly(n float64) string {
	if n < 10 {
		return fmt.Sprintf("%.2g", n)
	}
	return human.Round(n)
}
