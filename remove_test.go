package bloom_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
)

// removable is what the kinds have from which keys can be removed.
type removable interface {
	bloom.Any
	io.WriterTo
	AddMany(keys [][]byte, isNew []bool) int
	Contains(key []byte) bool
	Count(key []byte) int
	Hash(key []byte) uint64
	Remove(key []byte) bool
	RemoveMany(keys [][]byte, removed []bool) int
	RemoveStrings(keys []string, removed []bool) int
	RemoveHashes(hashes []uint64, removed []bool) int
}

// removables makes filters for a few thousand keys, small and large, one of each kind and
// shape.
var removables = map[string]func(t *testing.T) removable{
	"Counting": func(t *testing.T) removable { return mustCount(t, bloom.Config{Keys: 5000, Rate: 0.2}) },
	"Counting, outside the caches": func(t *testing.T) removable {
		return mustCount(t, bloom.Config{Keys: 5000, Bits: 1 << 22, Probes: 6, Secret: []byte("0123456789abcdef")})
	},
	"Cuckoo": func(t *testing.T) removable { return mustCuckoo(t, bloom.CuckooConfig{Keys: 10_000}) },
	"Cuckoo of many layers": func(t *testing.T) removable {
		return mustCuckoo(t, bloom.CuckooConfig{Keys: 500, Growth: 2, BucketSize: 3, Seed: 8})
	},
	"Cuckoo of large buckets": func(t *testing.T) removable {
		return mustCuckoo(t, bloom.CuckooConfig{Keys: 10_000, BucketSize: 9})
	},
}

// TestRemoveMany: a batch of removals does what single ones do in their order, of keys that
// are there, that are not, and that occur more often than they were added.
func TestRemoveMany(t *testing.T) {
	for name, make := range removables {
		t.Run(name, func(t *testing.T) { testRemoveMany(t, make) })
	}
}

func testRemoveMany(t *testing.T, newFilter func(t *testing.T) removable) {
	const n = 5000
	var keys, sought [][]byte
	for i := range uint64(n) {
		keys = append(keys, fmt.Append(nil, i))
		sought = append(sought, fmt.Append(nil, mix(i)%(2*n))) // half strangers, some twice
	}
	single := newFilter(t)
	defer single.Close()
	single.AddMany(keys, nil)
	want, count := make([]bool, n), 0
	for i, key := range sought {
		if want[i] = single.Remove(key); want[i] {
			count++
		}
	}
	if count < n/4 || count > n*9/10 {
		t.Fatalf("%d of %d keys were removed: this tests less than it should", count, n)
	}
	var left strings.Builder
	if _, err := single.WriteTo(&left); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{1, 7, 63, 1000, n} {
		for way, remove := range map[string]func(f removable, keys [][]byte, removed []bool) int{
			"RemoveMany": func(f removable, keys [][]byte, removed []bool) int { return f.RemoveMany(keys, removed) },
			"RemoveStrings": func(f removable, keys [][]byte, removed []bool) int {
				var texts []string
				for _, key := range keys {
					texts = append(texts, string(key))
				}
				return f.RemoveStrings(texts, removed)
			},
			"RemoveHashes": func(f removable, keys [][]byte, removed []bool) int {
				var hashes []uint64
				for _, key := range keys {
					hashes = append(hashes, f.Hash(key))
				}
				return f.RemoveHashes(hashes, removed)
			},
		} {
			f := newFilter(t)
			f.AddMany(keys, nil)
			got, sum := make([]bool, n), 0
			for at := 0; at < n; at += step {
				end := min(at+step, n)
				sum += remove(f, sought[at:end], got[at:end])
			}
			if sum != count || !slices.Equal(got, want) {
				t.Errorf("%s of %d at a time removes %d keys, single calls %d, or others", way, step, sum, count)
			}
			var file strings.Builder
			if _, err := f.WriteTo(&file); err != nil || file.String() != left.String() {
				t.Errorf("%s of %d at a time leaves another filter than single calls do; %v", way, step, err)
			}
			f.Close()
		}
	}
	f := newFilter(t)
	defer f.Close()
	f.AddMany(keys[:9], nil)
	if f.RemoveMany(keys[:9], nil) != 9 || f.RemoveMany(nil, nil) != 0 || f.RemoveHashes(nil, []bool{}) != 0 {
		t.Error("without answers it removes other keys")
	}
	if message := panicOf(func() { f.RemoveMany(keys, make([]bool, 3)) }); !strings.Contains(message, "answers") {
		t.Errorf("too few answers: it panics with %q", message)
	}
}
