package bloom_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/long"
)

// churned is a ScalableCounting of keys that come and go, and of what is in each layer.
type churned struct {
	*bloom.ScalableCounting
	random *rand.Rand
	next   uint64
	live   []churnedKey // that will go again
	own    []int        // keys of each layer that was ever made that are there because it was the newest
	others []int        // keys that are there because it contained them by mistake
	lost   int          // keys that could not be removed
}

type churnedKey struct {
	hash    uint64
	layer   uint64 // its number
	mistake bool
}

func newChurned(t *testing.T, c bloom.ScalableConfig, seed uint64) *churned {
	return &churned{
		ScalableCounting: mustGrow(t, c),
		random:           rand.New(rand.NewPCG(rateSeed, seed)),
		next:             seed << 40,
		own:              make([]int, 1000),
		others:           make([]int, 1000),
	}
}

// add adds a new key, which stays if keep is true.
func (f *churned) add(keep bool) {
	k := churnedKey{hash: hashOf(f.next)}
	f.next++
	layer, found := bloom.Inside.CountingLayer(f.ScalableCounting, k.hash)
	f.AddHash(k.hash)
	newest := dropped(f.ScalableCounting) + uint64(f.LayerCount()) - 1
	if k.mistake = found && layer < newest; !k.mistake {
		layer = newest
	}
	k.layer = layer
	f.count(k, 1)
	if !keep {
		f.live = append(f.live, k)
	}
}

func (f *churned) count(k churnedKey, n int) {
	if k.mistake {
		f.others[k.layer] += n
	} else {
		f.own[k.layer] += n
	}
}

// remove removes one of the keys that go, any of them.
func (f *churned) remove() {
	i, last := f.random.IntN(len(f.live)), len(f.live)-1
	k := f.live[i]
	f.live[i] = f.live[last]
	f.live = f.live[:last]
	if !f.RemoveHash(k.hash) {
		f.lost++
	}
	f.count(k, -1)
}

// expected returns between which rates the filter's should lie on average. The keys that a
// layer contained by mistake set no bits, but they keep some from being cleared.
func (f *churned) expected() (low, high float64) {
	passedLow, passedHigh := 1., 1.
	for i, r := range f.Layers() {
		i += int(dropped(f.ScalableCounting))
		passedLow *= 1 - r.Plan.RateAt(uint64(f.own[i]))
		passedHigh *= 1 - r.Plan.RateAt(uint64(f.own[i]+f.others[i]))
	}
	return 1 - passedLow, 1 - passedHigh
}

// TestScalableCountingRates makes the three comparisons of rate_test.go after ten times as
// many adds and removals as there are keys: in a layer that is full all the time; in a filter
// that grows meanwhile, of which half of the keys stay; and in one of which all keys go, with
// the layers that they were in.
func TestScalableCountingRates(t *testing.T) {
	long.Test(t)
	if raceEnabled {
		t.Skip("one goroutine, and many keys")
	}
	const seeds = 40
	for _, p := range []float64{0.3, 1e-1, 1e-2, 1e-3} {
		for _, tt := range []struct {
			name      string
			first     uint64
			keys      int // 0: as many as fit into the first layer
			stay      bool
			minLayers int
		}{
			{"one layer", 2000, 0, false, 1},
			{"half of them stay", 300, 4000, true, 3},
			{"none stays", 300, 4000, false, 1},
		} {
			var rates, lows, highs sample
			found, expected, squares, mistakes, layers, gone := 0., 0., 0., 0, 0, uint64(0)
			for seed := range uint64(seeds) {
				f := newChurned(t, bloom.ScalableConfig{First: tt.first, Rate: p}, seed)
				n := tt.keys
				if n == 0 {
					n = int(f.Plan().Keys)
				}
				for i := range n {
					f.add(tt.stay && i%2 == 0)
				}
				for range 10 * n {
					f.remove()
					f.add(false)
				}
				if f.lost > 0 {
					t.Errorf("p %g, %s: %d keys could not be removed", p, tt.name, f.lost)
				}
				if f.Plan().Rate > p || f.Err() != nil || f.Len() != uint64(n) || f.LayerCount() < tt.minLayers {
					t.Errorf("p %g, %s: %d keys in %d layers, the plan's rate is %g, %v", p, tt.name, f.Len(), f.LayerCount(), f.Plan().Rate, f.Err())
				}
				if tt.keys == 0 && (f.LayerCount() > 1 || f.Len() != f.Plan().Keys) {
					t.Errorf("p %g, %s: %d keys in %d layers", p, tt.name, f.Len(), f.LayerCount())
				}
				r := f.Report()
				rates.add(r.Rate)
				low, high := f.expected()
				lows.add(low)
				highs.add(high)
				strangers := manyStrangers(seed)
				found += float64(f.ContainsHashes(strangers, nil))
				expected += r.Rate * float64(len(strangers))
				squares += r.Rate * (1 - r.Rate) * float64(len(strangers))
				for _, n := range f.others {
					mistakes += n
				}
				layers += f.LayerCount()
				gone += dropped(f.ScalableCounting)
			}
			e := maxSigmas * rates.standardError()
			if rates.mean < lows.mean-e || rates.mean > highs.mean+e || rates.mean > p {
				t.Errorf("p %g, %s: the rate from the counters is %.6g ± %.2g on average, want %.6g to %.6g", p, tt.name, rates.mean, rates.standardError(), lows.mean, highs.mean)
			}
			z := (found - expected) / math.Sqrt(squares)
			if math.Abs(z) > maxSigmas {
				t.Errorf("p %g, %s: %v strangers found, the counters say %.1f: %+.1f sigma", p, tt.name, found, expected, z)
			}
			t.Logf("p %g, %s: rate %.5g ± %.2g, expected %.5g to %.5g; %v strangers found, expected %.0f, %+.1f sigma; %.1f layers, %.1f dropped, %.1f keys in them by mistake",
				p, tt.name, rates.mean, rates.standardError(), lows.mean, highs.mean, found, expected, z, float64(layers)/seeds, float64(gone)/seeds, float64(mistakes)/seeds)
		}
	}
}
