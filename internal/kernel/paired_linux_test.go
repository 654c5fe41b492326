package kernel

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestPairedFar tests filters beyond the cache, where other loops run, and beyond 2^32
// bytes. Untouched pages take no memory.
func TestPairedFar(t *testing.T) {
	if bits.UintSize < 64 {
		t.Skip("8 GiB do not fit into this address space")
	}
	const bitsPerLine = 3
	onEachPath(t, func(t *testing.T) {
		for _, blocks := range []uint64{cachedWords/WordsPerBlock + 1, 1<<24 + 5} {
			memory, err := unix.Mmap(-1, 0, int(blocks*BlockBytes), unix.PROT_READ|unix.PROT_WRITE,
				unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
			if err != nil {
				t.Skipf("no %d blocks: %v", blocks, err)
			}
			defer unix.Munmap(memory)
			f := &Paired{
				Words:  unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), len(memory)/8),
				Blocks: blocks,
				Rows:   RowsFor(bitsPerLine),
			}
			random := rand.New(rand.NewPCG(15, blocks))
			hashes, answers := make([]uint64, 200), make([]bool, 200)
			for i := range hashes {
				hashes[i] = random.Uint64()
			}
			added := hashes[:100]
			if n := f.AddBatch(added, answers[:100]); n != 100 {
				t.Fatalf("%d blocks: %d of 100 keys were new", blocks, n)
			}
			want := map[uint64]*[WordsPerBlock]uint64{}
			for _, h := range added {
				p := f.Probe(h)
				if want[p.Block] == nil {
					want[p.Block] = new([WordsPerBlock]uint64)
				}
				for i, line := range p.Lines {
					for lane, mask := range p.Masks[i] {
						want[p.Block][line*LanesPerLine+lane] |= mask
					}
				}
			}
			for block, words := range want {
				if got := f.Words[block*WordsPerBlock:][:WordsPerBlock]; !slices.Equal(got, words[:]) {
					t.Fatalf("%d blocks: block %d is %#x, want %#x", blocks, block, got, words)
				}
			}
			for _, hits := range []bool{false, true} {
				n := f.ContainsBatch(hashes, answers, &Recent{hits: hits})
				if n != 100 || slices.Contains(answers[:100], false) {
					t.Errorf("%d blocks, recent hits %v: ContainsBatch finds %d of 100 keys: %v", blocks, hits, n, answers)
				}
			}
		}
	})
}

// TestPairedAtPageEnds: batches whose hashes and answers end at a page that cannot be
// read. A loop that fetches one hash too many crashes the test.
func TestPairedAtPageEnds(t *testing.T) {
	page := unix.Getpagesize()
	guarded := func() []byte {
		memory, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Munmap(memory) })
		if err := unix.Mprotect(memory[page:], unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
		return memory[:page:page]
	}
	const most = 130
	hashes := unsafe.Slice((*uint64)(unsafe.Pointer(&guarded()[page-8*most])), most)
	answers := unsafe.Slice((*bool)(unsafe.Pointer(&guarded()[page-most])), most)
	random := rand.New(rand.NewPCG(17, 18))
	for i := range hashes {
		hashes[i] = random.Uint64()
	}
	onEachPath(t, func(t *testing.T) {
		f := newPaired(61, 3)
		stripes := NewStripes(61)
		contains, add := everyWay(f)
		for n := range most + 1 {
			hashes, answers := hashes[most-n:], answers[most-n:]
			for _, way := range contains {
				way(hashes, answers)
			}
			for _, way := range add {
				way(hashes, answers)
			}
			f.AddBatch(hashes, answers)
			f.AddBatchSync(stripes, hashes, answers)
			if found := f.ContainsBatchSync(hashes, answers, &Recent{}); found != n {
				t.Fatalf("%d of %d added keys are found", found, n)
			}
		}
	})
}
