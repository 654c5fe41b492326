package interop

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/filterfile"
)

// The header of Parquet's Bloom filters, in parquet-format's parquet.thrift:
//
//	struct BloomFilterHeader {
//	  1: i32 numBytes                              of what follows
//	  2: union { 1: BLOCK {} } algorithm
//	  3: union { 1: XXHASH {} } hash
//	  4: union { 1: UNCOMPRESSED {} } compression  parquet-go adds 2: GZIP {}
//	}
//
// In Thrift's compact protocol a struct is a list of fields, closed by a zero byte.
// A field begins with a byte: its high four bits are the difference to the previous
// field's number (0: the number follows as a zigzag varint), its low four the type. So
// the usual header is
//
//	15 numBytes   1c 1c 00 00   1c 1c 00 00   1c 1c 00 00   00

// Types of fields in Thrift's compact protocol. Booleans have their value in the
// type.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// Limits of a header, unknown fields included.
const (
	thriftBytes = 64 << 10
	thriftDepth = 16
)

type parquetHeader struct {
	length   uint64 // bytes after the header
	isZipped bool
}

func appendParquetHeader(b []byte, length uint64) []byte {
	b = append(b, 1<<4|thriftI32)
	b = binary.AppendUvarint(b, length<<1) // zigzag
	for range 3 {
		b = append(b, 1<<4|thriftStruct, 1<<4|thriftStruct, 0, 0)
	}
	return append(b, 0)
}

func readParquetHeader(r io.Reader) (parquetHeader, error) {
	t := &thriftReader{from: r, left: thriftBytes}
	var (
		header parquetHeader
		choice [5]int16 // of the unions 2, 3 and 4
		seen   [5]bool
	)
	err := t.fields(func(id int16, kind byte) (err error) {
		if id < 1 || id > 4 {
			return t.skip(kind)
		}
		if seen[id] {
			return badThrift("field %d occurs twice", id)
		}
		seen[id] = true
		if id > 1 {
			choice[id], err = t.union(id, kind)
			return err
		}
		if kind != thriftI32 {
			return badThrift("numBytes has type %d", kind)
		}
		length, err := t.zigzag()
		if err == nil && (length < 0 || length > math.MaxInt32) {
			err = badThrift("numBytes is %d", length)
		}
		header.length = uint64(length)
		return err
	})
	if err != nil {
		return header, err
	}
	for id, name := range []string{1: "numBytes", 2: "algorithm", 3: "hash", 4: "compression"} {
		if id > 0 && !seen[id] {
			return header, badThrift("%s is missing", name)
		}
	}
	header.isZipped = choice[4] == 2
	switch {
	case choice[2] != 1:
		return header, fmt.Errorf("%w: Parquet's algorithm number %d; only 1, BLOCK, is known", bloom.ErrVersion, choice[2])
	case choice[3] != 1:
		return header, fmt.Errorf("%w: Parquet's hash number %d; only 1, XXHASH, is known", bloom.ErrVersion, choice[3])
	case choice[4] != 1 && choice[4] != 2:
		return header, fmt.Errorf("%w: Parquet's compression number %d; only 1, UNCOMPRESSED, and 2, GZIP, are known", bloom.ErrVersion, choice[4])
	}
	return header, nil
}

func badThrift(format string, args ...any) error {
	return fmt.Errorf("%w: bad header: %w", bloom.ErrFormat, fmt.Errorf(format, args...))
}

// thriftReader reads the compact protocol a byte at a time, so as not to read beyond
// the header.
type thriftReader struct {
	from  io.Reader
	left  int // bytes that may still be read
	depth int
}

func (t *thriftReader) byte() (byte, error) {
	if t.left--; t.left < 0 {
		return 0, badThrift("it is longer than %d bytes", thriftBytes)
	}
	var b [1]byte
	if _, err := io.ReadFull(t.from, b[:]); err != nil {
		return 0, filterfile.ReadError(err)
	}
	return b[0], nil
}

