package interop_test

import (
	"io"
	"slices"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
)

// TestHolds: what a format says that it holds is what Write takes, and it takes
// nothing else.
func TestHolds(t *testing.T) {
	for _, format := range interop.Formats {
		writes := func(f interop.Filter) bool {
			defer f.Close()
			return (&interop.File{Filter: f}).Write(io.Discard, format) == nil
		}
		for _, s := range classic.Schemes() {
			small, err := classic.Config{Keys: 1, Rate: 0.1, Scheme: s}.New()
			if err != nil {
				t.Fatalf("%s: %v", s.Name(), err)
			}
			if got, want := writes(small), slices.Contains(format.Schemes, s); got != want {
				t.Errorf("%s: a filter of the scheme %s is written: %v, want %v", format.Name, s.Name(), got, want)
			}
		}
		chain, err := redisbloom.New(redisbloom.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := chain.Grow(); err != nil {
			t.Fatal(err)
		}
		if got, want := writes(chain), format.Holds == interop.Chains; got != want {
			t.Errorf("%s: a chain of two layers is written: %v, want %v", format.Name, got, want)
		}
		split, err := bloom.Config{Keys: 1, Rate: 0.5}.NewSplitBlock()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := writes(split), format.Holds == interop.SplitBlocks; got != want {
			t.Errorf("%s: a split block is written: %v, want %v", format.Name, got, want)
		}
		cuckoo, err := bloom.NewCuckoo(1)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := writes(cuckoo), format.Holds == interop.Cuckoos; got != want {
			t.Errorf("%s: a cuckoo filter is written: %v, want %v", format.Name, got, want)
		}
		if len(format.Schemes) == 0 && format.Holds == interop.Classics {
			t.Errorf("%s: holds nothing", format.Name)
		}
	}
}
