package scheme

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// plainMurmur64A is MurmurHash64A as it is defined: it takes the last bytes one at a
// time.
func plainMurmur64A(key []byte, seed uint64) uint64 {
	const mul = 0xc6a4a7935bd1e995
	h := seed ^ uint64(len(key))*mul
	for ; len(key) >= 8; key = key[8:] {
		k := binary.LittleEndian.Uint64(key) * mul
		k ^= k >> 47
		h = (h ^ k*mul) * mul
	}
	for i, b := range key {
		h ^= uint64(b) << (8 * i)
	}
	if len(key) > 0 {
		h *= mul
	}
	h = (h ^ h>>47) * mul
	return h ^ h>>47
}

// TestRedisBloomHashes compares the two hashes with the definition, for keys of
// every length up to many blocks.
func TestRedisBloomHashes(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 4))
	for n := range 200 {
		key := make([]byte, n)
		for range 5 {
			for i := range key {
				key[i] = byte(random.Uint32())
			}
			first, second := RedisBloomHashes(key)
			want := plainMurmur64A(key, redisSeed)
			if wantSecond := plainMurmur64A(key, want); first != want || second != wantSecond {
				t.Fatalf("%x: %x %x, want %x %x", key, first, second, want, wantSecond)
			}
		}
	}
}
