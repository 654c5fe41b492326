package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/lines"
)

// TestInterruptedExitCode: Ctrl-C ends add with 130 and leaves the file alone, as
// do the end of the session and of the system. The script add_interrupted has the
// same in a session, where the code cannot be seen.
func TestInterruptedExitCode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGINT can be sent there")
	}
	for sign, want := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(sign.String(), func(t *testing.T) { testInterrupted(t, sign, want) })
	}
}

func testInterrupted(t *testing.T, sign os.Signal, want int) {
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
	if signal.Ignored(sign) { // under nohup, which add would inherit
		add = exec.Command("env", "--default-signal=HUP", "bloomery", "add", filter)
	}
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
	if err := add.Process.Signal(sign); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := add.Wait(); !errors.As(err, &exit) || exit.ExitCode() != want {
		t.Errorf("add ended with %v, want exit code %d", err, want)
	}
	after, err := os.ReadFile(filter)
	if err != nil || string(after) != string(before) {
		t.Errorf("the filter changed: %v", err)
	}
	wantAlone(t, filter)
}

// wantAlone fails if there is anything next to the file.
func wantAlone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside %s: %v, %v", filepath.Base(path), entries, err)
	}
}

// TestTidyUp: what a signal leaves is no half file and no progress bar.
func TestTidyUp(t *testing.T) {
	half := filepath.Join(t.TempDir(), "half")
	if err := os.WriteFile(half, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var terminal bytes.Buffer
	bar := lines.NewBar(&terminal, 100)
	bar.Read(50)
	bar.Draw()
	drawn := terminal.Len()
	watching.Store(bar)
	defer watching.Store(nil)
	beside.Lock()
	defer beside.Unlock()
	beside.path = half
	tidyUp()
	beside.path = ""
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half file: %v, want none", err)
	}
	after := terminal.String()[drawn:]
	if line := strings.ReplaceAll(after, "\r", ""); after == "" || strings.TrimSpace(line) != "" {
		t.Errorf("behind the bar came %q, want blanks over it", after)
	}
}

// TestReplaceFileInUse: a filter that somebody changes in place is not replaced.
func TestReplaceFileInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen.bloom")
	f, err := bloom.Config{Keys: 100, Rate: 0.01}.Create(path, nil)
	if err != nil {
		t.Skip(err) // where no file can be changed in place
	}
	write := func(w io.Writer) error { _, err := io.WriteString(w, "another"); return err }
	for name, err := range map[string]error{
		"replaceFile":      replaceFile(path, nil, write),
		"mayWrite --force": mayWrite(path, true),
		"unclean":          anyfile.Unclean(path, bloom.ErrUnclean),
	} {
		if err == nil || !strings.Contains(err.Error(), "is in use by another process") {
			t.Errorf("%s: %v, want it to be in use", name, err)
		}
	}
	if err := f.Close(); err != nil { // which says so if it was replaced
		t.Fatal(err)
	}
	if err := mayWrite(path, true); err != nil {
		t.Error(err)
	}
	if err := replaceFile(path, nil, write); err != nil {
		t.Error(err)
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
