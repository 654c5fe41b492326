package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dchest/siphash"
	"github.com/zeebo/xxh3"
)

// A hash is one of the kernel's hash functions with its seed or secret, and the library
// that it must agree with.
type hash struct {
	name    string
	longest int
	want    func(key []byte) uint64
	one     func(key []byte) uint64
	bytes   func(hashes []uint64, keys [][]byte) (longer int)
	strings func(hashes []uint64, keys []string) (longer int)
}

func xxh3With(seed uint64) hash {
	return hash{
		name:    fmt.Sprintf("XXH3, seed %#x", seed),
		longest: MaxXXH3,
		want:    func(key []byte) uint64 { return xxh3.HashSeed(key, seed) },
		one:     func(key []byte) uint64 { return XXH3(key, seed) },
		bytes:   func(hashes []uint64, keys [][]byte) int { return XXH3Bytes(hashes, keys, seed) },
		strings: func(hashes []uint64, keys []string) int { return XXH3Strings(hashes, keys, seed) },
	}
}

func sipHashWith(k0, k1 uint64) hash {
	return hash{
		name:    fmt.Sprintf("SipHash, secret %#x, %#x", k0, k1),
		longest: math.MaxInt,
		want:    func(key []byte) uint64 { return siphash.Hash(k0, k1, key) },
		one:     func(key []byte) uint64 { return SipHash(key, k0, k1) },
		bytes: func(hashes []uint64, keys [][]byte) int {
			SipHashBytes(hashes, keys, k0, k1)
			return 0
		},
		strings: func(hashes []uint64, keys []string) int {
			SipHashStrings(hashes, keys, k0, k1)
			return 0
		},
	}
}

// hashesToTest are every hash with a few seeds or secrets.
func hashesToTest(random *rand.Rand) (all []hash) {
	for _, seed := range []uint64{0, 1, ^uint64(0), 1 << 63, 0xffffffff, random.Uint64(), random.Uint64()} {
		all = append(all, xxh3With(seed))
	}
	return append(all, sipHashWith(0, 0), sipHashWith(^uint64(0), 1), sipHashWith(random.Uint64(), random.Uint64()))
}

// untouched is what a batch must leave for a key that it does not hash.
const untouched = 0x1122334455667788

// check compares the hashes of keys, in every way there is, with the library's.
func (h hash) check(t *testing.T, keys [][]byte) {
	t.Helper()
	texts := make([]string, len(keys))
	ofBytes, ofTexts := make([]uint64, len(keys)+1), make([]uint64, len(keys)+1)
	longer := 0
	for i, key := range keys {
		texts[i] = string(key)
		if len(key) > h.longest {
			longer++
		}
	}
	for i := range ofBytes {
		ofBytes[i], ofTexts[i] = untouched, untouched
	}
	if a, b := h.bytes(ofBytes[:len(keys)], keys), h.strings(ofTexts[:len(keys)], texts); a != longer || b != longer {
		t.Fatalf("%s: %d slices and %d strings are too long, want %d", h.name, a, b, longer)
	}
	for i, key := range keys {
		want := h.want(key)
		if len(key) > h.longest {
			want = untouched
		} else if got := h.one(key); got != want {
			t.Fatalf("%s of %d bytes = %#x, want %#x", h.name, len(key), got, want)
		}
		if ofBytes[i] != want || ofTexts[i] != want {
			t.Fatalf("%s of key %d of %d, %d bytes = %#x, as a string %#x, want %#x", h.name, i, len(keys), len(key), ofBytes[i], ofTexts[i], want)
		}
	}
	if ofBytes[len(keys)] != untouched || ofTexts[len(keys)] != untouched {
		t.Fatalf("%s wrote more than %d hashes", h.name, len(keys))
	}
}

func randomBytes(random *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

// TestHashes compares every length at every alignment with the libraries.
func TestHashes(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 1))
	data := randomBytes(random, 512)
	onEachPath(t, func(t *testing.T) {
		for _, h := range hashesToTest(random) {
			for shift := range 64 {
				var keys [][]byte
				for n := range 301 {
					keys = append(keys, data[shift:][:n:n])
				}
				random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
				h.check(t, keys)
			}
		}
	})
}

// TestHashesInGroups hashes batches of any number of keys of equal lengths, of two
// lengths, and of many, up to the most that there are in one call.
func TestHashesInGroups(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 2))
	data := randomBytes(random, 4096)
	onEachPath(t, func(t *testing.T) {
		for _, h := range hashesToTest(random) {
			for n := range 40 {
				if n > 36 {
					n = 1024 - 40 + n
				}
				for _, lengths := range []int{1, 2, 300} {
					shortest := random.IntN(301)
					keys := make([][]byte, n)
					for i := range keys {
						size := min(shortest+random.IntN(lengths), 300)
						keys[i] = data[random.IntN(len(data)-300):][:size]
					}
					h.check(t, keys)
				}
			}
		}
	})
}

// TestKeysInOneCall: AddKey and ContainsKey do what Add and Contains do with the key's
// hash, for every length and alignment.
func TestKeysInOneCall(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 5))
	data := randomBytes(random, 512)
	onEachPath(t, func(t *testing.T) {
		for _, seed := range []uint64{0, ^uint64(0), random.Uint64()} {
			f, twin := newPaired(3, 4), newPaired(3, 4)
			for shift := range 64 {
				for n := range MaxXXH3 + 1 {
					compareKeys(t, f, twin, data[shift:][:n:n], seed)
				}
				if shift%8 == 7 {
					clear(f.Words)
					clear(twin.Words)
				}
			}
		}
	})
}

// compareKeys looks key up in f, adds it and looks it up again; twin takes its hash.
func compareKeys(t *testing.T, f, twin *Paired, key []byte, seed uint64) {
	t.Helper()
	h := xxh3.HashSeed(key, seed)
	before, isNew := twin.containsGeneric(h), twin.addGeneric(h)
	if got := f.ContainsKey(key, seed); got != before {
		t.Fatalf("ContainsKey of %d bytes, seed %#x, before = %v, want %v", len(key), seed, got, before)
	}
	if got := f.AddKey(key, seed); got != isNew {
		t.Fatalf("AddKey of %d bytes, seed %#x = %v, want %v", len(key), seed, got, isNew)
	}
	if !f.ContainsKey(key, seed) || !slices.Equal(f.Words, twin.Words) {
		t.Fatalf("AddKey of %d bytes, seed %#x sets other bits than Add", len(key), seed)
	}
}

// FuzzHashes cuts data into keys at the given lengths.
func FuzzHashes(f *testing.F) {
	random := rand.New(rand.NewPCG(31, 3))
	f.Add(uint64(0), uint64(0), []byte{0, 1, 2, 3, 4, 8, 9, 16, 17, 32}, randomBytes(random, 200))
	f.Add(^uint64(0), uint64(1), []byte{23, 23, 23, 23, 40, 100, 129, 240, 241}, randomBytes(random, 900))
	f.Fuzz(func(t *testing.T, k0, k1 uint64, lengths, data []byte) {
		var keys [][]byte
		for _, n := range lengths {
			n := min(int(n), len(data))
			keys = append(keys, data[:n:n])
			data = data[n/2:]
		}
		xxh3With(k0).check(t, keys)
		sipHashWith(k0, k1).check(t, keys)
	})
}
