//go:build !purego && !race

package kernel

// This file declares the assembly of split_amd64.s; its twin is split_generic.go.

// Contains reports whether all bits of h are set.
func (f *Split) Contains(h uint64) bool { return splitContains(f, h) }

// Add sets the bits of h, counts it in Added if any of them was clear, and reports whether
// that was so.
func (f *Split) Add(h uint64) bool { return splitAdd(f, h) }

// ContainsKey is Contains of the key's hash.
func (f *Split) ContainsKey(key []byte) bool { return splitContainsKey(f, key) }

// AddKey is Add of the key's hash.
func (f *Split) AddKey(key []byte) bool { return splitAddKey(f, key) }

//go:noescape
func splitContains(f *Split, h uint64) bool

//go:noescape
func splitAdd(f *Split, h uint64) bool

//go:noescape
func splitContainsKey(f *Split, key []byte) bool

//go:noescape
func splitAddKey(f *Split, key []byte) bool

// The assembly jumps to these if there is no AVX2, or for another hash.
func splitContainsTwin(f *Split, h uint64) bool      { return f.containsGeneric(h) }
func splitAddTwin(f *Split, h uint64) bool           { return f.addGeneric(h) }
func splitContainsKeyTwin(f *Split, key []byte) bool { return f.containsGeneric(f.hash(key)) }
func splitAddKeyTwin(f *Split, key []byte) bool      { return f.addGeneric(f.hash(key)) }

//go:noescape
func splitContainsBatchAVX2(f *Split, hashes []uint64, found *bool)

//go:noescape
func splitAddBatchAVX2(f *Split, hashes []uint64, isNew *bool)

//go:noescape
func splitContainsNearAVX2(f *Split, hashes []uint64, found *bool)

//go:noescape
func splitAddNearAVX2(f *Split, hashes []uint64, isNew *bool)

//go:noescape
func splitAddAllNearAVX2(f *Split, hashes []uint64) int

//go:noescape
func splitAddAllAVX2(f *Split, hashes []uint64) int
