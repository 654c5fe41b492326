package store

import (
	"context"
	"fmt"
	"testing"
)

// TestCloseWaitsForSnapshot: a snapshot in progress when the store is closed has the adds
// at the level Unlogged, which are nowhere else.
func TestCloseWaitsForSnapshot(t *testing.T) {
	ctx := context.Background()
	for round := range 5 {
		config := LocalConfig{Dir: t.TempDir(), Level: Unlogged}
		l, err := OpenLocal(config)
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.Create(ctx, "seen", Spec{Kind: Paired, Capacity: 20_000_000, Rate: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		keys := make([][]byte, 1000)
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "key %d", i)
		}
		if _, err := f.Add(ctx, keys, make([]bool, len(keys))); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- l.Snapshot(ctx) }()
		for l.unlogged.Load() { // until the snapshot has begun
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, err = OpenLocal(config); err != nil { // at once, as the next process may
			t.Fatal(err)
		}
		again, err := l.Open([]byte("seen"))
		if err != nil {
			t.Fatal(err)
		}
		found := make([]bool, len(keys))
		if err := again.Contains(ctx, keys, found); err != nil {
			t.Fatal(err)
		}
		if n := countTrue(found); n != len(keys) || again.Info().Items == 0 {
			t.Fatalf("round %d: %d of %d keys are there after an orderly end, %d items", round, n, len(keys), again.Info().Items)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSnapshotTwice takes snapshots with nothing logged in between.
func TestSnapshotTwice(t *testing.T) {
	ctx := context.Background()
	config := LocalConfig{Dir: t.TempDir(), Level: Always}
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := l.Snapshot(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Set(ctx, "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Snapshot(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = OpenLocal(config); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if v, err := l.Get([]byte("k")); string(v) != "v" || err != nil {
		t.Errorf("Get = %q, %v", v, err)
	}
}
