//go:build !purego && !race

package kernel

// This file declares the assembly of xxh3_amd64.s; its twin is xxh3_generic.go.

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// useBMI2 is a variable so that tests can run everything on both paths.
var useBMI2 = cpu.X86.HasBMI2

// xxh3Batch hashes len(hashes) keys, at least one. Their slices or strings, of which it
// reads the pointer and the length, are stride bytes apart from first on.
//
//go:noescape
func xxh3Batch(hashes []uint64, first unsafe.Pointer, stride uintptr, seed uint64) (longer int)

// xxh3InRegisters is called by assembly only.
func xxh3InRegisters()
