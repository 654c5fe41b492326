package bloom

import (
	"fmt"
	"slices"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/rate"
)

// Config says what filter to make. Give two of Keys, Rate and Bits; the third
// follows. All other fields may be zero.
type Config struct {
	Keys uint64  // n, the number of different keys to hold
	Rate float64 // p, the false-positive rate at n keys, 0 < p < 1
	Bits uint64  // m, the size: rounded down to whole blocks of 4,096 bits, at least one

	Probes int    // k, bits per key: even, 2 to 16; zero means the best
	Folds  uint64 // the number of blocks is made a multiple of this, so that Fold(Folds) works
	Budget uint64 // the most bytes the filter may take; zero means no limit

	Seed   uint64 // of XXH3; public, stored in the file
	Secret []byte // SecretBytes bytes: SipHash-2-4 in place of XXH3
}

// Plan is a filter's sizing: all of n, p, m and k. A Plan is made by
// [Config.Plan] and can be read back from every filter.
type Plan struct {
	Keys   uint64  // n
	Rate   float64 // p expected with n keys, at most the rate asked for
	Bits   uint64  // m
	Probes int     // k
	Blocks uint64  // of Layout's size
	Layout Layout  // how a key's bits lie
}

// Layout is the way in which a key's bits lie in a filter.
type Layout uint8

const (
	// PairedLines is [Filter]'s: half of the bits in each of two cache lines of
	// a block of 4,096 bits.
	PairedLines Layout = 1

	// SplitBlocks is [SplitBlock]'s, from Apache Parquet: eight bits in a block
	// of 256.
	SplitBlocks Layout = 2

	// AnyBits is [Classic]'s: no blocks, each bit anywhere. Plan.Blocks counts
	// single bits.
	AnyBits Layout = 3
)

func (l Layout) String() string {
	if g := l.geometry(); g != nil {
		return g.name
	}
	return fmt.Sprintf("layout %d", uint8(l))
}

// geometry is what sizing needs to know of a layout.
type geometry struct {
	layout    Layout
	name      string
	blockBits uint64
	maxBlocks uint64
	probes    []int   // the k to choose from, fewest first
	minRate   float64 // where the layout gives up
	rate      func(n, blocks uint64, probes int) float64
}

var pairedLines = geometry{
	layout:    PairedLines,
	name:      "paired lines",
	blockBits: kernel.BlockBits,
	maxBlocks: kernel.MaxBlocks,
	probes:    []int{2, 4, 6, 8, 10, 12, 14, 16},
	// 16 bits per key need nearly twice the textbook's space here, and ever
	// more below.
	minRate: 1e-12,
	rate:    func(n, blocks uint64, probes int) float64 { return rate.Paired(n, blocks, probes/2) },
}

var splitBlocks = geometry{
	layout:    SplitBlocks,
	name:      "split blocks",
	blockBits: kernel.SplitBlockBits,
	maxBlocks: kernel.MaxSplitBlocks,
	probes:    []int{splitProbes},
	minRate:   1e-8, // four times the textbook's space
	rate:      func(n, blocks uint64, _ int) float64 { return rate.Split(n, blocks) },
}

func (l Layout) geometry() *geometry {
	switch l {
	case PairedLines:
		return &pairedLines
	case SplitBlocks:
		return &splitBlocks
	case AnyBits:
		return &classicBits
	}
	return nil
}

// Bytes is the memory that the bits take.
func (p Plan) Bytes() uint64 { return (p.Bits + 7) / 8 }

// BitsPerKey is m/n.
func (p Plan) BitsPerKey() float64 { return float64(p.Bits) / float64(p.Keys) }

// RateAt is the expected false-positive rate with n different keys in the
// filter, more or fewer than planned.
func (p Plan) RateAt(n uint64) float64 {
	return p.Layout.geometry().rate(n, p.Blocks, p.Probes)
}

func (p Plan) String() string {
	return fmt.Sprintf("n %d, p %.4g, m %d, k %d", p.Keys, p.Rate, p.Bits, p.Probes)
}

