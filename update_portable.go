//go:build !linux

package bloom

import (
	"errors"
	"os"
)

// reserve cannot set room aside here.
func reserve(*os.File, uint64, uint64) error { return errors.ErrUnsupported }
