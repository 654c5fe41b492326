package main

import (
	"math"
	"slices"
	"testing"
)

// TestClopperPearson holds the interval against its definition, and against
// published values (Agresti and Coull 1998 and the closed forms at the ends).
func TestClopperPearson(t *testing.T) {
	for _, test := range []struct {
		found, n   uint64
		confidence float64
		low, high  float64
	}{
		{0, 10, 0.95, 0, 1 - math.Pow(0.025, 0.1)},
		{10, 10, 0.95, math.Pow(0.025, 0.1), 1},
		{5, 10, 0.95, 0.187086, 0.812914},
		{1, 20, 0.95, 0.001265, 0.248733},
		{0, 1_000_000, 0.95, 0, 3.688873e-06},
		{10_000, 1_000_000, 0.95, 0.0098058, 0.0101970},
		{999_999, 1_000_000, 0.95, 0.99999443, 0.99999997},
	} {
		low, high := clopperPearson(test.found, test.n, test.confidence)
		if math.Abs(low-test.low) > 1e-6+1e-4*test.low*(1-test.low) || math.Abs(high-test.high) > 1e-6+1e-4*test.high*(1-test.high) {
			t.Errorf("%d of %d: %g to %g, want %g to %g", test.found, test.n, low, high, test.low, test.high)
		}
	}
}

// TestBinomialBelow sums all terms where there are few.
func TestBinomialBelow(t *testing.T) {
	for _, n := range []uint64{1, 7, 50} {
		for _, p := range []float64{1e-9, 0.01, 0.3, 0.5, 0.99} {
			sum := 0.
			for k := uint64(1); k <= n; k++ {
				sum += binomialTerm(k-1, n, p)
				if got := binomialBelow(k, n, p); math.Abs(got-sum) > 1e-12 {
					t.Errorf("fewer than %d of %d at %g: %g, want %g", k, n, p, got, sum)
				}
			}
		}
	}
}

func TestDivisors(t *testing.T) {
	for n, want := range map[uint64][]uint64{
		1:  {1},
		7:  {1, 7},
		12: {1, 2, 3, 4, 6, 12},
		36: {1, 2, 3, 4, 6, 9, 12, 18, 36},
	} {
		if got := divisors(n); !slices.Equal(got, want) {
			t.Errorf("of %d: %v, want %v", n, got, want)
		}
	}
}
