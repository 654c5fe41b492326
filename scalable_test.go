package bloom_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/long"
	"pgregory.net/rapid"
)

func mustScale(t testing.TB, c bloom.ScalableConfig) *bloom.Scalable {
	t.Helper()
	f, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// hashAdder is what Scalable and Window have in common.
type hashAdder interface {
	AddHash(h uint64) bool
	AddHashes(hashes []uint64, isNew []bool) int
	ContainsHash(h uint64) bool
	ContainsHashes(hashes []uint64, found []bool) int
}

// raceOn has 64 goroutines add the keys 0..n-1 at once, each in an order of its
// own, half of them in batches, and look each up when it is added. It returns
// how often each key was told new.
func raceOn(t *testing.T, f hashAdder, n uint64) []uint32 {
	told := make([]uint32, n)
	var lost atomic.Uint64
	var wait sync.WaitGroup
	for g := range uint64(racers) {
		wait.Go(func() {
			order := newOrder(n, g)
			hashes, isNew := make([]uint64, 300), make([]bool, 300)
			for i := uint64(0); i < n; i += uint64(len(hashes)) {
				hashes = hashes[:min(n-i, 300)]
				for j := range hashes {
					hashes[j] = hashOf(order.at(i + uint64(j)))
				}
				if g%2 == 0 {
					for j, h := range hashes {
						isNew[j] = f.AddHash(h)
					}
				} else {
					f.AddHashes(hashes, isNew[:len(hashes)])
				}
				lost.Add(uint64(len(hashes) - f.ContainsHashes(hashes, nil)))
				for j := range hashes {
					if isNew[j] {
						atomic.AddUint32(&told[order.at(i+uint64(j))], 1)
					}
				}
			}
		})
	}
	wait.Wait()
	if lost.Load() != 0 {
		t.Errorf("%d keys were not found when their Add had returned", lost.Load())
	}
	return told
}

// TestScalableOneWinner: across many growths, each key is told new exactly once,
// where there are no false positives, and each layer takes exactly what it was
// planned for.
func TestScalableOneWinner(t *testing.T) {
	n := raceKeys() / 4
	f := mustScale(t, bloom.ScalableConfig{First: 500, Rate: 1e-8})
	for key, times := range raceOn(t, f, n) {
		if times != 1 {
			t.Fatalf("key %d was told new %d times", key, times)
		}
	}
	layers := f.Layers()
	for i, r := range layers {
		if last := i == len(layers)-1; r.Added > r.Plan.Keys || !last && r.Added < r.Plan.Keys-1 {
			t.Errorf("layer %d of %d took %d keys, and was planned for %d", i, len(layers), r.Added, r.Plan.Keys)
		}
	}
	if r := f.Report(); r.Added != n || math.Abs(r.Keys-float64(n)) > 6*r.KeysError {
		t.Errorf("%d keys, and the report says %d added, about %.0f there", n, r.Added, r.Keys)
	}
	t.Logf("%d keys in %d layers", n, len(layers))
}

// TestScalableWinnersAmongFalsePositives: nobody is told new twice.
func TestScalableWinnersAmongFalsePositives(t *testing.T) {
	n := raceKeys() / 20
	f := mustScale(t, bloom.ScalableConfig{First: 10, Rate: 0.05, Growth: 3})
	for key, times := range raceOn(t, f, n) {
		if times > 1 || !f.ContainsHash(hashOf(uint64(key))) {
			t.Fatalf("key %d was told new %d times, contained: %v", key, times, f.ContainsHash(hashOf(uint64(key))))
		}
	}
}

// TestScalableIsAsIfInOrder: every way to add gives the same answers and the
// same layers, in batches that growth falls into.
func TestScalableIsAsIfInOrder(t *testing.T) {
	for _, secret := range [][]byte{nil, testSecret} {
		c := bloom.ScalableConfig{First: 100, Rate: 0.01, Secret: secret}
		single, asBytes, asStrings, asHashes := mustScale(t, c), mustScale(t, c), mustScale(t, c), mustScale(t, c)
		random := rand.New(rand.NewPCG(1, 1))
		for _, n := range []int{0, 1, 50, 90, 500, 1023, 1024, 1025, 5000} {
			keys, texts, hashes := make([][]byte, n), make([]string, n), make([]uint64, n)
			want, wantNew := make([]bool, n), 0
			for i := range keys {
				texts[i] = fmt.Sprintf("key %d", random.IntN(10_000))
				keys[i] = []byte(texts[i])
				hashes[i] = single.Hash(keys[i])
				if i%2 == 0 {
					want[i] = single.Add(keys[i])
				} else {
					want[i] = single.AddString(texts[i])
				}
				if want[i] {
					wantNew++
				}
			}
			got := make([]bool, n)
			for name, add := range map[string]func() int{
				"AddMany":    func() int { return asBytes.AddMany(keys, got) },
				"AddStrings": func() int { return asStrings.AddStrings(texts, got) },
				"AddHashes":  func() int { return asHashes.AddHashes(hashes, got) },
			} {
				if count := add(); count != wantNew || !slices.Equal(got, want) {
					t.Errorf("%s of %d keys differs from as many Adds: %d new, want %d", name, n, count, wantNew)
				}
			}
			for i, key := range keys {
				if !single.Contains(key) || !single.ContainsString(texts[i]) || !single.ContainsHash(single.HashString(texts[i])) {
					t.Fatalf("%q is lost", key)
				}
			}
			if asBytes.ContainsMany(keys, got) != n || slices.Contains(got, false) || asBytes.ContainsStrings(texts, nil) != n {
				t.Errorf("of %d keys some are lost", n)
			}
		}
		for name, f := range map[string]*bloom.Scalable{"AddMany": asBytes, "AddStrings": asStrings, "AddHashes": asHashes} {
			if f.Report() != single.Report() || !slices.Equal(f.Layers(), single.Layers()) {
				t.Errorf("%s made other layers than Add: %+v and %+v", name, f.Report(), single.Report())
			}
		}
		if strangers := manyStrangers(1); single.ContainsHashes(strangers, nil) != countEach(single, strangers) {
			t.Error("ContainsHashes finds other strangers than ContainsHash")
		}
	}
}

// manyStrangers are hashes that nobody adds.
func manyStrangers(seed uint64) []uint64 {
	random := rand.New(rand.NewPCG(99, seed))
	strangers := make([]uint64, 50_000)
	for i := range strangers {
		strangers[i] = random.Uint64()
	}
	return strangers
}

func countEach(f hashAdder, hashes []uint64) (n int) {
	for _, h := range hashes {
		if f.ContainsHash(h) {
			n++
		}
	}
	return n
}

// TestScalableKeepsItsRate holds the bound from the first size to a thousand
// times as much: by plan, from the bits and as measured. It prints the space
// next to that of a filter planned for n.
func TestScalableKeepsItsRate(t *testing.T) {
	long.Test(t)
	for _, p := range []float64{0.1, 1e-2, 1e-3} {
		for _, growth := range []int{2, 4} {
			f := mustScale(t, bloom.ScalableConfig{First: 1000, Rate: p, Growth: growth, Seed: 3})
			key := uint64(0)
			for _, n := range []uint64{1000, 10_000, 100_000, 1_000_000} {
				if n > 10_000 && (raceEnabled || testing.Short()) || p == 0.1 && growth == 4 {
					continue
				}
				for ; key < n; key++ {
					f.AddUint64(key)
				}
				for i := range n {
					if !f.ContainsUint64(i) {
						t.Fatalf("p %g, growth %d: key %d of %d is lost", p, growth, i, n)
					}
				}
				r := f.Report()
				if f.Err() != nil || r.Plan.Rate > p || r.Rate > p {
					t.Errorf("p %g, growth %d, %d keys: the plan's rate is %g, the rate from the bits %g, error %v", p, growth, n, r.Plan.Rate, r.Rate, f.Err())
				}
				const strangers = 200_000
				found := 0
				for i := range uint64(strangers) {
					if f.ContainsUint64(1<<40 + i) {
						found++
					}
				}
				sigma := math.Sqrt(strangers * r.Rate * (1 - r.Rate))
				if z := (float64(found) - strangers*r.Rate) / sigma; math.Abs(z) > maxSigmas {
					t.Errorf("p %g, growth %d, %d keys: %d of %d strangers found, the bits say %.1f: %+.1f sigma", p, growth, n, found, strangers, strangers*r.Rate, z)
				}
				sized, err := bloom.Config{Keys: n, Rate: p}.Plan()
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("p %g, growth %d, %7d keys: %2d layers, %.1f bits per key, right-sized %.1f; rate %.3g from the bits, %.3g measured",
					p, growth, n, len(f.Layers()), float64(r.Plan.Bits)/float64(n), sized.BitsPerKey(), r.Rate, float64(found)/strangers)
			}
		}
	}
}

// TestScalableRates makes the three comparisons of rate_test.go at sizes where
// all layers are full: the rate from the bits, over many seeds, is the plans'.
func TestScalableRates(t *testing.T) {
	long.Test(t)
	if raceEnabled {
		t.Skip("one goroutine, and many keys")
	}
	for _, p := range []float64{1e-1, 1e-2, 1e-4} {
		for _, layers := range []int{1, 4, 7} {
			var rates sample
			found, expected, want, bound := 0., 0., 0., 0.
			for seed := range uint64(40) {
				f := mustScale(t, bloom.ScalableConfig{First: 300, Rate: p})
				fill(f, layers, seed)
				passed, room := 1., 1.
				for _, r := range f.Layers() {
					passed *= 1 - r.Plan.RateAt(uint64(float64(r.Plan.Keys)*(1-r.Plan.Rate)))
					room *= 1 - r.Plan.Rate
				}
				want, bound = 1-passed, 1-room
				r := f.Report()
				rates.add(r.Rate)
				if r.Plan.Rate > p {
					t.Errorf("p %g, %d layers: the plan's rate is %g", p, layers, r.Plan.Rate)
				}
				strangers := manyStrangers(seed)
				found += float64(f.ContainsHashes(strangers, nil))
				expected += r.Rate * float64(len(strangers))
			}
			// The layers have a few more keys than want says, by what layerRoom
			// takes away, and fewer than the plan.
			e := maxSigmas * rates.standardError()
			if rates.mean < want-e || rates.mean > bound+e {
				t.Errorf("p %g, %d layers: the rate from the bits is %.6g ± %.2g on average, want %.6g to %.6g", p, layers, rates.mean, rates.standardError(), want, bound)
			}
			if z := (found - expected) / math.Sqrt(expected); math.Abs(z) > maxSigmas {
				t.Errorf("p %g, %d layers: %v strangers found, the bits say %.1f: %+.1f sigma", p, layers, found, expected, z)
			}
			t.Logf("p %g, %d layers: from the bits %.5g, expected %.5g to %.5g; %v found, expected %.0f", p, layers, rates.mean, want, bound, found, expected)
		}
	}
}

// fill adds keys of a set until there are this many layers and all are full.
func fill(f *bloom.Scalable, layers int, set uint64) {
	key := set << 40
	for grown, bits := 1, f.Plan().Bits; grown < layers; key++ {
		f.AddHash(hashOf(key))
		if now := f.Plan().Bits; now != bits {
			grown, bits = grown+1, now
		}
	}
	room := uint64(0)
	for _, layer := range f.Layers() {
		room += uint64(float64(layer.Plan.Keys) * (1 - layer.Plan.Rate))
	}
	for added := f.Report().Added; added < room; key++ {
		if f.AddHash(hashOf(key)) {
			added++
		}
	}
}

// TestScalableAtItsLimit: up to the first key that does not fit the rate is kept;
// from then on Err says so, the memory stays as it is and no key is lost.
func TestScalableAtItsLimit(t *testing.T) {
	for _, limit := range []uint64{2500, 10_000, 100_000, 1 << 20} {
		if raceEnabled && limit > 10_000 {
			continue
		}
		f := mustScale(t, bloom.ScalableConfig{First: 1000, Rate: 0.01, Budget: limit})
		key := uint64(0)
		for ; f.Err() == nil; key++ {
			if f.AddUint64(key) && f.Plan().Bytes() > limit {
				t.Fatalf("limit %d: %d bytes are used", limit, f.Plan().Bytes())
			}
		}
		plan, r := f.Plan(), f.Report()
		if !errors.Is(f.Err(), bloom.ErrBudget) || r.Rate > 0.01 || plan.Bytes()+512 <= limit/2 {
			t.Errorf("limit %d: full with %d keys in %d bytes, rate %g: %v", limit, r.Added, plan.Bytes(), r.Rate, f.Err())
		}
		t.Logf("limit %d, %d bytes: %v", limit, plan.Bytes(), f.Err())
		hashes := make([]uint64, 0, key)
		for range 2 * key {
			hashes = append(hashes, f.Hash(fmt.Append(nil, key)))
			key++
		}
		f.AddHashes(hashes, nil)
		for i := range key / 3 {
			if !f.ContainsUint64(i) {
				t.Fatalf("limit %d: key %d is lost", limit, i)
			}
		}
		if f.ContainsHashes(hashes, nil) != len(hashes) {
			t.Errorf("limit %d: keys are lost", limit)
		}
		if r := f.Report(); !r.Overfull() || r.Rate < 0.01 || f.Plan() != plan || f.Err() == nil {
			t.Errorf("limit %d: three times as many keys as fit, and the report is %+v", limit, r)
		}
		f.Clear()
		if r := f.Report(); f.Err() != nil || r.Added != 0 || r.Fill != 0 || f.ContainsUint64(1) || len(f.Layers()) != 1 {
			t.Errorf("limit %d: Clear left something: %v, %+v", limit, f.Err(), r)
		}
	}
}

// TestScalableSaturated is a bug's test: with one layer that has all bits set the
// estimate is infinite, and that was not over-full.
func TestScalableSaturated(t *testing.T) {
	f := mustScale(t, bloom.ScalableConfig{First: 1000, Rate: 0.01})
	bloom.Inside.Saturate(f)
	for key := range uint64(10_000) { // in vain: all are found
		f.AddUint64(key)
	}
	if r := f.Report(); !math.IsInf(r.Keys, 1) || r.Rate != 1 || !r.Overfull() {
		t.Errorf("all bits set, and the report is %+v", r)
	}
	// Of two layers one, as the report sums them up.
	r := bloom.Report{Plan: bloom.Plan{Keys: 1000}, Fill: 0.7, Rate: 1, Keys: math.Inf(1), KeysError: math.Inf(1)}
	if !r.Overfull() {
		t.Error("infinite keys are not over-full")
	}
}

// TestScalableOutOfRate: a rate so low that the second layers cannot have theirs.
func TestScalableOutOfRate(t *testing.T) {
	f := mustScale(t, bloom.ScalableConfig{First: 10, Rate: 1e-11})
	for key := uint64(0); f.Err() == nil; key++ {
		f.AddUint64(key)
	}
	if !errors.Is(f.Err(), bloom.ErrRate) {
		t.Errorf("Err = %v, want ErrRate", f.Err())
	}
}

func TestScalableConfig(t *testing.T) {
	for name, tt := range map[string]struct {
		config bloom.ScalableConfig
		want   error
	}{
		"no rate":       {bloom.ScalableConfig{First: 10}, bloom.ErrConfig},
		"rate of one":   {bloom.ScalableConfig{Rate: 1}, bloom.ErrConfig},
		"no number":     {bloom.ScalableConfig{Rate: math.NaN()}, bloom.ErrConfig},
		"growth":        {bloom.ScalableConfig{Rate: 0.1, Growth: 1}, bloom.ErrConfig},
		"much growth":   {bloom.ScalableConfig{Rate: 0.1, Growth: 17}, bloom.ErrConfig},
		"secret":        {bloom.ScalableConfig{Rate: 0.1, Secret: []byte("short")}, bloom.ErrConfig},
		"limit":         {bloom.ScalableConfig{First: 1e6, Rate: 0.1, Budget: 1000}, bloom.ErrBudget},
		"low rate":      {bloom.ScalableConfig{Rate: 1e-12}, bloom.ErrRate},
		"too many":      {bloom.ScalableConfig{First: 1 << 50, Rate: 0.1}, bloom.ErrConfig},
		"only the rate": {bloom.ScalableConfig{Rate: 0.1}, nil},
	} {
		if f, err := tt.config.New(); !errors.Is(err, tt.want) || (f == nil) != (err != nil) {
			t.Errorf("%s: New = %v, %v, want %v", name, f, err, tt.want)
		}
	}
	f, err := bloom.NewScalable(0, 0.01)
	if err != nil || f.Plan().Keys < 1000 || f.Err() != nil || !strings.Contains(f.String(), "1 layers") {
		t.Errorf("NewScalable(0, 0.01) = %v, %v", f, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if panicOf(func() { f.AddUint64(1) }) == "" {
		t.Error("a closed filter can be added to")
	}
}

func TestScalableCompact(t *testing.T) {
	f := mustScale(t, bloom.ScalableConfig{First: 100, Rate: 0.001, Secret: testSecret})
	const n = 20_000
	stream := func(n int) func(yield func([]byte) bool) {
		return func(yield func([]byte) bool) {
			buffer := []byte(nil)
			for i := range n {
				buffer = fmt.Append(buffer[:0], i) // the same memory each time
				if !yield(buffer) {
					return
				}
			}
		}
	}
	for key := range stream(n) {
		f.Add(key)
	}
	compact, err := f.Compact(stream(n))
	if err != nil {
		t.Fatal(err)
	}
	for key := range stream(n) {
		if !compact.Contains(key) {
			t.Fatalf("%q is lost", key)
		}
	}
	if r := compact.Report(); r.Rate > 0.001 || r.Plan.Bits > f.Plan().Bits*2/3 || compact.HashIdentity() != f.HashIdentity() {
		t.Errorf("compact: %+v, from %+v", r, f.Plan())
	}
	if _, err := f.Compact(stream(2 * n)); !errors.Is(err, bloom.ErrRate) {
		t.Errorf("Compact of twice as many keys: got error %v, want ErrRate", err)
	}
	empty := mustScale(t, bloom.ScalableConfig{Rate: 0.01})
	if compact, err := empty.Compact(stream(0)); err != nil || compact.Report().Fill != 0 {
		t.Errorf("Compact of nothing: %v, %v", compact, err)
	}
}

// TestScalableModel runs random operations on it and on an exact set.
func TestScalableModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := bloom.ScalableConfig{
			First:  rapid.Uint64Range(1, 300).Draw(t, "first"),
			Rate:   rapid.SampledFrom([]float64{0.5, 0.01, 1e-6}).Draw(t, "rate"),
			Growth: rapid.IntRange(2, 5).Draw(t, "growth"),
			Budget: rapid.SampledFrom([]uint64{0, 4096, 20_000}).Draw(t, "limit"),
		}.New()
		if err != nil {
			t.Fatal(err)
		}
		set := map[uint64]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				key := rapid.Uint64Range(0, 5000).Draw(t, "key")
				if isNew := f.AddHash(hashOf(key)); isNew && set[key] {
					t.Fatalf("key %d is told new again", key)
				}
				set[key] = true
			},
			"add many": func(t *rapid.T) {
				keys := drawKeys(t)
				hashes, isNew := make([]uint64, len(keys)), make([]bool, len(keys))
				for i, key := range keys {
					hashes[i] = hashOf(key)
				}
				f.AddHashes(hashes, isNew)
				for i, key := range keys {
					if isNew[i] && set[key] {
						t.Fatalf("key %d is told new again", key)
					}
					set[key] = true
				}
			},
			"save and load": func(t *rapid.T) {
				f = reread(t, f, bloom.ReadScalable)
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "dice") == 0 {
					f.Clear()
					clear(set)
				}
			},
			"look all up": func(t *rapid.T) {
				for key := range set {
					if !f.ContainsHash(hashOf(key)) {
						t.Fatalf("false negative for %d", key)
					}
				}
			},
			"": func(t *rapid.T) {
				if r := f.Report(); f.Err() == nil && r.Added > r.Plan.Keys {
					t.Fatalf("%d keys in room for %d", r.Added, r.Plan.Keys)
				}
			},
		})
	})
}

