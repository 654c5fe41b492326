package classic

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/elementary"
	"github.com/bloomery/bloom/internal/rate"
	"github.com/bloomery/bloom/internal/scheme"
	"github.com/bloomery/bloom/internal/sizing"
)

// Config describes the [Filter] to make. m and k can be set in three ways:
//
//	Bits and Probes                m and k as given; Keys, if zero, becomes the
//	                               number that fills half of the bits, m/k ln 2
//	Keys                           10 bits per key, and the best k: 7
//	Keys and Rate                  m and k from n and p
//
// and any two of Keys, Rate and Bits give the third, as in [bloom.Config].
//
// Given Keys and Rate, our own scheme and a caller's use the exact plan: the fewest
// bits that keep the rate. Another program's scheme uses that program's formula, so
// that the filter is the one the program would make. Formula chooses any other. A
// formula need not keep the rate; Plan.Rate is the rate to expect if positions are
// spread evenly.
type Config struct {
	Keys   uint64  // n
	Rate   float64 // p, 0 < p < 1
	Bits   uint64  // m, 1 to 2^45; rounded up to the scheme's unit of 32 or 64 bits, if it has one
	Probes int     // k, 1 to 255 or what the scheme allows; zero means the best up to 64

	Scheme  Scheme  // zero: SchemeBloomery
	Formula Formula // how m and k follow from Keys and Rate
	Budget  uint64  // the most bytes the filter may take; zero means no limit

	Seed   uint64 // of XXH3 under SchemeBloomery, or of SchemeNPMBloomFilters; other schemes have none
	Secret []byte // bloom.SecretBytes bytes: SipHash-2-4 in place of XXH3, under SchemeBloomery only
}

// bitsPerKey applies where only n is given: the round figure of the textbooks, at
// which k = 7 gives a rate of 0.8%.
const bitsPerKey = 10

// mostTriedProbes bounds the search for the best k. With half of the bits set, 64
// probes find a stranger as rarely as its 64-bit hash meets another key's.
const mostTriedProbes = 64

// minRate is the lowest rate that can be planned.
const minRate = 1e-18

var allProbes = fromOneTo(mostTriedProbes)

func fromOneTo(last int) []int {
	all := make([]int, last)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// Plan sizes a filter without making it. The error wraps [bloom.ErrConfig], [bloom.ErrRate]
// or [bloom.ErrBudget] and says what to change.
func (c Config) Plan() (bloom.Plan, error) {
	def := c.Scheme.def()
	if err := c.applyFormula(def); err != nil {
		return bloom.Plan{}, err
	}
	if c.Keys != 0 && c.Keys <= sizing.MaxKeys && c.Rate == 0 && c.Bits == 0 {
		c.Bits = c.Keys * bitsPerKey
		if def.PowerOfTwo {
			c.Bits = powerFrom(c.Bits)
		}
	}
	if c.Bits != 0 {
		if c.Bits <= scheme.MaxBits {
			c.Bits = (c.Bits + def.Unit - 1) / def.Unit * def.Unit
		}
		if err := c.Scheme.refuseBits(c.Bits); err != nil {
			return bloom.Plan{}, err
		}
	}
	if c.Probes != 0 {
		if err := c.Scheme.refuseProbes(c.Probes); err != nil {
			return bloom.Plan{}, err
		}
	}
	if c.Bits != 0 && c.Probes != 0 && c.Keys == 0 && c.Rate == 0 {
		c.Keys = uint64(min(max(float64(c.Bits)*math.Ln2/float64(c.Probes), 1), sizing.MaxKeys))
	}
	p, err := c.planUnits(def)
	if err == nil && def.PowerOfTwo && p.Bits != powerFrom(p.Bits) {
		c.Rate, c.Bits = 0, powerFrom(p.Bits)
		p, err = c.planUnits(def)
	}
	if err != nil {
		return bloom.Plan{}, err
	}
	return p, c.Scheme.refuseBits(p.Bits)
}

// applyFormula sets m and k if a formula gives them.
func (c *Config) applyFormula(def *scheme.Scheme) (err error) {
	fromKeysAndRate := c.Keys != 0 && c.Rate != 0 && c.Bits == 0 && c.Probes == 0
	switch {
	case c.Formula != 0 && !fromKeysAndRate:
		return fmt.Errorf("%w: the formula %v works from Keys and Rate: give both, and neither Bits nor Probes", bloom.ErrConfig, c.Formula)
	case c.Formula != 0:
		c.Bits, c.Probes, err = c.Formula.Size(c.Keys, c.Rate)
	case fromKeysAndRate && def.Size != nil:
		c.Bits, c.Probes, err = sizeBy(def.Name, def.Size, c.Keys, c.Rate)
	default:
		return nil
	}
	c.Rate = 0 // it need not be kept
	return err
}

// planUnits finds the size in multiples of the scheme's unit.
func (c Config) planUnits(def *scheme.Scheme) (bloom.Plan, error) {
	g := sizing.Geometry{
		BlockBits: def.Unit,
		MaxBlocks: scheme.MaxBits / def.Unit,
		MinRate:   minRate,
		Rate:      func(n, units uint64, probes int) float64 { return rate.Classic(n, units*def.Unit, probes) },
	}
	if c.Probes != 0 {
		g.Probes = []int{c.Probes}
	} else {
		g.Probes = allProbes[def.MinProbes-1 : max(min(def.MaxProbes, c.mostUseful()), def.MinProbes)]
	}
	size, err := g.Fit(sizing.Want{Keys: c.Keys, Rate: c.Rate, Bits: c.Bits, Budget: c.Budget})
	bits := size.Blocks * def.Unit
	// AnyBits counts single bits, whatever the scheme rounds to.
	return bloom.Plan{Keys: size.Keys, Rate: size.Rate, Bits: bits, Probes: size.Probes, Blocks: bits, Layout: bloom.AnyBits}, err
}

// hasher returns the scheme's hash. Other programs' schemes have hashes of their own;
// their seed, if any, is the identity's Key.
func (c Config) hasher() (bloom.Hasher, error) {
	if c.Scheme.TakesHashes() {
		return bloom.NewHasher(c.Seed, c.Secret)
	}
	own := c.Scheme.def().Seed
	switch {
	case c.Secret != nil:
		return bloom.Hasher{}, fmt.Errorf("%w: the scheme %s takes no secret", bloom.ErrConfig, c.Scheme)
	case own == 0 && c.Seed != 0:
		return bloom.Hasher{}, fmt.Errorf("%w: the scheme %s takes no seed", bloom.ErrConfig, c.Scheme)
	case own == 0:
		return bloom.Hasher{}, nil
	case c.Seed == 0:
		return bloom.HashIdentity{Algorithm: bloom.XXH64, Key: own}.Hasher(), nil
	}
	return bloom.HashIdentity{Algorithm: bloom.XXH64, Key: c.Seed}.Hasher(), nil
}

// mostUseful is an upper bound of the best k: the k at which half of the bits are
// set, and a little more for the rounding. For a handful of keys the best k is lower.
func (c Config) mostUseful() int {
	k := -elementary.Log2(c.Rate)
	if c.Keys != 0 && c.Bits != 0 {
		k = float64(c.Bits) / float64(c.Keys) * math.Ln2
	}
	if !(k > 0) {
		return 1 // the plan refuses such a rate
	}
	return int(min(math.Ceil(k)+2, mostTriedProbes))
}

// powerFrom is the least power of two that is at least x.
func powerFrom(x uint64) uint64 { return 1 << bits.Len64(max(x, 1)-1) }
