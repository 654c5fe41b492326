//go:build !unix || aix

package memory

import (
	"errors"
	"os"
)

// LockFile is not supported here.
func LockFile(*os.File) error { return errors.ErrUnsupported }

// UnlockFile does nothing: there is no lock to release.
func UnlockFile(*os.File) {}
