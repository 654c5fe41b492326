package bloom_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/long"
)

// hashWith returns a hash with this first bucket, in a table of that many buckets, and this
// fingerprint: 255 is odd, so any two go together.
func hashWith(buckets, bucket, fingerprint uint64) uint64 {
	for h := bucket; ; h += buckets {
		if h%255+1 == fingerprint {
			return h
		}
	}
}

// TestCuckooRateIsExact: a report's rate is the share of all pairs of a fingerprint and a
// first bucket that are found, to the last of them, whatever was added and removed.
func TestCuckooRateIsExact(t *testing.T) {
	for _, tt := range []struct {
		config     bloom.CuckooConfig
		keys, same int
	}{
		{bloom.CuckooConfig{Keys: 1}, 3, 1},
		{bloom.CuckooConfig{Keys: 8}, 60, 1},
		{bloom.CuckooConfig{Keys: 16}, 60, 6}, // the copies of a key in many layers
		{bloom.CuckooConfig{Keys: 16, Growth: 2}, 300, 3},
		{bloom.CuckooConfig{Keys: 64, Growth: 4, BucketSize: 4}, 500, 5},
		{bloom.CuckooConfig{Keys: 300, BucketSize: 3}, 250, 1},
		{bloom.CuckooConfig{Keys: 512, BucketSize: 1, Growth: 2}, 700, 2},
		{bloom.CuckooConfig{Keys: 512, BucketSize: 16, NonScaling: true}, 480, 1},
	} {
		f := mustCuckoo(t, tt.config)
		for i := range tt.keys {
			for range 1 + i%tt.same {
				if err := f.InsertHash(mix(uint64(i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := 0; i < tt.keys; i += 5 {
			f.RemoveHash(mix(uint64(i)))
		}
		first, err := f.Config().Plan()
		if err != nil {
			t.Fatal(err)
		}
		buckets := first.Blocks // of the newest layer
		for range f.LayerCount() - 1 {
			buckets *= uint64(f.Config().Growth)
		}
		found := 0
		for b := range buckets {
			for fingerprint := range uint64(255) {
				if f.ContainsHash(hashWith(buckets, b, fingerprint+1)) {
					found++
				}
			}
		}
		want := float64(found) / float64(255*buckets)
		if r := f.Report(); math.Abs(r.Rate-want) > 1e-12 || r.RateError != 0 {
			t.Errorf("%+v: of %d pairs %d are found in %d layers, a rate of %v; the report says %v ± %v", tt.config, 255*buckets, found, f.LayerCount(), want, r.Rate, r.RateError)
		}
	}
}

// TestCuckooRateSampled: the report of a large layer, from a sample, is near the rate.
func TestCuckooRateSampled(t *testing.T) {
	f := mustCuckoo(t, bloom.CuckooConfig{Keys: 16 << 20})
	hashes := make([]uint64, 1<<16)
	for i := 0; i < 8<<20; i += len(hashes) {
		for k := range hashes {
			hashes[k] = mix(uint64(i + k))
		}
		f.AddHashes(hashes, nil)
	}
	plan, err := f.Config().Plan()
	if err != nil {
		t.Fatal(err)
	}
	r := f.Report()
	if want := plan.RateAt(8 << 20); r.RateError == 0 || math.Abs(r.Rate-want) > maxSigmas*r.RateError || r.RateError > want/100 {
		t.Errorf("the report says %v ± %v, want %v", r.Rate, r.RateError, want)
	}
}

// TestCuckooRates is TestRateGrid's three tests, on filters in which ten times as many keys
// were added and removed as they hold now.
func TestCuckooRates(t *testing.T) {
	for i, tt := range []struct {
		config bloom.CuckooConfig
		n      uint64
		below  bool // a Growth above 1: the plan is an upper bound
	}{
		{bloom.CuckooConfig{Keys: 1000}, 1000, false},
		{bloom.CuckooConfig{Keys: 2000, NonScaling: true}, 500, false},
		{bloom.CuckooConfig{Keys: 1000, BucketSize: 4}, 1000, false},
		{bloom.CuckooConfig{Keys: 1000, BucketSize: 1, Iterations: 500}, 1000, false},
		{bloom.CuckooConfig{Keys: 100}, 1000, false}, // many layers
		{bloom.CuckooConfig{Keys: 100, BucketSize: 3, Growth: 2}, 1000, true},
		{bloom.CuckooConfig{Keys: 30_000}, 30_000, false},
	} {
		shape, hash := keyShapes[i%3], hashChoices[0]
		if i%2 == 1 {
			hash = hashChoices[2]
		}
		t.Run(fmt.Sprintf("%d keys in %d, by %d, growing %d, %s, %s", tt.n, tt.config.Keys, tt.config.BucketSize, tt.config.Growth, shape.name, hash.name), func(t *testing.T) {
			if i > 1 {
				long.Test(t)
			}
			plan, err := tt.config.Plan()
			if err != nil {
				t.Fatal(err)
			}
			plan.Keys, plan.Rate = tt.n, plan.RateAt(tt.n)
			j := &rateJob{plan: plan, shape: shape, hash: hash}
			j.prepare(false, true)
			if raceEnabled { // one goroutine; the rest would only be slow
				j.sets = 30
			}
			err = j.runChurned(func(c bloom.Config) (removable, error) {
				config := tt.config
				config.Secret = c.Secret
				return config.New()
			})
			if err != nil {
				t.Fatal(err)
			}
			if j.lost != 0 {
				t.Errorf("seed %d: %d keys were not found, or could not be removed", rateSeed, j.lost)
			}
			if z := j.fromBits(); !(math.Abs(z) <= maxSigmas) {
				t.Errorf("seed %d: %d of %d strangers found, the slots say %.1f: %+.1f sigma", rateSeed, j.found, j.probes, j.expected, z)
			}
			if tt.below && !(j.fromPlan() < -maxSigmas) || !tt.below && !j.agreesWithPlan() {
				t.Errorf("seed %d: rate from the slots of %d filters %.6g ± %.2g, plan %.6g: %+.1f standard errors", rateSeed, j.sets, j.bits.mean, j.bits.standardError(), j.plan.Rate, j.fromPlan())
			}
			// What is asked for is kept, or refused.
			config := tt.config
			config.Keys = tt.n
			for _, asked := range []float64{j.plan.Rate / 2, j.plan.Rate, j.plan.Rate * 2, 0.1} {
				config.Rate = asked
				if plan, err := config.Plan(); err == nil && plan.Rate > asked {
					t.Errorf("asked for %v, the plan's rate is %v", asked, plan.Rate)
				}
			}
			t.Logf("%d filters: from the plan %+.1f, from the slots %+.1f", j.sets, j.fromPlan(), j.fromBits())
		})
	}
}
