//go:build unix

package server

import (
	"math"

	"golang.org/x/sys/unix"
)

// maxFiles returns how many descriptors this process may have open.
func maxFiles() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32))
}

// processorSeconds returns the processor time that the process has used.
func processorSeconds() (user, system float64) {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0, 0
	}
	seconds := func(t unix.Timeval) float64 { return float64(t.Nano()) / 1e9 }
	return seconds(usage.Utime), seconds(usage.Stime)
}