// ClassicBitsPerKey is what a textbook Bloom filter needs for rate p with the
// best k: log2(1/p)/ln 2 (Bloom 1970; Broder and Mitzenmacher 2004, equation 2).
// It is the yardstick for every layout's overhead.
func ClassicBitsPerKey(p float64) float64 { return rate.Textbook(p) }

const (
	maxProbes   = 16 // of paired lines
	splitProbes = 8  // of split blocks

	// maxKeys keeps n/2^64, the chance to meet another key's hash, below one in
	// a million, and n exact in a float64.
	maxKeys = 1 << 44
)

// Plan sizes a filter: the fewest blocks that keep the rate, then the fewest
// probes. It is deterministic: the same Config gives the same Plan on every
// machine.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget] and says what to change.
func (c Config) Plan() (Plan, error) { return c.plan(&pairedLines) }

func (c Config) plan(g *geometry) (Plan, error) {
	if err := c.check(g); err != nil {
		return Plan{}, err
	}
	if c.Probes != 0 {
		only := *g
		only.probes = []int{c.Probes}
		g = &only
	}
	var p Plan
	var err error
	switch {
	case c.Keys != 0 && c.Bits != 0:
		p, err = c.planRate(g)
	case c.Keys != 0:
		p, err = c.planBits(g)
	default:
		p, err = c.planKeys(g)
	}
	if err != nil {
		return Plan{}, err
	}
	p.Layout = g.layout
	p.Bits = p.Blocks * g.blockBits
	if c.Budget != 0 && p.Bytes() > c.Budget {
		rate := c.Rate
		if rate == 0 {
			rate = p.Rate
		}
		return Plan{}, fmt.Errorf("%w: %d keys at rate %.3g need %d bytes, the budget is %d: raise the budget or the rate, or plan for fewer keys",
			ErrBudget, p.Keys, rate, p.Bytes(), c.Budget)
	}
	return p, nil
}

func (c Config) check(g *geometry) error {
	given := 0
	for _, is := range []bool{c.Keys != 0, c.Rate != 0, c.Bits != 0} {
		if is {
			given++
		}
	}
	switch {
	case given == 1 && c.Rate != 0:
		return fmt.Errorf("%w: Keys (n) is 0: give two of Keys, Rate (p) and Bits (m), each above zero", ErrConfig)
	case given < 2:
		return fmt.Errorf("%w: give two of Keys (n), Rate (p) and Bits (m), each above zero", ErrConfig)
	case c.Keys > maxKeys:
		return fmt.Errorf("%w: %d keys are more than a 64-bit hash tells apart well; the limit is %d", ErrConfig, c.Keys, uint64(maxKeys))
	case c.Rate != 0 && !(c.Rate > 0 && c.Rate < 1):
		return fmt.Errorf("%w: the rate must be above 0 and below 1, not %g", ErrConfig, c.Rate)
	case c.Rate != 0 && c.Rate < g.minRate:
		return fmt.Errorf("%w: %.4g is below %g, the least that the layout keeps: give a higher rate", ErrRate, c.Rate, g.minRate)
	case c.Probes != 0 && !slices.Contains(g.probes, c.Probes):
		return fmt.Errorf("%w: k must be one of %v, not %d", ErrConfig, g.probes, c.Probes)
	case c.Bits/g.blockBits > g.maxBlocks:
		return fmt.Errorf("%w: %d bits are more than the hash can address; the limit is %d", ErrConfig, c.Bits, g.maxBlocks*g.blockBits)
	case c.Bits != 0 && max(c.Bits/g.blockBits, 1) < c.folds():
		return fmt.Errorf("%w: %d bits are less than the %d blocks of %d bits that Folds asks for", ErrConfig, c.Bits, c.Folds, g.blockBits)
	case c.folds() > g.maxBlocks:
		return fmt.Errorf("%w: Folds %d is above the limit of %d blocks", ErrConfig, c.Folds, g.maxBlocks)
	}
	return nil
}

// folds is what Blocks must be a multiple of.
func (c Config) folds() uint64 { return max(c.Folds, 1) }

