// Package memory allocates the words that hold a filter's bits, aligned as the
// kernels need them, on Go's heap or in memory mapped from the operating system. It
// also maps and locks files.
package memory

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// The errors that package bloom exports under the same names.
var (
	// ErrLocked: another process, or another part of this one, holds the file's lock.
	ErrLocked = errors.New("bloom: the file is in use by another process")

	// ErrBudget: there is not enough memory, or not enough address space.
	ErrBudget = errors.New("bloom: over budget")
)

// Mapping is memory from the operating system, outside Go's heap: a mapped file, or
// anonymous memory for a large filter's bits. It is unmapped by Close, or when the
// garbage collector finds the Mapping unreachable; so a reader of the bytes must keep
// the Mapping alive until it is done. pace.go makes sure that the collector runs in
// time to unmap the memory of dropped filters. Mapped files need no such care: the
// system can reclaim their memory at any time.
type Mapping struct {
	bytes   []byte
	room    *region // nil for a file
	cleanup runtime.Cleanup
}

func newFileMapping(b []byte) *Mapping {
	m := &Mapping{bytes: b}
	m.cleanup = runtime.AddCleanup(m, func(b []byte) { unmapFile(b) }, b)
	return m
}

// newRoom maps size bytes of anonymous memory. It returns nil on systems without such
// mappings.
func newRoom(size int) (*Mapping, error) {
	pace.wait(uint64(size))
	b, err := mapMemory(size)
	if b == nil || err != nil {
		return nil, err
	}
	r := &region{bytes: b, unmap: unmapMemory}
	m := &Mapping{bytes: b, room: r}
	pace.add(r, m)
	m.cleanup = runtime.AddCleanup(m, func(r *region) { pace.free(r) }, r)
	return m, nil
}

// MapFile maps the first size bytes of a file, read-only or writable. The mapping
// stays valid after the file is closed. The error wraps [ErrBudget] if the machine
// cannot address that many bytes, as a 32-bit machine from 2 GiB on.
func MapFile(file *os.File, size int64, writable bool) (*Mapping, error) {
	if uint64(size) > math.MaxInt {
		return nil, fmt.Errorf("%w: %d bytes are more than this machine can address", ErrBudget, size)
	}
	b, err := mapFile(file, int(size), writable)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", size, err)
	}
	return newFileMapping(b), nil
}

// Bytes returns the mapped memory, which is valid while the Mapping is alive and open.
func (m *Mapping) Bytes() []byte { return m.bytes }

// Close unmaps the memory. It may be called on nil and more than once.
func (m *Mapping) Close() error {
	if m == nil || m.bytes == nil {
		return nil
	}
	m.cleanup.Stop()
	b := m.bytes
	m.bytes = nil
	if m.room != nil {
		return pace.free(m.room)
	}
	return unmapFile(b)
}

// largeWords is the number of words from which they get a mapping of their own
// instead of space on Go's heap: 2 MiB, a huge page.
const largeWords = 2 << 20 / 8

// blockBytes is the alignment of words: a block of the default layout, eight cache
// lines.
const blockBytes = 512

// Words returns n zeroed words and the mapping that holds them, which is nil if they
// lie in Go's heap. The words begin on a 512-byte boundary, so that a block of a
// filter is eight whole cache lines and the kernels can compute one line's address
// from another's. The error wraps [ErrBudget].
func Words(n uint64) ([]uint64, *Mapping, error) {
	if n > math.MaxInt/8 {
		return nil, nil, fmt.Errorf("%w: %d bytes are more than this machine can address", ErrBudget, 8*n)
	}
	if n >= largeWords {
		room, err := newRoom(int(n * 8))
		if err != nil {
			return nil, nil, fmt.Errorf("%w: no memory for %d bytes: %w", ErrBudget, 8*n, err)
		}
		if room != nil {
			return wordsOf(room.bytes[:8*n]), room, nil
		}
	}
	words := make([]uint64, n)
	if n == 0 || blockOffset(words) == 0 {
		return words, nil, nil
	}
	const blockWords = blockBytes / 8
	words = make([]uint64, n+blockWords)
	if skip := blockOffset(words); skip != 0 {
		words = words[blockWords-skip:]
	}
	return words[:n:n], nil, nil
}

// Prefault touches all pages of the words, on all CPUs at once, so that the system
// allocates them now. Other goroutines may use the words meanwhile.
func Prefault(words []uint64) {
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
				Touch(words[from:min(from+piece, len(words))])
			}
		})
	}
	wait.Wait()
}

// PrefaultAhead makes the system allocate the pages from front to back, in another
// goroutine, while the caller fills them: otherwise page faults take half of the time
// of reading into new memory. The caller must call done before it closes the mapping
// that the words lie in; the collector does not unmap it before.
func PrefaultAhead(words []uint64, in *Mapping) (done func()) {
	if len(words) < 4*largeWords || runtime.GOMAXPROCS(0) == 1 {
		return func() {}
	}
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		defer runtime.KeepAlive(in)
		for len(words) > 0 && !stop.Load() {
			n := min(len(words), largeWords)
			if !populate(Bytes(words[:n])) {
				return
			}
			words = words[n:]
		}
	})
	return func() {
		stop.Store(true)
		wait.Wait()
	}
}

// Touch is Prefault of a few pages that will be written to. The first write to a huge page
// can take milliseconds, and Go can neither stop the world meanwhile nor run another
// goroutine on that CPU. Touch waits in system calls instead, one for each 2 MiB: a
// thread that maps memory has to wait for the end of each, and page faults for that
// thread.
func Touch(words []uint64) {
	for len(words) > 0 {
		n := min(len(words), largeWords)
		touch(words[:n])
		words = words[n:]
	}
}

func touch(words []uint64) {
	last := &words[len(words)-1]
	if whole := wholePages(words); len(whole) > 0 && populate(Bytes(whole)) {
		words = words[:1]
	}
	for i := 0; i < len(words); i += pageBytes / 8 {
		atomic.AddUint64(&words[i], 0)
	}
	atomic.AddUint64(last, 0)
}
