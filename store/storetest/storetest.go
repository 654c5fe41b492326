// Package storetest has the tests that every [store.Store] must pass.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/store"
)

// Config says which store to test.
type Config struct {
	// Open returns a new, empty store. The test closes it.
	Open func(t *testing.T) store.Store

	// Reopen closes a store and opens it again with its contents; nil for stores that
	// end with the process.
	Reopen func(t *testing.T, s store.Store) store.Store

	// Specs are the filters that the store can make, at least one. Each is for at
	// least 1,000 keys.
	Specs []store.Spec

	// Removals are filters whose keys can be removed, each for 1,000 keys.
	Removals []store.Spec

	Limited func(t *testing.T, bytes uint64) store.Store // a store with a memory limit; nil if it has none
	Texts   bool                                         // it keeps plain values
	Expiry  bool                                         // names can expire
	Swaps   bool                                         // names can be swapped
}

var ctx = context.Background()

// Run runs all tests.
func Run(t *testing.T, c Config) {
	for _, spec := range c.Specs {
		t.Run(specName(spec), func(t *testing.T) {
			c.each(t, "Answers", func(t *testing.T, s store.Store) { testAnswers(t, c, s, spec) })
			c.each(t, "OneWinner", func(t *testing.T, s store.Store) { testOneWinner(t, s, spec) })
			c.each(t, "Full", func(t *testing.T, s store.Store) { testFull(t, s, spec) })
			c.each(t, "Handle", func(t *testing.T, s store.Store) { testHandle(t, s, spec) })
			c.each(t, "Dump", func(t *testing.T, s store.Store) { testDump(t, c, s, spec) })
			c.each(t, "Merge", func(t *testing.T, s store.Store) { testMerge(t, c, s, spec) })
			c.each(t, "Fold", func(t *testing.T, s store.Store) { testFold(t, c, s, spec) })
		})
	}
	for _, spec := range c.Removals {
		t.Run(specName(spec), func(t *testing.T) {
			c.each(t, "Remove", func(t *testing.T, s store.Store) { testRemove(t, c, s, spec) })
			c.each(t, "RemoveRace", func(t *testing.T, s store.Store) { testRemoveRace(t, c, s, spec) })
			c.each(t, "RemoveFull", func(t *testing.T, s store.Store) { testRemoveFull(t, c, s, spec) })
			c.each(t, "RemoveDump", func(t *testing.T, s store.Store) { testRemoveDump(t, c, s, spec) })
			c.each(t, "Handle", func(t *testing.T, s store.Store) { testHandle(t, s, spec) })
			c.each(t, "NoMerge", func(t *testing.T, s store.Store) { testNoMerge(t, s, spec) })
		})
	}
	c.each(t, "Names", func(t *testing.T, s store.Store) { testNames(t, c, s) })
	c.each(t, "List", func(t *testing.T, s store.Store) { testList(t, c, s) })
	c.each(t, "Bad", func(t *testing.T, s store.Store) { testBad(t, c, s) })
	if c.Swaps {
		c.each(t, "Swap", func(t *testing.T, s store.Store) { testSwap(t, c, s) })
	}
	if c.Texts {
		c.each(t, "Texts", func(t *testing.T, s store.Store) { testTexts(t, c, s) })
	}
	if c.Expiry {
		c.each(t, "Expiry", func(t *testing.T, s store.Store) { testExpiry(t, c, s) })
	}
	if c.Limited != nil {
		t.Run("Memory", func(t *testing.T) { testMemory(t, c) })
	}
}

func (c Config) each(t *testing.T, name string, test func(t *testing.T, s store.Store)) {
	t.Run(name, func(t *testing.T) {
		s := c.Open(t)
		test(t, s)
	})
}

// reopened returns the store after reopening it, if it can be reopened.
func (c Config) reopened(t *testing.T, s store.Store) store.Store {
	t.Helper()
	if c.Reopen == nil {
		return s
	}
	return c.Reopen(t, s)
}

