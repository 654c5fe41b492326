package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/resp"
	"pgregory.net/rapid"
)

// A client is the bytes received and the commands in them, as a server would keep them.
type client struct {
	parser   resp.Parser
	buf      []byte
	commands [][]string
	err      error // the ProtocolError that ended it
}

// receive adds bytes and parses the complete commands. It first moves all bytes to
// another place in memory and overwrites the old one: the parser must not remember where
// they were.
func (c *client) receive(more []byte) {
	old := c.buf
	c.buf = slices.Concat(c.buf, more)
	for i := range old {
		old[i] = '?'
	}
	var args [][]byte
	for c.err == nil {
		before := len(args)
		out, used, err := c.parser.Next(c.buf, args)
		if err != nil {
			if len(out) != before || used != 0 {
				panic(fmt.Sprintf("Next = %q, %d with error %v", out[before:], used, err))
			}
			if !errors.Is(err, resp.ErrIncomplete) {
				c.err = err
			} else if c.parser.Need() <= len(c.buf) {
				panic(fmt.Sprintf("Need = %d, with %d bytes there", c.parser.Need(), len(c.buf)))
			}
			return
		}
		args = out
		if len(args) > before {
			c.commands = append(c.commands, texts(args[before:]))
		}
		c.buf = c.buf[used:]
	}
}

func texts(args [][]byte) (words []string) {
	for _, arg := range args {
		words = append(words, string(arg))
	}
	return words
}

// String formats the commands and the error, for comparisons.
func (c *client) String() string {
	return fmt.Sprintf("%q, error %v, %d bytes left", c.commands, c.err, len(c.buf))
}

// parse gives all bytes to a parser at once.
func parse(limits resp.Limits, sent string) *client {
	c := new(client)
	c.parser.SetLimits(limits)
	c.receive([]byte(sent))
	return c
}

// checkSplits gives the bytes to parsers in pieces: one by one, and in two at every
// place. At each point, the commands and the error must be those of a parser that gets
// the same bytes at once.
func checkSplits(t interface {
	Helper()
	Errorf(string, ...any)
}, limits resp.Limits, sent string) {
	t.Helper()
	slow := new(client)
	slow.parser.SetLimits(limits)
	whole := parse(limits, sent).String()
	for i := range len(sent) {
		slow.receive([]byte{sent[i]})
		begin := parse(limits, sent[:i+1])
		if slow.err == nil && slow.String() != begin.String() { // after an error the rest is not comparable
			t.Errorf("%.200q byte by byte: %v, want %v", sent[:i+1], slow, begin)
			return
		}
		if fmt.Sprint(slow.commands, slow.err) != fmt.Sprint(begin.commands, begin.err) {
			t.Errorf("%.200q byte by byte: %v, want %v", sent[:i+1], slow, begin)
			return
		}
		begin.receive([]byte(sent[i+1:]))
		if begin.String() != whole {
			t.Errorf("%.200q after %d bytes: %v, want %s", sent, i+1, begin, whole)
			return
		}
	}
}

const (
	tooManyArgs = "invalid multibulk length"
	tooLongBulk = "invalid bulk length"
	quotes      = "unbalanced quotes in request"
)

