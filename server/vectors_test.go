package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/resp"
)

// recordedFilters is what a real RedisBloom replied.
type recordedFilters struct {
	Keys   map[string]struct{ Hex string }
	Errors []struct {
		Name  string
		Args  []any
		Reply any
	} `json:"loadchunk_errors"`
	Filters []struct {
		Name     string
		Reserve  []string
		Inserted []string
		Replies  []any `json:"add_replies"`
		Bulk     *struct {
			Fmt      string
			From, To int
		}
		BulkNew int64  `json:"bulk_add_new"`
		Header  string `json:"header_hex"`
		Bits    string `json:"bits_b64"`
		Chunks  []struct {
			Iter   int64
			Len    int
			SHA256 string
		}
		Exists map[string]bool
	}
}

func readRecorded(t *testing.T) (r recordedFilters) {
	t.Helper()
	text, err := os.ReadFile("../testdata/vectors/redisbloom.json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || len(r.Filters) == 0 || len(r.Errors) == 0 {
		t.Fatalf("%d filters and %d refusals, error %v", len(r.Filters), len(r.Errors), err)
	}
	return r
}

func unhex(t *testing.T, text string) string {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// plain returns a reply as the recordings have it.
func plain(reply resp.Reply) string {
	switch reply.Kind {
	case resp.Integer:
		return fmt.Sprint(reply.Integer)
	case resp.SimpleError:
		return "ERR:" + reply.Text
	case resp.Array:
		var items []string
		for _, item := range reply.Items {
			items = append(items, plain(item))
		}
		return "[" + strings.Join(items, " ") + "]"
	}
	return reply.Text
}

// TestRecordedDumps adds what was added to a real RedisBloom, and dumps: the replies
// and the bytes are the same. Then it loads the recorded bytes, and looks keys up.
func TestRecordedDumps(t *testing.T) {
	r := readRecorded(t)
	w := connectLocal(t, 1<<30)
	for _, f := range r.Filters {
		if f.Reserve != nil {
			w.askOK(t, append([]string{"BF.RESERVE", f.Name}, f.Reserve...)...)
		}
		for i, key := range f.Inserted {
			if got := plain(w.ask(t, "BF.ADD", f.Name, unhex(t, r.Keys[key].Hex))); got != fmt.Sprint(f.Replies[i]) {
				t.Errorf("%s: adding %s: %s, want %v", f.Name, key, got, f.Replies[i])
			}
		}
		if f.Bulk != nil {
			args := []string{"BF.MADD", f.Name}
			for i := f.Bulk.From; i < f.Bulk.To; i++ {
				args = append(args, fmt.Sprintf(f.Bulk.Fmt, i))
			}
			fresh := int64(0)
			for _, item := range w.ask(t, args...).Items {
				fresh += item.Integer
			}
			if fresh != f.BulkNew {
				t.Errorf("%s: %d keys were new, want %d", f.Name, fresh, f.BulkNew)
			}
		}
		bits, err := base64.StdEncoding.DecodeString(f.Bits)
		if err != nil {
			t.Fatal(err)
		}
		iterator, loaded := int64(0), f.Name+"/loaded"
		for i, want := range f.Chunks {
			reply := w.ask(t, "BF.SCANDUMP", f.Name, fmt.Sprint(iterator))
			if len(reply.Items) != 2 {
				t.Fatalf("%s: %v", f.Name, reply)
			}
			iterator = reply.Items[0].Integer
			if got := fmt.Sprintf("%x", sha256.Sum256([]byte(reply.Items[1].Text))); iterator != want.Iter || got != want.SHA256 {
				t.Errorf("%s, chunk %d: iterator %d, sha256 %s, want %d, %s", f.Name, i, iterator, got, want.Iter, want.SHA256)
			}
			chunk := unhex(t, f.Header)
			if i > 0 {
				chunk, bits = string(bits[:want.Len]), bits[want.Len:]
			}
			if want.Iter != 0 {
				w.askOK(t, "BF.LOADCHUNK", loaded, fmt.Sprint(want.Iter), chunk)
			}
		}
		for key, there := range f.Exists {
			for _, name := range []string{f.Name, loaded} {
				if got := w.ask(t, "BF.EXISTS", name, unhex(t, r.Keys[key].Hex)).Integer == 1; got != there {
					t.Errorf("%s has %s: %v, want %v", name, key, got, there)
				}
			}
		}
	}
}

// TestRecordedRefusals sends what a real RedisBloom was sent, one after the other.
func TestRecordedRefusals(t *testing.T) {
	w := connectLocal(t, 1<<30)
	names := map[string]string{"good header": "x", "header again on existing key": "x"}
	for i, e := range readRecorded(t).Errors {
		var args []string
		for _, arg := range e.Args {
			args = append(args, fmt.Sprint(arg))
		}
		if args[0] == "BF.LOADCHUNK" {
			args[3] = unhex(t, args[3])
			if args[2] == "1" && names[e.Name] == "" {
				args[1] = fmt.Sprint("header", i) // an existing key would hide them
			}
			if e.Name == "chunk before header" {
				args[1] = "nothing"
			}
		}
		if got, want := plain(w.ask(t, args...)), fmt.Sprint(e.Reply); got != want {
			t.Errorf("%s: %s, want %s", e.Name, got, want)
		}
	}
}

// TestHostileHeaders loads headers with false claims: they are refused, or take only
// the memory that the ceiling allows, and the server keeps running.
func TestHostileHeaders(t *testing.T) {
	local := openLocal(t, 8<<20)
	_, addr, _ := serveOn(t, local, Config{}, transports["loops"])
	w := connect(t, addr)
	r := readRecorded(t)
	before := heap()
	load := func(header string) resp.Reply {
		reply := w.ask(t, "BF.LOADCHUNK", "x", "1", header)
		w.ask(t, "BF.EXISTS", "x", "a")
		w.ask(t, "BF.ADD", "x", "a")
		w.ask(t, "BF.SCANDUMP", "x", "0")
		w.ask(t, "DEL", "x")
		return reply
	}
	values := []uint64{0, 1, math.MaxUint32, 1 << 40, math.MaxInt64, math.MaxUint64, math.Float64bits(math.NaN()), math.Float64bits(math.Inf(1))}
	for i, f := range r.Filters {
		if i%4 != 1 { // of one layer, and of several
			continue
		}
		header := unhex(t, f.Header)
		for at := 0; at+8 <= len(header) && at < 80; at++ {
			for _, value := range values {
				load(header[:at] + string(binary.LittleEndian.AppendUint64(nil, value)) + header[at+8:])
			}
		}
		for cut := range len(header) {
			if reply := load(header[:cut]); reply.Kind != resp.SimpleError {
				t.Errorf("%s, %d bytes: %v, want an error", f.Name, cut, reply)
			}
		}
	}
	// One of ours that claims the largest file.
	w.askOK(t, "BF.RESERVE", "p", "0.01", "1000", "LAYOUT", "PAIRED", "PUBLIC")
	ours := w.ask(t, "BF.SCANDUMP", "p", "0").Items[1].Text
	for at := range len(ours) {
		if reply := load(ours[:at] + string(ours[at]^0x55) + ours[at+1:]); reply.Kind != resp.SimpleError {
			t.Errorf("a header with a wrong byte at %d: %v, want an error", at, reply)
		}
	}
	w.ask(t, "BF.SCANDUMP", "p", fmt.Sprint(w.ask(t, "BF.SCANDUMP", "p", "1").Items[0].Integer)) // to the end, which frees it
	w.ask(t, "DEL", "p")
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if used, _ := local.Usage(); used != 0 {
		t.Errorf("%d bytes are counted, want none", used)
	}
}

// TestDumpKinds dumps filters of our own kinds and loads them elsewhere.
func TestDumpKinds(t *testing.T) {
	from, to := connectLocal(t, 1<<30), connectLocal(t, 1<<30)
	copyTo := func(w *wire, name, as string) (last resp.Reply) {
		for iterator := int64(0); ; {
			reply := from.ask(t, "BF.SCANDUMP", name, fmt.Sprint(iterator))
			if iterator = reply.Items[0].Integer; iterator == 0 {
				return last
			}
			if last = w.ask(t, "BF.LOADCHUNK", as, fmt.Sprint(iterator), reply.Items[1].Text); last.Kind == resp.SimpleError {
				return last
			}
		}
	}
	for name, words := range map[string]string{
		"fixed": "LAYOUT PAIRED NONSCALING PUBLIC", "scalable": "LAYOUT PAIRED EXPANSION 2 PUBLIC", "window": "WINDOW 1h PUBLIC",
	} {
		from.askOK(t, append([]string{"BF.RESERVE", name, "0.01", "3000"}, strings.Fields(words)...)...)
		count := 2500
		if name == "scalable" {
			count = 10_000
		}
		from.ask(t, numbered("k", count, "BF.MADD", name)...)
		if reply := copyTo(to, name, name); reply.Text != "OK" {
			t.Fatalf("%s: %v", name, reply)
		}
		to.wantAll(t, name, "k", count)
		questions := numbered("absent", 2000, "BF.MEXISTS", name)
		if a, b := plain(from.ask(t, questions...)), plain(to.ask(t, questions...)); a != b {
			t.Errorf("%s: the copy answers otherwise", name)
		}
		for _, word := range []string{"ITEMS", "LAYOUT", "CAPACITY", "FILTERS", "RATE"} {
			if a, b := plain(from.ask(t, "BF.INFO", name, word)), plain(to.ask(t, "BF.INFO", name, word)); a != b {
				t.Errorf("%s %s: %s, but the copy has %s", name, word, a, b)
			}
		}
	}
	// With a secret, only the store that has it can read it.
	from.askOK(t, "BF.RESERVE", "keyed", "0.01", "100", "LAYOUT", "PAIRED", "KEYED")
	from.ask(t, "BF.ADD", "keyed", "a")
	if reply := copyTo(from, "keyed", "again"); reply.Text != "OK" {
		t.Errorf("in the same store: %v", reply)
	}
	from.expect(t, "BF.EXISTS again a", ":1\r\n")
	if reply := copyTo(to, "keyed", "keyed"); !strings.Contains(reply.Text, "secret of another store") {
		t.Errorf("in another store: %v", reply)
	}
	to.expect(t, "EXISTS keyed", ":0\r\n")
}
