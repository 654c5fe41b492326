package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/store"
)

// A serving is 'bloomery serve' on a Unix socket, as systemd sees it.
type serving struct {
	socket string
	states *net.UnixConn
	ended  chan struct{}
	stderr string // when ended
	code   int    // when ended
}

// serveUntil starts a server and returns when it is ready.
func serveUntil(t *testing.T, socket string, args ...string) *serving {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there are no datagrams on Unix sockets")
	}
	name := filepath.Join(filepath.Dir(socket), "notify")
	states, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { states.Close() })
	t.Setenv("NOTIFY_SOCKET", name)
	s := &serving{socket: socket, states: states, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		_, s.stderr, s.code = command(t, append([]string{"serve", "--listen", socket}, args...)...)
	}()
	s.expect(t, "READY=1")
	return s
}

// expect waits until systemd is told a state.
func (s *serving) expect(t *testing.T, state string) {
	t.Helper()
	got := make([]byte, 100)
	s.states.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, err := s.states.Read(got)
	if err != nil || string(got[:n]) != state {
		t.Fatalf("systemd got %q, %v, want %s", got[:n], err, state)
	}
}

// say sends an inline command and returns the first bytes of the reply.
func (s *serving) say(t *testing.T, words string) string {
	t.Helper()
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, "%s\r\n", words)
	reply := make([]byte, 100)
	n, _ := conn.Read(reply) // SHUTDOWN has none
	return string(reply[:n])
}

// shutdown ends the server as a client does, which is in order.
func (s *serving) shutdown(t *testing.T) {
	t.Helper()
	s.say(t, "SHUTDOWN")
	s.expect(t, "STOPPING=1")
	<-s.ended
	if s.code != exitDone || strings.Contains(s.stderr, "bloomery: ") {
		t.Errorf("after SHUTDOWN: exit code %d, %s", s.code, s.stderr)
	}
}

// socketPath is short enough for a socket.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "blm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "socket")
}

// TestServeShutdown: SHUTDOWN was an error, after which systemd started the server
// again.
func TestServeShutdown(t *testing.T) {
	s := serveUntil(t, socketPath(t), "--http", "off")
	s.shutdown(t)
	if want := "tls=false password=false"; !strings.Contains(s.stderr, want) {
		t.Errorf("the log does not say %q:\n%s", want, s.stderr)
	}
}

// TestServeSaysWhatIsKept: without a directory nothing is, which is told.
func TestServeSaysWhatIsKept(t *testing.T) {
	const warning = "lost when the server stops"
	s := serveUntil(t, socketPath(t), "--http", "off")
	s.shutdown(t)
	if !strings.Contains(s.stderr, warning) {
		t.Errorf("without --data: no %q in\n%s", warning, s.stderr)
	}
	s = serveUntil(t, socketPath(t), "--http", "off", "--data", filepath.Join(t.TempDir(), "data"))
	s.shutdown(t)
	if strings.Contains(s.stderr, warning) || !strings.Contains(s.stderr, "reading the data") {
		t.Errorf("with --data:\n%s", s.stderr)
	}
}

// TestServeLimitFlags sets limits by flags.
func TestServeLimitFlags(t *testing.T) {
	s := serveUntil(t, socketPath(t), "--http", "off", "--payload-bytes", "70MiB", "--buffer-bytes", "80MiB", "--memory", "1GiB")
	for name, want := range map[string]string{"proto-max-bulk-len": "73400320", "maxmemory-clients": "83886080"} {
		if got := s.say(t, "CONFIG GET "+name); !strings.HasSuffix(got, want+"\r\n") {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
	s.shutdown(t)
}

// TestServeStaleSocket: a server that was killed leaves its socket.
func TestServeStaleSocket(t *testing.T) {
	path := socketPath(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "another server may be running", "serve", "--listen", path, "--http", "off") // it is
	l.SetUnlinkOnClose(false)
	l.Close()
	s := serveUntil(t, path, "--http", "off")
	if got := s.say(t, "PING"); got != "+PONG\r\n" {
		t.Errorf("PING: %q", got)
	}
	s.shutdown(t)

	if err := os.WriteFile(path, []byte("no socket"), 0o666); err != nil {
		t.Fatal(err)
	}
	refused(t, "another server may be running", "serve", "--listen", path, "--http", "off")
	if b, err := os.ReadFile(path); string(b) != "no socket" {
		t.Errorf("a file that is no socket: %q, %v", b, err)
	}
}

// TestServeRefuses starts servers that must not start. What they are refused for
// comes before the data, so nothing is made.
func TestServeRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	data, foreign := filepath.Join(t.TempDir(), "data"), t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.tex"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		words string
		args  []string
	}{
		{"--password-file is empty", []string{"--password-file", "", "--tls-cert", "", "--tls-key", ""}},
		{"--read-password-file is empty", []string{"--read-password-file", ""}},
		{"--tls-cert is empty", []string{"--tls-cert="}},
		{"--tls-key is empty", []string{"--tls-key="}},
		{"--data is empty", []string{"--data="}},
		{"--listen is empty", []string{"--listen="}},
		{"--http is empty", []string{"--http="}},
		{"--clients is 1 or more, not -5", []string{"--clients", "-5"}},
		{"--clients is 1 or more, not 0", []string{"--clients", "0"}},
		{"--idle is 0 or more, not -3s", []string{"--idle", "-3s"}},
		{"--loops is 0 or more, not -1", []string{"--loops", "-1"}},
		{"--metrics-filters is 0 or more, not -2", []string{"--metrics-filters", "-2"}},
		{"no password is set, so only loopback", []string{"--listen", "0.0.0.0:0"}},
		{"--http: server: no password is set, so only loopback", []string{"--http", "0.0.0.0:0"}},
		{"choose another address with --listen", []string{"--listen", taken.Addr().String()}},
		{"--listen localhost: missing port in address: give host:port", []string{"--listen", "localhost"}},
		{"the directory holds files that no server wrote, such as thesis.tex", []string{"--data", foreign}},
		{"choose another address with --http", []string{"--http", taken.Addr().String()}},
	} {
		refused(t, tt.words, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, tt.args...)...)
	}
	if entries, _ := os.ReadDir(foreign); len(entries) != 1 {
		t.Errorf("%d entries in a directory that was refused, want the one that was there", len(entries))
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data directory was made before the refusal: %v", err)
	}
}

// TestServeNoFilterMetrics: zero filters were a hundred.
func TestServeNoFilterMetrics(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	for filters, want := range map[string]bool{"0": false, "1": true} {
		s := serveUntil(t, socketPath(t), "--http", address, "--metrics-filters", filters)
		s.say(t, "BF.ADD seen a")
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if got := strings.Contains(string(body), `name="seen"`); got != want {
			t.Errorf("--metrics-filters %s: metrics of a filter: %v, want %v", filters, got, want)
		}
		s.shutdown(t)
	}
}

// TestJoinClosed: why a store has stopped was told twice.
func TestJoinClosed(t *testing.T) {
	stopped := fmt.Errorf("%w: the disk is full", store.ErrStopped)
	other := errors.New("another")
	for _, tt := range []struct {
		err, closed error
		want        string
	}{
		{nil, nil, "<nil>"},
		{stopped, stopped, stopped.Error()},
		{nil, stopped, stopped.Error()},
		{other, stopped, other.Error() + "\n" + stopped.Error()},
		{other, nil, other.Error()},
	} {
		if got := fmt.Sprint(joinClosed(tt.err, tt.closed)); got != tt.want {
			t.Errorf("joinClosed(%v, %v) = %q, want %q", tt.err, tt.closed, got, tt.want)
		}
	}
}
