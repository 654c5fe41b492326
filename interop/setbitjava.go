package interop

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/filterfile"
)

// The Java class of [classic.SchemeJavaBitSet] keeps its bits in a
// java.util.BitSet, which leaves Java in two ways:
//
//	BitSet.toByteArray        the bytes up to the last set bit, bit i in byte i/8,
//	                          mask 1<<(i%8). toLongArray, each long with its low
//	                          byte first, is the same with zeros at the end.
//	ObjectOutputStream        javaBitSetHead, L as an int, L longs and a byte 78,
//	                          big-endian; bit i is in long i/64, mask 1<<(i%64).
//
// A BitSet made for a number of bits, as the class makes it, is written with all its
// longs, any other up to the last one that has a bit set.

// javaBitSetHead is, in the words of Java's serialisation protocol: magic and
// version; a new object of the class java.util.BitSet with its serial version,
// flags 3, one field, an array "bits" of longs, no superclass; and a new array of
// the class of arrays of longs.
var javaBitSetHead = []byte("\xac\xed\x00\x05" +
	"sr" + "\x00\x10java.util.BitSet" + "\x6e\xfd\x88\x7e\x39\x34\xab\x21" +
	"\x03" + "\x00\x01" + "[\x00\x04bits" + "t\x00\x02[J" + "xp" +
	"ur" + "\x00\x02[J" + "\x78\x20\x04\xb5\x12\xb1\x75\x93" + "\x02" + "\x00\x00" + "xp")

const javaEndOfData = 0x78

var bitSetFormat = &Format{
	Name:    "java-bitset",
	About:   "a java.util.BitSet written by ObjectOutputStream, of the class with the seeds 3, 5, 7, 11, 13, 31, 37, 61",
	Schemes: []classic.Scheme{classic.SchemeJavaBitSet},
	Matches: func(head []byte, _ int64) bool {
		return bytes.HasPrefix(javaBitSetHead, head[:min(len(head), len(javaBitSetHead))]) && len(head) > len(javaStream)
	},
	read: func(r io.Reader, o Options) (*File, error) {
		c, err := o.bare(classic.SchemeJavaBitSet)
		if err != nil {
			return nil, err
		}
		f, longs, err := readJavaBitSet(r, c)
		if err != nil {
			return nil, err
		}
		return &File{Filter: f, Details: [][2]string{{"longs", fmt.Sprint(longs)}}}, nil
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(classic.SchemeJavaBitSet)
		if err != nil {
			return err
		}
		return WriteBitSet(w, filter)
	},
}

var bitSetBytesFormat = &Format{
	Name:    "java-bitset-bytes",
	About:   "BitSet.toByteArray of the same Java class; m is its own 2<<28, and k 8, unless given",
	Schemes: []classic.Scheme{classic.SchemeJavaBitSet},
	read: func(r io.Reader, o Options) (*File, error) {
		c, err := o.bare(classic.SchemeJavaBitSet)
		if err != nil {
			return nil, err
		}
		f, err := ReadBitSetBytes(r, c)
		if err != nil {
			return nil, err
		}
		return &File{Filter: f}, nil
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(classic.SchemeJavaBitSet)
		if err != nil {
			return err
		}
		return WriteBitSetBytes(w, filter)
	},
}

// javaBits and javaProbes are the class's own m and k.
const (
	javaBits   = 2 << 28
	javaProbes = 8
)

// ReadBitSetBytes reads what toByteArray or toLongArray returned, up to the end of r,
// as a filter of the scheme, the Bits and the Probes of c. Those that c leaves out are
// the Java class's: [classic.SchemeJavaBitSet], 2<<28 and 8. The errors are those of
// [ReadSetBit].
func ReadBitSetBytes(r io.Reader, c classic.Config) (*classic.Filter, error) {
	if c.Bits == 0 {
		c.Bits = javaBits
	}
	return readTrimmed(r, orJava(c), classic.LowBitFirst)
}

