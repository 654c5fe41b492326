package scheme

import (
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// The npm package bloom-filters (Callidon): the low halves of two XXH64 with
// consecutive seeds, and enhanced double hashing.

// npmSeed is the package's default seed. The package adds 1 and 2 to a seed, and then
// uses 32 bits of each sum.
const npmSeed = 0x1234567890

func fillNPMBloom(at []uint64, key []byte, m, seed uint64) {
	key = npmBytes(key)
	first, second := npmHash(key, uint64(uint32(seed)+1)), npmHash(key, uint64(uint32(seed)+2))
	for i := range at {
		n := uint64(i)
		at[i] = (first + n*second + (n*n*n-n)/6) % m
	}
}

func npmHash(key []byte, seed uint64) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	d.Write(key)
	return d.Sum64() & 0xffffffff
}

// npmBytes encodes a string as the package's hash does: as UTF-8, except that any
// surrogate swallows the unit after it. Bytes that are not text are unchanged.
func npmBytes(key []byte) []byte {
	if utf8.Valid(key) || !validButSurrogates(key) {
		return key
	}
	units := appendUnits(nil, key)
	encoded := make([]byte, 0, len(key)+4)
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		if r&0xf800 == 0xd800 {
			i++
			next := rune(0)
			if i < len(units) {
				next = rune(units[i])
			}
			r = 0x10000 + (r&0x3ff<<10 | next&0x3ff)
		}
		encoded = utf8.AppendRune(encoded, r)
	}
	return encoded
}

func validButSurrogates(key []byte) bool {
	for len(key) > 0 {
		switch _, size := utf8.DecodeRune(key); {
		case isSurrogate(key):
			key = key[3:]
		case size == 1 && key[0] >= utf8.RuneSelf:
			return false
		default:
			key = key[size:]
		}
	}
	return true
}
