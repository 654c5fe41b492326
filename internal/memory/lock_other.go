//go:build !unix || aix

package memory

import (
	"errors"
	"os"
)

// LockFile has no lock to take here.
func LockFile(*os.File) error { return errors.ErrUnsupported }

// UnlockFile has none to give back.
func UnlockFile(*os.File) {}
