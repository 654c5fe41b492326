package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/resp"
)

// payloadOf returns the reply of DUMP.
func (w *wire) payloadOf(t testing.TB, name string) string {
	t.Helper()
	return w.ask(t, "DUMP", name).Text
}

// begin sends a command that the store will block, and waits until it is blocked.
func (w *wire) begin(t testing.TB, h *hold, args ...string) {
	t.Helper()
	w.send(t, command(args...))
	select {
	case <-h.entered:
	case <-time.After(time.Minute):
		t.Fatalf("%s has not reached the store within 10 s", args[0])
	}
}

// wantNow sends commands that must be answered at once, whatever other clients do.
func (w *wire) wantNow(t testing.TB, want string, args ...string) {
	t.Helper()
	w.send(t, command(args...))
	w.SetDeadline(time.Now().Add(2 * time.Second))
	w.reader.seen.Reset()
	if _, err := w.reader.Read(); err != nil {
		t.Fatalf("%s: %v", args[0], err)
	}
	if got := w.reader.seen.String(); got != want {
		t.Errorf("%s: got %q, want %q", args[0], got, want)
	}
}

// TestNobodyWaits blocks each command that may take long, in the store: others are
// answered at once, on the same loop, including those that run alone.
func TestNobodyWaits(t *testing.T) {
	eachTransport(t, Config{Loops: 1}, func(t *testing.T, s *Server, st *fakeStore, addr string) {
		w, other := connect(t, addr), connect(t, addr)
		for _, name := range []string{"a", "b", "c"} {
			w.expect(t, "BF.ADD "+name+" x", ":1\r\n")
		}
		payload := w.payloadOf(t, "a")
		header := w.ask(t, "BF.SCANDUMP", "a", "0").Items[1].Text
		for i, args := range [][]string{
			{"BF.MERGE", "a", "b"}, {"BF.MERGE", "new", "b"}, {"BF.FOLD", "a", "2"},
			{"BF.SCANDUMP", "a", "0"}, {"BF.LOADCHUNK", "loaded", "1", header}, {"BF.LOADCHUNK", "a", "9", "12345678"},
			{"DUMP", "a"}, {"RESTORE", "restored", "0", payload}, {"RESTORE", "a", "0", payload, "REPLACE"},
			{"KEYS", "*"}, {"SCAN", "0"}, {"RANDOMKEY"},
		} {
			h, letGo := st.holdLong(t)
			w.begin(t, h, args...)
			other.wantNow(t, "+PONG\r\n", "PING")
			other.wantNow(t, ":1\r\n", "BF.ADD", "c", fmt.Sprint("y", i))
			other.wantNow(t, ":1\r\n", "BF.EXISTS", "c", "x")
			other.wantNow(t, "+OK\r\n", "SET", "s", "x")
			if info := other.must(t, "INFO clients"); !strings.Contains(info, "blocked_clients:1\r\n") {
				t.Errorf("%s: %q", args[0], info)
			}
			letGo()
			w.read(t)
			w.expect(t, "PING", "+PONG\r\n")
		}
		if n := s.aside.Load(); n != 0 {
			t.Errorf("%d filters are being made", n)
		}
	})
}

// TestNobodyWaitsForSave is the same for SAVE.
func TestNobodyWaitsForSave(t *testing.T) {
	for name, wrap := range transports {
		t.Run(name, func(t *testing.T) {
			st := &savingStore{fakeStore: newFakeStore(), ends: make(chan error)}
			_, addr, _ := serveOn(t, st, Config{Loops: 1}, wrap)
			end := sync.OnceFunc(func() { close(st.ends) })
			t.Cleanup(end)
			w, other := connect(t, addr), connect(t, addr)
			w.send(t, command("SAVE"))
			waitFor(t, func() bool { return st.begun.Load() == 1 })
			other.wantNow(t, "+PONG\r\n", "PING")
			other.wantNow(t, "-"+textSaving+"\r\n", "SAVE")
			end()
			if reply := w.read(t); reply.Text != "OK" {
				t.Errorf("SAVE: %v, want OK", reply)
			}
		})
	}
}

