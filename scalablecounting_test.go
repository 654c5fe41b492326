package bloom_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bloomery/bloom"
	"pgregory.net/rapid"
)

func mustGrow(t rapid.TB, c bloom.ScalableConfig) *bloom.ScalableCounting {
	t.Helper()
	f, err := c.NewCounting()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestScalableCountingVerbs(t *testing.T) {
	f := mustGrow(t, bloom.ScalableConfig{First: 300, Rate: 0.001, Secret: testSecret})
	defer f.Close()
	if f.RemoveString("a") || f.CountString("a") != 0 || f.ContainsString("a") {
		t.Error("an empty filter has a key")
	}
	for i := range 1000 { // so that there are layers
		f.AddString(storedKey(i))
	}
	if f.LayerCount() < 2 || len(f.Layers()) != f.LayerCount() {
		t.Fatalf("%d layers, and reports of %d", f.LayerCount(), len(f.Layers()))
	}
	isNew, found := make([]bool, 3), make([]bool, 3)
	if n := f.AddStrings([]string{"a", "b", "a"}, isNew); n != 2 || !slices.Equal(isNew, []bool{true, true, false}) {
		t.Errorf("AddStrings says %d, %v", n, isNew)
	}
	if n := f.AddMany([][]byte{[]byte("c"), []byte("a"), []byte(storedKey(3))}, nil); n != 1 {
		t.Errorf("AddMany says %d, want 1", n)
	}
	if n := f.AddHashes([]uint64{f.HashString("d"), f.Hash([]byte("d"))}, nil); n != 1 {
		t.Errorf("AddHashes says %d, want 1", n)
	}
	if !f.AddUint64(258) || !f.Contains([]byte{2, 1, 0, 0, 0, 0, 0, 0}) || f.CountUint64(258) != 1 {
		t.Error("AddUint64(258) is not Add of its little-endian bytes")
	}
	for key, want := range map[string]int{"a": 3, "b": 1, "c": 1, "d": 2, "e": 0, storedKey(3): 2} {
		if got := f.Count([]byte(key)); got != want || f.CountHash(f.HashString(key)) != want {
			t.Errorf("Count(%q) = %d, want %d", key, got, want)
		}
	}
	if n := f.ContainsStrings([]string{"a", storedKey(1), "e"}, found); n != 2 || !slices.Equal(found, []bool{true, true, false}) {
		t.Errorf("ContainsStrings says %d, %v", n, found)
	}
	if f.ContainsMany([][]byte{[]byte("b"), []byte("x")}, nil) != 1 || f.ContainsHashes([]uint64{f.HashString("b")}, nil) != 1 {
		t.Error("a batch has lost b, or found x")
	}
	if r := f.Report(); r.Added != 1009 || math.Abs(r.Keys-1005) > 6*r.KeysError || f.Saturated() != 0 || f.Len() != 1009 || f.Removed() != 0 {
		t.Errorf("it has %d keys and reports %+v", f.Len(), r)
	}
	if !f.Remove([]byte("b")) || !f.RemoveUint64(258) || !f.RemoveHash(f.HashString("c")) ||
		!f.RemoveString("a") || !f.RemoveString("a") || !f.ContainsString("a") || !f.RemoveString("a") {
		t.Error("a key that was added cannot be removed as often")
	}
	for _, key := range []string{"a", "b", "c"} {
		if f.ContainsString(key) || f.RemoveString(key) {
			t.Errorf("%q has been removed as often as it was added, and is still there", key)
		}
	}
	if f.Len() != 1003 || f.Removed() != 6 || f.Bytes() != 4*f.Plan().Bytes() {
		t.Errorf("it has %d keys after %d removals, in %d bytes", f.Len(), f.Removed(), f.Bytes())
	}
	if !strings.Contains(f.String(), fmt.Sprint(f.Bytes())) || f.HashIdentity().Algorithm != bloom.SipHash {
		t.Errorf("it calls itself %q", f)
	}
	g := f.Clone()
	if !g.Equal(f) || g.Report() != f.Report() || g.Removed() != 6 {
		t.Error("a clone differs")
	}
	if g.AddString("one more"); g.Equal(f) || f.ContainsString("one more") {
		t.Error("what is added to a clone is added to its origin")
	}
	if f.Clear(); f.LayerCount() != 1 || f.Len() != 0 || f.Removed() != 0 || f.Report().Fill != 0 || !f.Equal(mustGrow(t, bloom.ScalableConfig{First: 300, Rate: 0.001, Secret: testSecret})) {
		t.Errorf("Clear leaves %+v", f.Report())
	}
}

// TestScalableCountingPlans: the first layer is a Scalable's, and each one has Growth times
// the keys of the one before and as much of the rate as its place allows.
func TestScalableCountingPlans(t *testing.T) {
	for _, growth := range []int{2, 5} {
		c := bloom.ScalableConfig{First: 1000, Rate: 0.01, Growth: growth}
		first, err := c.Plan()
		if err != nil {
			t.Fatal(err)
		}
		f := mustGrow(t, c)
		for key := uint64(0); f.LayerCount() < 4; key++ {
			f.AddUint64(key)
		}
		before := bloom.Plan{}
		for i, r := range f.Layers() {
			share := 0.01 * 0.2 * math.Pow(0.8, float64(i))
			if r.Plan.Rate > share || r.Plan.Rate < 0.9*share {
				t.Errorf("layer %d has the rate %g of %g", i, r.Plan.Rate, share)
			}
			if i == 0 && r.Plan != first {
				t.Errorf("the first layer is %v, a Scalable's %v", r.Plan, first)
			} else if want := before.Keys * uint64(growth); i > 0 && (r.Plan.Keys < want || float64(r.Plan.Keys) > 1.1*float64(want)) {
				t.Errorf("layer %d has room for %d keys, after one for %d", i, r.Plan.Keys, before.Keys)
			}
			if mistakes := 8000 * share; i < 3 && (r.Added < r.Plan.Keys || float64(r.Added) > float64(r.Plan.Keys)+6*mistakes) {
				t.Errorf("layer %d has %d keys, and was planned for %d", i, r.Added, r.Plan.Keys)
			}
			before = r.Plan
		}
		if p := f.Plan(); p.Rate > 0.01 || p.Bits/2 != f.Bytes() {
			t.Errorf("all of them: %v", p)
		}
	}
}

func TestScalableCountingConfig(t *testing.T) {
	plan, err := bloom.ScalableConfig{First: 1000, Rate: 0.01}.PlanCounting()
	if err != nil {
		t.Fatal(err)
	}
	bytes := 4 * plan.Bytes()
	for name, tt := range map[string]struct {
		config bloom.ScalableConfig
		want   error
	}{
		"defaults":          {bloom.ScalableConfig{Rate: 0.01}, nil},
		"just enough":       {bloom.ScalableConfig{Rate: 0.01, Budget: bytes}, nil},
		"a byte less":       {bloom.ScalableConfig{Rate: 0.01, Budget: bytes - 1}, bloom.ErrBudget},
		"no rate":           {bloom.ScalableConfig{}, bloom.ErrConfig},
		"growth 17":         {bloom.ScalableConfig{Rate: 0.01, Growth: 17}, bloom.ErrConfig},
		"a short secret":    {bloom.ScalableConfig{Rate: 0.01, Secret: []byte("short")}, bloom.ErrConfig},
		"a rate of nothing": {bloom.ScalableConfig{First: 1 << 30, Rate: 1e-18}, bloom.ErrRate},
	} {
		f, err := tt.config.NewCounting()
		if !errors.Is(err, tt.want) || (f == nil) != (tt.want != nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if err != nil {
			continue
		}
		if c := f.Config(); c.First != 1000 || c.Growth != 2 || c.Budget != tt.config.Budget || f.Plan() != plan || f.Bytes() != bytes {
			t.Errorf("%s: %+v with the plan %v in %d bytes", name, c, f.Plan(), f.Bytes())
		}
	}
	if f, err := bloom.NewScalableCounting(1000, 0.01); err != nil || f.Plan() != plan {
		t.Errorf("NewScalableCounting: %v, %v", f, err)
	}
}

// TestScalableCountingIsAsIfInOrder: every way to add gives the same answers and the same
// counters, in batches with repeats, mistakes and several growths.
func TestScalableCountingIsAsIfInOrder(t *testing.T) {
	for _, tt := range []struct {
		rate   float64
		budget uint64
	}{{0.4, 0}, {0.01, 0}, {0.4, 10_000}} {
		c := bloom.ScalableConfig{First: 50, Rate: tt.rate, Budget: tt.budget}
		single, asBytes, asStrings, asHashes := mustGrow(t, c), mustGrow(t, c), mustGrow(t, c), mustGrow(t, c)
		random := rand.New(rand.NewPCG(1, 1))
		for _, n := range []int{0, 1, 50, 90, 500, 1023, 1024, 1025, 5000, 300} {
			keys, texts, hashes := make([][]byte, n), make([]string, n), make([]uint64, n)
			want, wantNew := make([]bool, n), 0
			for i := range keys {
				texts[i] = fmt.Sprintf("key %d", random.IntN(8000))
				keys[i] = []byte(texts[i])
				hashes[i] = single.Hash(keys[i])
				if want[i] = single.Add(keys[i]); want[i] {
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
					t.Errorf("%+v: %s of %d keys differs from as many Adds: %d new, want %d", tt, name, n, count, wantNew)
				}
			}
			if asBytes.ContainsMany(keys, got) != n || slices.Contains(got, false) || asBytes.ContainsStrings(texts, nil) != n {
				t.Errorf("%+v: of %d keys some are lost", tt, n)
			}
			for _, f := range []*bloom.ScalableCounting{asBytes, asStrings, asHashes} {
				if !f.Equal(single) || f.Report() != single.Report() || (f.Err() == nil) != (single.Err() == nil) {
					t.Fatalf("%+v: after a batch of %d keys it is %v, want %v", tt, n, f, single)
				}
			}
			strangers := manyStrangers(uint64(n))[:2000]
			if each, many := countEach(single, strangers), single.ContainsHashes(strangers, nil); each != many {
				t.Errorf("%+v: %d of the strangers are found one by one, %d at once", tt, each, many)
			}
			for i, text := range texts { // as many as are left make layers empty, but none is dropped before the others
				if i%3 == 0 {
					for _, f := range []*bloom.ScalableCounting{single, asBytes, asStrings, asHashes} {
						if !f.RemoveString(text) {
							t.Fatalf("%+v: %q was added, and cannot be removed", tt, text)
						}
					}
				}
			}
		}
		if single.LayerCount() < 2 {
			t.Errorf("%+v: only %d layers", tt, single.LayerCount())
		}
	}
}

// TestScalableCountingReaders reads in many goroutines at once.
func TestScalableCountingReaders(t *testing.T) {
	f := mustGrow(t, bloom.ScalableConfig{First: 300, Rate: 0.01})
	hashes := make([]uint64, 3000)
	for i := range hashes {
		hashes[i] = hashOf(uint64(i))
	}
	f.AddHashes(hashes, nil)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if f.ContainsHashes(hashes, nil) != len(hashes) || countEach(f, hashes) != len(hashes) {
				t.Error("keys are lost")
			}
			for _, h := range hashes {
				if f.CountHash(h) == 0 {
					t.Error("a key is there no times")
				}
			}
			if f.Report().Added != f.Len() || f.LayerCount() < 2 {
				t.Error("a report differs")
			}
		})
	}
	wait.Wait()
}

