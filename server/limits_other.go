//go:build !linux

package server

import "math"

// maxFiles is how many descriptors this process may have open; not known here.
func maxFiles() int { return math.MaxInt32 }
