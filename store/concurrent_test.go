package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// These tests run operations during another caller's snapshot, merge, fold, dump or load,
// and fail if they have to wait for it.

// soon fails unless do returns nil within 20 seconds.
func soon(t *testing.T, what string, do func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s waits", what)
	}
}

func someKeys(name string, n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "%s %d", name, i)
	}
	return keys
}

func addKeys(f Filter, keys [][]byte) error {
	_, err := f.Add(bg, keys, make([]bool, len(keys)))
	return err
}

func hasKeys(f Filter, keys [][]byte) error {
	found := make([]bool, len(keys))
	if err := f.Contains(bg, keys, found); err != nil {
		return err
	}
	if n := countTrue(found); n < len(keys) {
		return fmt.Errorf("%d of %d keys are not found", len(keys)-n, len(keys))
	}
	return nil
}

// everything does everything short that a client may do, with filters that a long
// operation uses, and with others.
func everything(t *testing.T, l *Local, round int, filters ...Filter) {
	t.Helper()
	keys := someKeys(fmt.Sprint("meanwhile ", round), 20)
	for i, f := range filters {
		soon(t, fmt.Sprint("adding to filter ", i), func() error { return addKeys(f, keys) })
		soon(t, fmt.Sprint("asking filter ", i), func() error { return hasKeys(f, keys) })
		soon(t, "Info", func() error { f.Info(); f.Report(); return nil })
		soon(t, "dumping", func() error { _, _, err := f.Dump(0); return err })
	}
	name := fmt.Sprint("new ", round)
	soon(t, "creating", func() error { _, err := l.Create(bg, name, Spec{Kind: Paired, Capacity: 100, Rate: 0.01}); return err })
	soon(t, "renaming", func() error { return l.Rename(bg, name, name+"er") })
	soon(t, "setting", func() error { return l.Set(bg, name, []byte("x")) })
	soon(t, "swapping", func() error { return l.Swap(bg, name, name+"er") })
	soon(t, "expiring", func() error { return l.Expire(bg, name, l.now().Add(time.Hour)) })
	soon(t, "dropping", func() error { _, err := l.Drop(bg, name, name+"er"); return err })
	soon(t, "committing", func() error { return l.Commit(bg) })
}

