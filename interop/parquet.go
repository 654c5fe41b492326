package interop

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/bloomery/bloom"
)

// The Bloom filter of a Parquet column chunk: a header in Thrift's compact protocol,
// followed by the bit set, blocks of 32 bytes; see [bloom.ReadSplitBlockBits]. Its
// offset in a Parquet file is field 14, bloom_filter_offset, of the column chunk's
// metadata.
//
// The bytes do not say what the keys are: they are the plain encodings of the values,
// see [ParquetKey].

var parquetFormat = &Format{
	Name:    "parquet",
	About:   "Apache Parquet: the Bloom filter of a column chunk, header and bit set",
	Holds:   SplitBlocks,
	Matches: isParquet,
	read: func(r io.Reader, o Options) (*File, error) {
		f, header, err := readParquet(r, o.Limit)
		if err != nil {
			return nil, err
		}
		file := &File{Filter: f}
		if header.isZipped {
			file.Details = [][2]string{{"compression", "GZIP, an extension of parquet-go's"}}
		}
		return file, nil
	},
	write: func(w io.Writer, f *File) error {
		split, err := f.splitBlocks()
		if err != nil {
			return err
		}
		return WriteParquet(w, split)
	},
}

var parquetBitSetFormat = &Format{
	Name:  "parquet-bitset",
	About: "Apache Parquet: the bit set of a Bloom filter without its header, blocks of 32 bytes to the end of the file",
	Holds: SplitBlocks,
	read: func(r io.Reader, o Options) (*File, error) {
		f, err := readBlocks(r)
		if err != nil {
			return nil, err
		}
		if m := f.Plan().Bits; o.Bits != 0 && o.Bits != m {
			f.Close()
			return nil, fmt.Errorf("%w: there are %d bits, not the %d that were expected", bloom.ErrFormat, m, o.Bits)
		}
		return &File{Filter: f}, nil
	},
	write: func(w io.Writer, f *File) error {
		split, err := f.splitBlocks()
		if err == nil {
			_, err = split.WriteBits(w)
		}
		return err
	},
}

// mostUnzipped is the most that a compressed bit set may unpack to unless there is a
// lower limit: the largest that Parquet's other writers make.
const mostUnzipped = 128 << 20

// ReadParquet reads the Bloom filter of a column chunk from where its header
// begins, and nothing after it. Its keys are what [ParquetKey] makes of values.
//
// The error wraps [bloom.ErrFormat], or [bloom.ErrVersion] if the header names an
// algorithm, hash or compression that the Parquet format does not know. A bit set
// under parquet-go's own compression, GZIP, is read if it has at most 128 MiB.
func ReadParquet(r io.Reader) (*bloom.SplitBlock, error) {
	f, _, err := readParquet(r, 0)
	return f, err
}

// ReadParquetAt is ReadParquet of the filter at an offset in a Parquet file, which
// is field 14, bloom_filter_offset, of the column chunk's metadata.
func ReadParquetAt(r io.ReaderAt, offset int64) (*bloom.SplitBlock, error) {
	if offset < 0 {
		return nil, fmt.Errorf("%w: a Bloom filter at offset %d", bloom.ErrFormat, offset)
	}
	return ReadParquet(io.NewSectionReader(r, offset, math.MaxInt64-offset))
}

// WriteParquet writes the header and the bit set, not compressed, as engines
// expect them in a Parquet file. The error wraps [ErrScheme] if the filter's hash
// is not XXH64 with seed 0 or if it has more than 2^31-1 bytes.
func WriteParquet(w io.Writer, f *bloom.SplitBlock) error {
	if err := parquetHash(f); err != nil {
		return err
	}
	length := f.Plan().Bytes()
	if length > math.MaxInt32 {
		return fmt.Errorf("%w: Parquet counts the bytes of a filter in 31 bits, and this one has %d", ErrScheme, length)
	}
	if _, err := w.Write(appendParquetHeader(nil, length)); err != nil {
		return err
	}
	_, err := f.WriteBits(w)
	return err
}