// TestManyArguments: a command with many arguments is a long command.
func TestManyArguments(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, _ *Server, st *fakeStore, addr string) {
		w := connect(t, addr)
		w.expect(t, "BF.RESERVE k 0.01 100000", "+OK\r\n")
		add := numbered("key", manyArguments, "BF.MADD", "k")
		for _, tt := range []struct {
			args []string
			want int64
		}{{add, 1}, {add, 0}, {append([]string{"BF.MEXISTS"}, add[1:]...), 1}} {
			reply := w.ask(t, tt.args...)
			count := 0
			for _, item := range reply.Items {
				if item.Integer == tt.want {
					count++
				}
			}
			if len(reply.Items) != manyArguments || count < manyArguments*98/100 {
				t.Errorf("%s: %d answers, %d of them %d", tt.args[0], len(reply.Items), count, tt.want)
			}
		}
		w.send(t, command(append([]string{"EXISTS"}, add[1:]...)...)+command("PING"))
		if reply := w.read(t); reply.Integer != 1 {
			t.Errorf("EXISTS: %v, want 1", reply)
		}
		if reply := w.read(t); reply.Text != "PONG" {
			t.Errorf("PING: %v", reply)
		}
	})
}

// TestDetourKeepsOrder sends long commands and short ones as one pipeline, split at
// random places: the replies are those of sending them one by one.
func TestDetourKeepsOrder(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, s *Server, st *fakeStore, addr string) {
		source := connect(t, addr)
		source.expect(t, "BF.RESERVE big 0.001 40000", "+OK\r\n") // dumps longer than one read
		source.ask(t, numbered("key", 1000, "BF.MADD", "big")...)
		header := source.ask(t, "BF.SCANDUMP", "big", "0").Items[1].Text
		chunk := source.ask(t, "BF.SCANDUMP", "big", "1")
		next, bits := fmt.Sprint(chunk.Items[0].Integer), chunk.Items[1].Text
		type sent struct {
			args   []string
			silent bool // by CLIENT REPLY
		}
		pipeline := func(name string) []sent {
			return []sent{
				{args: []string{"PING"}}, {args: []string{"BF.LOADCHUNK", name, "1", header}}, {args: []string{"BF.LOADCHUNK", name, next, bits}},
				{args: []string{"BF.ADD", name, "key1"}}, {args: []string{"BF.EXISTS", name, "key999"}},
				{args: []string{"BF.ADD", name, "another one"}},
				{args: []string{"BF.SCANDUMP", name, "0"}}, {[]string{"CLIENT", "REPLY", "SKIP"}, true},
				{[]string{"BF.SCANDUMP", name, "1"}, true}, {args: []string{"BF.CARD", name}},
				{[]string{"CLIENT", "REPLY", "OFF"}, true}, {[]string{"DUMP", name}, true}, {[]string{"PING"}, true}, {args: []string{"CLIENT", "REPLY", "ON"}},
				{args: []string{"MULTI"}}, {args: []string{"BF.SCANDUMP", name, "1"}}, {args: []string{"BF.MERGE", name, name}}, {args: []string{"EXEC"}},
				{args: []string{"BF.SCANDUMP", name, "none"}}, {args: []string{"BF.SCANDUMP", name, "1"}},
				{args: []string{"BF.MERGE", "x", "nothing"}}, {args: []string{"ECHO", "end"}},
			}
		}
		var want strings.Builder
		one := connect(t, addr)
		for _, cmd := range pipeline("one") {
			one.send(t, command(cmd.args...))
			if !cmd.silent {
				one.reader.seen.Reset()
				one.read(t)
				want.WriteString(one.reader.seen.String())
			}
		}
		random := rand.New(rand.NewPCG(1, 2))
		for round := range 8 {
			name := fmt.Sprint("pipelined", round)
			w, sent := connect(t, addr), ""
			for _, cmd := range pipeline(name) {
				sent += command(cmd.args...)
			}
			go func() {
				for len(sent) > 0 {
					n := min(1+random.IntN(60<<10), len(sent))
					io.WriteString(w, sent[:n])
					sent = sent[n:]
				}
			}()
			got := make([]byte, want.Len())
			w.SetDeadline(time.Now().Add(time.Minute))
			if n, err := io.ReadFull(w, got); err != nil {
				t.Fatalf("%d bytes of %d: %v", n, len(got), err)
			}
			if string(got) != want.String() {
				t.Fatalf("the pipeline's answers differ from those of single commands, after %d bytes", commonPrefix(string(got), want.String()))
			}
		}
	})
}

