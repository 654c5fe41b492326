package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/store"
)

func remove(t *testing.T, f store.Filter, keys [][]byte) []bool {
	t.Helper()
	removed := make([]bool, len(keys))
	n, err := f.(store.Remover).Remove(ctx, keys, removed)
	if err != nil || n != len(keys) {
		t.Fatalf("Remove of %d keys: %d, %v", len(keys), n, err)
	}
	return removed
}

// removeAll fails unless all keys were there.
func removeAll(t *testing.T, f store.Filter, keys [][]byte) {
	t.Helper()
	if removed := remove(t, f, keys); countTrue(removed) != len(keys) {
		t.Fatalf("%d of %d keys were removed", countTrue(removed), len(keys))
	}
}

func counts(t *testing.T, f store.Filter, keys [][]byte) []int {
	t.Helper()
	counts := make([]int, len(keys))
	if err := f.(store.Remover).Count(ctx, keys, counts); err != nil {
		t.Fatal(err)
	}
	return counts
}

// testRemove: keys are there as often as they were added and not removed; what is certainly
// not there is refused; and all this holds after reopening, many times over.
func testRemove(t *testing.T, c Config, s store.Store, spec store.Spec) {
	f := create(t, s, "f", spec)
	keys := Keys("in", 600)
	add(t, f, keys)
	add(t, f, keys[:100])
	rng := rand.New(rand.NewPCG(1, 9))
	items := uint64(700)
	for round := range 6 {
		mustHave(t, f, keys)
		for i, n := range counts(t, f, keys) {
			if want := 1 + (max(0, 100-i)+99)/100; n < want {
				t.Fatalf("round %d: key %d counts %d, want %d", round, i, n, want)
			}
		}
		// Churn: ten times as many keys as there are come and go.
		for range 10 {
			others := Keys("out", 200+rng.IntN(50))
			add(t, f, others)
			removeAll(t, f, others)
		}
		half := keys[round*20:][:20] // of the keys that are there twice, or once
		removeAll(t, f, half)
		add(t, f, half)
		info := f.Info()
		if info.Items != items || info.Kind != spec.Kind || info.Capacity != spec.Capacity || info.Growth != spec.Growth || info.Stuck != 0 {
			t.Errorf("round %d: Info says %+v of %+v with %d keys", round, info, spec, items)
		}
		if r := f.Report(); r.Keys < 500 || r.Keys > 750 || r.Rate <= 0 || r.Rate > 0.1 {
			t.Errorf("round %d: Report says %+v", round, r)
		}
		strangers := Keys("strangers", 1000)
		found := make([]bool, len(strangers))
		if err := f.Contains(ctx, strangers, found); err != nil {
			t.Fatal(err)
		}
		strangers = slices.DeleteFunc(strangers, func(key []byte) bool {
			one := make([]bool, 1)
			f.Contains(ctx, [][]byte{key}, one)
			return one[0] // by mistake: it must not be removed
		})
		if len(strangers) < 900 {
			t.Errorf("round %d: %d of 1000 strangers are found", round, 1000-len(strangers))
		}
		before := f.Info().Refused
		if n := countTrue(remove(t, f, strangers)); n != 0 || f.Info().Refused != before+uint64(len(strangers)) {
			t.Errorf("round %d: %d of %d strangers were removed, and %d refused", round, n, len(strangers), f.Info().Refused-before)
		}
		commit(t, s)
		s = c.reopened(t, s)
		f = open(t, s, "f")
		if got := f.Info().Items; got != items {
			t.Fatalf("round %d: %d items after reopening, want %d", round, got, items)
		}
	}
	removeAll(t, f, keys[:100])
	mustHave(t, f, keys)
	removeAll(t, f, keys)
	if info := f.Info(); info.Items != 0 || info.Removed < 700 {
		t.Errorf("all keys were removed, and Info says %+v", info)
	}
	for _, f := range []store.Filter{f, open(t, c.reopened(t, s), "f")} {
		found := make([]bool, len(keys))
		if err := f.Contains(ctx, keys, found); err != nil || countTrue(found) != 0 {
			t.Errorf("%d keys are found when all were removed, %v", countTrue(found), err)
		}
	}
}

