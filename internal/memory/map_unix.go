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

// Sync writes the changes in a writable mapping of a file to the disk, and returns
// when they are there.
func (m *Mapping) Sync() error { return unix.Msync(m.bytes, unix.MS_SYNC) }

// Detach disconnects a writable mapping from its file. The mapping holds the same
// bytes at the same address; later changes take memory and stay in this process.
// Other goroutines may read the bytes meanwhile.
func (m *Mapping) Detach(file *os.File) error {
	_, err := unix.MmapPtr(int(file.Fd()), 0, unsafe.Pointer(&m.bytes[0]), uintptr(len(m.bytes)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	return err
}

// mapMemory maps size bytes of zeroed memory. The pages take no memory until they are
// written. MAP_NORESERVE would be wrong: keys touch every page of a filter, so a
// filter larger than the machine's memory would be created without complaint, and the
// process killed later. Without the flag, Linux refuses at once what memory and swap
// could never hold (vm.overcommit_memory 0).
//
// The memory begins on a huge page and ends where mappedBytes says, so mapMemory maps
// a huge page more than it needs and unmaps the excess at both ends. If the excess
// after the end stayed mapped, the system would be free to back the last page by a
// huge one.
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
