package filterfile

// This file encapsulates what only Linux has: reserving disk space without writing. The
// twin without it is reserve_other.go.

import (
	"os"

	"golang.org/x/sys/unix"
)

// Reserve makes the file system reserve disk space for the bytes between two offsets of
// the file. New bytes are zeros, existing ones stay. The error is
// errors.ErrUnsupported if the file system cannot do this.
//
// It checks the free space first: a call that fails for lack of space may already have
// taken all that was left, so that other programs find a full disk.
func Reserve(file *os.File, from, to uint64) error {
	fd := int(file.Fd())
	var now unix.Stat_t
	var disk unix.Statfs_t
	if unix.Fstat(fd, &now) == nil && unix.Fstatfs(fd, &disk) == nil && disk.Bsize > 0 {
		have := uint64(now.Blocks) * 512
		if to > have && (to-have)/uint64(disk.Bsize) > disk.Bavail {
			return os.NewSyscallError("fallocate", unix.ENOSPC)
		}
	}
	for {
		err := unix.Fallocate(fd, 0, int64(from), int64(to-from))
		if err != unix.EINTR {
			return os.NewSyscallError("fallocate", err)
		}
	}
}
