// Package elementary has the elementary functions, such as exp and log, with the
// same result to the last bit on every processor.
//
// The results of package math differ between processors in the last bits. Some of its
// functions are in assembly on some processors, and may even choose by what the CPU
// supports. In the others the compiler may fuse x*y + z into one operation that rounds
// once: it does so on arm64, s390x, ppc64le and riscv64, but not on amd64 or 386. A
// filter's size comes from its rate, and its file contains the rate, so a single bit
// matters.
//
// Two things keep the results equal. First, the algorithms here are fixed: plain Go, and
// math.FMA where an operation is to be fused. Second, each product that is added to
// something is wrapped in a conversion, float64(x*y) + z, because Go fuses nothing
// across a conversion. The same holds for a product that is doubled, since the compiler
// doubles by adding a number to itself. Of package math, only functions are used whose
// results IEEE 754 defines exactly: Sqrt, FMA, RoundToEven, and those that take a number
// apart or put it together.
//
// The results are those of Go 1.26 on amd64 with FMA, with which the first files were
// made, and are sometimes off by one unit in the last place. They are frozen with the
// files: see the test.
//
// The algorithms are those of Go's package math, under the licence in LICENSE, and of
// the sources that it names.
//
// Arguments are such as sizing and reports have: never NaN, and where a function says
// so, limited to a range.
package elementary

import "math"

// ln 2 in two parts. The first is short, so that its product with an exponent is
// exact; the parts of exp and those of log are not cut at the same bit.
const (
	expLn2High = 0.69314718055966295651160180568695068359375
	expLn2Low  = 0.28235290563031577122588448175013436025525412068e-12
	logLn2High = 6.93147180369123816490e-01
	logLn2Low  = 1.90821492927058770002e-10
)

// Exp is e^x. It follows N. Shibata, "Efficient evaluation methods of elementary
// functions suitable for SIMD computation" (2010), as Go's exp_amd64.s does: factor out
// a power of two, divide the rest by 16, sum eight terms of the Taylor series of e^r - 1,
// and square four times by (e^r - 1)(e^r + 1) = e^2r - 1.
func Exp(x float64) float64 {
	switch {
	case x > 7.09782712893384e+02:
		return math.Inf(1)
	case x < -746: // below half the least float64
		return 0
	}
	k := math.RoundToEven(math.Log2E * x)
	r := math.FMA(-k, expLn2High, x)
	r = math.FMA(-k, expLn2Low, r)
	r *= 1. / 16
	sum := 2.4801587301587301587e-5 // 1/8!
	for _, coefficient := range [...]float64{
		1.9841269841269841270e-4, 1.3888888888888888889e-3, 8.3333333333333333333e-3,
		4.1666666666666666667e-2, 1.6666666666666666667e-1, 0.5, 1, // 1/7! to 1/1!
	} {
		sum = math.FMA(sum, r, coefficient)
	}
	r *= sum
	for range 3 {
		r *= 2 + r
	}
	return math.Ldexp(math.FMA(r, 2+r, 1), int(k))
}

// Log is the natural logarithm of x > 0, after FreeBSD's e_log.c; its notice is that of
// Log1p. For x = 0 it is -Inf.
func Log(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case math.IsInf(x, 1):
		return x
	}
	fraction, exponent := math.Frexp(x)
	if fraction < math.Sqrt2/2 {
		fraction *= 2
		exponent--
	}
	f, k := fraction-1, float64(exponent)

	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	odd := s2 * polynomial(s4, logSeries[0], logSeries[2], logSeries[4], logSeries[6])
	even := s4 * polynomial(s4, logSeries[1], logSeries[3], logSeries[5])
	rest := float64(odd) + float64(even)
	half := float64(0.5 * f * f)
	return float64(k*logLn2High) - ((half - (float64(s*(half+rest)) + float64(k*logLn2Low))) - f)
}

// Log2 is the logarithm of x > 0 to base 2, exact if x is a power of 2. Just above 1 only
// its digits before 1e-16 are right.
func Log2(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	if fraction == 0.5 {
		return float64(exponent - 1)
	}
	return float64(Log(fraction)*(1/math.Ln2)) + float64(exponent)
}

// Power is x^n for x >= 0, by squaring. It keeps the powers of two separate, so that no
// intermediate result is too small or too large.
func Power(x float64, n uint64) float64 {
	if n == 0 || x == 1 {
		return 1
	}
	if x == 0 {
		return 0
	}
	const most = 1 << 12 // far beyond the exponents of float64
	result, resultExponent := 1., 0
	square, exponent := math.Frexp(x)
	for ; n != 0; n >>= 1 {
		if exponent < -most || exponent > most {
			resultExponent += exponent // the digits no longer matter
			break
		}
		if n&1 == 1 {
			result *= square
			resultExponent += exponent
		}
		square = float64(square * square)
		exponent *= 2
		if square < 0.5 {
			square *= 2
			exponent--
		}
	}
	return math.Ldexp(result, resultExponent)
}

// LogFactorial is log n! for an integer n >= 0: the product below 7, Stirling's series
// above, as in FreeBSD's e_lgamma_r.c for log gamma(n+1).
func LogFactorial(n float64) float64 {
	if n < 7 {
		product := 1.
		for i := 2.; i <= n; i++ {
			product *= i
		}
		return Log(product)
	}
	x := n + 1
	z := 1 / x
	series := polynomial(z*z, 8.33333333333329678849e-02, -2.77777777728775536470e-03, 7.93650558643019558500e-04,
		-5.95187557450339963135e-04, 8.36339918996282139126e-04, -1.63092934096575273989e-03)
	return float64((x-0.5)*(Log(x)-1)) + (4.18938533204672725052e-01 + float64(z*series))
}

// Hypot is sqrt(x^2 + y^2), without intermediate overflow.
func Hypot(x, y float64) float64 {
	x, y = math.Abs(x), math.Abs(y)
	small, large := min(x, y), max(x, y)
	if large == 0 || math.IsInf(large, 1) {
		return large
	}
	ratio := small / large
	return large * math.Sqrt(1+float64(ratio*ratio))
}

// polynomial is c[0] + x c[1] + x^2 c[2] and so on, by Horner's rule.
func polynomial(x float64, c ...float64) float64 {
	sum := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		sum = c[i] + float64(x*sum)
	}
	return sum
}