func specName(s store.Spec) string {
	name := s.Kind.String()
	if s.Growth != 0 {
		name += " growing"
	}
	if s.Public {
		name += " public"
	}
	return name
}

// Keys returns n different keys, which depend on the name.
func Keys(name string, n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "%s/%d", name, i)
	}
	return keys
}

func create(t *testing.T, s store.Store, name string, spec store.Spec) store.Filter {
	t.Helper()
	f, err := s.Create(ctx, name, spec)
	if err != nil {
		t.Fatalf("Create(%q, %+v): %v", name, spec, err)
	}
	return f
}

func open(t *testing.T, s store.Store, name string) store.Filter {
	t.Helper()
	f, err := s.Open([]byte(name))
	if err != nil {
		t.Fatalf("Open(%q): %v", name, err)
	}
	return f
}

func add(t *testing.T, f store.Filter, keys [][]byte) []bool {
	t.Helper()
	isNew := make([]bool, len(keys))
	n, err := f.Add(ctx, keys, isNew)
	if err != nil || n != len(keys) {
		t.Fatalf("Add of %d keys: %d, %v", len(keys), n, err)
	}
	return isNew
}

func countTrue(answers []bool) (n int) {
	for _, is := range answers {
		if is {
			n++
		}
	}
	return n
}

func count(t *testing.T, s store.Store) int {
	t.Helper()
	n, err := s.Len()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// mustHave fails unless all keys are found.
func mustHave(t *testing.T, f store.Filter, keys [][]byte) {
	t.Helper()
	found := make([]bool, len(keys))
	if err := f.Contains(ctx, keys, found); err != nil {
		t.Fatal(err)
	}
	for i, is := range found {
		if !is {
			t.Fatalf("%q was added and is not found, as %d of %d", keys[i], len(keys)-countTrue(found), len(keys))
		}
	}
}

func mustNotFind(t *testing.T, s store.Store, name string) {
	t.Helper()
	if _, err := s.Open([]byte(name)); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("Open(%q): %v, want %v", name, err, store.ErrNotFound)
	}
	if kind, expires, err := s.Kind([]byte(name)); kind != store.None || !expires.IsZero() || err != nil {
		t.Fatalf("Kind(%q) = %v, %v, %v", name, kind, expires, err)
	}
}

