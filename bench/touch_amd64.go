// The loops of touch.go in assembly: Go has no prefetch. The twin is touch_noasm.go.

package main

// touchForm is the bare touch's entry in the table's column "call".
const touchForm = "assembly, prefetched"

// touchOne is touchOneGo over n hashes. It also reads the next touchAhead hashes.
//
//go:noescape
func touchOne(memory *byte, lines uint64, hashes *uint64, n int) uint64

// touchTwo is touchTwoGo over n hashes. It also reads the next touchAhead hashes.
//
//go:noescape
func touchTwo(memory *byte, blocks uint64, hashes *uint64, n int)

// touchGroup is touchGroupsGo over one group of n hashes. It also reads the next touchAhead
// hashes, as do the others.
//
//go:noescape
func touchGroup(memory *byte, blocks uint64, hashes *uint64, n int) uint64

// touchGroups is touchGroupsGo over both groups.
//
//go:noescape
func touchGroups(memory *byte, blocks uint64, hashes *uint64, n int) uint64

// touchGroupsToWrite is touchGroupsToWriteGo.
//
//go:noescape
func touchGroupsToWrite(memory *byte, blocks uint64, hashes *uint64, n int)