func commonPrefix(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// TestDetourKilled kills a client, and resets another's connection, while their
// commands are under way: nothing more from them is executed, and they are forgotten.
func TestDetourKilled(t *testing.T) {
	eachTransport(t, Config{Loops: 1}, func(t *testing.T, s *Server, st *fakeStore, addr string) {
		other := connect(t, addr)
		other.expect(t, "BF.ADD a x", ":1\r\n")
		for _, how := range []string{"killed", "cut"} {
			w := connect(t, addr)
			id := w.must(t, "CLIENT ID")[1:]
			h, letGo := st.holdLong(t)
			w.begin(t, h, "BF.SCANDUMP", "a", "0")
			w.send(t, command("SET", how, "x"))
			if how == "killed" {
				other.wantNow(t, ":1\r\n", "CLIENT", "KILL", "ID", strings.TrimSpace(id))
			} else {
				w.Conn.(*net.TCPConn).SetLinger(0) // a reset
				w.Close()
			}
			other.wantNow(t, "+PONG\r\n", "PING")
			letGo()
			waitFor(t, func() bool { return s.clientCount() == 1 })
			if how == "killed" {
				other.expect(t, "EXISTS killed", ":0\r\n")
			}
		}
	})
}

// TestDetourOfHalfClosed sends a long command and shuts its side of the connection.
func TestDetourOfHalfClosed(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, _ *Server, st *fakeStore, addr string) {
		w := connect(t, addr)
		w.expect(t, "BF.ADD a x", ":1\r\n")
		h, letGo := st.holdLong(t)
		w.begin(t, h, "DUMP", "a")
		w.send(t, command("PING"))
		w.Conn.(*net.TCPConn).CloseWrite()
		letGo()
		if reply := w.read(t); reply.Kind != resp.Bulk {
			t.Errorf("DUMP: %v", reply)
		}
		if reply := w.read(t); reply.Text != "PONG" {
			t.Errorf("PING: %v", reply)
		}
		w.wantEnd(t, "")
	})
}

// TestShutdownWaits: a command that is under way at shutdown is finished, and those
// received after it are executed.
func TestShutdownWaits(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, s *Server, st *fakeStore, addr string) {
		w := connect(t, addr)
		w.expect(t, "BF.ADD a x", ":1\r\n")
		h, letGo := st.holdLong(t)
		w.begin(t, h, "BF.SCANDUMP", "a", "0")
		w.send(t, command("BF.EXISTS", "a", "x"))
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(t.Context()) }()
		waitFor(t, s.isStopping)
		time.Sleep(3 * drainTime)
		select {
		case err := <-ended:
			t.Fatalf("Shutdown has returned, with error %v, while a command was being executed", err)
		default:
		}
		letGo()
		if reply := w.read(t); len(reply.Items) != 2 {
			t.Errorf("BF.SCANDUMP: %v", reply)
		}
		if reply := w.read(t); reply.Integer != 1 {
			t.Errorf("BF.EXISTS: %v, want 1", reply)
		}
		w.wantEnd(t, "")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestShutdownEnds: a command that never ends does not keep the server running.
func TestShutdownEnds(t *testing.T) {
	t.Parallel() // it waits
	eachTransport(t, Config{}, func(t *testing.T, s *Server, st *fakeStore, addr string) {
		w := connect(t, addr)
		w.expect(t, "BF.ADD a x", ":1\r\n")
		h, letGo := st.holdLong(t)
		w.begin(t, h, "BF.SCANDUMP", "a", "0")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: error %v, want %v", err, context.DeadlineExceeded)
		}
		if took := time.Since(start); took < detourTime || took > 3*detourTime {
			t.Errorf("Shutdown took %v, want about %v", took, detourTime)
		}
		letGo()
		waitFor(t, func() bool { return s.clientCount() == 0 })
	})
}

// TestIdleDetour: a client that waits for a long command is not idle.
func TestIdleDetour(t *testing.T) {
	t.Parallel() // it waits
	eachTransport(t, Config{Limits: Limits{Idle: time.Second}}, func(t *testing.T, _ *Server, st *fakeStore, addr string) {
		w := connect(t, addr)
		w.expect(t, "BF.ADD a x", ":1\r\n")
		h, letGo := st.holdLong(t)
		w.begin(t, h, "BF.SCANDUMP", "a", "0")
		time.Sleep(2500 * time.Millisecond)
		letGo()
		if reply := w.read(t); len(reply.Items) != 2 {
			t.Errorf("BF.SCANDUMP: %v", reply)
		}
	})
}

