package resp

import (
	"bytes"
	"errors"
	"math"
)

// ErrIncomplete is the error of [Parser.Next] for the beginning of a command. It is the
// ordinary end of a batch, not a fault.
var ErrIncomplete = errors.New("resp: command not complete yet")

// A ProtocolError says why bytes are not a command. The bytes after them cannot be
// parsed, so the connection must be closed; Redis first replies with "ERR " and the text
// of Error.
type ProtocolError string

func (e ProtocolError) Error() string { return "Protocol error: " + string(e) }

// A Limit is a field of [Limits]; see [Parser.Exceeded].
type Limit uint8

const (
	NoLimit Limit = iota
	LimitArgs
	LimitBulkBytes
	LimitPayloadBytes
	LimitInlineBytes
	LimitCommandBytes
)

// The texts are Redis's, except for the last one: Redis silently closes a connection that
// sends too large a command.
const (
	errArgs             = ProtocolError("invalid multibulk length")
	errArgsUnknown      = ProtocolError("unauthenticated multibulk length")
	errBulkBytes        = ProtocolError("invalid bulk length")
	errBulkBytesUnknown = ProtocolError("unauthenticated bulk length")
	errArgsLine         = ProtocolError("too big mbulk count string")
	errBulkLine         = ProtocolError("too big bulk count string")
	errInlineBytes      = ProtocolError("too big inline request")
	errQuotes           = ProtocolError("unbalanced quotes in request")
	errCommandBytes     = ProtocolError("too big command")
)

// Limits bound what a client can make the server hold. Fields that are zero or negative
// mean the defaults.
type Limits struct {
	Args         int // arguments of a command, including its name; default 1,048,576
	BulkBytes    int // one argument of a command that is not inline; default 512 MiB
	InlineBytes  int // an inline command, without the LF; default 64 KiB
	CommandBytes int // a command as it comes over the wire; default 1 GiB

	// TakesPayload, if not nil, reports whether the command with this name may have an
	// argument of PayloadBytes, if that is more than BulkBytes.
	TakesPayload func(name []byte) bool
	PayloadBytes int

	// Unauthenticated makes the errors for Args and BulkBytes say that these limits
	// hold until the client has authenticated.
	Unauthenticated bool
}

// The limits of Redis where it has them: proto-max-bulk-len, PROTO_INLINE_MAX_SIZE,
// client-query-buffer-limit, and for arguments the limit that Redis had before 7.0,
// which removed it.
const (
	defaultArgs         = 1 << 20
	defaultBulkBytes    = 512 << 20
	defaultInlineBytes  = 64 << 10
	defaultCommandBytes = 1 << 30
)

// UnauthenticatedLimits returns Redis's limits for clients that have not sent the
// required password yet. A command then takes at most 164 KB.
func UnauthenticatedLimits() Limits {
	return Limits{Args: 10, BulkBytes: 16 << 10, Unauthenticated: true}
}

// maxCountLine is the longest line with a count, without its CR LF. Such a long count is
// absurd, but this is where Redis's error changes.
const maxCountLine = 64 << 10

// A Parser finds the commands in the input of one client. It keeps no bytes and
// allocates nothing, however long a command claims to be. The zero Parser has the
// default limits.
type Parser struct {
	limits   Limits // as given to SetLimits, without zeros
	exceeded Limit
	progress
}

// The progress through an incomplete command. Offsets count from its first byte; all
// fields are zero between commands.
type progress struct {
	need    int // how many bytes Next needs to make progress
	at      int // where the next argument begins
	left    int // how many arguments begin at or after at; 0 before the count is read
	scanned int // the current line does not end before this
}

// SetLimits changes the limits for the next calls of Next, as when a client has
// authenticated. An incomplete command is parsed again from its start.
func (p *Parser) SetLimits(l Limits) {
	set := func(field *int, standard int) {
		if *field <= 0 {
			*field = standard
		}
	}
	set(&l.Args, defaultArgs)
	set(&l.BulkBytes, defaultBulkBytes)
	set(&l.InlineBytes, defaultInlineBytes)
	set(&l.CommandBytes, defaultCommandBytes)
	set(&l.PayloadBytes, l.BulkBytes)
	*p = Parser{limits: l}
}

