package bloom

// This file encapsulates unsafe in this package: stringBytes, whose safe twin is
// []byte(s), which allocates.

import (
	"fmt"
	"math"
	"os"
	"unsafe"

	"github.com/bloomery/bloom/internal/memory"
)

// newWords returns n zeroed words for a filter's bits, and the mapping they lie
// in, nil if they lie in Go's heap; see [memory.Words]. The error wraps
// [ErrBudget].
func newWords(n uint64) ([]uint64, *memory.Mapping, error) {
	words, mapping, err := memory.Words(n)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrBudget, err)
	}
	return words, mapping, nil
}

// mapFile maps the first size bytes of a file. The error wraps [ErrBudget] where
// this machine has no addresses for so many, as one of 32 bits from 2 GiB on.
func mapFile(file *os.File, size uint64, writable bool) (*memory.Mapping, error) {
	if size > math.MaxInt {
		return nil, fmt.Errorf("%w: %d bytes are more than this machine can address", ErrBudget, size)
	}
	return memory.MapFile(file, int64(size), writable)
}

// Prefault touches all of the filter's memory now, on all CPUs at once, so that
// the system provides it before the first adds: they would otherwise wait for
// each page in turn, which on virtual machines is slower than adding. It takes
// the memory of the whole filter whatever is added later, and is of use above
// some hundreds of megabytes.
func (f *Filter) Prefault() {
	if f.readOnly {
		panicReadOnly()
	}
	f.mustBeOpen()
	memory.Prefault(f.bits.Words)
	f.keepAlive()
}

// stringBytes views s as bytes that must not be written.
func stringBytes(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