// TestDetourLimit sends more long commands than may run at a time.
func TestDetourLimit(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, s *Server, st *fakeStore, addr string) {
		other := connect(t, addr)
		other.expect(t, "BF.ADD a x", ":1\r\n")
		h, letGo := st.holdLong(t)
		var clients []*wire
		for range 3 * maxDetours {
			w := connect(t, addr)
			w.send(t, command("BF.SCANDUMP", "a", "0"))
			clients = append(clients, w)
		}
		for range maxDetours {
			<-h.entered
		}
		waitFor(t, func() bool {
			return strings.Contains(other.must(t, "INFO clients"), fmt.Sprintf("blocked_clients:%d\r\n", len(clients)))
		})
		select {
		case <-h.entered:
			t.Errorf("more than %d at a time", maxDetours)
		case <-time.After(50 * time.Millisecond):
		}
		letGo()
		for _, w := range clients {
			if reply := w.read(t); len(reply.Items) != 2 {
				t.Errorf("BF.SCANDUMP: %v", reply)
			}
		}
	})
}

// TestRestoreIsOneStep lists the names while a filter is being restored: it is absent,
// and then it is there.
func TestRestoreIsOneStep(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, s *Server, st *fakeStore, addr string) {
		w, other := connect(t, addr), connect(t, addr)
		w.expect(t, "BF.ADD a x", ":1\r\n")
		payload := w.payloadOf(t, "a")
		restore := func(args ...string) (letGo func()) {
			h, letGo := st.holdLong(t)
			w.begin(t, h, append([]string{"RESTORE", "r", "0", payload}, args...)...)
			h.end <- struct{}{} // the header
			<-h.entered         // the bits
			st.hold.Store(nil)
			return letGo
		}
		letGo := restore()
		other.expect(t, "KEYS *", "*1\r\n$1\r\na\r\n")
		other.expect(t, "DBSIZE", ":1\r\n")
		other.expect(t, "SCAN 0", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n")
		other.expect(t, "RANDOMKEY", "$1\r\na\r\n")
		other.expect(t, "EXISTS r", ":0\r\n")
		letGo()
		if reply := w.read(t); reply.Text != "OK" {
			t.Errorf("RESTORE: %v", reply)
		}
		other.expect(t, "DBSIZE", ":2\r\n")
		other.expect(t, "BF.EXISTS r x", ":1\r\n")
		other.expect(t, "DEL r", ":1\r\n")

		letGo = restore()
		other.expect(t, "SET r mine", "+OK\r\n")
		letGo()
		if reply := w.read(t); reply.Text != textBusy {
			t.Errorf("RESTORE to a name that was given meanwhile: %v, want %s", reply, textBusy)
		}
		other.expect(t, "GET r", "$4\r\nmine\r\n")
		letGo = restore("REPLACE")
		other.expect(t, "GET r", "$4\r\nmine\r\n")
		letGo()
		if reply := w.read(t); reply.Text != "OK" {
			t.Errorf("RESTORE REPLACE: %v", reply)
		}
		other.expect(t, "BF.EXISTS r x", ":1\r\n")
		if n := nameCount(st); n != 2 {
			t.Errorf("%d names in the store, want 2", n)
		}
	})
}

// TestWatchedMeanwhile: a transaction fails if a long command is changing what it
// watches, whichever began first.
func TestWatchedMeanwhile(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, _ *Server, st *fakeStore, addr string) {
		w, early, late, after := connect(t, addr), connect(t, addr), connect(t, addr), connect(t, addr)
		w.expect(t, "BF.ADD a x", ":1\r\n")
		w.expect(t, "BF.ADD b x", ":1\r\n")
		early.expect(t, "WATCH a", "+OK\r\n")
		h, letGo := st.holdLong(t)
		w.begin(t, h, "BF.FOLD", "a", "2")
		late.expect(t, "WATCH a", "+OK\r\n")
		after.expect(t, "WATCH b", "+OK\r\n")
		for _, tt := range []struct {
			w    *wire
			want string
		}{{early, "*-1\r\n"}, {late, "*-1\r\n"}, {after, "*1\r\n+PONG\r\n"}} {
			tt.w.expect(t, "MULTI", "+OK\r\n")
			tt.w.expect(t, "PING", "+QUEUED\r\n")
			tt.w.expect(t, "EXEC", tt.want)
		}
		letGo()
		w.read(t)
		late.expect(t, "WATCH a", "+OK\r\n")
		late.expect(t, "MULTI", "+OK\r\n")
		late.expect(t, "EXEC", "*0\r\n")
	})
}

