package rate_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/bloomery/bloom/internal/rate"
)

// TestClassicRateExact compares the exact rate with inclusion and exclusion, computed in
// 1,000-bit numbers: p = sum_j P(j different bits) sum_s (-1)^s C(j,s) (1-s/m)^(kn).
func TestClassicRateExact(t *testing.T) {
	const prec = 1000
	for _, tt := range []struct {
		n, m uint64
		k    int
	}{{1, 1, 1}, {1, 10, 3}, {3, 10, 3}, {1, 2, 5}, {5, 3, 8}, {10, 96, 7}, {100, 960, 7}, {11, 1024, 64}, {40, 64, 1}, {1000, 9585, 7}, {2, 255, 255}, {300, 5000, 12}} {
		want := new(big.Float).SetPrec(prec)
		different := make([]*big.Float, tt.k+1)
		for j := range different {
			different[j] = new(big.Float).SetPrec(prec)
		}
		different[0].SetInt64(1)
		share := func(u uint64) *big.Float {
			return new(big.Float).SetPrec(prec).Quo(new(big.Float).SetPrec(prec).SetUint64(u), new(big.Float).SetPrec(prec).SetUint64(tt.m))
		}
		for range tt.k {
			for j := tt.k; j >= 0; j-- {
				different[j].Mul(different[j], share(uint64(j)))
				if j > 0 && uint64(j) <= tt.m {
					different[j].Add(different[j], new(big.Float).Mul(different[j-1], share(tt.m-uint64(j-1))))
				}
			}
		}
		for j := 0; j <= tt.k && uint64(j) <= tt.m; j++ {
			for s := 0; s <= j; s++ {
				miss, power := share(tt.m-uint64(s)), new(big.Float).SetPrec(prec).SetInt64(1)
				for throws := tt.n * uint64(tt.k); throws > 0; throws >>= 1 {
					if throws&1 != 0 {
						power.Mul(power, miss)
					}
					miss = new(big.Float).SetPrec(prec).Mul(miss, miss)
				}
				power.Mul(power, new(big.Float).SetPrec(prec).SetInt(new(big.Int).Binomial(int64(j), int64(s))))
				power.Mul(power, different[j])
				if s&1 != 0 {
					power.Neg(power)
				}
				want.Add(want, power)
			}
		}
		w, _ := want.Float64()
		if got := rate.ClassicExact(tt.n*uint64(tt.k), float64(tt.m), tt.k); !(math.Abs(got/w-1) < 1e-11) {
			t.Errorf("n %d, m %d, k %d: rate %.15g, want %.15g", tt.n, tt.m, tt.k, got, w)
		}
	}
}

// TestClassicRateSeam: at exactBelow, the exact rate and the rate for large filters are
// the same, for every fill and k.
func TestClassicRateSeam(t *testing.T) {
	for _, probes := range []int{1, 2, 7, 10, 20, 64} {
		for _, load := range []float64{1e-4, 0.01, 0.3, math.Ln2, 2, 10} {
			n := uint64(max(rate.ExactBelow*load/float64(probes), 1))
			exact := rate.ClassicExact(n*uint64(probes), rate.ExactBelow, probes) + rate.HashFloor(n)
			if got := rate.Classic(n, rate.ExactBelow, probes); !(math.Abs(got/exact-1) < 2e-4) {
				t.Errorf("n %d, m %d, k %d: rate %.10g, exactly %.10g", n, rate.ExactBelow, probes, got, exact)
			}
		}
	}
}

// TestTextbookRateIsLow checks what the comment on Classic says about the textbook's
// formula.
func TestTextbookRateIsLow(t *testing.T) {
	const n, m, k = 10, 96, 7
	textbook := math.Pow(-math.Expm1(n*k*math.Log1p(-1./m)), k)
	if ratio := rate.Classic(n, m, k) / textbook; ratio < 1.06 || ratio > 1.07 {
		t.Errorf("the rate is %.3f of the textbook's", ratio)
	}
}
