//go:build !purego && !race

package kernel

// This file declares the assembly of paired_arm64.s: the loops over batches, for which
// memory has to be fetched ahead. Everything else on arm64 is the Go twin
// (paired_generic.go), and all of it under the race detector, because the detector cannot
// see what assembly reads and writes.

// useNEON is a variable so that tests can run everything on both paths. Every arm64
// processor that Go supports has NEON.
var useNEON = true

//go:noescape
func addBatchNEON(f *Paired, hashes []uint64, isNew *bool)

//go:noescape
func containsBothNEON(f *Paired, hashes []uint64, found *bool)

//go:noescape
func containsFirstNEON(f *Paired, hashes []uint64, found *bool)

//go:noescape
func fetchLines(f *Paired, hashes []uint64)
