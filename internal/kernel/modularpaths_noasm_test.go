//go:build !amd64 || purego || race

package kernel

import "testing"

// onEachModularPath runs a test with the Go twin, the only path here.
func onEachModularPath(t *testing.T, test func(t *testing.T)) { t.Run("Go", test) }