// grammar is checked against redis-server 7.0.15, except for the cases that the package
// comment calls exceptions.
var grammar = []struct {
	name, sent string
	want       string // commands, words quoted if necessary, each after a semicolon
	err        string // after "Protocol error: "
	left       int    // bytes of an incomplete command
}{
	{"array", "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n", `"ECHO" "hi";`, "", 0},
	{"pipeline", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nping\r\nPING\r\n", `"PING";"ping";"PING";`, "", 0},
	{"empty argument", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", `"ECHO" "";`, "", 0},
	{"CR LF and NUL in an argument", "*2\r\n$4\r\nECHO\r\n$5\r\n\r\n\x00$\n\r\n", `"ECHO" "\r\n\x00$\n";`, "", 0},
	{"two digits", "*10\r\n" + strings.Repeat("$12\r\nabcdefghijkl\r\n", 10), strings.TrimSpace(strings.Repeat(`"abcdefghijkl" `, 10)) + ";", "", 0},
	{"any byte behind CR", "*2\rx$4\ryECHO\r\n$2\rzhi\r\n", `"ECHO" "hi";`, "", 0},
	{"any bytes behind an argument", "*2\r\n$4\r\nECHOxy$2\r\nhixy", `"ECHO" "hi";`, "", 0},
	{"no elements", "*0\r\n*-1\r\n*-10\r\n*-9223372036854775808\r\n*1\r\n$4\r\nPING\r\n", `"PING";`, "", 0},
	{"incomplete count", "*1", ``, "", 2},
	{"incomplete count line", "*1\r", ``, "", 3},
	{"incomplete length", "*1\r\n$4", ``, "", 6},
	{"incomplete argument", "*1\r\n$4\r\nPING\r", ``, "", 13},
	{"incomplete second", "*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n", `"PING";`, "", 14},

	{"count missing", "*\r\n", ``, tooManyArgs, -1},
	{"count no number", "*abc\r\n", ``, tooManyArgs, -1},
	{"count with more", "*1x\r\n", ``, tooManyArgs, -1},
	{"count with space", "* 1\r\n", ``, tooManyArgs, -1},
	{"count with plus", "*+1\r\n", ``, tooManyArgs, -1},
	{"count with zero", "*01\r\n", ``, tooManyArgs, -1},
	{"count minus zero", "*-0\r\n", ``, tooManyArgs, -1},
	{"count minus", "*-\r\n", ``, tooManyArgs, -1},
	{"count over int", "*2147483648\r\n", ``, tooManyArgs, -1},
	{"count over 64 bits", "*9223372036854775808\r\n", ``, tooManyArgs, -1},
	{"count under 64 bits", "*-9223372036854775809\r\n", ``, tooManyArgs, -1},
	{"count of 20 digits", "*99999999999999999999\r\n", ``, tooManyArgs, -1},
	{"count behind a command", "PING\r\n*x\r\n", `"PING";`, tooManyArgs, -1},

	{"length missing", "*1\r\n$\r\n", ``, tooLongBulk, -1},
	{"length no number", "*1\r\n$x\r\n", ``, tooLongBulk, -1},
	{"length negative", "*1\r\n$-1\r\n", ``, tooLongBulk, -1},
	{"length with zero", "*1\r\n$04\r\n", ``, tooLongBulk, -1},
	{"length two zeros", "*1\r\n$00\r\n", ``, tooLongBulk, -1},
	{"length over 512 MB", "*1\r\n$536870913\r\n", ``, tooLongBulk, -1},
	{"length over nine digits", "*1\r\n$1000000000\r\n", ``, tooLongBulk, -1},
	{"length over 64 bits", "*1\r\n$9223372036854775808\r\n", ``, tooLongBulk, -1},
	{"not a length", "*1\r\n:4\r\n", ``, "expected '$', got ':'", -1},
	{"not a second length", "*2\r\n$4\r\nECHO\r\n+hi\r\n", ``, "expected '$', got '+'", -1},
	{"length behind an empty line", "*1\r\n\r\n$4\r\nPING\r\n", ``, "expected '$', got '\r'", -1},
	{"length of 512 MB", "*1\r\n$536870912\r\n", ``, "", 16},

	{"inline", "ECHO hi\r\n", `"ECHO" "hi";`, "", 0},
	{"inline with LF", "ECHO hi\nPING\n", `"ECHO" "hi";"PING";`, "", 0},
	{"inline with blanks", " \t\v\f\r ECHO \t hi \r\n", `"ECHO" "hi";`, "", 0},
	{"inline with VT inside", "ECHO a\vb\fc\r\n", `"ECHO" "a\vb\fc";`, "", 0},
	{"inline with CR inside", "ECHO a\rb\r\n", `"ECHO" "a" "b";`, "", 0},
	{"inline with two CR", "PING\r\r\n", `"PING";`, "", 0},
	{"inline with high bytes", "ECHO \xff\x80\r\n", `"ECHO" "\xff\x80";`, "", 0},
	{"inline with NUL", "ECHO a\x00b\r\n", `"ECHO" "a\x00b";`, "", 0},
	{"inline that looks like a length", "$4\r\nPING\r\n", `"$4";"PING";`, "", 0},
	{"inline with star behind a blank", " *1\r\n", `"*1";`, "", 0},
	{"inline incomplete", "PING\r\nECHO hi\r", `"PING";`, "", 8},
	{"empty lines", "\r\n\n \t \r\n\r\nPING\r\n\r\n", `"PING";`, "", 0},

	{"double quotes", `ECHO "a b"` + "\r\n", `"ECHO" "a b";`, "", 0},
	{"double quotes, empty", `ECHO ""` + "\r\n", `"ECHO" "";`, "", 0},
	{"double quotes, command", `"ECHO" "x"` + "\r\n", `"ECHO" "x";`, "", 0},
	{"double quotes, letters", `ECHO "\n\r\t\b\a\\\"\'\q"` + "\r\n", `"ECHO" "\n\r\t\b\a\\\"'q";`, "", 0},
	{"double quotes, hex", `ECHO "\x00\xfF\x1Ag"` + "\r\n", `"ECHO" "\x00\xff\x1ag";`, "", 0},
	{"double quotes, not hex", `ECHO "\xg0\x0g\x"` + "\r\n", `"ECHO" "xg0x0gx";`, "", 0},
	{"double quotes, other quotes", `ECHO "it's"` + "\r\n", `"ECHO" "it's";`, "", 0},
	{"double quotes in a word", `ECHO a"b c"` + "\r\n", `"ECHO" "ab c";`, "", 0},
	{"double quotes, VT behind", "ECHO \"a\"\vb\r\n", `"ECHO" "a" "b";`, "", 0},
	{"single quotes", `ECHO 'a b'` + "\r\n", `"ECHO" "a b";`, "", 0},
	{"single quotes, empty", `ECHO ''` + "\r\n", `"ECHO" "";`, "", 0},
	{"single quotes, escapes", `ECHO 'a\'b\n\\"'` + "\r\n", `"ECHO" "a'b\\n\\\\\"";`, "", 0},
	{"single quotes in a word", `ECHO a'b c'` + "\r\n", `"ECHO" "ab c";`, "", 0},
	{"backslash alone", `ECHO a\nb\` + "\r\n", `"ECHO" "a\\nb\\";`, "", 0},
	{"double quotes open", `ECHO "a` + "\r\n", ``, quotes, -1},
	{"double quotes open, backslash", `ECHO "a\` + "\r\n", ``, quotes, -1},
	{"double quotes open, escaped", `ECHO "a\"` + "\r\n", ``, quotes, -1},
	{"double quotes, text behind", `ECHO "a"b` + "\r\n", ``, quotes, -1},
	{"single quotes open", `ECHO 'a` + "\r\n", ``, quotes, -1},
	{"single quotes open, escaped", `ECHO 'a\'` + "\r\n", ``, quotes, -1},
	{"single quotes, text behind", `ECHO 'a''b'` + "\r\n", ``, quotes, -1},
}

func TestGrammar(t *testing.T) {
	for _, tt := range grammar {
		t.Run(tt.name, func(t *testing.T) {
			c := parse(resp.Limits{}, tt.sent)
			got := ""
			for _, command := range c.commands {
				got += strings.Trim(fmt.Sprintf("%q", command), "[]") + ";"
			}
			if got != tt.want {
				t.Errorf("commands %s, want %s", got, tt.want)
			}
			switch {
			case tt.err == "" && c.err != nil:
				t.Errorf("error %v, want none", c.err)
			case tt.err != "" && (c.err == nil || c.err.Error() != "Protocol error: "+tt.err):
				t.Errorf("error %v, want Protocol error: %s", c.err, tt.err)
			}
			if tt.left >= 0 && len(c.buf) != tt.left {
				t.Errorf("%d bytes left, want %d", len(c.buf), tt.left)
			}
			checkSplits(t, resp.Limits{}, tt.sent)
		})
	}
}

func TestLimits(t *testing.T) {
	long := func(prefix string, bytes int) string { return prefix + strings.Repeat("x", bytes-len(prefix)) }
	digits := func(prefix string, bytes int) string { return prefix + strings.Repeat("0", bytes-len(prefix)) }
	array := func(args ...string) string {
		var w resp.Writer
		w.Array(len(args))
		for _, arg := range args {
			w.BulkString(arg)
		}
		return string(w.Buf)
	}
	before := resp.UnauthenticatedLimits()
	for _, tt := range []struct {
		name     string
		limits   resp.Limits
		sent     string
		commands int
		err      string // empty with no command: incomplete
	}{
		{"arguments", resp.Limits{Args: 3}, array("a", "b", "c"), 1, ""},
		{"arguments over", resp.Limits{Args: 3}, "*4\r\n", 0, tooManyArgs},
		{"arguments by default", resp.Limits{}, "*1048576\r\n", 0, ""},
		{"arguments over default", resp.Limits{}, "*1048577\r\n", 0, tooManyArgs},
		{"arguments inline", resp.Limits{Args: 3}, "a b  c \r\n", 1, ""},
		{"arguments inline over", resp.Limits{Args: 3}, "a b c d\r\n", 0, tooManyArgs},
		{"bulk", resp.Limits{BulkBytes: 4}, array("abcd"), 1, ""},
		{"bulk over", resp.Limits{BulkBytes: 4}, "*1\r\n$5\r\n", 0, tooLongBulk},
		{"bulk above Redis's", resp.Limits{BulkBytes: 600 << 20}, "*1\r\n$536870913\r\n", 0, ""},
		{"inline", resp.Limits{InlineBytes: 8}, "ECHO abc\n", 1, ""},
		{"inline over", resp.Limits{InlineBytes: 8}, "ECHO abcd\n", 0, "too big inline request"},
		{"inline with CR over", resp.Limits{InlineBytes: 8}, "ECHO abc\r\n", 0, "too big inline request"},
		{"inline by default", resp.Limits{}, long("", 65536) + "\n", 1, ""},
		{"inline open", resp.Limits{}, long("", 65536), 0, ""},
		{"inline open over", resp.Limits{}, long("", 65537), 0, "too big inline request"},
		{"count open", resp.Limits{}, digits("*1", 65536), 0, ""},
		{"count open over", resp.Limits{}, digits("*1", 65537), 0, "too big mbulk count string"},
		{"count long", resp.Limits{}, digits("*1", 65536) + "\r\n", 0, tooManyArgs},
		{"length open", resp.Limits{}, "*1\r\n" + digits("$1", 65536), 0, ""},
		{"length open over", resp.Limits{}, "*1\r\n" + digits("$1", 65537), 0, "too big bulk count string"},
		{"length long", resp.Limits{}, "*1\r\n" + digits("$1", 65536) + "\r\n", 0, tooLongBulk},
		{"command", resp.Limits{CommandBytes: 18}, array("ab", "cd"), 0, "too big command"},
		{"command of its size", resp.Limits{CommandBytes: 20}, array("ab", "cd"), 1, ""},
		{"command by its claim", resp.Limits{CommandBytes: 1000}, "*1\r\n$990\r\n", 0, "too big command"},
		{"command by its count line", resp.Limits{CommandBytes: 5}, "*1000\r\n", 0, "too big command"},
		{"command of no elements over", resp.Limits{CommandBytes: 3}, "*0\r\n", 0, "too big command"},
		{"command inline", resp.Limits{CommandBytes: 5}, "PING\n", 1, ""},
		{"command inline over", resp.Limits{CommandBytes: 5}, "PING\r\n", 0, "too big command"},
		{"before authentication", before, array(slices.Repeat([]string{"x"}, 10)...), 1, ""},
		{"before authentication, arguments", before, "*11\r\n", 0, "unauthenticated multibulk length"},
		{"before authentication, arguments over int", before, "*2147483648\r\n", 0, tooManyArgs},
		{"before authentication, arguments inline", before, "1 2 3 4 5 6 7 8 9 10 11\r\n", 0, "unauthenticated multibulk length"},
		{"before authentication, bulk of its size", before, array(long("", 16384)), 1, ""},
		{"before authentication, bulk", before, "*1\r\n$16385\r\n", 0, "unauthenticated bulk length"},
		{"before authentication, bulk over 512 MB", before, "*1\r\n$536870913\r\n", 0, tooLongBulk},
		{"before authentication, bulk negative", before, "*1\r\n$-1\r\n", 0, tooLongBulk},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := parse(tt.limits, tt.sent)
			if len(c.commands) != tt.commands {
				t.Errorf("%d commands, want %d", len(c.commands), tt.commands)
			}
			want := "<nil>"
			if tt.err != "" {
				want = "Protocol error: " + tt.err
			}
			if got := fmt.Sprint(c.err); got != want {
				t.Errorf("error %q, want %q", got, want)
			}
			if len(tt.sent) < 1000 { // testing every split takes quadratic time
				checkSplits(t, tt.limits, tt.sent)
			}
		})
	}
}

// TestSetLimits authenticates in the middle of a command.
func TestSetLimits(t *testing.T) {
	var p resp.Parser
	p.SetLimits(resp.UnauthenticatedLimits())
	command := "*2\r\n$4\r\nECHO\r\n$16385\r\n" + strings.Repeat("x", 16385) + "\r\n"
	if _, _, err := p.Next([]byte(command[:14]), nil); !errors.Is(err, resp.ErrIncomplete) {
		t.Fatalf("half a command: error %v, want %v", err, resp.ErrIncomplete)
	}
	p.SetLimits(resp.Limits{})
	if args, used, err := p.Next([]byte(command), nil); len(args) != 2 || used != len(command) || err != nil {
		t.Errorf("with default limits: %d arguments, %d bytes, error %v, want 2, %d, none", len(args), used, err, len(command))
	}
}

// TestArgumentsDoNotOverlap appends to each argument, which must not change the bytes
// after it.
func TestArgumentsDoNotOverlap(t *testing.T) {
	for _, sent := range []string{"*2\r\n$1\r\na\r\n$1\r\nb\r\n", "a b\r\n", "'a' \"b\"\r\n"} {
		for n := range len(sent) {
			var p resp.Parser
			args, _, err := p.Next([]byte(sent), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, arg := range args {
				_ = append(arg, strings.Repeat("#", n)...)
			}
			if got := texts(args); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("%q after appends of %d bytes: %q, want a, b", sent, n, got)
			}
		}
	}
}

func TestNeed(t *testing.T) {
	var p resp.Parser
	for _, tt := range []struct {
		sent string
		need int
	}{
		{"", 1},
		{"*", 2},
		{"*2\r\n", 5},
		{"*2\r\n$3", 7},
		{"*2\r\n$300\r\n", 10 + 300 + 2},
		{"*2\r\n$300\r\nabc", 10 + 300 + 2},
	} {
		if _, _, err := p.Next([]byte(tt.sent), nil); !errors.Is(err, resp.ErrIncomplete) || p.Need() != tt.need {
			t.Errorf("%q: Need = %d, error %v, want %d, %v", tt.sent, p.Need(), err, tt.need, resp.ErrIncomplete)
		}
	}
}

// TestSent parses the commands that clients send, as typed and as an array.
func TestSent(t *testing.T) {
	text, err := os.ReadFile("testdata/sent.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		typed := parse(resp.Limits{}, line)
		if len(typed.commands) != 1 || typed.err != nil {
			t.Errorf("%q: %v, want one command", line, typed)
			continue
		}
		words := typed.commands[0]
		if want := strings.Fields(line); !strings.ContainsAny(line, `"'`) && !slices.Equal(words, want) {
			t.Errorf("%q: words %q, want %q", line, words, want)
		}
		checkSplits(t, resp.Limits{}, line)
		checkSplits(t, resp.Limits{}, string(arrayOf(words)))
		if got := parse(resp.Limits{}, string(arrayOf(words))); len(got.commands) != 1 || !slices.Equal(got.commands[0], words) {
			t.Errorf("%q as an array: %v, want it again", words, got)
		}
	}
	if lines < 50 {
		t.Errorf("testdata/sent.txt has %d commands, want 50 at least", lines)
	}
}

// arrayOf returns a command as client libraries send it.
func arrayOf(args []string) []byte {
	var w resp.Writer
	w.Array(len(args))
	for _, arg := range args {
		w.BulkString(arg)
	}
	return w.Buf
}

// inlineOf returns a command as a careful person would type it.
func inlineOf(args []string) []byte {
	var line []byte
	for _, arg := range args {
		line = append(line, '"')
		for _, c := range []byte(arg) {
			line = fmt.Appendf(line, `\x%02x`, c)
		}
		line = append(line, "\" "...)
	}
	return append(line, '\n')
}

// TestRoundTrip sends arbitrary pipelines in arbitrary pieces.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		argument := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) })
		commands := rapid.SliceOfN(rapid.SliceOfN(argument, 1, 12), 1, 5).Draw(t, "commands")
		var sent []byte
		for _, command := range commands {
			if rapid.Bool().Draw(t, "inline") {
				sent = append(sent, inlineOf(command)...)
			} else {
				sent = append(sent, arrayOf(command)...)
			}
		}
		c := new(client)
		for len(sent) > 0 {
			n := rapid.IntRange(1, len(sent)).Draw(t, "piece")
			c.receive(bytes.Clone(sent[:n]))
			sent = sent[n:]
		}
		if c.err != nil || len(c.buf) != 0 || !slices.EqualFunc(c.commands, commands, slices.Equal) {
			t.Fatalf("got %v, want %q", c, commands)
		}
	})
}

