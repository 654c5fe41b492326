package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomery/bloom"
)

// TestPinned: pinned memory counts as used until it is unpinned, and no longer.
func TestPinned(t *testing.T) {
	for _, spec := range []Spec{
		{Kind: RedisBloom, Capacity: 20_000_000, Rate: 0.01},
		{Kind: Paired, Capacity: 20_000_000, Rate: 0.01},
	} {
		l, err := OpenLocal(LocalConfig{seams: seams{idle: true}})
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.Create(bg, "f", spec)
		if err != nil {
			t.Fatal(err)
		}
		used, _ := l.Usage()
		l.config.Memory = used
		bits, err := f.(*value).hold()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Drop(bg, "f"); err != nil {
			t.Fatal(err)
		}
		if after, _ := l.Usage(); after < used-overheadBytes(f.(*value).body, "f") {
			t.Errorf("%d of %d bytes count while they are in use", after, used)
		}
		if _, err := l.Create(bg, "g", spec); !errors.Is(err, ErrMemory) {
			t.Errorf("a second filter where one is in use and there is room for one: %v", err)
		}
		l.unpin(bits)
		if _, err := l.Create(bg, "g", spec); err != nil {
			t.Errorf("there must be room as soon as the memory is given back: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUsersOfDroppedFilter: a user of a filter whose name is dropped meanwhile, or
// given to another filter, never reads freed memory.
func TestUsersOfDroppedFilter(t *testing.T) {
	const keys = 400_000
	capacity := uint64(2_500_000) // large enough to lie outside Go's heap
	span := 1500 * time.Millisecond
	l, err := OpenLocal(LocalConfig{Dir: t.TempDir(), Level: Unlogged})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	specs := []Spec{
		{Kind: RedisBloom, Capacity: capacity, Rate: 0.01},
		{Kind: Paired, Capacity: capacity, Rate: 0.01},
		{Kind: Paired, Capacity: capacity, Rate: 0.01, Growth: 2},
		{Kind: Window, Capacity: 4 * capacity, Rate: 0.01, Span: time.Second},
	}
	end := time.Now().Add(span)
	var used atomic.Int64
	var wait sync.WaitGroup
	user := func(do func(f, g Filter, n int) error) {
		wait.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				f, err := l.Open(fmt.Append(nil, n%len(specs)))
				g, err2 := l.Open(fmt.Append(nil, n%len(specs), "b"))
				if err != nil || err2 != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				err = do(f, g, n)
				switch {
				case err == nil:
					used.Add(1)
				case errors.Is(err, ErrNotFound) || errors.Is(err, ErrFull) || errors.Is(err, ErrChunk) || errors.Is(err, errUnsupported):
				case errors.Is(err, bloom.ErrConfig) || errors.Is(err, bloom.ErrUnlike): // it was folded often, or only one of the two was
				default:
					t.Error(err)
				}
			}
		})
	}
	batch := func(n int) [][]byte {
		b := make([][]byte, 700)
		for i := range b {
			b[i] = order.AppendUint64(nil, uint64(n*len(b)+i)%keys)
		}
		return b
	}
	user(func(f, g Filter, n int) error { _, err := f.Add(bg, batch(n), make([]bool, 700)); return err })
	user(func(f, g Filter, n int) error { _, err := g.Add(bg, batch(n), make([]bool, 700)); return err })
	user(func(f, g Filter, n int) error { return f.Contains(bg, batch(n), make([]bool, 700)) })
	user(func(f, g Filter, n int) error { g.Info(); f.Report(); return nil })
	user(func(f, g Filter, n int) error { return f.Merge(bg, g) })
	user(func(f, g Filter, n int) error { return g.Fold(bg, 2) })
	user(func(f, g Filter, n int) error {
		at, header, err := f.Dump(0)
		if err != nil {
			return err
		}
		to, err := l.Load(bg, fmt.Sprint("loaded ", n), header)
		for err == nil {
			var chunk []byte
			if at, chunk, err = f.Dump(at); err != nil || at == 0 {
				break
			}
			err = to.Load(bg, at, chunk)
		}
		l.Drop(bg, fmt.Sprint("loaded ", n))
		return err
	})
	user(func(f, g Filter, n int) error { return l.Snapshot(bg) })
	for n := 0; time.Now().Before(end); n++ {
		at := n % len(specs)
		name := fmt.Sprint(at)
		for _, name := range []string{name, name + "b"} {
			l.Drop(bg, name)
			if _, err := l.Create(bg, name, specs[at]); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(n%7) * 5 * time.Millisecond)
	}
	wait.Wait()
	if used.Load() == 0 {
		t.Error("nobody got through")
	}
	if err := l.Clear(bg); err != nil {
		t.Fatal(err)
	}
	for step := l.unmapper.next(); step != nil; step = l.unmapper.next() {
		<-step
	}
	if left, _ := l.Usage(); left != 0 || len(l.pins.of) != 0 {
		t.Errorf("an empty store takes %d bytes, and has %d pins", left, len(l.pins.of))
	}
}
