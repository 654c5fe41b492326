package bloom_test

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
)

// removable is what the kinds have from which keys can be removed.
type removable interface {
	bloom.Any
	kept
	Count(key []byte) int
	Hash(key []byte) uint64
	Remove(key []byte) bool
	RemoveMany(keys [][]byte, removed []bool) int
	RemoveStrings(keys []string, removed []bool) int
	RemoveHashes(hashes []uint64, removed []bool) int
}

const removableSecret = "0123456789abcdef"

// removables makes filters for a few thousand keys, small and large, one of each kind and
// shape.
var removables = map[string]func(t *testing.T) removable{
	"Counting": func(t *testing.T) removable { return mustCount(t, bloom.Config{Keys: 5000, Rate: 0.2}) },
	"Counting, outside the caches": func(t *testing.T) removable {
		return mustCount(t, bloom.Config{Keys: 5000, Bits: 1 << 22, Probes: 6, Secret: []byte(removableSecret)})
	},
	"ScalableCounting": func(t *testing.T) removable {
		f, err := bloom.ScalableConfig{First: 300, Rate: 0.2, Seed: 8}.NewCounting()
		if err != nil {
			t.Fatal(err)
		}
		return f
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

// TestRemovalModel: adds and removals by the thousand, in batches, against an exact multiset,
// with files between: no key is lost, none is counted too rarely, and when all are removed,
// nothing is left.
func TestRemovalModel(t *testing.T) {
	for name, make := range removables {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(rateSeed, 40))
			f, times := make(t), map[uint64]int{}
			defer func() { f.Close() }()
			check := func() {
				t.Helper()
				var keys [][]byte
				for key, n := range times {
					keys = append(keys, fmt.Append(nil, key))
					if count := f.Count(keys[len(keys)-1]); count < min(n, bloom.MaxCount) {
						t.Fatalf("seed %d: key %d is in %d times, and counted %d times", rateSeed, key, n, count)
					}
				}
				if found := f.ContainsMany(keys, nil); found != len(keys) {
					t.Fatalf("seed %d: of %d keys %d are lost", rateSeed, len(keys), len(keys)-found)
				}
			}
			remove := func(share float64) {
				t.Helper()
				var keys [][]byte
				for _, key := range slices.Sorted(maps.Keys(times)) {
					for n := times[key]; n > 0 && random.Float64() < share; n-- {
						keys = append(keys, fmt.Append(nil, key))
						if times[key]--; n == 1 {
							delete(times, key)
						}
					}
				}
				random.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
				if n := f.RemoveMany(keys, nil); n != len(keys) {
					t.Fatalf("seed %d: of %d keys that are in only %d can be removed", rateSeed, len(keys), n)
				}
			}
			most := 0
			for round := range uint64(12) {
				var keys [][]byte
				for range random.IntN(4000) {
					key := round/3*4000 + uint64(random.IntN(4000)) // some again and again
					keys = append(keys, fmt.Append(nil, key))
					times[key]++
				}
				f.AddMany(keys, nil)
				most = max(most, layersOf(f))
				check()
				remove(random.Float64())
				check()
				if round%3 == 0 {
					f = reread(t, f, func(r io.Reader, limit int64) (removable, error) {
						f, err := bloom.ReadAny(r, limit)
						if err != nil {
							return nil, err
						}
						unlock(t, f)
						return f.(removable), nil
					})
					check()
				}
			}
			remove(1)
			if r := f.Report(); len(times) != 0 || r.Fill != 0 || layersOf(f) > 1 && layersOf(f) == most {
				t.Errorf("seed %d: all keys were removed, and %d layers are left of %d: %+v", rateSeed, layersOf(f), most, r)
			}
			if f, ok := f.(*bloom.Counting); ok && f.Saturated() != 0 {
				t.Errorf("%d counters are saturated: this tests less than it should", f.Saturated())
			}
		})
	}
}

// layersOf returns how many layers a filter has, 1 of a kind without them.
func layersOf(f bloom.Any) int {
	if f, ok := f.(interface{ LayerCount() int }); ok {
		return f.LayerCount()
	}
	return 1
}

// unlock gives a filter that needs it the secret of removables.
func unlock(t *testing.T, f bloom.Any) {
	t.Helper()
	if f := f.(removable); f.NeedsSecret() {
		if err := f.SetSecret([]byte(removableSecret)); err != nil {
			t.Fatal(err)
		}
	}
}