// TestDetourInvalidates: a tracking client is notified of what a long command has
// written, after its own replies; and its reads by long commands are noted.
func TestDetourInvalidates(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, _ *Server, st *fakeStore, addr string) {
		w, other := connect(t, addr), connect(t, addr)
		w.must(t, "HELLO 3")
		w.expect(t, "CLIENT TRACKING ON", "+OK\r\n")
		other.expect(t, "BF.ADD a x", ":1\r\n")
		payload := other.payloadOf(t, "a")
		w.must(t, "BF.EXISTS a x")
		if reply := other.ask(t, "RESTORE", "a", "0", payload, "REPLACE"); reply.Text != "OK" {
			t.Fatal(reply)
		}
		if names := w.pushed(t, 1); len(names) != 1 || names[0] != "a" {
			t.Errorf("told of %q, want a", names)
		}
		h, letGo := st.holdLong(t)
		w.begin(t, h, "DUMP", "a")
		other.expect(t, "BF.ADD a another", ":1\r\n")
		letGo()
		if reply := w.read(t); reply.Kind == resp.Push { // it comes after the reply
			t.Errorf("the first reply is %v, want the dump", reply)
		}
		if reply := w.read(t); reply.Kind != resp.Push {
			t.Errorf("the second reply is %v, want a push", reply)
		}
	})
}

// TestMergeMeanwhile has many clients merge into one new name, while others create and
// delete it: only complete filters are ever seen under it, and nothing is left behind.
func TestMergeMeanwhile(t *testing.T) {
	st := openLocal(t, 0)
	s, addr, _ := serveOn(t, st, Config{}, transports["loops"])
	w := connect(t, addr)
	const keys = 200
	for _, name := range []string{"a", "b"} {
		w.askOK(t, "BF.RESERVE", name, "0.001", "1000")
		w.ask(t, numbered(name, keys, "BF.MADD", name)...)
	}
	var running sync.WaitGroup
	for i := range 6 {
		running.Go(func() {
			w := connect(t, addr)
			for range 60 {
				switch i {
				case 0:
					w.ask(t, "DEL", "to")
				case 1:
					found := w.ask(t, append(numbered("a", keys, "BF.MEXISTS", "to"), numbered("b", keys)...)...)
					there := 0
					for _, item := range found.Items {
						there += int(item.Integer)
					}
					if there != 0 && there != 2*keys {
						t.Errorf("%d of %d keys are in the merged filter", there, 2*keys)
					}
				default:
					w.ask(t, "BF.MERGE", "to", "a", "b")
				}
			}
		})
	}
	running.Wait()
	w.ask(t, "DEL", "to")
	if names, _, _ := st.List(0, 100); len(names) != 2 || s.aside.Load() != 0 || nameCount(st) != 2 {
		t.Errorf("names %q, %d in the store, %d being made", names, nameCount(st), s.aside.Load())
	}
}

