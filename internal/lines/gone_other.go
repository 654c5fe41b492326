//go:build !unix

package lines

import "io"

// WatchReader does nothing where it cannot be told whether somebody reads: the next
// write tells.
func WatchReader(io.Writer, func()) (stop func()) { return func() {} }
