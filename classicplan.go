package bloom

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/bloomery/bloom/internal/elementary"
	"github.com/bloomery/bloom/internal/scheme"
)

// ClassicConfig says what [Classic] to make. m and k can be set in three ways:
//
//	Bits and Probes                m and k as given; Keys, if zero, becomes the
//	                               number that fills half of the bits, m/k ln 2
//	Keys                           10 bits a key, and the best k: 7
//	Keys and Rate                  m and k from n and p
//
// and any two of Keys, Rate and Bits give the third, as in [Config].
//
// From Keys and Rate our own scheme, and a caller's, get the exact plan: the
// fewest bits that keep the rate. Another program's scheme gets that program's
// formula, so that the filter is the one the program would make. Formula chooses
// any of the formulas. A formula need not keep the rate; Plan.Rate says what is
// to be expected of positions that are spread evenly.
type ClassicConfig struct {
	Keys   uint64  // n
	Rate   float64 // p, 0 < p < 1
	Bits   uint64  // m, 1 to 2^45; rounded up to the scheme's unit of 32 or 64 bits, if it has one
	Probes int     // k, 1 to 255 or what the scheme allows; zero means the best up to 64

	Scheme  Scheme  // zero: SchemeBloomery
	Formula Formula // how m and k follow from Keys and Rate
	Budget  uint64  // the most bytes the filter may take; zero means no limit

	Seed   uint64 // of XXH3 under SchemeBloomery, or of SchemeNPMBloomFilters; other schemes have none
	Secret []byte // SecretBytes bytes: SipHash-2-4 in place of XXH3, under SchemeBloomery only
}

// classicBitsPerKey is for those who know n only: the round figure of the
// textbooks, where k = 7 gives a rate of 0.8%.
const classicBitsPerKey = 10

// mostTriedProbes is where the search for the best k ends: half of the bits set,
// 64 of them find a stranger as rarely as its 64-bit hash meets another key's.
const mostTriedProbes = 64

// classicBits is the geometry of a filter that any bits of may be set.
var classicBits = geometry{
	layout:    AnyBits,
	name:      "any bits",
	blockBits: 1,
	maxBlocks: scheme.MaxBits,
	probes:    fromOneTo(mostTriedProbes),
	minRate:   1e-18,
	rate:      classicRate,
}

