package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bloomery/bloom"
	"github.com/spf13/cobra"
)

// dedupeCommand is `bloomery dedupe`.
type dedupeCommand struct {
	keys          keysFlag
	rate          rateFlag
	budget        sizeFlag
	state         string
	sync          time.Duration
	window        time.Duration
	appendTo      string
	grow          bool
	allowOverfull bool
	repeated      bool
	count         bool
	quiet         bool
	null          bool
	stats         bool
	asJSON        bool
	strict        bool
}

// unknownKeys is what dedupe plans for where it has to and nobody knows: 40 MB
// at the default rate.
const unknownKeys = 10_000_000

func newDedupe() *cobra.Command {
	d := &dedupeCommand{rate: 1e-6}
	cmd := &cobra.Command{
		Use:   "dedupe [-n N] [-p P] [--state F] [FILE...]",
		Short: "Print each line once, at its first occurrence",
		Long: `Dedupe prints the first occurrence of every line of the files, or of standard
input, in the order they come and as they come. It remembers a few bytes for
each line, whatever its length: with probability P at most, a new line is
mistaken for a repeat and not printed. A repeat is never printed.

Its memory grows with the number of different lines. With -n it is planned for N
of them at once, which takes less and is faster; at N it stops with an error,
unless --grow or --allow-overfull says how to go on.

With --state it remembers across runs: the file F is opened in place, at once
whatever its size, and locked. After a kill it holds every line that was printed;
after a power failure, all up to the end of the last run, or the last --sync.
With --append it is a file of lines that is remembered and grows: what is new in
the input is printed and appended to it.`,
		Example: `  bloomery dedupe access.log > lines.txt
  tail -f urls.log | bloomery dedupe -n 1M
  find . -print0 | bloomery dedupe -0 | xargs -0 ls
  bloomery dedupe -d -c mail.log                  # how many lines are repeats
  crawl | bloomery dedupe --state seen.bloom      # what no run has seen before
  crawl | bloomery dedupe --append known.txt      # the same, known as text
  tail -f alerts.log | bloomery dedupe --window 24h
  zcat dump.gz | bloomery dedupe -n 1e9 -p 0.01% --stats | wc -l`,
		RunE:                  d.run,
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.VarP(&d.keys, "keys", "n", "the number of different lines to plan for, or auto to count those of files first (default: as many as come)")
	flags.VarP(&d.rate, "rate", "p", `the share of new lines that may be lost: 1e-6, 0.1%, 1/1000, "1 in 1000"`)
	flags.StringVar(&d.state, "state", "", "remember lines in the filter `FILE` across runs; it is made if it is not there")
	flags.DurationVar(&d.sync, "sync", 0, "with --state: make it safe against power failure every so often, like 10s (default: at the end)")
	flags.DurationVar(&d.window, "window", 0, "forget lines after this time, like 24h; -n is the number of different lines in it")
	flags.StringVar(&d.appendTo, "append", "", "remember the lines of `FILE`, too, and append new ones to it")
	flags.BoolVar(&d.grow, "grow", false, "with -n: grow beyond N lines instead of stopping there")
	flags.BoolVar(&d.allowOverfull, "allow-overfull", false, "with -n: go on beyond N lines in the same memory, at a higher rate")
	flags.BoolVarP(&d.repeated, "repeated", "d", false, "select the repeats instead")
	flags.BoolVarP(&d.count, "count", "c", false, "print only how many lines were selected")
	flags.BoolVarP(&d.quiet, "quiet", "q", false, "print nothing; stop at the first selected line, unless --stats, --strict, --state or --append wants the rest")
	flags.BoolVar(&d.stats, "stats", false, "print a summary on standard error")
	flags.BoolVar(&d.strict, "strict", false, "go on beyond N lines, and exit with 3 then")
	addNull(cmd, &d.null)
	addBudget(cmd, &d.budget)
	addJSON(cmd, &d.asJSON, "print only a summary, as one JSON object")
	cmd.MarkFlagsMutuallyExclusive("count", "quiet", "json")
	cmd.MarkFlagsMutuallyExclusive("grow", "allow-overfull", "window")
	cmd.MarkFlagsMutuallyExclusive("state", "window")
	return cmd
}

func (d *dedupeCommand) run(cmd *cobra.Command, args []string) error {
	if d.sync != 0 && (d.sync < 0 || d.state == "") {
		return usagef("--sync wants a time above zero, and --state to make durable")
	}
	if d.window < 0 {
		return usagef("--window wants a time above zero, not %v", d.window)
	}
	sources, err := findSources(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	printing := !d.count && !d.quiet && !d.asJSON
	if err := refuseLoop(printing, cmd.OutOrStdout(), sources); err != nil {
		return err
	}
	tell := newTeller(cmd.ErrOrStderr(), cmd.OutOrStdout(), printing, sources)
	seen, err := d.open(sources, tell)
	if err != nil {
		return err
	}
	run := &dedupeRun{command: d, seen: seen, tell: tell, printing: printing, out: newLineWriter(cmd.OutOrStdout())}
	err = run.remember()
	if err == nil {
		hintTerminal(tell, sources)
		err = run.do(sources)
	}
	tell.finish()
	if err == nil {
		err = run.finish(cmd)
	}
	if closed := seen.Close(); closed != nil && (err == nil || isStatus(err)) {
		err = closed // more urgent than what was selected
	}
	return err
}

// remembered is a filter that dedupe can use, of any kind.
type remembered interface {
	seen
	Plan() bloom.Plan
	Report() bloom.Report
	Close() error
}

// open makes the filter, or opens the one of an earlier run.
func (d *dedupeCommand) open(sources []*source, tell *teller) (remembered, error) {
	if d.keys.auto {
		keys, err := countDistinct(sources, separator(d.null), nil, tell)
		if err != nil {
			return nil, err
		}
		d.keys.n = countFlag(keys)
	}
	limit := &limit{tell: tell, goOn: d.allowOverfull || d.strict}
	keys, rate, budget := uint64(d.keys.n), float64(d.rate), uint64(d.budget)
	switch {
	case d.state != "":
		return d.openState(sources, limit)
	case d.window != 0:
		if keys == 0 {
			keys = unknownKeys
		}
		w, err := bloom.WindowConfig{Keys: keys, Rate: rate, Span: d.window}.New()
		return windowSeen{w}, err
	case keys == 0 || d.grow:
		if keys == 0 {
			keys = d.guess(sources)
		}
		f, err := bloom.ScalableConfig{First: keys, Rate: rate, MaxBytes: budget}.New()
		return growingSeen{f, limit}, err
	}
	f, err := newFilter(bloom.Config{Keys: keys, Rate: rate}, budget)
	if err != nil {
		return nil, err
	}
	return fixedSeen{f, newGauge(f, false), *limit}, nil
}

// guess is how many keys a filter that grows begins with: a million, or, for
// large files, so many that it will not grow often.
func (d *dedupeCommand) guess(sources []*source) uint64 {
	const fewest, bytesPerKey = 1_000_000, 256
	total := int64(0)
	for _, s := range sources {
		total += s.bytes
	}
	keys := max(uint64(total/bytesPerKey), fewest)
	if d.budget == 0 {
		return keys
	}
	for keys > 1 { // the first layer has to fit
		plan, err := bloom.Config{Keys: keys, Rate: float64(d.rate) / 5}.Plan()
		if err != nil || plan.Bytes() <= uint64(d.budget)/2 {
			break
		}
		keys /= 2
	}
	return keys
}

// dedupeRun is one run over the input.
type dedupeRun struct {
	command  *dedupeCommand
	seen     remembered
	tell     *teller
	out      *lineWriter
	append   *lineWriter // nil: to none
	file     *os.File    // that append writes to
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

// remember adds the lines of the file to append to, which thus were seen.
func (r *dedupeRun) remember() error {
	path := r.command.appendTo
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return inputError(path, err)
	}
	r.file, r.append = file, newLineWriter(file)
	if r.command.state == "" { // else it was seen when it was written
		known, err := findSource(path, nil)
		if err != nil {
			return err
		}
		p := newAdding(r.seen, separator(r.command.null), 0)
		if err := p.each([]*source{known}, r.tell.read, func(*job) error { return nil }); err != nil {
			return err
		}
	}
	return r.endLine(file)
}

// endLine ends the last line of the file to append to, if it has no end.
func (r *dedupeRun) endLine(file *os.File) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, size-1); err != nil {
		return err
	}
	if last[0] != separator(r.command.null) {
		_, err = file.Write([]byte{separator(r.command.null)})
	}
	return err
}

