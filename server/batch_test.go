package server

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
	"pgregory.net/rapid"
)

// newBatchClient returns a client of a server without connections, and a batch to
// execute its commands.
func newBatchClient(t testing.TB, st store.Store) (*batch, *Client) {
	t.Helper()
	s, err := New(st, Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{server: s}
	c.setProtocol(2)
	c.deauthenticate()
	return newBatch(s), c
}

// all executes sent as one batch, with a long command at its end on a detour, and
// returns the replies.
func (b *batch) all(t testing.TB, c *Client, sent string) string {
	t.Helper()
	c.w.Buf = c.w.Buf[:0]
	b.begin()
	used := b.execute(c, []byte(sent))
	if err := b.end(); err != nil || used != len(sent) {
		t.Fatalf("%.200q: %d bytes executed, error %v, want %d", sent, used, err, len(sent))
	}
	if c.detour != nil {
		if err := c.server.takeDetour(c); err != nil {
			t.Fatalf("%.200q: %v", sent, err)
		}
		c.detour = nil
	}
	return string(c.w.Buf)
}

func TestRuns(t *testing.T) {
	add, exists := command("BF.ADD", "k", "a"), command("bf.exists", "k", "b")
	for _, tt := range []struct {
		name, sent, want string
		calls            int64
	}{
		{"one kind", strings.Repeat(exists, 64), strings.Repeat(":0\r\n", 64), 1},
		{"two kinds", add + add + exists + exists + add, ":1\r\n:0\r\n:0\r\n:0\r\n:0\r\n", 3},
		{"lists and singles", add + command("BF.MADD", "k", "b", "c", "b") + add, ":1\r\n*3\r\n:1\r\n:1\r\n:0\r\n:0\r\n", 1},
		{"two names", add + command("BF.ADD", "l", "a") + add, ":1\r\n:1\r\n:0\r\n", 3},
		{"another command between", exists + command("PING") + exists, ":0\r\n+PONG\r\n:0\r\n", 2},
		{"an error between", add + command("BF.ADD", "k") + add, ":1\r\n-ERR wrong number of arguments for 'bf.add' command\r\n:0\r\n", 2},
		{"full", command("BF.RESERVE", "f", "0.01", "2", "NONSCALING") +
			command("BF.ADD", "f", "a") + command("BF.MADD", "f", "b", "c", "d") + command("BF.ADD", "f", "e") + command("BF.MADD", "f", "a", "b"),
			"+OK\r\n:1\r\n*2\r\n:1\r\n-ERR non scaling filter is full\r\n-ERR non scaling filter is full\r\n*2\r\n:0\r\n:0\r\n", 3},
		{"not a filter", command("SET", "s", "x") + command("BF.ADD", "s", "a") + command("BF.MADD", "s", "a") + command("BF.MEXISTS", "s", "a", "b"),
			"+OK\r\n-" + textWrongType + "\r\n-" + textWrongType + "\r\n*2\r\n:0\r\n:0\r\n", 0},
		{"cuckoo filter", strings.Repeat(command("CF.ADD", "c", "a"), 2) + command("CF.INSERT", "c", "ITEMS", "a", "b") +
			command("CF.EXISTS", "c", "a") + command("CF.MEXISTS", "c", "b", "z") + command("CF.DEL", "c", "a") + command("CF.DEL", "c", "z") +
			command("CF.ADDNX", "c", "a") + command("CF.ADDNX", "c", "d"),
			":1\r\n:1\r\n*2\r\n:1\r\n:1\r\n:1\r\n*2\r\n:1\r\n:0\r\n:1\r\n:0\r\n:0\r\n:1\r\n", 5},
		{"BF and CF", command("BF.EXISTS", "k", "a") + command("CF.EXISTS", "k", "a") + command("CF.ADD", "k", "a") + command("CF.DEL", "k", "a") + command("BF.DEL", "k", "a"),
			":0\r\n:0\r\n-" + textWrongType + "\r\n-Not found\r\n-" + textNoRemovals + "\r\n", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := newFakeStore()
			b, c := newBatchClient(t, st)
			if tt.name != "not a filter" && tt.name != "full" {
				b.all(t, c, command("BF.RESERVE", "k", "0.01", "100")+command("BF.RESERVE", "l", "0.01", "100"))
			}
			if got := b.all(t, c, tt.sent); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if n := st.calls.Load(); n != tt.calls {
				t.Errorf("%d calls of the filter, want %d", n, tt.calls)
			}
		})
	}
}

