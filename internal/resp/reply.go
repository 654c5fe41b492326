package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Errors of [ReplyReader.Read].
var (
	// ErrReply: the bytes are not a reply. The reader has lost its place in the stream.
	ErrReply = errors.New("resp: not a reply")

	// ErrReplyLimit: the reply is larger than [ReplyLimits] allow.
	ErrReplyLimit = errors.New("resp: reply over limit")
)

// A Kind is the type of a reply: its first byte on the wire.
type Kind byte

const (
	SimpleString Kind = '+'
	SimpleError  Kind = '-'
	Integer      Kind = ':'
	Bulk         Kind = '$'
	Array        Kind = '*'
	// Only RESP3 has these.
	Null      Kind = '_'
	Bool      Kind = '#'
	Double    Kind = ','
	BigNumber Kind = '('
	BulkError Kind = '!'
	Verbatim  Kind = '='
	Map       Kind = '%'
	Set       Kind = '~'
	Push      Kind = '>'

	attribute Kind = '|' // precedes a reply
)

// A Reply is one reply, with its type on the wire. Its Kind determines which fields are
// used; the others are zero.
type Reply struct {
	Kind Kind

	// None marks RESP2's nulls, which are of Kind Bulk or Array.
	None bool

	Text    string  // strings and errors; Double and BigNumber as written
	Format  string  // of Verbatim, three bytes such as txt
	Integer int64   // Integer
	Double  float64 // Double
	Bool    bool    // Bool
	Items   []Reply // Array, Set, Push; Map as key, value, key, value

	// Attributes came before the reply, as the Items of a Map.
	Attributes []Reply
}

// ReplyLimits bound what a server can make a reader hold. Fields that are zero or
// negative mean those of [DefaultReplyLimits].
type ReplyLimits struct {
	Bytes int // a reply as it comes over the wire
	Items int // replies in a reply, at any depth
	Depth int // how deep replies may be nested
}

// DefaultReplyLimits allow Redis's longest string.
var DefaultReplyLimits = ReplyLimits{Bytes: 1 << 30, Items: 1 << 20, Depth: 32}

// maxReplyLine is the longest line of a reply, with its CR LF.
const maxReplyLine = 64 << 10

// A ReplyReader reads replies of both protocols from a stream.
type ReplyReader struct {
	in     *bufio.Reader
	limits ReplyLimits
	left   ReplyLimits // for the current reply
}

// NewReplyReader returns a reader of what in yields. It reads ahead.
func NewReplyReader(in io.Reader, limits ReplyLimits) *ReplyReader {
	set := func(field *int, standard int) {
		if *field <= 0 {
			*field = standard
		}
	}
	set(&limits.Bytes, DefaultReplyLimits.Bytes)
	set(&limits.Items, DefaultReplyLimits.Items)
	set(&limits.Depth, DefaultReplyLimits.Depth)
	return &ReplyReader{in: bufio.NewReaderSize(in, maxReplyLine), limits: limits}
}

// Read returns the next reply. At the end of the stream the error is io.EOF, in the
// middle of a reply io.ErrUnexpectedEOF. Any other error is that of the stream, or wraps
// [ErrReply] or [ErrReplyLimit]. Memory is allocated as the reply arrives, never for what
// it claims to hold.
func (r *ReplyReader) Read() (Reply, error) {
	if _, err := r.in.Peek(1); err != nil {
		return Reply{}, err
	}
	r.left = r.limits
	reply, err := r.read()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return reply, err
}

// Buffered returns how many bytes have been read ahead.
func (r *ReplyReader) Buffered() int { return r.in.Buffered() }

// read reads one reply, or a nested one.
func (r *ReplyReader) read() (Reply, error) {
	var attributes []Reply
	for {
		line, err := r.line()
		if err != nil {
			return Reply{}, err
		}
		if len(line) == 0 {
			return Reply{}, fmt.Errorf("%w: an empty line", ErrReply)
		}
		reply := Reply{Kind: Kind(line[0])}
		if err := r.fill(&reply, line[1:]); err != nil {
			return Reply{}, err
		}
		if reply.Kind != attribute {
			reply.Attributes = attributes
			return reply, nil
		}
		if attributes != nil {
			return Reply{}, fmt.Errorf("%w: attributes twice", ErrReply)
		}
		attributes = reply.Items
	}
}

