package server

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFewFiles: there are no more clients than descriptors for them, and some remain
// for the store.
func TestFewFiles(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = reservedFiles + 500
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	s := newQuiet(t, newFakeStore(), Config{Limits: Limits{Clients: 10_000}})
	if got := s.limits.Load().Clients; got != 500 {
		t.Errorf("%d clients with %d descriptors, want 500", got, few.Cur)
	}
}

// TestManyHTTPConnections: idle connections make room for new ones, so that all are
// served.
func TestManyHTTPConnections(t *testing.T) {
	s := newQuiet(t, newFakeStore(), Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.ServeHTTPOn(l, HTTPConfig{})
	ask := func() (*http.Transport, error) {
		transport := &http.Transport{}
		reply, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Get("http://" + l.Addr().String() + "/healthz")
		if err == nil {
			io.Copy(io.Discard, reply.Body) // or it is not kept
			reply.Body.Close()
		}
		return transport, err
	}
	var all []*http.Transport
	refused := 0
	for range httpConnections + 20 {
		transport, err := ask()
		if err != nil {
			refused++
		}
		all = append(all, transport)
	}
	if refused != 0 {
		t.Errorf("%d connections were refused, want none", refused)
	}
	for _, transport := range all {
		transport.CloseIdleConnections()
	}
}

// fakeConn is a connection from an address that notes that it was closed.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1}
}
func (c *fakeConn) Close() error { c.closed = true; return nil }

// TestServeLoading sends HTTP requests before there is a server, and then to the
// server.
func TestServeLoading(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string, want int, text string) {
		t.Helper()
		reply, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(reply.Body)
		reply.Body.Close()
		if reply.StatusCode != want || string(body) != text {
			t.Errorf("%s: %d %q, want %d %q", path, reply.StatusCode, body, want, text)
		}
	}
	loaded := ServeLoadingOn(l, Config{})
	for range 2 {
		ask("/healthz", 200, "ok\n")
		ask("/readyz", 503, "not ready: reading the data\n")
		ask("/metrics", 503, "not ready: reading the data\n")
	}
	loaded()
	loaded()
	s := newQuiet(t, newFakeStore(), Config{})
	go s.ServeHTTPOn(l, HTTPConfig{})
	ask("/healthz", 200, "ok\n")
	ask("/readyz", 200, "ready\n")
	s.Shutdown(t.Context())
}

// TestHTTPLimit fills the limit with connections from other machines: they keep out
// neither this machine nor new ones, unless all are busy.
func TestHTTPLimit(t *testing.T) {
	l := newHTTPLimit(20) // 10 from other machines
	open := func(from string, state http.ConnState) *fakeConn {
		c := &fakeConn{from: from}
		l.state(c, http.StateNew)
		if state != http.StateNew {
			l.state(c, state)
		}
		return c
	}
	closed := func(conns []*fakeConn) (n int) {
		for _, c := range conns {
			if c.closed {
				n++
			}
		}
		return n
	}
	var idle, busy, own []*fakeConn
	for range 10 {
		idle = append(idle, open("192.0.2.1", http.StateNew))
	}
	for i := range 10 { // each in the place of an idle one, the oldest first
		busy = append(busy, open("192.0.2.2", http.StateActive))
		if !idle[i].closed || closed(idle) != i+1 {
			t.Errorf("after %d busy ones %d idle ones are closed", i+1, closed(idle))
		}
	}
	if late := open("192.0.2.3", http.StateActive); !late.closed || closed(busy) != 0 {
		t.Errorf("one too many is closed: %v, and %d busy ones", late.closed, closed(busy))
	}
	for range 9 {
		own = append(own, open("127.0.0.1", http.StateActive))
	}
	if closed(own) != 0 || closed(busy) != 0 {
		t.Errorf("%d of this machine and %d of others are closed, want none", closed(own), closed(busy))
	}
	l.state(busy[3], http.StateIdle)
	if probe := open("::1", http.StateActive); probe.closed || !busy[3].closed {
		t.Errorf("a probe is closed: %v; the idle one of a stranger: %v", probe.closed, busy[3].closed)
	}
	for _, c := range append(append(idle, busy...), own...) {
		l.state(c, http.StateClosed)
	}
	if len(l.open) > 2 || l.strange < 0 || l.strange > 1 {
		t.Errorf("%d are left, %d of strangers", len(l.open), l.strange)
	}
}

// TestOtherSites: a page of another site cannot make a browser send requests, but it
// may have a link.
func TestOtherSites(t *testing.T) {
	h := newQuiet(t, newFakeStore(), Config{}).HTTPHandler(HTTPConfig{})
	for _, tt := range []struct {
		site, mode string
		want       int
	}{
		{"", "", 200},
		{"same-origin", "cors", 200},
		{"none", "navigate", 200},
		{"cross-site", "navigate", 200},
		{"cross-site", "no-cors", 403},
	} {
		code, _ := get(h, "/healthz", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", tt.site)
			r.Header.Set("Sec-Fetch-Mode", tt.mode)
		})
		if code != tt.want {
			t.Errorf("%+v: %d", tt, code)
		}
	}
}
