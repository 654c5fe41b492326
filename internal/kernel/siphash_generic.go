package kernel

import (
	"encoding/binary"
	"math/bits"
)

// SipHash is SipHash-2-4 (Aumasson and Bernstein 2012) with the secret k0, k1.
func SipHash(key []byte, k0, k1 uint64) uint64 {
	whole := key
	// "somepseudorandomlygeneratedbytes"
	v0, v1, v2, v3 := k0^0x736f6d6570736575, k1^0x646f72616e646f6d, k0^0x6c7967656e657261, k1^0x7465646279746573
	for ; len(key) >= 8; key = key[8:] {
		m := binary.LittleEndian.Uint64(key)
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
	}
	last := uint64(len(whole)) << 56 // the length modulo 256 and the bytes that remain
	if len(whole) >= 8 {
		last |= binary.LittleEndian.Uint64(whole[len(whole)-8:]) >> (64 - 8*len(key)) // a shift by 64 leaves nothing
	} else {
		for i, b := range key {
			last |= uint64(b) << (8 * i)
		}
	}
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	return v0, v1, bits.RotateLeft64(v2, 32), v3
}
