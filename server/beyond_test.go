package server

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
)

// ask sends a command and returns its reply.
func (w *wire) ask(t testing.TB, args ...string) resp.Reply {
	t.Helper()
	w.send(t, command(args...))
	return w.read(t)
}

// askOK is ask for a command whose reply must be OK.
func (w *wire) askOK(t testing.TB, args ...string) {
	t.Helper()
	if reply := w.ask(t, args...); reply.Text != "OK" || reply.Kind != resp.SimpleString {
		t.Fatalf("%s %s: %v, want OK", args[0], args[1], reply)
	}
}

// numbered returns a command followed by count items.
func numbered(prefix string, count int, args ...string) []string {
	for i := range count {
		args = append(args, fmt.Sprint(prefix, i))
	}
	return args
}

// wantAll checks that all items of BF.MEXISTS are there.
func (w *wire) wantAll(t testing.TB, name, prefix string, count int) {
	t.Helper()
	for i, item := range w.ask(t, numbered(prefix, count, "BF.MEXISTS", name)...).Items {
		if item.Integer != 1 {
			t.Fatalf("%s: %s%d was added and is absent", name, prefix, i)
		}
	}
}

// openLocal opens a store in memory until the test ends.
func openLocal(t testing.TB, memory uint64) *store.Local {
	t.Helper()
	local, err := store.OpenLocal(store.LocalConfig{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close() })
	return local
}

func connectLocal(t testing.TB, memory uint64) *wire {
	t.Helper()
	_, addr, _ := serveOn(t, openLocal(t, memory), Config{}, transports["loops"])
	return connect(t, addr)
}

// TestReserveKinds makes filters of every kind, and checks what BF.INFO says of them.
func TestReserveKinds(t *testing.T) {
	w := connectLocal(t, 1<<30)
	for name, kind := range map[string]struct{ words, layout, ttl string }{
		"plain":    {"", "redisbloom", ":-1\r\n"},
		"named":    {"LAYOUT REDISBLOOM", "redisbloom", ":-1\r\n"},
		"paired":   {"layout paired", "paired", ":-1\r\n"},
		"fixed":    {"LAYOUT PAIRED NONSCALING", "paired", ":-1\r\n"},
		"grows":    {"EXPANSION 4 LAYOUT PAIRED", "paired", ":-1\r\n"},
		"keyed":    {"LAYOUT PAIRED KEYED", "paired", ":-1\r\n"},
		"public":   {"LAYOUT PAIRED PUBLIC", "paired", ":-1\r\n"},
		"window":   {"WINDOW 24h", "window", ":-1\r\n"},
		"days":     {"WINDOW 2d PUBLIC", "window", ":-1\r\n"},
		"ends":     {"LAYOUT PAIRED TTL 4000", "paired", ":4000\r\n"},
		"ends too": {"TTL 4000", "redisbloom", ":4000\r\n"},
	} {
		args := append([]string{"BF.RESERVE", name, "0.01", "1000"}, strings.Fields(kind.words)...)
		w.askOK(t, args...)
		w.expect(t, "BF.INFO '"+name+"' LAYOUT", fmt.Sprintf("*1\r\n$%d\r\n%s\r\n", len(kind.layout), kind.layout))
		if ttl := w.must(t, "TTL '"+name+"'"); ttl != kind.ttl && ttl != ":3999\r\n" {
			t.Errorf("%s: TTL %q, want %q", name, ttl, kind.ttl)
		}
		w.ask(t, numbered("k", 500, "BF.MADD", name)...)
		w.wantAll(t, name, "k", 500)
		if n := w.ask(t, "BF.CARD", name).Integer; n < 480 || n > 500 {
			t.Errorf("%s: %d keys, want 500 or little less", name, n)
		}
	}
	for line, refusal := range map[string]string{
		"BF.RESERVE x 0.01 100 LAYOUT":                      "-ERR no value behind LAYOUT",
		"BF.RESERVE x 0.01 100 LAYOUT square":               "-ERR unknown layout 'square'",
		"BF.RESERVE x 0.01 100 WINDOW 0":                    "-ERR bad window",
		"BF.RESERVE x 0.01 100 WINDOW -1h":                  "-ERR bad window",
		"BF.RESERVE x 0.01 100 WINDOW 1h LAYOUT REDISBLOOM": "-ERR a filter of layout REDISBLOOM has no window",
		"BF.RESERVE x 0.01 100 TTL soon":                    "-ERR bad TTL",
		"BF.RESERVE x 0.01 100 LAYOUT PAIRED KEYED PUBLIC":  "-ERR KEYED and PUBLIC exclude each other",
		"BF.RESERVE x 0.01 100 LAYOUT REDISBLOOM KEYED":     "-ERR a filter of layout REDISBLOOM is always public",
		"BF.RESERVE x 0.01 0 LAYOUT PAIRED":                 "-ERR capacity must be in the range",
		"BF.RESERVE paired 0.01 100 LAYOUT PAIRED":          "-ERR item exists",
		"BF.INFO paired WIDTH":                              "-Invalid information value",
		"BF.INFO x RATE":                                    "-ERR not found",
	} {
		if got := w.must(t, line); !strings.HasPrefix(got, refusal) {
			t.Errorf("%s: got %q, want %s", line, got, refusal)
		}
	}
	w.expect(t, "EXISTS x", ":0\r\n")
}