// FuzzParser splits the bytes anywhere, under small limits and large ones: the results
// must not depend on the splits.
func FuzzParser(f *testing.F) {
	for _, tt := range grammar {
		f.Add([]byte(tt.sent), uint64(1), uint8(0), uint8(0), uint8(0))
		f.Add([]byte(tt.sent), uint64(2), uint8(3), uint8(4), uint8(20))
	}
	f.Fuzz(func(t *testing.T, sent []byte, cuts uint64, args, bulkBytes, commandBytes uint8) {
		limits := resp.Limits{Args: int(args), BulkBytes: int(bulkBytes), InlineBytes: int(bulkBytes), CommandBytes: int(commandBytes),
			Unauthenticated: cuts&1 != 0}
		want := parse(limits, string(sent))
		for _, command := range want.commands {
			if args > 0 && len(command) > int(args) {
				t.Errorf("%q has more than %d arguments", command, args)
			}
		}
		c := new(client)
		c.parser.SetLimits(limits)
		rest := sent
		for len(rest) > 0 && c.err == nil {
			cuts = cuts*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
			n := min(1+int(cuts>>59), len(rest))
			c.receive(bytes.Clone(rest[:n]))
			rest = rest[n:]
		}
		c.buf = append(c.buf, rest...) // after an error
		if c.String() != want.String() {
			t.Errorf("%q in pieces: %v, want %v", sent, c, want)
		}
		if len(sent) <= 64 {
			checkSplits(t, limits, string(sent))
		}
	})
}

