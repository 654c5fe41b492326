package server

import (
	"testing"

	"golang.org/x/sys/unix"
)

// newTestLoop makes a loop that does not run, one of its sockets, and the other end of
// the socket's connection.
func newTestLoop(t *testing.T) (l *loop, k *socket, peer int) {
	t.Helper()
	s, err := New(newFakeStore(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if l, err = newLoop(s); err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{server: s}
	c.setProtocol(2)
	c.deauthenticate()
	k = &socket{client: c, loop: l, fd: int32(pair[0])}
	c.transport = k
	s.enter(c)
	l.enter(k)
	l.batch.begin()
	t.Cleanup(func() {
		l.batch.end()
		if !k.closed {
			l.close(k)
		}
		unix.Close(pair[1])
		unix.Close(l.epoll)
		unix.Close(l.event)
	})
	return l, k, pair[1]
}

// TestReadTwice reads twice before the batch ends: nothing is executed twice.
func TestReadTwice(t *testing.T) {
	l, k, peer := newTestLoop(t)
	whole := command("ECHO", "a")
	for _, sent := range []string{whole[:7], whole[7:] + whole, whole} {
		unix.Write(peer, []byte(sent))
		l.read(k)
	}
	l.turn()
	got := make([]byte, 4096)
	n, _ := unix.Read(peer, got)
	if want := "$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n"; string(got[:max(n, 0)]) != want {
		t.Errorf("got %q, want %q", got[:max(n, 0)], want)
	}
}

// TestReadClosed has the end of a batch, which frees the read buffer, close the socket
// that is to be read: its descriptor is not read, as it may have been reused.
func TestReadClosed(t *testing.T) {
	l, k, _ := newTestLoop(t)
	l.used = len(l.room)
	k.client.kill()
	l.dirty = append(l.dirty, k)
	if l.read(k) {
		t.Error("a closed socket was read")
	}
	if !k.closed || len(l.ready) != 0 || k.broken {
		t.Errorf("closed: %v, ready: %d, broken: %v", k.closed, len(l.ready), k.broken)
	}
}

// TestNoLoopsAfterShutdown: nothing would stop them.
func TestNoLoopsAfterShutdown(t *testing.T) {
	s, err := New(newFakeStore(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.Shutdown(t.Context())
	if _, err := s.nextLoop(); err != ErrStopped {
		t.Errorf("error %v, want %v", err, ErrStopped)
	}
}

// TestAwayDoesNotSpin: epoll reports at most once that the other side of a client on a
// detour is gone; level-triggered, it would report it forever.
func TestAwayDoesNotSpin(t *testing.T) {
	l, k, peer := newTestLoop(t)
	k.away = true
	k.client.detour = &detour{}
	l.watch(k)
	unix.Write(peer, []byte("PING\r\n"))
	unix.Shutdown(peer, unix.SHUT_RDWR)
	told := 0
	for range 10 {
		n, err := unix.EpollWait(l.epoll, l.events, 10)
		if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		for range max(n, 0) {
			told++
			if l.read(k) {
				t.Error("a client was read that is away")
			}
		}
	}
	if told > 1 {
		t.Errorf("told %d times, want at most once", told)
	}
}

// TestSendBytes: a fast reader does not monopolize the loop.
func TestSendBytes(t *testing.T) {
	l, k, peer := newTestLoop(t)
	unix.SetNonblock(peer, false)
	read := make(chan struct{})
	go func() {
		defer close(read)
		room := make([]byte, 64<<10)
		for n := 1; n > 0; {
			n, _ = unix.Read(peer, room)
		}
	}()
	unix.SetNonblock(int(k.fd), false) // so all would be accepted
	if n := l.send(k, make([]byte, 4*sendBytes)); n != sendBytes {
		t.Errorf("sent %d bytes in one turn, want %d", n, sendBytes)
	}
	unix.Shutdown(peer, unix.SHUT_RDWR)
	<-read // or it could read from the next owner of the descriptor
}
