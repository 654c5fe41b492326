//go:build unix

package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// TestServeHangUp: SIGHUP ended the server as a crash does. Now it is an orderly end,
// unless it is ignored, as under nohup.
func TestServeHangUp(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := serveUntil(t, socketPath(t), "--http", "off", "--data", data, "--durability", "none")
	if got := s.say(t, "BF.ADD seen a"); got != ":1\r\n" {
		t.Fatal(got)
	}
	if signal.Ignored(syscall.SIGHUP) {
		syscall.Kill(os.Getpid(), syscall.SIGHUP)
		s.shutdown(t)
	} else {
		syscall.Kill(os.Getpid(), syscall.SIGHUP)
		s.expect(t, "STOPPING=1")
		<-s.ended
		if s.code != exitDone {
			t.Errorf("after SIGHUP: exit code %d, %s", s.code, s.stderr)
		}
	}
	s = serveUntil(t, socketPath(t), "--http", "off", "--data", data)
	if got := s.say(t, "BF.EXISTS seen a"); got != ":1\r\n" {
		t.Errorf("after SIGHUP the server has lost an item: %q", got)
	}
	s.shutdown(t)
}