// Next parses the first command in buf: it appends the arguments to args and returns
// how many bytes of buf the command took. The arguments are slices of buf, valid as
// long as its bytes. Ignore a command without arguments: it is an empty line, or an
// array of zero or fewer elements.
//
// The error is nil, [ErrIncomplete] or a [ProtocolError]; if it is not nil, args is
// returned unchanged, and used is 0. After ErrIncomplete, call Next with the same bytes
// followed by more; they may have moved in memory, and Next continues where it stopped.
// After a ProtocolError, the parser and the bytes are useless.
//
// Quotes and escapes of inline commands are undone in place: Next changes the bytes of
// such a command.
func (p *Parser) Next(buf []byte, args [][]byte) (out [][]byte, used int, err error) {
	if p.limits.Args == 0 {
		p.SetLimits(Limits{})
	}
	if len(buf) == 0 || len(buf) < p.need {
		p.need = max(p.need, 1)
		return args, 0, ErrIncomplete
	}
	if p.left > 0 {
		// Skip over what has arrived; when the command is complete, slice its arguments
		// in one pass from the start. So a command takes at most two passes over its
		// lengths, and nothing of buf needs to be kept.
		if _, _, err := p.arguments(buf, args, p.at, p.left, false); err != nil {
			return args, 0, err
		}
		p.progress = progress{}
	}
	if buf[0] == '*' {
		out, used, err = p.array(buf, args)
	} else {
		out, used, err = p.inline(buf, args)
	}
	if err != nil {
		return out[:len(args)], 0, err
	}
	if p.need != 0 {
		p.progress = progress{}
	}
	return out, used, nil
}

// Need returns, after ErrIncomplete, how many bytes buf must have for Next to make
// progress: often just one more, but within an argument all of the argument. The client
// claimed this number, within the limits; let memory follow what has arrived instead.
func (p *Parser) Need() int { return p.need }

// Exceeded returns, after a ProtocolError, the limit that was exceeded and its value,
// or NoLimit if the bytes are invalid under any limits.
func (p *Parser) Exceeded() (limit Limit, most int) {
	l := &p.limits
	return p.exceeded, [...]int{0, l.Args, l.BulkBytes, l.PayloadBytes, l.InlineBytes, l.CommandBytes}[p.exceeded]
}

// array is Next for a command that is an array of bulk strings.
func (p *Parser) array(buf []byte, args [][]byte) (out [][]byte, used int, err error) {
	count, next := usualCount(buf, 0)
	if next == 0 || count > p.limits.Args || next > p.limits.CommandBytes {
		if count, next, err = p.arrayCount(buf); err != nil {
			return args, 0, err
		}
	}
	return p.arguments(buf, args, next, count, true)
}

// arguments parses the count arguments that begin at offset at, appends them to args if
// keep is set, and returns where they end.
func (p *Parser) arguments(buf []byte, args [][]byte, at, count int, keep bool) (out [][]byte, end int, err error) {
	for left := count; left > 0; left-- {
		var size, start int
		if at < len(buf) && buf[at] == '$' {
			size, start = usualCount(buf, at)
		}
		if start == 0 || size > p.limits.BulkBytes {
			if size, start, err = p.bulkCount(buf, at); err != nil {
				p.at, p.left = at, left
				return args, 0, err
			}
		}
		if size > p.limits.CommandBytes-start-len("\r\n") {
			return args, 0, p.over(LimitCommandBytes, errCommandBytes)
		}
		// Like Redis, do not check the CR LF after an argument.
		next := start + size + len("\r\n")
		if next > len(buf) {
			p.at, p.left, p.need = at, left, next
			return args, 0, ErrIncomplete
		}
		if keep {
			args = append(args, buf[start:start+size:start+size])
		}
		at = next
	}
	return args, at, nil
}

// usualCount reads the count of a line as clients write it: a type byte, one to nine
// digits without leading zeros, CR LF. It returns where the next line begins, or 0 if
// the line is unusual or incomplete.
func usualCount(buf []byte, at int) (count, next int) {
	for i := at + 1; i < len(buf) && i <= at+10; i++ {
		digit := buf[i] - '0'
		if digit > 9 {
			if buf[i] == '\r' && i+1 < len(buf) && (buf[at+1] != '0' && i > at+1 || i == at+2) {
				return count, i + 2
			}
			return 0, 0
		}
		count = count*10 + int(digit)
	}
	return 0, 0
}

// arrayCount reads the first line of buf, which begins with a '*', and returns
// the count and where the next line begins. A count below zero is returned as 0.
func (p *Parser) arrayCount(buf []byte) (count, next int, err error) {
	end, err := p.lineEnd(buf, 0, '\r', maxCountLine, LimitArgs, errArgsLine)
	if err != nil {
		return 0, 0, err
	}
	n, ok := parseInteger(buf[1:end])
	switch {
	case !ok:
		return 0, 0, errArgs
	case n > math.MaxInt32:
		return 0, 0, p.over(LimitArgs, errArgs)
	case n > int64(p.limits.Args):
		return 0, 0, p.errArgs()
	}
	return int(max(n, 0)), end + 2, nil
}

