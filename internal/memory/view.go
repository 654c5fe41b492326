package memory

// This file encapsulates unsafe: views of the same memory as another type. The safe
// twins copy, word by word, with encoding/binary. A view of a mapping does not keep it
// alive; the caller must.

import (
	"encoding/binary"
	"unsafe"
)

// LittleEndian reports whether this machine has the byte order of files.
var LittleEndian = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}()

// Bytes views words as their bytes in memory: on a little-endian machine, these are
// the bytes of a file.
func Bytes(words []uint64) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
}

// FileWords views mapped bytes as the little-endian words of a file, or copies them
// if the machine has another byte order. b begins on an 8-byte boundary, and its
// length is a multiple of 8.
func FileWords(b []byte) []uint64 {
	if LittleEndian {
		return wordsOf(b)
	}
	words := make([]uint64, len(b)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return words
}

// wordsOf views b, whose length is a multiple of 8, as words. b must begin on an
// 8-byte boundary, as mapped pages do.
func wordsOf(b []byte) []uint64 {
	if len(b) == 0 {
		return nil
	}
	if uintptr(unsafe.Pointer(&b[0]))%8 != 0 || len(b)%8 != 0 {
		panic("memory: a view of words on unaligned bytes")
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8)
}

// blockOffset returns how many words of a 512-byte block lie before words[0].
func blockOffset(words []uint64) int {
	return int(uintptr(unsafe.Pointer(&words[0])) % blockBytes / 8)
}

// pageBytes is the smallest page of any system.
const pageBytes = 4096

// wholePages returns the words without the pages that they share with others, at both
// ends.
func wholePages(words []uint64) []uint64 {
	skip := int(-uintptr(unsafe.Pointer(&words[0])) % pageBytes / 8)
	if len(words) < skip {
		return nil
	}
	whole := words[skip:]
	return whole[:len(whole)/(pageBytes/8)*(pageBytes/8)]
}

// StringBytes views s as bytes, which must not be written.
func StringBytes(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
