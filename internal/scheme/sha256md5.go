package scheme

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// fillSHA256MD5 is the two-hash filter of TheAlgorithms' Python collection:
// SHA-256, then MD5, each digest a little-endian integer modulo m.
func fillSHA256MD5(at []uint64, key []byte, m, _ uint64) {
	long, short := sha256.Sum256(key), md5.Sum(key)
	for i := range at {
		switch i {
		case 0:
			at[i] = littleEndianMod(long[:], m)
		case 1:
			at[i] = littleEndianMod(short[:], m)
		}
	}
}

// littleEndianMod is schoolbook division by one digit of 64 bits.
func littleEndianMod(digest []byte, m uint64) uint64 {
	rest := uint64(0)
	for end := len(digest); end > 0; end -= 8 {
		rest = bits.Rem64(rest, binary.LittleEndian.Uint64(digest[end-8:]), m)
	}
	return rest
}