func (t *thriftReader) varint() (value uint64, err error) {
	for shift := 0; shift < 64; shift += 7 {
		b, err := t.byte()
		if err != nil {
			return 0, err
		}
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value, nil
		}
	}
	return 0, badThrift("a number has more than 64 bits")
}

func (t *thriftReader) zigzag() (int64, error) {
	value, err := t.varint()
	return int64(value>>1) ^ -int64(value&1), err
}

// fields reads a struct; each must read the value of a field.
func (t *thriftReader) fields(each func(id int16, kind byte) error) error {
	if t.depth++; t.depth > thriftDepth {
		return badThrift("it is nested more than %d deep", thriftDepth)
	}
	defer func() { t.depth-- }()
	for id := int16(0); ; {
		b, err := t.byte()
		if err != nil || b == 0 {
			return err
		}
		if delta := int16(b >> 4); delta > 0 {
			id += delta
		} else {
			long, err := t.zigzag()
			if err != nil {
				return err
			}
			id = int16(long)
		}
		if err := each(id, b&0xf); err != nil {
			return err
		}
	}
}

// union reads a struct of exactly one field, and returns its number.
func (t *thriftReader) union(of int16, kind byte) (choice int16, err error) {
	if kind != thriftStruct {
		return 0, badThrift("field %d has type %d and must be a union", of, kind)
	}
	count := 0
	err = t.fields(func(id int16, kind byte) error {
		choice = id
		count++
		return t.skip(kind)
	})
	if err == nil && count != 1 {
		err = badThrift("the union in field %d has %d values", of, count)
	}
	return choice, err
}

// skip reads a value of any type.
func (t *thriftReader) skip(kind byte) error {
	switch kind {
	case thriftTrue, thriftFalse:
		return nil
	case thriftByte:
		return t.skipBytes(1)
	case thriftI16, thriftI32, thriftI64:
		_, err := t.varint()
		return err
	case thriftDouble:
		return t.skipBytes(8)
	case thriftUUID:
		return t.skipBytes(16)
	case thriftBinary:
		length, err := t.varint()
		if err != nil {
			return err
		}
		return t.skipBytes(length)
	case thriftStruct:
		return t.fields(func(_ int16, kind byte) error { return t.skip(kind) })
	case thriftList, thriftSet, thriftMap:
		return t.skipMany(kind)
	}
	return badThrift("a field of the unknown type %d", kind)
}

func (t *thriftReader) skipBytes(n uint64) error {
	for ; n > 0; n-- {
		if _, err := t.byte(); err != nil {
			return err
		}
	}
	return nil
}

// skipMany reads a list, set or map. A map begins with its size and then a byte with
// the two types; the others have the size in the high four bits of a byte, or after it
// if these are 15, and the type in the low four.
func (t *thriftReader) skipMany(kind byte) error {
	if t.depth++; t.depth > thriftDepth {
		return badThrift("it is nested more than %d deep", thriftDepth)
	}
	defer func() { t.depth-- }()
	var size uint64
	var err error
	if kind == thriftMap {
		if size, err = t.varint(); err != nil || size == 0 {
			return err
		}
	}
	types, err := t.byte()
	if err != nil {
		return err
	}
	if kind != thriftMap {
		if size = uint64(types >> 4); size == 15 {
			if size, err = t.varint(); err != nil {
				return err
			}
		}
		types &= 0xf
	}
	for ; size > 0; size-- {
		if kind == thriftMap {
			if err := t.skipElement(types >> 4); err != nil {
				return err
			}
		}
		if err := t.skipElement(types & 0xf); err != nil {
			return err
		}
	}
	return nil
}

// skipElement reads a value in a list, where a boolean takes a byte.
func (t *thriftReader) skipElement(kind byte) error {
	if kind == thriftTrue || kind == thriftFalse {
		kind = thriftByte
	}
	return t.skip(kind)
}