// TestPayload allows one command a longer argument than the others, wherever its bytes
// are split, and checks which limit each refusal names.
func TestPayload(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	array := func(args ...string) string { return string(arrayOf(args)) }
	limits := resp.Limits{Args: 5, BulkBytes: 10, InlineBytes: 50, CommandBytes: 60, PayloadBytes: 20,
		TakesPayload: func(name []byte) bool { return string(name) == "LOAD" }}
	for _, tt := range []struct {
		sent  string
		limit resp.Limit
		most  int
		err   string
	}{
		{array("LOAD", "k", long(20)), resp.NoLimit, 0, ""},
		{array("LOAD", long(20), "k"), resp.NoLimit, 0, ""},
		{"*2\rx$4\ryLOADxy$20\r\n" + long(20) + "\r\n", resp.NoLimit, 0, ""},
		{array("LOAD", "k", long(21)), resp.LimitPayloadBytes, 20, tooLongBulk},
		{array("SAVE", "k", long(11)), resp.LimitBulkBytes, 10, tooLongBulk},
		{array(long(11), "LOAD"), resp.LimitBulkBytes, 10, tooLongBulk},
		{array("", "LOAD", long(11)), resp.LimitBulkBytes, 10, tooLongBulk},
		{array("LOAD", long(20), long(20)), resp.LimitCommandBytes, 60, "too big command"},
		{"*6\r\n", resp.LimitArgs, 5, tooManyArgs},
		{"*x\r\n", resp.NoLimit, 0, tooManyArgs},
		{"*1\r\n$-1\r\n", resp.NoLimit, 0, tooLongBulk},
		{long(51), resp.LimitInlineBytes, 50, "too big inline request"},
	} {
		c := parse(limits, tt.sent)
		want := "<nil>"
		if tt.err != "" {
			want = "Protocol error: " + tt.err
		}
		if limit, most := c.parser.Exceeded(); fmt.Sprint(c.err) != want || limit != tt.limit || most != tt.most {
			t.Errorf("%q: error %v, limit %d of %d, want %s, limit %d of %d", tt.sent, c.err, limit, most, want, tt.limit, tt.most)
		}
		checkSplits(t, limits, tt.sent)
	}
}
