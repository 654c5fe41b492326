package bloom

import (
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
