//go:build !unix

package lines

import "io"

// WatchReader does nothing here: whether the output still has a reader is unknown until
// the next write fails.
func WatchReader(io.Writer, func()) (stop func()) { return func() {} }
