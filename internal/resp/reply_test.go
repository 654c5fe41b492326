package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/bloomery/bloom/internal/resp"
	"pgregory.net/rapid"
)

func read(limits resp.ReplyLimits, wire string) (resp.Reply, error) {
	return resp.NewReplyReader(strings.NewReader(wire), limits).Read()
}

func TestReply(t *testing.T) {
	one := resp.Reply{Kind: resp.Integer, Integer: 1}
	for _, tt := range []struct {
		wire string
		want resp.Reply
	}{
		{"+OK\r\n", resp.Reply{Kind: resp.SimpleString, Text: "OK"}},
		{"+\r\n", resp.Reply{Kind: resp.SimpleString}},
		{"-ERR no\r\n", resp.Reply{Kind: resp.SimpleError, Text: "ERR no"}},
		{":-9223372036854775808\r\n", resp.Reply{Kind: resp.Integer, Integer: math.MinInt64}},
		{":9223372036854775807\r\n", resp.Reply{Kind: resp.Integer, Integer: math.MaxInt64}},
		{"$4\r\na\r\nb\r\n", resp.Reply{Kind: resp.Bulk, Text: "a\r\nb"}},
		{"$0\r\n\r\n", resp.Reply{Kind: resp.Bulk}},
		{"$-1\r\n", resp.Reply{Kind: resp.Bulk, None: true}},
		{"*0\r\n", resp.Reply{Kind: resp.Array, Items: []resp.Reply{}}},
		{"*-1\r\n", resp.Reply{Kind: resp.Array, None: true}},
		{"*2\r\n:1\r\n*1\r\n:1\r\n", resp.Reply{Kind: resp.Array, Items: []resp.Reply{one, {Kind: resp.Array, Items: []resp.Reply{one}}}}},
		{"_\r\n", resp.Reply{Kind: resp.Null}},
		{"#t\r\n", resp.Reply{Kind: resp.Bool, Bool: true}},
		{"#f\r\n", resp.Reply{Kind: resp.Bool}},
		{",1.5e+8\r\n", resp.Reply{Kind: resp.Double, Text: "1.5e+8", Double: 1.5e8}},
		{",-inf\r\n", resp.Reply{Kind: resp.Double, Text: "-inf", Double: math.Inf(-1)}},
		{"(-12345678901234567890\r\n", resp.Reply{Kind: resp.BigNumber, Text: "-12345678901234567890"}},
		{"!5\r\nERR x\r\n", resp.Reply{Kind: resp.BulkError, Text: "ERR x"}},
		{"=6\r\ntxt:hi\r\n", resp.Reply{Kind: resp.Verbatim, Format: "txt", Text: "hi"}},
		{"=4\r\nmkd:\r\n", resp.Reply{Kind: resp.Verbatim, Format: "mkd"}},
		{"%1\r\n+n\r\n:1\r\n", resp.Reply{Kind: resp.Map, Items: []resp.Reply{{Kind: resp.SimpleString, Text: "n"}, one}}},
		{"~1\r\n:1\r\n", resp.Reply{Kind: resp.Set, Items: []resp.Reply{one}}},
		{">1\r\n:1\r\n", resp.Reply{Kind: resp.Push, Items: []resp.Reply{one}}},
		{"|1\r\n_\r\n:1\r\n#t\r\n", resp.Reply{Kind: resp.Bool, Bool: true, Attributes: []resp.Reply{{Kind: resp.Null}, one}}},
	} {
		t.Run(tt.wire, func(t *testing.T) {
			r := resp.NewReplyReader(iotest.OneByteReader(strings.NewReader(tt.wire+tt.wire)), resp.ReplyLimits{})
			for range 2 {
				if got, err := r.Read(); err != nil || !reflect.DeepEqual(got, tt.want) {
					t.Errorf("Read = %+v, error %v, want %+v", got, err, tt.want)
				}
			}
			if _, err := r.Read(); err != io.EOF {
				t.Errorf("after it: error %v, want %v", err, io.EOF)
			}
			for cut := 1; cut < len(tt.wire); cut++ {
				if got, err := read(resp.ReplyLimits{}, tt.wire[:cut]); err != io.ErrUnexpectedEOF {
					t.Errorf("%q: Read = %+v, error %v, want %v", tt.wire[:cut], got, err, io.ErrUnexpectedEOF)
				}
			}
		})
	}
	for _, wire := range []string{",nan\r\n", ",-nan\r\n"} {
		if got, err := read(resp.ReplyLimits{}, wire); err != nil || !math.IsNaN(got.Double) {
			t.Errorf("%q: %+v, error %v, want NaN", wire, got, err)
		}
	}
}

