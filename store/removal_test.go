package store

import (
	"fmt"
	"testing"
)

// TestSnapshotExact takes a snapshot of filters of several pieces while keys are added and
// removed, some of the changes reaching from one piece to another, and layers come and go.
// After the process has ended, recovery must find exactly the last state.
func TestSnapshotExact(t *testing.T) {
	for _, spec := range []Spec{
		{Kind: Counting, Capacity: 1_500_000, Rate: 0.01},
		{Kind: Counting, Capacity: 300_000, Rate: 0.01, Growth: 2},
		{Kind: Cuckoo, Capacity: 1 << 21, Growth: 1},
		{Kind: Cuckoo, Capacity: 1 << 20, Growth: 2},
	} {
		t.Run(fmt.Sprint(spec.Kind, " growing by ", spec.Growth), func(t *testing.T) {
			p := newHarness(5, Always, flawNone)
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			f, err := p.store.Create(bg, "f", spec)
			if err != nil {
				t.Fatal(err)
			}
			next := 0 // keys are numbered, and removed in the order in which they were added
			add := func(n int) {
				keys, isNew := make([][]byte, n), make([]bool, n)
				for i := range keys {
					keys[i] = fmt.Append(nil, "key ", next+i)
				}
				if done, err := f.Add(bg, keys, isNew); err != nil || done != n {
					t.Fatal(done, err)
				}
				next += n
			}
			removed := 0
			remove := func(n int) {
				keys, was := make([][]byte, n), make([]bool, n)
				for i := range keys {
					keys[i] = fmt.Append(nil, "key ", removed+i)
				}
				if _, err := f.(Remover).Remove(bg, keys, was); err != nil || countTrue(was) != n {
					t.Fatalf("%d of %d keys were removed, %v", countTrue(was), n, err)
				}
				removed += n
			}
			add(1_000_000)
			layers := len(f.Info().Layers)
			writes := 0
			p.disk.meanwhile = func() {
				add(400)
				remove(5000)
				add(4700)
				writes++
			}
			if err := p.store.Snapshot(bg); err != nil {
				t.Fatal(err)
			}
			p.disk.meanwhile = nil
			remove(700_000 - removed) // a Cuckoo compacts
			add(3000)
			if err := p.store.Commit(bg); err != nil {
				t.Fatal(err)
			}
			want, info := printOf(f), f.Info()
			p.disk = p.disk.restart(false)
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			if f, err = p.store.Open([]byte("f")); err != nil {
				t.Fatal(err)
			}
			if got := printOf(f); got != want || f.Info().Items != info.Items {
				t.Errorf("%d items, and the dump has the checksum %#x, want %d and %#x", f.Info().Items, got, info.Items, want)
			}
			t.Logf("%d writes while the snapshot was taken, %d layers before and %d after, %d items", writes, layers, len(info.Layers), info.Items)
			if writes < 4 {
				t.Error("the snapshot is too small for this test")
			}
			remove(next - removed)
		})
	}
}
