package main

import (
	"fmt"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/interop"
	"github.com/spf13/cobra"
)

// addCommand is `bloomery add`.
type addCommand struct {
	null          bool
	grow          bool
	allowOverfull bool
	asJSON        bool
	secret        string
	normalize     string
	anyfile.Options
}

func newAdd() *cobra.Command {
	a := &addCommand{}
	cmd := &cobra.Command{
		Use:   "add F [FILE...]",
		Short: "Add lines to a filter file",
		Long: `Add adds the lines of the files, or of standard input, to the filter F, which may
be of any kind or written by another program; F keeps its format. The result goes
to a temporary file, which replaces F at the end: if the command is interrupted, F
stays as it was. It reports on standard error how many lines were new and how many
had been seen before.

At 90% full it warns. If F gets more keys than it was planned for, the command
fails and F stays as it was, unless --grow is given, which turns F into a scalable
filter, or --allow-overfull.
` + normalizeHelp,
		Example: `  bloomery add seen.bloom today.txt
  zcat logs/*.gz | bloomery add --json ips.bloom
  bloomery add --grow seen.bloom more.txt        # from now on it grows
  bloomery add list.dcso hashes.txt              # in DCSO's format, as before`,
		Args:                  someFilters("bloomery add seen.bloom lines.txt"),
		RunE:                  a.run,
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.BoolVar(&a.grow, "grow", false, "instead of overfilling the filter, turn it into a scalable one, with up to five times the planned rate")
	flags.BoolVar(&a.allowOverfull, "allow-overfull", false, "continue beyond n keys, at a higher rate than planned")
	cmd.MarkFlagsMutuallyExclusive("grow", "allow-overfull")
	addNull(cmd, &a.null)
	addSecret(cmd, &a.secret)
	addNormalize(cmd, &a.normalize)
	addFormat(cmd, &a.Options)
	addFunnel(cmd, &a.Options)
	addJSON(cmd, &a.asJSON, "print the report as one JSON object on standard output")
	return cmd
}

func (a *addCommand) run(cmd *cobra.Command, args []string) error {
	exitWhenInterrupted()
	f, err := a.OpenToSave(args[0], anyfile.ToChange)
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	if err := a.RefuseIdle(f); err != nil {
		return err
	}
	if err := f.SetNormalize(&a.Options, a.normalize); err != nil {
		return err
	}
	if err := anyfile.Unlock(a.secret, f); err != nil {
		return err
	}
	sources, err := lines.Find(args[1:], cmd.InOrStdin())
	if err != nil {
		return err
	}
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, sources)
	watching.Store(tell)
	if err := f.RecordNormalize(a.normalize, tell); err != nil {
		return err
	}
	if err := a.refuseGrow(f); err != nil {
		return err
	}
	lines.HintTerminal(tell, sources)
	run := &addRun{addCommand: a, file: f, tell: tell}
	err = run.do(&lines.Reader{
		Sources:   sources,
		Separator: separator(a.null),
		Count:     tell.Read,
	})
	tell.Finish()
	if err != nil {
		return err
	}
	if err := save(f); err != nil {
		return err
	}
	return run.report(cmd)
}

// addRun is one run over the input.
type addRun struct {
	*addCommand
	file  *anyfile.File
	gauge *gauge // nil: the filter grows
	tell  *lines.Reporter

	before bloom.Report

	lines, isNew uint64
}

func (r *addRun) do(reader *lines.Reader) error {
	r.before = r.file.Report()
	if err := r.begin(); err != nil {
		return err
	}
	return reader.Each(func(b lines.Batch) error {
		keys, err := r.file.Keys.Of(b.Keys)
		for err == nil && len(keys) > 0 {
			var some [][]byte
			some, keys = r.gauge.cut(keys)
			err = r.add(some)
		}
		return err
	})
}

// add adds no more keys than the gauge lets through at once.
func (r *addRun) add(keys [][]byte) error {
	isNew := r.file.AddMany(keys, nil)
	r.lines += uint64(len(keys))
	r.isNew += uint64(isNew)
	if r.gauge == nil {
		return r.mayGrow()
	}
	level, report := r.gauge.add(isNew)
	return r.watch(level, report)
}

// growing is a filter that makes room itself, and reports when it no longer can.
type growing interface{ Err() error }

// begin checks how full the filter is already.
func (r *addRun) begin() error {
	if grows(r.file.Filter) {
		return r.mayGrow()
	}
	if r.file.Unplanned() {
		return nil // n is unknown
	}
	var level float64
	var report bloom.Report
	r.gauge, level, report = resumeGauge(r.file.Filter)
	return r.watch(level, report)
}

// grows reports whether a filter makes room itself.
func grows(f interop.Filter) bool {
	_, ok := f.(growing)
	return ok
}

