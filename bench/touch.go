// The machine's limit, as a contender: for each hash, touch the random cache lines
// that a filter of the same size would touch, and do nothing else. The rest of a
// filter's time is its own. This file uses unsafe to pass addresses to the assembly
// in touch_amd64.s; the twin in plain Go is in touch_noasm.go.

package main

import (
	"log"
	"math/bits"
	"unsafe"

	"github.com/bloomery/bloom"
	"golang.org/x/sys/unix"
)

const (
	lineBytes  = 64
	blockBytes = 512

	// touchAhead is how many keys ahead lines are prefetched.
	touchAhead = 24
)

// newTouch reads one line per key for a query, the least that a miss needs. For an
// add it writes two lines of one 512-byte block. Its memory comes from the system, in
// huge pages if available, as Filter's does.
func newTouch(n uint64, p float64) *contender {
	plan := must(bloom.Config{Keys: n, Rate: p}.Plan())
	memory, close := hugeMemory(int(plan.Bytes()))
	lines, blocks := plan.Bytes()/lineBytes, plan.Bytes()/blockBytes
	sink := uint64(0)
	return &contender{
		bits:  float64(plan.Bits),
		close: close,
		hashBatch: loops[uint64]{
			add: func(hashes []uint64) {
				body := max(len(hashes)-touchAhead, 0)
				if body > 0 {
					touchTwo(unsafe.SliceData(memory), blocks, unsafe.SliceData(hashes), body)
				}
				touchTwoGo(memory, blocks, hashes[body:])
			},
			count: func(hashes []uint64) int {
				body := max(len(hashes)-touchAhead, 0)
				if body > 0 {
					sink += touchOne(unsafe.SliceData(memory), lines, unsafe.SliceData(hashes), body)
				}
				sink += touchOneGo(memory, lines, hashes[body:])
				return len(hashes)
			},
		},
	}
}

// touchOneGo reads the first word of one line per hash and returns their XOR.
func touchOneGo(memory []byte, lines uint64, hashes []uint64) (sum uint64) {
	for _, h := range hashes {
		sum ^= *word(memory, reduce(h, lines)*lineBytes)
	}
	return sum
}

// touchTwoGo sets a bit in the first word of two lines of one block per hash.
func touchTwoGo(memory []byte, blocks uint64, hashes []uint64) {
	for _, h := range hashes {
		line := reduce(h, blocks)*(blockBytes/lineBytes) | h&7
		*word(memory, line*lineBytes) |= 1
		*word(memory, (line^3)*lineBytes) |= 1
	}
}

// reduce maps a hash to 0..n-1 by multiply-high.
func reduce(h, n uint64) uint64 {
	high, _ := bits.Mul64(h, n)
	return high
}

func word(memory []byte, at uint64) *uint64 { return (*uint64)(unsafe.Pointer(&memory[at])) }

// hugeMemory maps zeroed memory that begins on a huge page, in huge pages if the
// system grants them. It returns a function that unmaps it.
func hugeMemory(size int) (memory []byte, close func()) {
	const huge = 2 << 20
	mapped := must(unix.Mmap(-1, 0, size+huge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON))
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mapped))) & (huge - 1)
	memory = mapped[skip:][:size]
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // if refused, the pages are small, as for Filter
	return memory, func() {
		if err := unix.Munmap(mapped); err != nil {
			log.Fatal(err)
		}
	}
}
