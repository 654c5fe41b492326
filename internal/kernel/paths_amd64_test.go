//go:build !purego && !race

package kernel

import "testing"

// onEachPath runs a test once for every implementation this build has. A machine
// without AVX2 tests less, and says so.
func onEachPath(t *testing.T, test func(t *testing.T)) {
	have := useAVX2
	defer func() { useAVX2 = have }()
	if have {
		useAVX2 = true
		t.Run("AVX2", test)
	} else {
		t.Log("NOT TESTED: this machine has no AVX2 and BMI2; only the Go twin runs")
	}
	useAVX2 = false
	t.Run("Go", test)
}

// bothWays answers a batch in each of the two ways in which the assembly reads
// it, whatever ContainsBatch would choose.
func bothWays(f *Paired, hashes []uint64) (both, first []bool) {
	both, first = make([]bool, len(hashes)), make([]bool, len(hashes))
	if !useAVX2 || len(hashes) == 0 {
		f.containsBatchGeneric(hashes, both)
		f.containsBatchGeneric(hashes, first)
		return both, first
	}
	containsBothAVX2(f, hashes, &both[0])
	containsFirstAVX2(f, hashes, &first[0])
	return both, first
}
