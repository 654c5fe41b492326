package bloom

import (
	"fmt"
	"testing"
	"time"
)

// TestAddLooksAgain: between the lookup of a key and its gate, the layers were
// replaced, and somebody else has added the key to its new layer. An add to
// the old one would then be a second winner and, in a Window, forgotten too early.
func TestAddLooksAgain(t *testing.T) {
	const h = 0x123456789abcdef
	for _, batch := range []bool{false, true} {
		f, err := NewScalable(1000, 1e-6)
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewWindow(1000, 1e-6, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			layers interface {
				Load() *layers
				Store(*layers)
			}
			add  func(h uint64) bool
			many func(hashes []uint64, isNew []bool) int
		}{
			"Scalable": {&f.layers, f.AddHash, f.AddHashes},
			"Window":   {&w.layers, w.AddHash, w.AddHashes},
		} {
			old := c.layers.Load()
			old.lock()
			answer := make(chan bool)
			go func() {
				if batch {
					answer <- c.many([]uint64{1, h, 2}, nil) == 3
				} else {
					answer <- c.add(h)
				}
			}()
			time.Sleep(20 * time.Millisecond) // it stands at the gate

			layer, err := newLayer(old.filters[0].plan, old.filters[0].Hasher)
			if err != nil {
				t.Fatal(err)
			}
			layer.AddHash(h)
			next := newRing([]*Shared{layer, old.filters[0].freeze()}, []int64{1, 0}, unlimited)
			c.layers.Store(next)
			old.unlock()
			if <-answer {
				t.Errorf("%s, batch %v: the key has two winners", name, batch)
			}
			if n := old.filters[0].Report().Added; n != 0 {
				t.Errorf("%s, batch %v: %d keys were added to a layer that was frozen", name, batch, n)
			}
		}
	}
}

// TestGatesShareTheRoom: what is taken out and given back adds up, and the layer
// is full only when no gate has anything left.
func TestGatesShareTheRoom(t *testing.T) {
	f, err := NewScalable(100_000, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	l := f.layers.Load()
	if len(l.gates) != maxGates {
		t.Fatalf("%d gates", len(l.gates))
	}
	room, taken := l.room.Load(), int64(0)
	for i := range l.gates {
		if !l.refill(&l.gates[i]) {
			t.Fatalf("gate %d gets nothing", i)
		}
		taken += l.gates[i].left
	}
	if taken > room/3 || l.room.Load() != room-taken {
		t.Errorf("of %d the gates took %d, and %d is left", room, taken, l.room.Load())
	}
	if got := l.take(room); got != room-taken || l.take(1) != 0 || l.refill(new(gate)) {
		t.Errorf("take of everything got %d", got)
	}
	if got := l.collect(); got != taken || l.gates[0].left != 0 {
		t.Errorf("collect found %d of %d", got, taken)
	}
}

// BenchmarkLayers looks keys up in filters of several layers, with 1e5 keys, which the cache
// has, and with 1e7, which it has not: in a Scalable and in a Window whose five generations
// have as many each.
func BenchmarkLayers(b *testing.B) {
	for _, n := range []int{100_000, 10_000_000} {
		hashes := make([]uint64, n+1<<18)
		for i := range hashes {
			hashes[i] = scattered(uint64(i))
		}
		misses, hits := hashes[n:], make([]uint64, 1<<18)
		for i := range hits {
			hits[i] = hashes[misses[i]%uint64(n)]
		}
		scalable, err := NewScalable(uint64(n)*3/200, 0.01)
		if err != nil {
			b.Fatal(err)
		}
		scalable.AddHashes(hashes[:n], nil)
		now := time.Now()
		window, err := WindowConfig{Keys: uint64(n), Rate: 0.01, Span: time.Hour, Now: func() time.Time { return now }}.New()
		if err != nil {
			b.Fatal(err)
		}
		for g := range 5 {
			window.AddHashes(hashes[g*n/5:(g+1)*n/5], nil)
			if g < 4 {
				now = now.Add(time.Hour / 4)
			}
		}
		for _, f := range []struct {
			name string
			searched
		}{{"scalable", scalable}, {"window", window}} {
			b.Run(fmt.Sprintf("%s/%d", f.name, n), func(b *testing.B) { benchmarkSearched(b, f, hits, misses) })
		}
	}
}

type searched interface {
	AddHash(uint64) bool
	ContainsHash(uint64) bool
	ContainsHashes([]uint64, []bool) int
}

func benchmarkSearched(b *testing.B, f searched, hits, misses []uint64) {
	single := func(name string, hashes []uint64, call func(uint64) bool) {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				call(hashes[i%len(hashes)])
			}
		})
	}
	batch := func(name string, hashes []uint64) {
		b.Run(name, func(b *testing.B) {
			for i := 0; i < b.N; i += chunk {
				f.ContainsHashes(hashes[i%len(hashes):][:chunk], nil)
			}
		})
	}
	single("hit", hits, f.ContainsHash)
	single("miss", misses, f.ContainsHash)
	single("add of an old key", hits, f.AddHash)
	batch("batch of hits", hits)
	batch("batch of misses", misses)
}

// scattered is splitmix64.
func scattered(i uint64) uint64 {
	i = (i + 1) * 0x9e3779b97f4a7c15
	i = (i ^ i>>30) * 0xbf58476d1ce4e5b9
	i = (i ^ i>>27) * 0x94d049bb133111eb
	return i ^ i>>31
}
