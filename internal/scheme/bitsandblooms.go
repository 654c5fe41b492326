package scheme

import "github.com/twmb/murmur3"

// fillBitsAndBlooms is bits-and-blooms/bloom v3 for Go: MurmurHash3 x64-128 of the key,
// and of the key followed by a byte 1, give four hashes. The first two alternate as the
// start, the other two as the step.
func fillBitsAndBlooms(at []uint64, key []byte, m, _ uint64) {
	var room [keyOnStack]byte
	var h [4]uint64
	h[0], h[1] = murmur3.SeedSum128(0, 0, key)
	h[2], h[3] = murmur3.SeedSum128(0, 0, append(append(room[:0], key...), 1))
	for i := range at {
		step := h[2+(i+i%2)%4/2]
		at[i] = (h[i%2] + uint64(i)*step) % m
	}
}
