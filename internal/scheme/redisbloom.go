package scheme

import "encoding/binary"

// redisSeed is RedisBloom's seed for the first of its two hashes.
const redisSeed = 0xc6a4a7935bd1e995

// RedisBloomHashes returns RedisBloom's two hashes of a key. The first is the seed of the
// second. Bit i is (first + i*second) mod 2^64 mod m.
func RedisBloomHashes(key []byte) (first, second uint64) {
	rest := murmurTail(key)
	first = murmur64A(key, rest, redisSeed)
	return first, murmur64A(key, rest, first)
}

func fillRedisBloom(at []uint64, key []byte, m, _ uint64) {
	h, step := RedisBloomHashes(key)
	for i := range at {
		at[i] = h % m
		h += step
	}
}

// Murmur64A is MurmurHash64A of a key: with seed 0 the hash of RedisBloom's cuckoo filter.
func Murmur64A(key []byte, seed uint64) uint64 { return murmur64A(key, murmurTail(key), seed) }

// murmur64A is MurmurHash64A, the 64-bit MurmurHash2 for 64-bit machines, of a key
// with the given murmurTail.
func murmur64A(key []byte, rest, seed uint64) uint64 {
	const mul = 0xc6a4a7935bd1e995
	h := seed ^ uint64(len(key))*mul
	b := key
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * mul
		k ^= k >> 47
		h = (h ^ k*mul) * mul
	}
	if len(b) > 0 {
		h = (h ^ rest) * mul
	}
	h = (h ^ h>>47) * mul
	return h ^ h>>47
}

// murmurTail returns the bytes after the key's last whole block.
func murmurTail(key []byte) (rest uint64) {
	n := len(key) % 8
	switch {
	case len(key) >= 8 && n > 0: // bytes of the last block are read too, and shifted out
		return binary.LittleEndian.Uint64(key[len(key)-8:]) >> (64 - 8*n)
	case n >= 4: // two overlapping halves
		high := uint64(binary.LittleEndian.Uint32(key[n-4:]))
		return uint64(binary.LittleEndian.Uint32(key)) | high<<(8*n-32)
	}
	for i, b := range key[len(key)-n:] {
		rest |= uint64(b) << (8 * i)
	}
	return rest
}
