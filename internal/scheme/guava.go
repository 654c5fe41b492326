package scheme

import (
	"math"

	"github.com/twmb/murmur3"
)

// Guava's BloomFilter, both strategies: MurmurHash3 x64-128 with seed 0, and
// double hashing with its two halves (Kirsch and Mitzenmacher 2006; MITZ is
// Guava's name for them).

// fillGuava32 is MURMUR128_MITZ_32: the halves of the first 64 bits, in signed 32-bit
// arithmetic, so it reaches at most 2^31 bits.
func fillGuava32(at []uint64, key []byte, m, _ uint64) {
	h1, _ := murmur3.SeedSum128(0, 0, key)
	a, b := int32(h1), int32(h1>>32)
	for i := range at {
		a += b
		at[i] = uint64(uint32(a^a>>31)) % m // ^a if negative
	}
}

// fillGuava64 is MURMUR128_MITZ_64, Guava's default since 2014.
func fillGuava64(at []uint64, key []byte, m, _ uint64) {
	h1, h2 := murmur3.SeedSum128(0, 0, key)
	for i := range at {
		at[i] = h1 & math.MaxInt64 % m
		h1 += h2
	}
}
