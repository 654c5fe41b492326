//go:build !unix || aix

package bloom

import (
	"fmt"
	"os"
	"runtime"
)

// lockFile has no lock to take here. Files are not changed in place without.
func lockFile(*os.File) error {
	return fmt.Errorf("files cannot be changed in place on %s", runtime.GOOS)
}

func unlockFile(*os.File) {}