// blocksWithin is the largest allowed number of blocks that c.Bits hold.
func (c Config) blocksWithin(g *geometry) uint64 {
	blocks := max(c.Bits/g.blockBits, 1)
	return max(blocks/c.folds(), 1) * c.folds()
}

// planRate knows n and m.
func (c Config) planRate(g *geometry) (Plan, error) {
	p := Plan{Keys: c.Keys, Blocks: c.blocksWithin(g), Rate: 2}
	for _, probes := range g.probes {
		if rate := g.rate(c.Keys, p.Blocks, probes); rate < p.Rate*(1-1e-6) { // not by a last digit, which is chance
			p.Rate, p.Probes = rate, probes
		}
	}
	if c.Rate != 0 && p.Rate > c.Rate {
		return p, fmt.Errorf("%w: %d bits hold %d keys at rate %.4g, not %g: leave one of Keys, Rate and Bits out to have it worked out", ErrRate, c.Bits, c.Keys, p.Rate, c.Rate)
	}
	return p, nil
}

// planBits knows n and p. Of two k with the same number of blocks the smaller
// wins, so each later k is only tried for fewer blocks than the best so far.
func (c Config) planBits(g *geometry) (Plan, error) {
	if floor := rate.HashFloor(c.Keys); floor > c.Rate/2 {
		return Plan{}, fmt.Errorf("%w: %d keys meet another key's 64-bit hash with probability %.2g, too near to the rate %g: raise the rate", ErrRate, c.Keys, floor, c.Rate)
	}
	unit := c.folds()
	best := Plan{Keys: c.Keys, Blocks: (g.maxBlocks/unit + 1) * unit}
	// No layout beats the textbook by half: start looking there.
	atLeast := uint64(float64(c.Keys)*ClassicBitsPerKey(c.Rate)/2) / g.blockBits / unit
	for _, probes := range g.probes {
		if best.Blocks == unit {
			break
		}
		fits := func(units uint64) bool { return g.rate(c.Keys, units*unit, probes) <= c.Rate }
		if units := leastTrue(atLeast+1, best.Blocks/unit-1, fits); units != 0 {
			best.Blocks, best.Probes = units*unit, probes
		}
	}
	if best.Probes == 0 {
		return Plan{}, fmt.Errorf("%w: %d keys at rate %g need more than %d bytes, where the 64-bit hash runs out: split the set or raise the rate",
			ErrRate, c.Keys, c.Rate, g.maxBlocks*g.blockBits/8)
	}
	best.Rate = g.rate(c.Keys, best.Blocks, best.Probes)
	return best, nil
}

// planKeys knows p and m.
func (c Config) planKeys(g *geometry) (Plan, error) {
	p := Plan{Blocks: c.blocksWithin(g)}
	for _, probes := range g.probes {
		over := func(n uint64) bool { return g.rate(n, p.Blocks, probes) > c.Rate }
		n := uint64(maxKeys) // unless an earlier one is over: at 2^33 blocks none may be
		if first := leastTrue(1, maxKeys, over); first != 0 {
			n = first - 1
		}
		if n > p.Keys {
			p.Keys, p.Probes = n, probes
		}
	}
	if p.Keys == 0 {
		return p, fmt.Errorf("%w: %d bits cannot hold a single key at rate %g: give more bits", ErrRate, c.Bits, c.Rate)
	}
	p.Rate = g.rate(p.Keys, p.Blocks, p.Probes)
	return p, nil
}

// leastTrue returns the least i in [first, last] for which the monotone
// predicate holds, or 0 if there is none. It gallops, as the answer is often far
// below last.
func leastTrue(first, last uint64, is func(uint64) bool) uint64 {
	if first > last {
		return 0
	}
	lo, hi := first-1, first // is(lo) counts as false
	for hi < last && !is(hi) {
		lo, hi = hi, min(2*hi, last)
	}
	if hi == last && !is(hi) {
		return 0
	}
	for lo+1 < hi {
		mid := lo + (hi-lo)/2
		if is(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
