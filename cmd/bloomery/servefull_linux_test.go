package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestServeFullDisk: BGSAVE on a full disk stopped the server, and SIGTERM was an
// error every time.
func TestServeFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a file system takes root")
	}
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("mounting a file system: %v", err)
	}
	defer unix.Unmount(root, unix.MNT_DETACH)
	data := filepath.Join(root, "data")
	for _, durability := range []string{"always", "everysec", "none"} {
		args := []string{"--http", "off", "--data", data, "--durability", durability}
		s := serveUntil(t, socketPath(t), args...)
		if got := s.say(t, "BF.RESERVE seen 0.01 1000000"); got != "+OK\r\n" {
			t.Fatalf("BF.RESERVE: %q", got)
		}
		s.say(t, "BF.ADD seen key")
		if err := os.WriteFile(filepath.Join(root, "filler"), make([]byte, 5_500_000), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.say(t, "SAVE"); !strings.HasPrefix(got, "-") {
			t.Errorf("%s: SAVE on a full disk: %q", durability, got)
		}
		if got := s.say(t, "BF.ADD seen another"); got != ":1\r\n" {
			t.Errorf("%s: BF.ADD after that: %q", durability, got)
		}
		s.say(t, "SHUTDOWN")
		s.expect(t, "STOPPING=1")
		<-s.ended
		want, says := exitDone, "stopped without a final snapshot: the log has everything"
		if durability == "none" {
			want, says = exitError, "adds at the level none since the last snapshot are lost"
		}
		if s.code != want || !strings.Contains(s.stderr, says) {
			t.Errorf("%s: exit code %d, want %d with %q:\n%s", durability, s.code, want, says, s.stderr)
		}
		if durability != "none" {
			s = serveUntil(t, socketPath(t), args...)
			if got := s.say(t, "BF.MEXISTS seen key another"); got != "*2\r\n:1\r\n:1\r\n" {
				t.Errorf("%s: after the next start: %q", durability, got)
			}
			s.say(t, "SHUTDOWN")
			s.expect(t, "STOPPING=1")
			<-s.ended
		}
		for _, name := range []string{filepath.Join(root, "filler"), data} {
			if err := os.RemoveAll(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}
