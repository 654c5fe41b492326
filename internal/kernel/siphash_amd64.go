//go:build !purego && !race

package kernel

// This file declares the assembly of siphash_amd64.s; its twin is siphash_generic.go.

import "unsafe"

// sipHashAVX2 hashes groups of eight keys, whose numbers are in order. The keys of a group
// have 8c to 8c+7 bytes, with the same c above 0.
//
//go:noescape
func sipHashAVX2(hashes *uint64, first unsafe.Pointer, step uintptr, order *uint16, groups int, k0, k1 uint64)

// prefetchKeys fetches the first and the last line of n keys into the second-level cache.
//
//go:noescape
func prefetchKeys(first unsafe.Pointer, step uintptr, n int)
