package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/interop"
	"github.com/spf13/cobra"
)

// foldCommand is `bloomery fold`.
type foldCommand struct {
	output string
	force  bool
	by     human.CountFlag
	rate   human.RateFlag
	asJSON bool
}

func newFold() *cobra.Command {
	c := &foldCommand{}
	cmd := &cobra.Command{
		Use:   "fold -o OUT F [--by N | --rate P]",
		Short: "Shrink an under-filled filter",
		Long: `Fold writes to OUT the filter F at a fraction of its size: exactly the bits of a
smaller filter with the same keys. No key is lost, and the rate goes up.

With --by N the size is divided by N. Otherwise OUT is as small as the rate P
allows, by default the rate that F was planned for. OUT is planned for that rate,
and for as many keys as its size then holds. The size must be divisible, which
'bloomery build --folds N' ensures. The kinds filter and splitblock can be folded,
and filters with exceptions.`,
		Example: `  bloomery fold -o small.bloom large.bloom
  bloomery fold -o half.bloom --by 2 large.bloom
  bloomery fold -o rough.bloom --rate 1% large.bloom`,
		RunE:                  c.run,
		DisableFlagsInUseLine: true,
	}
	addOutput(cmd, &c.output, &c.force)
	cmd.Flags().Var(&c.by, "by", "divide the size by N")
	cmd.Flags().Var(&c.rate, "rate", `shrink as far as this false-positive rate allows: 0.001, 0.1%, 1/1000, "1 in 1000"`)
	addJSON(cmd, &c.asJSON, "print the report as one JSON object on standard output")
	cmd.MarkFlagsMutuallyExclusive("by", "rate")
	return cmd
}

func (c *foldCommand) run(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("name one filter to fold: bloomery fold -o OUT F")
	}
	if err := mayWrite(c.output, c.force); err != nil {
		return err
	}
	f, err := (&anyfile.Options{}).Open(args[0], anyfile.ToRead)
	if err != nil {
		return err
	}
	defer f.Close()
	before := f.Condition()
	folded, by, err := c.fold(f, before.Report)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	defer folded.Close()
	if err := replaceFile(c.output, nil, folded.Encode); err != nil {
		return err
	}
	after := folded.Condition()
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, nil)
	if after.Over() {
		tell.Warn("%s", human.Overfull(after.Report))
	}
	if c.asJSON {
		return printJSON(cmd.OutOrStdout(), foldedJSON{c.output, by, component{args[0], human.Describe(before), before}, human.Describe(after)})
	}
	tell.Say("%s: %s, false-positive rate now %s", args[0], human.BinarySize(before.Plan.Bytes()), human.OneIn(before.Rate))
	tell.Say("%s: folded by %d; %s", c.output, by, human.Fullness(after))
	return nil
}

// foldedJSON is what fold reports.
type foldedJSON struct {
	File string    `json:"file"`
	By   uint64    `json:"by"`
	From component `json:"from"`
	human.FilterJSON
}

// fold folds by the given factor, or as far as the rate allows.
func (c *foldCommand) fold(f *anyfile.File, r bloom.Report) (folded *anyfile.File, by uint64, err error) {
	if !foldable(f) {
		return nil, 0, fmt.Errorf("a %s cannot be folded: only filters, splitblocks and filters with exceptions can: build a smaller one from its keys", f.Kind())
	}
	if by := uint64(c.by); by != 0 {
		if by == 1 {
			return nil, 0, usagef("--by 1 changes nothing: give 2 or more")
		}
		if r.Plan.Blocks%by != 0 {
			return nil, 0, fmt.Errorf("it has %d blocks, which cannot be folded by %d: build it with --folds %[2]d", r.Plan.Blocks, by)
		}
		folded, err = foldBy(f, by)
		return folded, by, err
	}
	limit := float64(c.rate)
	if limit == 0 {
		if f.Unplanned() {
			return nil, 0, errors.New("its file does not record the planned rate: give --rate or --by")
		}
		limit = r.Plan.Rate
	}
	if r.Rate > limit {
		return nil, 0, fmt.Errorf("its rate is %s already, above %s: there is nothing to fold", human.OneIn(r.Rate), human.OneIn(limit))
	}
	for _, by := range slices.Backward(divisors(r.Plan.Blocks)) {
		smaller := r.Plan
		smaller.Blocks /= by
		smaller.Bits /= by
		// The formula rules out hopeless sizes; the bits decide.
		if by > 1 && smaller.RateAt(uint64(max(r.Keys-3*r.KeysError, 0))) > 1.5*limit {
			continue
		}
		if by == 1 {
			break
		}
		folded, err := foldBy(f, by)
		if err != nil {
			return nil, 0, err
		}
		if folded.Report().Rate <= limit {
			return folded, by, c.replan(folded)
		}
		folded.Close()
	}
	return nil, 0, fmt.Errorf("it has %d blocks, and no size that divides them keeps a rate of %s: give a higher --rate, or build it with --folds", r.Plan.Blocks, human.OneIn(limit))
}

// replan plans the result for the given rate.
func (c *foldCommand) replan(folded *anyfile.File) error {
	if c.rate == 0 {
		return nil
	}
	return folded.Filter.(interface{ Replan(p float64) error }).Replan(float64(c.rate))
}

// foldable reports whether the kind can be folded.
func foldable(f *anyfile.File) bool {
	switch f.Filter.(type) {
	case *bloom.Filter, *bloom.SplitBlock, *bloom.Exceptions:
		return true
	}
	return false
}

// foldBy returns a filter of 1/by of the size. The kind must be foldable.
func foldBy(f *anyfile.File, by uint64) (folded *anyfile.File, err error) {
	folded = &anyfile.File{}
	switch k := f.Filter.(type) {
	case *bloom.Filter:
		folded.Filter, err = anyfile.OrNone(k.Fold(by))
	case *bloom.SplitBlock:
		if f.Foreign != nil {
			folded.Foreign = &interop.File{Format: f.Foreign.Format, Unplanned: f.Foreign.Unplanned}
		}
		folded.Filter, err = anyfile.OrNone(k.Fold(by))
	case *bloom.Exceptions:
		folded.Filter, err = anyfile.OrNone(k.Fold(by))
	}
	if err != nil {
		return nil, err
	}
	if folded.Foreign != nil {
		folded.Foreign.Filter = folded.Filter
	}
	return folded, nil
}

// divisors are the numbers that divide n, ascending.
func divisors(n uint64) (all []uint64) {
	var large []uint64
	for d := uint64(1); d*d <= n; d++ {
		if n%d == 0 {
			all = append(all, d)
			if d*d != n {
				large = append(large, n/d)
			}
		}
	}
	slices.Reverse(large)
	return append(all, large...)
}
