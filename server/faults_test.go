//go:build unix

package server

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHalfClosed requests more than the kernel buffers, and shuts its side before it
// reads: all replies arrive, and then the end.
func TestHalfClosed(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, s *Server, _ *fakeStore, addr string) {
		const commands = 64
		value := strings.Repeat("x", 256<<10)
		for _, last := range []string{"", command("QUIT")} {
			w := connect(t, addr)
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				io.WriteString(w.Conn, strings.Repeat(command("ECHO", value), commands)+last)
				w.Conn.(*net.TCPConn).CloseWrite()
			}()
			w.SetDeadline(time.Now().Add(time.Minute))
			time.Sleep(50 * time.Millisecond) // unread replies pile up
			for i := range commands {
				if reply, err := w.reader.Read(); err != nil || reply.Text != value {
					t.Fatalf("reply %d: %d bytes, error %v", i, len(reply.Text), err)
				}
			}
			<-sent
			w.wantEnd(t, "")
		}
		waitFor(t, func() bool { return s.clientCount() == 0 })
	})
}

// TestShutdownSlowReader stops the server while a client that has sent QUIT still has
// much to read.
func TestShutdownSlowReader(t *testing.T) {
	const commands = 40
	value := strings.Repeat("x", 256<<10)
	for name, wrap := range transports {
		t.Run(name, func(t *testing.T) {
			s, addr, _ := serveOn(t, newFakeStore(), Config{}, wrap)
			w := connect(t, addr)
			w.SetDeadline(time.Now().Add(time.Minute))
			go io.WriteString(w.Conn, strings.Repeat(command("ECHO", value), commands)+command("QUIT"))
			waitFor(t, func() bool { return s.stats.bytesIn.Load() > 0 })
			time.Sleep(50 * time.Millisecond)
			ended := make(chan error, 1)
			go func() { ended <- s.Shutdown(t.Context()) }()
			s.eachClient(func(c *Client) { c.transport.wake() }) // as pushes do
			time.Sleep(50 * time.Millisecond)
			for i := range commands {
				if reply, err := w.reader.Read(); err != nil || reply.Text != value {
					t.Fatalf("reply %d: %d bytes, error %v", i, len(reply.Text), err)
				}
			}
			if err := <-ended; err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		})
	}
}

// lateListener has connections that are not read before the channel is closed, as in a
// process that is not scheduled.
type lateListener struct {
	net.Listener
	turn chan struct{}
}

type lateConn struct {
	net.Conn
	turn chan struct{}
}

func (l lateListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return lateConn{conn, l.turn}, err
}

func (c lateConn) Read(into []byte) (int, error) {
	<-c.turn
	return c.Conn.Read(into)
}

// TestShutdownLate stops a server that has not read its input for longer than
// drainTime: the input is answered.
func TestShutdownLate(t *testing.T) {
	turn := make(chan struct{})
	s, addr, _ := serveOn(t, newFakeStore(), Config{}, func(l net.Listener) net.Listener { return lateListener{l, turn} })
	w := connect(t, addr)
	w.send(t, command("PING"))
	waitFor(t, func() bool { return s.clientCount() == 1 })
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(t.Context()) }()
	waitFor(t, s.isStopping)
	time.Sleep(2 * drainTime)
	close(turn)
	if reply, err := w.reader.Read(); err != nil || reply.Text != "PONG" {
		t.Errorf("PING before the end was answered with %q, error %v", reply.Text, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// TestShutdownBusy stops the server under a client that never stops sending.
func TestShutdownBusy(t *testing.T) {
	t.Parallel() // it waits
	for name, wrap := range transports {
		t.Run(name, func(t *testing.T) {
			s, addr, _ := serveOn(t, newFakeStore(), Config{}, wrap)
			w := connect(t, addr)
			w.must(t, "PING")
			go io.Copy(io.Discard, w.Conn)
			go func() {
				for {
					if _, err := io.WriteString(w.Conn, command("PING")); err != nil {
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			start := time.Now()
			if err := s.Shutdown(t.Context()); err != nil || time.Since(start) > drainLimit+3*time.Second {
				t.Errorf("Shutdown took %v, error %v", time.Since(start), err)
			}
		})
	}
}

// TestIdleBelowSecond sets a limit that event loops, which count in seconds, must not
// round to none.
func TestIdleBelowSecond(t *testing.T) {
	t.Parallel() // it waits
	eachTransport(t, Config{Limits: Limits{Idle: 300 * time.Millisecond}}, func(t *testing.T, _ *Server, _ *fakeStore, addr string) {
		w := connect(t, addr)
		w.expect(t, "PING", "+PONG\r\n")
		w.wantEnd(t, "")
	})
}

// TestManySlowConnections opens as many connections as are allowed, each with an
// incomplete command: they take little memory, the next one is refused, and one of them
// is served as if it were alone.
func TestManySlowConnections(t *testing.T) {
	const most = 16 << 10 // bytes for each
	count := DefaultLimits().Clients
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	raised := files
	raised.Cur = files.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)
	count = min(count, int(min(raised.Cur, 1<<20)-500)/2) // two descriptors for each
	if raceEnabled {
		count = min(count, 2000)
	}
	s, addr, _ := serveOn(t, newFakeStore(), Config{Limits: Limits{Clients: count}}, transports["loops"])
	before := heap()
	conns := make([]net.Conn, count)
	for i := range conns {
		// Many addresses of this machine, as the ports of each are limited.
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%8))}
		conn, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", addr)
		if err != nil {
			t.Fatalf("connection %d of %d: %v", i, count, err)
		}
		defer conn.Close()
		conns[i] = conn
		if _, err := fmt.Fprint(conn, "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$1000000\r\nslowly"); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return s.clientCount() == count })
	for _, conn := range conns { // a byte on each
		fmt.Fprint(conn, "x")
	}
	first := &wire{Conn: conns[0], reader: newRecorder(conns[0])}
	first.send(t, strings.Repeat("x", 1000000-len("slowlyx"))+"\r\n")
	if reply := first.read(t); reply.Integer != 1 {
		t.Errorf("the first got %v, want 1", reply)
	}
	connect(t, addr).wantEnd(t, "ERR max number of clients reached")
	if each := (heap() - before) / int64(count); each > most {
		t.Errorf("%d connections take %d bytes each, want %d at most", count, each, most)
	} else {
		t.Logf("%d connections take %d bytes each", count, each)
	}
	for _, conn := range conns {
		conn.Close()
	}
	waitFor(t, func() bool { return s.clientCount() == 0 })
}

// TestDescriptors opens connections and closes them in every way: no descriptor leaks.
func TestDescriptors(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system does not list descriptors")
		}
		return len(entries)
	}
	eachTransport(t, Config{Limits: Limits{Clients: 3}}, func(t *testing.T, s *Server, _ *fakeStore, addr string) {
		cycle := func() {
			w, quit, bad := connect(t, addr), connect(t, addr), connect(t, addr)
			w.must(t, "PING")
			quit.must(t, "PING")
			bad.must(t, "PING")
			connect(t, addr).wantEnd(t, "ERR max number of clients reached")
			quit.must(t, "QUIT")
			bad.send(t, "*-2x\r\n")
			bad.wantEnd(t, "ERR Protocol error")
			w.Close()
			quit.Close()
			bad.Close()
			waitFor(t, func() bool { return s.clientCount() == 0 })
		}
		cycle()
		before := open()
		for range 20 {
			cycle()
		}
		// The refused connections are the test's own to close.
		if after := open(); after > before+20+5 {
			t.Errorf("%d descriptors, and %d before", after, before)
		}
	})
}
