//go:build unix

package server

import (
	"golang.org/x/sys/unix"
)

// processorSeconds is how long the process has computed.
func processorSeconds() (user, system float64) {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0, 0
	}
	seconds := func(t unix.Timeval) float64 { return float64(t.Nano()) / 1e9 }
	return seconds(usage.Utime), seconds(usage.Stime)
}
