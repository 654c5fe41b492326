//go:build !(amd64 || arm64) || purego || race

package kernel

import "testing"

// onEachPath runs a test once for every implementation in this build: here only the Go
// twin.
func onEachPath(t *testing.T, test func(t *testing.T)) { t.Run("Go", test) }

func everyWay(*Paired) (contains, add map[string]func([]uint64, []bool)) { return nil, nil }

func everyWayToCount(*Counters) map[string]func([]uint64, []bool) { return nil }