// TestInfoBeyond checks the fields that RedisBloom does not have.
func TestInfoBeyond(t *testing.T) {
	w := connectLocal(t, 1<<30)
	for _, layout := range []string{"REDISBLOOM", "PAIRED"} {
		name := "f" + layout
		w.askOK(t, "BF.RESERVE", name, "0.01", "1000", "NONSCALING", "LAYOUT", layout)
		number := func(word string) float64 {
			reply := w.ask(t, "BF.INFO", name, word)
			var x float64
			if len(reply.Items) != 1 {
				t.Fatalf("%s %s: %v", name, word, reply)
			}
			if _, err := fmt.Sscan(reply.Items[0].Text, &x); err != nil {
				x = float64(reply.Items[0].Integer)
			}
			return x
		}
		if rate, fill := number("RATE"), number("FILL"); rate != 0 || fill != 0 {
			t.Errorf("%s, empty: rate %v, fill %v, want 0", layout, rate, fill)
		}
		if full := number("FULLAT"); full < 1000 || full > 1200 {
			t.Errorf("%s: full at %v, want 1000 or a little above", layout, full)
		}
		w.ask(t, numbered("k", 950, "BF.MADD", name)...)
		if rate, fill := number("RATE"), number("FILL"); rate < 0.002 || rate > 0.02 || fill < 0.2 || fill > 0.6 {
			t.Errorf("%s, nearly full: rate %v, fill %v, want about 0.01, and from 0.2 to 0.6", layout, rate, fill)
		}
	}
}

// TestWindowBurst adds the keys of a whole span to a window at once: the rate is the
// requested one, for keys while they are added and for absent keys, and BF.INFO reports
// it.
func TestWindowBurst(t *testing.T) {
	const n, run = 20_000, 500
	w := connectLocal(t, 1<<30)
	for i, rate := range []float64{0.1, 0.01, 0.001, 1e-4, 1e-6} {
		name := fmt.Sprint("w", i)
		w.askOK(t, append([]string{"BF.RESERVE", name, fmt.Sprint(rate), fmt.Sprint(n), "WINDOW", "24h"}, [][]string{nil, {"NONSCALING"}}[i%2]...)...)
		count := func(command, prefix string) (ones int) {
			for from := 0; from < n; from += run {
				for _, item := range w.ask(t, numbered(fmt.Sprint(prefix, from), run, command, name)...).Items {
					ones += int(item.Integer)
				}
			}
			return ones
		}
		most := int(rate*n + 4*math.Sqrt(rate*n))
		if isNew := count("BF.MADD", "key"); n-isNew > most {
			t.Errorf("p %g: %d of %d new keys were answered as new", rate, isNew, n)
		}
		if found := count("BF.MEXISTS", "stranger"); found > most {
			t.Errorf("p %g: %d of %d strangers were found", rate, found, n)
		}
		if found := count("BF.MEXISTS", "key"); found != n {
			t.Errorf("p %g: %d of %d keys are found", rate, found, n)
		}
		var told float64
		if fmt.Sscan(w.ask(t, "BF.INFO", name, "RATE").Items[0].Text, &told); !(told > 0 && told <= rate) {
			t.Errorf("p %g: BF.INFO says %g", rate, told)
		}
	}
}

