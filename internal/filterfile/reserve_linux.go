package filterfile

// This file encapsulates what only Linux has: room on the disk without writing
// it. The twin without it is update_portable.go.

import (
	"os"

	"golang.org/x/sys/unix"
)

// Reserve has the file system set room aside for the bytes from one place in
// the file to another. New ones are zeros, those that are there stay. The error
// is errors.ErrUnsupported where the file system cannot do this.
//
// It asks for the free room first: a call that fails for lack of it would have
// taken all there is until then, from everybody.
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
