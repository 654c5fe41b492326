//go:build !purego && !race

package kernel

import "testing"

// onEachModularPath runs a test with the assembly and with its twin.
func onEachModularPath(t *testing.T, test func(t *testing.T)) {
	defer func() { modularAssembly = true }()
	t.Run("assembly", test)
	modularAssembly = false
	t.Run("Go", test)
}