// TestDetourStress has clients pipeline long and short commands, be killed and reset
// their connections, over both transports. It is meant for the race detector.
func TestDetourStress(t *testing.T) {
	for name, wrap := range transports {
		t.Run(name, func(t *testing.T) {
			st := openLocal(t, 0)
			s, addr, _ := serveOn(t, st, Config{Loops: 2}, wrap)
			w := connect(t, addr)
			for _, reserve := range []string{
				"BF.RESERVE r 0.01 1000", "BF.RESERVE p 0.01 1000 LAYOUT PAIRED", "BF.RESERVE w 0.01 1000 WINDOW 1h", "BF.RESERVE q 0.01 1000",
			} {
				w.expect(t, reserve, "+OK\r\n")
			}
			payload := w.payloadOf(t, "r")
			var ended atomic.Bool
			var clients, killers sync.WaitGroup
			for i := range 8 {
				clients.Go(func() {
					random := rand.New(rand.NewPCG(3, uint64(i)))
					for range 12 {
						stressed(t, addr, random, payload)
					}
				})
			}
			killers.Go(func() {
				w := connect(t, addr)
				random := rand.New(rand.NewPCG(4, 5))
				for !ended.Load() {
					w.ask(t, "CLIENT", "KILL", "ID", fmt.Sprint(1+random.IntN(100)))
					w.ask(t, "CLIENT", "LIST")
					w.ask(t, "INFO", "clients")
					time.Sleep(time.Millisecond)
				}
			})
			clients.Wait()
			ended.Store(true)
			killers.Wait()
			w = connect(t, addr)
			w.must(t, "PING")
			waitFor(t, func() bool { return s.aside.Load() == 0 && len(s.detours) == 0 })
			for name := range s.allNames {
				if isAside(name) {
					t.Errorf("%q is left behind", name)
				}
			}
		})
	}
}

// stressed is a connection that pipelines, and may end early.
func stressed(t *testing.T, addr string, random *rand.Rand, payload string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	name := func() string { return []string{"r", "p", "w", "q", "n"}[random.IntN(5)] }
	sent, count := command("HELLO", "3"), 1
	add := func(args ...string) {
		sent += command(args...)
		count++
	}
	if random.IntN(2) == 0 {
		add("CLIENT", "TRACKING", "ON")
	}
	for range 40 {
		switch random.IntN(12) {
		case 0:
			add("BF.SCANDUMP", name(), fmt.Sprint(random.IntN(2)))
		case 1:
			add("BF.MERGE", name(), name())
		case 2:
			add("RESTORE", "n", "0", payload, "REPLACE")
		case 3:
			add("DUMP", name())
		case 4:
			add("KEYS", "*")
		case 5:
			add("BF.FOLD", name(), "2")
		case 6:
			add("MULTI")
			add("BF.SCANDUMP", name(), "0")
			add("BF.ADD", name(), "x")
			add("EXEC")
		case 7:
			add("WATCH", name())
			add("UNWATCH")
		case 8:
			add("DEL", "n")
		default:
			add("BF.ADD", name(), fmt.Sprint(random.Uint32()))
			add("BF.EXISTS", name(), fmt.Sprint(random.Uint32()))
		}
	}
	if _, err := io.WriteString(conn, sent); err != nil {
		return // it was killed
	}
	read := count
	if random.IntN(3) == 0 {
		read = random.IntN(count)
	}
	replies := resp.NewReplyReader(conn, resp.ReplyLimits{})
	for read > 0 {
		reply, err := replies.Read()
		if err != nil {
			return
		}
		if reply.Kind != resp.Push {
			read--
		}
	}
	if random.IntN(2) == 0 {
		conn.(*net.TCPConn).SetLinger(0)
	}
}

// TestDetourCopies: an argument whose buffer grows many times arrives intact, and is
// returned byte for byte.
func TestDetourCopies(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, _ *Server, _ *fakeStore, addr string) {
		w := connect(t, addr)
		value := make([]byte, 20<<20)
		for i := range value {
			value[i] = byte(i * i >> 7)
		}
		w.send(t, command("SET", "k", string(value))+command("PING"))
		if reply := w.read(t); reply.Text != "OK" {
			t.Fatalf("SET: %v", reply)
		}
		if reply := w.read(t); reply.Text != "PONG" {
			t.Errorf("PING: %v", reply)
		}
		if reply := w.ask(t, "GET", "k"); reply.Text != string(value) {
			t.Errorf("GET answers with %d bytes that are not those of SET", len(reply.Text))
		}
	})
}

func TestAppendPieces(t *testing.T) {
	for _, size := range []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 3*pieceBytes + 5} {
		what := strings.Repeat("0123456", size/7+1)[:size]
		if got := string(appendPieces(grow([]byte("before"), size), []byte(what))); got != "before"+what {
			t.Errorf("%d bytes: %d that differ", size, len(got))
		}
		if got := grow(make([]byte, 4), size); len(got) != 4 || cap(got) < 4+size {
			t.Errorf("grow by %d: length %d and capacity %d", size, len(got), cap(got))
		}
	}
}
