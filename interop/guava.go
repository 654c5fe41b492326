package interop

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/elementary"
	"github.com/bloomery/bloom/internal/filterfile"
)

// Guava's BloomFilter.writeTo (com.google.common.hash), big-endian throughout:
//
//	byte 0       strategy: 0 MURMUR128_MITZ_32, 1 MURMUR128_MITZ_64
//	byte 1       k, 1 to 255
//	bytes 2-5    L, the number of longs, a positive int
//	then         L longs; bit i is in long i/64, mask 1<<(i%64)
//
// m is 64 L. The file does not say what was put in, nor through which [Funnel].
const guavaHeadBytes = 6

// guavaStrategies is indexed by the strategies' ordinals.
var guavaStrategies = [...]struct {
	name   string
	scheme classic.Scheme
}{
	{"MURMUR128_MITZ_32", classic.SchemeGuava32},
	{"MURMUR128_MITZ_64", classic.SchemeGuava64},
}

var guavaFormat = &Format{
	Name:    "guava",
	About:   "Guava's BloomFilter.writeTo (Java)",
	Schemes: []classic.Scheme{classic.SchemeGuava64, classic.SchemeGuava32},
	Matches: matchesGuava,
	read: func(r io.Reader, o Options) (*File, error) {
		f, err := ReadGuava(r)
		if err != nil {
			return nil, err
		}
		behind, err := io.Copy(io.Discard, r)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("interop: reading what follows the filter: %w", err)
		}
		return &File{Filter: f, Details: guavaDetails(f, behind)}, nil
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(classic.SchemeGuava64, classic.SchemeGuava32)
		if err != nil {
			return err
		}
		return WriteGuava(w, filter)
	},
}

// ReadGuava reads a filter that Guava's writeTo wrote, and leaves r right after it: as
// in Java, more may follow. The error wraps [bloom.ErrFormat] where readFrom throws.
//
// Keys are the bytes that Java's funnel produces from what is put in; see [Funnel].
func ReadGuava(r io.Reader) (*classic.Filter, error) {
	head := make([]byte, guavaHeadBytes)
	if n, err := io.ReadFull(r, head); err != nil {
		if isGuavaObject(head[:n]) {
			return nil, errGuavaObject
		}
		return nil, filterfile.ReadError(err)
	}
	strategy, k, longs := head[0], int(head[1]), int32(binary.BigEndian.Uint32(head[2:]))
	switch {
	case isGuavaObject(head):
		return nil, errGuavaObject
	case int(strategy) >= len(guavaStrategies):
		return nil, fmt.Errorf("%w: Guava's strategies are 0 and 1, not %d", bloom.ErrFormat, strategy)
	case k == 0:
		return nil, fmt.Errorf("%w: Guava writes no filter with k = 0", bloom.ErrFormat)
	case longs <= 0:
		return nil, fmt.Errorf("%w: Guava writes no filter of %d longs", bloom.ErrFormat, longs)
	}
	return classic.Config{
		Bits:   uint64(longs) * 64,
		Probes: k,
		Scheme: guavaStrategies[strategy].scheme,
	}.ReadBits(r, classic.BigEndianWords)
}

// javaStream begins everything that Java's ObjectOutputStream writes.
var javaStream = []byte{0xac, 0xed, 0, 5}

func isGuavaObject(head []byte) bool { return bytes.HasPrefix(head, javaStream) }

var errGuavaObject = fmt.Errorf("%w: this is Java's own serialisation (ObjectOutputStream): read it in Java and write it by BloomFilter.writeTo", bloom.ErrFormat)

// WriteGuava writes what Guava's writeTo would. The error wraps [ErrScheme] unless
// the filter is of [classic.SchemeGuava64] or [classic.SchemeGuava32].
func WriteGuava(w io.Writer, f *classic.Filter) error {
	for ordinal, s := range guavaStrategies {
		if f.Scheme() != s.scheme {
			continue
		}
		head := []byte{byte(ordinal), byte(f.Plan().Probes)}
		head = binary.BigEndian.AppendUint32(head, uint32(f.Plan().Bits/64))
		if _, err := w.Write(head); err != nil {
			return fmt.Errorf("interop: writing: %w", err)
		}
		_, err := f.WriteBits(w, classic.BigEndianWords)
		return err
	}
	return fmt.Errorf("%w: Guava has no scheme %v: build the filter again from its keys", ErrScheme, f.Scheme())
}

// GuavaElementCount is Guava's approximateElementCount: how many different keys set
// as many bits as are set. If all are, Guava throws, and this returns math.MaxInt64.
// It reads all bits. Guava's expectedFpp is
// [classic.Filter.EstimatedErrorRate].
func GuavaElementCount(f *classic.Filter) int64 {
	var ones bitCounter
	f.WriteBits(&ones, classic.LittleEndianWords) // the counter returns no error
	m, k := float64(f.Plan().Bits), float64(f.Plan().Probes)
	count := -elementary.Log1p(-float64(ones)/m) * m / k
	if count >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(math.Floor(count + 0.5))
}

// bitCounter counts the bits that are set in what is written to it.
type bitCounter uint64

func (c *bitCounter) Write(b []byte) (int, error) {
	n := len(b)
	for ; len(b) >= 8; b = b[8:] {
		*c += bitCounter(bits.OnesCount64(binary.LittleEndian.Uint64(b)))
	}
	for _, last := range b {
		*c += bitCounter(bits.OnesCount8(last))
	}
	return n, nil
}

func guavaDetails(f *classic.Filter, behind int64) [][2]string {
	strategy := guavaStrategies[0]
	if f.Scheme() == classic.SchemeGuava64 {
		strategy = guavaStrategies[1]
	}
	details := [][2]string{
		{"strategy", strategy.name},
		{"longs", fmt.Sprint(f.Plan().Bits / 64)},
		{"approximateElementCount", fmt.Sprint(GuavaElementCount(f))},
		{"expectedFpp", fmt.Sprintf("%.4g", f.EstimatedErrorRate())},
	}
	if behind > 0 {
		details = append(details, [2]string{"bytes after the filter, ignored", fmt.Sprint(behind)})
	}
	return details
}

// guavaObjectName is the class name at byte 8 of a serialised filter.
const guavaObjectName = "com.google.common.hash.BloomFilter"

// matchesGuava requires exactly the length that the head claims, if the length is
// known: readFrom would accept more, but then a bare bitmap that happens to begin with
// a 0 and a low byte would pass for Guava's. Java's serialised form matches so that
// Read can say what to do about it.
func matchesGuava(head []byte, size int64) bool {
	if isGuavaObject(head) {
		return len(head) > 8 && bytes.HasPrefix(head[8:], []byte(guavaObjectName))
	}
	if len(head) < guavaHeadBytes || int(head[0]) >= len(guavaStrategies) || head[1] == 0 {
		return false
	}
	longs := int32(binary.BigEndian.Uint32(head[2:]))
	return longs > 0 && (size < 0 || size == guavaHeadBytes+8*int64(longs))
}
