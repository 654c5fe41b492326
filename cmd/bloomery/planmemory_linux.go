package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// availableMemory is how many bytes of this machine's memory can be had without
// swapping, as the kernel reckons, zero if unknown.
func availableMemory() uint64 {
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

// memoryCeiling is how many bytes of memory there are for this process: the
// machine's, or those of its control group (cgroup v2) if that has less; zero if
// unknown.
func memoryCeiling() uint64 {
	total := machineMemory()
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return total
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit == 0 { // "max"
		return total
	}
	return min(total, limit)
}