// TestDuringSnapshot: while a snapshot is stuck, a merge and a fold wait for it. Nothing
// else does.
func TestDuringSnapshot(t *testing.T) {
	disk := newCrashDisk(rand.New(rand.NewPCG(1, 2)))
	l, err := OpenLocal(LocalConfig{Level: Always, seams: seams{disk: disk, idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	var filters []Filter
	for i, spec := range append(slices.Clone(modelSpecs), modelSpecs[2]) {
		spec.Capacity *= 10
		f, err := l.Create(bg, fmt.Sprint(i), spec)
		if err == nil {
			err = addKeys(f, someKeys("before", 10))
		}
		if err != nil {
			t.Fatal(err)
		}
		filters = append(filters, f)
	}
	stuck, resume := make(chan bool), make(chan bool)
	first := true
	disk.meanwhile = func() {
		if first {
			first = false
			stuck <- true
			<-resume
		}
	}
	done := make(chan error, 3)
	go func() { done <- l.Snapshot(bg) }()
	<-stuck
	go func() { done <- filters[2].Merge(bg, filters[len(filters)-1]) }()
	go func() { done <- filters[2].Fold(bg, 1) }()
	for round := range 3 {
		everything(t, l, round, filters[0], filters[2], filters[3], filters[4])
	}
	select {
	case err := <-done:
		t.Errorf("a merge or fold did not wait for the snapshot: %v", err)
	default:
	}
	close(resume)
	for range 3 {
		soon(t, "what waited", func() error { return <-done })
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDuringMerge: while filters are merged, or one is folded, everything else continues.
// Keys added meanwhile are found at the end, and after the store is reopened.
func TestDuringMerge(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		do   func(a, b Filter) error
	}{
		"merge RedisBloom": {Spec{Kind: RedisBloom, Capacity: 200_000, Rate: 0.01}, func(a, b Filter) error { return a.Merge(bg, b) }},
		"merge paired":     {Spec{Kind: Paired, Capacity: 3_000_000, Rate: 0.01}, func(a, b Filter) error { return a.Merge(bg, b) }},
		"fold":             {Spec{Kind: Paired, Capacity: 3_000_000, Rate: 0.01}, func(a, b Filter) error { return a.Fold(bg, 2) }},
	} {
		t.Run(name, func(t *testing.T) {
			var l *Local
			var a, b Filter
			round := 0
			config := LocalConfig{Dir: t.TempDir(), seams: seams{idle: true}}
			config.between = func() {
				if round < 4 {
					round++
					everything(t, l, round, a, b)
				}
			}
			l, err := OpenLocal(config)
			if err != nil {
				t.Fatal(err)
			}
			a, err = l.Create(bg, "a", c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if b, err = l.Create(bg, "b", c.spec); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(addKeys(a, someKeys("a", 5000)), addKeys(b, someKeys("b", 5000))); err != nil {
				t.Fatal(err)
			}
			if err := c.do(a, b); err != nil {
				t.Fatal(err)
			}
			if round == 0 {
				t.Fatal("there were no pieces")
			}
			want := someKeys("a", 5000)
			if name != "fold" {
				want = append(want, someKeys("b", 5000)...)
			}
			for r := range round {
				want = append(want, someKeys(fmt.Sprint("meanwhile ", r+1), 20)...)
			}
			if err := errors.Join(hasKeys(a, want), addKeys(a, someKeys("later", 100)), l.Commit(bg)); err != nil {
				t.Fatal(err)
			}
			items := a.Info().Items
			l = restart(t, l, config)
			defer l.Close()
			if a, err = l.Open([]byte("a")); err != nil {
				t.Fatal(err)
			}
			if err := hasKeys(a, append(want, someKeys("later", 100)...)); err != nil {
				t.Error(err)
			}
			if got := a.Info().Items; got != items || items < uint64(len(want))*98/100 || items > uint64(len(want))*102/100+100 {
				t.Errorf("%d items, %d before, of %d keys", got, items, len(want)+100)
			}
		})
	}
}

// TestGrowingApartDuringMerge: two filters whose first layers are alike each append a
// layer while they are merged, and these are unlike. Neither belongs to the merge, and
// the store can be opened again.
func TestGrowingApartDuringMerge(t *testing.T) {
	var a, b Filter
	merging := false
	config := LocalConfig{Dir: t.TempDir(), seams: seams{idle: true}}
	config.between = func() {
		if merging {
			merging = false
			if err := errors.Join(addKeys(a, someKeys("a later", 500)), addKeys(b, someKeys("b later", 500))); err != nil {
				t.Error(err)
			}
		}
	}
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = l.Create(bg, "a", Spec{Kind: RedisBloom, Capacity: 1000, Rate: 0.01, Growth: 2}); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Create(bg, "b", Spec{Kind: RedisBloom, Capacity: 1000, Rate: 0.01, Growth: 4}); err != nil {
		t.Fatal(err)
	}
	merging = true
	if err := errors.Join(addKeys(a, someKeys("a", 900)), addKeys(b, someKeys("b", 900)), a.Merge(bg, b), l.Commit(bg)); err != nil {
		t.Fatal(err)
	}
	if len(a.Info().Layers) != 2 || len(b.Info().Layers) != 2 {
		t.Fatalf("%d and %d layers, want two each", len(a.Info().Layers), len(b.Info().Layers))
	}
	for range 2 {
		want := slices.Concat(someKeys("a", 900), someKeys("b", 900), someKeys("a later", 500))
		if err := errors.Join(hasKeys(a, want), hasKeys(b, slices.Concat(someKeys("b", 900), someKeys("b later", 500)))); err != nil {
			t.Error(err)
		}
		l = restart(t, l, config)
		if a, err = l.Open([]byte("a")); err != nil {
			t.Fatal(err)
		}
		if b, err = l.Open([]byte("b")); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
}

// TestMergeOfDroppedFilter: a merge whose source is dropped meanwhile fails, and a
// snapshot is taken, so that the copied bits are on disk.
func TestMergeOfDroppedFilter(t *testing.T) {
	spec := Spec{Kind: Paired, Capacity: 3_000_000, Rate: 0.01}
	var l *Local
	config := LocalConfig{Dir: t.TempDir(), seams: seams{idle: true}}
	config.between = func() { l.Drop(bg, "b") }
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.Create(bg, "a", spec)
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Create(bg, "b", spec)
	if err != nil {
		t.Fatal(err)
	}
	addKeys(b, someKeys("b", 5000))
	before := l.Stats().Snapshots
	if err := a.Merge(bg, b); !errors.Is(err, ErrNotFound) {
		t.Fatalf("merging what is dropped meanwhile: %v", err)
	}
	if n := l.Stats().Snapshots - before; n != 1 || l.leaky() || a.(*value).busy != 0 {
		t.Errorf("%d snapshots, busy %b", n, a.(*value).busy)
	}
	if err := addKeys(a, someKeys("b", 5000)); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(bg); err != nil {
		t.Fatal(err)
	}
	l = restart(t, l, config)
	defer l.Close()
	if a, err = l.Open([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := hasKeys(a, someKeys("b", 5000)); err != nil {
		t.Error(err)
	}
}

// droppedRun renames, swaps and drops values while a snapshot is taken, and reopens the
// store. It returns an error if any of this fails, or if anything is missing.
func droppedRun(spec Spec, flaw flaw) error {
	disk := newCrashDisk(rand.New(rand.NewPCG(3, 4)))
	config := LocalConfig{Level: Always, seams: seams{disk: disk, idle: true}}
	l, err := OpenLocal(config)
	for _, name := range []string{"a", "b", "c", "d"} {
		var f Filter
		if err == nil {
			f, err = l.Create(bg, name, spec)
		}
		if err == nil {
			err = errors.Join(addKeys(f, someKeys(name, 10)), l.Commit(bg))
		}
	}
	if err != nil {
		return err
	}
	done := false
	disk.meanwhile = func() {
		if done {
			return
		}
		done = true
		f, _ := l.Open([]byte("a"))
		err = errors.Join(addKeys(f, someKeys("more", 2)), l.Rename(bg, "a", "z"), l.Swap(bg, "z", "b"), l.Expire(bg, "b", l.now().Add(time.Hour)))
		l.Drop(bg, "b", "c") // b was a
	}
	if err := errors.Join(l.Snapshot(bg), err); err != nil {
		return err
	}
	used, _ := l.Usage()
	if flaw == flawDroppedLeftOut {
		leaveOutDropped(disk)
	}
	config.disk = disk.restart(true)
	if l, err = OpenLocal(config); err != nil {
		return err
	}
	if names, _, _ := l.List(0, 100); len(names) != 2 {
		return fmt.Errorf("%w: there are %q", errLost, names)
	}
	if after, _ := l.Usage(); after != used {
		return fmt.Errorf("%d bytes, %d before", after, used)
	}
	for name, was := range map[string]string{"z": "b", "d": "d"} {
		f, err := l.Open([]byte(name))
		if err == nil {
			err = hasKeys(f, someKeys(was, 10))
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errLost, name, err)
		}
	}
	return l.Close()
}

// TestSnapshotOfDroppedFilter: filters are renamed, swapped and dropped while a snapshot
// is taken, which then has none of their bits. The log after it can be replayed.
func TestSnapshotOfDroppedFilter(t *testing.T) {
	for name, spec := range map[string]Spec{"RedisBloom": modelSpecs[0], "paired": modelSpecs[2], "window": modelSpecs[4]} {
		if err := droppedRun(spec, flawNone); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// dumpOf returns the chunks of a dump, beginning with its header.
func dumpOf(t *testing.T, f Filter) (chunks [][]byte) {
	t.Helper()
	for at := int64(0); ; {
		next, chunk, err := f.Dump(at)
		if err != nil {
			t.Fatal(err)
		}
		if next == 0 {
			return chunks
		}
		chunks, at = append(chunks, bytes.Clone(chunk)), next
	}
}

// TestDumpsTakeNoMemory: dumps hardly take memory, so clients cannot fill the store with
// them. A dump ends when its filter is dropped, or when nobody continues to read it.
func TestDumpsTakeNoMemory(t *testing.T) {
	l, err := OpenLocal(LocalConfig{seams: seams{idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var filters []Filter
	for i := range 10 {
		spec := Spec{Kind: Paired, Capacity: 20_000_000, Rate: 0.01, Growth: uint32(i % 2 * 2)}
		f, err := l.Create(bg, fmt.Sprint(i), spec)
		if err != nil {
			t.Fatal(err)
		}
		filters = append(filters, f)
	}
	before, _ := l.Usage()
	for _, f := range filters {
		at, _, err := f.Dump(0)
		if err == nil {
			_, _, err = f.Dump(at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if used, _ := l.Usage(); used > before+before/1000 {
		t.Errorf("ten dumps take %d bytes of memory, of filters of %d", used-before, before)
	}
	l.Drop(bg, "0")
	p := filters[1].(*value).body.(*paired)
	p.outgoing.used = time.Now().Add(-2 * dumpIdle)
	l.endIdleDumps()
	if p.outgoing != nil || len(l.pins.of) != 8 {
		t.Errorf("%d filters are pinned by dumps, want 8", len(l.pins.of))
	}
	if _, _, err := filters[1].Dump(1); !errors.Is(err, ErrChunk) {
		t.Errorf("a chunk of a dump that ended: %v", err)
	}
	if _, _, err := filters[0].Dump(1); err == nil {
		t.Error("a chunk of a filter that was dropped")
	}
	l.Clear(bg)
	for step := l.unmapper.next(); step != nil; step = l.unmapper.next() {
		<-step
	}
	if used, _ := l.Usage(); used != 0 || len(l.pins.of) != 0 {
		t.Errorf("%d bytes are left, %d pins", used, len(l.pins.of))
	}
}

// writeSizes is a disk that notes the largest write to the log.
type writeSizes struct {
	disk
	most *int
}

type sizedFile struct {
	diskFile
	most *int
}

func (d writeSizes) Append(name string) (diskFile, error) {
	file, err := d.disk.Append(name)
	return sizedFile{file, d.most}, err
}

func (f sizedFile) Write(b []byte) (int, error) {
	*f.most = max(*f.most, len(b))
	return f.diskFile.Write(b)
}

// TestLoadInPieces: a chunk of many MiB is logged a MiB at a time, so that a commit never
// has to write more than that. A chunk of which a part was loaded may be sent again.
func TestLoadInPieces(t *testing.T) {
	for name, spec := range map[string]Spec{
		"RedisBloom":     {Kind: RedisBloom, Capacity: 6_000_000, Rate: 0.01},
		"Paired":         {Kind: Paired, Capacity: 6_000_000, Rate: 0.01},
		"Paired growing": {Kind: Paired, Capacity: 4_000_000, Rate: 0.01, Growth: 2},
	} {
		t.Run(name, func(t *testing.T) {
			most := 0
			config := LocalConfig{Level: Always, seams: seams{disk: writeSizes{newCrashDisk(rand.New(rand.NewPCG(5, 6))), &most}, idle: true}}
			l, err := OpenLocal(config)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			from, err := l.Create(bg, "from", spec)
			if err != nil {
				t.Fatal(err)
			}
			keys := someKeys("a", 5000)
			if err := addKeys(from, keys); err != nil {
				t.Fatal(err)
			}
			chunks := dumpOf(t, from)
			to, err := l.Load(bg, "to", chunks[0])
			if err != nil {
				t.Fatal(err)
			}
			at := int64(1)
			for _, chunk := range chunks[1:] {
				if spec.Kind == Paired { // as if the store had been reopened in between
					const part = 100_000
					if err := to.Load(bg, at+part, chunk[:part]); err != nil {
						t.Fatal(err)
					}
				}
				at += int64(len(chunk))
				if err := to.Load(bg, at, chunk); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(hasKeys(to, keys), l.Commit(bg)); err != nil {
				t.Error(err)
			}
			if most > loadPiece+256<<10 {
				t.Errorf("%d bytes of the log were written at once", most)
			}
			used, _ := l.Usage()
			if l, err = OpenLocal(config); err != nil {
				t.Fatal(err)
			}
			if to, err = l.Open([]byte("to")); err != nil {
				t.Fatal(err)
			}
			if err := hasKeys(to, keys); err != nil {
				t.Error(err)
			}
			if again, _ := l.Usage(); again > used || again+64<<10 < used {
				t.Errorf("%d bytes, %d before", again, used)
			}
		})
	}
}

// TestLoadSyncs: a long load syncs several times what it logs, so that nobody waits for
// one sync of everything.
func TestLoadSyncs(t *testing.T) {
	l, err := OpenLocal(LocalConfig{Level: EverySecond, seams: seams{disk: newCrashDisk(rand.New(rand.NewPCG(5, 6))), idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	from, err := l.Create(bg, "from", Spec{Kind: RedisBloom, Capacity: 25_000_000, Rate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	chunks := dumpOf(t, from)
	to, err := l.Load(bg, "to", chunks[0])
	if err != nil {
		t.Fatal(err)
	}
	before := l.Stats().Log
	at := int64(1)
	for _, chunk := range chunks[1:] {
		at += int64(len(chunk))
		if err := to.Load(bg, at, chunk); err != nil {
			t.Fatal(err)
		}
		if l.log.waiting > unsyncedBytes+2*loadPiece {
			t.Errorf("%d bytes are left to the next sync", l.log.waiting)
		}
	}
	stats := l.Stats().Log
	if bytes, syncs := stats.Bytes-before.Bytes, stats.Syncs-before.Syncs; syncs < bytes/(unsyncedBytes+2*loadPiece) {
		t.Errorf("%d syncs of %d bytes", syncs, bytes)
	}
}

// slowCloser is bits whose Close waits for the test.
type slowCloser chan bool

func (c slowCloser) Close() error { <-c; return nil }

// TestGrantsBlockNobody: a caller that needs memory waits for memory being released, and
// nobody waits for that caller. (Once, commits, adds to other filters and drops did.)
func TestGrantsBlockNobody(t *testing.T) {
	const span = 24 * time.Hour
	l, err := OpenLocal(LocalConfig{Level: Always, seams: seams{disk: newCrashDisk(rand.New(rand.NewPCG(7, 8))), idle: true, patience: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Create(bg, "to drop", Spec{Kind: Paired, Capacity: 10, Rate: 0.01}); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]Spec{
		"a chain that grows":  {Kind: RedisBloom, Capacity: 1000, Rate: 0.01, Growth: 2},
		"a filter that grows": {Kind: Paired, Capacity: 1000, Rate: 0.01, Growth: 2},
		"a window that grows": {Kind: Window, Capacity: 1000, Rate: 0.01, Growth: 2, Span: span},
		"a new filter":        {},
	} {
		f, err := l.Create(bg, name, Spec{Kind: Paired, Capacity: 10, Rate: 0.01})
		if spec.Kind != None {
			l.Drop(bg, name)
			f, err = l.Create(bg, name, spec)
		}
		if err == nil {
			err = addKeys(f, someKeys("before", 10))
		}
		if err != nil {
			t.Fatal(err)
		}
		const more = 1 << 20
		slow := make(slowCloser)
		if err := l.Grant(more); err != nil {
			t.Fatal(err)
		}
		l.config.Memory, _ = l.Usage()
		l.unmap(gone{slow, unmapInline + 1, more})
		done := make(chan error, 1)
		go func() {
			if spec.Kind == None {
				_, err := l.Create(bg, "new", Spec{Kind: Paired, Capacity: 1000, Rate: 0.01})
				done <- err
				return
			}
			done <- addKeys(f, someKeys("more", 3000))
		}()
		time.Sleep(50 * time.Millisecond) // until it waits
		soon(t, "committing", func() error { return l.Commit(bg) })
		soon(t, "asking", func() error { return hasKeys(f, someKeys("before", 10)) })
		soon(t, "asking for Info", func() error { f.Info(); return nil })
		soon(t, "adding old keys", func() error { return addKeys(f, someKeys("before", 10)) })
		soon(t, "dropping", func() error { _, err := l.Drop(bg, "to drop"); return err })
		select {
		case err := <-done:
			t.Errorf("%s did not wait for memory: %v", name, err)
		default:
		}
		slow <- true
		soon(t, name, func() error { return <-done })
		l.config.Memory = 0
	}
}
