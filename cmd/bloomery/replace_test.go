package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestInterruptedExitCode: Ctrl-C ends add with 130 and leaves the file alone.
// The script add_interrupted has the same in a session, where the code cannot be
// seen.
func TestInterruptedExitCode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGINT can be sent there")
	}
	dir := t.TempDir()
	filter := filepath.Join(dir, "seen.bloom")
	if _, stderr, code := command(t, "build", "-n", "100", "-o", filter); code != exitDone {
		t.Fatal(stderr)
	}
	before, err := os.ReadFile(filter)
	if err != nil {
		t.Fatal(err)
	}
	add := exec.Command("bloomery", "add", filter)
	stdin, err := add.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := add.Start(); err != nil {
		t.Fatal(err)
	}
	for range 40 { // until it has started, and reads
		io.WriteString(stdin, strings.Repeat("line\n", 1000))
	}
	time.Sleep(100 * time.Millisecond)
	if err := add.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := add.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("add ended with %v, want exit code %d", err, exitInterrupted)
	}
	after, err := os.ReadFile(filter)
	if err != nil || string(after) != string(before) {
		t.Errorf("the filter changed: %v", err)
	}
	wantAlone(t, filter)
}

// wantAlone fails if anything lies beside the file.
func wantAlone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside %s: %v, %v", filepath.Base(path), entries, err)
	}
}

func TestReplaceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	put := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	want := func(text string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
		wantAlone(t, path)
	}
	if err := replaceFile(path, nil, put("one")); err != nil {
		t.Fatal(err)
	}
	want("one")
	was, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(path, was, put("two")); err != nil {
		t.Fatal(err)
	}
	want("two")

	// What was read is not what is there: somebody else's adds would be lost.
	if err := replaceFile(path, was, put("three")); err == nil || !strings.Contains(err.Error(), "changed by another program meanwhile") {
		t.Errorf("a file that changed was replaced: %v", err)
	}
	want("two")

	broken := errors.New("broken")
	if err := replaceFile(path, nil, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	want("two")

	if err := replaceFile(filepath.Join(path, "below"), nil, put("")); err == nil {
		t.Error("wrote below a file")
	}
	if err := replaceFile(filepath.Dir(path), nil, put("")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("replaced a directory: %v", err)
	}
	if runtime.GOOS == "windows" {
		return // no such permissions
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(path, nil, put("four")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.FileMode(0o640) {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
