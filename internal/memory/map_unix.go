//go:build unix

package memory

// This file encapsulates the memory calls of Unix, one of which takes an address
// and so needs unsafe. The twin without them is map_other.go.

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapFile(file *os.File, size int, writable bool) ([]byte, error) {
	protection := unix.PROT_READ
	if writable {
		protection |= unix.PROT_WRITE
	}
	return unix.Mmap(int(file.Fd()), 0, size, protection, unix.MAP_SHARED)
}

// Sync writes what was changed in a writable mapping of a file to the disk, and
// returns when it is there.
func (m *Mapping) Sync() error { return unix.Msync(m.bytes, unix.MS_SYNC) }

// Detach cuts a writable mapping of the file off from it. It holds the same bytes
// at the same place; what is changed from now on takes memory and stays in this
// process. Others may look at the bytes meanwhile.
func (m *Mapping) Detach(file *os.File) error {
	_, err := unix.MmapPtr(int(file.Fd()), 0, unsafe.Pointer(&m.bytes[0]), uintptr(len(m.bytes)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	return err
}

// mapMemory returns zeroed memory that is not touched yet: it takes no room
// until it is written. Without MAP_NORESERVE, which a filter cannot use: its
// keys touch every page of it, so one that does not fit into the machine's
// memory would be made gladly and killed later. As it is, Linux refuses at once
// what memory and swap could never hold (vm.overcommit_memory 0).
//
// The memory begins on a huge page and ends as mappedBytes says: what is mapped around
// it at first goes back. If more stayed mapped behind it, the system would make the
// last page a huge one as it likes.
func mapMemory(size int) ([]byte, error) {
	length := uintptr(mappedBytes(uint64(size)))
	mapped, err := unix.MmapPtr(-1, 0, nil, length+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	before := -uintptr(mapped) & (hugePage - 1)
	use := unsafe.Add(mapped, before)
	if before > 0 {
		unix.MunmapPtr(mapped, before)
	}
	if behind := hugePage - before; behind > 0 {
		unix.MunmapPtr(unsafe.Add(use, length), behind)
	}
	b := unsafe.Slice((*byte)(use), length)
	wantHugePages(b)
	return b, nil
}

func unmapMemory(b []byte) error { return unix.MunmapPtr(unsafe.Pointer(&b[0]), uintptr(len(b))) }

func unmapFile(b []byte) error { return unix.Munmap(b) }
