package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/spf13/cobra"
)

// dedupeCommand is `bloomery dedupe`.
type dedupeCommand struct {
	keys          human.KeysFlag
	rate          human.RateFlag
	budget        human.SizeFlag
	state         string
	sync          human.TimeFlag
	window        human.TimeFlag
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

	given func(flag string) bool // on the command line
}

// defaultLoss is dedupe's rate without -p.
const defaultLoss = 1e-6

func newDedupe() *cobra.Command {
	d := &dedupeCommand{rate: defaultLoss}
	cmd := &cobra.Command{
		Use:   "dedupe [-n N] [-p P] [--state F] [FILE...]",
		Short: "Print each line once, at its first occurrence",
		Long: `Dedupe prints the first occurrence of every line of the files, or of standard
input, in input order and as soon as it arrives. It remembers a few bytes for each
line, whatever its length: with probability at most P, a new line is mistaken for
a repeat and not printed. A repeat is never printed.

Its memory grows with the number of distinct lines. With -n N the filter is made
for N of them from the start, which takes less memory and is faster; at N it stops
with an error, unless --grow or --allow-overfull is given.

With --state it remembers across runs: the file F is opened in place, at once
whatever its size, and locked. A line is remembered only once it has been written:
if the run is killed, or the reader of its output goes away, the next run may print
the last lines again, but none is lost. After a power failure it may print the
lines since the last run, or the last --sync, again. With --append FILE, lines
already in FILE count as seen; new ones are printed and appended to it.

When the filter is full:
  without -n         it grows
  -n N               it stops with an error, after the lines that fitted
  -n N --grow        it grows beyond N
  --allow-overfull   it continues, warns, and loses new lines at a higher rate
  --strict           the same, and exits with 3
  --window           it grows; at --budget it warns, and loses new lines at a
                     higher rate until old ones are forgotten
  --budget           it grows up to this much memory, and then stops as with -n N`,
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
	flags.VarP(&d.keys, "keys", "n", "the number of distinct lines to plan for, or auto to estimate it from the files first (default: grow as needed)")
	flags.VarP(&d.rate, "rate", "p", `the share of new lines that may be lost: 1e-6, 0.1%, 1/1000, "1 in 1000"`)
	flags.StringVar(&d.state, "state", "", "remember lines across runs in the filter `FILE`, which is created if missing")
	flags.Var(&d.sync, "sync", "with --state: sync it to disk at this interval, like 10s, in case the power fails (default: at the end)")
	flags.Var(&d.window, "window", "forget lines after this time, like 24h or 7d; -n is then the number of distinct lines in it (default: a million, or more for large files)")
	flags.StringVar(&d.appendTo, "append", "", "treat the lines of `FILE` as seen, and append new ones to it")
	flags.BoolVar(&d.grow, "grow", false, "with -n: grow beyond N lines instead of stopping there")
	flags.BoolVar(&d.allowOverfull, "allow-overfull", false, "with -n: continue beyond N lines in the same memory, at a higher rate")
	flags.BoolVarP(&d.repeated, "repeated", "d", false, "select the repeats instead")
	flags.BoolVarP(&d.count, "count", "c", false, "print only how many lines were selected")
	flags.BoolVarP(&d.quiet, "quiet", "q", false, "print nothing; stop at the first selected line, unless --stats, --strict, --state or --append needs the rest")
	flags.BoolVar(&d.stats, "stats", false, "print a summary on standard error")
	flags.BoolVar(&d.strict, "strict", false, "continue beyond N lines, and then exit with 3")
	addNull(cmd, &d.null)
	addBudget(cmd, &d.budget, "a larger plan is refused, and growth stops there")
	addJSON(cmd, &d.asJSON, "print only a summary, as one JSON object")
	cmd.MarkFlagsMutuallyExclusive("count", "quiet", "json")
	cmd.MarkFlagsMutuallyExclusive("grow", "allow-overfull", "window")
	cmd.MarkFlagsMutuallyExclusive("state", "window")
	return cmd
}

func (d *dedupeCommand) run(cmd *cobra.Command, args []string) error {
	d.given = cmd.Flags().Changed
	if d.given("sync") && (d.sync <= 0 || d.state == "") {
		return usagef("--sync needs --state and a time above zero, like 10s")
	}
	if d.given("window") && d.window <= 0 {
		return usagef("--window must be above zero, like 24h, not %v", time.Duration(d.window))
	}
	sources, err := lines.Find(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	printing := !d.count && !d.quiet && !d.asJSON
	if err := lines.RefuseLoop(printing, cmd.OutOrStdout(), sources); err != nil {
		return err
	}
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), printing, sources)
	seen, err := d.open(sources, tell)
	if err != nil {
		return err
	}
	run := &dedupeRun{command: d, seen: seen, tell: tell, printing: printing, out: lines.NewWriter(cmd.OutOrStdout()), stdout: cmd.OutOrStdout()}
	err = run.openAppended(cmd.OutOrStdout())
	if err == nil {
		lines.HintTerminal(tell, sources)
		err = run.do(sources)
	}
	tell.Finish()
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
	lines.Seen
	advice() string
	Plan() bloom.Plan
	Report() bloom.Report
	Close() error
}

