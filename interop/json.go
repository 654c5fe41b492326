package interop

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/filterfile"
)

// Limits of the JSON that the formats have.
const (
	jsonDepth   = 16   // of nested objects and arrays
	jsonMembers = 1000 // of an object
	jsonText    = 256  // bytes of a name, or of a string that is not a filter
)

// jsonReader reads JSON as it arrives, so that a list of a million numbers is never
// a million values in memory, as it would be with package encoding/json. It refuses
// what JSON leaves open and no program writes: duplicate names, deep nesting, trailing
// bytes.
type jsonReader struct {
	from  *bufio.Reader
	depth int
}

// newJSONReader skips the mark that some editors put before UTF-8.
func newJSONReader(r io.Reader) *jsonReader {
	from := bufio.NewReader(r)
	if start, _ := from.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		from.Discard(len(byteOrderMark)) // it is there
	} // what is wrong with r shows again
	return &jsonReader{from: from}
}

const byteOrderMark = "\ufeff"

func badJSON(format string, args ...any) error {
	return fmt.Errorf("%w: bad JSON: %w", bloom.ErrFormat, fmt.Errorf(format, args...))
}

// next returns the next byte after white space, without consuming it.
func (j *jsonReader) next() (byte, error) {
	for {
		switch b, err := j.from.ReadByte(); {
		case err != nil:
			return 0, filterfile.ReadError(err)
		case b != ' ' && b != '\t' && b != '\n' && b != '\r':
			return b, j.from.UnreadByte()
		}
	}
}

func (j *jsonReader) expect(want byte) error {
	b, err := j.next()
	if err != nil {
		return err
	}
	if b != want {
		return badJSON("%q where %q must be", b, want)
	}
	_, err = j.from.ReadByte()
	return err
}

// object reads an object; member must read the value of the name.
func (j *jsonReader) object(member func(name string) error) error {
	seen := map[string]bool{}
	return j.list('{', '}', func() error {
		name, err := j.text()
		if err != nil {
			return err
		}
		if seen[name] {
			return badJSON("the name %q is there twice", name)
		}
		if seen[name] = true; len(seen) > jsonMembers {
			return badJSON("an object has more than %d members", jsonMembers)
		}
		if err := j.expect(':'); err != nil {
			return err
		}
		return member(name)
	})
}

// array reads an array; element must read one value.
func (j *jsonReader) array(element func() error) error { return j.list('[', ']', element) }

