// Package machine reports how much memory this process may use: what the machine has, or
// what the control groups of a container allow. On systems other than Linux all results
// are zero, which means unknown.
package machine

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory returns the memory of this machine in bytes, zero if unknown.
func Memory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}

// Available returns how many bytes of this machine's memory can be used without
// swapping, by the kernel's estimate, or zero if unknown.
func Available() uint64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// MemAvailable:   23842012 kB
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "MemAvailable:" && fields[2] == "kB" {
			kib, err := strconv.ParseUint(fields[1], 10, 54)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// Usable returns the memory in bytes that this process may use, and what sets that limit:
// the machine, or the file of a control group that allows less. It returns zero if
// unknown.
func Usable() (bytes uint64, from string) {
	total := Memory()
	if limit, from := groupLimit(os.DirFS("/")); limit != 0 && (total == 0 || limit < total) {
		return limit, from
	}
	return total, "the machine"
}
