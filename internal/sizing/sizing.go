// Package sizing finds the smallest filter that keeps a false-positive rate, for any
// layout that has a formula for its rate. Letters are those of the literature: n keys,
// rate p, m bits, k probes.
package sizing

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/rate"
)

// Package bloom exports these errors and documents them.
var (
	ErrConfig = errors.New("bloom: bad config")
	ErrRate   = errors.New("bloom: rate out of reach")
	ErrBudget = memory.ErrBudget
)

// MaxKeys keeps n/2^64, the chance that a key has another key's hash, below one in a
// million, and n exact in a float64.
const MaxKeys = 1 << 44

// Geometry is what sizing needs to know about a layout.
type Geometry struct {
	BlockBits uint64
	MaxBlocks uint64
	Probes    []int   // the k to choose from, fewest first
	MinRate   float64 // the lowest rate for which the layout is planned
	Rate      func(n, blocks uint64, probes int) float64
}

// Want is what a caller asks for. Two of Keys, Rate and Bits are given; the third
// follows.
type Want struct {
	Keys   uint64  // n
	Rate   float64 // p
	Bits   uint64  // m, rounded down to whole blocks, but at least one block
	Probes int     // k; zero means the best
	Folds  uint64  // the number of blocks is made a multiple of this
	Budget uint64  // at most this many bytes; zero means no limit
}

// Size is the result for a Want.
type Size struct {
	Keys   uint64
	Rate   float64 // expected with n keys
	Blocks uint64
	Probes int
}

// Fit finds the size: the fewest blocks that keep the rate, then the fewest probes.
// It is deterministic: the same Want gives the same Size on every machine.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget] and says what to change.
func (g *Geometry) Fit(c Want) (Size, error) {
	if err := c.check(g); err != nil {
		return Size{}, err
	}
	if c.Probes != 0 {
		only := *g
		only.Probes = []int{c.Probes}
		g = &only
	}
	var p Size
	var err error
	switch {
	case c.Keys != 0 && c.Bits != 0:
		p, err = c.findRate(g)
	case c.Keys != 0:
		p, err = c.findBits(g)
	default:
		p, err = c.findKeys(g)
	}
	if err != nil {
		return Size{}, err
	}
	if bytes := (p.Blocks*g.BlockBits + 7) / 8; c.Budget != 0 && bytes > c.Budget {
		rate := c.Rate
		if rate == 0 {
			rate = p.Rate
		}
		return Size{}, fmt.Errorf("%w: %d keys at rate %.3g need %d bytes, the budget is %d: raise the budget or the rate, or plan for fewer keys",
			ErrBudget, p.Keys, rate, bytes, c.Budget)
	}
	return p, nil
}

func (c Want) check(g *Geometry) error {
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
	case c.Keys > MaxKeys:
		return fmt.Errorf("%w: %d keys are more than a 64-bit hash tells apart well; the limit is %d", ErrConfig, c.Keys, uint64(MaxKeys))
	case c.Rate != 0 && !(c.Rate > 0 && c.Rate < 1):
		return fmt.Errorf("%w: the rate must be above 0 and below 1, not %g", ErrConfig, c.Rate)
	case c.Rate != 0 && c.Rate < g.MinRate:
		return fmt.Errorf("%w: %.4g is below %g, the least that the layout keeps: give a higher rate", ErrRate, c.Rate, g.MinRate)
	case c.Probes != 0 && !slices.Contains(g.Probes, c.Probes):
		return fmt.Errorf("%w: k must be one of %v, not %d", ErrConfig, g.Probes, c.Probes)
	case c.Bits/g.BlockBits > g.MaxBlocks:
		return fmt.Errorf("%w: %d bits are more than the hash can address; the limit is %d", ErrConfig, c.Bits, g.MaxBlocks*g.BlockBits)
	case c.Bits != 0 && max(c.Bits/g.BlockBits, 1) < c.folds():
		return fmt.Errorf("%w: %d bits are less than the %d blocks of %d bits that Folds asks for", ErrConfig, c.Bits, c.Folds, g.BlockBits)
	case c.folds() > g.MaxBlocks:
		return fmt.Errorf("%w: Folds %d is above the limit of %d blocks", ErrConfig, c.Folds, g.MaxBlocks)
	}
	return nil
}

