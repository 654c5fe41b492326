package bloom_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
)

// mustSave saves the filter in a directory of the test's own.
func mustSave(t testing.TB, f *bloom.Filter) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "saved.bloom")
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// onlyFile checks that the directory holds the file of this name, or nothing if
// it is empty: Save must leave nothing else behind.
func onlyFile(t *testing.T, directory, name string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if want := strings.Fields(name); !slices.Equal(names, want) {
		t.Errorf("the directory holds %q, want %q", names, want)
	}
}

func TestSaveLoadOpen(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			f := s.filter(t)
			path := mustSave(t, f)
			onlyFile(t, filepath.Dir(path), "saved.bloom")
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(file, fileOf(t, f)) {
				t.Error("Save and WriteTo wrote different files")
			}
			for _, how := range openings {
				g, err := how.open(path)
				if err != nil {
					t.Fatalf("%s: %v", how.name, err)
				}
				sameFilter(t, how.name, g, f)
				if !bytes.Equal(file, fileOf(t, g)) {
					t.Errorf("%s: written again, the file is another", how.name)
				}
				if g.NeedsSecret() {
					if err := g.SetSecret(testSecret); err != nil {
						t.Fatal(err)
					}
				}
				for i := range s.keys {
					if !g.ContainsUint64(uint64(i)) {
						t.Fatalf("%s: key %d is lost", how.name, i)
					}
				}
				if err := g.Close(); err != nil {
					t.Errorf("%s: Close: %v", how.name, err)
				}
			}
		})
	}
}

func TestOpenIsReadOnly(t *testing.T) {
	f := mustNew(t, bloom.Config{Keys: 100, Rate: 0.01})
	f.AddString("Titanic")
	path := mustSave(t, f)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := bloom.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for name, call := range map[string]func(){
		"Add":          func() { g.Add(nil) },
		"Add of old":   func() { g.AddString("Titanic") },
		"AddString":    func() { g.AddString("") },
		"AddUint64":    func() { g.AddUint64(0) },
		"AddHash":      func() { g.AddHash(0) },
		"AddMany":      func() { g.AddMany([][]byte{nil}, nil) },
		"AddStrings":   func() { g.AddStrings([]string{""}, nil) },
		"AddHashes":    func() { g.AddHashes([]uint64{0}, nil) },
		"no AddHashes": func() { g.AddHashes(nil, nil) },
		"Clear":        func() { g.Clear() },
		"Union":        func() { g.Union(f) },
	} {
		const want = "bloom: the filter was opened read-only: Clone it, or Load the file instead"
		if message := panicOf(call); message != want {
			t.Errorf("%s of an opened filter panics with %q, want %q", name, message, want)
		}
	}
	sameFilter(t, "after all that", g, f)

	clone := g.Clone()
	if !clone.AddString("Avatar") || g.ContainsString("Avatar") {
		t.Error("Clone of an opened filter is not writable, or writes to it")
	}
	folded, err := g.Fold(1)
	if err != nil || !folded.AddString("Avatar") || g.ContainsString("Avatar") {
		t.Errorf("Fold of an opened filter is not writable, or writes to it: %v", err)
	}

	// Metadata are not in the mapping; they can be changed, and saved even over
	// the file that is open.
	meta := map[string]string{"source": "Fiume"}
	if err := g.SetMeta(meta); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		t.Errorf("using an opened filter changed its file, %v", err)
	}
	if err := g.Save(path); err != nil {
		t.Fatal(err)
	}
	if err := g.Verify(); err != nil || !g.Equal(f) {
		t.Errorf("after its file was replaced the opened filter is another: %v", err)
	}
	again, err := bloom.Load(path)
	if err != nil || !again.Equal(f) || !maps.Equal(again.Meta(), meta) {
		t.Errorf("saved over its own file: %v, %v", again, err)
	}
}

