package bloom_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/long"
)

// TestCountingRates is TestRateGrid's three tests, on filters in which ten times as many keys
// were added and removed as they hold now.
func TestCountingRates(t *testing.T) {
	long.Test(t)
	var jobs []*rateJob
	for i, p := range []float64{1e-1, 1e-2, 1e-3, 1e-4} {
		if raceEnabled && i != 1 { // one goroutine; the rest would only be slow
			continue
		}
		for k, n := range []uint64{1, 10, 1e3, 1e4} {
			plan, err := bloom.Config{Keys: n, Rate: p}.PlanCounting()
			if err != nil {
				t.Fatal(err)
			}
			if plan.Rate > p {
				t.Errorf("n %d, p %g: the plan's rate is %g", n, p, plan.Rate)
			}
			j := &rateJob{plan: plan, shape: keyShapes[(i+k)%3], hash: hashChoices[(i+2*k)%3]}
			j.prepare(false, plan.Rate >= p/100)
			j.sets = min(j.sets, int(max(2e5/n, 30)))
			jobs = append(jobs, j)
		}
	}
	for _, j := range jobs {
		err := j.runChurned(func(c bloom.Config) (removable, error) {
			c.Keys, c.Bits, c.Probes = j.plan.Keys, j.plan.Bits, j.plan.Probes
			return c.NewCounting()
		})
		if err != nil {
			t.Fatalf("%v: %v", j, err)
		}
		if j.lost != 0 {
			t.Errorf("seed %d, %v: %d keys were not found, or could not be removed", rateSeed, j, j.lost)
		}
		if z := j.fromBits(); !(math.Abs(z) <= maxSigmas) {
			t.Errorf("seed %d, %v: %d of %d strangers found, the counters say %.1f: %+.1f sigma", rateSeed, j, j.found, j.probes, j.expected, z)
		}
		if !j.agreesWithPlan() {
			t.Errorf("seed %d, %v: rate from the counters of %d filters %.6g ± %.2g, plan %.6g: %+.1f standard errors", rateSeed, j, j.sets, j.bits.mean, j.bits.standardError(), j.plan.Rate, j.fromPlan())
		}
	}
	reportWorst(t, jobs)
}

// runChurned is run for a filter from which keys can be removed, made with a hash as the
// config says. Keys 0 to 11n are added, each of them is removed when it is n keys old, and n
// are left.
func (j *rateJob) runChurned(newFilter func(c bloom.Config) (removable, error)) error {
	var batch, old keyBatch
	n := j.plan.Keys
	for set := range uint64(j.sets) {
		var c bloom.Config
		j.hash.set(&c, set)
		f, err := newFilter(c)
		if err != nil {
			return err
		}
		step := max(n/10, 1)
		for at := uint64(0); at < 11*n; at += step {
			if at >= n {
				old.each(j.shape, set, at-n, at-n+step, func(keys [][]byte) { j.lost += len(keys) - f.RemoveMany(keys, nil) })
			}
			batch.each(j.shape, set, at, at+step, func(keys [][]byte) { f.AddMany(keys, nil) })
		}
		if f, ok := f.(*bloom.Cuckoo); ok && (f.Err() != nil || f.Len() != n) {
			return fmt.Errorf("%d keys of %d, %w", f.Len(), n, f.Err())
		}
		batch.each(j.shape, set, 10*n, 11*n, func(keys [][]byte) { j.lost += len(keys) - f.ContainsMany(keys, nil) })
		rate := f.Report().Rate
		j.bits.add(rate)
		if set == 0 {
			j.probes = max(uint64(math.Ceil(100/rate)), j.minProbes)
			if j.probes > j.maxProbes {
				j.probes = 0
			}
			j.expected = rate * float64(j.probes)
			batch.each(j.shape, set, 11*n, 11*n+j.probes, func(keys [][]byte) { j.found += f.ContainsMany(keys, nil) })
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
