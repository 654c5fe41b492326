//go:build !unix

package lines

import "io"

// WatchReader does nothing where it is unknown whether the output is being read: the
// next write will fail.
func WatchReader(io.Writer, func()) (stop func()) { return func() {} }
