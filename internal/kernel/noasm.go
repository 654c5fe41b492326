//go:build !amd64 || purego || race

package kernel

// What builds without assembly have in its place. It imports unsafe only for the types
// of functions that are never called.

import "unsafe"

// Contains reports whether all bits of h are set.
func (f *Paired) Contains(h uint64) bool { return f.containsGeneric(h) }

// Add sets the bits of h and reports whether any of them was clear.
func (f *Paired) Add(h uint64) bool { return f.addGeneric(h) }

// ContainsKey is Contains of XXH3(key, seed). key has at most MaxXXH3 bytes.
func (f *Paired) ContainsKey(key []byte, seed uint64) bool { return f.containsGeneric(XXH3(key, seed)) }

// AddKey is Add of XXH3(key, seed). key has at most MaxXXH3 bytes.
func (f *Paired) AddKey(key []byte, seed uint64) bool { return f.addGeneric(XXH3(key, seed)) }

// Contains reports whether all bits of h are set.
func (f *Split) Contains(h uint64) bool { return f.containsGeneric(h) }

// Add sets the bits of h and reports whether any of them was clear.
func (f *Split) Add(h uint64) bool { return f.addGeneric(h) }

// useAVX2 is a constant here, so that the compiler drops all calls to the functions
// below.
const useAVX2 = false

const noAssembly = "kernel: there is no assembly in this build"

func addNearAVX2(*Paired, []uint64, *bool)                    { panic(noAssembly) }
func addBatchAVX2(*Paired, []uint64, *bool)                   { panic(noAssembly) }
func containsNearAVX2(*Paired, []uint64, *bool)               { panic(noAssembly) }
func containsBothAVX2(*Paired, []uint64, *bool)               { panic(noAssembly) }
func containsFirstAVX2(*Paired, []uint64, *bool)              { panic(noAssembly) }
func addSyncAVX2(*Paired, []Stripe, uint64) uint8             { panic(noAssembly) }
func addBatchSyncAVX2(*Paired, []Stripe, []uint64, *bool) int { panic(noAssembly) }
func countersAddAVX2(*Counters, []uint64, *bool) uint64       { panic(noAssembly) }
func countersContainsNearAVX2(*Counters, []uint64, *bool)     { panic(noAssembly) }
func countersContainsBothAVX2(*Counters, []uint64, *bool)     { panic(noAssembly) }
func countersContainsFirstAVX2(*Counters, []uint64, *bool)    { panic(noAssembly) }
func splitAddBatchAVX2(*Split, []uint64, *bool)               { panic(noAssembly) }
func splitContainsBatchAVX2(*Split, []uint64, *bool)          { panic(noAssembly) }
func splitContainsNearAVX2(*Split, []uint64, *bool)           { panic(noAssembly) }
func splitAddNearAVX2(*Split, []uint64, *bool)                { panic(noAssembly) }

const useBMI2 = false

func xxh3Batch([]uint64, unsafe.Pointer, uintptr, uint64) int { panic(noAssembly) }
func sipHashAVX2(*uint64, unsafe.Pointer, uintptr, *uint16, int, uint64, uint64) {
	panic(noAssembly)
}
func prefetchKeys(unsafe.Pointer, uintptr, int) { panic(noAssembly) }
