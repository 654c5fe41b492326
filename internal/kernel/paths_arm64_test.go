//go:build !purego && !race

package kernel

import "testing"

// onEachPath runs a test once for every implementation in this build.
func onEachPath(t *testing.T, test func(t *testing.T)) {
	defer func() { useNEON = true }()
	t.Run("NEON", test)
	useNEON = false
	t.Run("Go", test)
}

// everyWay returns the loops between which ContainsBatch and AddBatch choose by the
// answers of earlier calls.
func everyWay(f *Paired) (contains, add map[string]func([]uint64, []bool)) {
	if !useNEON {
		return nil, nil
	}
	loop := func(run func(*Paired, []uint64, *bool)) func([]uint64, []bool) {
		return func(hashes []uint64, answers []bool) {
			if len(hashes) > 0 {
				run(f, hashes, &answers[0])
			}
		}
	}
	return map[string]func([]uint64, []bool){
			"both":  loop(containsBothNEON),
			"first": loop(containsFirstNEON),
		}, map[string]func([]uint64, []bool){
			"ring": loop(addBatchNEON),
		}
}

func everyWayToCount(*Counters) map[string]func([]uint64, []bool) { return nil }