func orJava(c classic.Config) classic.Config {
	if c.Scheme == (classic.Scheme{}) {
		c.Scheme = classic.SchemeJavaBitSet
	}
	if c.Probes == 0 {
		c.Probes = javaProbes
	}
	return c
}

// WriteBitSetBytes writes what toByteArray would return, for BitSet.valueOf. For an
// empty filter it writes no bytes.
func WriteBitSetBytes(w io.Writer, f *classic.Filter) error {
	return writeTrimmed(w, f, classic.LowBitFirst)
}

// ReadBitSet reads a java.util.BitSet that an ObjectOutputStream wrote, as a filter of
// the scheme, the Bits and the Probes of c, and leaves r right after it. What c leaves
// out is the Java class's; Bits are then those of all longs, if they are a power of
// two. The error wraps [bloom.ErrFormat], or [bloom.ErrConfig] if m is unknown.
func ReadBitSet(r io.Reader, c classic.Config) (*classic.Filter, error) {
	f, _, err := readJavaBitSet(r, c)
	return f, err
}

func readJavaBitSet(r io.Reader, c classic.Config) (f *classic.Filter, longs uint32, err error) {
	head := make([]byte, len(javaBitSetHead)+4)
	n, err := io.ReadFull(r, head)
	if !bytes.HasPrefix(head[:n], javaBitSetHead[:min(n, len(javaBitSetHead))]) {
		return nil, 0, fmt.Errorf("%w: not a java.util.BitSet written by ObjectOutputStream", bloom.ErrFormat)
	}
	if err != nil {
		return nil, 0, filterfile.ReadError(err)
	}
	longs = binary.BigEndian.Uint32(head[len(javaBitSetHead):])
	if int32(longs) < 0 {
		return nil, 0, fmt.Errorf("%w: an array of %d longs", bloom.ErrFormat, int32(longs))
	}
	if c = orJava(c); c.Bits == 0 {
		if longs == 0 || longs&(longs-1) != 0 {
			return nil, 0, fmt.Errorf("%w: the BitSet was cut to %d longs, so m is unknown: give Bits", bloom.ErrConfig, longs)
		}
		c.Bits = uint64(longs) * 64
		if err := mustBePlain(c); err != nil {
			return nil, 0, fmt.Errorf("%w: %w", bloom.ErrFormat, err)
		}
	}
	array := &exactly{r, int64(longs) * 8}
	if f, err = readTrimmed(array, c, classic.BigEndianWords); err != nil {
		return nil, 0, err
	}
	end := make([]byte, 1)
	if _, err = io.ReadFull(r, end); err != nil {
		err = filterfile.ReadError(err)
	} else if end[0] != javaEndOfData {
		err = fmt.Errorf("%w: %#x where the BitSet ends", bloom.ErrFormat, end[0])
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, longs, nil
}

// WriteBitSet writes what an ObjectOutputStream writes for a BitSet made for m bits:
// all its longs. The error wraps [ErrScheme] if there are more than a Java array can
// hold.
func WriteBitSet(w io.Writer, f *classic.Filter) error {
	longs := (f.Plan().Bits + 63) / 64
	const most = 1 << 25 // 2^31 bits, as many as an int counts
	if longs > most {
		return fmt.Errorf("%w: a BitSet has at most %d longs, not %d", ErrScheme, most, longs)
	}
	head := binary.BigEndian.AppendUint32(bytes.Clone(javaBitSetHead), uint32(longs))
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("interop: writing: %w", err)
	}
	if _, err := f.WriteBits(w, classic.BigEndianWords); err != nil {
		return err
	}
	if _, err := w.Write([]byte{javaEndOfData}); err != nil {
		return fmt.Errorf("interop: writing: %w", err)
	}
	return nil
}

// exactly reads exactly the given number of bytes from r.
type exactly struct {
	r    io.Reader
	left int64
}

func (e *exactly) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(b[:min(int64(len(b)), e.left)])
	e.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = nil // if it should have ended, the next Read says so
		if e.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}
