//go:build !purego && !race

package kernel

// This file declares the assembly of paired_amd64.s and chooses between it and its
// twin, paired_generic.go. Under the race detector the twin always runs, because the
// detector cannot see what assembly reads and writes.

import "golang.org/x/sys/cpu"

// useAVX2 is a variable so that tests can run everything on both paths.
var useAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasBMI2

// Contains reports whether all bits of h are set.
func (f *Paired) Contains(h uint64) bool { return pairedContains(f, h) }

// Add sets the bits of h and reports whether any of them was clear.
func (f *Paired) Add(h uint64) bool { return pairedAdd(f, h) }

// pairedContains and pairedAdd test useAVX2 themselves: Go inlines a method that makes
// one call, but not one that chooses between two.
//
//go:noescape
func pairedContains(f *Paired, h uint64) bool

//go:noescape
func pairedAdd(f *Paired, h uint64) bool

// The assembly jumps to these if there is no AVX2.
func pairedContainsTwin(f *Paired, h uint64) bool { return f.containsGeneric(h) }
func pairedAddTwin(f *Paired, h uint64) bool      { return f.addGeneric(h) }

// ContainsKey is Contains of XXH3(key, seed), in one call. key has at most MaxXXH3 bytes.
func (f *Paired) ContainsKey(key []byte, seed uint64) bool { return pairedContainsKey(f, key, seed) }

// AddKey is Add of XXH3(key, seed), in one call. key has at most MaxXXH3 bytes.
func (f *Paired) AddKey(key []byte, seed uint64) bool { return pairedAddKey(f, key, seed) }

//go:noescape
func pairedContainsKey(f *Paired, key []byte, seed uint64) bool

//go:noescape
func pairedAddKey(f *Paired, key []byte, seed uint64) bool

func pairedContainsKeyTwin(f *Paired, key []byte, seed uint64) bool {
	return f.containsGeneric(XXH3(key, seed))
}
func pairedAddKeyTwin(f *Paired, key []byte, seed uint64) bool { return f.addGeneric(XXH3(key, seed)) }

//go:noescape
func addNearAVX2(f *Paired, hashes []uint64, isNew *bool)

//go:noescape
func addBatchAVX2(f *Paired, hashes []uint64, isNew *bool)

//go:noescape
func containsNearAVX2(f *Paired, hashes []uint64, found *bool)

//go:noescape
func containsBothAVX2(f *Paired, hashes []uint64, found *bool)

//go:noescape
func containsFirstAVX2(f *Paired, hashes []uint64, found *bool)

//go:noescape
func addSyncAVX2(f *Paired, stripes []Stripe, h uint64) uint8

//go:noescape
func addBatchSyncAVX2(f *Paired, stripes []Stripe, hashes []uint64, isNew *bool) (done int)
