package redisbloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"

	"github.com/bloomery/bloom"
)

func unionChain(t *testing.T, keys uint64, from, to int) *Filter {
	t.Helper()
	c, err := New(Config{Keys: keys, Rate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < to; i++ {
		c.Add(binary.LittleEndian.AppendUint32(nil, uint32(i)))
	}
	return c
}

func unionHas(t *testing.T, c *Filter, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if !c.Contains(binary.LittleEndian.AppendUint32(nil, uint32(i))) {
			t.Fatalf("key %d is lost", i)
		}
	}
}

// TestUnion: a chain has all keys of both, while keys are added to both, and each of
// these is new to one adder at most.
func TestUnion(t *testing.T) {
	for keys, n := range map[uint64]int{
		1000:    2500,   // in two layers
		900_000: 20_000, // with stripes
	} {
		a, b := unionChain(t, keys, 0, n), unionChain(t, keys, n, 2*n)
		const racers = 3
		var won [racers][]bool
		var wait sync.WaitGroup
		for r := range racers {
			won[r] = make([]bool, 2000)
			wait.Go(func() {
				for i := range won[r] {
					key := binary.LittleEndian.AppendUint32(nil, uint32(1<<30+i))
					won[r][i] = a.Add(key)
					b.Add(key)
				}
			})
		}
		pieces := 0
		layers, err := a.FitsUnion(b)
		if err != nil {
			t.Fatal(err)
		}
		set, err := a.Union(b, layers, func() error { pieces++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		unionHas(t, a, 0, 2*n)
		unionHas(t, a, 1<<30, 1<<30+2000)
		for i := range 2000 {
			winners := 0
			for r := range racers {
				if won[r][i] {
					winners++
				}
			}
			if winners > 1 {
				t.Fatalf("key %d was new to %d", i, winners)
			}
		}
		for i, l := range a.Layers()[:len(set)] {
			if set[i] == 0 || set[i] > l.Bits {
				t.Errorf("layer %d: %d of %d bits are set", i, set[i], l.Bits)
			}
		}
		if keys > 1000 && pieces < 5 {
			t.Errorf("in %d pieces", pieces)
		}
	}
}

// TestUnionFits: unlike chains are refused, and of one that has grown further, only the
// layers that are alike are added.
func TestUnionFits(t *testing.T) {
	a, grown, other := unionChain(t, 1000, 0, 2500), unionChain(t, 1000, 2500, 9000), unionChain(t, 1100, 0, 10)
	short := unionChain(t, 1000, 9000, 9500)
	if n, err := a.FitsUnion(short); n != 1 || err != nil {
		t.Errorf("a chain of one layer: %d, %v", n, err)
	}
	for name, unlike := range map[string]*Filter{"more layers": grown, "another size": other} {
		if _, err := a.FitsUnion(unlike); !errors.Is(err, bloom.ErrUnlike) {
			t.Errorf("a chain of %s: %v", name, err)
		}
	}
	if _, err := a.Union(other, 1, nil); !errors.Is(err, bloom.ErrUnlike) || a.AlikeLayers(other) != 0 {
		t.Errorf("a chain of another size: %v, of which %d layers are alike", err, a.AlikeLayers(other))
	}
	if _, err := a.Union(short, 2, nil); !errors.Is(err, bloom.ErrUnlike) {
		t.Errorf("more layers than there are: %v", err)
	}
	if _, err := a.Union(short, 1, nil); err != nil {
		t.Error(err)
	}
	unionHas(t, a, 9000, 9500)
	if n := a.AlikeLayers(grown); n != 2 {
		t.Errorf("%d layers of a chain that has grown are alike, want 2", n)
	}
	if set, err := a.Union(grown, 2, nil); err != nil || len(set) != 2 {
		t.Errorf("of a chain that has grown: %d layers, %v", len(set), err)
	}
	steep, err := New(Config{Keys: 1000, Growth: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer steep.Close()
	for i := range 2500 {
		steep.Add(binary.LittleEndian.AppendUint32(nil, uint32(i)))
	}
	if n := unionChain(t, 1000, 0, 2500).AlikeLayers(steep); n != 1 {
		t.Errorf("%d layers of a chain that grows faster are alike, want 1", n)
	}
	stop := errors.New("stop")
	if _, err := a.Union(short, 1, func() error { return stop }); err != stop {
		t.Errorf("between's error came back as %v", err)
	}
}

// TestScanPiece: pieces in a buffer are the bytes of ScanDump.
func TestScanPiece(t *testing.T) {
	c := unionChain(t, 5000, 0, 20_000)
	var want []byte
	for next, data := c.ScanDump(1); next != 0; next, data = c.ScanDump(next) {
		want = append(want, data...)
	}
	for _, words := range []int{2, 33, 1 << 20} {
		buffer, got := make([]uint64, words), []byte{}
		for at := int64(1); ; {
			next, data := c.ScanPiece(at, buffer)
			if next == 0 {
				break
			}
			got, at = append(got, data...), next
		}
		if !bytes.Equal(got, want) {
			t.Errorf("by %d words: %d bytes, want %d, or others", words, len(got), len(want))
		}
	}
	if _, data := c.ScanPiece(4, make([]uint64, 3)); !bytes.Equal(data, want[3:24]) {
		t.Errorf("from byte 3 on: % x", data)
	}
	if err := c.FitsChunk(100, want[:50]); err != nil {
		t.Error(err)
	}
	if err := c.FitsChunk(1<<40, want[:50]); !errors.Is(err, ErrChunkOffset) {
		t.Error(err)
	}
}
