package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestUsage: a reopened store reports the same usage as before, whether it was read from
// the log or from a snapshot, and an empty one reports none.
func TestUsage(t *testing.T) {
	ctx := context.Background()
	config := LocalConfig{Dir: t.TempDir(), seams: seams{idle: true}}
	var l *Local
	start := func() {
		var err error
		if l, err = OpenLocal(config); err != nil {
			t.Fatal(err)
		}
	}
	start()
	for i, spec := range modelSpecs {
		name := fmt.Sprint(i)
		if _, err := l.Create(ctx, name, spec); err != nil {
			t.Fatal(err)
		}
		if spec.Growth != 0 || spec.Kind == Window {
			addSome(t, l, name, 0, 300)
		}
		if err := l.Rename(ctx, name, "a much longer name "+name); err != nil {
			t.Fatal(err)
		}
	}
	l.Set(ctx, "text", []byte("some text"))
	if err := l.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"log", "snapshot"} {
		before, _ := l.Usage()
		if how == "snapshot" {
			if err := l.Snapshot(ctx); err != nil {
				t.Fatal(err)
			}
		}
		kill(t, l)
		start()
		if after, _ := l.Usage(); after != before {
			t.Errorf("%d bytes, and %d read again from the %s", before, after, how)
		}
	}
	// Adds to a filter that was dropped take no memory.
	first, err := l.Open([]byte("a much longer name 0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	l.Set(ctx, "text", make([]byte, 1<<20))
	before, _ := l.Usage()
	var wait sync.WaitGroup
	for adder := range 4 {
		wait.Go(func() {
			for i := range 2000 {
				first.Add(ctx, [][]byte{fmt.Append(nil, adder, i)}, make([]bool, 1))
			}
		})
	}
	wait.Wait()
	if after, _ := l.Usage(); after != before {
		t.Errorf("adds to a dropped filter: %d bytes, and then %d", before, after)
	}
	l.Clear(ctx)
	if after, _ := l.Usage(); after != 0 {
		t.Errorf("an empty store takes %d bytes", after)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUsageAtRandom is TestUsage after random operations.
func TestUsageAtRandom(t *testing.T) {
	for seed := range uint64(60) {
		p := newHarness(seed, EverySecond, flawNone)
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			for range 40 {
				p.act()
				if f, err := p.store.Open([]byte("a")); err == nil && p.rng.IntN(20) == 0 {
					f.Fold(bg, 2)
				}
			}
			p.store.sweep()
			p.store.dumps.Range(func(p, _ any) bool {
				p.(*paired).endDump()
				return true
			})
			before, _ := p.store.Usage()
			p.commit()
			p.disk = p.disk.restart(false)
			if err := p.open(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if after, _ := p.store.Usage(); after != before {
				t.Fatalf("seed %d: %d bytes, and %d after the next start", seed, before, after)
			}
		}
		p.store.Clear(bg)
		if left, _ := p.store.Usage(); left != 0 {
			t.Errorf("seed %d: an empty store takes %d bytes", seed, left)
		}
	}
}

// TestStopIsReported: a sync that fails while nobody commits is reported, too. Adds after
// it are not kept in memory for a log that will never be written.
func TestStopIsReported(t *testing.T) {
	disk := newCrashDisk(rand.New(rand.NewPCG(1, 2)))
	l, err := OpenLocal(LocalConfig{seams: seams{disk: disk}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	told := make(chan error, 1)
	l.OnStop(func(err error) { told <- err })
	l.Create(bg, "seen", Spec{Kind: RedisBloom, Capacity: 100_000, Rate: 0.01})
	addSome(t, l, "seen", 0, 10)
	disk.mutex.Lock()
	disk.fail = disk.calls + 1
	disk.mutex.Unlock()
	select {
	case err := <-told:
		if !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nobody was told")
	}
	f, _ := l.Open([]byte("seen"))
	for i := range 1000 {
		f.Add(bg, [][]byte{fmt.Append(nil, i)}, make([]bool, 1))
	}
	if err := l.Commit(bg); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	l.log.Lock()
	if n := len(l.log.buffer); n > 1000 {
		t.Errorf("%d bytes wait for a log that has stopped", n)
	}
	l.log.Unlock()
}

// TestFewerGenerations: a window that was loaded when the store allowed more generations
// can be recovered when it allows fewer.
func TestFewerGenerations(t *testing.T) {
	config := LocalConfig{Dir: t.TempDir(), Generations: 12, seams: seams{idle: true}}
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.Create(bg, "first", Spec{Kind: Window, Capacity: 1000, Rate: 0.01, Span: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	at, header, err := f.Dump(0)
	if err != nil {
		t.Fatal(err)
	}
	g, err := l.Load(bg, "second", header)
	for err == nil && at != 0 {
		var chunk []byte
		if at, chunk, err = f.Dump(at); err == nil && at != 0 {
			err = g.Load(bg, at, chunk)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	addSome(t, l, "second", 0, 10)
	kill(t, l)
	config.Generations = 2
	if l, err = OpenLocal(config); err != nil {
		t.Fatal(err)
	}
	if got := l.lookup([]byte("second")).Info().Items; got != 10 {
		t.Errorf("%d items", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestClearOfMany clears so large a number of values that they are released in the
// background, and Clear does not wait for users of the filters. The names are gone at
// once nevertheless, and callers that hold the filters find them gone, too.
func TestClearOfMany(t *testing.T) {
	dir := t.TempDir()
	l, err := OpenLocal(LocalConfig{Dir: dir, Level: Unlogged})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { l.Close() }()
	l.GroupNames(func(string) int { return 3 })
	const many = forgetInline + 1000
	filters := make([]Filter, many)
	for i := range filters {
		if filters[i], err = l.Create(bg, strconv.Itoa(i), Spec{Kind: RedisBloom, Capacity: 10, Rate: 0.01}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Expire(bg, "7", time.Now().Add(50*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	held := filters[0].(*value)
	for i := range l.gates {
		l.gates[i].RLock() // as a user of filters does
	}
	cleared := make(chan error, 1)
	go func() { cleared <- l.Clear(bg) }()
	select {
	case err := <-cleared:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		for i := range l.gates {
			l.gates[i].RUnlock()
		}
		t.Fatal("Clear waits for users of a filter")
	}
	time.Sleep(60 * time.Millisecond)
	l.sweep() // the name that expires is gone already
	if _, err := l.Open([]byte("1")); !errors.Is(err, ErrNotFound) || l.len() != 0 || l.LenOf(3) != 0 {
		t.Errorf("a name after Clear: %v; %d names, %d in their group", err, l.len(), l.LenOf(3))
	}
	for i := range l.gates {
		if i != int(held.id%gateCount) { // so one value, at least, is not forgotten yet
			l.gates[i].RUnlock()
		}
	}
	for _, f := range filters {
		if f.(*value).gate() == held.gate() {
			continue
		}
		if _, err := f.Add(bg, [][]byte{[]byte("x")}, make([]bool, 1)); !errors.Is(err, ErrNotFound) {
			t.Fatalf("an add to a filter that Clear has dropped: %v", err)
		}
	}
	if _, err := l.Create(bg, "1", Spec{Kind: RedisBloom, Capacity: 10, Rate: 0.01}); err != nil {
		t.Fatal(err)
	}
	held.gate().RUnlock()
	for step := l.unmapper.next(); step != nil; step = l.unmapper.next() {
		<-step
	}
	now, _ := l.Usage()
	if n, err := l.Drop(bg, "1"); n != 1 || err != nil {
		t.Errorf("dropping what was made since: %d, %v", n, err)
	}
	if used, _ := l.Usage(); used != 0 || now == 0 {
		t.Errorf("%d bytes are in use after Clear, and %d with a filter made since", used, now)
	}
	if _, err := l.Create(bg, "1", Spec{Kind: RedisBloom, Capacity: 10, Rate: 0.01}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = OpenLocal(LocalConfig{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if names, _, _ := l.List(0, many); len(names) != 1 || names[0] != "1" {
		t.Errorf("%d names after the next start, want the one that was made since", len(names))
	}
}
