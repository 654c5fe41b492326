package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/axiomhq/hyperloglog"
	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/internal/machine"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/zeebo/xxh3"
)

// The size and the kind of the filter that build makes.

// size returns the number of keys to plan for, or zero if another flag sets the
// size of the filter.
func (b *buildCommand) size(keys *anyfile.KeyMap, sources []*lines.Source, tell *lines.Reporter) (planned uint64, err error) {
	switch {
	case b.keys.Auto:
		return countDistinct(sources, separator(b.null), keys, tell)
	case b.keys.N != 0:
		return uint64(b.keys.N), nil
	case b.bits != 0 && b.probes != 0, b.kind == bloom.KindScalable.String(), b.kind == bloom.KindScalableCounting.String():
		return 0, nil
	}
	total, counted, err := lines.CountAll(sources, separator(b.null))
	if err != nil {
		return 0, err
	}
	if !counted {
		return 0, usagef("-n is needed for standard input and compressed files; for files, -n auto also works")
	}
	return max(total, 1), nil
}

// autoMargin is how many more keys than estimated -n auto plans for: five times
// the standard error of HyperLogLog with 2^16 registers, 1.04/2^8 (Flajolet,
// Fusy, Gandouet and Meunier 2007).
const autoMargin = 0.02

// countDistinct estimates the number of different keys, by reading all sources
// once before they are read for adding.
func countDistinct(sources []*lines.Source, separator byte, keys *anyfile.KeyMap, tell *lines.Reporter) (uint64, error) {
	sketch := hyperloglog.New16()
	for _, s := range sources {
		if !s.Regular {
			return 0, usagef("%s: -n auto reads its input twice, which only works for files: say how many different lines there are, like -n 1M", s.Name())
		}
		again, err := s.Again()
		if err != nil {
			return 0, err
		}
		reader := &lines.Reader{
			Sources:   []*lines.Source{s},
			Separator: separator,
			Count:     func(int) {},
		}
		err = reader.Each(func(part lines.Batch) error {
			forms, err := keys.Of(part.Keys)
			for _, key := range forms {
				sketch.InsertHash(xxh3.Hash(key))
			}
			return err
		})
		if err == nil {
			err = again()
		}
		if err != nil {
			return 0, err
		}
	}
	estimate := sketch.Estimate()
	planned := max(uint64(math.Ceil(float64(estimate)*(1+autoMargin))), 1)
	tell.Say("about %s different lines; planning for %s, %.0f%% more", human.Commas(estimate), human.Commas(planned), 100*autoMargin)
	return planned, nil
}

// kindNames are the kinds that build makes.
func kindNames() (names []string) {
	for _, k := range []bloom.Kind{bloom.KindFilter, bloom.KindSplitBlock, bloom.KindClassic, bloom.KindCounting, bloom.KindScalable, bloom.KindWindow, bloom.KindCuckoo, bloom.KindScalableCounting} {
		names = append(names, k.String())
	}
	return names
}

// makeFilter makes the empty filter of the file.
func (b *buildCommand) makeFilter(f *anyfile.File, keys uint64) error {
	secret, err := anyfile.ReadSecret(b.secret)
	if err != nil {
		return err
	}
	if secret != nil && b.seed != 0 {
		return usagef("give --seed or --secret, not both: a secret replaces the seed")
	}
	if b.format != "" {
		return b.makeForeign(f, keys, secret)
	}
	budget := orMachine(uint64(b.budget))
	c := bloom.Config{Keys: keys, Rate: float64(b.rate), Folds: uint64(b.folds), Budget: budget, Seed: uint64(b.seed), Secret: secret}
	switch b.kind {
	case bloom.KindFilter.String():
		f.Filter, err = anyfile.OrNone(newFilter(c, uint64(b.budget)))
		return err // newFilter names the budget
	case bloom.KindSplitBlock.String():
		f.Filter, err = anyfile.OrNone(c.NewSplitBlock())
	case bloom.KindClassic.String():
		f.Filter, err = anyfile.OrNone(b.newClassic(keys, secret))
	case bloom.KindCounting.String():
		f.Filter, err = anyfile.OrNone(c.NewCounting())
	case bloom.KindScalable.String():
		f.Filter, err = anyfile.OrNone(b.scalableConfig(keys, secret).New())
	case bloom.KindScalableCounting.String():
		f.Filter, err = anyfile.OrNone(b.scalableConfig(keys, secret).NewCounting())
	case bloom.KindWindow.String():
		if b.span <= 0 {
			return usagef("give --span, the time that a window remembers, like --span 24h")
		}
		f.Filter, err = anyfile.OrNone(bloom.WindowConfig{Keys: keys, Rate: c.Rate, Span: time.Duration(b.span), Budget: budget, Seed: uint64(b.seed), Secret: secret}.New())
	case bloom.KindCuckoo.String():
		f.Filter, err = anyfile.OrNone(b.cuckooConfig(keys, secret).New())
	default:
		return usagef("--kind %s is unknown: take one of %s", b.kind, joined(kindNames()))
	}
	return b.overBudget(inFlags(err, "--bits"))
}

// scalableConfig is of a filter that grows.
func (b *buildCommand) scalableConfig(keys uint64, secret []byte) bloom.ScalableConfig {
	return bloom.ScalableConfig{First: keys, Rate: float64(b.rate), Budget: uint64(b.budget), Seed: uint64(b.seed), Secret: secret}
}

// cuckooConfig is of a cuckoo filter, whose size follows from n alone. A rate is one that it
// must keep.
func (b *buildCommand) cuckooConfig(keys uint64, secret []byte) bloom.CuckooConfig {
	c := bloom.CuckooConfig{Keys: keys, Budget: uint64(b.budget), Seed: uint64(b.seed), Secret: secret}
	if b.given("rate") {
		c.Rate = float64(b.rate)
	}
	c.BucketSize, c.Iterations, c.Growth = int(b.bucketSize), int(b.iterations), int(b.expansion)
	c.NonScaling = b.given("expansion") && b.expansion == 0
	return c
}