// TestRunAcrossClients checks that clients of one batch share a call, and that
// each gets its own replies.
func TestRunAcrossClients(t *testing.T) {
	st := newFakeStore()
	b, first := newBatchClient(t, st)
	b.all(t, first, command("BF.MADD", "k", "1", "3"))
	st.calls.Store(0)
	first.w.Buf = nil
	clients := []*Client{first}
	for len(clients) < 5 {
		c := &Client{server: first.server}
		c.setProtocol(2 + len(clients)%2)
		c.deauthenticate()
		clients = append(clients, c)
	}
	b.begin()
	for i, c := range clients {
		b.execute(c, []byte(command("BF.EXISTS", "k", fmt.Sprint(i))))
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	for i, c := range clients {
		if got, want := string(c.w.Buf), []string{":0\r\n", "#t\r\n", ":0\r\n", "#t\r\n", ":0\r\n"}[i]; got != want {
			t.Errorf("client %d: got %q, want %q", i, got, want)
		}
	}
	if n := st.calls.Load(); n != 1 {
		t.Errorf("%d calls of the filter, want 1", n)
	}
}

// TestNoAllocations is the promise of the hot path.
func TestNoAllocations(t *testing.T) {
	st := newFakeStore()
	b, c := newBatchClient(t, st)
	b.all(t, c, command("BF.RESERVE", "k", "0.01", "100000"))
	var sent []byte
	for i := range 64 {
		sent = append(sent, command("BF.EXISTS", "k", fmt.Sprint("key:", i))...)
	}
	for i := range 64 {
		sent = append(sent, command("BF.ADD", "k", fmt.Sprint("key:", i))...)
	}
	sent = append(sent, command("BF.MEXISTS", "k", "a", "b", "c")...)
	b.all(t, c, command("CF.RESERVE", "c", "100000"))
	for _, name := range []string{"CF.ADD", "CF.EXISTS", "CF.DEL", "CF.ADDNX", "CF.DEL"} {
		for i := range 64 {
			sent = append(sent, command(name, "c", fmt.Sprint("key:", i))...)
		}
	}
	sent = append(sent, command("CF.MEXISTS", "c", "a", "b", "c")...)
	if n := testing.AllocsPerRun(100, func() {
		c.w.Buf = c.w.Buf[:0]
		b.begin()
		b.execute(c, sent)
		b.end()
	}); n != 0 && !raceEnabled {
		t.Errorf("450 commands: %v allocations, want none", n)
	}
}

// A step of the model test is a command and its possible arguments.
func drawCommand(t *rapid.T, name string) []string {
	item := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"})
	items := rapid.SliceOfN(item, 1, 6)
	if strings.HasPrefix(name, "nest") {
		switch rapid.IntRange(0, 8).Draw(t, "command") {
		case 0, 1:
			return []string{"CF.ADD", name, item.Draw(t, "item")}
		case 2:
			return []string{"cf.addnx", name, item.Draw(t, "item")}
		case 3:
			return []string{"CF.EXISTS", name, item.Draw(t, "item")}
		case 4:
			return append([]string{"CF.MEXISTS", name}, items.Draw(t, "items")...)
		case 5:
			return append([]string{"CF.INSERT", name, "ITEMS"}, items.Draw(t, "items")...)
		case 6:
			return append([]string{"CF.INSERTNX", name, "CAPACITY", "8", "ITEMS"}, items.Draw(t, "items")...)
		default:
			return []string{"CF.DEL", name, item.Draw(t, "item")}
		}
	}
	if strings.HasPrefix(name, "counts") && rapid.Bool().Draw(t, "remove") {
		return rapid.SampledFrom([][]string{{"BF.DEL", name, item.Draw(t, "item")}, append([]string{"BF.MDEL", name}, items.Draw(t, "items")...),
			{"BF.COUNT", name, item.Draw(t, "item")}}).Draw(t, "removal")
	}
	switch rapid.IntRange(0, 11).Draw(t, "command") {
	case 0, 1, 2:
		return []string{"BF.ADD", name, item.Draw(t, "item")}
	case 3, 4:
		return append([]string{"bf.madd", name}, items.Draw(t, "items")...)
	case 5, 6, 7:
		return []string{"BF.EXISTS", name, item.Draw(t, "item")}
	case 8:
		return append([]string{"BF.MEXISTS", name}, items.Draw(t, "items")...)
	case 9:
		return append([]string{"BF.INSERT", name, "ITEMS"}, items.Draw(t, "items")...)
	case 10:
		return []string{"BF.CARD", name}
	default:
		return rapid.SampledFrom([][]string{{"PING"}, {"BF.ADD", name}, {"nosuch", "x"}, {"BF.INFO", name}, {"DEL", name}, {"ECHO", "x"}}).Draw(t, "other")
	}
}

// TestPipelinesAgree sends the same commands as pipelines, split anywhere, and one by
// one to another server: the replies are the same, byte for byte. Some of the filters
// get full.
func TestPipelinesAgree(t *testing.T) {
	addrs := map[string]string{}
	for name, wrap := range transports {
		_, addrs[name], _ = serveOn(t, openLocal(t, 0), Config{}, wrap)
	}
	_, slowly, _ := serveOn(t, openLocal(t, 0), Config{}, transports["loops"])
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		names := []string{fmt.Sprint("grows", run), fmt.Sprint("fills", run), fmt.Sprint("counts", run), fmt.Sprint("nest", run), fmt.Sprint("nest fills", run)}
		commands := []string{
			command("BF.RESERVE", names[1], "0.001", "5", "NONSCALING"),
			command("BF.RESERVE", names[2], "0.001", "9", "NONSCALING", "LAYOUT", "COUNTING", "PUBLIC"),
			command("CF.RESERVE", names[4], "8", "EXPANSION", "0"),
		}
		sent := strings.Join(commands, "")
		for range rapid.IntRange(1, 60).Draw(rt, "commands") {
			text := command(drawCommand(rt, rapid.SampledFrom(names).Draw(rt, "name"))...)
			commands = append(commands, text)
			sent += text
		}
		w := connect(t, slowly)
		var want bytes.Buffer
		for _, text := range commands {
			reply, err := w.raw(text)
			if err != nil {
				rt.Fatal(err)
			}
			want.WriteString(reply)
		}
		w.Close()
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(sent)), 0, 3).Draw(rt, "cuts")
		slices.Sort(cuts)
		for name, addr := range addrs {
			w := connect(t, addr)
			from := 0
			for _, cut := range append(cuts, len(sent)) {
				w.send(t, sent[from:cut])
				from = cut
			}
			for range commands {
				w.read(t)
			}
			if got := w.reader.seen.String(); got != want.String() {
				rt.Fatalf("%s: got %q, want %q, for %q", name, got, want.String(), sent)
			}
			w.Close()
		}
	})
}

