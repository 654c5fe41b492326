//go:build linux

package bloom_test

import (
	"errors"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
	"golang.org/x/sys/unix"
)

// Filters larger than this machine. Untouched memory takes no room, so a filter
// of a terabit is tried by a few keys in its far corners. Where a block's number
// times its size is worked out in 32 bits, or in an int, these fail.

// farHashes are hashes whose blocks lie all over a filter, at its ends and on
// both sides of where 32 bits end, as bits, as bytes and as words. There are few
// of them: each touches a page, which may be one of 2 MiB.
func farHashes(blocks uint64) (hashes []uint64) {
	const perBit, perByte, perWord = 1 << 32 / kernel.BlockBits, 1 << 32 / kernel.BlockBytes, 1 << 32 / kernel.WordsPerBlock
	for _, b := range []uint64{0, perBit, 2 * perBit, perByte / 2, perByte, perWord, perWord / 2,
		1 << 31, 1 << 32, blocks / 3, blocks / 2, blocks - 1} {
		for _, near := range []uint64{b - 1, b, b + 1} {
			if near < blocks {
				hashes = append(hashes, hashOfBlock(near, blocks))
			}
		}
	}
	random := uint64(1)
	for range 20 {
		random = random*6364136223846793005 + 1442695040888963407
		hashes = append(hashes, random)
	}
	hashes = append(hashes, 0, 1, math.MaxUint64)
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

// hashOfBlock returns a hash in the middle of those that fall into the block.
func hashOfBlock(block, blocks uint64) uint64 {
	h, _ := bits.Div64(block, 1<<63, blocks) // (block + 1/2) 2^64 / blocks
	return h
}

func blockOf(h, blocks uint64) uint64 {
	block, _ := bits.Mul64(h, blocks)
	return block
}

// farKeys adds the hashes to an empty filter of this many blocks and checks that
// none was found before it was added and all are afterwards. The first half goes
// one by one, the rest as a batch.
func farKeys(t *testing.T, blocks uint64, f adder) {
	t.Helper()
	hashes := farHashes(blocks)
	one, batch := hashes[:len(hashes)/2], hashes[len(hashes)/2:]
	for _, h := range one {
		if f.ContainsHash(h) || !f.AddHash(h) || f.AddHash(h) || !f.ContainsHash(h) {
			t.Errorf("hash %#x in block %d of %d: found before it was added, or not afterwards", h, blockOf(h, blocks), blocks)
		}
	}
	if n := f.ContainsHashes(batch, nil); n != 0 {
		t.Errorf("%d of %d hashes of a batch are found before they are added", n, len(batch))
	}
	if n := f.AddHashes(batch, nil); n != len(batch) {
		t.Errorf("%d of %d hashes of a batch are new", n, len(batch))
	}
	if n := f.ContainsHashes(hashes, nil); n != len(hashes) {
		t.Errorf("%d of %d hashes are found by a batch", n, len(hashes))
	}
	for _, h := range hashes {
		if !f.ContainsHash(h) {
			t.Errorf("hash %#x in block %d of %d is lost", h, blockOf(h, blocks), blocks)
		}
	}
}

type adder interface {
	AddHash(uint64) bool
	ContainsHash(uint64) bool
	AddHashes([]uint64, []bool) int
	ContainsHashes([]uint64, []bool) int
}

// TestSparse makes filters as anybody does.
func TestSparse(t *testing.T) {
	for _, size := range []uint64{1 << 34, 1<<34 + 12345*kernel.BlockBits, 1 << 36, 1 << 40} {
		f, err := bloom.Config{Keys: 1 << 20, Bits: size}.New()
		if err != nil {
			if !errors.Is(err, bloom.ErrBudget) || !strings.Contains(err.Error(), strconv.FormatUint(size/8, 10)+" bytes") {
				t.Errorf("%d bits: got error %v, want ErrBudget that names the bytes", size, err)
			}
			t.Logf("NOT CHECKED: New of %d bits; TestSparseWords does it below New. This machine says: %v", size, err)
			continue
		}
		farKeys(t, f.Plan().Blocks, f)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// words is a filter in memory that the test has mapped. Unlike the library it
// asks for no guarantee that the memory exists (MAP_NORESERVE), so it may be of
// any size.
type words struct{ kernel.Paired }

func (w *words) AddHash(h uint64) bool      { return w.Add(h) }
func (w *words) ContainsHash(h uint64) bool { return w.Contains(h) }
func (w *words) AddHashes(hashes []uint64, _ []bool) int {
	return w.AddBatch(hashes, make([]bool, len(hashes)))
}
func (w *words) ContainsHashes(hashes []uint64, _ []bool) int {
	return w.ContainsBatch(hashes, make([]bool, len(hashes)), new(kernel.Recent))
}

// TestSparseWords goes to the largest filter there is, 4 TiB, and looks at the
// words: the bits set are those that docs/format.md says, and no others.
func TestSparseWords(t *testing.T) {
	for _, blocks := range []uint64{1 << 22, 1 << 28, 1<<28 + 12345, kernel.MaxBlocks - 1, kernel.MaxBlocks} {
		if blocks*kernel.BlockBytes > math.MaxInt {
			t.Logf("NOT CHECKED: %d blocks, which a %d-bit machine cannot address", blocks, bits.UintSize)
			continue
		}
		memory, err := unix.Mmap(-1, 0, int(blocks*kernel.BlockBytes), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			t.Logf("NOT CHECKED: %d blocks: %v", blocks, err)
			continue
		}
		const k = 16
		w := &words{kernel.Paired{
			Words:  unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), len(memory)/8),
			Blocks: blocks,
			Rows:   kernel.RowsFor(k / 2),
		}}
		farKeys(t, blocks, w)

		want := map[uint64]uint64{} // word -> bits
		above := 0
		for _, h := range farHashes(blocks) {
			for _, bit := range positions(h, blocks, k) {
				want[bit/64] |= 1 << (bit % 64)
				if bit > 1<<33 {
					above++
				}
			}
		}
		if above < 10*k {
			t.Errorf("only %d bits of %d blocks lie above 2^33", above, blocks)
		}
		const pageWords = page / 8
		pages := map[uint64]bool{}
		for word := range want {
			pages[word/pageWords] = true
		}
		for p := range pages {
			for word := p * pageWords; word < min((p+1)*pageWords, uint64(len(w.Words))); word++ {
				if got := w.Words[word]; got != want[word] {
					t.Errorf("%d blocks: word %d is %#x, want %#x", blocks, word, got, want[word])
				}
			}
		}
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	}
}

// TestSparseFile opens files that are almost all hole, up to 4 TiB. Their bits
// were not set by the library but by docs/format.md.
func TestSparseFile(t *testing.T) {
	for _, blocks := range []uint64{1 << 22, 1<<28 + 12345, kernel.MaxBlocks} {
		path := filepath.Join(t.TempDir(), "sparse.bloom")
		head := claim(t, blocks)
		size := int64(le.Uint64(head[stateAt+32:]))
		k := int(le.Uint32(head[sectionAt+4:]))
		if err := os.WriteFile(path, head, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Logf("NOT CHECKED: a file of %d bytes: %v", size, err)
			continue
		}
		open := func() *bloom.Filter {
			t.Helper()
			start := time.Now()
			f, err := bloom.Open(path)
			took := time.Since(start)
			if errors.Is(err, bloom.ErrBudget) && size > math.MaxInt {
				t.Logf("NOT CHECKED: %v", err)
				return nil
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("Open of %d bytes took %v", size, took)
			if took > time.Second {
				t.Errorf("Open of %d bytes took %v: does it read the file?", size, took)
			}
			return f
		}
		f := open()
		if f == nil {
			continue
		}
		hashes := append(farHashes(blocks), f.HashString("Titanic"))
		if n := f.ContainsHashes(hashes, nil); n != 0 {
			t.Errorf("an empty file of %d bytes contains %d hashes", size, n)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}

		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hashes {
			for _, bit := range positions(h, blocks, k) {
				var b [1]byte
				if _, err := file.ReadAt(b[:], int64(body+bit/8)); err != nil {
					t.Fatal(err)
				}
				b[0] |= 1 << (bit % 8)
				if _, err := file.WriteAt(b[:], int64(body+bit/8)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}

		f = open()
		if !f.ContainsString("Titanic") || f.ContainsString("Avatar") || f.ContainsHashes(hashes, nil) != len(hashes) {
			t.Errorf("of %d keys in a file of %d bytes it has %d", len(hashes), size, f.ContainsHashes(hashes, nil))
		}
		for _, h := range hashes {
			if !f.ContainsHash(h) {
				t.Errorf("hash %#x in block %d of %d is not in the file", h, blockOf(h, blocks), blocks)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
