package interop

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/filterfile"
)

// Crawlers, and copies of the Java class of [classic.SchemeJavaBitSet], keep a
// filter in a Redis string by SETBIT: GET gives its bytes. Bit i is in byte i/8,
// mask 0x80>>(i%8), and the string ends with the last byte that was written. So it
// has neither m nor k nor the scheme.

var setBitFormat = &Format{
	Name:    "redis-setbit",
	About:   "a Redis string of SETBIT (ScrapyRedisBloomFilter, copies of the Java BitSet class), as GET returns it",
	Schemes: []classic.Scheme{classic.SchemeRedisSetBit, classic.SchemeJavaBitSet},
	Needs:   "m and k, and the scheme if it is not " + classic.SchemeRedisSetBit.Name(),
	read: func(r io.Reader, o Options) (*File, error) {
		c, err := o.bare(classic.SchemeRedisSetBit, classic.SchemeJavaBitSet)
		if err != nil {
			return nil, err
		}
		f, err := ReadSetBit(r, c)
		if err != nil {
			return nil, err
		}
		return &File{Filter: f}, nil
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(classic.SchemeRedisSetBit, classic.SchemeJavaBitSet)
		if err != nil {
			return err
		}
		return WriteSetBit(w, filter)
	},
}

// bare returns the config of a filter of bare bits. The scheme must be one of those
// given, by default the first.
func (o Options) bare(schemes ...classic.Scheme) (classic.Config, error) {
	c := classic.Config{Bits: o.Bits, Probes: o.Probes, Scheme: o.Scheme}
	if o.Scheme == (classic.Scheme{}) {
		c.Scheme = schemes[0]
	}
	for _, s := range schemes {
		if c.Scheme == s {
			return c, nil
		}
	}
	return c, fmt.Errorf("%w: such a file has bits of %v, not of %v", bloom.ErrConfig, schemes, o.Scheme)
}

// ReadSetBit reads the bytes of a Redis string, up to the end of r, as a filter
// of the scheme, the Bits and the Probes of c: for ScrapyRedisBloomFilter
// [classic.SchemeRedisSetBit], 2 to the power of its BLOOMFILTER_BIT and its
// BLOOMFILTER_HASH_NUMBER. The error wraps [bloom.ErrConfig] if c is not such a
// config, and [bloom.ErrFormat] if a bit is set at m or beyond.
//
// Nothing reveals a wrong k, or an m that is too large: the filter then finds the
// wrong keys. However short the string, it takes the memory of m bits.
func ReadSetBit(r io.Reader, c classic.Config) (*classic.Filter, error) {
	return readTrimmed(r, c, classic.HighBitFirst)
}

// WriteSetBit writes the bytes that SETBIT would have left in an empty string: up to
// the last that has a bit set. For an empty filter there are none.
func WriteSetBit(w io.Writer, f *classic.Filter) error {
	return writeTrimmed(w, f, classic.HighBitFirst)
}

// readTrimmed reads the bits of a filter without the zeros at their end.
func readTrimmed(r io.Reader, c classic.Config, order classic.BitOrder) (*classic.Filter, error) {
	if err := mustBePlain(c); err != nil {
		return nil, err
	}
	f, err := c.ReadBits(&zerosBehind{r: r}, order)
	if err != nil {
		return nil, err
	}
	if err := onlyZeros(r); err != nil {
		f.Close()
		return nil, fmt.Errorf("after the last of %d bits: %w", c.Bits, err)
	}
	return f, nil
}

// mustBePlain refuses configs that do not state m and k, or whose scheme would round
// m: positions depend on m.
func mustBePlain(c classic.Config) error {
	if c.Bits == 0 || c.Probes == 0 {
		return fmt.Errorf("%w: bare bits say neither m nor k: give Bits and Probes, as the program that wrote them has them", bloom.ErrConfig)
	}
	plan, err := c.Plan()
	if err == nil && plan.Bits != c.Bits {
		return fmt.Errorf("%w: the scheme %v cannot have %d bits: the nearest is %d", bloom.ErrConfig, c.Scheme, c.Bits, plan.Bits)
	}
	return err
}

// writeTrimmed writes the bits of a filter without the zeros at their end.
func writeTrimmed(w io.Writer, f *classic.Filter, order classic.BitOrder) error {
	_, err := f.WriteBits(&withoutLastZeros{w: w}, order)
	return err
}

// zerosBehind reads r, and then zeros for ever.
type zerosBehind struct {
	r     io.Reader
	ended bool
}

func (z *zerosBehind) Read(b []byte) (int, error) {
	if z.ended {
		clear(b)
		return len(b), nil
	}
	n, err := z.r.Read(b)
	if errors.Is(err, io.EOF) {
		z.ended, err = true, nil
	}
	return n, err
}

// onlyZeros reads r to its end.
func onlyZeros(r io.Reader) error {
	b := make([]byte, 4096)
	for {
		n, err := r.Read(b)
		if !isZero(b[:n]) {
			return fmt.Errorf("%w: more bits are set: is m right?", bloom.ErrFormat)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return filterfile.ReadError(err)
		}
	}
}

func isZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// withoutLastZeros holds back zeros until something else follows.
type withoutLastZeros struct {
	w     io.Writer
	zeros int
}

func (t *withoutLastZeros) Write(b []byte) (int, error) {
	used := len(bytes.TrimRight(b, "\x00"))
	if used == 0 {
		t.zeros += len(b)
		return len(b), nil
	}
	for t.zeros > 0 {
		n, err := t.w.Write(make([]byte, min(t.zeros, 64<<10)))
		t.zeros -= n
		if err != nil {
			return 0, err
		}
	}
	if n, err := t.w.Write(b[:used]); err != nil {
		return n, err
	}
	t.zeros = len(b) - used
	return len(b), nil
}
