package bloom

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bloomery/bloom/internal/kernel"
)

// mapping is memory from the operating system, outside Go's heap: a file, or
// room for a large filter's bits. It is given back by close, or else when the
// collector finds the mapping unreachable; so whoever looks at the bytes must
// keep the mapping alive until the look is over.
type mapping struct {
	bytes   []byte
	cleanup runtime.Cleanup
}

func newMapping(b []byte) *mapping {
	m := &mapping{bytes: b}
	m.cleanup = runtime.AddCleanup(m, func(b []byte) { unmapBytes(b) }, b)
	return m
}

// close may be called on nil and more than once.
func (m *mapping) close() error {
	if m == nil || m.bytes == nil {
		return nil
	}
	m.cleanup.Stop()
	b := m.bytes
	m.bytes = nil
	if err := unmapBytes(b); err != nil {
		return fmt.Errorf("bloom: closing: %w", err)
	}
	return nil
}

// largeWords is where words leave Go's heap for a mapping of their own: at 2
// MiB, a huge page.
const largeWords = 2 << 20 / 8

// newWords returns n zeroed words that begin on a 512-byte boundary, so that a
// block of the filter is eight whole cache lines and the kernels can find one
// line's address from another's, and the mapping they lie in, nil if they lie in
// Go's heap. The error wraps [ErrBudget].
func newWords(n uint64) ([]uint64, *mapping, error) {
	if n > math.MaxInt/8 {
		return nil, nil, fmt.Errorf("%w: %d bytes are more than this machine can address", ErrBudget, 8*n)
	}
	if n >= largeWords {
		mapped, use, err := mapMemory(int(n * 8))
		if err != nil {
			return nil, nil, fmt.Errorf("%w: no memory for %d bytes: %w", ErrBudget, 8*n, err)
		}
		if mapped != nil {
			return byteWords(use), newMapping(mapped), nil
		}
	}
	words := make([]uint64, n)
	if n == 0 || blockOffset(words) == 0 {
		return words, nil, nil
	}
	words = make([]uint64, n+kernel.WordsPerBlock)
	if skip := blockOffset(words); skip != 0 {
		words = words[kernel.WordsPerBlock-skip:]
	}
	return words[:n:n], nil, nil
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
	prefault(f.bits.Words)
	f.keepAlive()
}

// prefault gives each CPU every so-manieth piece. Other goroutines may use the
// words meanwhile.
func prefault(words []uint64) {
	const piece = 64 << 20 / 8
	var next atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for {
				from := int(next.Add(piece)) - piece
				if from >= len(words) {
					return
				}
				touch(words[from:min(from+piece, len(words))])
			}
		})
	}
	wait.Wait()
}

func touch(words []uint64) {
	if len(words) >= largeWords && populate(wordBytes(words)) {
		return
	}
	for i := 0; i < len(words); i += 4096 / 8 {
		atomic.AddUint64(&words[i], 0)
	}
}
