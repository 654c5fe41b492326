package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/human"
)

func TestProbe(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			w.Write([]byte("ready\n"))
		case "/slow":
			<-r.Context().Done()
		default:
			http.Error(w, "not ready: the disk is full", http.StatusServiceUnavailable)
		}
	})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	for _, tt := range []struct {
		args  string
		code  int
		words string
	}{
		{plain.URL, exitDone, "ready"},
		{plain.URL + "/readyz", exitDone, "ready"},
		{plain.URL + "/other", exitNothing, "503 Service Unavailable: not ready: the disk is full"},
		{"--timeout 50ms " + plain.URL + "/slow", exitNothing, "deadline exceeded"},
		{secure.URL, exitNothing, "certificate"},
		{"--insecure " + secure.URL, exitDone, "ready"},
		{"localhost:1", exitError, "is not the URL of a server"},
		{"http://127.0.0.1:1", exitNothing, "refused"},
	} {
		stdout, stderr, code := command(t, append([]string{"probe"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.words) {
			t.Errorf("probe %s: exit code %d, %q, want %d and %q", tt.args, code, stdout+stderr, tt.code, tt.words)
		}
	}
}

func TestNotifySystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := notifySystemd("READY=1"); err != nil {
		t.Errorf("outside of systemd: %v", err)
	}
	if runtime.GOOS != "linux" {
		return // where there is no systemd
	}
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), "@bloomery-notify-test"} {
		socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		t.Setenv("NOTIFY_SOCKET", name)
		if err := notifySystemd("READY=1"); err != nil {
			t.Fatal(err)
		}
		socket.SetReadDeadline(time.Now().Add(5 * time.Second))
		got := make([]byte, 100)
		n, err := socket.Read(got)
		if err != nil || string(got[:n]) != "READY=1" {
			t.Errorf("systemd got %q, %v", got[:n], err)
		}
	}
}

// TestProbeEither asks a server that speaks TLS or not, which is not known before.
func TestProbeEither(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("ready\n")) })
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	target := strings.Replace(secure.URL, "https://", "http://", 1)
	either, fixed := probeCommand{timeout: human.TimeFlag(5 * time.Second), either: true}, probeCommand{timeout: human.TimeFlag(5 * time.Second)}
	for _, url := range []string{plain.URL, target} {
		if got, err := either.ask(url); got != "ready" || err != nil {
			t.Errorf("either.ask(%s) = %q, %v, want ready", url, got, err)
		}
	}
	if got, err := fixed.ask(target); err == nil || !strings.Contains(err.Error(), "400 Bad Request") {
		t.Errorf("fixed.ask(%s) = %q, %v, want 400 Bad Request", target, got, err)
	}
}
