package rate

import "github.com/bloomery/bloom/internal/elementary"

// exactBelow: with fewer bits the rate is computed exactly.
const exactBelow = 1 << 16

// Classic is the expected rate of m bits with n different keys. Each key sets k random
// bits, perhaps the same one more than once. The textbook's (1 - (1-1/m)^(kn))^k (Bloom
// 1970, equation 15; Mullin 1983) replaces the number of set bits by its mean, and is
// therefore too low (Bose et al. 2008), by 6% for 10 keys at 1%. As for every layout,
// n/2^64 is added.
func Classic(n, m uint64, probes int) float64 {
	k := float64(probes)
	throws := float64(n) * k
	switch {
	case n == 0:
		return 0
	case throws > 128*float64(m): // e^-128 of the bits are clear
		return 1
	case m < exactBelow:
		return min(classicExact(n*uint64(probes), float64(m), probes)+HashFloor(n), 1)
	}
	// If X bits are set, E[(X/m)^k] = f^k exp(k(k-1)/2 v), where f is the mean of X/m
	// and v its relative variance: X is nearly normal, and v a few millionths. The
	// variance is that of occupied cells (Johnson and Kotz 1977, 3.8).
	x := throws / float64(m)
	fill := -elementary.Expm1(throws * elementary.Log1p(-1/float64(m)))
	spread := x * x * (1./2 - x/3) // for small x, where the formula below loses all digits
	if x > 1e-3 {
		clear := elementary.Exp(-x)
		spread = clear * (1 - float64((1+x)*clear))
	}
	rate := float64(elementary.Power(fill, uint64(probes)) * elementary.Exp(k*(k-1)/2*spread/(float64(m)*fill*fill)))
	return min(rate+HashFloor(n), 1)
}

// classicExact follows the bits of the query: if u of them are still clear, a throw
// hits one of those with probability u/m. So
//
//	left(u, t) = (1-u/m) left(u, t-1) + u/m left(u-1, t-1),  left(0, t) = 1, left(u, 0) = 0
//
// is the chance that all u are set after t throws. The rate is the mean of left(j, throws)
// over j, the number of different bits of the query. Nothing cancels, so all digits are
// good. One throw is a matrix with two entries per row, and its t-th power takes log2(t)
// squarings.
func classicExact(throws uint64, m float64, probes int) float64 {
	most := int(min(float64(probes), m))
	left := make([]float64, most+1) // after the throws counted by the lower bits of `throws`
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
			for u := most; u >= 0; u-- { // downwards: element u needs none above it
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

// square squares a lower triangular matrix in place, from the last row up: an element
// needs only the rows above it, and its own row from its column on.
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