// TestClosed: Close twice is no error, and whatever needs the bits panics
// afterwards. A closed filter must above all not be saved: it would be an empty
// one.
func TestClosed(t *testing.T) {
	for _, s := range shapes() {
		if s.config.Secret != nil {
			continue
		}
		f := s.filter(t)
		opened, err := bloom.Open(mustSave(t, f))
		if err != nil {
			t.Fatal(err)
		}
		good := f.Clone()
		path := mustSave(t, good)
		for name, g := range map[string]*bloom.Filter{s.name: f, s.name + ", opened": opened} {
			for range 2 {
				if err := g.Close(); err != nil {
					t.Errorf("%s: Close: %v", name, err)
				}
			}
			if says := panicOf(func() { g.Report() }); !strings.Contains(says, "closed") {
				t.Errorf("%s: Report after Close panics with %q", name, says)
			}
			if says := panicOf(func() { g.Add(nil) }); g == opened && !strings.Contains(says, "closed") {
				t.Errorf("%s: Add after Close panics with %q", name, says)
			}
			for method, call := range map[string]func(){
				"Add":            func() { g.Add(nil) },
				"AddHash":        func() { g.AddHash(1 << 63) },
				"AddMany":        func() { g.AddMany([][]byte{nil}, nil) },
				"AddHashes":      func() { g.AddHashes([]uint64{1 << 63}, nil) },
				"Contains":       func() { g.Contains(nil) },
				"ContainsString": func() { g.ContainsString("") },
				"ContainsHash":   func() { g.ContainsHash(1 << 63) },
				"ContainsMany":   func() { g.ContainsMany([][]byte{nil}, nil) },
				"ContainsHashes": func() { g.ContainsHashes([]uint64{1 << 63}, nil) },
				"Clear":          func() { g.Clear() },
				"Clone":          func() { g.Clone() },
				"Report":         func() { g.Report() },
				"Verify":         func() { g.Verify() },
				"Fold":           func() { g.Fold(1) },
				"Union":          func() { g.Union(good) },
				"Union of it":    func() { good.Union(g) },
				"Equal":          func() { g.Equal(g) },
				"Equal to it":    func() { good.Equal(g) },
				"WriteTo":        func() { g.WriteTo(new(bytes.Buffer)) },
				"Save":           func() { g.Save(path) },
			} {
				if panicOf(call) == "" {
					t.Errorf("%s: %s after Close does not panic", name, method)
				}
			}
			onlyFile(t, filepath.Dir(path), "saved.bloom")
			if kept, err := bloom.Load(path); err != nil || !kept.Equal(good) {
				t.Errorf("%s: Save of a closed filter damaged the file: %v", name, err)
			}
			if g.Plan() != good.Plan() || g.String() == "" || bloom.Inside.FileBytes(g) != bloom.Inside.FileBytes(good) {
				t.Errorf("%s: Close lost the plan", name)
			}
		}
	}
}

func TestNoSuchFile(t *testing.T) {
	directory := t.TempDir()
	missing := filepath.Join(directory, "missing")
	empty := filepath.Join(directory, "empty")
	if err := os.WriteFile(empty, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path string
		want       error
	}{
		{"missing", missing, fs.ErrNotExist},
		{"directory", directory, bloom.ErrFormat},
		{"empty", empty, bloom.ErrFormat},
	} {
		for how, open := range map[string]func(string) (*bloom.Filter, error){"Load": bloom.Load, "Open": bloom.Open} {
			if _, err := open(tt.path); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.path) {
				t.Errorf("%s of %s: got error %v, want %v that names %s", how, tt.name, err, tt.want, tt.path)
			}
		}
	}
}

// TestNamedPipe: opening one waits until somebody opens its other end, perhaps
// for ever, and renaming onto one takes it away from those who wait.
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Skipf("NOT CHECKED: mkfifo: %v", err)
	}
	for how, open := range map[string]func(string) (*bloom.Filter, error){"Load": bloom.Load, "Open": bloom.Open} {
		if _, err := open(path); !errors.Is(err, bloom.ErrFormat) || !strings.Contains(err.Error(), "use Read for a stream") {
			t.Errorf("%s of a named pipe: got error %v", how, err)
		}
	}
	f := mustNew(t, bloom.Config{Keys: 100, Rate: 0.01})
	if err := f.Save(path); err == nil || !strings.Contains(err.Error(), "use WriteTo for a stream") {
		t.Errorf("Save over a named pipe: got error %v", err)
	}
	onlyFile(t, filepath.Dir(path), "pipe")
	if info, err := os.Stat(path); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("Save over a named pipe left something else: %v", err)
	}
}

func TestSaveReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "saved.bloom")
	for _, s := range shapes() { // larger and smaller, one over the other
		f := s.filter(t)
		if err := f.Save(path); err != nil {
			t.Fatal(err)
		}
		g, err := bloom.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		sameFilter(t, s.name, g, f)
	}
	onlyFile(t, filepath.Dir(path), "saved.bloom")
}

// TestSaveLongName: a name may be as long as the system allows, although the
// temporary file has a longer one.
func TestSaveLongName(t *testing.T) {
	f := mustNew(t, bloom.Config{Keys: 100, Rate: 0.01})
	for _, name := range []string{strings.Repeat("n", 255), "n" + strings.Repeat("ü", 127)} {
		directory := t.TempDir()
		for range 2 {
			if err := f.Save(filepath.Join(directory, name)); err != nil {
				t.Fatal(err)
			}
		}
		onlyFile(t, directory, name)
	}
}

func TestSaveWhereItCannot(t *testing.T) {
	f := mustNew(t, bloom.Config{Keys: 100, Rate: 0.01})
	parent := t.TempDir()
	directory := filepath.Join(parent, "directory")
	if err := os.Mkdir(directory, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		directory, // not replaced, even though it is empty
		filepath.Join(parent, "missing", "saved.bloom"),
		filepath.Join(directory, strings.Repeat("n", 300)),
		"",
	} {
		if err := f.Save(path); err == nil || !strings.HasPrefix(err.Error(), "bloom: saving: ") {
			t.Errorf("Save(%q): got error %v", path, err)
		}
	}
	onlyFile(t, parent, "directory")
	onlyFile(t, directory, "")

	if err := os.Chmod(directory, 0o555); err != nil {
		t.Fatal(err)
	}
	probe := filepath.Join(directory, "probe")
	if os.WriteFile(probe, nil, 0o666) == nil {
		os.Remove(probe)
		t.Log("NOT CHECKED: Save into a directory without write permission; this user may write everywhere")
	} else if err := f.Save(filepath.Join(directory, "saved.bloom")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Save into a directory without write permission: got error %v", err)
	}
	os.Chmod(directory, 0o777)
	onlyFile(t, directory, "")
}

func TestSaveMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode bits here")
	}
	f := mustNew(t, bloom.Config{Keys: 100, Rate: 0.01})
	directory := t.TempDir()
	modeOf := func(path string) fs.FileMode {
		t.Helper()
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	// The umask is what os.WriteFile meets, too.
	plain := filepath.Join(directory, "plain")
	if err := os.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(directory, "saved")
	if err := f.Save(saved); err != nil {
		t.Fatal(err)
	}
	unmasked := modeOf(plain)
	if got := modeOf(saved); got != unmasked {
		t.Errorf("Save makes a file of mode %v, want %v as any new file", got, unmasked)
	}
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o666, 0o400} {
		if err := os.Chmod(saved, mode); err != nil {
			t.Fatal(err)
		}
		if err := f.Save(saved); err != nil {
			t.Fatal(err)
		}
		if got := modeOf(saved); got != mode {
			t.Errorf("Save over a file of mode %v leaves %v", mode, got)
		}
	}

	// A link is replaced: what it points to stays.
	if err := os.Chmod(plain, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(directory, "link")
	if err := os.Symlink(plain, link); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(link); err != nil {
		t.Fatal(err)
	}
	if got := modeOf(link); got != unmasked {
		t.Errorf("Save over a link leaves %v, want %v as any new file", got, unmasked)
	}
	if left, err := os.ReadFile(plain); err != nil || len(left) != 0 {
		t.Errorf("Save over a link wrote %d bytes behind it, %v", len(left), err)
	}
}
