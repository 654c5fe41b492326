//go:build !unix

package memory

import (
	"errors"
	"io"
	"os"
)

var errReadOnly = errors.New("files cannot be changed in memory on this system")

// mapFile reads the file instead of mapping it: this is slower and takes memory, but
// has the same effect. Writable mappings are refused.
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

// Sync and Detach are for writable mappings, which do not exist here.
func (m *Mapping) Sync() error           { return errReadOnly }
func (m *Mapping) Detach(*os.File) error { return errReadOnly }

// mapMemory returns nothing: the words are allocated on Go's heap.
func mapMemory(size int) ([]byte, error) { return nil, nil }

func unmapMemory([]byte) error { return nil }
func unmapFile([]byte) error   { return nil }
