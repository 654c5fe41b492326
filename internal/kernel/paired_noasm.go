//go:build !arm64 || purego || race

package kernel

// This file is for all builds without the assembly of paired_arm64.s, those for amd64
// among them.

// useNEON is a constant here, so that the compiler drops all calls to the functions
// below.
const useNEON = false

func addBatchNEON(*Paired, []uint64, *bool)      { panic(noNEON) }
func containsBothNEON(*Paired, []uint64, *bool)  { panic(noNEON) }
func containsFirstNEON(*Paired, []uint64, *bool) { panic(noNEON) }
func fetchLines(*Paired, []uint64)               { panic(noNEON) }

const noNEON = "kernel: there is no NEON in this build"
