package interop

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
)

// The formats of the npm package bloomfilter, Jason Davies' bloomfilter.js. Bit i
// is bucket i/32, mask 1<<(i%32). Since version 1.0 it writes
//
//	{"version":1,"m":1024,"k":4,"buckets":[100664960,2147484160,...]}
//
// with unsigned buckets, and also reads it without version and m. Before that there
// was no format: people kept the array of buckets, signed, and k elsewhere.
//
// The JSON distinguishes the two: it is an object or an array. Nothing in an array
// identifies the hash: up to version 0.0.18 it is [classic.SchemeBloomFilterJS32], since
// 0.0.21 [classic.SchemeBloomFilterJS64]. With the wrong one the filter answers at
// random, without an error.

var bloomFilterJSFormat = &Format{
	Name:    "bloomfilter.js",
	About:   "JavaScript: npm bloomfilter 1.x, JSON of a BloomFilter",
	Schemes: []classic.Scheme{classic.SchemeBloomFilterJS64},
	Matches: func(head []byte, _ int64) bool {
		return jsonLike(head, map[string]string{"buckets": "[", "k": jsonDigits}, "buckets")
	},
	read: func(r io.Reader, o Options) (*File, error) {
		f, err := ReadBloomFilterJS(r)
		if err != nil {
			return nil, err
		}
		return &File{Filter: f}, nil
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(classic.SchemeBloomFilterJS64)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(w)
		fmt.Fprintf(out, `{"version":1,"m":%d,"k":%d,"buckets":`, filter.Plan().Bits, filter.Plan().Probes)
		if err := writeBuckets(out, filter, false); err != nil {
			return err
		}
		out.WriteByte('}')
		return out.Flush()
	},
}

var bloomFilterJSArrayFormat = &Format{
	Name:    "bloomfilter.js-array",
	About:   "JavaScript: npm bloomfilter 0.0.x, JSON of the array of buckets",
	Schemes: []classic.Scheme{classic.SchemeBloomFilterJS64, classic.SchemeBloomFilterJS32},
	Needs:   "the scheme, bloomfilter.js-32 (up to version 0.0.18) or bloomfilter.js-64, and k",
	read: func(r io.Reader, o Options) (*File, error) {
		c := classic.Config{Scheme: o.Scheme, Bits: o.Bits, Probes: o.Probes}
		f, isUnsigned, err := readBucketArray(r, c)
		if err != nil {
			return nil, err
		}
		return &File{Filter: f, state: bucketArray{isUnsigned}}, nil
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(classic.SchemeBloomFilterJS32, classic.SchemeBloomFilterJS64)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(w)
		array, _ := f.state.(bucketArray)
		if err := writeBuckets(out, filter, !array.isUnsigned); err != nil {
			return err
		}
		return out.Flush()
	},
}

// bucketArray is the state of a file that is an array.
type bucketArray struct{ isUnsigned bool }

// ReadBloomFilterJS reads the JSON of a filter of bloomfilter.js 1.x. It reads r to
// its end. The error wraps [bloom.ErrFormat] or [bloom.ErrVersion], or is the
// reader's.
func ReadBloomFilterJS(r io.Reader) (*classic.Filter, error) {
	var (
		version    = int64(1)
		m, k       int64
		list       buckets
		hasM, hasK bool
	)
	j := newJSONReader(r)
	err := j.object(func(name string) (err error) {
		switch name {
		case "version":
			version, err = j.integer(0, math.MaxInt32)
		case "m":
			m, err = j.integer(1, math.MaxUint32+1)
			hasM = true
		case "k":
			k, err = j.integer(1, math.MaxInt32)
			hasK = true
		case "buckets":
			err = list.read(j)
		default:
			err = j.skip()
		}
		return err
	})
	if err == nil {
		err = j.end()
	}
	switch {
	case err != nil:
		return nil, err
	case version != 1:
		return nil, fmt.Errorf("%w: version %d of bloomfilter.js' JSON; only 1 is known", bloom.ErrVersion, version)
	case !hasK:
		return nil, fmt.Errorf("%w: k is missing", bloom.ErrFormat)
	case list.isSigned:
		return nil, fmt.Errorf("%w: a bucket is negative, as in arrays of version 0.0.x: read the array alone, as bloomfilter.js-array", bloom.ErrFormat)
	case hasM && uint64(m) != list.m():
		return nil, fmt.Errorf("%w: m is %d, but the buckets have %d bits", bloom.ErrFormat, m, list.m())
	}
	return list.filter(classic.SchemeBloomFilterJS64, int(k))
}

