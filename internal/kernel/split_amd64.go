//go:build !purego && !race

package kernel

// This file declares the assembly of split_amd64.s; its twin is split_generic.go.

// Contains reports whether all bits of h are set.
func (f *Split) Contains(h uint64) bool { return splitContains(f, h) }

// Add sets the bits of h and reports whether any of them was clear.
func (f *Split) Add(h uint64) bool { return splitAdd(f, h) }

//go:noescape
func splitContains(f *Split, h uint64) bool

//go:noescape
func splitAdd(f *Split, h uint64) bool

// The assembly jumps to these if there is no AVX2.
func splitContainsTwin(f *Split, h uint64) bool { return f.containsGeneric(h) }
func splitAddTwin(f *Split, h uint64) bool      { return f.addGeneric(h) }

//go:noescape
func splitContainsBatchAVX2(f *Split, hashes []uint64, found *bool)

//go:noescape
func splitAddBatchAVX2(f *Split, hashes []uint64, isNew *bool)

//go:noescape
func splitContainsNearAVX2(f *Split, hashes []uint64, found *bool)

//go:noescape
func splitAddNearAVX2(f *Split, hashes []uint64, isNew *bool)
