package server

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFewFiles: there are no more clients than descriptors for them, and some are
// left for the store.
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

// TestManyHTTPConnections: those above the limit are closed, the others served, and
// there is room again when they have gone.
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
	if refused != 20 {
		t.Errorf("%d connections were refused, want 20", refused)
	}
	for _, transport := range all {
		transport.CloseIdleConnections()
	}
	for range 100 {
		if _, err = ask(); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("there is no room again:", err)
}

// TestOtherSites: a page of another site cannot make a browser ask, but it may have
// a link.
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
