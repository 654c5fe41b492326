package kernel

import (
	"encoding/binary"
	"math/bits"
)

// The default secret of XXH3, as far as keys of up to MaxXXH3 bytes need it, in
// little-endian words.
var (
	// xxh3Secret has bytes 0 to 127. The seed is added to the words with an even index
	// and subtracted from the others.
	xxh3Secret = [16]uint64{
		0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
		0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
		0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
		0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
	}

	// xxh3Trail has bytes 3 to 114, for what follows the first 128 bytes of a key.
	xxh3Trail = [14]uint64{
		0x81017cbe4ba42339, 0x6dd4de1cad21f72c, 0xa44072db979083e9, 0xe679cb1f67b3b7a4,
		0xd05a8278e5c0cc4e, 0x4608b82172ffcc7d, 0x9035e08e2443f774, 0x52283c4c263a81e6,
		0x65d088cb00c391bb, 0x486471a32e531b8b, 0xef19384ef90da297, 0x76faa8d8acdea946,
		0xbbdcf93f349ce33f, 0xe0518a1d4f0bc7c7,
	}
)

const (
	xxh3Last0 = 0x7378d9c97e9fc831 // bytes 119 to 126 of the secret, for the last 16 bytes of a key
	xxh3Last1 = 0xebd33483acc5ea64 // bytes 127 to 134

	xxh3Prime   = 0x165667919e3779f9
	rrmxmx      = 0x9fb21c651e98df25 // "rotate, rotate, multiply, xor": P. Evensen's mixer
	xxh64Prime1 = 0x9e3779b185ebca87
	xxh64Prime2 = 0xc2b2ae3d27d4eb4f
	xxh64Prime3 = 0x165667b19e3779f9
)

// XXH3 is XXH3-64 with the default secret, as its specification defines it for keys of
// at most MaxXXH3 bytes. It panics if key is longer.
func XXH3(key []byte, seed uint64) uint64 {
	n := len(key)
	switch {
	case n > MaxXXH3:
		panic("kernel: the key is too long for this XXH3")
	case n > 128:
		return xxh3Of129to240(key, seed)
	case n > 16:
		return xxh3Of17to128(key, seed)
	case n > 8:
		return XXH3Of9to16(key, seed)
	case n > 3:
		first, last := binary.LittleEndian.Uint32(key), binary.LittleEndian.Uint32(key[n-4:])
		seed ^= uint64(bits.ReverseBytes32(uint32(seed))) << 32
		h := uint64(last) + uint64(first)<<32
		h ^= xxh3Secret[1] ^ xxh3Secret[2] - seed
		h = (h ^ bits.RotateLeft64(h, 49) ^ bits.RotateLeft64(h, 24)) * rrmxmx
		h = (h ^ (h>>35 + uint64(n))) * rrmxmx
		return h ^ h>>28
	case n > 0:
		h := uint32(key[0])<<16 | uint32(key[n>>1])<<24 | uint32(key[n-1]) | uint32(n)<<8
		return xxh64Avalanche(uint64(h) ^ (uint64(uint32(xxh3Secret[0]^xxh3Secret[0]>>32)) + seed))
	}
	return xxh64Avalanche(seed ^ xxh3Secret[7] ^ xxh3Secret[8])
}

// XXH3Of9to16 is XXH3 of 9 to 16 bytes, the commonest length of keys that are not text.
// It is inlined into the loops and methods that use it, which saves a third of the time
// of such a hash.
func XXH3Of9to16(key []byte, seed uint64) uint64 {
	const (
		secret24x32 = 0x6782737bea4239b9 // bytes 24 to 31 of the secret, exclusive or 32 to 39
		secret40x48 = 0xaf56bc3b0996523a
	)
	lo := binary.LittleEndian.Uint64(key) ^ (secret24x32 + seed)
	hi := binary.LittleEndian.Uint64(key[len(key)-8:]) ^ (secret40x48 - seed)
	high, low := bits.Mul64(lo, hi)
	h := uint64(len(key)) + bits.ReverseBytes64(lo) + hi + (high ^ low)
	h = (h ^ h>>37) * xxh3Prime
	return h ^ h>>32
}

// xxh3Of17to128 folds 16 bytes from the beginning and 16 from the end of key, then the
// next ones inwards, until they meet or overlap. A loop takes half as long again.
func xxh3Of17to128(key []byte, seed uint64) uint64 {
	n := len(key)
	h := uint64(n) * xxh64Prime1
	if n > 32 {
		if n > 64 {
			if n > 96 {
				h += fold(word(key, 48)^(xxh3Secret[12]+seed), word(key, 56)^(xxh3Secret[13]-seed))
				h += fold(word(key, n-64)^(xxh3Secret[14]+seed), word(key, n-56)^(xxh3Secret[15]-seed))
			}
			h += fold(word(key, 32)^(xxh3Secret[8]+seed), word(key, 40)^(xxh3Secret[9]-seed))
			h += fold(word(key, n-48)^(xxh3Secret[10]+seed), word(key, n-40)^(xxh3Secret[11]-seed))
		}
		h += fold(word(key, 16)^(xxh3Secret[4]+seed), word(key, 24)^(xxh3Secret[5]-seed))
		h += fold(word(key, n-32)^(xxh3Secret[6]+seed), word(key, n-24)^(xxh3Secret[7]-seed))
	}
	h += fold(word(key, 0)^(xxh3Secret[0]+seed), word(key, 8)^(xxh3Secret[1]-seed))
	h += fold(word(key, n-16)^(xxh3Secret[2]+seed), word(key, n-8)^(xxh3Secret[3]-seed))
	return xxh3Avalanche(h)
}

// xxh3Of129to240 folds the first 128 bytes of key, mixes, then folds the rest, 16 bytes
// at a time, and the last 16 bytes.
func xxh3Of129to240(key []byte, seed uint64) uint64 {
	n := len(key)
	h := uint64(n) * xxh64Prime1
	for i := 0; i < 16; i += 2 {
		h += xxh3Fold(key[8*i:], xxh3Secret[i], xxh3Secret[i+1], seed)
	}
	h = xxh3Avalanche(h)
	for i := 0; 8*i+144 <= n; i += 2 {
		h += xxh3Fold(key[8*i+128:], xxh3Trail[i], xxh3Trail[i+1], seed)
	}
	return xxh3Avalanche(h + xxh3Fold(key[n-16:], xxh3Last0, xxh3Last1, seed))
}

// xxh3Fold mixes the first 16 bytes of key with two words of the secret.
func xxh3Fold(key []byte, even, odd, seed uint64) uint64 {
	key = key[:16]
	return fold(binary.LittleEndian.Uint64(key)^(even+seed), binary.LittleEndian.Uint64(key[8:])^(odd-seed))
}

// fold is the exclusive or of the two words of a product.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func xxh3Avalanche(h uint64) uint64 {
	h = (h ^ h>>37) * xxh3Prime
	return h ^ h>>32
}

func xxh64Avalanche(h uint64) uint64 {
	h = (h ^ h>>33) * xxh64Prime2
	h = (h ^ h>>29) * xxh64Prime3
	return h ^ h>>32
}

// word is the little-endian word at key[at].
func word(key []byte, at int) uint64 { return binary.LittleEndian.Uint64(key[at:]) }
