package scheme

import (
	"crypto/md5"
	"encoding/binary"
	"math/bits"
	"strconv"
)

// The k hashes that tutorials derive from one: MD5 of the key and the number of the
// hash, the digest read as a 128-bit big-endian integer, modulo m.

// keyOnStack is how long a key with its number may be without an allocation.
const keyOnStack = 256

// fillMD5IndexKey puts the number, 0 to k-1 in decimal, before the key. There is
// no separator: the second hash of "0x" is the eleventh of "x".
func fillMD5IndexKey(at []uint64, key []byte, m, _ uint64) {
	var room [keyOnStack]byte
	for i := range at {
		text := strconv.AppendInt(room[:0], int64(i), 10)
		digest := md5.Sum(append(text, key...))
		at[i] = bigEndianMod(&digest, m)
	}
}

// fillMD5KeyIndex puts the number, 1 to k in decimal, after the key.
func fillMD5KeyIndex(at []uint64, key []byte, m, _ uint64) {
	var room [keyOnStack]byte
	text := append(room[:0], key...)
	for i := range at {
		digest := md5.Sum(strconv.AppendInt(text, int64(i)+1, 10))
		at[i] = bigEndianMod(&digest, m)
	}
}

func bigEndianMod(digest *[md5.Size]byte, m uint64) uint64 {
	return bits.Rem64(binary.BigEndian.Uint64(digest[:]), binary.BigEndian.Uint64(digest[8:]), m)
}
