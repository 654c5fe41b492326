package replace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/replace"
)

// recorder is a place and its file. It records every call, and fails at one of them.
type recorder struct {
	calls  []string
	failAt string
}

var errBroken = errors.New("broken")

func (r *recorder) call(name string) error {
	r.calls = append(r.calls, name)
	if name == r.failAt {
		return errBroken
	}
	return nil
}

func (r *recorder) Create() (*recorder, error) { return r, r.call("create") }
func (r *recorder) Sync() error                { return r.call("sync") }
func (r *recorder) Close() error               { return r.call("close") }
func (r *recorder) Rename() error              { return r.call("rename") }
func (r *recorder) Remove() error              { return r.call("remove") }
func (r *recorder) SyncDir() error             { return r.call("syncdir") }

// TestOrder: data before names, names before success, and no temporary file after a
// failure.
func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		failAt, calls string
		stage         replace.Stage
	}{
		{"", "create write sync close rename syncdir", replace.Unsynced},
		{"create", "create", replace.Unwritten},
		{"write", "create write close remove", replace.Unwritten},
		{"sync", "create write sync close remove", replace.Unwritten},
		{"close", "create write sync close remove", replace.Unwritten},
		{"rename", "create write sync close rename remove", replace.Unnamed},
		{"syncdir", "create write sync close rename syncdir", replace.Unsynced},
	} {
		r := &recorder{failAt: tt.failAt}
		stage, err := replace.Do(r, func(r *recorder) error { return r.call("write") })
		if calls := strings.Join(r.calls, " "); calls != tt.calls || stage != tt.stage || (err != nil) != (tt.failAt != "") {
			t.Errorf("failing at %q: %s; stage %d, %v; want %s; stage %d", tt.failAt, calls, stage, err, tt.calls, tt.stage)
		}
	}
}

// TestPanic: there is no temporary file after a panic.
func TestPanic(t *testing.T) {
	r := new(recorder)
	defer func() {
		if recover() == nil || strings.Join(r.calls, " ") != "create close remove" {
			t.Errorf("after a panic: %s", r.calls)
		}
	}()
	replace.Do(r, func(*recorder) error { panic("broken") })
}

func wantFiles(t *testing.T, directory string, want ...string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(directory, "*")) // including names that begin with a dot
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	if !slices.Equal(names, want) {
		t.Errorf("the directory holds %q, want %q", names, want)
	}
}

func TestPath(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	for _, text := range []string{"one", "two"} {
		place := replace.At(path)
		_, err := replace.Do(place, func(file *os.File) error {
			if place.Temporary() != file.Name() {
				t.Errorf("the temporary file is %q, not %q", file.Name(), place.Temporary())
			}
			_, err := file.WriteString(text)
			return err
		})
		if got, readErr := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v, %v, want %q", got, err, readErr, text)
		}
		if place.Temporary() != "" {
			t.Errorf("after the rename there is a temporary file %q", place.Temporary())
		}
		wantFiles(t, directory, "file")
	}
	if _, err := replace.Do(replace.At(path), func(*os.File) error { return errBroken }); err != errBroken {
		t.Errorf("%v, want the error of write", err)
	}
	wantFiles(t, directory, "file")
	if _, err := replace.Do(replace.At(directory), func(*os.File) error { return nil }); !errors.Is(err, replace.ErrNotRegular) {
		t.Errorf("a directory was replaced: %v", err)
	}
}

// TestLink: Link does not replace an existing file.
func TestLink(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	for i, want := range []error{nil, fs.ErrExist} {
		place := replace.At(path)
		file, err := place.Create()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte{'0' + byte(i)}); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if err := place.Link(); !errors.Is(err, want) {
			t.Errorf("link %d: %v, want %v", i, err, want)
		}
		place.Remove()
		wantFiles(t, directory, "file")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "0" {
		t.Errorf("%q, %v, want the first file", got, err)
	}
}
