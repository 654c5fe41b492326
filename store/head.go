package store

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/bloomery/bloom"
)

// fileHead precedes the records of a snapshot and of a segment of the log;
// docs/format.md draws it. Its first 40 bytes are laid out as in version 0, so that an
// older release sees a newer version there, not damage.
type fileHead struct {
	version uint32
	start   uint64  // the LSN in the file's name
	salt    uint64  // part of every checksum, so that records of other files do not match
	store   storeID // zero in version 0
	flags   uint32  // of a segment
}

// storeID is in all files of a directory, and in no other directory's files.
type storeID [16]byte

const (
	fileMagicLog  = "bloomlog"
	fileMagicSnap = "bloomsnp"
	fileVersion   = 1
	oldHeadBytes  = 40 // of version 0, and the first part of every head
	headBytes     = 64
)

// Flags of a segment.
const (
	// segmentRewrite: the segment was begun just before the snapshot of the same number.
	// If it is empty and there is no such snapshot, it was never used.
	segmentRewrite = 1 << iota

	// segmentFirst: that snapshot was empty, as the directory was.
	segmentFirst
)

func (h fileHead) encode(magic string) []byte {
	b := append(make([]byte, 0, headBytes), magic...)
	b = order.AppendUint32(b, fileVersion)
	b = order.AppendUint32(b, 0)
	b = order.AppendUint64(b, h.start)
	b = order.AppendUint64(b, h.salt)
	b = order.AppendUint32(b, 0)
	b = order.AppendUint32(b, crc32.Checksum(b, castagnoli))
	b = append(b, h.store[:]...)
	b = order.AppendUint32(b, h.flags)
	return order.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// bytes is the length of the head.
func (h fileHead) bytes() uint64 {
	if h.version == 0 {
		return oldHeadBytes
	}
	return headBytes
}

// parseHead parses the head at the beginning of a file. ok is false if it is damaged.
// The error wraps bloom.ErrVersion.
func parseHead(b []byte, magic string) (h fileHead, ok bool, err error) {
	if len(b) < oldHeadBytes || string(b[:8]) != magic || !sealed(b[:oldHeadBytes]) {
		return h, false, nil
	}
	h.version, h.start, h.salt = order.Uint32(b[8:]), order.Uint64(b[16:]), order.Uint64(b[24:])
	switch {
	case h.version > fileVersion:
		return h, true, fmt.Errorf("%w: version %d, and this release reads up to %d: use the release that wrote it, or a later one", bloom.ErrVersion, h.version, fileVersion)
	case h.version == 0:
		return h, true, nil
	case len(b) < headBytes || !sealed(b[:headBytes]):
		return h, false, nil
	}
	copy(h.store[:], b[oldHeadBytes:])
	h.flags = order.Uint32(b[oldHeadBytes+len(h.store):])
	return h, true, nil
}

// sealed reports whether the last four bytes are the checksum of those before.
func sealed(b []byte) bool {
	n := len(b) - 4
	return crc32.Checksum(b[:n], castagnoli) == order.Uint32(b[n:])
}

func newSalt() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func newStoreID() (id storeID) {
	rand.Read(id[:])
	return id
}

// seed is the checksum of the salt, from which a record's checksum continues.
func seed(salt uint64) uint32 {
	var b [8]byte
	order.PutUint64(b[:], salt)
	return crc32.Checksum(b[:], castagnoli)
}

// sum is the checksum of a record in a file with this seed.
func sum(seed uint32, record []byte) uint32 { return crc32.Update(seed, castagnoli, record) }

// unwound returns the seed with which a record has this checksum. CRC-32 can be
// computed backwards, since the highest bytes of its table's entries all differ.
func unwound(sum uint32, record []byte) uint32 {
	sum = ^sum
	for i := len(record) - 1; i >= 0; i-- {
		index := unwinding[sum>>24]
		sum = (sum^castagnoli[index])<<8 | uint32(index^record[i])
	}
	return ^sum
}

// unwinding returns the index of the table's entry with this highest byte.
var unwinding = func() (of [256]byte) {
	for i, entry := range castagnoli {
		of[entry>>24] = byte(i)
	}
	return of
}()
