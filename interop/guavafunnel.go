package interop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Funnel turns what a Java program puts into a Guava filter into the bytes of its key.
// A file does not say which one was used: the reader must know. With the wrong funnel
// a filter finds almost nothing.
type Funnel uint8

const (
	// FunnelUTF8 is Funnels.stringFunnel(UTF_8), and any funnel that puts one
	// string by putString(s, UTF_8): the text's own bytes.
	FunnelUTF8 Funnel = iota

	// FunnelUnencodedChars is Funnels.unencodedCharsFunnel(): the text's UTF-16
	// units, low byte first.
	FunnelUnencodedChars

	// FunnelLong is Funnels.longFunnel(): 8 bytes, the lowest first, as in
	// [classic.Filter.AddUint64] and ContainsUint64.
	FunnelLong

	// FunnelInteger is Funnels.integerFunnel(): 4 bytes, the lowest first.
	FunnelInteger

	// FunnelBytes is Funnels.byteArrayFunnel(): the bytes as they are.
	FunnelBytes
)

// ErrFunnel: the funnel has no key for a text, such as "ten" for numbers.
var ErrFunnel = errors.New("interop: not for this funnel")

var funnelNames = [...]string{
	FunnelUTF8:           "utf8",
	FunnelUnencodedChars: "unencoded-chars",
	FunnelLong:           "long",
	FunnelInteger:        "integer",
	FunnelBytes:          "bytes",
}

// Funnels returns all funnels.
func Funnels() []Funnel {
	return []Funnel{FunnelUTF8, FunnelUnencodedChars, FunnelLong, FunnelInteger, FunnelBytes}
}

// FunnelNamed returns the funnel of that name, such as "unencoded-chars".
func FunnelNamed(name string) (f Funnel, ok bool) {
	for _, f := range Funnels() {
		if f.String() == name {
			return f, true
		}
	}
	return 0, false
}

func (f Funnel) String() string {
	if int(f) < len(funnelNames) {
		return funnelNames[f]
	}
	return fmt.Sprintf("funnel %d", uint8(f))
}

// Append appends to key the bytes that the funnel makes of a line of text; the number
// funnels read the line as a decimal number. The error wraps [ErrFunnel] if the line
// is not such a number, or not the UTF-8 of a Java string: three bytes for an unpaired
// surrogate are allowed, which Java writes as a question mark.
func (f Funnel) Append(key, line []byte) ([]byte, error) {
	switch f {
	case FunnelUTF8:
		if utf8.Valid(line) {
			return append(key, line...), nil
		}
		return appendJavaText(key, line, func(key []byte, r rune) []byte {
			if utf16.IsSurrogate(r) {
				r = '?'
			}
			return utf8.AppendRune(key, r)
		})
	case FunnelUnencodedChars:
		return appendJavaText(key, line, appendUTF16)
	case FunnelLong, FunnelInteger:
		bits := 64
		if f == FunnelInteger {
			bits = 32
		}
		x, err := strconv.ParseInt(string(line), 10, bits)
		if err != nil {
			return key, fmt.Errorf("%w: the funnel %v takes whole numbers of %d bits, not %.40q", ErrFunnel, f, bits, line)
		}
		if f == FunnelInteger {
			return append(key, GuavaInteger(int32(x))...), nil
		}
		return append(key, GuavaLong(x)...), nil
	case FunnelBytes:
		return append(key, line...), nil
	}
	return key, fmt.Errorf("%w: there is no %v", ErrFunnel, f)
}

// GuavaLong is the key of a long that was put through Funnels.longFunnel().
func GuavaLong(x int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(x)) }

// GuavaInteger is the key of an int that was put through
// Funnels.integerFunnel().
func GuavaInteger(x int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(x)) }

// GuavaChars is the key of a string that was put through
// Funnels.unencodedCharsFunnel(). Bytes that are not UTF-8 count as U+FFFD. A
// string that was put through stringFunnel(UTF_8) is its own key.
func GuavaChars(s string) []byte {
	key := make([]byte, 0, 2*len(s))
	for _, r := range s {
		key = appendUTF16(key, r)
	}
	return key
}

func appendUTF16(key []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		key = binary.LittleEndian.AppendUint16(key, uint16(high))
		r = low
	}
	return binary.LittleEndian.AppendUint16(key, uint16(r))
}

// appendJavaText appends each code point of text by calling put. An unpaired
// surrogate, which Java's strings may hold and UTF-8 may not, is decoded from its
// three bytes ED A0..BF xx.
func appendJavaText(key, text []byte, put func([]byte, rune) []byte) ([]byte, error) {
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			if len(rest) < 3 || rest[0] != 0xed || rest[1]&0xe0 != 0xa0 || rest[2]&0xc0 != 0x80 {
				return key, fmt.Errorf("%w: %.40q is not UTF-8, as the text of a Java string is: use the funnel %v", ErrFunnel, text, FunnelBytes)
			}
			r, size = 0xd000|rune(rest[1]&0x3f)<<6|rune(rest[2]&0x3f), 3
		}
		key = put(key, r)
		rest = rest[size:]
	}
	return key, nil
}