func (r *dedupeRun) do(sources []*source) error {
	d := r.command
	p := newAdding(r.seen, separator(d.null), d.sync)
	interrupted := r.onInterrupt(p)
	stopEarly := d.quiet && !d.stats && !d.strict && d.state == "" && d.appendTo == ""
	err := p.each(sources, r.tell.read, func(j *job) error {
		if j.synced != nil {
			return r.makeDurable()
		}
		r.lines += uint64(len(j.ends))
		r.first += uint64(j.count.Load())
		if err := r.write(j); err != nil {
			return err
		}
		if stopEarly && r.selected() > 0 {
			return errEnough
		}
		return nil
	})
	var full fullError
	switch {
	case err == errEnough:
		err = nil
	case errors.As(err, &full):
		err = full.after(r.lines)
	}
	if err == nil && interrupted() {
		err = exitStatus(exitInterrupted)
	}
	return err
}

// onInterrupt lets a Ctrl-C end the reading where something is to be finished.
// It returns a function that tells whether there was one.
func (r *dedupeRun) onInterrupt(p *pipeline) func() bool {
	if r.command.state == "" && r.append == nil {
		return func() bool { return false }
	}
	came, over := make(chan os.Signal, 1), make(chan bool)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	interrupted := false
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-came:
			interrupted = true
			p.interrupt()
		case <-over:
		}
	}()
	return func() bool {
		signal.Stop(came)
		close(over)
		<-ended
		return interrupted
	}
}

// write writes the selected lines of a job, and what is new to the file that
// grows.
func (r *dedupeRun) write(j *job) error {
	if r.append != nil {
		if err := r.append.write(j, true); err != nil {
			return inputError(r.command.appendTo, err)
		}
	}
	if !r.printing {
		return nil
	}
	return r.out.write(j, !r.command.repeated)
}

// makeDurable is for a moment when all lines so far are added and written.
func (r *dedupeRun) makeDurable() error {
	if r.file != nil {
		if err := r.file.Sync(); err != nil {
			return inputError(r.command.appendTo, err)
		}
	}
	return r.seen.sync()
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
	if r.file != nil {
		if err := r.file.Close(); err != nil {
			return inputError(d.appendTo, err)
		}
	}
	if d.stats {
		r.tell.say("%s lines: %s first seen, %s repeated", commas(r.lines), commas(r.first), commas(r.repeats()))
		r.tell.say("filter: %s", state(r.seen.Report()))
	}
	var err error
	switch {
	case d.count:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), r.selected())
	case d.asJSON:
		err = printJSON(cmd.OutOrStdout(), dedupeJSON{r.lines, r.first, r.repeats(), describeFilter(r.seen.Report())})
	}
	if err != nil {
		return err
	}
	if d.strict && r.seen.Report().Overfull() {
		return exitStatus(exitOverfull)
	}
	return selected(r.selected())
}
