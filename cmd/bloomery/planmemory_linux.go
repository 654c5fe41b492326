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

// memoryHere is how many bytes of memory there are for this process, and what says
// so: the machine, or a control group that has less. Zero if unknown.
func memoryHere() (bytes uint64, from string) {
	total := machineMemory()
	if limit, from := groupLimit(os.DirFS("/")); limit != 0 && (total == 0 || limit < total) {
		return limit, from
	}
	return total, "the machine"
}
