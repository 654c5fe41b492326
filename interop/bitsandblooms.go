package interop

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/filterfile"
)

// The format of github.com/bits-and-blooms/bloom/v3, WriteTo and MarshalBinary;
// github.com/willf/bloom v2 wrote the same bytes:
//
//	byte 0    u64  m              big-endian
//	byte 8    u64  k              big-endian
//	byte 16   u64  length         of the bit set, normally m
//	byte 24   u64  words          ceil(length/64); bit i is word i/64, mask 1<<(i%64)
//
// Length and words are big-endian, unless the program has called
// bitset.LittleEndian. The JSON has length and words in base64 of URLs, unless it
// has called bitset.Base64StdEncoding:
//
//	{"m":1000,"k":4,"b":"..."}
//
// That program's readers check nothing: m = 0 panics later, k = 0 finds every key.
// Here both are errors. A bit set that does not have m bits, as FromWithM makes it,
// means the same there with the missing bits clear and the surplus ignored; so it is
// read, and written again with m bits.

var bitsAndBloomsFormat = &Format{
	Name:    "bits-and-blooms",
	About:   "Go: github.com/bits-and-blooms/bloom/v3 and github.com/willf/bloom, WriteTo or MarshalBinary",
	Schemes: []classic.Scheme{classic.SchemeBitsAndBlooms},
	Matches: isBitsAndBlooms,
	read: func(r io.Reader, o Options) (*File, error) {
		f, form, err := readBitsAndBlooms(r)
		if err != nil {
			return nil, err
		}
		return &File{Filter: f, Details: form.details(), state: form}, nil
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(classic.SchemeBitsAndBlooms)
		if err != nil {
			return err
		}
		form, _ := f.state.(bitsAndBlooms)
		return form.write(w, filter)
	},
}

var bitsAndBloomsJSONFormat = &Format{
	Name:    "bits-and-blooms-json",
	About:   "Go: github.com/bits-and-blooms/bloom/v3, MarshalJSON",
	Schemes: []classic.Scheme{classic.SchemeBitsAndBlooms},
	Matches: func(head []byte, _ int64) bool {
		return jsonLike(head, map[string]string{"m": jsonDigits, "k": jsonDigits, "b": `"`}, "b")
	},
	read: func(r io.Reader, o Options) (*File, error) {
		f, form, err := readBitsAndBloomsJSON(r)
		if err != nil {
			return nil, err
		}
		return &File{Filter: f, Details: form.details(), state: form}, nil
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(classic.SchemeBitsAndBlooms)
		if err != nil {
			return err
		}
		form, _ := f.state.(bitsAndBlooms)
		return form.writeJSON(w, filter)
	},
}

const (
	// shortBitSet is the most bits of a filter whose bit set may be shorter than m, so
	// that a header cannot claim memory that its bytes do not fill. The program makes such
	// filters by New(0, 0), with m = 1, and by FromWithM.
	shortBitSet = 8 << 20

	// mostSurplus is by how many bits a bit set may exceed m, so that the byte order can
	// be inferred from which length is likely.
	mostSurplus = 64 << 20
)

// ReadBitsAndBlooms reads a filter that bits-and-blooms' WriteTo or MarshalBinary
// wrote, and nothing after it. The error wraps [bloom.ErrFormat] or is the reader's.
func ReadBitsAndBlooms(r io.Reader) (*classic.Filter, error) {
	f, _, err := readBitsAndBlooms(r)
	return f, err
}

// WriteBitsAndBlooms writes a filter as bits-and-blooms' WriteTo does, for its
// ReadFrom or UnmarshalBinary. The error wraps [ErrScheme] if the filter is not of
// [classic.SchemeBitsAndBlooms].
func WriteBitsAndBlooms(w io.Writer, f *classic.Filter) error {
	return bitsAndBloomsFormat.write(w, &File{Filter: f})
}

// ReadBitsAndBloomsJSON reads a filter that bits-and-blooms' MarshalJSON wrote. It
// reads r to its end. The errors are those of [ReadBitsAndBlooms].
func ReadBitsAndBloomsJSON(r io.Reader) (*classic.Filter, error) {
	f, _, err := readBitsAndBloomsJSON(r)
	return f, err
}

