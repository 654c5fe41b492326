//go:build !purego && !race

package kernel

import "testing"

// onEachPath runs a test once for every implementation in this build. A machine
// without AVX2 tests less, and logs that.
func onEachPath(t *testing.T, test func(t *testing.T)) {
	have, bmi2 := useAVX2, useBMI2
	defer func() { useAVX2, useBMI2 = have, bmi2 }()
	if have {
		useAVX2 = true
		t.Run("AVX2", test)
	} else {
		t.Log("NOT TESTED: this machine has no AVX2 and BMI2; only the Go twin runs")
	}
	useAVX2, useBMI2 = false, false
	t.Run("Go", test)
}

// everyWay returns the loops between which ContainsBatch and AddBatch choose by the
// size of the filter and the answers of earlier calls.
func everyWay(f *Paired) (contains map[string]func([]uint64, []bool), add map[string]func([]uint64, []bool)) {
	if !useAVX2 {
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
			"near":  loop(containsNearAVX2),
			"both":  loop(containsBothAVX2),
			"first": loop(containsFirstAVX2),
		}, map[string]func([]uint64, []bool){
			"near": loop(addNearAVX2),
			"ring": loop(addBatchAVX2),
		}
}

// everyWayToCount is everyWay's contains for counters.
func everyWayToCount(f *Counters) map[string]func([]uint64, []bool) {
	if !useAVX2 {
		return nil
	}
	look := func(run func(*Counters, []uint64, *bool)) func([]uint64, []bool) {
		return func(hashes []uint64, answers []bool) {
			if len(hashes) > 0 {
				run(f, hashes, &answers[0])
			}
		}
	}
	return map[string]func([]uint64, []bool){
		"near":  look(countersContainsNearAVX2),
		"both":  look(countersContainsBothAVX2),
		"first": look(countersContainsFirstAVX2),
	}
}
