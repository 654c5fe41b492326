package interop

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/filterfile"
)

// The bits of filters in Python tutorials, as print writes them. There is no file
// format: the text has neither the rule of the positions nor k.
//
//	[0, 1, 1, 0]    a list, bit 0 first: the family of MD5, such as self.bits
//	0110            a bit string, bit 0 last: f"{bits:0{size}b}", such as SHA-256 and MD5

var pythonListFormat = &Format{
	Name:    "python-list",
	About:   "Python: the list of bits of a tutorial's filter, as print or json.dumps writes it",
	Schemes: pythonListSchemes,
	Needs:   "k; the scheme, if it is not md5-index-key",
	read: func(r io.Reader, o Options) (*File, error) {
		c, err := o.bare(pythonListSchemes...)
		if err != nil {
			return nil, err
		}
		return pythonFile(ReadPythonList(r, c))
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(pythonListSchemes...)
		if err != nil {
			return err
		}
		return WritePythonList(w, filter)
	},
}

var pythonStringFormat = &Format{
	Name:    "python-bitstring",
	About:   "Python: the bit string of a tutorial's filter, the last bit first",
	Schemes: pythonStringSchemes,
	Needs:   "the scheme, if it is not sha256-md5, and then k",
	read: func(r io.Reader, o Options) (*File, error) {
		c, err := o.bare(pythonStringSchemes...)
		if err != nil {
			return nil, err
		}
		return pythonFile(ReadPythonBitString(r, c))
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(pythonStringSchemes...)
		if err != nil {
			return err
		}
		return WritePythonBitString(w, filter)
	},
}

// The rules of such programs. The first is what a text has if nobody says otherwise.
var (
	pythonListSchemes   = []classic.Scheme{classic.SchemeMD5IndexKey, classic.SchemeSHA256MD5, classic.SchemeMD5KeyIndex}
	pythonStringSchemes = []classic.Scheme{classic.SchemeSHA256MD5, classic.SchemeMD5IndexKey, classic.SchemeMD5KeyIndex}
)

func pythonFile(f *classic.Filter, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return &File{Filter: f}, nil
}

// ReadPythonList reads a list of 0 and 1, "[0, 1, 1, 0]", bit 0 first, and r to its
// end. The config gives the scheme and k; Bits may be zero, and otherwise must be the
// number of bits. The error wraps [bloom.ErrFormat], or [bloom.ErrConfig] if the
// config is incomplete, or is the reader's.
func ReadPythonList(r io.Reader, c classic.Config) (*classic.Filter, error) {
	c, err := withProbes(c)
	if err != nil {
		return nil, err
	}
	var list bitList
	j := newJSONReader(r)
	if err := list.read(j); err != nil {
		return nil, err
	}
	if err := j.end(); err != nil {
		return nil, err
	}
	return list.filter(c)
}

// WritePythonList writes the bits as a list, "[0, 1, 1, 0]". Neither k nor the
// scheme is in it.
func WritePythonList(w io.Writer, f *classic.Filter) error {
	out := bufio.NewWriter(w)
	out.WriteByte('[')
	if _, err := f.WriteBits(&listWriter{to: out, left: f.Plan().Bits}, classic.LowBitFirst); err != nil {
		return err
	}
	out.WriteByte(']')
	return out.Flush()
}

// ReadPythonBitString reads characters 0 and 1, the last bit first, and r to its end;
// white space around them is ignored. The config and the errors are as for
// [ReadPythonList].
func ReadPythonBitString(r io.Reader, c classic.Config) (*classic.Filter, error) {
	c, err := withProbes(c)
	if err != nil {
		return nil, err
	}
	j := newJSONReader(r) // for its white space
	if _, err := j.next(); err != nil {
		return nil, err
	}
	var list bitList
	for {
		b, err := j.from.ReadByte()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, filterfile.ReadError(err)
		}
		if b != '0' && b != '1' {
			j.from.UnreadByte() // it was read just now
			break
		}
		list.add(b == '1')
	}
	if err := j.end(); err != nil {
		return nil, err
	}
	list.reverse()
	return list.filter(c)
}

// WritePythonBitString writes the bits as m characters, in the order of
// [classic.Filter.BitString]. It copies the bits, as the last is written first.
func WritePythonBitString(w io.Writer, f *classic.Filter) error {
	m := f.Plan().Bits
	bits := bytes.NewBuffer(make([]byte, 0, (m+7)/8))
	if _, err := f.WriteBits(bits, classic.LowBitFirst); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for i := m; i > 0; i-- {
		bit := bits.Bytes()[(i-1)/8] >> ((i - 1) % 8) & 1
		if err := out.WriteByte('0' + bit); err != nil {
			return err
		}
	}
	return out.Flush()
}

// withProbes checks that k is given, unless the scheme implies it.
func withProbes(c classic.Config) (classic.Config, error) {
	if c.Scheme == classic.SchemeSHA256MD5 && c.Probes == 0 {
		c.Probes = 2
	}
	if c.Probes < 1 {
		return c, fmt.Errorf("%w: k is not in the bits: give it, as Probes", bloom.ErrConfig)
	}
	return c, nil
}

// bitList collects bits as they are read, bit i in byte i/8, mask 1<<(i%8).
type bitList struct {
	bytes []byte
	count uint64
}

func (b *bitList) add(isSet bool) {
	if b.count%8 == 0 {
		b.bytes = append(b.bytes, 0)
	}
	if isSet {
		b.bytes[b.count/8] |= 1 << (b.count % 8)
	}
	b.count++
}

// read reads a JSON array of 0 and 1.
func (b *bitList) read(j *jsonReader) error {
	return j.array(func() error {
		bit, err := j.integer(0, 1)
		b.add(bit == 1)
		return err
	})
}

func (b *bitList) reverse() {
	for i, j := uint64(0), b.count; i+1 < j; i++ {
		j--
		first, last := b.bytes[i/8]>>(i%8)&1, b.bytes[j/8]>>(j%8)&1
		if first != last {
			b.bytes[i/8] ^= 1 << (i % 8)
			b.bytes[j/8] ^= 1 << (j % 8)
		}
	}
}

func (b *bitList) filter(c classic.Config) (*classic.Filter, error) {
	if b.count == 0 {
		return nil, fmt.Errorf("%w: there are no bits", bloom.ErrFormat)
	}
	if c.Bits != 0 && c.Bits != b.count {
		return nil, fmt.Errorf("%w: there are %d bits, not the %d that were expected", bloom.ErrFormat, b.count, c.Bits)
	}
	c.Bits = b.count
	return c.ReadBits(bytes.NewReader(b.bytes), classic.LowBitFirst)
}

// listWriter writes bits as the elements of a Python list.
type listWriter struct {
	to    *bufio.Writer
	left  uint64 // bits to come
	begun bool
}

func (l *listWriter) Write(bits []byte) (int, error) {
	for i, b := range bits {
		for range min(l.left, 8) {
			if l.begun {
				l.to.WriteString(", ")
			}
			l.begun = true
			if err := l.to.WriteByte('0' + b&1); err != nil {
				return i, err
			}
			b >>= 1
			l.left--
		}
	}
	return len(bits), nil
}