// bulkCount is arrayCount for the line of an argument, whose first byte is not checked
// yet.
func (p *Parser) bulkCount(buf []byte, at int) (count, next int, err error) {
	switch {
	case at >= len(buf):
		p.need = at + 1
		return 0, 0, ErrIncomplete
	case buf[at] != '$':
		return 0, 0, ProtocolError("expected '$', got '" + string(buf[at:at+1]) + "'")
	}
	end, err := p.lineEnd(buf, at, '\r', maxCountLine, LimitBulkBytes, errBulkLine)
	if err != nil {
		return 0, 0, err
	}
	n, ok := parseInteger(buf[at+1 : end])
	if !ok || n < 0 {
		return 0, 0, errBulkBytes
	}
	if err := p.bulkOver(buf, at, n); err != nil {
		return 0, 0, err
	}
	return int(n), end + 2, nil
}

// bulkOver returns the error for an argument of n bytes, whose line is at offset at, if
// n exceeds the limit.
func (p *Parser) bulkOver(buf []byte, at int, n int64) error {
	switch {
	case n <= int64(p.limits.BulkBytes):
		return nil
	case p.limits.Unauthenticated && n <= defaultBulkBytes:
		return p.over(LimitBulkBytes, errBulkBytesUnknown)
	case p.limits.TakesPayload == nil || !p.limits.TakesPayload(firstArgument(buf[:at])):
		return p.over(LimitBulkBytes, errBulkBytes)
	case n > int64(p.limits.PayloadBytes):
		return p.over(LimitPayloadBytes, errBulkBytes)
	}
	return nil
}

// firstArgument returns the name of the command that buf begins with, or nil if it is
// incomplete. What has arrived of the command is known to be valid.
func firstArgument(buf []byte) []byte {
	_, rest, _ := bytes.Cut(buf, []byte{'\r'})
	if len(rest) < 2 { // the LF, and the first byte of the argument's line
		return nil
	}
	line, _, _ := bytes.Cut(rest[1:], []byte{'\r'})
	begin := len(buf) - len(rest) + 1 + len(line) + len("\r\n")
	n, ok := parseInteger(line[1:])
	if !ok || n > int64(len(buf)-begin) {
		return nil
	}
	return buf[begin:][:n]
}

// over notes that a limit is exceeded, and returns the error for it.
func (p *Parser) over(limit Limit, words ProtocolError) ProtocolError {
	p.exceeded = limit
	return words
}

// errArgs returns the error for more arguments than the limit.
func (p *Parser) errArgs() ProtocolError {
	if p.limits.Unauthenticated {
		return p.over(LimitArgs, errArgsUnknown)
	}
	return p.over(LimitArgs, errArgs)
}

// lineEnd returns the position of the delimiter that ends the line at offset at: an LF,
// or a CR, which counts once a byte follows it. With more than most bytes before the
// delimiter, the error is tooLong, for the limit.
//
// Every check is on positions, never on how much has arrived, so that a client gets the
// same reply however its bytes are split.
func (p *Parser) lineEnd(buf []byte, at int, delimiter byte, most int, limit Limit, tooLong ProtocolError) (int, error) {
	behind := 1
	if delimiter == '\r' {
		behind = 2
	}
	if room := p.limits.CommandBytes - at - behind; room < most {
		most, limit, tooLong = room, LimitCommandBytes, errCommandBytes
	}
	from, to := max(at, p.scanned), len(buf)
	if most < to-at { // the delimiter can be at at+most
		to = at + most + 1
	}
	end := to
	if from < to {
		if i := bytes.IndexByte(buf[from:to], delimiter); i >= 0 {
			end = from + i
			if end+behind <= len(buf) {
				return end, nil
			}
		}
	}
	if end > at+most {
		return 0, p.over(limit, tooLong)
	}
	p.scanned, p.need = end, len(buf)+1
	return 0, ErrIncomplete
}

// parseInteger reads an integer as Redis does, without spaces, plus signs and leading
// zeros. It returns false for anything else, and for more than 64 bits.
func parseInteger(text []byte) (n int64, ok bool) {
	digits, negative := bytes.CutPrefix(text, []byte{'-'})
	if len(digits) == 0 || len(digits) > len("9223372036854775807") || digits[0] == '0' && len(text) > 1 {
		return 0, false
	}
	var u uint64 // 19 digits fit
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if negative {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u <= math.MaxInt64
}
