//go:build !unix

package lines

import "os"

// readable returns false, as there is no poll here: every short read is followed by a
// flush.
func readable(*os.File) bool { return false }
