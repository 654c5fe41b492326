package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/long"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/storetest"
)

var ctx = context.Background()

var allSpecs = []store.Spec{
	{Kind: store.RedisBloom, Capacity: 1000, Rate: 0.01, Public: true},
	{Kind: store.RedisBloom, Capacity: 1000, Rate: 0.001, Growth: 2, Public: true},
	{Kind: store.Paired, Capacity: 1000, Rate: 0.01},
	{Kind: store.Paired, Capacity: 1000, Rate: 0.01, Public: true},
	{Kind: store.Paired, Capacity: 1000, Rate: 0.01, Growth: 2},
	{Kind: store.Window, Capacity: 4000, Rate: 0.01, Span: time.Hour},
	{Kind: store.Window, Capacity: 1000, Rate: 0.01, Growth: 2, Span: time.Hour},
}

var removalSpecs = []store.Spec{
	{Kind: store.Counting, Capacity: 1000, Rate: 0.01},
	{Kind: store.Counting, Capacity: 1000, Rate: 0.001, Growth: 2, Public: true},
	{Kind: store.Cuckoo, Capacity: 4096},
	{Kind: store.Cuckoo, Capacity: 1024, Growth: 1},
}

func open(t testing.TB, config store.LocalConfig) *store.Local {
	t.Helper()
	s, err := store.OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestLocalInMemory(t *testing.T) {
	storetest.Run(t, storetest.Config{
		Open:    func(t *testing.T) store.Store { return open(t, store.LocalConfig{}) },
		Limited: func(t *testing.T, bytes uint64) store.Store { return open(t, store.LocalConfig{Memory: bytes}) },
		Specs:   allSpecs,
		Texts:   true,
		Expiry:  true,
		Swaps:   true,

		Removals: removalSpecs,
	})
}

func TestLocalInDirectory(t *testing.T) {
	for _, level := range []store.Level{store.Always, store.EverySecond, store.Unlogged} {
		t.Run(level.String(), func(t *testing.T) {
			dirs := map[store.Store]string{}
			storetest.Run(t, storetest.Config{
				Open: func(t *testing.T) store.Store {
					dir := t.TempDir()
					s := open(t, store.LocalConfig{Dir: dir, Level: level})
					dirs[s] = dir
					return s
				},
				Reopen: func(t *testing.T, s store.Store) store.Store {
					dir := dirs[s]
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					again := open(t, store.LocalConfig{Dir: dir, Level: level})
					dirs[again] = dir
					return again
				},
				Specs:  allSpecs,
				Texts:  true,
				Expiry: true,
				Swaps:  true,

				Removals: removalSpecs,
			})
		})
	}
}

// TestMillionFilters: a million filters of 100 keys take at most their bits and 300 bytes
// each, everything included.
func TestMillionFilters(t *testing.T) {
	long.Test(t)
	n := 1_000_000
	if store.RaceDetector || testing.Short() {
		n = 1 << 16 // with this number the tables of names are about as full as with a million
	}
	var before, after runtime.MemStats
	s := open(t, store.LocalConfig{})
	spec := store.Spec{Kind: store.RedisBloom, Capacity: 100, Rate: 0.01, Growth: 2}
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		if _, err := s.Create(ctx, fmt.Sprintf("filter:%09d", i), spec); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	f, err := s.Open([]byte("filter:000000000"))
	if err != nil {
		t.Fatal(err)
	}
	bits := f.Info().Layers[0].Bytes
	each := float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse) / float64(n)
	used, _ := s.Usage()
	t.Logf("%d filters of 100 keys: %.0f bytes each: %d of bits and %.0f beside them (the store says %.0f)", n, each, bits, each-float64(bits), float64(used)/float64(n)-float64(bits))
	if over := each - float64(bits); over > 300 {
		t.Errorf("%.0f bytes beside the bits, want at most 300", over)
	}
	if says := float64(used) / float64(n); says < each*0.95 || says > each*1.15 {
		t.Errorf("Usage says %.0f bytes each, and it is %.0f", says, each)
	}
	runtime.KeepAlive(s)
}

// TestOpenIsQuick: Open and Kind do not allocate.
func TestOpenIsQuick(t *testing.T) {
	s := open(t, store.LocalConfig{})
	if _, err := s.Create(ctx, "name", allSpecs[0]); err != nil {
		t.Fatal(err)
	}
	name := []byte("name")
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := s.Open(name); err != nil {
			t.Fatal(err)
		}
		s.Kind(name)
	}); n != 0 {
		t.Errorf("Open allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.Open([]byte("nobody")); !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Open of nothing allocates %v times", n)
	}
}

func BenchmarkOpen(b *testing.B) {
	s := open(b, store.LocalConfig{})
	names := make([][]byte, 1000)
	for i := range names {
		names[i] = fmt.Appendf(nil, "filter:%d", i)
		s.Create(ctx, string(names[i]), allSpecs[0])
	}
	i := 0
	for b.Loop() {
		s.Open(names[i%len(names)])
		i++
	}
}
