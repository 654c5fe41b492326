package memory

import (
	"os"
	"sync"
)

// What memory takes, for those who keep accounts of it: an allocator rounds up.

// Allocated returns how many bytes of Go's heap an object of this size takes.
func Allocated(bytes uint64) uint64 {
	classes := sizeClasses()
	if largest := classes[len(classes)-1]; bytes > largest {
		const page = 8 << 10 // Go's own: larger objects have some of their own
		return (bytes + page - 1) &^ (page - 1)
	}
	return classes[bytes]
}

// smallBytes is above the largest objects that share pages, in any release of Go so
// far: 32 KiB.
const smallBytes = 32 << 10

// sizeClasses is what objects of 0, 1, 2 and so on bytes take. The sizes are the
// runtime's own, and append shows them: what it makes is as large as fits.
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

// Taken is how many bytes of memory the words take that [Words] returns.
func Taken(n uint64) uint64 {
	if n >= largeWords {
		return mappedBytes(8 * n)
	}
	if size := Allocated(8 * n); size%blockBytes == 0 {
		return size // so they begin on a block's boundary, or on a page
	}
	return Allocated(8*n + blockBytes)
}

// mappedBytes returns how many bytes are mapped for a filter of this size. The last page is a huge one
// too, which saves up to 511 page faults, unless more than a 16th would be of no use:
// then the end has small pages. A filter of 2.1 MiB would else take 4.
func mappedBytes(size uint64) uint64 {
	page := uint64(os.Getpagesize())
	huge := max(page, hugePage)
	if whole := (size + huge - 1) &^ (huge - 1); whole-size <= size/16 {
		return whole
	}
	return (size + page - 1) &^ (page - 1)
}
