//go:build !purego && !race

package kernel

// This file declares the assembly of layers_amd64.s; its twin is the loop of FirstSync.

//go:noescape
func pairedFirstAVX2(filters []*Paired, h uint64) int
