//go:build unix && !aix

package memory

// This file encapsulates locks on files. The twin without them is lock_other.go.

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// LockFile takes the file's lock without waiting for it, or returns ErrLocked.
// The lock is an advisory one (flock): it keeps out those who ask for it too,
// and goes when the file is closed or the process ends, however that comes
// about. Until then a mapping keeps it, too. The error wraps
// [errors.ErrUnsupported] where there are no such locks.
func LockFile(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == unix.EINTR:
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		}
		return os.NewSyscallError("flock", err)
	}
}

// UnlockFile gives the lock back.
func UnlockFile(file *os.File) { unix.Flock(int(file.Fd()), unix.LOCK_UN) }