// TestManyConnections adds from several connections at once, in pipelines, and checks
// against an exact set: no added key is ever absent, each key is new at most once, and
// BF.CARD is the number of keys that were new.
func TestManyConnections(t *testing.T) {
	for name, wrap := range transports {
		t.Run(name, func(t *testing.T) {
			_, addr, _ := serveOn(t, newFakeStore(), Config{Loops: 2}, wrap)
			connect(t, addr).must(t, "BF.RESERVE k 0.000001 20000")
			var mu sync.Mutex
			fresh := map[string]int{}
			var done sync.WaitGroup
			for i := range 6 {
				w := connect(t, addr)
				random := rand.New(rand.NewPCG(1, uint64(i)))
				done.Go(func() {
					for range 40 {
						var sent strings.Builder
						var keys []string
						for range 1 + random.IntN(50) {
							key := fmt.Sprint(random.IntN(2000))
							keys = append(keys, key)
							sent.WriteString(command("BF.ADD", "k", key) + command("BF.MEXISTS", "k", key, key))
						}
						w.send(t, sent.String())
						for _, key := range keys {
							added, err := w.reader.Read()
							found, err2 := w.reader.Read()
							if err != nil || err2 != nil || added.Kind != resp.Integer || len(found.Items) != 2 {
								t.Errorf("replies %v, %v, errors %v, %v", added, found, err, err2)
								return
							}
							if found.Items[0].Integer != 1 || found.Items[1].Integer != 1 {
								t.Errorf("%s was added and is absent", key)
							}
							if added.Integer == 1 {
								mu.Lock()
								fresh[key]++
								mu.Unlock()
							}
						}
					}
				})
			}
			done.Wait()
			for key, n := range fresh {
				if n != 1 {
					t.Errorf("%s was new %d times", key, n)
				}
			}
			connect(t, addr).expect(t, "BF.CARD k", fmt.Sprintf(":%d\r\n", len(fresh)))
		})
	}
}