// TestWindowInfo checks what BF.INFO says of windows, and that a window refuses keys
// where BF.INFO says so.
func TestWindowInfo(t *testing.T) {
	w := connectLocal(t, 1<<30)
	for _, tt := range []struct{ words, expansion, full string }{
		{"", ":2", "$-1"},
		{"EXPANSION 2", ":2", "$-1"},
		{"EXPANSION 0", "$-1", ":100"},
		{"NONSCALING", "$-1", ":100"},
	} {
		w.must(t, "FLUSHALL")
		w.askOK(t, append([]string{"BF.RESERVE", "w", "0.0001", "100", "WINDOW", "1h"}, strings.Fields(tt.words)...)...)
		w.expect(t, "BF.INFO w EXPANSION", "*1\r\n"+tt.expansion+"\r\n")
		w.expect(t, "BF.INFO w FULLAT", "*1\r\n"+tt.full+"\r\n")
		w.expect(t, "BF.INFO w CAPACITY", "*1\r\n:100\r\n")
		w.expect(t, "BF.INFO w FILTERS", "*1\r\n:1\r\n")
		w.ask(t, numbered("k", 100, "BF.MADD", "w")...)
		w.expect(t, "BF.INFO w ITEMS", "*1\r\n:100\r\n")
		w.wantAll(t, "w", "k", 100)
		got := w.must(t, "BF.ADD w more")
		if tt.full != "$-1" && got != "-"+textFull+"\r\n" || tt.full == "$-1" && got != ":1\r\n" {
			t.Errorf("%q: the 101st key is answered %q", tt.words, got)
		}
	}
	for _, words := range []string{"EXPANSION 4", "EXPANSION 1"} {
		if got := w.must(t, "BF.RESERVE x 0.01 100 WINDOW 1h "+words); !strings.HasPrefix(got, "-ERR a window grows by doubling") {
			t.Errorf("%s: %q", words, got)
		}
	}
}

// TestMerge merges filters, and checks that a merge that fails leaves nothing.
func TestMerge(t *testing.T) {
	w := connectLocal(t, 1<<30)
	for _, layout := range []string{"LAYOUT PAIRED NONSCALING", "LAYOUT PAIRED NONSCALING PUBLIC", "WINDOW 1h"} {
		w.must(t, "FLUSHALL")
		for _, name := range []string{"a", "b"} {
			w.askOK(t, append([]string{"BF.RESERVE", name, "0.01", "2000"}, strings.Fields(layout)...)...)
			w.ask(t, numbered(name, 700, "BF.MADD", name)...)
		}
		if got := w.must(t, "BF.MERGE all a b"); got != "+OK\r\n" {
			if layout != "WINDOW 1h" || !strings.HasPrefix(got, "-ERR ") {
				t.Errorf("%s: %q", layout, got)
			}
			w.expect(t, "EXISTS all", ":0\r\n")
			continue
		}
		w.wantAll(t, "all", "a", 700)
		w.wantAll(t, "all", "b", 700)
		w.expect(t, "BF.MERGE a a", "+OK\r\n")
		w.expect(t, "BF.MERGE a b", "+OK\r\n")
		w.wantAll(t, "a", "b", 700)
		w.expect(t, "BF.MERGE new a nothing", "-ERR not found\r\n")
		w.expect(t, "EXISTS new", ":0\r\n")
		w.askOK(t, "BF.RESERVE", "other", "0.001", "50", "LAYOUT", "PAIRED", "NONSCALING")
		if got := w.must(t, "BF.MERGE new a other"); got[0] != '-' {
			t.Errorf("a merge of filters of two sizes: %q", got)
		}
		w.expect(t, "EXISTS new", ":0\r\n")
		w.askOK(t, "SET", "text", "x")
		w.expect(t, "BF.MERGE a text", "-"+textWrongType+"\r\n")
	}
}

