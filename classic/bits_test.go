package classic_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
)

var orders = []classic.BitOrder{classic.LowBitFirst, classic.HighBitFirst, classic.LittleEndianWords, classic.BigEndianWords}

// place is where a bit order's definition puts bit i: byte and mask.
func place(o classic.BitOrder, i uint64) (at uint64, mask byte) {
	switch o {
	case classic.HighBitFirst:
		return i / 8, 0x80 >> (i % 8)
	case classic.BigEndianWords:
		return i/64*8 + 7 - i%64/8, 1 << (i % 8)
	}
	return i / 8, 1 << (i % 8)
}

func TestBitOrders(t *testing.T) {
	for _, m := range []uint64{1, 7, 8, 9, 63, 64, 65, 1000, 1 << 20, 3<<20 + 13} {
		f, err := classic.Config{Bits: m, Probes: 3, Scheme: classic.SchemeMD5IndexKey}.New()
		if err != nil {
			t.Fatal(err)
		}
		set := map[uint64]bool{}
		for i := range 200 {
			key := fmt.Appendf(nil, "key %d", i)
			f.Add(key)
			for _, at := range f.Positions(key) {
				set[at] = true
			}
		}
		for _, order := range orders {
			t.Run(fmt.Sprint(m, order), func(t *testing.T) {
				var file bytes.Buffer
				n, err := f.WriteBits(&file, order)
				if err != nil || n != int64(file.Len()) {
					t.Fatalf("WriteBits = %d, %v; %d bytes were written", n, err, file.Len())
				}
				want := (m + 7) / 8
				if order >= classic.LittleEndianWords {
					want = (m + 63) / 64 * 8
				}
				if uint64(file.Len()) != want {
					t.Fatalf("%d bytes for %d bits, want %d", file.Len(), m, want)
				}
				ones := 0
				for _, b := range file.Bytes() {
					ones += bits.OnesCount8(b)
				}
				if ones != len(set) {
					t.Errorf("%d bits are set in the bytes, %d in the filter", ones, len(set))
				}
				for i := range set {
					if at, mask := place(order, i); file.Bytes()[at]&mask == 0 {
						t.Fatalf("bit %d is not at byte %d, mask %#x", i, at, mask)
					}
				}
				c := classic.Config{Bits: m, Probes: 3, Scheme: classic.SchemeMD5IndexKey}
				rest := bytes.NewReader(append(file.Bytes()[:want:want], "behind"...))
				g, err := c.ReadBits(rest, order)
				if err != nil || !g.Equal(f) {
					t.Fatalf("what was read differs from what was written: %v", err)
				}
				if left, _ := io.ReadAll(rest); string(left) != "behind" {
					t.Errorf("ReadBits left %q, want what lies behind the bits", left)
				}
				if _, err := c.ReadBits(bytes.NewReader(file.Bytes()[:want-1]), order); !errors.Is(err, bloom.ErrFormat) {
					t.Errorf("a byte too few: %v, want ErrFormat", err)
				}
			})
		}
	}
}

func TestReadBitsRefuses(t *testing.T) {
	c := classic.Config{Bits: 12, Probes: 1, Scheme: classic.SchemeMD5IndexKey}
	if _, err := c.ReadBits(bytes.NewReader([]byte{0, 0x10}), classic.LowBitFirst); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("bit 12 of 12 set: %v, want ErrFormat", err)
	}
	if _, err := c.ReadBits(bytes.NewReader([]byte{0, 0x08}), classic.HighBitFirst); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("bit 12 of 12 set: %v, want ErrFormat", err)
	}
	if _, err := c.ReadBits(bytes.NewReader(make([]byte, 8)), 99); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("order 99: %v, want ErrConfig", err)
	}
	if _, err := (classic.Config{}).ReadBits(nil, classic.LowBitFirst); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("no plan: %v, want ErrConfig", err)
	}
	// 4 TiB are claimed, a few bytes come.
	c.Bits = 1 << 45
	if _, err := c.ReadBits(bytes.NewReader(make([]byte, 1000)), classic.LowBitFirst); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("4 TiB of 1000 bytes: %v, want ErrFormat", err)
	}
}

func TestOpenBits(t *testing.T) {
	const m = 3<<20 + 13
	c := classic.Config{Bits: m, Probes: 5, Scheme: classic.SchemeDCSO}
	f, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		f.AddUint64(uint64(i))
	}
	file := bytes.NewBuffer(make([]byte, 48))
	if _, err := f.WriteBits(file, classic.LittleEndianWords); err != nil {
		t.Fatal(err)
	}
	file.WriteString("free data")
	path := filepath.Join(t.TempDir(), "bits")
	if err := os.WriteFile(path, file.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	g, err := c.OpenBits(path, 48)
	if err != nil {
		t.Fatal(err)
	}
	if !g.Equal(f) {
		t.Error("the opened filter differs from the one that was written")
	}
	h := g.Clone()
	if !h.AddString("new") || !h.ContainsString("new") {
		t.Error("the clone of an opened filter takes no key")
	}
	for name, change := range map[string]func(){
		"Add":        func() { g.AddString("Titanic") },
		"AddMany":    func() { g.AddStrings([]string{"Titanic"}, nil) },
		"Clear":      g.Clear,
		"Union":      func() { g.Union(f) },
		"Intersect":  func() { g.Intersect(f) },
		"Difference": func() { g.Difference(f) },
	} {
		if !panics(change) {
			t.Errorf("%s of an opened filter does not panic", name)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	for _, offset := range []int64{-8, 4, 50, 64, 1 << 40} {
		if g, err := c.OpenBits(path, offset); err == nil {
			t.Errorf("bits at offset %d were opened: %v", offset, g)
		}
	}
	binary.LittleEndian.PutUint64(file.Bytes()[48+m/64*8:], 1<<63)
	if err := os.WriteFile(path, file.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := c.OpenBits(path, 48); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("bits behind the last: %v, want ErrFormat", err)
	}
}

func panics(do func()) (did bool) {
	defer func() { did = recover() != nil }()
	do()
	return false
}