// folds returns the number that Blocks must be a multiple of.
func (c Want) folds() uint64 { return max(c.Folds, 1) }

// blocksWithin returns the largest allowed number of blocks that fit in c.Bits.
func (c Want) blocksWithin(g *Geometry) uint64 {
	blocks := max(c.Bits/g.BlockBits, 1)
	return max(blocks/c.folds(), 1) * c.folds()
}

// findRate finds p from n and m.
func (c Want) findRate(g *Geometry) (Size, error) {
	p := Size{Keys: c.Keys, Blocks: c.blocksWithin(g), Rate: 2}
	for _, probes := range g.Probes {
		if rate := g.Rate(c.Keys, p.Blocks, probes); rate < p.Rate*(1-1e-6) { // ignore differences in the last digits
			p.Rate, p.Probes = rate, probes
		}
	}
	if c.Rate != 0 && p.Rate > c.Rate {
		return p, fmt.Errorf("%w: %d bits hold %d keys at rate %.4g, not %g: leave one of Keys, Rate and Bits out to have it worked out", ErrRate, c.Bits, c.Keys, p.Rate, c.Rate)
	}
	return p, nil
}

// findBits finds m from n and p. Of two k with the same number of blocks the smaller
// wins, so each larger k is tried only for fewer blocks than the best so far.
func (c Want) findBits(g *Geometry) (Size, error) {
	if floor := rate.HashFloor(c.Keys); floor > c.Rate/2 {
		return Size{}, fmt.Errorf("%w: %d keys meet another key's 64-bit hash with probability %.2g, too near to the rate %g: raise the rate", ErrRate, c.Keys, floor, c.Rate)
	}
	unit := c.folds()
	best := Size{Keys: c.Keys, Blocks: (g.MaxBlocks/unit + 1) * unit}
	// No layout needs less than half of the textbook's space: start there.
	atLeast := uint64(float64(c.Keys)*rate.Textbook(c.Rate)/2) / g.BlockBits / unit
	for _, probes := range g.Probes {
		if best.Blocks == unit {
			break
		}
		fits := func(units uint64) bool { return g.Rate(c.Keys, units*unit, probes) <= c.Rate }
		if units := leastTrue(atLeast+1, best.Blocks/unit-1, fits); units != 0 {
			best.Blocks, best.Probes = units*unit, probes
		}
	}
	if best.Probes == 0 {
		return Size{}, fmt.Errorf("%w: %d keys at rate %g need more than %d bytes, where the 64-bit hash runs out: split the set or raise the rate",
			ErrRate, c.Keys, c.Rate, g.MaxBlocks*g.BlockBits/8)
	}
	best.Rate = g.Rate(c.Keys, best.Blocks, best.Probes)
	return best, nil
}

// findKeys finds n from p and m.
func (c Want) findKeys(g *Geometry) (Size, error) {
	p := Size{Blocks: c.blocksWithin(g)}
	for _, probes := range g.Probes {
		over := func(n uint64) bool { return g.Rate(n, p.Blocks, probes) > c.Rate }
		n := uint64(MaxKeys) // if the rate is never exceeded, as with 2^33 blocks
		if first := leastTrue(1, MaxKeys, over); first != 0 {
			n = first - 1
		}
		if n > p.Keys {
			p.Keys, p.Probes = n, probes
		}
	}
	if p.Keys == 0 {
		return p, fmt.Errorf("%w: %d bits cannot hold a single key at rate %g: give more bits", ErrRate, c.Bits, c.Rate)
	}
	p.Rate = g.Rate(p.Keys, p.Blocks, p.Probes)
	return p, nil
}

// leastTrue returns the least i in [first, last] for which the monotone predicate holds,
// or 0 if there is none. It searches exponentially, as the answer is often far below
// last.
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
