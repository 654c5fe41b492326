//go:build !amd64 || purego || race

package kernel

import "testing"

// onEachPath runs a test once for every implementation this build has: here the
// Go twin alone.
func onEachPath(t *testing.T, test func(t *testing.T)) { t.Run("Go", test) }

func bothWays(f *Paired, hashes []uint64) (both, first []bool) {
	both, first = make([]bool, len(hashes)), make([]bool, len(hashes))
	f.containsBatchGeneric(hashes, both)
	f.containsBatchGeneric(hashes, first)
	return both, first
}
