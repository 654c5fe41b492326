package redisbloom

import "math"

// logNearest is the natural logarithm of a positive x, rounded to the nearest float64
// for all but one x in a thousand or so. A header holds the bits per key, which
// RedisBloom computes by the C library's logarithm. That one rounds to the nearest,
// too; math.Log may be off in the last digit.
//
// With x = m 2^e, and m near 1, log m = 2 artanh s = 2(s + s^3/3 + s^5/5 ...)
// where s = (m-1)/(m+1). What matters is kept as a sum of two float64s, a high and
// a low one. As in internal/elementary, products that are added stand in
// conversions, so that the compiler fuses none of them.
func logNearest(x float64) float64 {
	const (
		ln2High = 0x1.62e42fefa38p-1 // short enough for its product with e to be exact
		ln2Low  = 0x1.ef35793c7673p-45
	)
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	above, below := m-1, m+1
	belowLow := m - (below - 1)
	s := above / below
	sLow := (math.FMA(-s, below, above) - float64(s*belowLow)) / below
	square := float64(s * s)
	squareLow := math.FMA(s, s, -square) + float64(2*s*sLow)

	series := 0. // square^2/5 + square^3/7 and so on
	for n := 29.; n >= 5; n -= 2 {
		series = float64((series + 1/n) * square)
	}
	series = float64(series * square)
	third := square / 3
	thirdLow := (math.FMA(-third, 3, square) + squareLow) / 3
	factor := third + (series + thirdLow)
	factorLow := third - factor + (series + thirdLow)

	// s times 1+factor, in the order of their sizes.
	product := float64(s * factor)
	productLow := math.FMA(s, factor, -product) + float64(s*factorLow) + float64(sLow*factor)
	sum := s + product
	sumLow := s - sum + product + (productLow + sLow)

	high := float64(float64(e) * ln2High)
	twice := float64(2 * sum)
	total := high + twice
	rest := high - total + twice
	if math.Abs(high) < math.Abs(twice) {
		rest = twice - total + high
	}
	return total + (rest + float64(2*sumLow) + float64(float64(e)*ln2Low))
}
