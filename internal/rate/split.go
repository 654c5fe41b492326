package rate

import "github.com/bloomery/bloom/internal/elementary"

// Split is the expected rate of a split-block filter. The number of keys in a block, J, is
// binomial, and each of a query's eight bits is set with probability 1-(31/32)^J,
// independently (Putze, Sanders and Singler 2009, equation 3, for one bit in each of
// eight lanes). In the expanded product, the mean of each term is the n-th power of the
// mean for one key, so this is exact for any number of blocks:
//
//	p = sum_s (-1)^s C(8,s) (1 - (1-(31/32)^s)/B)^n
//
// The rounding error of the sum is about 1e-15, so at the lowest rate, 1e-8, seven digits
// are right: the number of blocks in a plan may be off by a ten-millionth.
func Split(n, blocks uint64) float64 {
	rate := 0.
	for s := 0; s <= 8; s++ {
		miss := elementary.Power(31./32, uint64(s)) // one key of the block leaves s bits clear
		rate += float64(signedChoose[8][s] * elementary.Exp(float64(n)*elementary.Log1p(-(1-miss)/float64(blocks))))
	}
	return min(max(rate, 0)+HashFloor(n), 1)
}
