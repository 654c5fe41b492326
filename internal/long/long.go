// Package long keeps tests that take seconds each out of a plain go test. They run if the
// environment has BLOOMERY_TESTS=all, as in make test; docs/testing.md lists what runs
// where.
package long

import (
	"os"
	"testing"
)

// Test skips t unless all tests were requested.
func Test(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("takes seconds: make test runs it, as does BLOOMERY_TESTS=all go test")
	}
}

// All reports whether all tests were requested.
func All() bool { return os.Getenv("BLOOMERY_TESTS") == "all" }
