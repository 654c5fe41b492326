package scheme

import "encoding/binary"

// redisSeed is RedisBloom's seed for the first of its two hashes.
const redisSeed = 0xc6a4a7935bd1e995

// RedisBloomHashes returns the two hashes that RedisBloom makes of a key: the
// second has the first as its seed. Bit i is (first + i*second) mod 2^64 mod m.
func RedisBloomHashes(key []byte) (first, second uint64) {
	first = murmur64A(key, redisSeed)
	return first, murmur64A(key, first)
}

func fillRedisBloom(at []uint64, key []byte, m, _ uint64) {
	h, step := RedisBloomHashes(key)
	for i := range at {
		at[i] = h % m
		h += step
	}
}

// murmur64A is MurmurHash64A, the 64-bit MurmurHash2 for 64-bit machines.
func murmur64A(key []byte, seed uint64) uint64 {
	const mul = 0xc6a4a7935bd1e995
	h := seed ^ uint64(len(key))*mul
	for ; len(key) >= 8; key = key[8:] {
		k := binary.LittleEndian.Uint64(key) * mul
		k ^= k >> 47
		h = (h ^ k*mul) * mul
	}
	if len(key) > 0 {
		for i, b := range key {
			h ^= uint64(b) << (8 * i)
		}
		h *= mul
	}
	h = (h ^ h>>47) * mul
	return h ^ h>>47
}