// open makes the filter, or opens that of an earlier run.
func (d *dedupeCommand) open(sources []*lines.Source, tell *lines.Reporter) (remembered, error) {
	limit := &limit{tell: tell, goOn: d.allowOverfull || d.strict}
	if d.state != "" {
		return d.openState(sources, limit)
	}
	if err := d.countKeys(sources, tell); err != nil {
		return nil, err
	}
	keys, rate, budget := uint64(d.keys.N), float64(d.rate), uint64(d.budget)
	switch {
	case d.window != 0:
		if keys == 0 {
			keys = d.guess(sources)
		}
		w, err := bloom.WindowConfig{Keys: keys, Rate: rate, Span: time.Duration(d.window), Budget: budget}.New()
		if err != nil {
			return nil, err
		}
		limit.goOn = true // time makes room again
		return windowSeen{w, limit.of("give a larger --budget")}, nil
	case keys == 0 || d.grow:
		if keys == 0 {
			keys = d.guess(sources)
		}
		f, err := bloom.ScalableConfig{First: keys, Rate: rate, Budget: budget}.New()
		if errors.Is(err, bloom.ErrRate) {
			err = fmt.Errorf("%w; a filter that grows starts at a fifth of the rate: give a higher -p, or -n without --grow", err)
		}
		return growingSeen{f, limit.of(growthAdvice(d.budget, "give --budget, or close other programs"))}, err
	}
	f, err := newFilter(bloom.Config{Keys: keys, Rate: rate}, budget)
	if err != nil {
		return nil, err
	}
	return fixedSeen{f, newGauge(f, d.keys.Auto), limit.of("give a larger -n, or --grow to take more memory")}, nil
}