func commit(t *testing.T, s store.Store) {
	t.Helper()
	if err := s.Commit(ctx); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

// testAnswers: keys are new once, then found; hardly any other key is found; counts are
// right; and all this holds after reopening.
func testAnswers(t *testing.T, c Config, s store.Store, spec store.Spec) {
	f := create(t, s, "f", spec)
	keys := Keys("in", 900)
	if n := countTrue(add(t, f, keys)); n < 880 {
		t.Errorf("%d of %d keys were new", n, len(keys))
	}
	for i, isNew := range add(t, f, keys) {
		if isNew {
			t.Fatalf("%q was new again", keys[i])
		}
	}
	commit(t, s)
	items := f.Info().Items
	for range 2 {
		f = open(t, s, "f")
		mustHave(t, f, keys)
		out := Keys("out", 10_000)
		found := make([]bool, len(out))
		if err := f.Contains(ctx, out, found); err != nil {
			t.Fatal(err)
		}
		if n := countTrue(found); float64(n) > 1.5*spec.Rate*float64(len(out))+10 {
			t.Errorf("%d of %d strangers are found, at a rate of %v", n, len(out), spec.Rate)
		}
		info := f.Info()
		if info.Kind != spec.Kind || info.Capacity != spec.Capacity || info.Growth != spec.Growth || info.Span != spec.Span {
			t.Errorf("Info says %+v of %+v", info.Spec, spec)
		}
		if info.Rate < spec.Rate*0.999 || info.Rate > spec.Rate*1.001 {
			t.Errorf("Info says rate %v of %v", info.Rate, spec.Rate)
		}
		if info.Items != items || info.Items < 880 || info.Items > 900 {
			t.Errorf("Info says %d items, before %d, of 900", info.Items, items)
		}
		if info.Bytes == 0 || len(info.Layers) == 0 || info.Room < spec.Capacity {
			t.Errorf("Info says %+v", info)
		}
		if r := f.Report(); r.Keys < 850 || r.Keys > 950 || r.Added != items {
			t.Errorf("Report says %v keys, %d added", r.Keys, r.Added)
		}
		if kind, _, _ := s.Kind([]byte("f")); kind != spec.Kind || count(t, s) != 1 {
			t.Errorf("kind %v of %d names", kind, count(t, s))
		}
		s = c.reopened(t, s)
	}
	if n := countTrue(add(t, open(t, s, "f"), keys)); n != 0 {
		t.Errorf("%d keys are new at last", n)
	}
}

// testOneWinner: of several goroutines that add a key at once, one is told that it is
// new.
func testOneWinner(t *testing.T, s store.Store, spec store.Spec) {
	f := create(t, s, "f", spec)
	keys := Keys("raced", 800)
	const racers = 4
	isNew := [racers][]bool{}
	var wait sync.WaitGroup
	for r := range racers {
		isNew[r] = make([]bool, len(keys))
		wait.Go(func() {
			size := []int{1, 7, 64, 800}[r]
			for from := 0; from < len(keys); from += size {
				end := min(from+size, len(keys))
				if _, err := f.Add(ctx, keys[from:end], isNew[r][from:end]); err != nil {
					t.Error(err)
				}
				if err := s.Commit(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	won := 0
	for i, key := range keys {
		winners := 0
		for r := range racers {
			if isNew[r][i] {
				winners++
			}
		}
		won += winners
		if winners > 1 {
			t.Errorf("%q was new to %d of %d", key, winners, racers)
		}
	}
	if items := f.Info().Items; items != uint64(won) || won < 780 {
		t.Errorf("%d items, but %d were new", items, won)
	}
	mustHave(t, f, keys)
}

// testFull: without growth, new keys beyond the capacity are refused and old ones
// accepted; with growth all are accepted.
func testFull(t *testing.T, s store.Store, spec store.Spec) {
	f := create(t, s, "f", spec)
	keys := Keys("many", int(spec.Capacity)*3)
	isNew := make([]bool, len(keys))
	n, err := f.Add(ctx, keys, isNew)
	if spec.Growth != 0 {
		if err != nil || n != len(keys) {
			t.Fatalf("Add: %d of %d, %v", n, len(keys), err)
		}
		mustHave(t, f, keys)
		if len(f.Info().Layers) < 2 {
			t.Errorf("%d layers", len(f.Info().Layers))
		}
		return
	}
	if !errors.Is(err, store.ErrFull) || uint64(countTrue(isNew[:n])) != spec.Capacity {
		t.Fatalf("Add: %d keys, of which %d new, %v; want %d new, then %v", n, countTrue(isNew[:n]), err, spec.Capacity, store.ErrFull)
	}
	mustHave(t, f, keys[:n])
	add(t, f, keys[:n]) // old keys
	answers := make([]bool, 2)
	if m, err := f.Add(ctx, [][]byte{keys[0], keys[n]}, answers); m != 1 || !errors.Is(err, store.ErrFull) || answers[0] {
		t.Errorf("an old key and a new one: %d, %v, %v", m, answers, err)
	}
}

// testHandle: a filter ends with its name, but survives a rename.
func testHandle(t *testing.T, s store.Store, spec store.Spec) {
	f := create(t, s, "e", spec)
	keys := Keys("kept", 200)
	add(t, f, keys[:100])
	if err := s.Rename(ctx, "e", "f"); err != nil {
		t.Fatal(err)
	}
	add(t, f, keys[100:])
	mustHave(t, f, keys)
	if n, err := s.Drop(ctx, "f", "f", "g"); n != 1 || err != nil {
		t.Fatalf("Drop: %d, %v", n, err)
	}
	mustNotFind(t, s, "f")
	mustBeGone(t, s, f, spec)
	for what, end := range map[string]func(name string) error{
		"renamed over": func(name string) error {
			create(t, s, "other", spec)
			return s.Rename(ctx, "other", name)
		},
		"cleared": func(string) error { return s.Clear(ctx) },
	} {
		f := create(t, s, what, spec)
		add(t, f, keys[:10])
		if err := end(what); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		mustBeGone(t, s, f, spec)
	}
	g := create(t, s, "f", spec)
	found := make([]bool, len(keys))
	g.Contains(ctx, keys, found)
	if n := countTrue(found); n > 20 {
		t.Errorf("the new filter has %d keys of the old one", n)
	}
	commit(t, s)
}

// mustBeGone fails unless a filter that has lost its name returns errors that say so.
func mustBeGone(t *testing.T, s store.Store, f store.Filter, spec store.Spec) {
	t.Helper()
	keys := Keys("late", 3)
	if n, err := f.Add(ctx, keys, make([]bool, len(keys))); n != 0 || !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Add to a filter that was dropped: %d, %v", n, err)
	}
	if err := f.Contains(ctx, keys, make([]bool, len(keys))); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Contains: %v", err)
	}
	if _, _, err := f.Dump(0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Dump: %v", err)
	}
	if err := f.Load(ctx, 2, []byte("x")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Load: %v", err)
	}
	if err := f.Fold(ctx, 2); !errors.Is(err, store.ErrNotFound) && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Fold: %v", err)
	}
	if err := f.Merge(ctx, create(t, s, "merged", spec)); !errors.Is(err, store.ErrNotFound) && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Merge: %v", err)
	}
	s.Drop(ctx, "merged")
	if info, report := f.Info(), f.Report(); info.Kind != store.None || info.Items != 0 || report.Added != 0 {
		t.Errorf("Info says %+v, Report %+v", info, report)
	}
}

// testDump: a filter restored from its chunks equals the original.
func testDump(t *testing.T, c Config, s store.Store, spec store.Spec) {
	f := create(t, s, "from", spec)
	keys := Keys("dumped", 900)
	add(t, f, keys)
	type piece struct {
		iterator int64
		chunk    []byte
	}
	var pieces []piece
	for iterator := int64(0); ; {
		next, chunk, err := f.Dump(iterator)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip("the store says that it does not dump")
		}
		if err != nil {
			t.Fatal(err)
		}
		if next == 0 {
			if len(chunk) != 0 {
				t.Errorf("the end has %d bytes", len(chunk))
			}
			break
		}
		pieces = append(pieces, piece{next, slices.Clone(chunk)})
		iterator = next
	}
	if len(pieces) < 2 || pieces[0].iterator != 1 {
		t.Fatalf("%d chunks, the first with iterator %d", len(pieces), pieces[0].iterator)
	}
	g, err := s.Load(ctx, "to", pieces[0].chunk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(ctx, "to", pieces[0].chunk); !errors.Is(err, store.ErrExists) {
		t.Errorf("loading over it: %v", err)
	}
	if err := g.Load(ctx, pieces[1].iterator+1000, pieces[1].chunk); !errors.Is(err, store.ErrChunk) {
		t.Errorf("a chunk in the wrong place: %v", err)
	}
	for i, p := range pieces[1:] {
		if err := open(t, s, "to").Load(ctx, p.iterator, p.chunk); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			commit(t, s)
			s = c.reopened(t, s)
		}
	}
	commit(t, s)
	s = c.reopened(t, s)
	f, g = open(t, s, "from"), open(t, s, "to")
	mustHave(t, g, keys)
	a, b := f.Info(), g.Info()
	if a.Items != b.Items || a.Capacity != b.Capacity || a.Kind != b.Kind || f.Report().Fill != g.Report().Fill {
		t.Errorf("%+v, fill %v, came out as %+v, fill %v", a, f.Report().Fill, b, g.Report().Fill)
	}
	for i := range pieces[0].chunk {
		damaged := slices.Clone(pieces[0].chunk)
		damaged[i] ^= 0x10
		if bad, err := s.Load(ctx, "bad", damaged); err == nil {
			bad.Info()
			s.Drop(ctx, "bad") // a header that means something else
		} else if !errors.Is(err, store.ErrChunk) && !errors.Is(err, store.ErrMemory) {
			t.Errorf("byte %d of the header damaged: %v", i, err)
		}
	}
	for _, header := range [][]byte{nil, []byte("x"), pieces[0].chunk[:len(pieces[0].chunk)-1]} {
		if _, err := s.Load(ctx, "bad", header); !errors.Is(err, store.ErrChunk) {
			t.Errorf("a header of %d bytes: %v", len(header), err)
		}
	}
}

// testMerge: the keys of both filters are found.
func testMerge(t *testing.T, c Config, s store.Store, spec store.Spec) {
	a, b := create(t, s, "a", spec), create(t, s, "b", spec)
	keys := Keys("merged", 600)
	add(t, a, keys[:400])
	add(t, b, keys[200:])
	err := a.Merge(ctx, b)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	add(t, a, Keys("more", 50))
	commit(t, s)
	if err := a.Merge(ctx, a); err != nil {
		t.Errorf("merging with itself: %v", err)
	}
	other := spec
	other.Capacity *= 3
	if err := a.Merge(ctx, create(t, s, "c", other)); !errors.Is(err, bloom.ErrUnlike) {
		t.Errorf("merging a filter of another size: %v", err)
	}
	s.Drop(ctx, "b")
	if err := a.Merge(ctx, b); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("merging a filter without name: %v", err)
	}
	items := a.Info().Items
	if items < 630 || items > 670 {
		t.Errorf("%d items, of 650", items)
	}
	commit(t, s)
	s = c.reopened(t, s)
	mustHave(t, open(t, s, "a"), keys)
	if got := open(t, s, "a").Info().Items; got != items {
		t.Errorf("%d items after reopening, %d before", got, items)
	}
}

