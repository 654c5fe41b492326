package server

import (
	"math"

	"golang.org/x/sys/unix"
)

// maxFiles is how many descriptors this process may have open.
func maxFiles() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32))
}
