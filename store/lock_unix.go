//go:build unix && !aix

package store

// This file encapsulates calls of Unix. The twin without them is lock_other.go.

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bloomery/bloom"
)

// lockFile takes the file's lock without waiting for it, or returns
// bloom.ErrLocked. It goes when the file is closed, or the process ends.
func lockFile(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == unix.EINTR:
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return bloom.ErrLocked
		}
		return os.NewSyscallError("flock", err)
	}
}