// fill reads the rest of a reply, according to its kind. line is the first line after its
// first byte.
func (r *ReplyReader) fill(reply *Reply, line []byte) error {
	ok := true
	var err error
	switch reply.Kind {
	case SimpleString, SimpleError:
		reply.Text = string(line)
	case Integer:
		reply.Integer, ok = parseInteger(line)
	case Null:
		ok = len(line) == 0
	case Bool:
		reply.Bool = string(line) == "t"
		ok = reply.Bool || string(line) == "f"
	case Double:
		reply.Text = string(line)
		reply.Double, ok = parseDouble(reply.Text)
	case BigNumber:
		reply.Text = string(line)
		ok = isBigNumber(line)
	case Bulk, BulkError, Verbatim:
		err = r.bulk(reply, line)
	case Array, Set, Push:
		err = r.items(reply, line, 1)
	case Map, attribute:
		err = r.items(reply, line, 2)
	default:
		return fmt.Errorf("%w: unknown type %q", ErrReply, byte(reply.Kind))
	}
	if !ok {
		return fmt.Errorf("%w: bad value in %.40q", ErrReply, string(reply.Kind)+string(line))
	}
	return err
}

// bulk reads a string whose length is on the line.
func (r *ReplyReader) bulk(reply *Reply, line []byte) error {
	n, ok := parseInteger(line)
	if n == -1 && reply.Kind == Bulk {
		reply.None = true
		return nil
	}
	if !ok || n < 0 {
		return fmt.Errorf("%w: bad length %.40q", ErrReply, line)
	}
	if n > int64(r.left.Bytes) {
		return fmt.Errorf("%w: a string of %d bytes, %d remain", ErrReplyLimit, n, r.left.Bytes)
	}
	r.left.Bytes -= int(n)
	text, err := r.bytes(int(n))
	if err != nil {
		return err
	}
	end, err := r.line()
	switch {
	case errors.Is(err, ErrReply) || err == nil && len(end) > 0:
		return fmt.Errorf("%w: no CR LF after a string of %d bytes", ErrReply, n)
	case err != nil:
		return err
	}
	if reply.Kind == Verbatim {
		if n < 4 || text[3] != ':' {
			return fmt.Errorf("%w: verbatim string without a format", ErrReply)
		}
		reply.Format, text = string(text[:3]), text[4:]
	}
	reply.Text = string(text)
	return nil
}

// items reads the replies whose count, in units of each, is on the line.
func (r *ReplyReader) items(reply *Reply, line []byte, each int) error {
	n, ok := parseInteger(line)
	if n == -1 && reply.Kind == Array {
		reply.None = true
		return nil
	}
	if !ok || n < 0 {
		return fmt.Errorf("%w: bad count %.40q", ErrReply, line)
	}
	if n > int64(r.left.Items/each) {
		return fmt.Errorf("%w: %d more items, %d remain", ErrReplyLimit, n, r.left.Items/each)
	}
	if r.left.Depth == 0 {
		return fmt.Errorf("%w: replies nested more than %d deep", ErrReplyLimit, r.limits.Depth)
	}
	r.left.Items -= int(n) * each
	r.left.Depth--
	reply.Items = []Reply{}
	for range int(n) * each {
		item, err := r.read()
		if err != nil {
			return err
		}
		reply.Items = append(reply.Items, item)
	}
	r.left.Depth++
	return nil
}

// line returns the next line without its CR LF. The next read overwrites it.
func (r *ReplyReader) line() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrReplyLimit, maxReplyLine)
	}
	if err != nil {
		return nil, err
	}
	if len(line) > r.left.Bytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrReplyLimit, r.limits.Bytes)
	}
	r.left.Bytes -= len(line)
	text := line[:len(line)-1]
	if len(text) == 0 || slices.Index(text, '\r') != len(text)-1 {
		return nil, fmt.Errorf("%w: a line without CR LF", ErrReply)
	}
	return text[:len(text)-1], nil
}

// bytes reads n bytes. It allocates memory as they arrive.
func (r *ReplyReader) bytes(n int) ([]byte, error) {
	var text []byte
	for len(text) < n {
		more := min(n-len(text), max(len(text), 4096))
		text = slices.Grow(text, more)[:len(text)+more]
		if _, err := io.ReadFull(r.in, text[len(text)-more:]); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// parseDouble reads a double: decimal, inf or nan.
func parseDouble(text string) (float64, bool) {
	switch text {
	case "inf", "-inf", "nan", "-nan":
	default:
		for _, c := range []byte(text) {
			if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
				return 0, false
			}
		}
	}
	if text == "-nan" { // as printf writes it
		text = "nan"
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

// isBigNumber reports whether text is an integer of any length.
func isBigNumber(text []byte) bool {
	if len(text) > 1 && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}
