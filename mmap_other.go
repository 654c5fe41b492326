//go:build !unix

package bloom

import (
	"io"
	"os"
)

// mapFile reads the file: without mmap, Open is slower and takes memory, and
// means the same.
func mapFile(file *os.File, size int64) ([]byte, error) {
	words, _, err := newWords((uint64(size) + 7) / 8) // aligned as mapped pages are
	if err != nil {
		return nil, err
	}
	b := wordBytes(words)[:size]
	_, err = io.ReadFull(io.NewSectionReader(file, 0, size), b)
	return b, err
}

// mapMemory has none to give: the words come from Go's heap.
func mapMemory(size int) (mapped, use []byte, err error) { return nil, nil, nil }

func unmapBytes([]byte) error { return nil }
