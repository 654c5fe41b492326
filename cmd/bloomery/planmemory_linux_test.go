package main

import "testing"

// TestMemoryCeiling: a server without --memory has this ceiling.
func TestMemoryCeiling(t *testing.T) {
	ceiling, total := memoryCeiling(), machineMemory()
	if ceiling < 16<<20 || ceiling > total {
		t.Errorf("%d bytes, want %d at most", ceiling, total)
	}
}
