//go:build !linux

package filterfile

import (
	"errors"
	"os"
)

// Reserve is not supported here.
func Reserve(*os.File, uint64, uint64) error { return errors.ErrUnsupported }