// TestScalableCountingModel does at random what may be done to a ScalableCounting. The rate
// is so high that many keys are in a layer that contained them by mistake, and many in several.
func TestScalableCountingModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mustGrow(t, bloom.ScalableConfig{
			First:  rapid.Uint64Range(1, 300).Draw(t, "first"),
			Rate:   rapid.SampledFrom([]float64{0.9, 0.5, 0.01}).Draw(t, "rate"),
			Growth: rapid.IntRange(2, 4).Draw(t, "growth"),
			Budget: rapid.SampledFrom([]uint64{0, 20_000}).Draw(t, "limit"),
		})
		times, all, removed := map[uint64]int{}, uint64(0), uint64(0)
		key := rapid.Uint64Range(0, 5000)
		remove := func(key uint64) {
			if times[key] == 0 {
				return
			}
			if !f.RemoveHash(hashOf(key)) {
				t.Fatalf("key %d is in %d times, and cannot be removed", key, times[key])
			}
			times[key]--
			all--
			removed++
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				key := key.Draw(t, "key")
				for range rapid.SampledFrom([]int{1, 1, 1, 2, 17}).Draw(t, "times") {
					if f.AddHash(hashOf(key)) && times[key] > 0 {
						t.Fatalf("key %d is told new again", key)
					}
					times[key]++
					all++
				}
			},
			"add many": func(t *rapid.T) {
				keys := drawKeys(t)
				hashes, isNew := make([]uint64, len(keys)), make([]bool, len(keys))
				for i, key := range keys {
					hashes[i] = hashOf(key)
				}
				f.AddHashes(hashes, isNew)
				for i, key := range keys {
					if isNew[i] && times[key] > 0 {
						t.Fatalf("key %d is told new again", key)
					}
					times[key]++
					all++
				}
			},
			"remove": func(t *rapid.T) { remove(key.Draw(t, "key")) },
			"remove many": func(t *rapid.T) {
				for _, key := range drawKeys(t) {
					remove(key)
				}
			},
			"remove all but some": func(t *rapid.T) {
				keep := rapid.Uint64Range(2, 50).Draw(t, "keep")
				for key := range uint64(5001) {
					for key%keep != 0 && times[key] > 0 {
						remove(key)
					}
				}
			},
			"refuse": func(t *rapid.T) {
				key := key.Draw(t, "key")
				if !f.ContainsHash(hashOf(key)) && f.RemoveHash(hashOf(key)) {
					t.Fatalf("key %d is not contained, and was removed", key)
				}
			},
			"save and load": func(t *rapid.T) { f = reread(t, f, bloom.ReadScalableCounting) },
			"clone": func(t *rapid.T) {
				clone := f.Clone()
				if !clone.Equal(f) || clone.Report() != f.Report() {
					t.Fatal("a clone differs")
				}
				f.Close()
				f = clone
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "dice") == 0 {
					f.Clear()
					clear(times)
					all, removed = 0, 0
				}
			},
			"": func(t *rapid.T) {
				for key, times := range times {
					if count := f.CountHash(hashOf(key)); count < min(times, bloom.MaxCount) {
						t.Fatalf("key %d is in %d times, and Count says %d", key, times, count)
					}
					if times > 0 && !f.ContainsHash(hashOf(key)) {
						t.Fatalf("false negative for %d, which is in %d times", key, times)
					}
				}
				if f.Len() != all || f.Removed() != removed {
					t.Fatalf("%d keys after %d removals, want %d after %d", f.Len(), f.Removed(), all, removed)
				}
				layers := f.Layers()
				newest := layers[len(layers)-1]
				if f.Err() != nil && newest.Added <= newest.Plan.Keys {
					t.Fatalf("%d keys in a layer for %d, and the error is %v", newest.Added, newest.Plan.Keys, f.Err())
				}
				if len(layers) > 1 && layers[0].Added == 0 && f.Saturated() == 0 {
					t.Fatal("the oldest layer is empty, and still there")
				}
				if plan, budget := f.Plan(), f.Config().Budget; plan.Rate > f.Config().Rate || budget > 0 && f.Bytes() > budget {
					t.Fatalf("%v, in %d bytes", plan, f.Bytes())
				}
			},
		})
	})
}
