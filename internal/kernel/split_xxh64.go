package kernel

import (
	"encoding/binary"
	"math/bits"
)

// The other primes of XXH64 are in xxh3_generic.go.
const (
	xxh64Prime4 = 0x85ebca77c2b2ae63
	xxh64Prime5 = 0x27d4eb2f165667c5
)

// XXH64 is the 64-bit xxHash with seed 0, Parquet's hash, as specified. It defines what
// AddKey and ContainsKey of a Split do; the assembly hashes in the call that probes.
func XXH64(key []byte) uint64 {
	h, n := uint64(xxh64Prime5), uint64(len(key))
	if len(key) >= 32 {
		prime := uint64(xxh64Prime1) // a variable, because the arithmetic overflows
		lanes := [4]uint64{prime + xxh64Prime2, xxh64Prime2, 0, -prime}
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