// testFold: all keys are found in less space.
func testFold(t *testing.T, c Config, s store.Store, spec store.Spec) {
	f := create(t, s, "f", spec)
	spec.Capacity = 5_000_000
	large := create(t, s, "large", spec)
	keys := Keys("folded", 500)
	add(t, f, keys)
	add(t, large, keys)
	err := large.Fold(ctx, 4)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Fold(ctx, 1_000_003); err == nil {
		t.Error("folded by more than there is")
	}
	add(t, large, Keys("later", 50))
	bytes := large.Info().Layers[0].Bytes
	if whole := create(t, s, "whole", spec).Info().Layers[0].Bytes; bytes != whole/4 {
		t.Errorf("%d bytes, folded from %d", bytes, whole)
	}
	commit(t, s)
	s = c.reopened(t, s)
	large = open(t, s, "large")
	mustHave(t, large, keys)
	mustHave(t, large, Keys("later", 50))
	if got := large.Info().Layers[0].Bytes; got != bytes {
		t.Errorf("%d bytes after reopening, %d before", got, bytes)
	}
	if items := large.Info().Items; items < 545 || items > 550 {
		t.Errorf("%d items of 550", items)
	}
}

// testBad: invalid specs are refused.
func testBad(t *testing.T, c Config, s store.Store) {
	spec := c.Specs[0]
	for what, change := range map[string]func(*store.Spec){
		"no kind":      func(s *store.Spec) { s.Kind = store.None },
		"text":         func(s *store.Spec) { s.Kind = store.String },
		"unknown kind": func(s *store.Spec) { s.Kind = 200 },
		"rate 1":       func(s *store.Spec) { s.Rate = 1 },
		"rate -1":      func(s *store.Spec) { s.Rate = -1 },
	} {
		bad := spec
		change(&bad)
		if f, err := s.Create(ctx, "bad", bad); err == nil {
			t.Errorf("%s: made %+v", what, f.Info())
		}
		mustNotFind(t, s, "bad")
	}
	if count(t, s) != 0 {
		t.Errorf("%d names", count(t, s))
	}
	if err := s.Commit(ctx); err != nil {
		t.Error(err)
	}
}

var soon = 30 * time.Millisecond
