package main

import (
	"fmt"

	"github.com/bloomery/bloom"
	"github.com/spf13/cobra"
)

// dedupeCommand is `bloomery dedupe`.
type dedupeCommand struct {
	keys     countFlag
	rate     rateFlag
	budget   sizeFlag
	repeated bool
	count    bool
	quiet    bool
	null     bool
	stats    bool
	asJSON   bool
	strict   bool
}

// unknownKeys is what dedupe plans for when nobody knows: 40 MB at the default
// rate.
const unknownKeys = 10_000_000

func newDedupe() *cobra.Command {
	d := &dedupeCommand{rate: 1e-6}
	cmd := &cobra.Command{
		Use:   "dedupe [-n N] [-p P] [FILE...]",
		Short: "Print each line once, at its first occurrence",
		Long: `Dedupe prints the first occurrence of every line of the files, or of standard
input, in the order they come and as they come. It remembers a few bytes for
each line, whatever its length: with probability P at most, a new line is
mistaken for a repeat and not printed. A repeat is never printed.

Without -n it counts the lines first if all inputs are files that can be read
twice, and plans for 10,000,000 different lines otherwise. It warns when there
are more.`,
		Example: `  bloomery dedupe access.log > lines.txt
  tail -f urls.log | bloomery dedupe -n 1M
  find . -print0 | bloomery dedupe -0 | xargs -0 ls
  bloomery dedupe -d -c mail.log          # how many lines are repeats
  zcat dump.gz | bloomery dedupe -n 1e9 -p 0.01% --stats | wc -l`,
		RunE:                  d.run,
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.VarP(&d.keys, "keys", "n", "the number of different lines to plan for (default: the number of lines, or 10,000,000)")
	flags.VarP(&d.rate, "rate", "p", `the share of new lines that may be lost: 1e-6, 0.1%, 1/1000, "1 in 1000"`)
	flags.BoolVarP(&d.repeated, "repeated", "d", false, "select the repeats instead")
	flags.BoolVarP(&d.count, "count", "c", false, "print only how many lines were selected")
	flags.BoolVarP(&d.quiet, "quiet", "q", false, "print nothing; stop at the first selected line, unless --stats or --strict wants the rest")
	flags.BoolVar(&d.stats, "stats", false, "print a summary on standard error")
	flags.BoolVar(&d.strict, "strict", false, "exit with 3 if the filter got more keys than planned")
	addNull(cmd, &d.null)
	addBudget(cmd, &d.budget)
	addJSON(cmd, &d.asJSON, "print only a summary, as one JSON object")
	cmd.MarkFlagsMutuallyExclusive("count", "quiet", "json")
	return cmd
}

func (d *dedupeCommand) run(cmd *cobra.Command, args []string) error {
	sources, err := findSources(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	printing := !d.count && !d.quiet && !d.asJSON
	if err := refuseLoop(printing, cmd.OutOrStdout(), sources); err != nil {
		return err
	}
	f, counted, err := d.newFilter(sources)
	if err != nil {
		return err
	}
	tell := newTeller(cmd.ErrOrStderr(), cmd.OutOrStdout(), printing, sources)
	hintTerminal(tell, sources)
	out := newLineWriter(cmd.OutOrStdout())
	run := &dedupeRun{command: d, filter: f, gauge: newGauge(f, counted), tell: tell, printing: printing, out: out}
	err = run.do(&lineReader{
		sources:    sources,
		separator:  separator(d.null),
		count:      tell.read,
		beforeWait: out.flush,
	})
	tell.finish()
	if flushed := out.flush(); err == nil {
		err = flushed
	}
	if err != nil {
		return err
	}
	return run.finish(cmd)
}

// newFilter makes the filter. counted says that n is the number of lines.
func (d *dedupeCommand) newFilter(sources []*source) (f *bloom.Filter, counted bool, err error) {
	keys := uint64(d.keys)
	if keys == 0 {
		keys, counted, err = countLines(sources, separator(d.null))
		if err != nil {
			return nil, false, err
		}
		if !counted {
			keys = unknownKeys
		}
		keys = max(keys, 1)
	}
	f, err = newFilter(bloom.Config{Keys: keys, Rate: float64(d.rate)}, uint64(d.budget))
	return f, counted, err
}

// dedupeRun is one run over the input.
type dedupeRun struct {
	command  *dedupeCommand
	filter   *bloom.Filter
	gauge    *gauge
	tell     *teller
	out      *lineWriter
	printing bool

	lines, first uint64
}

func (r *dedupeRun) repeats() uint64 { return r.lines - r.first }

func (r *dedupeRun) selected() uint64 {
	if r.command.repeated {
		return r.repeats()
	}
	return r.first
}

func (r *dedupeRun) do(reader *lineReader) error {
	stopEarly := r.command.quiet && !r.command.stats && !r.command.strict
	answers := make([]bool, batchKeys)
	err := reader.each(func(b batch) error {
		isNew := r.filter.AddMany(b.keys, answers[:len(b.keys)])
		r.lines += uint64(len(b.keys))
		r.first += uint64(isNew)
		switch level, report := r.gauge.add(isNew); {
		case level >= 1:
			r.tell.warn("%s: new lines get lost at that rate; give a larger -n", overfull(report))
		case level > 0:
			r.tell.warn("%s", nearlyFull(report))
		}
		if stopEarly && r.selected() > 0 {
			return errEnough
		}
		if r.printing {
			return r.out.write(b, answers, !r.command.repeated)
		}
		return nil
	})
	if err == errEnough {
		err = nil
	}
	return err
}

// dedupeJSON is dedupe's summary.
type dedupeJSON struct {
	Lines    uint64 `json:"lines"`
	First    uint64 `json:"first_seen"`
	Repeated uint64 `json:"repeated"`
	filterJSON
}

// finish prints what there is to print after the lines.
func (r *dedupeRun) finish(cmd *cobra.Command) error {
	d := r.command
	if d.stats {
		r.tell.say("%s lines: %s first seen, %s repeated", commas(r.lines), commas(r.first), commas(r.repeats()))
		r.tell.say("filter: %s", state(r.filter.Report()))
	}
	var err error
	switch {
	case d.count:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), r.selected())
	case d.asJSON:
		err = printJSON(cmd.OutOrStdout(), dedupeJSON{r.lines, r.first, r.repeats(), describeFilter(r.filter.Report())})
	}
	if err != nil {
		return err
	}
	if d.strict && r.filter.Report().Overfull() {
		return exitStatus(exitOverfull)
	}
	return selected(r.selected())
}
