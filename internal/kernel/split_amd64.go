//go:build !purego && !race

package kernel

// This file declares the assembly of split_amd64.s; its twin is split_generic.go.

//go:noescape
func splitContainsAVX2(f *Split, h uint64) bool

//go:noescape
func splitAddAVX2(f *Split, h uint64) bool

//go:noescape
func splitContainsBatchAVX2(f *Split, hashes []uint64, found *bool)

//go:noescape
func splitAddBatchAVX2(f *Split, hashes []uint64, isNew *bool)