// refuseFlags refuses flags that the kind or format could only ignore.
func (b *buildCommand) refuseFlags() error {
	classic := b.kind == bloom.KindClassic.String() || b.format != ""
	format, _ := interop.FormatNamed(b.format)
	cuckoo := b.kind == bloom.KindCuckoo.String() || format != nil && format.Holds == interop.Cuckoos
	switch {
	case !cuckoo && (b.given("bucket-size") || b.given("iterations") || b.given("expansion")):
		return usagef("--bucket-size, --iterations and --expansion are for --kind cuckoo and --format redisbloom-cuckoo")
	case b.given("bucket-size") && b.bucketSize == 0, b.given("iterations") && b.iterations == 0:
		return usagef("--bucket-size and --iterations are at least 1")
	case b.scheme != "" && !classic, b.bits != 0 && !classic, b.probes != 0 && !classic:
		return usagef("--scheme, --bits and --probes are for --kind classic and for --format")
	case b.given("rate") && b.bits != 0:
		return usagef("-p follows from --bits and -n: leave -p or --bits out")
	case b.given("span") && b.kind != bloom.KindWindow.String():
		return usagef("--span is for --kind window")
	case b.folds > 1 && (b.format != "" || b.kind != bloom.KindFilter.String() && b.kind != bloom.KindSplitBlock.String()):
		return usagef("--folds is for --kind filter and splitblock: other kinds cannot be folded")
	}
	return nil
}

// orMachine is the budget, or without one the memory of this machine or of its
// control group.
func orMachine(budget uint64) uint64 {
	if budget != 0 {
		return budget
	}
	bytes, _ := machine.Usable()
	return bytes
}

func (b *buildCommand) overBudget(err error) error {
	if b.budget == 0 && errors.Is(err, bloom.ErrBudget) {
		return fmt.Errorf("%w; without --budget it is the memory of this machine, or of its control group", err)
	}
	return err
}

// newClassic makes a Classic of the scheme that --scheme names.
func (b *buildCommand) newClassic(keys uint64, secret []byte) (*classic.Filter, error) {
	c := classic.Config{
		Keys:   keys,
		Rate:   float64(b.rate),
		Bits:   uint64(b.bits),
		Probes: int(b.probes),
		Budget: orMachine(uint64(b.budget)),
		Seed:   uint64(b.seed),
		Secret: secret,
	}
	if c.Bits != 0 {
		c.Rate = 0 // it follows
	}
	if b.scheme != "" {
		scheme, ok := classic.SchemeNamed(b.scheme)
		if !ok {
			return nil, usagef("--scheme %s is unknown: take one of %s", b.scheme, joined(anyfile.SchemeNames()))
		}
		c.Scheme = scheme
	}
	return c.New()
}

// makeForeign makes an empty filter that the format can hold.
func (b *buildCommand) makeForeign(f *anyfile.File, keys uint64, secret []byte) error {
	format, ok := interop.FormatNamed(b.format)
	if !ok {
		return usagef("--format %s is unknown: take one of %s", b.format, joined(anyfile.FormatNames()))
	}
	var made interop.Filter
	var err error
	switch chain, split, cuckoo := format.Holds == interop.Chains, format.Holds == interop.SplitBlocks, format.Holds == interop.Cuckoos; {
	case (chain || split || cuckoo) && (b.scheme != "" || b.bits != 0 || b.probes != 0), (chain || cuckoo) && (b.seed != 0 || secret != nil):
		return usagef("the format %s has its own rule that sizes a filter from -n and -p: leave --scheme, --bits, --probes, --seed and --secret out", format.Name)
	case (chain || cuckoo) && b.allowOverfull:
		return usagef("--allow-overfull has no effect: a filter of the format %s grows: leave it out", format.Name)
	case chain:
		c := redisbloom.Config{Keys: keys, Rate: float64(b.rate)}
		if budget := orMachine(uint64(b.budget)); budget != 0 {
			c.Grant, c.Release = redisbloom.Budget(budget)
		}
		made, err = anyfile.OrNone(redisbloom.New(c))
	case cuckoo:
		made, err = anyfile.OrNone(b.cuckooConfig(keys, nil).New())
	case split:
		c := bloom.Config{Keys: keys, Rate: float64(b.rate), Budget: orMachine(uint64(b.budget)), Seed: uint64(b.seed), Secret: secret}
		made, err = anyfile.OrNone(c.NewSplitBlock())
	case b.scheme == "":
		b.scheme = format.Schemes[0].Name()
		fallthrough
	default:
		made, err = anyfile.OrNone(b.newClassic(keys, secret))
	}
	if err != nil {
		return b.overBudget(inFlags(err, "--bits"))
	}
	f.SetForeign(&interop.File{Filter: made, Format: format, Unplanned: keys == 0})
	if err := f.Encode(io.Discard); err != nil { // before the work, not after it
		f.Close()
		return err
	}
	return nil
}

// newFilter makes a filter if it fits the budget, or without one the memory of the
// machine or its control group. Keys touch a filter everywhere from the start, so
// one that does not fit would not slow the machine down but bring it down.
func newFilter(c bloom.Config, budget uint64) (*bloom.Filter, error) {
	c.Budget = budget
	if budget == 0 {
		c.Budget, _ = machine.Usable()
	}
	f, err := c.New()
	if budget == 0 && errors.Is(err, bloom.ErrBudget) {
		err = fmt.Errorf("%w; without --budget it is the memory of this machine, or of its control group", err)
	}
	return f, err
}