// refusesKeys reports whether a filter that can no longer grow does not add keys, as
// RedisBloom's. Ours adds them, at a higher rate.
func refusesKeys(f interop.Filter) bool {
	switch f.(type) {
	case *anyfile.Chain, *bloom.Cuckoo:
		return true
	}
	return false
}

// mayGrow fails if the filter has reached the limit of its growth.
func (r *addRun) mayGrow() error {
	g, ok := r.file.Filter.(growing)
	if _, forgets := r.file.Filter.(*bloom.Window); forgets || !ok || g.Err() == nil {
		return nil // a window's rate comes down again: see warnWindow
	}
	if refusesKeys(r.file.Filter) {
		return fmt.Errorf("%s: %w: it was made for %s keys and holds no more; the file stays as it was: build a larger one from its keys",
			r.file.Path, g.Err(), human.Commas(r.file.Plan().Keys))
	}
	if r.allowOverfull {
		return nil
	}
	return fmt.Errorf("%s: %w: the file stays as it was; --allow-overfull continues at a higher rate", r.file.Path, g.Err())
}

// watch warns when the filter is nearly full, and fails when it is full.
func (r *addRun) watch(level float64, report bloom.Report) error {
	switch {
	case level == 0:
	case level < 1 && r.grow: // as it should be
	case level < 1:
		r.tell.Warn("%s", human.NearlyFull(report))
	case r.allowOverfull:
		r.tell.Warn("%s", human.Overfull(report))
	case r.grow:
		return r.startGrowing(report)
	default:
		return fmt.Errorf("%s: %s, after %s; the file stays as it was: build a larger one, or give --grow, or --allow-overfull to continue at a higher rate",
			r.file.Path, human.Overfull(report), human.Count(r.lines, "line"))
	}
	return nil
}

// refuseGrow refuses --grow for filters that neither grow nor can become a Scalable.
func (a *addCommand) refuseGrow(f *anyfile.File) error {
	_, growable := f.Filter.(*bloom.Filter)
	_, grows := f.Filter.(growing)
	if a.grow && !growable && !grows {
		return fmt.Errorf("%s: a %s of the format %s cannot be made to grow: leave --grow out, or build a scalable one from its keys", f.Path, f.Kind(), f.Format())
	}
	return nil
}

// startGrowing turns the filter into a Scalable. Its bits stay, and so does their
// rate, which is above the planned one if more than n keys were added.
func (r *addRun) startGrowing(now bloom.Report) error {
	s, err := r.file.Filter.(*bloom.Filter).Growing(0) // by refuseGrow
	if err != nil {
		return fmt.Errorf("%s: %w", r.file.Path, err)
	}
	r.file.Filter, r.gauge = s, nil
	planned := s.Config().Rate
	if now.Rate > planned {
		r.tell.Warn("%s: its rate is above the planned one and will not come down: build a larger one from its keys", r.file.Path)
	}
	inAll := planned - now.Plan.Rate + max(now.Rate, now.Plan.Rate) // of the layers to come, and of this one
	r.tell.Say("%s: is full, and is now a scalable filter, planned for an overall rate of %s", r.file.Path, human.OneIn(min(inAll, 1)))
	return nil
}

// addedJSON is what add reports.
type addedJSON struct {
	File  string `json:"file"`
	Lines uint64 `json:"lines"`
	New   uint64 `json:"new"`
	Seen  uint64 `json:"seen_before"`

	Mistaken float64 `json:"mistaken_expected"` // of these, new lines that were mistaken for old ones
	Kind     string  `json:"kind"`
	human.FilterJSON
}

func (r *addRun) report(cmd *cobra.Command) error {
	now := r.file.Condition()
	if w, ok := r.file.Filter.(*bloom.Window); ok {
		r.warnWindow(w)
	}
	seen := r.lines - r.isNew
	mistaken := mistakenBy(r.file, r.before, r.isNew, r.lines)
	if r.asJSON {
		return printJSON(cmd.OutOrStdout(), addedJSON{r.file.Path, r.lines, r.isNew, seen, mistaken, r.file.Kind(), human.Describe(now)})
	}
	r.tell.Say("%s: %s, %s new, %s", r.file.Path, human.Count(r.lines, "line"), human.Commas(r.isNew), human.SeenBefore(seen, mistaken))
	r.tell.Say("%s: %s", r.file.Path, human.Fullness(now))
	return nil
}

// warnWindow warns of a generation that could not grow. It will expire, so it is no
// reason to lose the lines.
func (r *addRun) warnWindow(w *bloom.Window) {
	if err := w.Err(); err != nil {
		r.tell.Warn("%v", err)
	}
}
