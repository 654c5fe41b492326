package rate

import (
	"math"

	"github.com/bloomery/bloom/internal/elementary"
)

// Keys estimates the number of different keys from fill, the share of bits that are set,
// if each key sets k different bits out of m. It inverts the expected fill: n keys leave
// a bit clear with probability (1-k/m)^n, in every layout. The estimate is +Inf if all
// bits are set.
//
// keysError is the standard error: that of the fill, sqrt(m e^-x (1-(1+x) e^-x)) bits
// for x = kn/m, combined with fillError if the fill is from a sample, divided by the
// slope k e^-x.
func Keys(fill, fillError, m, k float64) (keys, keysError float64) {
	if fill >= 1 {
		return math.Inf(1), math.Inf(1)
	}
	keys = elementary.Log1p(-fill) / elementary.Log1p(-k/m)
	clear := 1 - fill
	x := -elementary.Log(clear)
	occupancy := math.Sqrt(max(m*clear*(1-float64((1+x)*clear)), 0))
	return keys, elementary.Hypot(occupancy, fillError*m) / (k * clear)
}

// KeysThrown is [Keys] for filters in which each key throws k times at m bits and may hit
// the same bit again, so that n keys leave a bit clear with probability (1-1/m)^(kn).
func KeysThrown(fill, fillError, m, k float64) (keys, keysError float64) {
	keys, keysError = Keys(fill, fillError, m, k)
	if fill < 1 {
		keys = elementary.Log1p(-fill) / (k * elementary.Log1p(-1/m))
	}
	return keys, keysError
}

// Overlap is what the bits of two filters say about their sets. Package bloom exports it
// and documents its fields.
type Overlap struct {
	Keys, Others, Union, Intersection, IntersectionError float64
}

// OverlapOf estimates how many keys two filters of m bits and k probes have in common,
// from the numbers of bits set in F, in G, and in either (Swamidass and Baldi 2007,
// section 2.4).
func OverlapOf(inF, inG, inEither int, bits uint64, probes int) (o Overlap) {
	m, k := float64(bits), float64(probes)
	var e1, e2, e3 float64
	o.Keys, e1 = Keys(float64(inF)/m, 0, m, k)
	o.Others, e2 = Keys(float64(inG)/m, 0, m, k)
	o.Union, e3 = Keys(float64(inEither)/m, 0, m, k)
	o.Intersection = min(o.Keys, o.Others)
	if !math.IsInf(o.Keys+o.Others, 1) {
		o.Intersection = max(o.Keys+o.Others-o.Union, 0)
	}
	o.IntersectionError = elementary.Hypot(elementary.Hypot(e1, e2), e3)
	return o
}

// Moments sums up a sample, for its mean and standard error.
type Moments struct{ n, sum, squares float64 }

// Add adds x to the sample.
func (s *Moments) Add(x float64) {
	s.n++
	s.sum += x
	s.squares += float64(x * x)
}

// Mean returns the sample's mean, NaN if the sample is empty.
func (s *Moments) Mean() float64 { return s.sum / s.n }

// StandardError returns the standard error of the mean, zero for fewer than two values.
func (s *Moments) StandardError() float64 {
	if s.n < 2 {
		return 0
	}
	variance := (s.squares - float64(s.sum*s.sum/s.n)) / (s.n - 1)
	return math.Sqrt(max(variance, 0) / s.n)
}
