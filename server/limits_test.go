package server

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/resp"
)

func TestLimitClients(t *testing.T) {
	eachTransport(t, Config{Limits: Limits{Clients: 2}}, func(t *testing.T, s *Server, _ *fakeStore, addr string) {
		first, second := connect(t, addr), connect(t, addr)
		first.expect(t, "PING", "+PONG\r\n")
		second.expect(t, "PING", "+PONG\r\n")
		connect(t, addr).wantEnd(t, "ERR max number of clients reached")
		first.expect(t, "PING", "+PONG\r\n")
		second.Close()
		waitFor(t, func() bool { return s.clientCount() == 1 })
		connect(t, addr).expect(t, "PING", "+PONG\r\n")
	})
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not happen within a minute")
		}
	}
}

func TestLimitUnauthenticatedBytes(t *testing.T) {
	config := Config{Password: "x", Limits: Limits{UnauthenticatedBytes: 1000}}
	eachTransport(t, config, func(t *testing.T, _ *Server, _ *fakeStore, addr string) {
		w := connect(t, addr)
		w.expect(t, "PING "+strings.Repeat("x", 900), "-NOAUTH Authentication required.\r\n")
		w.send(t, "*2\r\n$4\r\nPING\r\n$1001\r\n")
		w.wantEnd(t, "ERR Protocol error: unauthenticated bulk length")
		w = connect(t, addr)
		w.send(t, "*3\r\n$4\r\nPING\r\n$900\r\n"+strings.Repeat("x", 900)+"\r\n$900\r\n")
		w.wantEnd(t, "ERR Protocol error: too big command")
		w = connect(t, addr)
		w.expect(t, "AUTH x", "+OK\r\n")
		w.expect(t, "ECHO "+strings.Repeat("x", 5000), "$5000\r\n"+strings.Repeat("x", 5000)+"\r\n")
	})
	if n := DefaultLimits().UnauthenticatedBytes; n != 16<<10 {
		t.Errorf("the standard is %d, want 16 KiB", n)
	}
}

func TestLimitsOfCommands(t *testing.T) {
	limits := Limits{Arguments: 5, ItemBytes: 100, CommandBytes: 300, KeyBytes: 10}
	eachTransport(t, Config{Limits: limits}, func(t *testing.T, _ *Server, st *fakeStore, addr string) {
		connect(t, addr).expect(t, "BF.MADD k a b c", "*3\r\n:1\r\n:1\r\n:1\r\n")
		for _, tt := range []struct{ name, sent, want string }{
			{"arguments", command("BF.MADD", "k", "a", "b", "c", "d"), "ERR Protocol error: invalid multibulk length"},
			{"item", command("BF.ADD", "k", strings.Repeat("x", 101)), "ERR Protocol error: invalid bulk length"},
			{"command", command("BF.MADD", "k", strings.Repeat("x", 100), strings.Repeat("y", 100), strings.Repeat("z", 100)), "ERR Protocol error: too big command"},
		} {
			w := connect(t, addr)
			w.send(t, tt.sent)
			w.wantEnd(t, tt.want)
		}
		w := connect(t, addr)
		w.expect(t, "BF.ADD "+strings.Repeat("k", 10)+" a", ":1\r\n")
		for _, command := range []string{"BF.ADD", "BF.EXISTS"} {
			w.expect(t, command+" "+strings.Repeat("k", 11)+" a", "-ERR a key of 11 bytes is too long (limit key-bytes: 10)\r\n")
		}
		for _, command := range []string{"KEYS", "SCAN 0 MATCH", "CONFIG GET", "COMMAND LIST FILTERBY PATTERN"} {
			w.expect(t, command+" "+strings.Repeat("*", 11), "-ERR a pattern of 11 bytes is too long (limit key-bytes: 10)\r\n")
		}
		if n := nameCount(st); n != 2 {
			t.Errorf("%d filters, want 2", n)
		}
	})
}

// TestLimitOutputBytes requests more than it reads.
func TestLimitOutputBytes(t *testing.T) {
	config := Config{Limits: Limits{OutputBytes: 8 << 20}}
	eachTransport(t, config, func(t *testing.T, s *Server, _ *fakeStore, addr string) {
		connect(t, addr).expect(t, "BF.RESERVE k 0.01 500000", "+OK\r\n") // dumps of some 700 KB
		w := connect(t, addr)
		w.send(t, strings.Repeat(command("BF.SCANDUMP", "k", "1"), 100))
		waitFor(t, func() bool { return s.stats.dropped.Load() == 1 })
		waitFor(t, func() bool { return s.clientCount() <= 1 })
		connect(t, addr).expect(t, "PING", "+PONG\r\n")
	})
}

// TestSlowReader reads its replies late, but within the limit: all arrive.
func TestSlowReader(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, s *Server, _ *fakeStore, addr string) {
		w := connect(t, addr)
		w.expect(t, "BF.RESERVE k 0.01 500000", "+OK\r\n")
		w.send(t, strings.Repeat(command("BF.SCANDUMP", "k", "1"), 20))
		time.Sleep(50 * time.Millisecond)
		for i := range 20 {
			if reply := w.read(t); len(reply.Items) != 2 || len(reply.Items[1].Text) < 600<<10 {
				t.Fatalf("reply %d is not a chunk", i)
			}
		}
		w.expect(t, "PING", "+PONG\r\n")
	})
}

