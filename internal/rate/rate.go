// Package rate holds the maths of Bloom filters as pure functions of numbers: the
// expected false-positive rate of a layout, the rate that its bits show, and the number
// of keys that probably set them. docs/maths.md derives all of it.
//
//   - [Textbook] is the space that the textbook filter needs (Bloom 1970; Broder
//     and Mitzenmacher 2004, equation 2).
//   - [Paired] is the rate of paired lines, the default layout. It extends what
//     Putze, Sanders and Singler 2009 (JEA 14, section 3) do for one line to two
//     that share keys. [Line] and [Block] give the rate that its bits show.
//   - [Split] is the rate of split blocks (the same paper, equation 3).
//   - [Classic] is the rate of filters whose bits may lie anywhere: exact for small
//     filters, and for large ones the textbook's (Bloom 1970, equation 15; Mullin 1983)
//     with the correction that Bose et al. 2008 show to be missing.
//   - [Keys] and [KeysThrown] estimate keys from set bits (Swamidass and Baldi 2007,
//     equation 1), with the variance of occupied cells (Johnson and Kotz 1977,
//     equation 3.8).
//   - [Layers] combines filters that are looked up one after the other.
//
// Letters are those of the literature: n keys, m bits, k probes, B blocks.
//
// Sizes depend on the last bit of a rate, and files hold rates. So every result must be
// the same on every processor. Therefore exp, log and the like come from package
// elementary, whose package comment says why, and each product that is added to
// something is wrapped in a conversion, float64(x*y) + z, because Go may otherwise fuse
// the two operations.
package rate

import (
	"math"

	"github.com/bloomery/bloom/internal/elementary"
)

// Textbook is the number of bits per key that a textbook Bloom filter needs for rate p
// with the best k: log2(1/p)/ln 2.
func Textbook(p float64) float64 { return -elementary.Log2(p) / math.Ln2 }

// HashFloor is the chance that a query has the same 64-bit hash as one of n keys. The
// rate of every layout includes it.
func HashFloor(n uint64) float64 { return float64(float64(n) / (1 << 64)) }

// signedChoose[K][s] is (-1)^s C(K,s).
var signedChoose = func() (c [9][9]float64) {
	for k := range c {
		for s := 0; s <= k; s++ {
			c[k][s] = choose(k, s) * float64(1-2*(s&1))
		}
	}
	return c
}()

// choose is the binomial coefficient, zero outside the triangle.
func choose(n, k int) float64 {
	if k < 0 || k > n {
		return 0
	}
	c := 1.
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return math.Round(c)
}
