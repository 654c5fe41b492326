package bloom

// This file encapsulates unsafe: views of the same memory under another type.
// The safe twins copy: []byte(s), and encoding/binary word by word. The views
// keep what they look at alive only as long as the caller does.

import (
	"unsafe"

	"github.com/bloomery/bloom/internal/kernel"
)

// stringBytes views s as bytes that must not be written. The safe twin is
// []byte(s), which allocates.
func stringBytes(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// wordBytes views words as their bytes in memory: on a little-endian machine,
// the very bytes of the file. The safe twin is the other branch of fileParts.
func wordBytes(words []uint64) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
}

// byteWords views b, whose length is a multiple of 8, as words. b must begin on
// an 8-byte boundary, as mapped pages do.
func byteWords(b []byte) []uint64 {
	if len(b) == 0 {
		return nil
	}
	if uintptr(unsafe.Pointer(&b[0]))%8 != 0 || len(b)%8 != 0 {
		panic("bloom: byteWords of unaligned memory")
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8)
}

// blockOffset is how many words of a 512-byte block lie before words[0].
func blockOffset(words []uint64) int {
	return int(uintptr(unsafe.Pointer(&words[0])) % kernel.BlockBytes / 8)
}

// address is where b begins.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// littleEndian tells whether memory and file have the same byte order.
var littleEndian = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}()