// WriteBloomFilterJS writes the JSON of bloomfilter.js 1.x. The error wraps
// [ErrScheme] if the filter is not of [classic.SchemeBloomFilterJS64].
func WriteBloomFilterJS(w io.Writer, f *classic.Filter) error {
	return bloomFilterJSFormat.write(w, &File{Filter: f})
}

// ReadBloomFilterJSArray reads a JSON array of buckets, signed or unsigned, and r to
// its end. The array has neither the scheme, [classic.SchemeBloomFilterJS32] or
// [classic.SchemeBloomFilterJS64], nor k. The error wraps [bloom.ErrFormat], or
// [bloom.ErrConfig] if the scheme or k is invalid, or is the reader's.
func ReadBloomFilterJSArray(r io.Reader, scheme classic.Scheme, k int) (*classic.Filter, error) {
	f, _, err := readBucketArray(r, classic.Config{Scheme: scheme, Probes: k})
	return f, err
}

// WriteBloomFilterJSArray writes the buckets as a JSON array of signed numbers,
// as version 0.0.x had them. k is not in it. The error wraps [ErrScheme] if the
// filter is of neither of bloomfilter.js' schemes.
func WriteBloomFilterJSArray(w io.Writer, f *classic.Filter) error {
	return bloomFilterJSArrayFormat.write(w, &File{Filter: f})
}

func readBucketArray(r io.Reader, c classic.Config) (f *classic.Filter, isUnsigned bool, err error) {
	if c.Scheme != classic.SchemeBloomFilterJS32 && c.Scheme != classic.SchemeBloomFilterJS64 {
		return nil, false, fmt.Errorf("%w: name the scheme of the array: %v up to version 0.0.18, %v since 0.0.21",
			bloom.ErrConfig, classic.SchemeBloomFilterJS32, classic.SchemeBloomFilterJS64)
	}
	if c.Probes < 1 || c.Probes > 255 {
		return nil, false, fmt.Errorf("%w: k is not in the array: give it, from 1 to 255, not %d", bloom.ErrConfig, c.Probes)
	}
	var list buckets
	j := newJSONReader(r)
	if err := list.read(j); err != nil {
		return nil, false, err
	}
	if err := j.end(); err != nil {
		return nil, false, err
	}
	if list.isSigned && list.isUnsigned {
		return nil, false, fmt.Errorf("%w: buckets below 0 and above 2^31-1 in one array", bloom.ErrFormat)
	}
	if c.Bits != 0 && (c.Bits+31)/32*32 != list.m() {
		return nil, false, fmt.Errorf("%w: the buckets have %d bits, not the %d that were expected", bloom.ErrFormat, list.m(), c.Bits)
	}
	f, err = list.filter(c.Scheme, c.Probes)
	return f, list.isUnsigned, err
}

// buckets holds the numbers read, four bytes each, low byte first.
type buckets struct {
	bytes                []byte
	isSigned, isUnsigned bool // a number was seen that only this type holds
}

func (b *buckets) read(j *jsonReader) error {
	return j.array(func() error {
		bucket, err := j.integer(math.MinInt32, math.MaxUint32)
		b.isSigned = b.isSigned || bucket < 0
		b.isUnsigned = b.isUnsigned || bucket > math.MaxInt32
		b.bytes = binary.LittleEndian.AppendUint32(b.bytes, uint32(bucket))
		return err
	})
}

func (b *buckets) m() uint64 { return uint64(len(b.bytes)) * 8 }

func (b *buckets) filter(scheme classic.Scheme, k int) (*classic.Filter, error) {
	if len(b.bytes) == 0 {
		return nil, fmt.Errorf("%w: there are no buckets", bloom.ErrFormat)
	}
	c := classic.Config{Bits: b.m(), Probes: k, Scheme: scheme}
	return classicOf(c, bytes.NewReader(b.bytes), classic.LowBitFirst)
}

func writeBuckets(w *bufio.Writer, f *classic.Filter, signed bool) error {
	w.WriteByte('[')
	if _, err := f.WriteBits(&bucketWriter{to: w, signed: signed}, classic.LowBitFirst); err != nil {
		return err
	}
	return w.WriteByte(']')
}

// bucketWriter writes each four bytes as a number; m is a multiple of 32.
type bucketWriter struct {
	to     *bufio.Writer
	signed bool
	begun  bool
}

func (b *bucketWriter) Write(bits []byte) (int, error) {
	for at := 0; at < len(bits); at += 4 {
		if b.begun {
			b.to.WriteByte(',')
		}
		b.begun = true
		bucket := binary.LittleEndian.Uint32(bits[at:])
		number := int64(bucket)
		if b.signed {
			number = int64(int32(bucket))
		}
		if _, err := b.to.Write(strconv.AppendInt(b.to.AvailableBuffer(), number, 10)); err != nil {
			return at, err
		}
	}
	return len(bits), nil
}
