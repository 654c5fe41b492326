package rate

import (
	"math"

	"github.com/bloomery/bloom/internal/elementary"
)

// The exact rate of the paired-line layout, before any bit is set. Package kernel
// draws the layout: a block of eight lines of eight 64-bit lanes.
//
// Take a query whose lines are a and b of some block. Each of the n keys in the
// filter lies in that block with probability 1/B, and takes one of the 56 ordered
// pairs of lines at random, so it touches
//
//	both a and b    with probability  beta  = 2/56 / B
//	only a          with probability  alpha = 12/56 / B
//	only b          with probability  alpha
//
// In a line that j keys touched, s given bits in s different lanes are all clear
// with probability q(s)^j, where
//
//	q(s) = sum_t C(s,t) C(8-s,K-t) / C(8,K) * (63/64)^t
//
// is the chance that one key leaves them clear: it takes t of those lanes, and
// in each hits another of the 64 bits. By inclusion and exclusion the K bits of
// the query are all set with probability
//
//	F(j) = sum_s (-1)^s C(K,s) q(s)^j
//
// and the rate is p = E[F(both+onlyA) F(both+onlyB)]. Putze, Sanders and Singler
// 2009 (JEA 14, section 3) do the same for one line; what is new here is the
// second line, which shares `both` with the first.
//
// To this n/2^64 is added, the chance that a key has the same hash as the query.

// lineMiss[K][s] is q(s).
var lineMiss = func() (q [9][9]float64) {
	for k := 1; k <= 8; k++ {
		for s := 0; s <= k; s++ {
			for t := 0; t <= s; t++ {
				q[k][s] += float64(choose(s, t) * choose(8-s, k-t) / choose(8, k) * elementary.Power(63./64, uint64(t)))
			}
		}
	}
	return q
}()

// fewBlocks: with fewer blocks the number of keys in a block is taken as binomial,
// otherwise as Poisson. Poisson overstates the rate by less than 0.2%: with a fixed n the
// variance is smaller, and at low rates the fullest blocks contribute most.
const fewBlocks = 1024

// fullLoad is a number of keys per block that leaves no bit clear: a given bit
// with probability e^-64 at most, so the rate is 1 to the last digit.
const fullLoad = 1 << 17

// Paired is the expected rate of a paired-line filter with n different keys, the given
// number of blocks, and perLine (K) bits in each of a key's two lines.
func Paired(n, blocks uint64, perLine int) float64 {
	load := float64(n) / float64(blocks)
	if load > fullLoad {
		return 1
	}
	rate := 0.
	if blocks < fewBlocks {
		rate = pairedBinomial(float64(n), float64(blocks), perLine)
	} else {
		rate = pairedPoisson(load, perLine)
	}
	return min(rate+HashFloor(n), 1)
}

// pairedPoisson takes the number of keys per block as Poisson with mean load. Then both,
// onlyA and onlyB are independent, and p = E_both[ G(both)^2 ] with
//
//	G(x) = E_only[F(x+only)] = sum_s (-1)^s C(K,s) q(s)^x exp(-only*(1-q(s)))
//
// Cancellation goes only down to G, about the square root of p, so nine terms in float64
// are precise enough for every rate that the layout reaches.
func pairedPoisson(load float64, perLine int) float64 {
	both, only := load*2/56, load*12/56
	var term [9]float64 // (-1)^s C(K,s) q(s)^x exp(...), for the current x
	for s := 0; s <= perLine; s++ {
		term[s] = signedChoose[perLine][s] * elementary.Exp(-only*(1-lineMiss[perLine][s]))
	}
	first, last := bulk(both)
	for s := range term {
		term[s] *= elementary.Power(lineMiss[perLine][s], uint64(first))
	}
	weight := elementary.Exp(-both)
	if both > 0 {
		weight = elementary.Exp(float64(first*elementary.Log(both)) - both - elementary.LogFactorial(first))
	}
	rate := 0.
	for x := first; x <= last; x++ {
		g := 0.
		for s := 0; s <= perLine; s++ {
			g += term[s]
			term[s] *= lineMiss[perLine][s]
		}
		rate += float64(weight * g * g)
		weight *= both / (x + 1)
	}
	return rate
}

