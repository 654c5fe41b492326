//go:build !purego && !race

package kernel

// This file declares the assembly of paired_amd64.s and chooses between it and
// its twin, paired_generic.go. Under the race detector the twin runs always: the
// detector cannot see what assembly reads and writes.

import "golang.org/x/sys/cpu"

// useAVX2 is a variable so that tests can run everything on both paths.
var useAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasBMI2

//go:noescape
func containsAVX2(f *Paired, h uint64) bool

//go:noescape
func addAVX2(f *Paired, h uint64) bool

//go:noescape
func addBatchAVX2(f *Paired, hashes []uint64, isNew *bool)

//go:noescape
func containsBothAVX2(f *Paired, hashes []uint64, found *bool)

//go:noescape
func containsFirstAVX2(f *Paired, hashes []uint64, found *bool)

//go:noescape
func addSyncAVX2(f *Paired, stripes []Stripe, h uint64) uint8

//go:noescape
func addBatchSyncAVX2(f *Paired, stripes []Stripe, hashes []uint64, isNew *bool) (done int)
