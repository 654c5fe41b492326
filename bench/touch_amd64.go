// The loops of touch.go in assembly: Go has no prefetch. The twin is touch_noasm.go.

package main

// touchForm says in the table how the bare touch was made.
const touchForm = "assembly, prefetched"

// touchOne is touchOneGo over n hashes. It looks touchAhead hashes further.
//
//go:noescape
func touchOne(memory *byte, lines uint64, hashes *uint64, n int) uint64

// touchTwo is touchTwoGo over n hashes. It looks touchAhead hashes further.
//
//go:noescape
func touchTwo(memory *byte, blocks uint64, hashes *uint64, n int)
