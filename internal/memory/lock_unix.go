//go:build unix && !aix

package memory

// This file encapsulates locks on files. The twin without them is lock_other.go.

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// LockFile takes the file's lock without waiting for it, or returns ErrLocked.
// The lock is advisory (flock): it excludes only callers that ask for it. It is
// released when the file is closed or the process ends, in whatever way. Until
// the process ends, a mapping of the file keeps it, too. The error wraps
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

// UnlockFile releases the lock.
func UnlockFile(file *os.File) { unix.Flock(int(file.Fd()), unix.LOCK_UN) }
