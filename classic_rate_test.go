package bloom_test

import (
	"math"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/long"
)

// classicJob is a rateJob for our own scheme: the three tests at the head of
// rate_test.go.
func classicJob(t *testing.T, c classic.Config, shape keyShape, hash hashChoice, sets int) {
	t.Helper()
	j := rateJob{shape: shape, hash: hash, sets: sets}
	var batch keyBatch
	for set := range uint64(sets) {
		var seeds bloom.Config
		hash.set(&seeds, set)
		c.Seed, c.Secret = seeds.Seed, seeds.Secret
		f, err := c.New()
		if err != nil {
			t.Fatal(err)
		}
		j.plan = f.Plan()
		batch.each(shape, set, 0, j.plan.Keys, func(keys [][]byte) { f.AddMany(keys, nil) })
		batch.each(shape, set, 0, j.plan.Keys, func(keys [][]byte) { j.lost += len(keys) - f.ContainsMany(keys, nil) })
		rate := f.Report().Rate
		j.bits.add(rate)
		if set == 0 {
			j.probes = min(uint64(math.Ceil(100/rate)), 1_000_000)
			j.expected = rate * float64(j.probes)
			batch.each(shape, set, j.plan.Keys, j.plan.Keys+j.probes, func(keys [][]byte) { j.found += f.ContainsMany(keys, nil) })
		}
	}
	if j.lost != 0 {
		t.Errorf("seed %d, %v: %d added keys were not found", rateSeed, &j, j.lost)
	}
	if j.expected == float64(j.probes) {
		if j.found != int(j.probes) {
			t.Errorf("seed %d, %v: a full filter finds %d of %d strangers", rateSeed, &j, j.found, j.probes)
		}
	} else if z := j.fromBits(); !(math.Abs(z) <= maxSigmas) {
		t.Errorf("seed %d, %v: %d of %d strangers found, the bits say %.1f: %+.1f sigma", rateSeed, &j, j.found, j.probes, j.expected, z)
	}
	if !j.agreesWithPlan() {
		t.Errorf("seed %d, %v: rate from the bits of %d filters %.6g ± %.2g, plan %.6g: %+.1f standard errors", rateSeed, &j, sets, j.bits.mean, j.bits.standardError(), j.plan.Rate, j.fromPlan())
	}
	if c.Rate != 0 && j.plan.Rate > c.Rate {
		t.Errorf("%v: the plan's rate is %g, above %g", &j, j.plan.Rate, c.Rate)
	}
}

// TestClassicRates measures our own scheme: p x n x shape x hash, and m at powers
// of two, where masks and double hashing go wrong.
func TestClassicRates(t *testing.T) {
	long.Test(t)
	for _, p := range []float64{0.1, 0.01, 1e-3, 1e-4} {
		for _, n := range []uint64{1, 10, 300, 5000} {
			for i, shape := range keyShapes {
				hash := hashChoices[i]
				if n == 300 {
					hash = hashChoices[0]
				}
				classicJob(t, classic.Config{Keys: n, Rate: p}, shape, hash, 40)
			}
		}
	}
	for _, m := range []uint64{8, 64, 1 << 10, 1 << 16, 1 << 17} {
		for _, k := range []int{1, 3, 8} {
			n := max(uint64(float64(m)/float64(k)*math.Ln2), 1)
			classicJob(t, classic.Config{Keys: n, Bits: m, Probes: k}, keyShapes[1], hashChoices[0], 40)
		}
	}
	classicJob(t, classic.Config{Keys: 1, Bits: 1, Probes: 3}, keyShapes[1], hashChoices[0], 40)
	classicJob(t, classic.Config{Keys: 20, Bits: 2048, Probes: 64}, keyShapes[0], hashChoices[0], 300)
}

// TestDCSOAtPowerOfTwo: 109,397 keys in 2^20 bits ought to be found wrongly in 1%
// of cases. With DCSO's generator 24% are (poppy issue 7); with our scheme 1%.
func TestDCSOAtPowerOfTwo(t *testing.T) {
	for _, tt := range []struct {
		scheme    classic.Scheme
		low, high float64
	}{{classic.SchemeBloomery, 0.0094, 0.0106}, {classic.SchemeDCSO, 0.20, 0.28}} {
		f, err := classic.Config{Keys: 109_397, Bits: 1 << 20, Probes: 7, Scheme: tt.scheme}.New()
		if err != nil {
			t.Fatal(err)
		}
		var batch keyBatch
		batch.each(keyShapes[0], 0, 0, 109_397, func(keys [][]byte) { f.AddMany(keys, nil) })
		const strangers = 50_000
		found := 0
		batch.each(keyShapes[0], 0, 109_397, 109_397+strangers, func(keys [][]byte) { found += f.ContainsMany(keys, nil) })
		if rate := float64(found) / strangers; rate < tt.low || rate > tt.high {
			t.Errorf("%v: rate %.4f, want %.4f to %.4f", tt.scheme, rate, tt.low, tt.high)
		}
	}
}

// TestIntegersOfBoomFilters: 8-byte integers at 1e-4 came out 40 times too often
// with FNV and double hashing (tylertreat/BoomFilters).
func TestIntegersOfBoomFilters(t *testing.T) {
	classicJob(t, classic.Config{Keys: 1000, Rate: 1e-4}, keyShapes[1], hashChoices[0], 100)
}