func TestFold(t *testing.T) {
	w := connectLocal(t, 1<<30)
	w.askOK(t, "BF.RESERVE", "f", "0.01", "10000", "LAYOUT", "PAIRED", "NONSCALING")
	w.ask(t, numbered("k", 2000, "BF.MADD", "f")...)
	size := func() int64 { return w.ask(t, "BF.INFO", "f", "SIZE").Items[0].Integer }
	before, folded := size(), false
	for by := 2; by <= 64 && !folded; by++ { // a factor of the number of blocks
		folded = w.ask(t, "BF.FOLD", "f", fmt.Sprint(by)).Text == "OK"
	}
	if after := size(); !folded || after >= before {
		t.Errorf("folded: %v, from %d bytes to %d", folded, before, after)
	}
	w.wantAll(t, "f", "k", 2000)
	w.askOK(t, "BF.RESERVE", "chain", "0.01", "100")
	for line, want := range map[string]string{
		"BF.FOLD f 0": "-ERR bad factor", "BF.FOLD f -1": "-ERR bad factor", "BF.FOLD f x": "-ERR bad factor",
		"BF.FOLD nothing 2": "-ERR not found", "BF.FOLD chain 2": "-ERR ",
	} {
		if got := w.must(t, line); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %s", line, got, want)
		}
	}
}

