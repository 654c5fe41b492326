package elementary

import "math"

// Log1p and Expm1 follow FreeBSD's s_log1p.c and s_expm1.c, which have this notice:
//
//	Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//
//	Developed at SunPro, a Sun Microsystems, Inc. business.
//	Permission to use, copy, modify, and distribute this
//	software is freely granted, provided that this notice
//	is preserved.
//
// The logarithm's series: with f = x-1 and s = f/(2+f),
//
//	log(1+f) = log(1+s) - log(1-s) = 2s + 2/3 s^3 + 2/5 s^5 ... = f - f^2/2 + s (f^2/2 + R)
//
// where R, a polynomial in s^2 without a constant term, is off by at most 2^-58.45.
var logSeries = [7]float64{
	6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
	1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
}

const (
	exponentBias = 1023
	mantissaBits = 52
	mantissaMask = 1<<mantissaBits - 1
)

// Log1p is log(1+x) for x >= -1, to full precision if x is small.
func Log1p(x float64) float64 {
	const sqrt2Mantissa = 0x6a09e667f3bcd
	switch size := math.Abs(x); {
	case x == -1:
		return math.Inf(-1)
	case math.IsInf(x, 1), size < 0x1p-54:
		return x
	case size < 0x1p-29:
		return x - float64(x*x*0.5)
	case x > math.Sqrt2/2-1 && x < math.Sqrt2-1:
		return logNear(0, x, 0)
	}
	u, lost := x, 0. // u is 1+x, rounded; lost is what the rounding lost, relative to u
	if x < 0x1p53 {
		u = 1 + x
		if u >= 2 {
			lost = 1 - (u - x)
		} else {
			lost = x - (u - 1)
		}
		lost /= u
	}
	k := int(math.Float64bits(u)>>mantissaBits) - exponentBias
	mantissa := math.Float64bits(u) & mantissaMask
	if mantissa < sqrt2Mantissa {
		u = math.Float64frombits(mantissa | exponentBias<<mantissaBits)
	} else {
		k++
		u = math.Float64frombits(mantissa | (exponentBias-1)<<mantissaBits)
	}
	return logNear(float64(k), u-1, lost)
}

// logNear is k ln 2 + log(1+f) + lost for f between sqrt(1/2)-1 and sqrt(2)-1.
func logNear(k, f, lost float64) float64 {
	half := float64(0.5 * f * f)
	s := f / (2 + f)
	s2 := float64(s * s)
	rest := float64(s2 * polynomial(s2, logSeries[:]...))
	if k == 0 {
		return f - (half - float64(s*(half+rest)))
	}
	return float64(k*logLn2High) - ((half - (float64(s*(half+rest)) + (float64(k*logLn2Low) + lost))) - f)
}

// Expm1 is e^x - 1, to full precision if x is small.
func Expm1(x float64) float64 {
	switch size := math.Abs(x); {
	case x > 7.09782712893383973096e+02:
		return math.Inf(1)
	case x <= -3.88162421113569373274e+01: // -56 ln 2
		return -1
	case size < 0x1p-54:
		return x
	case size <= math.Ln2/2:
		return expNear(x, 0, 0)
	}
	k := math.Copysign(1, x)
	if math.Abs(x) >= 1.5*math.Ln2 {
		k = math.Trunc(float64(math.Log2E*x) + math.Copysign(0.5, x))
	}
	high, low := x-float64(k*logLn2High), float64(k*logLn2Low)
	return expNear(high-low, high-(high-low)-low, int(k))
}

// expNear is 2^k e^(x+lost) - 1 for x between -ln(2)/2 and ln(2)/2. It is based on
//
//	r (e^r + 1)/(e^r - 1) = 2 + r^2/6 - r^4/360 ...
//
// whose right side is close to a polynomial in r^2.
func expNear(x, lost float64, k int) float64 {
	halfX := float64(0.5 * x)
	half := float64(x * halfX)
	r1 := polynomial(half, 1, -3.33333333333331316428e-02, 1.58730158725481460165e-03,
		-7.93650757867487942473e-05, 4.00821782732936239552e-06, -2.01099218183624371326e-07)
	t := 3 - float64(r1*halfX)
	e := float64(half * ((r1 - t) / (6 - float64(x*t))))
	if k == 0 {
		return x - (float64(x*e) - half)
	}
	e = float64(x*(e-lost)) - lost - half // e^x is 1 + x - e
	switch {
	case k == -1:
		return float64(0.5*(x-e)) - 0.5
	case k == 1 && x < -0.25:
		return -2 * (e - (x + 0.5))
	case k == 1:
		return 1 + float64(2*(x-e))
	case k <= -2 || k > 56: // the 1 hardly matters, or not at all
		return math.Ldexp(1-(e-x), k) - 1
	case k < 20:
		return math.Ldexp(1-math.Ldexp(1, -k)-(e-x), k)
	}
	return math.Ldexp(x-(e+math.Ldexp(1, -k))+1, k)
}
