package interop_test

import (
	"bytes"
	"errors"
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

// TestDefaultScheme: what is written under a format's first scheme is read under the
// same one, if no scheme is given. Otherwise no key would be found.
func TestDefaultScheme(t *testing.T) {
	for _, format := range interop.Formats {
		if len(format.Schemes) == 0 {
			continue
		}
		want := format.Schemes[0]
		filter, err := classic.Config{Keys: 10, Rate: 0.1, Scheme: want}.New()
		if err != nil {
			t.Fatalf("%s: %v", format.Name, err)
		}
		keys := []string{"a", "b", "c"}
		for _, key := range keys {
			filter.AddString(key)
		}
		var file bytes.Buffer
		if err := (&interop.File{Filter: filter}).Write(&file, format); err != nil {
			t.Fatalf("%s: %v", format.Name, err)
		}
		read, err := format.Read(&file, interop.Options{Bits: filter.Plan().Bits, Probes: filter.Plan().Probes})
		if errors.Is(err, bloom.ErrConfig) {
			continue // it must be told the scheme
		} else if err != nil {
			t.Fatalf("%s: %v", format.Name, err)
		}
		for _, key := range keys {
			if !read.Filter.Contains([]byte(key)) {
				t.Errorf("%s: %q, added under %s, is not found", format.Name, key, want.Name())
			}
		}
	}
}
