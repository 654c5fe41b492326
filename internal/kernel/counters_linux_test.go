package kernel

import (
	"math"
	"math/bits"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestCountersFar tests the maximum number of counters, 2^45 in 16 TiB; untouched pages
// take no memory. That a key is found would say little: if its block were computed 2^20
// too low, Add and Contains would agree. So the test reads the counters.
func TestCountersFar(t *testing.T) {
	const bitsPerLine = 5
	for _, blocks := range []uint64{1<<20 + 1, 1 << 22, 1<<28 + 12345, MaxBlocks - 1, MaxBlocks} {
		if blocks > math.MaxInt/(8*CounterWordsPerBlock) {
			t.Logf("NOT CHECKED: %d blocks, which a %d-bit machine cannot address", blocks, bits.UintSize)
			continue
		}
		memory, err := unix.Mmap(-1, 0, int(blocks*CounterWordsPerBlock*8), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			t.Logf("NOT CHECKED: %d blocks: %v", blocks, err)
			continue
		}
		f := &Counters{
			Words:  unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), len(memory)/8),
			Blocks: blocks,
			Rows:   RowsFor(bitsPerLine),
		}
		seen := map[uint64]bool{}
		for shift := range 33 { // on both sides of 2^32 counters, nibbles, bytes, words or lines
			for _, block := range []uint64{1<<shift - 1, 1 << shift, blocks - 1<<shift} {
				if block >= blocks || seen[block] {
					continue
				}
				seen[block] = true
				h, _ := bits.Div64(block, 1<<63, blocks) // the middle hash of the block
				f.far(t, h, block, bitsPerLine)
			}
		}
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	}
}

// far adds h twice, removes it once, and checks that its counters are 1 and all others
// in the block are 0.
func (f *Counters) far(t *testing.T, h, block uint64, bitsPerLine int) {
	t.Helper()
	if f.Contains(h) || !f.Add(h) || f.Add(h) || f.Count(h) != 2 || !f.Remove(h) || !f.Contains(h) {
		t.Errorf("%d blocks, hash %#x: it was there before it was added, or not afterwards", f.Blocks, h)
	}
	want := map[int]bool{}
	for _, position := range bitsOf(h, 1, bitsPerLine) { // positions in a block do not depend on the number of blocks
		want[int(block*BlockBits)+position] = true
	}
	for position := int(block * BlockBits); position < int((block+1)*BlockBits); position++ {
		if got := f.at(position); (got == 1) != want[position] || got > 1 {
			t.Errorf("%d blocks, hash %#x: counter %d is %d, its counters are %v", f.Blocks, h, position, got, want)
			return
		}
	}
}