func (j *jsonReader) list(opening, closing byte, item func() error) error {
	if err := j.expect(opening); err != nil {
		return err
	}
	if j.depth++; j.depth > jsonDepth {
		return badJSON("it is nested more than %d deep", jsonDepth)
	}
	defer func() { j.depth-- }()
	for isFirst := true; ; isFirst = false {
		b, err := j.next()
		if err != nil {
			return err
		}
		if b == closing {
			return j.expect(closing)
		}
		if !isFirst {
			if err := j.expect(','); err != nil {
				return err
			}
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// integer reads a whole number in a range.
func (j *jsonReader) integer(least, most int64) (int64, error) {
	b, err := j.next()
	if err != nil {
		return 0, err
	}
	isNegative := b == '-'
	if isNegative {
		j.from.ReadByte() // it is there
	}
	value, digits := int64(0), 0
	for ; ; digits++ {
		b, err = j.from.ReadByte()
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, filterfile.ReadError(err)
		}
		if err != nil || b < '0' || b > '9' {
			break
		}
		if digits == 1 && value == 0 {
			return 0, badJSON("a number begins with 0")
		}
		if value = value*10 + int64(b-'0'); value > 1<<55 {
			return 0, badJSON("a number is out of range: it must be from %d to %d", least, most)
		}
	}
	if err == nil {
		j.from.UnreadByte() // it was read just now
	}
	if digits == 0 || err == nil && strings.IndexByte(".eE", b) >= 0 {
		return 0, badJSON("a number is not whole: it must have no fraction or exponent")
	}
	if isNegative {
		value = -value
	}
	if value < least || value > most {
		return 0, badJSON("the number %d is out of range: it must be from %d to %d", value, least, most)
	}
	return value, nil
}

// text reads a short string.
func (j *jsonReader) text() (string, error) {
	characters, err := j.characters()
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(characters, jsonText+1))
	if err == nil && len(text) > jsonText {
		err = badJSON("a string has more than %d bytes: %.20q...", jsonText, text)
	}
	return string(text), err
}

// base64 reads a string of padded base64, and reports whether it has + and / rather
// than the - and _ of URLs; if it has none of the four, that does not matter.
func (j *jsonReader) base64() (data []byte, isStandard bool, err error) {
	characters, err := j.characters()
	if err != nil {
		return nil, false, err
	}
	alphabet := &urlAlphabet{from: characters}
	data, err = io.ReadAll(base64.NewDecoder(base64.URLEncoding, alphabet))
	var corrupt base64.CorruptInputError
	switch {
	case errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && !characters.isDone:
		return nil, false, badJSON("a string is not base64")
	case err != nil:
		return nil, false, err
	case alphabet.standard && alphabet.url:
		return nil, false, badJSON("two alphabets of base64 in one string")
	}
	return data, alphabet.standard, nil
}

// urlAlphabet turns base64's standard alphabet into that of URLs.
type urlAlphabet struct {
	from          io.Reader
	standard, url bool // which of the two was seen
}

func (a *urlAlphabet) Read(b []byte) (int, error) {
	n, err := a.from.Read(b)
	for i, c := range b[:n] {
		switch c {
		case '+':
			b[i], a.standard = '-', true
		case '/':
			b[i], a.standard = '_', true
		case '-', '_':
			a.url = true
		}
	}
	return n, err
}

// characters begins a string; its reader ends at the closing quote.
func (j *jsonReader) characters() (*jsonCharacters, error) {
	return &jsonCharacters{from: j.from}, j.expect('"')
}

type jsonCharacters struct {
	from    *bufio.Reader
	pending []byte // of an escape
	isDone  bool   // the closing quote was read
}

func (c *jsonCharacters) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(c.pending) > 0 {
			moved := copy(b[n:], c.pending)
			n, c.pending = n+moved, c.pending[moved:]
			continue
		}
		if c.isDone {
			break
		}
		char, err := c.from.ReadByte()
		switch {
		case err != nil:
			return n, filterfile.ReadError(err)
		case char == '"':
			c.isDone = true
		case char < ' ':
			return n, badJSON("the control character %q in a string", char)
		case char == '\\':
			if err := c.escape(); err != nil {
				return n, err
			}
		default:
			b[n] = char
			n++
		}
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// escape reads what follows a backslash. Each surrogate becomes U+FFFD, as nothing
// here needs them.
func (c *jsonCharacters) escape() error {
	text := []byte{0, 0, 0, 0, 0}
	if _, err := io.ReadFull(c.from, text[:1]); err != nil {
		return filterfile.ReadError(err)
	}
	if i := strings.IndexByte(`"\/bfnrt`, text[0]); i >= 0 {
		c.pending = []byte{"\"\\/\b\f\n\r\t"[i]}
		return nil
	}
	if text[0] != 'u' {
		return badJSON("the escape \\%c in a string", text[0])
	}
	if _, err := io.ReadFull(c.from, text[1:]); err != nil {
		return filterfile.ReadError(err)
	}
	r := rune(0)
	for _, digit := range text[1:] {
		i := strings.IndexByte("0123456789abcdef", digit|0x20)
		if i < 0 {
			return badJSON("the escape \\%s in a string", text)
		}
		r = r<<4 | rune(i)
	}
	c.pending = utf8.AppendRune(nil, r)
	return nil
}

// skip reads any value.
func (j *jsonReader) skip() error {
	b, err := j.next()
	if err != nil {
		return err
	}
	switch b {
	case '{':
		return j.object(func(string) error { return j.skip() })
	case '[':
		return j.array(j.skip)
	case '"':
		characters, err := j.characters()
		if err == nil {
			_, err = io.Copy(io.Discard, characters)
		}
		return err
	}
	var value []byte
	for {
		b, err := j.from.ReadByte()
		if err != nil {
			return filterfile.ReadError(err) // what is skipped is in an object or array
		}
		if strings.IndexByte(" \t\r\n,:]}", b) >= 0 {
			break
		}
		if value = append(value, b); len(value) > jsonText {
			return badJSON("a value has more than %d bytes: %.20q...", jsonText, value)
		}
	}
	if !json.Valid(value) {
		return badJSON("%.20q is not a value", value)
	}
	return j.from.UnreadByte()
}

// end checks that only white space follows.
func (j *jsonReader) end() error {
	for {
		switch b, err := j.from.ReadByte(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return filterfile.ReadError(err)
		case strings.IndexByte(" \t\r\n", b) < 0:
			return badJSON("%q after the end", b)
		}
	}
}

// jsonBegins returns the first bytes, up to 16, of the values of an object's members,
// as far as head reaches, and whether it reaches the end.
func jsonBegins(head []byte) (begins map[string]string, isWhole bool) {
	begins = map[string]string{}
	j := newJSONReader(bytes.NewReader(head))
	err := j.object(func(name string) error { // it fails where head ends
		if _, err := j.next(); err != nil {
			return err
		}
		value, _ := j.from.Peek(16) // there may be fewer
		begins[name] = string(value)
		return j.skip()
	})
	return begins, err == nil
}

// jsonDigits are the bytes that a non-negative number begins with.
const jsonDigits = "0123456789"

// jsonLike reports whether head begins an object that, as far as head reaches, has one
// of the marks and all members, each beginning with one of the bytes given for it.
func jsonLike(head []byte, members map[string]string, marks ...string) bool {
	begins, isWhole := jsonBegins(head)
	for name, firsts := range members {
		value, has := begins[name]
		if !has && isWhole || has && strings.IndexByte(firsts, value[0]) < 0 {
			return false
		}
	}
	return slices.ContainsFunc(marks, func(mark string) bool { return begins[mark] != "" })
}

// classicOf reads the bits of a filter whose m and k came from a file. An impossible
// config is therefore the file's fault, not the caller's.
func classicOf(c classic.Config, bits io.Reader, order classic.BitOrder) (*classic.Filter, error) {
	if c.Bits == 0 || c.Probes == 0 {
		return nil, fmt.Errorf("%w: m = %d and k = %d make no filter: both must be at least 1", bloom.ErrFormat, c.Bits, c.Probes)
	}
	f, err := c.ReadBits(bits, order)
	if errors.Is(err, bloom.ErrConfig) {
		err = fmt.Errorf("%w: %w", bloom.ErrFormat, err)
	}
	return f, err
}
