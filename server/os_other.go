//go:build !unix

package server

import "math"

// maxFiles returns how many descriptors this process may have open; not known here.
func maxFiles() int { return math.MaxInt32 }

// processorSeconds is not known here.
func processorSeconds() (user, system float64) { return 0, 0 }
