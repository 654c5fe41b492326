//go:build !purego && !race

package kernel

// This file declares the assembly of modular_amd64.s and calls it; the twin is
// modular_generic.go. The assembly uses only instructions that every amd64 has. Under
// the race detector the twin always runs, because the detector cannot see what assembly
// reads and writes.

// modularAssembly is a variable so that tests can run everything on both paths.
var modularAssembly = true

func (f *Modular) sieve(s *Sieve, n, probes int) int {
	if !modularAssembly {
		return f.sieveGeneric(s, n, probes)
	}
	return modularSieve(f, s, n, probes, f.chunk(probes))
}

func (f *Modular) addBatch(size *uint64, most uint64, pairs [][2]uint64, isNew []bool, s *Sieve) (done, why int) {
	if !modularAssembly {
		return f.addBatchGeneric(size, most, pairs, isNew)
	}
	return modularAdd(f, s, size, most, pairs, &isNew[0], f.chunk(f.Probes))
}

func (f *Modular) addBatchSync(stripes []Stripe, size *uint64, most uint64, pairs [][2]uint64, isNew []bool, s *Sieve) (done, why int) {
	if !modularAssembly {
		return f.addBatchSyncGeneric(stripes, size, most, pairs, isNew)
	}
	return modularAddSync(f, s, size, most, pairs, &isNew[0], f.chunk(f.Probes), stripes)
}

//go:noescape
func modularSieve(f *Modular, s *Sieve, n, probes, chunk int) (kept int)

//go:noescape
func modularAdd(f *Modular, s *Sieve, size *uint64, most uint64, pairs [][2]uint64, isNew *bool, chunk int) (done, why int)

//go:noescape
func modularAddSync(f *Modular, s *Sieve, size *uint64, most uint64, pairs [][2]uint64, isNew *bool, chunk int, stripes []Stripe) (done, why int)