// TestSwapCycles rebuilds a filter next to the one that is read, and swaps them, while
// readers look up keys: no reader sees an error or a missing key.
func TestSwapCycles(t *testing.T) {
	const cycles, readers, keys = 200, 16, 50
	_, addr, _ := serveOn(t, openLocal(t, 1<<30), Config{Loops: 2}, transports["loops"])
	w := connect(t, addr)
	build := func(name string, cycle int) {
		w.askOK(t, "BF.RESERVE", name, "0.001", "200", "LAYOUT", []string{"PAIRED", "REDISBLOOM"}[cycle%2])
		w.ask(t, numbered("k", keys, "BF.MADD", name)...)
	}
	build("live", 0)
	w.expect(t, "BF.SWAP live nothing", "-ERR no such key\r\n")
	var over atomic.Bool
	var asked atomic.Int64
	var done sync.WaitGroup
	for range readers {
		r := connect(t, addr)
		done.Go(func() {
			sent := command(numbered("k", keys, "BF.MEXISTS", "live")...)
			for !over.Load() {
				got, err := r.raw(sent)
				if want := fmt.Sprintf("*%d\r\n", keys) + strings.Repeat(":1\r\n", keys); err != nil || got != want {
					t.Errorf("%q, error %v: want all keys to be there", got, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	for i := range cycles {
		build("next", i)
		w.askOK(t, "BF.SWAP", "live", "next")
		w.ask(t, "DEL", "next")
	}
	over.Store(true)
	done.Wait()
	if asked.Load() < readers {
		t.Errorf("%d questions, want more", asked.Load())
	}
}

// TestOneWinner lets 16 clients add the same keys at once: each key is new once.
func TestOneWinner(t *testing.T) {
	const clients, keys, each = 16, 20_000, 500
	for _, layout := range []string{"REDISBLOOM", "PAIRED"} {
		t.Run(layout, func(t *testing.T) {
			_, addr, _ := serveOn(t, openLocal(t, 1<<30), Config{Loops: 2}, transports["loops"])
			connect(t, addr).askOK(t, "BF.RESERVE", "k", "0.000000001", fmt.Sprint(keys), "LAYOUT", layout)
			wins := make([]atomic.Int32, keys)
			var done sync.WaitGroup
			for c := range clients {
				w := connect(t, addr)
				done.Go(func() {
					for part := range keys / each {
						from := (part + c*7) % (keys / each) * each // each begins elsewhere
						args := []string{"BF.MADD", "k"}
						for i := range each {
							args = append(args, fmt.Sprint("key:", from+i))
						}
						reply, err := resp.Reply{}, error(nil)
						if _, err = w.Write([]byte(command(args...))); err == nil {
							reply, err = w.reader.Read()
						}
						if err != nil || len(reply.Items) != each {
							t.Errorf("%d answers, error %v", len(reply.Items), err)
							return
						}
						for i, item := range reply.Items {
							wins[from+i].Add(int32(item.Integer))
						}
					}
				})
			}
			done.Wait()
			for i := range wins {
				if n := wins[i].Load(); n != 1 {
					t.Fatalf("key %d was new %d times", i, n)
				}
			}
		})
	}
}

// TestNoAllocationsLocal is TestNoAllocations with the store that servers have.
func TestNoAllocationsLocal(t *testing.T) {
	for _, words := range []string{"", "LAYOUT PAIRED NONSCALING", "LAYOUT PAIRED EXPANSION 2", "WINDOW 1h"} {
		b, c := newBatchClient(t, openLocal(t, 1<<30))
		if got := b.all(t, c, command(append([]string{"BF.RESERVE", "k", "0.01", "100000"}, strings.Fields(words)...)...)); got != "+OK\r\n" {
			t.Fatal(got)
		}
		var sent []byte
		for i := range 64 {
			sent = append(sent, command("BF.EXISTS", "k", fmt.Sprint("key:", i))...)
			sent = append(sent, command("BF.ADD", "k", fmt.Sprint("key:", i))...)
		}
		sent = append(sent, command("BF.MEXISTS", "k", "a", "b", "c")...)
		if n := testing.AllocsPerRun(100, func() {
			c.w.Buf = c.w.Buf[:0]
			b.begin()
			b.execute(c, sent)
			b.end()
		}); n != 0 && !raceEnabled {
			t.Errorf("%q: %v allocations in 129 commands, want none", words, n)
		}
	}
}

// TestReserveAbsurd requests filters that no machine has room for: the error names
// bytes, and nothing is left behind.
func TestReserveAbsurd(t *testing.T) {
	local := openLocal(t, 64<<20)
	_, addr, _ := serveOn(t, local, Config{}, transports["loops"])
	w := connect(t, addr)
	for _, line := range []string{
		"BF.RESERVE x 0.01 1073741824",
		"BF.RESERVE x 0.01 5000000000 LAYOUT PAIRED",
		"BF.RESERVE x 0.01 5000000000 LAYOUT PAIRED NONSCALING",
		"BF.RESERVE x 0.01 9000000000 WINDOW 24h",
		"BF.INSERT x CAPACITY 1073741824 ITEMS a",
	} {
		if got := w.must(t, line); !strings.HasPrefix(got, "-"+textNoMemory) || !strings.Contains(got, "bytes are needed") {
			t.Errorf("%s: got %q, want a refusal that names bytes", line, got)
		}
	}
	for _, line := range []string{"BF.RESERVE x 0.01 9223372036854775807 LAYOUT PAIRED", "BF.RESERVE x 1e-300 9000000000000000000 WINDOW 1h"} {
		if got := w.must(t, line); got[0] != '-' {
			t.Errorf("%s: got %q, want a refusal", line, got)
		}
	}
	if used, _ := local.Usage(); used != 0 || nameCount(local) != 0 {
		t.Errorf("%d bytes and %d names are left, want none", used, nameCount(local))
	}
}

// TestReserveEnds checks that a filter expires by its TTL, and that BF.ADD then makes a
// new one.
func TestReserveEnds(t *testing.T) {
	w := connectLocal(t, 1<<30)
	w.askOK(t, "BF.RESERVE", "k", "0.01", "100", "LAYOUT", "PAIRED", "TTL", "50ms")
	w.ask(t, "BF.ADD", "k", "a")
	waitFor(t, func() bool { return w.ask(t, "BF.EXISTS", "k", "a").Integer == 0 })
	w.expect(t, "BF.INFO k LAYOUT", "-ERR not found\r\n")
	w.expect(t, "BF.ADD k a", ":1\r\n")
	w.expect(t, "TTL k", ":-1\r\n")
}