func fromOneTo(last int) []int {
	all := make([]int, last)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// PlanClassic is [Config.Plan] for a [Classic] under our own scheme.
func (c Config) PlanClassic() (Plan, error) {
	classic, err := c.classic()
	if err != nil {
		return Plan{}, err
	}
	return classic.Plan()
}

func (c Config) classic() (ClassicConfig, error) {
	if c.Folds > 1 {
		return ClassicConfig{}, fmt.Errorf("%w: a Classic does not fold: leave Folds out", ErrConfig)
	}
	return ClassicConfig{Keys: c.Keys, Rate: c.Rate, Bits: c.Bits, Probes: c.Probes, Budget: c.Budget, Seed: c.Seed, Secret: c.Secret}, nil
}

// Plan sizes a filter without making it. The error wraps [ErrConfig], [ErrRate]
// or [ErrBudget] and says what to change.
func (c ClassicConfig) Plan() (Plan, error) {
	def := c.Scheme.def()
	if err := c.applyFormula(def); err != nil {
		return Plan{}, err
	}
	if c.Keys != 0 && c.Keys <= maxKeys && c.Rate == 0 && c.Bits == 0 {
		c.Bits = c.Keys * classicBitsPerKey
		if def.PowerOfTwo {
			c.Bits = powerFrom(c.Bits)
		}
	}
	if c.Bits != 0 {
		if c.Bits <= scheme.MaxBits {
			c.Bits = (c.Bits + def.Unit - 1) / def.Unit * def.Unit
		}
		if err := c.Scheme.refuseBits(c.Bits); err != nil {
			return Plan{}, err
		}
	}
	if c.Probes != 0 {
		if err := c.Scheme.refuseProbes(c.Probes); err != nil {
			return Plan{}, err
		}
	}
	if c.Bits != 0 && c.Probes != 0 && c.Keys == 0 && c.Rate == 0 {
		c.Keys = uint64(min(max(float64(c.Bits)*math.Ln2/float64(c.Probes), 1), maxKeys))
	}
	p, err := c.planUnits(def)
	if err == nil && def.PowerOfTwo && p.Bits != powerFrom(p.Bits) {
		c.Rate, c.Bits = 0, powerFrom(p.Bits)
		p, err = c.planUnits(def)
	}
	if err != nil {
		return Plan{}, err
	}
	return p, c.Scheme.refuseBits(p.Bits)
}

// applyFormula sets m and k where they come from a formula.
func (c *ClassicConfig) applyFormula(def *scheme.Scheme) (err error) {
	fromKeysAndRate := c.Keys != 0 && c.Rate != 0 && c.Bits == 0 && c.Probes == 0
	switch {
	case c.Formula != 0 && !fromKeysAndRate:
		return fmt.Errorf("%w: the formula %v works from Keys and Rate: give both, and neither Bits nor Probes", ErrConfig, c.Formula)
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

// planUnits is Config.plan in steps of the scheme's unit.
func (c ClassicConfig) planUnits(def *scheme.Scheme) (Plan, error) {
	g := classicBits
	g.blockBits = def.Unit
	g.maxBlocks = scheme.MaxBits / def.Unit
	g.rate = func(n, units uint64, probes int) float64 { return classicRate(n, units*def.Unit, probes) }
	if c.Probes != 0 {
		g.probes = []int{c.Probes}
	} else {
		g.probes = g.probes[def.MinProbes-1 : max(min(def.MaxProbes, c.mostUseful()), def.MinProbes)]
	}
	p, err := Config{Keys: c.Keys, Rate: c.Rate, Bits: c.Bits, Budget: c.Budget}.plan(&g)
	p.Blocks = p.Bits // AnyBits counts single bits, whatever the scheme rounds to
	return p, err
}

// hasher is what the scheme hashes by. Foreign schemes have their own hashes; a
// seed, where there is one, stands in the identity's Key.
func (c ClassicConfig) hasher() (hasher, error) {
	if c.Scheme.TakesHashes() {
		return newHasher(c.Seed, c.Secret)
	}
	own := c.Scheme.def().Seed
	switch {
	case c.Secret != nil:
		return hasher{}, fmt.Errorf("%w: the scheme %s takes no secret", ErrConfig, c.Scheme)
	case own == 0 && c.Seed != 0:
		return hasher{}, fmt.Errorf("%w: the scheme %s takes no seed", ErrConfig, c.Scheme)
	case own == 0:
		return hasher{}, nil
	case c.Seed == 0:
		return hasher{id: HashIdentity{XXH64, own}}, nil
	}
	return hasher{id: HashIdentity{XXH64, c.Seed}}, nil
}

// mostUseful is where the best k lies at the latest: where half of the bits are
// set, or a little above for the rounding; for a handful of keys, it is less.
func (c ClassicConfig) mostUseful() int {
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

// exactBelow is where sizes end for which the rate is worked out exactly.
const exactBelow = 1 << 16

// classicRate is the expected rate of m bits with n different keys in them, each
// of which sets k bits at random, the same more than once if it so happens. The
// textbook's (1 - (1-1/m)^(kn))^k (Bloom 1970, equation 15; Mullin 1983) takes
// the number of set bits for its mean, and so comes out low (Bose et al. 2008),
// by 6% for 10 keys at 1%. To that comes n/2^64, as for every layout.
func classicRate(n, m uint64, probes int) float64 {
	k := float64(probes)
	throws := float64(n) * k
	switch {
	case n == 0:
		return 0
	case throws > 128*float64(m): // e^-128 of the bits are clear
		return 1
	case m < exactBelow:
		return min(classicExact(n*uint64(probes), float64(m), probes)+hashFloor(n), 1)
	}
	// Of X set bits, E[(X/m)^k] = f^k exp(k(k-1)/2 v) with the mean f of X/m and
	// its relative variance v: X is as good as normal, and v a few millionths.
	// The variance is that of occupied cells (Johnson and Kotz 1977, 3.8).
	x := throws / float64(m)
	fill := -elementary.Expm1(throws * elementary.Log1p(-1/float64(m)))
	spread := x * x * (1./2 - x/3) // for small x, where the next line has no digits
	if x > 1e-3 {
		clear := elementary.Exp(-x)
		spread = clear * (1 - float64((1+x)*clear))
	}
	rate := float64(elementary.Power(fill, uint64(probes)) * elementary.Exp(k*(k-1)/2*spread/(float64(m)*fill*fill)))
	return min(rate+hashFloor(n), 1)
}

// classicExact follows the bits of the query: if they are j different ones, a
// throw hits one of the u that are still clear with probability u/m. So
//
//	left(u, t) = (1-u/m) left(u, t-1) + u/m left(u-1, t-1),  left(0, t) = 1, left(u, 0) = 0
//
// is the chance that all u are set after t throws, and the rate is the mean of
// left(j, throws) over j. There is nothing to cancel, so all digits are good. The
// step is a matrix with two entries in a row, and its powers need log2(t)
// squarings.
func classicExact(throws uint64, m float64, probes int) float64 {
	most := int(min(float64(probes), m))
	left := make([]float64, most+1) // after the throws that the bits so far of `throws` stand for
	left[0] = 1
	step := make([][]float64, most+1) // step[u][v]: from u clear to v, in 1, 2, 4 ... throws
	for u := range step {
		step[u] = make([]float64, u+1)
		step[u][u] = 1 - float64(u)/m
		if u > 0 {
			step[u][u-1] = float64(u) / m
		}
	}
	for ; throws > 0; throws >>= 1 {
		if throws&1 != 0 {
			for u := most; u >= 0; u-- { // downwards: row u needs none above u
				sum := 0.
				for v, chance := range step[u] {
					sum += float64(chance * left[v])
				}
				left[u] = sum
			}
		}
		if throws > 1 {
			square(step)
		}
	}
	// different[j]: the chance that the query has j different bits.
	different := make([]float64, most+1)
	different[0] = 1
	for range probes {
		for j := most; j >= 0; j-- {
			different[j] = float64(different[j] * (float64(j) / m))
			if j > 0 {
				different[j] += float64(different[j-1] * (m - float64(j-1)) / m)
			}
		}
	}
	rate := 0.
	for j := range left {
		rate += float64(different[j] * left[j])
	}
	return rate
}

// square squares a lower triangular matrix in place, from the last row up: a row
// needs only those above it, and of itself what lies left of where it writes.
func square(a [][]float64) {
	for u := len(a) - 1; u >= 0; u-- {
		for v := 0; v <= u; v++ {
			sum := 0.
			for w := v; w <= u; w++ {
				sum += float64(a[u][w] * a[w][v])
			}
			a[u][v] = sum // columns from the left: later ones need a[u][w] with w > v only
		}
	}
}
