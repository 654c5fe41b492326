package kernel

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH64. They are variables because the specification's arithmetic overflows,
// which Go's constants do not.
var (
	xxh64Prime1 uint64 = 0x9e3779b185ebca87
	xxh64Prime2 uint64 = 0xc2b2ae3d27d4eb4f
	xxh64Prime3 uint64 = 0x165667b19e3779f9
	xxh64Prime4 uint64 = 0x85ebca77c2b2ae63
	xxh64Prime5 uint64 = 0x27d4eb2f165667c5
)

// XXH64 is the 64-bit xxHash with seed 0, Parquet's hash, as specified. It defines what
// AddKey and ContainsKey of a Split do; the assembly hashes in the call that probes.
func XXH64(key []byte) uint64 {
	h, n := xxh64Prime5, uint64(len(key))
	if len(key) >= 32 {
		lanes := [4]uint64{xxh64Prime1 + xxh64Prime2, xxh64Prime2, 0, -xxh64Prime1}
		for ; len(key) >= 32; key = key[32:] {
			for i := range lanes {
				lanes[i] = xxh64Round(lanes[i], binary.LittleEndian.Uint64(key[8*i:]))
			}
		}
		h = bits.RotateLeft64(lanes[0], 1) + bits.RotateLeft64(lanes[1], 7) + bits.RotateLeft64(lanes[2], 12) + bits.RotateLeft64(lanes[3], 18)
		for _, lane := range lanes {
			h = (h^xxh64Round(0, lane))*xxh64Prime1 + xxh64Prime4
		}
	}
	h += n
	for ; len(key) >= 8; key = key[8:] {
		h ^= xxh64Round(0, binary.LittleEndian.Uint64(key))
		h = bits.RotateLeft64(h, 27)*xxh64Prime1 + xxh64Prime4
	}
	if len(key) >= 4 {
		h ^= uint64(binary.LittleEndian.Uint32(key)) * xxh64Prime1
		h = bits.RotateLeft64(h, 23)*xxh64Prime2 + xxh64Prime3
		key = key[4:]
	}
	for _, b := range key {
		h ^= uint64(b) * xxh64Prime5
		h = bits.RotateLeft64(h, 11) * xxh64Prime1
	}
	h = (h ^ h>>33) * xxh64Prime2
	h = (h ^ h>>29) * xxh64Prime3
	return h ^ h>>32
}

func xxh64Round(lane, word uint64) uint64 {
	return bits.RotateLeft64(lane+word*xxh64Prime2, 31) * xxh64Prime1
}
