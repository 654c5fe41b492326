package bloom

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBatchHashes: a batch hashes keys of every length as Hash does, whatever the hash,
// also those that the kernel leaves to the libraries.
func TestBatchHashes(t *testing.T) {
	random := rand.New(rand.NewPCG(32, 1))
	data := make([]byte, 2000)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	keyed, err := NewHasher(0, data[:SecretBytes])
	if err != nil {
		t.Fatal(err)
	}
	hashers := []Hasher{keyed}
	for _, seed := range []uint64{0, 1, random.Uint64()} {
		for _, algorithm := range []HashAlgorithm{XXH3, XXH64, Murmur64A} {
			hashers = append(hashers, HashIdentity{algorithm, seed}.Hasher())
		}
	}
	for _, h := range hashers {
		for range 20 {
			var keys [][]byte
			var texts []string
			var want []uint64
			for range random.IntN(hashed + 1) {
				n := random.IntN(301)
				if random.IntN(50) == 0 {
					n = random.IntN(len(data))
				}
				from := random.IntN(len(data) - n + 1)
				key := data[from:][:n]
				keys, texts, want = append(keys, key), append(texts, string(key)), append(want, h.Hash(key))
			}
			got := make([]uint64, len(keys))
			if h.fillBytes(got, keys); !slices.Equal(got, want) {
				t.Errorf("%v: a batch of %d keys has other hashes than the keys one by one", h.id, len(keys))
			}
			clear(got)
			if h.fillStrings(got, texts); !slices.Equal(got, want) {
				t.Errorf("%v: a batch of %d strings has other hashes than the keys one by one", h.id, len(keys))
			}
		}
	}
}