// testRemoveRace: goroutines add and remove keys of their own at once, and look up those that
// stay.
func testRemoveRace(t *testing.T, c Config, s store.Store, spec store.Spec) {
	f := create(t, s, "f", spec)
	staying := Keys("staying", 300)
	add(t, f, staying)
	var wait sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		wait.Go(func() {
			for round := range 30 {
				keys := Keys(name, 1+round*5)
				add(t, f, keys)
				mustHave(t, f, keys)
				if round%3 == 0 {
					commit(t, s)
				}
				removeAll(t, f, keys)
			}
		})
	}
	wait.Go(func() {
		for range 50 {
			mustHave(t, f, staying)
			counts(t, f, staying[:10])
			f.Info()
		}
		f.Report()
	})
	wait.Go(func() {
		if snap, ok := s.(store.Snapshotter); ok {
			for range 5 {
				if err := snap.Snapshot(ctx); err != nil && !errors.Is(err, errors.ErrUnsupported) {
					t.Error(err)
				}
			}
		}
	})
	wait.Wait()
	if items := f.Info().Items; items != 300 {
		t.Errorf("%d items, want 300", items)
	}
	f = open(t, c.reopened(t, s), "f")
	mustHave(t, f, staying)
	if items := f.Info().Items; items != 300 {
		t.Errorf("%d items after reopening, want 300", items)
	}
}

// testRemoveFull: without growth, keys beyond the capacity are refused until others have been
// removed; with growth there is always room.
func testRemoveFull(t *testing.T, c Config, s store.Store, spec store.Spec) {
	f := create(t, s, "f", spec)
	keys := Keys("many", int(spec.Capacity)*5)
	isNew := make([]bool, len(keys))
	n, err := f.Add(ctx, keys, isNew)
	mustHave(t, f, keys[:n])
	if spec.Growth != 0 {
		if err != nil || n != len(keys) || len(f.Info().Layers) < 2 {
			t.Fatalf("Add: %d of %d, %v, and %d layers", n, len(keys), err, len(f.Info().Layers))
		}
		removeAll(t, f, keys[:len(keys)-100])
		mustHave(t, f, keys[len(keys)-100:])
		commit(t, s)
		f = open(t, c.reopened(t, s), "f")
		mustHave(t, f, keys[len(keys)-100:])
		removeAll(t, f, keys[len(keys)-100:])
		if info := f.Info(); info.Items != 0 {
			t.Errorf("all keys were removed, and Info says %+v", info)
		}
		return
	}
	if !errors.Is(err, store.ErrFull) || n < int(spec.Capacity)/2 || spec.Kind == store.Counting && n != int(spec.Capacity) {
		t.Fatalf("Add: %d of %d keys, %v", n, len(keys), err)
	}
	removeAll(t, f, keys[:100])
	add(t, f, keys[n:][:10])
	mustHave(t, f, keys[100:n+10])
}

// testRemoveDump: a dump has all keys, and the copy behaves as the original.
func testRemoveDump(t *testing.T, c Config, s store.Store, spec store.Spec) {
	f := create(t, s, "f", spec)
	keys := Keys("in", 900)
	add(t, f, keys)
	removeAll(t, f, keys[:200])
	iterator, header, err := f.Dump(0)
	if err != nil {
		t.Fatal(err)
	}
	var g store.Filter
	if spec.Kind == store.Cuckoo {
		g, err = s.(store.Nester).LoadCuckoo(ctx, "g", header)
	} else {
		g, err = s.Load(ctx, "g", header)
	}
	if err != nil {
		t.Fatal(err)
	}
	for {
		next, chunk, err := f.Dump(iterator)
		if err != nil {
			t.Fatal(err)
		}
		if next == 0 {
			break
		}
		if err := g.Load(ctx, next, chunk); err != nil {
			t.Fatal(err)
		}
		iterator = next
	}
	commit(t, s)
	for range 2 {
		g = open(t, s, "g")
		mustHave(t, g, keys[200:])
		if info := g.Info(); info.Items != 700 || info.Kind != spec.Kind {
			t.Errorf("the copy says %+v", info)
		}
		s = c.reopened(t, s)
	}
	g = open(t, s, "g")
	removeAll(t, g, keys[200:])
	if items := g.Info().Items; items != 0 {
		t.Errorf("all keys of the copy were removed, and it counts %d", items)
	}
	mustHave(t, open(t, s, "f"), keys[200:])
}

// testNoMerge: what these filters cannot do is refused.
func testNoMerge(t *testing.T, s store.Store, spec store.Spec) {
	f, g := create(t, s, "f", spec), create(t, s, "g", spec)
	if err := f.Merge(ctx, g); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Merge: %v", err)
	}
	if err := f.Fold(ctx, 2); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Fold: %v", err)
	}
	h := create(t, s, "h", store.Spec{Kind: store.Paired, Capacity: 1000, Rate: 0.01})
	if _, err := h.(store.Remover).Remove(ctx, Keys("k", 1), make([]bool, 1)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Remove from a filter of bits: %v", err)
	}
	if err := f.Merge(ctx, h); !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, bloom.ErrUnlike) {
		t.Errorf("Merge of a filter of bits: %v", err)
	}
}
