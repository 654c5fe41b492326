//go:build !unix

package memory

import (
	"errors"
	"io"
	"os"
)

var errReadOnly = errors.New("files cannot be changed in memory on this system")

// mapFile reads the file: without mmap, it is slower and takes memory, and means
// the same. Changing a file in memory is refused.
func mapFile(file *os.File, size int, writable bool) ([]byte, error) {
	if writable {
		return nil, errReadOnly
	}
	words, _, err := Words((uint64(size) + 7) / 8) // aligned as mapped pages are
	if err != nil {
		return nil, err
	}
	b := Bytes(words)[:size]
	_, err = io.ReadFull(io.NewSectionReader(file, 0, int64(size)), b)
	return b, err
}

// Sync and Detach are for mappings that cannot be had here.
func (m *Mapping) Sync() error           { return errReadOnly }
func (m *Mapping) Detach(*os.File) error { return errReadOnly }

// mapMemory has none to give: the words come from Go's heap.
func mapMemory(size int) ([]byte, error) { return nil, nil }

func unmapMemory([]byte) error { return nil }
func unmapFile([]byte) error   { return nil }
