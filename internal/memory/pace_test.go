package memory

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// fakePacer unmaps nothing, and counts collections.
func fakePacer(heap uint64) (p *pacer, collections *atomic.Int64) {
	collections = new(atomic.Int64)
	return newPacer(func() { collections.Add(1); runtime.GC() }, func() uint64 { return heap }), collections
}

// mapFake counts a mapping of this size without making it.
func (p *pacer) mapFake(size uint64) *Mapping {
	p.wait(size)
	m := &Mapping{room: &region{bytes: make([]byte, 1), unmap: func([]byte) error { return nil }}}
	p.add(m.room, m)
	p.mu.Lock()
	p.count(size-1, 0)
	p.mu.Unlock()
	return m
}

// TestPace: the collector runs before twice the bytes in use are mapped, but not
// before the floor, or the size of Go's heap, is mapped in addition.
func TestPace(t *testing.T) {
	for _, tt := range []struct {
		name             string
		live, heap, each uint64
	}{
		{"nothing in use", 0, 0, 4 << 20},
		{"much in use", 1 << 30, 0, 100 << 20},
		{"a large heap", 0, 2 << 30, 100 << 20},
	} {
		p, collections := fakePacer(tt.heap)
		p.live, p.mapped, p.heap = tt.live, tt.live, tt.heap
		allowance := max(tt.live, tt.heap, floorBytes)
		most := uint64(0)
		for range allowance/tt.each + 2 {
			m := p.mapFake(tt.each)
			p.mu.Lock()
			if collections.Load() == 0 {
				most = max(most, p.mapped)
			}
			p.mu.Unlock()
			runtime.KeepAlive(m)
		}
		p.mu.Lock()
		running := p.running
		p.mu.Unlock()
		if running != nil {
			<-running
		}
		if collections.Load() == 0 || most < tt.live+allowance/2 || most > tt.live+allowance+tt.each {
			t.Errorf("%s: %d collections, and up to %d MiB mapped before", tt.name, collections.Load(), most>>20)
		}
	}
}

// TestClosedIsNotCollected: a program that closes its mappings causes no collections,
// and closed mappings do not delay later collections.
func TestClosedIsNotCollected(t *testing.T) {
	p, collections := fakePacer(0)
	for range 1000 {
		r := &region{bytes: make([]byte, 1<<20), unmap: func([]byte) error { return nil }}
		m := &Mapping{room: r}
		p.wait(1 << 20)
		p.add(r, m)
		if err := p.free(r); err != nil {
			t.Fatal(err)
		}
		if err := p.free(r); err != nil { // as a cleanup that ran after Close
			t.Fatal(err)
		}
	}
	if collections.Load() != 0 || p.mapped != 0 {
		t.Errorf("%d collections, %d bytes are still mapped", collections.Load(), p.mapped)
	}
	p.live, p.mapped = 10<<30, 10<<30
	p.count(0, 10<<30)
	if p.allowance() != floorBytes {
		t.Errorf("after all was closed %d bytes may be mapped without a collection", p.allowance())
	}
}

// TestDropped: unreachable mappings are unmapped, also when many goroutines map at
// once; mappings in use are not.
func TestDropped(t *testing.T) {
	kept, keeps, err := Words(largeWords)
	if err != nil {
		t.Fatal(err)
	}
	if keeps == nil {
		t.Skip("words come from Go's heap here, whose collector sees them")
	}
	defer keeps.Close()
	kept[0] = 1
	before := Mapped()
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 100 {
				words, mapping, err := Words(2 * largeWords)
				if err != nil {
					t.Error(err)
					return
				}
				words[0]++
				runtime.KeepAlive(mapping)
				if now := Mapped(); now > before+2*floorBytes {
					t.Errorf("%d MiB are mapped, of which %d are in use", now>>20, before>>20)
					return
				}
			}
		})
	}
	wait.Wait()
	if kept[0] != 1 {
		t.Error("words that are in use were unmapped")
	}
	runtime.KeepAlive(keeps)
}

// TestOnChange: the callback sees every change.
func TestOnChange(t *testing.T) {
	var told []uint64
	OnChange(func(mapped uint64) { told = append(told, mapped) })
	defer OnChange(nil)
	_, mapping, err := Words(largeWords)
	if err != nil {
		t.Fatal(err)
	}
	if mapping == nil {
		t.Skip("words come from Go's heap here")
	}
	if err := mapping.Close(); err != nil {
		t.Fatal(err)
	}
	OnChange(nil)
	// Cleanups of earlier tests may unmap memory meanwhile: each is a change of its own.
	mapped, unmapped := 0, 0
	for i := 1; i < len(told); i++ {
		switch {
		case told[i] == told[i-1]+8*largeWords:
			mapped++
		case mapped == 1 && told[i] == told[i-1]-8*largeWords:
			unmapped++
		case told[i] > told[i-1]:
			t.Errorf("something else was mapped: %v", told)
		}
	}
	if mapped != 1 || unmapped == 0 {
		t.Errorf("mapped %d times and unmapped %d times: %v", mapped, unmapped, told)
	}
}

// TestCeiling: within the allowance, a mapping waits for a collection only if it would
// exceed the ceiling.
func TestCeiling(t *testing.T) {
	_, first, err := Words(largeWords)
	if err != nil {
		t.Fatal(err)
	}
	if first == nil {
		t.Skip("words come from Go's heap here")
	}
	SetCeiling(Mapped() + 8*5*largeWords/2)
	defer SetCeiling(0)
	before := Mapped()
	for range 10 {
		if _, _, err := Words(largeWords); err != nil {
			t.Fatal(err)
		}
		if now := Mapped(); now > before+8*5*largeWords/2 {
			t.Fatalf("%d bytes are mapped, %d were before: above the ceiling", now, before)
		}
	}
	SetCeiling(1) // impossible
	if _, _, err := Words(largeWords); err != nil {
		t.Errorf("above the ceiling: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}
