package memory

import (
	"os"
	"sync"
)

// How much memory an allocation takes, for callers that have a budget: allocators round
// up.

// Allocated returns how many bytes of Go's heap an object of this size takes.
func Allocated(bytes uint64) uint64 {
	classes := sizeClasses()
	if largest := classes[len(classes)-1]; bytes > largest {
		const page = 8 << 10 // of Go's heap: larger objects have pages of their own
		return (bytes + page - 1) &^ (page - 1)
	}
	return classes[bytes]
}

// smallBytes is at least the size of the largest objects that share pages, in every
// release of Go so far: 32 KiB.
const smallBytes = 32 << 10

// sizeClasses[n] is the number of bytes that an object of n bytes takes. The size
// classes are internal to the runtime, but append shows them: the capacity of a new
// slice fills its size class.
var sizeClasses = sync.OnceValue(func() []uint64 {
	classes := make([]uint64, 1, smallBytes+1)
	for uint64(len(classes)) <= smallBytes {
		size := uint64(cap(append([]byte(nil), make([]byte, len(classes))...)))
		for uint64(len(classes)) <= min(size, smallBytes) {
			classes = append(classes, size)
		}
	}
	return classes
})

// Taken returns how many bytes of memory n words take that [Words] returns.
func Taken(n uint64) uint64 {
	if n >= largeWords {
		return mappedBytes(8 * n)
	}
	if size := Allocated(8 * n); size%blockBytes == 0 {
		return size // objects of this size begin on a block boundary, or on a page
	}
	return Allocated(8*n + blockBytes)
}

// mappedBytes returns how many bytes are mapped for a filter of this size. The last
// page is a huge one, too, which saves up to 511 page faults, unless that would waste
// more than a 16th of the size: then the end has small pages. Otherwise a filter of
// 2.1 MiB would take 4.
func mappedBytes(size uint64) uint64 {
	page := uint64(os.Getpagesize())
	huge := max(page, hugePage)
	if whole := (size + huge - 1) &^ (huge - 1); whole-size <= size/16 {
		return whole
	}
	return (size + page - 1) &^ (page - 1)
}