// WriteBitsAndBloomsJSON writes a filter as bits-and-blooms' MarshalJSON does; see
// [WriteBitsAndBlooms].
func WriteBitsAndBloomsJSON(w io.Writer, f *classic.Filter) error {
	return bitsAndBloomsJSONFormat.write(w, &File{Filter: f})
}

// bitsAndBlooms records the two settings of package bitset, and the ignored surplus.
type bitsAndBlooms struct {
	isLittleEndian   bool
	isStandardBase64 bool
	surplus          uint64 // bits beyond m
}

func (s bitsAndBlooms) details() [][2]string {
	var details [][2]string
	if s.isLittleEndian {
		details = append(details, [2]string{"byte order", "little-endian, by bitset.LittleEndian"})
	}
	if s.isStandardBase64 {
		details = append(details, [2]string{"base64", "standard, by bitset.Base64StdEncoding"})
	}
	if s.surplus > 0 {
		details = append(details, [2]string{"bits beyond m, ignored", fmt.Sprint(s.surplus)})
	}
	return details
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func (s bitsAndBlooms) order() (byteOrder, classic.BitOrder) {
	if s.isLittleEndian {
		return binary.LittleEndian, classic.LittleEndianWords
	}
	return binary.BigEndian, classic.BigEndianWords
}

func readBitsAndBlooms(r io.Reader) (*classic.Filter, bitsAndBlooms, error) {
	head := make([]byte, 16)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, bitsAndBlooms{}, filterfile.ReadError(err)
	}
	return readGoBitSet(r, binary.BigEndian.Uint64(head), binary.BigEndian.Uint64(head[8:]))
}

func readBitsAndBloomsJSON(r io.Reader) (*classic.Filter, bitsAndBlooms, error) {
	var m, k int64
	var bitSet []byte
	isStandard := false
	j := newJSONReader(r)
	err := j.object(func(name string) (err error) {
		switch name {
		case "m":
			m, err = j.integer(0, math.MaxInt64)
		case "k":
			k, err = j.integer(0, math.MaxInt64)
		case "b":
			bitSet, isStandard, err = j.base64()
		default:
			err = j.skip()
		}
		return err
	})
	if err == nil {
		err = j.end()
	}
	if err != nil {
		return nil, bitsAndBlooms{}, err
	}
	rest := bytes.NewReader(bitSet)
	f, form, err := readGoBitSet(rest, uint64(m), uint64(k))
	if err == nil && rest.Len() > 0 {
		err = fmt.Errorf("%w: %d bytes after the bit set in \"b\"", bloom.ErrFormat, rest.Len())
	}
	if err != nil {
		return nil, bitsAndBlooms{}, err
	}
	form.isStandardBase64 = isStandard
	return f, form, nil
}

// readGoBitSet reads length and words.
func readGoBitSet(r io.Reader, m, k uint64) (*classic.Filter, bitsAndBlooms, error) {
	var form bitsAndBlooms
	raw := make([]byte, 8)
	if _, err := io.ReadFull(r, raw); err != nil {
		return nil, form, filterfile.ReadError(err)
	}
	length, isLittle, ok := bitSetLength(raw, m)
	if !ok {
		return nil, form, fmt.Errorf("%w: a bit set of %d bits does not fit m = %d", bloom.ErrFormat, length, m)
	}
	form.isLittleEndian = isLittle
	_, order := form.order()
	c := classic.Config{Bits: m, Probes: int(min(k, math.MaxInt32)), Scheme: classic.SchemeBitsAndBlooms}
	if length > m {
		form.surplus = length - m
		f, err := form.readLonger(r, c)
		return f, form, err
	}
	if length < m {
		short := make([]byte, (m+63)/64*8)
		if _, err := io.ReadFull(r, short[:(length+63)/64*8]); err != nil {
			return nil, form, filterfile.ReadError(err)
		}
		if length > 0 { // that program ignores what follows the last bit
			if _, err := (classic.Config{Bits: length, Probes: 1, Scheme: c.Scheme}).ReadBits(bytes.NewReader(short), order); err != nil {
				return nil, form, err
			}
		}
		r = bytes.NewReader(short)
	}
	f, err := classicOf(c, r, order)
	return f, form, err
}