func TestLimitIdle(t *testing.T) {
	t.Parallel() // it waits
	eachTransport(t, Config{Limits: Limits{Idle: time.Second}}, func(t *testing.T, s *Server, _ *fakeStore, addr string) {
		w := connect(t, addr)
		w.expect(t, "PING", "+PONG\r\n")
		start := time.Now()
		w.wantEnd(t, "")
		if waited := time.Since(start); waited < 500*time.Millisecond {
			t.Errorf("closed after %v, want about a second", waited)
		}
	})
}

// TestLimitMemory checks the server's errors for the store's limit.
func TestLimitMemory(t *testing.T) {
	for name, wrap := range transports {
		t.Run(name, func(t *testing.T) {
			st := newFakeStore()
			st.limit = 1000
			_, addr, _ := serveOn(t, st, Config{}, wrap)
			w := connect(t, addr)
			w.expect(t, "BF.RESERVE k 0.01 1000", "+OK\r\n")
			for _, command := range []string{"BF.RESERVE big 0.01 1073741824", "BF.INSERT big CAPACITY 1073741824 ITEMS a"} {
				w.expect(t, command, "-ERR Insufficient memory to create filter: out of memory: 1073741824 bytes needed, 1000 allowed\r\n")
			}
		})
	}
}

// TestTrickle sends commands byte by byte.
func TestTrickle(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, _ *Server, _ *fakeStore, addr string) {
		w := connect(t, addr)
		w.Conn.(*net.TCPConn).SetNoDelay(true)
		sent := command("BF.MADD", "k", "a", "b") + "bf.exists k a\r\n"
		for i := range len(sent) {
			w.send(t, sent[i:i+1])
			if i%5 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		w.read(t)
		if reply := w.read(t); reply.Kind != resp.Integer || reply.Integer != 1 {
			t.Errorf("got %v, want 1", reply)
		}
	})
}

// TestHostileMemory opens connections that claim to send much, and send little.
func TestHostileMemory(t *testing.T) {
	eachTransport(t, Config{Limits: Limits{ItemBytes: 1 << 30, CommandBytes: 2 << 30}}, func(t *testing.T, s *Server, _ *fakeStore, addr string) {
		connect(t, addr).must(t, "PING")
		before := heap()
		var wires []*wire
		for i := range 200 {
			w := connect(t, addr)
			if i%2 == 0 {
				w.send(t, "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$1073741824\r\nx")
			} else {
				w.send(t, "*1000000\r\n"+strings.Repeat("$1\r\nx\r\n", 100))
			}
			wires = append(wires, w)
		}
		waitFor(t, func() bool { return s.clientCount() == 201 })
		connect(t, addr).must(t, "PING")
		if grown := heap() - before; grown > 200*128<<10 {
			t.Errorf("200 connections that sent next to nothing take %d bytes", grown)
		}
		for _, w := range wires {
			w.Close() // half closed
		}
		waitFor(t, func() bool { return s.clientCount() <= 2 })
	})
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLongCommands sends commands that are longer than one read, followed by pieces of
// the next.
func TestLongCommands(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, _ *Server, _ *fakeStore, addr string) {
		w := connect(t, addr)
		for _, size := range []int{readBytesOfTest - 1, readBytesOfTest, 3 * readBytesOfTest, 2 << 20} {
			value := strings.Repeat("x", size)
			sent := command("ECHO", value) + command("BF.EXISTS", "k", value) + command("ECHO", "y")
			go io.WriteString(w, sent)
			if reply := w.read(t); reply.Text != value {
				t.Fatalf("%d bytes came back as %d", size, len(reply.Text))
			}
			w.read(t)
			if reply := w.read(t); reply.Text != "y" {
				t.Fatalf("behind %d bytes: %v", size, reply)
			}
		}
		long := resp.Writer{Buf: []byte(command("BF.RESERVE", "k", "0.001", "200000"))}
		long.Array(100_002)
		long.BulkString("BF.MADD")
		long.BulkString("k")
		for i := range 100_000 {
			long.BulkString(fmt.Sprint(i))
		}
		go w.Write(long.Buf)
		w.read(t)
		if reply := w.read(t); len(reply.Items) != 100_000 {
			t.Fatalf("%d answers, want 100000", len(reply.Items))
		}
	})
}

// TestLongArgumentInPieces sends a long argument slowly, cut off, and followed by
// commands, and expects other clients to be served meanwhile.
func TestLongArgumentInPieces(t *testing.T) {
	eachTransport(t, Config{Loops: 1}, func(t *testing.T, s *Server, _ *fakeStore, addr string) {
		other, w := connect(t, addr), connect(t, addr)
		value := strings.Repeat("0123456789abcdef", 128<<10)
		sent := command("ECHO", value) + command("PING")
		for len(sent) > 0 {
			n := min(len(sent), 300_000+len(sent)%1000)
			io.WriteString(w, sent[:n])
			sent = sent[n:]
			other.wantNow(t, "+PONG\r\n", "PING")
		}
		if reply := w.read(t); reply.Text != value {
			t.Fatalf("%d bytes came back as %d", len(value), len(reply.Text))
		}
		if reply := w.read(t); reply.Text != "PONG" {
			t.Errorf("behind it: %v", reply)
		}

		cut := command("ECHO", value)[:1<<20]
		io.WriteString(w, cut)
		w.Conn.(*net.TCPConn).CloseWrite()
		w.wantEnd(t, "")
		gone := connect(t, addr)
		io.WriteString(gone, cut)
		gone.Close()
		waitFor(t, func() bool { return s.clientCount() == 1 && s.buffered.Load() == 0 })
		other.wantNow(t, "+PONG\r\n", "PING")
	})
}

const readBytesOfTest = 32 << 10