func TestReplyErrors(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("*1\r\n", n) + ":1\r\n" }
	for _, tt := range []struct {
		wire   string
		limits resp.ReplyLimits
		want   error // nil: a reply
	}{
		{"\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"\n", resp.ReplyLimits{}, resp.ErrReply},
		{"OK\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"+OK\n", resp.ReplyLimits{}, resp.ErrReply},
		{"+a\rb\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{":\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{":1.5\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{":9223372036854775808\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"$-2\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"$x\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"$1\r\nab\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"$1\r\na\n", resp.ReplyLimits{}, resp.ErrReply},
		{"*-2\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"*?\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"%-1\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"!-1\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"*1\r\n\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"_x\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"#x\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{",\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{",0x1p-2\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{",infinity\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"(\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"(-\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"(1x\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"=3\r\ntxt\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"=5\r\nutf8:\r\n", resp.ReplyLimits{}, resp.ErrReply},
		{"|0\r\n|0\r\n:1\r\n", resp.ReplyLimits{}, resp.ErrReply},

		{"$1073741824\r\n", resp.ReplyLimits{}, resp.ErrReplyLimit},
		{"*1048577\r\n", resp.ReplyLimits{}, resp.ErrReplyLimit},
		{"%524289\r\n", resp.ReplyLimits{}, resp.ErrReplyLimit},
		{"*9223372036854775807\r\n", resp.ReplyLimits{}, resp.ErrReplyLimit},
		{"+" + strings.Repeat("x", 64<<10), resp.ReplyLimits{}, resp.ErrReplyLimit},
		{deep(32), resp.ReplyLimits{}, nil},
		{deep(33), resp.ReplyLimits{}, resp.ErrReplyLimit},
		{"*2\r\n*1\r\n:1\r\n*1\r\n:1\r\n", resp.ReplyLimits{Depth: 2, Items: 4}, nil},
		{"*2\r\n*1\r\n:1\r\n*1\r\n:1\r\n", resp.ReplyLimits{Items: 3}, resp.ErrReplyLimit},
		{"$4\r\nabcd\r\n", resp.ReplyLimits{Bytes: 10}, nil},
		{"$4\r\nabcd\r\n", resp.ReplyLimits{Bytes: 9}, resp.ErrReplyLimit},
		{"*2\r\n:1\r\n:2\r\n", resp.ReplyLimits{Bytes: 11}, resp.ErrReplyLimit},
	} {
		if got, err := read(tt.limits, tt.wire); !errors.Is(err, tt.want) {
			t.Errorf("%.40q within %+v: Read = %+v, error %v, want %v", tt.wire, tt.limits, got, err, tt.want)
		}
	}
}

// TestReplyClaims reads replies that claim as much as the limits allow, but end there.
func TestReplyClaims(t *testing.T) {
	for _, wire := range []string{"$1073741000\r\n", "*1048576\r\n", "%524288\r\n", strings.Repeat("*1000\r\n", 32)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := read(resp.ReplyLimits{}, wire)
		runtime.ReadMemStats(&after)
		if err != io.ErrUnexpectedEOF {
			t.Errorf("%.20q: error %v, want %v", wire, err, io.ErrUnexpectedEOF)
		}
		allocated := after.TotalAlloc - before.TotalAlloc
		if allocated < 64<<10 || allocated > 128<<10 { // the reader's own buffer has 64 KiB
			t.Errorf("%.20q: allocated %d bytes, want 64 KiB .. 128 KiB", wire, allocated)
		}
	}
}

// write writes a reply with a Writer.
func write(w *resp.Writer, reply resp.Reply) {
	switch reply.Kind {
	case resp.SimpleString:
		w.SimpleString(reply.Text)
	case resp.SimpleError:
		w.Error(reply.Text)
	case resp.Integer:
		w.Integer(reply.Integer)
	case resp.Bulk:
		if reply.None {
			w.Null()
		} else {
			w.BulkString(reply.Text)
		}
	case resp.Array:
		if reply.None {
			w.NullArray()
		} else {
			w.Array(len(reply.Items))
		}
	case resp.Null:
		w.Null()
	case resp.Bool:
		w.Bool(reply.Bool)
	case resp.Double:
		w.Double(reply.Double)
	case resp.Verbatim:
		w.Verbatim(reply.Format, reply.Text)
	case resp.Map:
		w.Map(len(reply.Items) / 2)
	case resp.Set:
		w.Set(len(reply.Items))
	case resp.Push:
		w.Push(len(reply.Items))
	default:
		panic(fmt.Sprintf("a Writer has no %q", reply.Kind))
	}
	for _, item := range reply.Items {
		write(w, item)
	}
}

// TestRecorded reads recorded replies of RedisBloom and writes them again.
func TestRecorded(t *testing.T) {
	text, err := os.ReadFile("testdata/replies.txt")
	if err != nil {
		t.Fatal(err)
	}
	replies, kinds := 0, map[resp.Kind]int{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		replies++
		var protocol int
		var quoted string
		if _, err := fmt.Sscanf(line, "%d %q", &protocol, &quoted); err != nil {
			t.Fatalf("%s: %v", strconv.Quote(line), err)
		}
		r := resp.NewReplyReader(strings.NewReader(quoted), resp.ReplyLimits{})
		reply, err := r.Read()
		if err != nil {
			t.Errorf("%q: %v", quoted, err)
			continue
		}
		if _, err := r.Read(); err != io.EOF {
			t.Errorf("%q is followed by error %v, want %v", quoted, err, io.EOF)
		}
		kinds[reply.Kind]++
		w := resp.Writer{Protocol: protocol}
		write(&w, reply)
		if string(w.Buf) != quoted {
			t.Errorf("RESP%d %q: written again as %q", protocol, quoted, w.Buf)
		}
	}
	for _, kind := range []resp.Kind{resp.SimpleString, resp.SimpleError, resp.Integer, resp.Bulk, resp.Array, resp.Bool, resp.Map} {
		if kinds[kind] == 0 {
			t.Errorf("none of %d recorded replies is of kind %q", replies, kind)
		}
	}
}

// anyReply draws a reply that a Writer can write in RESP3.
func anyReply(depth int) *rapid.Generator[resp.Reply] {
	return rapid.Custom(func(t *rapid.T) resp.Reply {
		kinds := []resp.Kind{resp.SimpleString, resp.SimpleError, resp.Integer, resp.Bulk, resp.Null, resp.Bool, resp.Double, resp.Verbatim}
		if depth > 0 {
			kinds = append(kinds, resp.Array, resp.Map, resp.Set, resp.Push)
		}
		reply := resp.Reply{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch reply.Kind {
		case resp.SimpleString, resp.SimpleError:
			reply.Text = rapid.StringMatching(`[^\r\n]*`).Draw(t, "text")
		case resp.Bulk:
			reply.Text = string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		case resp.Verbatim:
			reply.Format = rapid.StringMatching(`[a-z]{3}`).Draw(t, "format")
			reply.Text = string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		case resp.Integer:
			reply.Integer = rapid.Int64().Draw(t, "integer")
		case resp.Bool:
			reply.Bool = rapid.Bool().Draw(t, "bool")
		case resp.Double:
			reply.Double = rapid.Float64().Draw(t, "double")
		case resp.Null:
		default:
			n := rapid.IntRange(0, 4).Draw(t, "items")
			if reply.Kind == resp.Map {
				n *= 2
			}
			reply.Items = make([]resp.Reply, n)
			for i := range reply.Items {
				reply.Items[i] = anyReply(depth-1).Draw(t, "item")
			}
		}
		return reply
	})
}

func TestReplyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyReply(3).Draw(t, "reply")
		w := resp.Writer{Protocol: 3}
		write(&w, want)
		got, err := read(resp.ReplyLimits{}, string(w.Buf))
		if err != nil {
			t.Fatalf("%q: %v", w.Buf, err)
		}
		forgetText(&got)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %+v, want %+v", w.Buf, got, want)
		}
		again := resp.Writer{Protocol: 2}
		write(&again, want)
		if _, err := read(resp.ReplyLimits{}, string(again.Buf)); err != nil {
			t.Fatalf("in RESP2, %q: %v", again.Buf, err)
		}
	})
}

// forgetText removes the texts of doubles.
func forgetText(reply *resp.Reply) {
	if reply.Kind == resp.Double {
		reply.Text = ""
	}
	for i := range reply.Items {
		forgetText(&reply.Items[i])
	}
}

// FuzzReply reads arbitrary bytes. If they are a reply, it writes the reply and reads it
// again.
func FuzzReply(f *testing.F) {
	for _, wire := range []string{
		"+OK\r\n", "-ERR x\r\n", ":-12\r\n", "$3\r\nabc\r\n", "$-1\r\n", "*-1\r\n", "*2\r\n:1\r\n#f\r\n",
		"_\r\n", ",1.5\r\n", ",nan\r\n", "(123\r\n", "!3\r\nERR\r\n",
		"=6\r\ntxt:hi\r\n", "%1\r\n+n\r\n_\r\n", "~1\r\n+x\r\n", ">2\r\n+a\r\n+b\r\n", "|1\r\n+a\r\n:1\r\n*1\r\n|0\r\n:1\r\n",
		"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "$99999\r\nx",
	} {
		f.Add([]byte(wire))
	}
	limits := resp.ReplyLimits{Bytes: 10_000, Items: 100, Depth: 4}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := resp.NewReplyReader(bytes.NewReader(wire), limits)
		for {
			reply, err := r.Read()
			if err != nil {
				if err != io.EOF && err != io.ErrUnexpectedEOF && !errors.Is(err, resp.ErrReply) && !errors.Is(err, resp.ErrReplyLimit) {
					t.Fatalf("%q: error %v of no known kind", wire, err)
				}
				return
			}
			if !writable(reply) {
				continue
			}
			w := resp.Writer{Protocol: 3}
			write(&w, reply)
			again, err := read(resp.ReplyLimits{}, string(w.Buf))
			if err != nil {
				t.Fatalf("%+v was written as %q: %v", reply, w.Buf, err)
			}
			w2 := resp.Writer{Protocol: 3}
			write(&w2, again)
			if !bytes.Equal(w.Buf, w2.Buf) {
				t.Fatalf("%q, then %q", w.Buf, w2.Buf)
			}
		}
	})
}

// writable reports whether a Writer can write all kinds in the reply.
func writable(reply resp.Reply) bool {
	for _, item := range reply.Items {
		if !writable(item) {
			return false
		}
	}
	return reply.Kind != resp.BigNumber && reply.Kind != resp.BulkError
}
