package store

import (
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/bloomery/bloom"
)

// TestSnapshotExact takes a snapshot of filters of several pieces while keys are added and
// removed, some of the changes reaching from one piece to another, and layers come and go.
// After the process has ended, recovery must find exactly the last state.
func TestSnapshotExact(t *testing.T) {
	for _, spec := range []Spec{
		{Kind: Counting, Capacity: 1_500_000, Rate: 0.01},
		{Kind: Counting, Capacity: 150_000, Rate: 0.01, Growth: 2},
		{Kind: Cuckoo, Capacity: 1 << 20, Growth: 1},
		{Kind: Cuckoo, Capacity: 1 << 19, Growth: 2},
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
			add(500_000)
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
			remove(350_000 - removed) // a Cuckoo compacts
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

// TestRunTorn adds and removes keys of several layers in one call, and ends the log at each
// of the bytes that it wrote. Recovery must find what the first few of the keys leave: their
// counters, and a count that fits. The log had, with the first record of a run, how many
// keys its layer has after the last one.
func TestRunTorn(t *testing.T) {
	for _, remove := range []bool{false, true} {
		t.Run(fmt.Sprint("remove: ", remove), func(t *testing.T) {
			key := func(i int) []byte { return fmt.Append(nil, "key ", i) }
			begin := func() (*harness, Filter) {
				p := newHarness(1, Always, flawNone)
				if err := p.open(); err != nil {
					t.Fatal(err)
				}
				f, err := p.store.Create(bg, "f", Spec{Kind: Counting, Capacity: 10, Rate: 0.01, Growth: 2, Public: true})
				if err != nil {
					t.Fatal(err)
				}
				var keys [][]byte
				for i := range 300 {
					keys = append(keys, key(i))
				}
				if _, err := f.Add(bg, keys, make([]bool, len(keys))); err != nil {
					t.Fatal(err)
				}
				if err := p.store.Commit(bg); err != nil {
					t.Fatal(err)
				}
				return p, f
			}
			var run [][]byte // keys of the first layer and of others, in turn
			for i := range 4 {
				run = append(run, key(i), key(299-i))
			}
			do := func(f Filter, keys [][]byte) {
				n, err := 0, error(nil)
				if answers := make([]bool, len(keys)); remove {
					n, err = f.(Remover).Remove(bg, keys, answers)
				} else {
					n, err = f.Add(bg, keys, answers)
				}
				if err != nil || n != len(keys) {
					t.Fatal(n, err)
				}
			}
			type state struct {
				print uint32
				items uint64
			}
			var states []state
			for n := range len(run) + 1 {
				p, f := begin()
				do(f, run[:n])
				states = append(states, state{printOf(f), f.Info().Items})
				p.store.Close()
			}
			p, f := begin()
			names, _ := p.disk.List()
			name := segmentName(starts(names, segmentPrefix)[0])
			from := len(p.disk.cached[name].cache)
			do(f, run)
			if err := p.store.Commit(bg); err != nil {
				t.Fatal(err)
			}
			whole := p.disk.cached[name].cache
			found := map[state]bool{}
			for end := from; end <= len(whole); end++ {
				q := p.again()
				q.disk.cached[name].cache = slices.Clone(whole[:end])
				if err := q.open(); err != nil {
					t.Fatal(err)
				}
				f, err := q.store.Open([]byte("f"))
				if err != nil {
					t.Fatal(err)
				}
				got := state{printOf(f), f.Info().Items}
				if found[got] = true; !slices.Contains(states, got) {
					t.Fatalf("with %d of %d bytes of the run it has %d items, of %d before and %d after it, and no first keys leave that", end-from, len(whole)-from, got.items, states[0].items, states[len(run)].items)
				}
				q.store.Close()
			}
			if len(found) < 4 {
				t.Errorf("there were %d states, so the run was one record", len(found))
			}
		})
	}
}

// twin is a copy of a growing counting filter. What changes that one in one call changes its
// twin a key at a time: as the log has a record for each layer, the first few keys may be
// there after a crash.
type twin struct {
	*bloom.ScalableCounting
	spec Spec
}

// twinOf returns nil for other filters.
func twinOf(f Filter) *twin {
	if p, ok := f.(*value).body.(*paired); ok {
		if bits, ok := p.now().(*bloom.ScalableCounting); ok {
			return &twin{bits.Clone(), p.spec}
		}
	}
	return nil
}

// print is printOf.
func (t *twin) print() uint32 {
	file, err := t.MarshalBinary()
	if err != nil {
		panic(err)
	}
	header := DumpHeader{Spec: t.spec, Key: t.HashIdentity().Key, Items: t.Len(), Bytes: uint64(len(file))}
	return crc32.Update(crc32.Checksum(header.Encode(), castagnoli), castagnoli, file)
}

// TestCompactTorn removes keys in one call, so that the filter compacts, and ends the log at
// each of the records that this takes, and within them: all of them count, or none.
func TestCompactTorn(t *testing.T) {
	defer func(most int) { mostSlots = most }(mostSlots)
	mostSlots = 8
	p := newHarness(1, Always, flawNone)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	f, err := p.store.Create(bg, "f", Spec{Kind: Cuckoo, Capacity: 64, Growth: 1})
	if err != nil {
		t.Fatal(err)
	}
	var keys [][]byte
	for i := range 300 {
		keys = append(keys, fmt.Append(nil, "key ", i))
	}
	if _, err := f.Add(bg, keys, make([]bool, len(keys))); err != nil {
		t.Fatal(err)
	}
	p.store.Commit(bg)
	names, _ := p.disk.List()
	name := segmentName(starts(names, segmentPrefix)[0])
	from := len(p.disk.cached[name].cache)
	before, layers := printOf(f), len(f.Info().Layers)
	if _, err := f.(Remover).Remove(bg, keys[:150], make([]bool, 150)); err != nil {
		t.Fatal(err)
	}
	p.store.Commit(bg)
	if now := len(f.Info().Layers); now >= layers {
		t.Fatalf("%d layers, before %d: it was not compacted", now, layers)
	}
	whole, after, last := p.disk.cached[name].cache, printOf(f), before
	for end := from; end <= len(whole); end += 1 + (len(whole)-end)/9 {
		q := p.again()
		q.disk.cached[name].cache = slices.Clone(whole[:end])
		if err := q.open(); err != nil {
			t.Fatal(err)
		}
		f, err := q.store.Open([]byte("f"))
		if err != nil {
			t.Fatal(err)
		}
		got := printOf(f)
		if got == after {
			last = after
		}
		if got != last {
			t.Fatalf("with %d of %d bytes the dump has the checksum %#x, before it was %#x, and at last %#x", end-from, len(whole)-from, got, before, after)
		}
	}
	if last != after {
		t.Error("the whole log does not have the removals")
	}
}