// ParquetKey returns the key of a value in a Parquet filter: its plain encoding, for
// byte arrays without the length. The types stand for the
// physical types BOOLEAN, INT32, INT64, FLOAT, DOUBLE and BYTE_ARRAY or
// FIXED_LEN_BYTE_ARRAY. Logical types are stored as one of them: a date is the
// days since 1970 as int32, a timestamp int64.
//
// Bits count, not values: 0.0 and -0.0 are two keys.
func ParquetKey[T bool | int32 | int64 | float32 | float64 | string | []byte](value T) []byte {
	switch v := any(value).(type) {
	case bool:
		if v {
			return []byte{1}
		}
		return []byte{0}
	case int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(v))
	case int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(v))
	case float32:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
	case float64:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	case []byte:
		return v
	}
	return []byte(any(value).(string))
}

func readParquet(r io.Reader, limit int64) (*bloom.SplitBlock, parquetHeader, error) {
	header, err := readParquetHeader(r)
	if err != nil {
		return nil, header, err
	}
	if header.isZipped {
		f, err := readZippedBlocks(io.LimitReader(r, int64(header.length)), limit)
		return f, header, err
	}
	if header.length == 0 || header.length%32 != 0 {
		return nil, header, fmt.Errorf("%w: %d bytes are not whole blocks of 32", bloom.ErrFormat, header.length)
	}
	f, err := bloom.ReadSplitBlockBits(r, header.length/32)
	return f, header, err
}

// readZippedBlocks reads gzip, to the end of its reader.
func readZippedBlocks(r io.Reader, limit int64) (*bloom.SplitBlock, error) {
	if limit == 0 {
		limit = mostUnzipped
	}
	zipped, err := gzip.NewReader(r)
	if err == nil {
		var f *bloom.SplitBlock
		if f, err = readBlocks(&limited{zipped, min(limit, mostUnzipped)}); err == nil {
			_, err = io.Copy(io.Discard, r)
			return f, err
		}
	}
	if !errors.Is(err, bloom.ErrLimit) && !errors.Is(err, bloom.ErrFormat) {
		err = fmt.Errorf("%w: the bit set is not gzip: %w", bloom.ErrFormat, err)
	}
	return nil, err
}

// readBlocks reads a bit set to the end of r: only its length says how many blocks it
// has.
func readBlocks(r io.Reader) (*bloom.SplitBlock, error) {
	bits, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if len(bits) == 0 || len(bits)%32 != 0 || len(bits)/32 > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d bytes are not whole blocks of 32", bloom.ErrFormat, len(bits))
	}
	return bloom.ReadSplitBlockBits(bytes.NewReader(bits), uint64(len(bits)/32))
}

// splitBlocks returns the file's filter if Parquet's readers understand it.
func (f *File) splitBlocks() (*bloom.SplitBlock, error) {
	split, ok := f.Filter.(*bloom.SplitBlock)
	if !ok {
		return nil, fmt.Errorf("%w: %v has no split blocks, as Parquet needs them: build it again from its keys", ErrScheme, f.Filter)
	}
	return split, parquetHash(split)
}

func parquetHash(f *bloom.SplitBlock) error {
	if hash := f.HashIdentity(); hash != (bloom.HashIdentity{Algorithm: bloom.XXH64}) {
		return fmt.Errorf("%w: its hash is %v, and Parquet's is XXH64 with seed 0: build the filter again from its keys", ErrScheme, hash)
	}
	return nil
}

func isParquet(head []byte, size int64) bool {
	rest := bytes.NewReader(head)
	header, err := readParquetHeader(rest)
	if err != nil || header.length == 0 {
		return false
	}
	return size < 0 || size == int64(len(head)-rest.Len())+int64(header.length)
}
