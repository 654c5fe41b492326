package redisbloom

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestLogNearest compares with the series summed up in 200 bits.
func TestLogNearest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	off := 0
	const rounds = 600
	for i := range rounds {
		x := math.Pow(10, -float64(i)/20) // rates down to 1e-30
		if i%2 == 1 {
			x = random.Float64()
		}
		got, want := logNearest(x), bigLog(x)
		if got != want {
			off++
			if math.Abs(got-want) > math.Abs(want)*0x1p-52 {
				t.Fatalf("log %v = %v, want %v", x, got, want)
			}
		}
	}
	if off > rounds/200 {
		t.Errorf("%d of %d are not the nearest", off, rounds)
	}
	for _, x := range []float64{math.SmallestNonzeroFloat64, 0x1p-1022, 0.5, math.Nextafter(1, 0)} {
		if got, want := logNearest(x), bigLog(x); math.Abs(got-want) > math.Abs(want)*0x1p-51 {
			t.Errorf("log %v = %v, want %v", x, got, want)
		}
	}
}

func bigLog(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	sum := bigArtanh(m)
	ln2 := bigArtanh(2)
	ln2.Mul(ln2, big.NewFloat(float64(e)))
	result, _ := sum.Add(sum, ln2).Float64()
	return result
}

func bigArtanh(m float64) *big.Float {
	float := func(x float64) *big.Float { return big.NewFloat(x).SetPrec(200) }
	s := new(big.Float).SetPrec(200).Quo(float(0).Sub(float(m), float(1)), float(0).Add(float(m), float(1)))
	power, sum := float(0).Set(s), float(0)
	for n := 1.; n < 200; n += 2 {
		sum.Add(sum, float(0).Quo(power, float(n)))
		power.Mul(power, s).Mul(power, s)
	}
	return sum.Mul(sum, float(2))
}