// countKeys estimates how many keys to plan for, with -n auto.
func (d *dedupeCommand) countKeys(sources []*lines.Source, tell *lines.Reporter) error {
	if !d.keys.Auto {
		return nil
	}
	if d.appendTo != "" {
		known, err := lines.FindOne(d.appendTo, nil)
		if err == nil {
			sources = append(sources[:len(sources):len(sources)], known)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	keys, err := countDistinct(sources, separator(d.null), nil, tell)
	d.keys.N = human.CountFlag(keys)
	return err
}

// pastRate reports whether a filter that grows or forgets is past its rate, by its
// own account.
func pastRate(f remembered) bool {
	g, ok := f.(growing)
	return ok && g.Err() != nil
}

// guess is the number of keys that a growing filter starts with: a million, or more
// for large files, so that it does not grow often.
func (d *dedupeCommand) guess(sources []*lines.Source) uint64 {
	const fewest, bytesPerKey = 1_000_000, 256
	total := int64(0)
	for _, s := range sources {
		total += s.Bytes
	}
	keys := max(uint64(total/bytesPerKey), fewest)
	if d.budget == 0 {
		return keys
	}
	for keys > 1 { // the first layer must fit
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
	tell     *lines.Reporter
	out      *lines.Writer
	append   *appendedFile // nil: none
	stdout   io.Writer
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

// do processes the lines. With a state, a line is remembered once it is written.
func (r *dedupeRun) do(sources []*lines.Source) error {
	d := r.command
	var p *lines.Pipeline
	if d.state == "" {
		p = lines.NewAdding(r.seen, separator(d.null))
	} else {
		p = lines.NewCareful(r.seen, separator(d.null), time.Duration(d.sync))
	}
	interrupted := r.onInterrupt(p)
	unread := r.watchReader(p)
	stopEarly := d.quiet && !d.stats && !d.strict && d.state == "" && d.appendTo == ""
	err := p.Each(sources, r.tell.Read, func(j *lines.Job) error {
		if j.Synced != nil {
			return r.makeDurable()
		}
		r.lines += uint64(len(j.Ends))
		r.first += uint64(j.Count.Load())
		if err := r.write(j); err != nil {
			return err
		}
		if stopEarly && r.selected() > 0 {
			return lines.ErrEnough
		}
		return nil
	})
	status, nobody := interrupted(), unread()
	var full fullError
	switch {
	case err == lines.ErrEnough:
		return nil
	case errors.As(err, &full):
		return full.after(r.lines, r.seen.advice())
	case err == nil && nobody:
		return syscall.EPIPE // as the next write would have said
	case err == nil && status != 0:
		return exitStatus(status)
	}
	return err
}

// watchReader stops the reading when the reader of the output is gone. It returns a
// function that reports whether that happened.
func (r *dedupeRun) watchReader(p *lines.Pipeline) func() bool {
	if !r.printing {
		return func() bool { return false }
	}
	var gone atomic.Bool
	stop := lines.WatchReader(r.stdout, func() {
		gone.Store(true)
		p.Interrupt()
	})
	return func() bool {
		stop()
		return gone.Load()
	}
}

// onInterrupt lets Ctrl-C stop the reading where there is something to finish; a
// second Ctrl-C ends the program. It returns a function that returns the exit
// status, zero if there was no interrupt.
func (r *dedupeRun) onInterrupt(p *lines.Pipeline) func() int {
	if r.command.state == "" && r.append == nil {
		return func() int { return 0 }
	}
	came, over, ended := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, hangup} {
		if !signal.Ignored(s) {
			signal.Notify(came, s)
		}
	}
	status := 0
	go func() {
		defer close(ended)
		for {
			select {
			case s := <-came:
				if status != 0 {
					os.Exit(status)
				}
				status = 128 + int(s.(syscall.Signal))
				p.Interrupt()
			case <-over:
				return
			}
		}
	}()
	return func() int {
		signal.Stop(came)
		close(over)
		<-ended
		return status
	}
}

// write writes the selected lines of a job, and what is new to the file that
// grows.
func (r *dedupeRun) write(j *lines.Job) error {
	if r.append != nil {
		if err := r.append.write(j); err != nil {
			return err
		}
	}
	if !r.printing {
		return nil
	}
	return r.out.Write(j, !r.command.repeated)
}

// makeDurable syncs what is remembered. It is called when all lines so far are added
// and written.
func (r *dedupeRun) makeDurable() error {
	if r.append != nil {
		if err := r.append.file.Sync(); err != nil {
			return lines.FileError(r.append.path, err)
		}
	}
	return r.seen.Sync()
}

// dedupeJSON is dedupe's summary.
type dedupeJSON struct {
	Lines    uint64 `json:"lines"`
	First    uint64 `json:"first_seen"`
	Repeated uint64 `json:"repeated"`
	human.FilterJSON
}

// finish prints what follows the lines.
func (r *dedupeRun) finish(cmd *cobra.Command) error {
	d := r.command
	if r.append != nil {
		if err := r.append.file.Close(); err != nil {
			return lines.FileError(r.append.path, err)
		}
	}
	if d.stats {
		r.tell.Say("%s: %s first seen, %s repeated", human.Count(r.lines, "line"), human.Commas(r.first), human.Commas(r.repeats()))
		r.tell.Say("filter: %s", human.Fullness(human.Condition{Report: r.seen.Report()}))
	}
	var err error
	switch {
	case d.count:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), r.selected())
	case d.asJSON:
		err = printJSON(cmd.OutOrStdout(), dedupeJSON{r.lines, r.first, r.repeats(), human.Describe(human.Condition{Report: r.seen.Report()})})
	}
	if err != nil {
		return err
	}
	if d.strict && (r.seen.Report().Overfull() || pastRate(r.seen)) {
		return exitStatus(exitOverfull)
	}
	return selected(r.selected())
}
