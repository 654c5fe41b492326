// The loops of touch.go for CPUs without assembly here. Without prefetching they are
// no limit, only a hint. The twin is touch_amd64.s.

//go:build !amd64

package main

import "unsafe"

const touchForm = "plain Go, not prefetched"

func touchOne(memory *byte, lines uint64, hashes *uint64, n int) uint64 {
	return touchOneGo(unsafe.Slice(memory, lines*lineBytes), lines, unsafe.Slice(hashes, n))
}

func touchTwo(memory *byte, blocks uint64, hashes *uint64, n int) {
	touchTwoGo(unsafe.Slice(memory, blocks*blockBytes), blocks, unsafe.Slice(hashes, n))
}

func touchGroup(memory *byte, blocks uint64, hashes *uint64, n int) uint64 {
	return touchGroupsGo(unsafe.Slice(memory, blocks*countersBytes), blocks, unsafe.Slice(hashes, n), 1)
}

func touchGroups(memory *byte, blocks uint64, hashes *uint64, n int) uint64 {
	return touchGroupsGo(unsafe.Slice(memory, blocks*countersBytes), blocks, unsafe.Slice(hashes, n), 2)
}

func touchGroupsToWrite(memory *byte, blocks uint64, hashes *uint64, n int) {
	touchGroupsToWriteGo(unsafe.Slice(memory, blocks*countersBytes), blocks, unsafe.Slice(hashes, n))
}