// readLonger reads a bit set that is longer than m, and drops the surplus.
func (s bitsAndBlooms) readLonger(r io.Reader, c classic.Config) (*classic.Filter, error) {
	inBytes, order := s.order()
	words := io.LimitReader(r, int64(c.Bits/64*8))
	if c.Bits%64 != 0 {
		words = io.MultiReader(words, &lastWord{from: r, m: c.Bits, order: inBytes})
	}
	f, err := classicOf(c, words, order)
	if err != nil {
		return nil, err
	}
	behind := (c.Bits+s.surplus+63)/64 - (c.Bits+63)/64
	if _, err := io.CopyN(io.Discard, r, int64(behind)*8); err != nil {
		f.Close()
		return nil, filterfile.ReadError(err)
	}
	return f, nil
}

// lastWord reads the last word of a filter of m bits, and clears its bits beyond m.
type lastWord struct {
	from  io.Reader
	m     uint64
	order byteOrder
	word  *bytes.Reader // nil: not read yet
}

func (l *lastWord) Read(p []byte) (int, error) {
	if l.word == nil {
		word := make([]byte, 8)
		if err := filterfile.ReadFull(l.from, word); err != nil {
			return 0, err
		}
		l.order.PutUint64(word, l.order.Uint64(word)&(1<<(l.m%64)-1))
		l.word = bytes.NewReader(word)
	}
	return l.word.Read(p)
}

// bitSetLength infers the byte order from the length, which is m or, rarely, that of
// a shorter or longer bit set. It is false if neither order is possible. The order is
// undecidable only if the bytes of m read the same both ways, which takes 2^40 bits.
func bitSetLength(raw []byte, m uint64) (length uint64, isLittle, ok bool) {
	big, little := binary.BigEndian.Uint64(raw), binary.LittleEndian.Uint64(raw)
	fits := func(length uint64) bool {
		if length < m {
			return m <= shortBitSet
		}
		return length-m <= mostSurplus
	}
	switch {
	case big == m:
		return big, false, true
	case little == m:
		return little, true, true
	case fits(big):
		return big, false, true
	case fits(little):
		return little, true, true
	}
	return big, false, false
}

func (s bitsAndBlooms) write(w io.Writer, f *classic.Filter) error {
	head := binary.BigEndian.AppendUint64(nil, f.Plan().Bits)
	head = binary.BigEndian.AppendUint64(head, uint64(f.Plan().Probes))
	if _, err := w.Write(head); err != nil {
		return err
	}
	return s.writeBitSet(w, f)
}

func (s bitsAndBlooms) writeBitSet(w io.Writer, f *classic.Filter) error {
	bytes, bits := s.order()
	if _, err := w.Write(bytes.AppendUint64(nil, f.Plan().Bits)); err != nil {
		return err
	}
	_, err := f.WriteBits(w, bits)
	return err
}

func (s bitsAndBlooms) writeJSON(w io.Writer, f *classic.Filter) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `{"m":%d,"k":%d,"b":"`, f.Plan().Bits, f.Plan().Probes)
	encoding := base64.URLEncoding
	if s.isStandardBase64 {
		encoding = base64.StdEncoding
	}
	text := base64.NewEncoder(encoding, out)
	if err := s.writeBitSet(text, f); err != nil {
		return err
	}
	if err := text.Close(); err != nil {
		return err
	}
	out.WriteString(`"}`)
	return out.Flush()
}

// isBitsAndBlooms requires the exact size of the file, or, if that is unknown, the
// length m.
func isBitsAndBlooms(head []byte, size int64) bool {
	if len(head) < 24 {
		return false
	}
	m, k := binary.BigEndian.Uint64(head), binary.BigEndian.Uint64(head[8:])
	length, _, ok := bitSetLength(head[16:24], m)
	if !ok || m == 0 || m > 1<<45 || k == 0 || k > 255 {
		return false
	}
	if size < 0 {
		return length == m
	}
	return uint64(size) == 24+(length+63)/64*8
}
