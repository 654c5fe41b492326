package resp

import (
	"math"
	"strconv"
)

// A Writer appends replies to Buf. A reply is one call; an array or other aggregate is
// one call with the count, followed by that many replies. The Writer does not check
// counts.
//
// Types that RESP2 lacks are written as Redis writes them in RESP2. Nothing but Buf is
// allocated.
type Writer struct {
	Buf      []byte
	Protocol int // 3 for RESP3, else RESP2; may change between replies
}

// SimpleString writes a short text such as OK. A CR or LF in it, which would end the
// reply, becomes a space.
func (w *Writer) SimpleString(text string) { w.line('+', text) }

// Error writes an error. The first word of the text is its code, usually ERR. A CR or LF
// in the text becomes a space.
func (w *Writer) Error(text string) { w.line('-', text) }

// Integer writes an integer.
func (w *Writer) Integer(n int64) {
	w.Buf = strconv.AppendInt(append(w.Buf, ':'), n, 10)
	w.crlf()
}

// Bulk writes a string of arbitrary bytes.
func (w *Writer) Bulk(value []byte) {
	w.count('$', len(value))
	w.Buf = append(w.Buf, value...)
	w.crlf()
}

// BulkString is Bulk for a string.
func (w *Writer) BulkString(value string) {
	w.count('$', len(value))
	w.Buf = append(w.Buf, value...)
	w.crlf()
}

// Null writes a null in place of a string.
func (w *Writer) Null() {
	if w.Protocol == 3 {
		w.Buf = append(w.Buf, "_\r\n"...)
	} else {
		w.Buf = append(w.Buf, "$-1\r\n"...)
	}
}

// NullArray writes a null in place of an array.
func (w *Writer) NullArray() {
	if w.Protocol == 3 {
		w.Buf = append(w.Buf, "_\r\n"...)
	} else {
		w.Buf = append(w.Buf, "*-1\r\n"...)
	}
}

// Bool writes a boolean, in RESP2 as the integer 0 or 1.
func (w *Writer) Bool(value bool) {
	switch {
	case w.Protocol == 3 && value:
		w.Buf = append(w.Buf, "#t\r\n"...)
	case w.Protocol == 3:
		w.Buf = append(w.Buf, "#f\r\n"...)
	case value:
		w.Buf = append(w.Buf, ":1\r\n"...)
	default:
		w.Buf = append(w.Buf, ":0\r\n"...)
	}
}

// Double writes a floating-point number, in RESP2 as a bulk string.
func (w *Writer) Double(value float64) {
	var scratch [32]byte
	text := appendDouble(scratch[:0], value)
	if w.Protocol != 3 {
		w.Bulk(text)
		return
	}
	w.Buf = append(append(w.Buf, ','), text...)
	w.crlf()
}

// Array begins an array of n replies.
func (w *Writer) Array(n int) { w.count('*', n) }

// Map begins a map of n pairs, each two replies: 2n calls follow. In RESP2 it is
// an array of 2n.
func (w *Writer) Map(n int) {
	if w.Protocol == 3 {
		w.count('%', n)
	} else {
		w.count('*', 2*n)
	}
}

// Set begins a set of n replies, in RESP2 an array.
func (w *Writer) Set(n int) { w.countOr('~', n) }

// Push begins an out-of-band message of n replies, in RESP2 an array.
func (w *Writer) Push(n int) { w.countOr('>', n) }

// Verbatim writes a text to be shown verbatim. The format has three letters, such as txt;
// any other length is the caller's bug and panics. In RESP2 it is a bulk string without
// the format.
func (w *Writer) Verbatim(format, text string) {
	if len(format) != 3 {
		panic("resp: the format of a verbatim string must have 3 bytes, not " + strconv.Itoa(len(format)))
	}
	if w.Protocol != 3 {
		w.BulkString(text)
		return
	}
	w.count('=', len(format)+1+len(text))
	w.Buf = append(append(append(w.Buf, format...), ':'), text...)
	w.crlf()
}

func (w *Writer) line(kind byte, text string) {
	start := len(w.Buf) + 1
	w.Buf = append(append(w.Buf, kind), text...)
	for i, c := range w.Buf[start:] {
		if c == '\r' || c == '\n' {
			w.Buf[start+i] = ' '
		}
	}
	w.crlf()
}

// countOr is count, but in RESP2 writes an array.
func (w *Writer) countOr(kind byte, n int) {
	if w.Protocol != 3 {
		kind = '*'
	}
	w.count(kind, n)
}

func (w *Writer) count(kind byte, n int) {
	w.Buf = strconv.AppendInt(append(w.Buf, kind), int64(n), 10)
	w.crlf()
}

func (w *Writer) crlf() { w.Buf = append(w.Buf, '\r', '\n') }

// appendDouble appends value as Redis does since 7.2: the fewest digits that identify it,
// in the notation of the fpconv library. The notation is scientific, without leading
// zeros in the exponent, for numbers with more than seven zeros after their digits, and
// for numbers with seven or more decimals that are below 0.001 or at least 10000.
func appendDouble(dst []byte, value float64) []byte {
	switch {
	case math.IsNaN(value):
		return append(dst, "nan"...)
	case math.IsInf(value, 1):
		return append(dst, "inf"...)
	case math.IsInf(value, -1):
		return append(dst, "-inf"...)
	}
	if math.Signbit(value) {
		dst = append(dst, '-')
		value = -value
	}
	// The fewest digits, as d.ddde+xx.
	var scratch [32]byte
	text := strconv.AppendFloat(scratch[:0], value, 'e', -1, 64)
	mark := len(text) - 1
	for text[mark] != 'e' {
		mark--
	}
	exponent := 0
	for _, c := range text[mark+2:] {
		exponent = exponent*10 + int(c-'0')
	}
	magnitude := exponent
	if text[mark+1] == '-' {
		exponent = -exponent
	}
	digits := text[:1]
	if mark > 1 {
		text[1] = text[0] // over the decimal point
		digits = text[1:mark]
	}
	zeros := exponent - len(digits) + 1 // after the digits; if negative, the number of decimals
	switch {
	case zeros >= 0 && magnitude < len(digits)+7:
		dst = append(dst, digits...)
		return append(dst, "0000000"[:zeros]...)
	case zeros < 0 && exponent >= 0 && (zeros > -7 || magnitude < 4):
		dst = append(dst, digits[:exponent+1]...)
		return append(append(dst, '.'), digits[exponent+1:]...)
	case zeros < 0 && exponent < 0 && (zeros > -7 || magnitude < 4):
		dst = append(dst, "0.0000000"[:1+magnitude]...)
		return append(dst, digits...)
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(append(dst, '.'), digits[1:]...)
	}
	dst = append(dst, 'e', '+')
	if exponent < 0 {
		dst[len(dst)-1] = '-'
	}
	return strconv.AppendInt(dst, int64(magnitude), 10)
}