// drawKeys draws a run of keys, and some here and there.
func drawKeys(t *rapid.T) []uint64 {
	keys := rapid.SliceOfN(rapid.Uint64Range(0, 5000), 0, 20).Draw(t, "keys")
	first := rapid.Uint64Range(0, 5000).Draw(t, "first")
	for i := range rapid.Uint64Range(0, 1500).Draw(t, "run") {
		keys = append(keys, (first+i)%5001)
	}
	return keys
}

func TestScalableNoAllocations(t *testing.T) {
	f := mustScale(t, bloom.ScalableConfig{First: 100_000, Rate: 0.01})
	noAllocations(t, f)
}

func noAllocations(t *testing.T, f interface {
	hashAdder
	Add([]byte) bool
	Contains([]byte) bool
	AddMany([][]byte, []bool) int
	ContainsMany([][]byte, []bool) int
	AddStrings([]string, []bool) int
}) {
	key, keys, texts, hashes, answers := []byte("key"), [][]byte{nil, {1}}, []string{"", "a"}, []uint64{1, 2}, make([]bool, 2)
	i := uint64(0)
	for name, call := range map[string]func(){
		"Add":            func() { f.Add(key) },
		"Contains":       func() { f.Contains(key) },
		"AddHash":        func() { i++; f.AddHash(hashOf(i)) },
		"AddMany":        func() { f.AddMany(keys, answers) },
		"AddStrings":     func() { f.AddStrings(texts, nil) },
		"ContainsMany":   func() { f.ContainsMany(keys, nil) },
		"AddHashes":      func() { f.AddHashes(hashes, nil) },
		"ContainsHashes": func() { f.ContainsHashes(hashes, answers) },
	} {
		if n := testing.AllocsPerRun(1000, call); n != 0 && !raceEnabled {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkScalable(b *testing.B) {
	for _, growth := range []int{2, 4} {
		for _, n := range []int{100_000, 10_000_000} {
			f := mustScale(b, bloom.ScalableConfig{First: uint64(n / 300), Rate: 0.01, Growth: growth})
			hashes := make([]uint64, 1024)
			for i := 0; i < n; i += len(hashes) {
				for j := range hashes {
					hashes[j] = hashOf(uint64(i + j))
				}
				f.AddHashes(hashes, nil)
			}
			for _, from := range []struct {
				name string
				at   uint64
			}{{"hit", 0}, {"miss", 1 << 40}} {
				name := fmt.Sprintf("growth=%d/n=%d/%s/", growth, n, from.name)
				b.Run(name+"one", func(b *testing.B) {
					i := uint64(0)
					for b.Loop() {
						f.ContainsHash(hashOf(from.at + i%uint64(n)))
						i++
					}
				})
				b.Run(name+"many", func(b *testing.B) {
					i := uint64(0)
					for b.Loop() {
						if i%1024 == 0 {
							for j := range hashes {
								hashes[j] = hashOf(from.at + (i+uint64(j))%uint64(n))
							}
							f.ContainsHashes(hashes, nil)
						}
						i++
					}
				})
			}
			f.Close()
		}
	}
}