// TestManyConnectionsRemove adds and removes items from several connections at once, in
// pipelines, the same items in all of them: what a connection has added is there until it
// removes it, and at the end nothing is left.
func TestManyConnectionsRemove(t *testing.T) {
	for _, tt := range []struct{ name, reserve, add, exists, remove, items string }{
		{"cuckoo", "CF.RESERVE k 100 EXPANSION 2", "CF.ADD", "CF.EXISTS", "CF.DEL", "CF.DEBUG k"},
		{"counting", "BF.RESERVE k 0.000001 100 LAYOUT COUNTING", "BF.ADD", "BF.EXISTS", "BF.DEL", "BF.CARD k"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, addr, _ := serveOn(t, openLocal(t, 0), Config{Loops: 2}, transports["loops"])
			w := connect(t, addr)
			w.expect(t, tt.reserve, "+OK\r\n")
			var done sync.WaitGroup
			for i := range 6 {
				w := connect(t, addr)
				random := rand.New(rand.NewPCG(2, uint64(i)))
				mine := map[string]int{}
				done.Go(func() {
					for round := range 40 {
						var sent strings.Builder
						var removals []bool
						change := func(key string, remove bool) {
							if remove {
								mine[key]--
								sent.WriteString(command(tt.exists, "k", key) + command(tt.remove, "k", key))
							} else {
								mine[key]++
								sent.WriteString(command(tt.add, "k", key) + command(tt.exists, "k", key))
							}
							removals = append(removals, remove)
						}
						for range 1 + random.IntN(50) {
							key := fmt.Sprint(random.IntN(500))
							change(key, mine[key] > 1 || mine[key] > 0 && random.IntN(2) == 0)
						}
						for key := range mine {
							for round == 39 && mine[key] > 0 {
								change(key, true)
							}
						}
						w.send(t, sent.String())
						for _, removal := range removals {
							first, err := w.reader.Read()
							second, err2 := w.reader.Read()
							if err != nil || err2 != nil || second.Integer != 1 || removal && first.Integer != 1 {
								t.Errorf("replies %v, %v, errors %v, %v: an item that was added is absent", first, second, err, err2)
								return
							}
						}
					}
				})
			}
			done.Wait()
			if got := w.must(t, tt.items); got != ":0\r\n" && !strings.Contains(got, " items:0 ") {
				t.Errorf("at the end: %s answers %q, want no items", tt.items, got)
			}
		})
	}
}
