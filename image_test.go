package bloom_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom"
)

// sharedKind is what the kinds for many goroutines have in common.
type sharedKind interface {
	AddUint64(uint64) bool
	ContainsUint64(uint64) bool
	bloom.Any
	io.WriterTo
}

// sharedKinds are filters of some MiB, with layers and generations, and what reads
// their files.
func sharedKinds(t *testing.T) map[string]struct {
	make func() sharedKind
	read func(file []byte) (interface{ ContainsUint64(uint64) bool }, error)
} {
	t.Helper()
	now := func() time.Time { return time.Unix(1_700_000_000, 0) }
	limit := int64(1 << 30)
	type contains = interface{ ContainsUint64(uint64) bool }
	type kind = struct {
		make func() sharedKind
		read func(file []byte) (contains, error)
	}
	must := func(f sharedKind, err error) sharedKind {
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	return map[string]kind{
		"Shared": {
			func() sharedKind { f, err := bloom.NewShared(2_000_000, 0.01); return must(f, err) },
			func(file []byte) (contains, error) { return bloom.Read(bytes.NewReader(file), limit) },
		},
		"Scalable": {
			func() sharedKind { f, err := bloom.NewScalable(50_000, 0.01); return must(f, err) },
			func(file []byte) (contains, error) { return bloom.ReadScalable(bytes.NewReader(file), limit) },
		},
		"Window": {
			func() sharedKind {
				w, err := bloom.WindowConfig{Keys: 2_000_000, Rate: 0.01, Span: time.Hour, Now: now}.New()
				return must(w, err)
			},
			func(file []byte) (contains, error) { return bloom.ReadWindow(bytes.NewReader(file), limit, now) },
		},
	}
}

// onWrite calls back before each write.
type onWrite struct {
	io.Writer
	do func()
}

func (w onWrite) Write(b []byte) (int, error) {
	w.do()
	return w.Writer.Write(b)
}

// TestWriteLive: keys are added while a filter is written, by the very goroutine that
// takes the bytes. The file is whole, has all that was there when writing began, and
// is made of the live bits: what is added before the first bits are written is in it.
func TestWriteLive(t *testing.T) {
	const before, during = 200_000, 20_000
	for name, kind := range sharedKinds(t) {
		t.Run(name, func(t *testing.T) {
			f := kind.make()
			defer f.Close()
			for i := range uint64(before) {
				f.AddUint64(i)
			}
			var file bytes.Buffer
			added, atFirst := uint64(before), uint64(0)
			n, err := f.WriteTo(onWrite{&file, func() {
				for range during {
					f.AddUint64(added)
					added++
				}
				if atFirst == 0 {
					atFirst = added
				}
			}})
			if err != nil || n != int64(file.Len()) {
				t.Fatalf("WriteTo = %d of %d, %v", n, file.Len(), err)
			}
			g, err := kind.read(file.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			for i := range uint64(before) {
				if !g.ContainsUint64(i) {
					t.Fatalf("key %d was added before, and is not in the file", i)
				}
			}
			if name == "Scalable" {
				return // which may have grown a layer that the file does not have
			}
			for i := uint64(before); i < atFirst; i++ {
				if !g.ContainsUint64(i) {
					t.Fatalf("key %d was added before the first bits were written, and is not in the file", i)
				}
			}
		})
	}
}

// TestImage: the pieces of an image are the file, in whatever order some are read
// again, and wrong ones are refused.
func TestImage(t *testing.T) {
	for name, kind := range sharedKinds(t) {
		t.Run(name, func(t *testing.T) {
			f := kind.make()
			defer f.Close()
			for i := range uint64(500_000) {
				f.AddUint64(i)
			}
			var want bytes.Buffer
			if _, err := f.WriteTo(&want); err != nil {
				t.Fatal(err)
			}
			for _, most := range []int{2 << 20, 3<<20 + 5, 16 << 20} {
				image, err := bloom.Inside.Image(f)
				if err != nil {
					t.Fatal(err)
				}
				if image.Size() != uint64(want.Len()) {
					t.Fatalf("Size = %d, want %d", image.Size(), want.Len())
				}
				var got []byte
				for {
					piece, err := image.Piece(uint64(len(got)), most)
					if err != nil || len(piece) > most {
						t.Fatalf("Piece at %d: %d bytes of at most %d, %v", len(got), len(piece), most, err)
					}
					if again, err := image.Piece(uint64(len(got)), most); err != nil || !bytes.Equal(again, piece) {
						t.Fatalf("the piece at %d is another one the second time, %v", len(got), err)
					}
					if len(piece) == 0 {
						break
					}
					got = append(got, piece...)
				}
				if !bytes.Equal(got, want.Bytes()) {
					t.Fatalf("in pieces of %d bytes the file is another one", most)
				}
			}
			image, err := bloom.Inside.Image(f)
			if err != nil {
				t.Fatal(err)
			}
			sums := image.Size() - uint64(4*((want.Len()-3*4096+1<<20-1)>>20+1))
			for _, at := range []uint64{1, 4096, 3*4096 + 8, image.Size() + 1, 1 << 63, sums} {
				if piece, err := image.Piece(at, 16<<20); !errors.Is(err, bloom.ErrFormat) {
					t.Errorf("Piece at %d, of a file that was not read to there: %d bytes, %v", at, len(piece), err)
				}
			}
		})
	}
}

// TestImageLive: the checksums are those of the pieces that were handed out, though
// the bits change.
func TestImageLive(t *testing.T) {
	before := uint64(300_000)
	if raceEnabled {
		before = 60_000
	}
	for name, kind := range sharedKinds(t) {
		t.Run(name, func(t *testing.T) {
			f := kind.make()
			defer f.Close()
			for i := range before {
				f.AddUint64(i)
			}
			image, err := bloom.Inside.Image(f)
			if err != nil {
				t.Fatal(err)
			}
			var stop sync.WaitGroup
			end := make(chan struct{})
			stop.Go(func() {
				for i := uint64(1 << 40); ; i++ {
					select {
					case <-end:
						return
					default:
						f.AddUint64(i)
					}
				}
			})
			var file []byte
			for {
				piece, err := image.Piece(uint64(len(file)), 2<<20)
				if err != nil {
					t.Error(err)
					break
				}
				if len(piece) == 0 {
					break
				}
				file = append(file, piece...)
			}
			close(end)
			stop.Wait()
			g, err := kind.read(file)
			if err != nil {
				t.Fatal(err)
			}
			for i := range before {
				if !g.ContainsUint64(i) {
					t.Fatalf("key %d is not in the file", i)
				}
			}
		})
	}
}

// TestRoomByBits: a filter that was written while keys were being added counts only the
// keys from before. Read again, its newest layer takes at most as many keys as planned,
// including those that its bits show.
func TestRoomByBits(t *testing.T) {
	f, err := bloom.NewScalable(200_000, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plan, room := bloom.Inside.NewestLayer(f)
	var file bytes.Buffer
	next := uint64(0)
	_, err = f.WriteTo(onWrite{&file, func() {
		for ; next < room*9/10; next++ { // all of them behind the first write
			f.AddUint64(next)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := bloom.ReadScalable(bytes.NewReader(file.Bytes()), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, left := bloom.Inside.NewestLayer(g); left > room/10+plan.Keys/100 {
		t.Errorf("room for %d more keys, of %d, in a layer that has %d", left, room, next)
	}
	for i := range room {
		g.AddUint64(1<<40 + i)
	}
	if first := g.Layers()[0]; first.Keys > float64(plan.Keys)*1.01 {
		t.Errorf("the layer has about %.0f keys, and was planned for %d", first.Keys, plan.Keys)
	}
}

// TestWindowRoomByBits is TestRoomByBits for the newest generation of a window, which
// grows when its first layer has as many keys as that was planned for.
func TestWindowRoomByBits(t *testing.T) {
	w, err := bloom.NewWindow(400_000, 0.01, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	first := bloom.Inside.Sizes(w)[0].Plan
	room := uint64(float64(first.Keys) * (1 - first.Rate))
	var file bytes.Buffer
	next := uint64(0)
	_, err = w.WriteTo(onWrite{&file, func() {
		for ; next < room*9/10; next++ { // all of them behind the first write
			w.AddUint64(next)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := bloom.ReadWindow(bytes.NewReader(file.Bytes()), 1<<30, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	more := uint64(0)
	for ; len(bloom.Inside.Sizes(read)) == 1 && more < room; more++ {
		read.AddUint64(1<<40 + more)
	}
	if more > room/10+first.Keys/100 {
		t.Errorf("a layer for %d keys, which had %d, took %d more", first.Keys, next, more)
	}
	if r := read.Report(); r.Rate > 0.01 || r.Overfull() {
		t.Errorf("the rate is %g", r.Rate)
	}
}

// TestSyncUnion: a union concurrent with adds to both sides loses nothing, and adding
// keeps its one winner.
func TestSyncUnion(t *testing.T) {
	for _, by := range []uint64{1, 4} {
		t.Run(fmt.Sprint("by ", by), func(t *testing.T) {
			big, err := bloom.Config{Keys: 400_000, Rate: 0.001, Folds: 4}.NewShared()
			if err != nil {
				t.Fatal(err)
			}
			small, err := bloom.Inside.Folded(big, by)
			if err != nil {
				t.Fatal(err)
			}
			const keys = 60_000
			for i := range uint64(keys) {
				big.AddUint64(i)
			}
			const racers = 3
			var won [racers][]bool
			var wait sync.WaitGroup
			for r := range racers {
				won[r] = make([]bool, keys)
				wait.Go(func() {
					for i := range uint64(keys) {
						won[r][i] = small.AddUint64(1<<40 + i)
						if r == 0 {
							big.AddUint64(1<<41 + i)
						}
					}
				})
			}
			pieces := 0
			if err := small.Union(big, func() error { pieces++; return nil }); err != nil {
				t.Fatal(err)
			}
			wait.Wait()
			for i := range uint64(keys) {
				if !small.ContainsUint64(i) || !small.ContainsUint64(1<<40+i) {
					t.Fatalf("key %d is lost", i)
				}
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
			if pieces == 0 {
				t.Error("nobody was called in between")
			}
		})
	}
}

// TestSyncUnionIsUnion: the bits are those of Filter.Union, and of Filter.Fold.
func TestSyncUnionIsUnion(t *testing.T) {
	a, _ := bloom.Config{Keys: 50_000, Rate: 0.01, Folds: 8}.New()
	b, _ := bloom.Config{Keys: 50_000, Rate: 0.01, Folds: 8}.New()
	for i := range 20_000 {
		a.Add(binary.LittleEndian.AppendUint32(nil, uint32(i)))
		b.Add(binary.LittleEndian.AppendUint32(nil, uint32(i+10_000)))
	}
	folded, err := a.Fold(8)
	if err != nil {
		t.Fatal(err)
	}
	union := a.Clone()
	if err := union.Union(b); err != nil {
		t.Fatal(err)
	}
	sa, sb := a.Clone().Share(), b.Clone().Share()
	twin, err := bloom.Inside.Folded(sa, 8)
	if err != nil {
		t.Fatal(err)
	}
	if err := twin.Union(sa, nil); err != nil {
		t.Fatal(err)
	}
	if err := sa.Union(sb, nil); err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]*bloom.Filter{"folded": {folded, snapshot(t, twin)}, "union": {union, snapshot(t, sa)}} {
		if !pair[0].Equal(pair[1]) || pair[0].Report().Added != pair[1].Report().Added {
			t.Errorf("%s: other bits, or %d keys and %d", what, pair[0].Report().Added, pair[1].Report().Added)
		}
	}
	other, _ := bloom.NewShared(1000, 0.0001)
	if err := sa.Union(other, nil); !errors.Is(err, bloom.ErrUnlike) {
		t.Errorf("a union of unlike filters: %v", err)
	}
	stop := errors.New("stop")
	if err := sa.Union(sb, func() error { return stop }); err != stop {
		t.Errorf("between's error came back as %v", err)
	}
	if _, err := bloom.Inside.Folded(sa, 7); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("Folded(7): %v", err)
	}
}

func snapshot(t *testing.T, f *bloom.Shared) *bloom.Filter {
	t.Helper()
	s, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