// bulk returns the range that has nearly all values of a Poisson or binomial count: 12
// sigmas each way.
func bulk(mean float64) (first, last float64) {
	width := float64(12*math.Sqrt(mean)) + 30
	return math.Floor(max(mean-width, 0)), mean + width
}

// pairedBinomial takes the number of keys per block as binomial, which is exact. If x
// keys touch both lines, each of the other N = n-x touches only A with probability
// a = alpha/(1-beta), and only B with the same. So for a given x the expectation of the
// product is
//
//	H(x) = sum_s sum_t (-1)^(s+t) C(K,s) C(K,t) (q(s) q(t))^x (1 - a u(s) - a u(t))^N,  u = 1-q
//
// Summed like that, it loses all digits at low rates. But the base of the N-th power is
// (1 - a u(s)) (1 - a u(t)) (1 - e(s) e(t)) with e = a u/(1 - a u). Expanding the power
// of the last factor gives a sum of squares, of which only the first few matter:
//
//	H(x) = sum_r (-1)^r C(N,r) g(r)^2
//	g(r) = sum_s (-1)^s C(K,s) q(s)^x (1 - a u(s))^N e(s)^r
//
// Each g loses digits only by cancelling down to g itself, as G does in pairedPoisson.
func pairedBinomial(n, blocks float64, perLine int) float64 {
	beta := 2 / (56 * blocks)
	a := 12 / (56 * blocks) / (1 - beta)
	first, last := bulk(float64(n * beta))
	var g0, next, e [9]float64 // the terms of g(0) for the current x, and their factors to the next x
	for s := 0; s <= perLine; s++ {
		q := lineMiss[perLine][s]
		hit := float64(a * (1 - q))
		g0[s] = signedChoose[perLine][s] * elementary.Exp(float64(first*elementary.Log(q))+float64((n-first)*elementary.Log1p(-hit)))
		next[s] = q / (1 - hit)
		e[s] = hit / (1 - hit)
	}
	rate, weight, weights := 0., 1., 0. // the weights are relative
	for x := first; x <= min(last, n); x++ {
		rate += float64(weight * sumOfSquares(g0, &e, n-x, perLine))
		for s := range g0 {
			g0[s] *= next[s]
		}
		weights += weight
		weight *= (n - x) / (x + 1) * beta / (1 - beta)
	}
	return rate / weights
}

// sumOfSquares is H(x). term holds the terms of g(0); each step computes those of the
// next g.
func sumOfSquares(term [9]float64, e *[9]float64, n float64, perLine int) float64 {
	sum, signed := 0., 1. // signed is (-1)^r C(n,r)
	for r := 0.; r <= n; r++ {
		g := 0.
		for s := 0; s <= perLine; s++ {
			g += term[s]
			term[s] *= e[s]
		}
		sum += float64(signed * g * g)
		if math.Abs(signed*g*g) <= 1e-16*math.Abs(sum) {
			break
		}
		signed *= -(n - r) / (r + 1)
	}
	return sum
}

// Line is the chance that one random bit in each of K random lanes of a line are all set,
// given how many of the 64 bits of each lane are set: e_K(fills)/C(8,K), where e_K is the
// elementary symmetric polynomial. It is exact.
func Line(set *[8]int, perLine int) float64 {
	var e [9]float64 // e[j] is e_j of the lanes so far
	e[0] = 1
	for _, bits := range set {
		fill := float64(bits) / 64
		for j := perLine; j >= 1; j-- {
			e[j] += float64(e[j-1] * fill)
		}
	}
	return e[perLine] / choose(8, perLine)
}

// Block is the chance that a query of a block finds all its bits set, given f, the result
// of [Line], for each line: the mean of f(a) f(b) over the 56 ordered pairs of lines.
func Block(lines *[8]float64) float64 {
	sum, squares := 0., 0.
	for _, f := range lines {
		sum += f
		squares += float64(f * f)
	}
	return max(float64(sum*sum)-squares, 0) / 56
}
