package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/store"
)

// newQuiet returns a server that logs nothing.
func newQuiet(t *testing.T, st store.Store, config Config) *Server {
	t.Helper()
	config.Log = slog.New(slog.DiscardHandler)
	s, err := New(st, config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// get requests a path from the handler; change may modify the request.
func get(h http.Handler, path string, change func(*http.Request)) (code int, body string) {
	r := httptest.NewRequest("GET", "http://127.0.0.1:6381"+path, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestHTTPHosts(t *testing.T) {
	open := newQuiet(t, newFakeStore(), Config{}).HTTPHandler(HTTPConfig{Hosts: []string{"bloom.example"}})
	locked := newQuiet(t, newFakeStore(), Config{Password: "p"}).HTTPHandler(HTTPConfig{})
	for _, tt := range []struct {
		host string
		want int
	}{
		{"127.0.0.1", 200},
		{"127.0.0.1:6381", 200},
		{"[::1]:6381", 200},
		{"[::1]", 200},
		{"[fe80::1%25eth0]:6381", 200},
		{"192.0.2.7:6381", 200},
		{"localhost", 200},
		{"LOCALHOST.:6381", 200},
		{"a.localhost:6381", 200},
		{"bloom.example:6381", 200},
		{"BLOOM.example", 200},
		{"evil.example:6381", 403},
		{"evil.bloom.example", 403},
		{"localhost.evil.example", 403},
		{"127.0.0.1.evil.example", 403},
		{"notlocalhost", 403},
		{"", 200}, // HTTP/1.0, which no browser speaks
	} {
		for _, path := range []string{"/healthz", "/metrics", "/api/v1/filters"} {
			code, body := get(open, path, func(r *http.Request) { r.Host = tt.host })
			if code != tt.want {
				t.Errorf("%s for host %q: %d %.80q, want %d", path, tt.host, code, body, tt.want)
			}
		}
		// With a password the name does not matter, as no page knows it.
		if code, _ := get(locked, "/healthz", func(r *http.Request) { r.Host = tt.host }); code != 200 {
			t.Errorf("/healthz for host %q, with a password set: %d, want 200", tt.host, code)
		}
	}
}

// The pages for browsers hold no secrets: they are served without a password, with a
// policy of their own, and may be kept.
func TestHTTPPages(t *testing.T) {
	h := newQuiet(t, newFakeStore(), Config{Password: "p"}).HTTPHandler(HTTPConfig{})
	for _, path := range []string{"/play", "/plan", "/web/pages/play.js"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1:6381"+path, nil))
		header := w.Result().Header
		if w.Code != http.StatusOK || header.Get("Cache-Control") != "no-cache" || !strings.HasPrefix(header.Get("Content-Security-Policy"), "default-src 'self'") {
			t.Errorf("%s: %d, %v", path, w.Code, header)
		}
	}
}

func TestHTTPPassword(t *testing.T) {
	h := newQuiet(t, newFakeStore(), Config{Password: "all", ReadOnlyPassword: "look"}).HTTPHandler(HTTPConfig{Profiling: true})
	for _, tt := range []struct {
		path, user, password string
		want                 int
	}{
		{"/healthz", "", "", 200},
		{"/readyz", "", "", 200},
		{"/metrics", "", "", 401},
		{"/metrics", "default", "all", 200},
		{"/metrics", "anyone", "look", 200},
		{"/metrics", "default", "", 401},
		{"/metrics", "default", "loo", 401},
		{"/metrics", "all", "default", 401},
		{"/api/v1/filters", "", "", 401},
		{"/api/v1/filters", "default", "look", 200},
		{"/debug/pprof/", "", "", 401},
		{"/debug/pprof/", "default", "all", 200},
		{"/other", "default", "all", 404},
	} {
		code, body := get(h, tt.path, func(r *http.Request) {
			if tt.user != "" {
				r.SetBasicAuth(tt.user, tt.password)
			}
		})
		if code != tt.want {
			t.Errorf("%s as %q with %q: %d %.80q, want %d", tt.path, tt.user, tt.password, code, body, tt.want)
		}
	}
	// An empty read-only password grants nothing.
	h = newQuiet(t, newFakeStore(), Config{Password: "all"}).HTTPHandler(HTTPConfig{})
	if code, _ := get(h, "/metrics", func(r *http.Request) { r.SetBasicAuth("readonly", "") }); code != 401 {
		t.Errorf("/metrics with an empty password: %d, want 401", code)
	}
	if code, _ := get(h, "/debug/pprof/", func(r *http.Request) { r.SetBasicAuth("default", "all") }); code != 404 {
		t.Errorf("/debug/pprof without Profiling: %d, want 404", code)
	}
}

// hungStore commits when let is closed, or returns when ctx ends.
type hungStore struct {
	*fakeStore
	let chan struct{}
}

func (s hungStore) Commit(ctx context.Context) error {
	select {
	case <-s.let:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestReadyz(t *testing.T) {
	t.Parallel() // it waits
	st := newFakeStore()
	s := newQuiet(t, st, Config{})
	h := s.HTTPHandler(HTTPConfig{})
	want := func(h http.Handler, wantCode int, words string) {
		t.Helper()
		if code, body := get(h, "/readyz", nil); code != wantCode || !strings.Contains(body, words) {
			t.Errorf("/readyz: %d %q, want %d and %q", code, body, wantCode, words)
		}
	}
	want(h, 200, "ready")
	broken := fmt.Errorf("%w: no space left on device", store.ErrStopped)
	st.failure.Store(&broken)
	want(h, 503, "no space left on device")
	if code, _ := get(h, "/healthz", nil); code != 200 {
		t.Errorf("/healthz of a stopped store: %d, want 200: the process is alive", code)
	}
	st.failure.Store(nil)
	want(h, 200, "ready")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(h, 503, "stopped")

	hung := hungStore{newFakeStore(), make(chan struct{})}
	h = newQuiet(t, hung, Config{}).HTTPHandler(HTTPConfig{})
	want(h, 503, "committed nothing for 2s")
	close(hung.let)
	want(h, 200, "ready")
}

func TestServeHTTPOnRefuses(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	err = newQuiet(t, newFakeStore(), Config{}).ServeHTTPOn(l, HTTPConfig{})
	if !errors.Is(err, ErrProtected) {
		t.Errorf("serving HTTP to the world without a password: %v, want ErrProtected", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is still open")
	}
}

// TestServeHTTPOnEnds has a request under way when the server is shut down.
func TestServeHTTPOnEnds(t *testing.T) {
	hung := hungStore{newFakeStore(), make(chan struct{})}
	s := newQuiet(t, hung, Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServeHTTPOn(l, HTTPConfig{}) }()
	url := "http://" + l.Addr().String()
	if code := getCode(t, url+"/healthz"); code != 200 {
		t.Fatalf("/healthz: %d, want 200", code)
	}
	asked := make(chan int, 1)
	go func() { asked <- getCode(t, url+"/readyz") }()
	time.Sleep(50 * time.Millisecond)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(hung.let)
	if code := <-asked; code != 200 {
		t.Errorf("the request under way was answered with %d, want 200", code)
	}
	if err := <-ended; !errors.Is(err, ErrStopped) {
		t.Errorf("ServeHTTPOn: %v, want ErrStopped", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

func getCode(t *testing.T, url string) int {
	response, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// talk sends inline commands to a server over TCP, each in a batch of its own, and
// returns the first lines of their replies.
func talk(t *testing.T, s *Server, commands ...string) (replies []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(conn)
	for _, command := range commands {
		fmt.Fprintf(conn, "%s\r\n", command)
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		replies = append(replies, strings.TrimSpace(line))
		var n int
		if _, err := fmt.Sscanf(line, "*%d", &n); err == nil {
			for range n { // for integers
				r.ReadString('\n')
			}
		}
	}
	return replies
}
