package main

import (
	"math"
	"slices"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/filterfile"
)

// A planner is one of the library's ways to plan.
type planner func(bloom.Config) (bloom.Plan, error)

// A layout is a kind of filter that plan sizes. The maths is the library's; this adds
// the layout's name on the command line, how much memory a bit takes, and how many
// cache lines a lookup reads.
type layout struct {
	name string
	make string // the function of n and p, which a Config of its package has as a method
	plan planner

	// bytesPerByte is the memory for each byte of [bloom.Plan.Bytes].
	bytesPerByte uint64

	// lines are the cache lines that a lookup reads: for a key that is found, and
	// for one that is not.
	lines func(bloom.Plan) (found, absent float64)
}

// classicConfig is c for a textbook filter under our own scheme.
func classicConfig(c bloom.Config) classic.Config {
	return classic.Config{Keys: c.Keys, Rate: c.Rate, Bits: c.Bits, Probes: c.Probes, Budget: c.Budget, Seed: c.Seed, Secret: c.Secret}
}

func planClassic(c bloom.Config) (bloom.Plan, error) { return classicConfig(c).Plan() }

// layouts lists all of them, the default first.
var layouts = []layout{
	{"paired", "bloom.New", bloom.Config.Plan, 1, pairedLines},
	{"split", "bloom.NewSplitBlock", bloom.Config.PlanSplitBlock, 1, func(bloom.Plan) (found, absent float64) { return 1, 1 }},
	{"classic", "classic.New", planClassic, 1, classicLines},
	{"counting", "bloom.NewCounting", bloom.Config.PlanCounting, 4, countingLines},
}

// layoutNamed finds a layout by its name.
func layoutNamed(name string) (layout, bool) {
	i := slices.IndexFunc(layouts, func(l layout) bool { return l.name == name })
	if i < 0 {
		return layout{}, false
	}
	return layouts[i], true
}

func layoutNames() (names []string) {
	for _, l := range layouts {
		names = append(names, l.name)
	}
	return names
}

// parseLayouts parses the names given to --layout; none means all.
func parseLayouts(names []string) ([]layout, error) {
	if len(names) == 0 {
		return layouts, nil
	}
	var chosen []layout
	for i, name := range names {
		l, ok := layoutNamed(name)
		if !ok {
			return nil, usagef("--layout must be some of %s, not %q", strings.Join(layoutNames(), ", "), name)
		}
		if slices.Contains(names[:i], name) {
			return nil, usagef("--layout %s was given twice", name)
		}
		chosen = append(chosen, l)
	}
	return chosen, nil
}

// memory is what the filter takes in memory.
func (l layout) memory(p bloom.Plan) uint64 { return p.Bytes() * l.bytesPerByte }

// fileBytes is the size of the filter's file, which holds the bits in whole words.
func (l layout) fileBytes(p bloom.Plan) uint64 {
	return filterfile.FileBytes((l.memory(p) + 7) / 8 * 8)
}

// pairedLines: the second line is read only if the first one passes. The two
// fill alike, so each passes with about the root of p.
func pairedLines(p bloom.Plan) (found, absent float64) { return 2, 1 + math.Sqrt(p.Rate) }

// countingLines: where pairedLines reads a line of eight lanes, the counters lie
// in four, two lanes in each, and the k/2 lanes of a key touch some of these.
func countingLines(p bloom.Plan) (found, absent float64) {
	lanes := float64(p.Probes / 2)
	each := 4 * (1 - (8-lanes)*(7-lanes)/(8*7))
	found, absent = pairedLines(p)
	return each * found, each * absent
}

// classicLines: after i bits of a key the next one is read if all of them were
// set, and lies in a line that was not read yet with probability (1-1/lines)^i.
func classicLines(p bloom.Plan) (found, absent float64) {
	oneBit := p
	oneBit.Probes = 1
	fill := oneBit.RateAt(p.Keys * uint64(p.Probes)) // the chance that one bit of an absent key is set
	elsewhere := max(1-512/float64(p.Bits), 0)
	series := func(ratio float64) float64 { // 1 + ratio + ratio^2 ..., k terms
		sum, term := 0., 1.
		for range p.Probes {
			sum += term
			term *= ratio
		}
		return sum
	}
	return series(elsewhere), series(fill * elsewhere)
}
