package bloom_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/memory"
)

// updated is what a filter in a file can do, of either kind.
type updated interface {
	kept
	AddUint64(key uint64) bool
	ContainsUint64(key uint64) bool
	AddHashes(hashes []uint64, isNew []bool) int
	Report() bloom.Report
	Sync() error
	Recovered() bool
}

// updatedKinds are small enough to be full of events: a Filter of three MiB, a
// Scalable that grows at once.
var updatedKinds = []struct {
	name   string
	create func(path string) (updated, error)
	open   func(path string) (updated, error)
	load   func(path string) (updated, error)
}{
	{
		"Filter",
		func(path string) (updated, error) {
			return orNone(bloom.Config{Bits: 8 * (2*mib + 77*block), Rate: 0.001}.Create(path, map[string]string{"source": "test"}))
		},
		func(path string) (updated, error) { return orNone(bloom.OpenUpdate(path)) },
		func(path string) (updated, error) { return orNone(bloom.Load(path)) },
	}, {
		"Scalable",
		func(path string) (updated, error) {
			return orNone(bloom.ScalableConfig{First: 300, Rate: 0.001}.Create(path))
		},
		func(path string) (updated, error) { return orNone(bloom.OpenUpdateScalable(path)) },
		func(path string) (updated, error) { return orNone(bloom.LoadScalable(path)) },
	},
}

func orNone[F updated](f F, err error) (updated, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// needUpdates skips where files cannot be changed in place, after a look at how
// that is told.
func needUpdates(t *testing.T) {
	t.Helper()
	switch runtime.GOOS {
	case "windows", "aix", "js", "wasip1", "plan9":
	default:
		if memory.LittleEndian {
			return
		}
	}
	path := filepath.Join(t.TempDir(), "new.bloom")
	if _, err := (bloom.Config{Keys: 10, Rate: 0.01}).Create(path, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Fatalf("Create where files cannot be changed in place: got error %v", err)
	}
	onlyFile(t, filepath.Dir(path), "")
	if err := mustNew(t, bloom.Config{Keys: 10, Rate: 0.01}).Save(path); err != nil {
		t.Fatal(err)
	}
	if _, err := bloom.OpenUpdate(path); !errors.Is(err, errors.ErrUnsupported) {
		t.Fatalf("OpenUpdate where files cannot be changed in place: got error %v", err)
	}
	t.Skip("files cannot be changed in place here")
}

func contains(t *testing.T, what string, f updated, keys uint64) {
	t.Helper()
	for key := range keys {
		if !f.ContainsUint64(key) {
			t.Fatalf("%s: key %d of %d is lost", what, key, keys)
		}
	}
}

// TestUpdate: what was added in several sittings is there, and the file is the one
// that a filter in memory would have written.
func TestUpdate(t *testing.T) {
	needUpdates(t)
	for _, kind := range updatedKinds {
		t.Run(kind.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "seen.bloom")
			f, err := kind.create(path)
			if err != nil {
				t.Fatal(err)
			}
			onlyFile(t, filepath.Dir(path), "seen.bloom")
			key := uint64(0)
			for sitting := range 5 {
				for range 400 {
					f.AddUint64(key)
					key++
				}
				if f.AddUint64(0) {
					t.Error("a key of the first sitting is new")
				}
				if sitting%2 == 0 {
					if err := f.Sync(); err != nil {
						t.Fatal(err)
					}
					g, err := kind.load(path)
					if err != nil {
						t.Fatal("Load after Sync: ", err)
					}
					contains(t, "loaded after Sync", g, key)
				} else if _, err := kind.load(path); !errors.Is(err, bloom.ErrChecksum) || !strings.Contains(err.Error(), "is being changed") {
					t.Errorf("Load between Syncs: got error %v", err)
				}
				added := f.Report().Added
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				if err := f.Close(); err != nil {
					t.Error("Close again: ", err)
				}
				if f, err = kind.open(path); err != nil {
					t.Fatal(err)
				}
				contains(t, "opened", f, key)
				if f.Recovered() || f.Report().Added != added {
					t.Errorf("opened: recovered %v, %d adds, want %d", f.Recovered(), f.Report().Added, added)
				}
			}
			var written bytes.Buffer
			if _, err := f.WriteTo(&written); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// But for the state pages, which have another generation.
			if !bytes.Equal(file[:page], written.Bytes()[:page]) || !bytes.Equal(file[body:], written.Bytes()[body:]) {
				t.Error("the file is not the one that WriteTo writes")
			}
		})
	}
}

// TestUpdateIsLikeMemory: single adds and batches answer as those of a filter in
// memory, and set the same bits.
func TestUpdateIsLikeMemory(t *testing.T) {
	needUpdates(t)
	config := bloom.Config{Keys: 3000, Rate: 0.01, Secret: testSecret}
	meta := map[string]string{"key": "lower"}
	path := filepath.Join(t.TempDir(), "seen.bloom")
	f, err := config.Create(path, meta)
	if err != nil {
		t.Fatal(err)
	}
	m := mustNew(t, config)
	both := func(what string, do func(f *bloom.Filter) any) {
		if a, b := do(f), do(m); a != b {
			t.Errorf("%s: got %v from the file, %v from memory", what, a, b)
		}
	}
	var some, more []string
	for i := range 3000 {
		some, more = append(some, fmt.Sprint(i)), append(more, fmt.Sprint(i+1500))
	}
	for _, keys := range [][]string{some, some, more} {
		both("AddStrings", func(f *bloom.Filter) any {
			isNew := make([]bool, len(keys))
			f.AddStrings(keys, isNew)
			return fmt.Sprint(isNew)
		})
		if err := f.Sync(); err != nil { // so that the next batch begins on a clean file
			t.Fatal(err)
		}
	}
	both("Add", func(f *bloom.Filter) any { return f.Add([]byte("x")) })
	both("Add again", func(f *bloom.Filter) any { return f.AddString("x") })
	both("Add of a short key", func(f *bloom.Filter) any { return f.Add([]byte("twelve bytes")) })
	both("Report", func(f *bloom.Filter) any { return f.Report() })
	if !f.Equal(m) || f.Plan() != m.Plan() || !maps.Equal(f.Meta(), meta) {
		t.Error("the filter in the file is another")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	g, err := bloom.OpenUpdate(path)
	if err != nil || !g.NeedsSecret() || g.SetSecret(testSecret) != nil || g.AddString("x") || !g.Equal(m) || !maps.Equal(g.Meta(), meta) {
		t.Errorf("opened again it is another: %v", err)
	}
	if err := errors.Join(g.Verify(), g.Close()); err != nil {
		t.Error(err)
	}
}

// TestUpdateOfNothing: a file to which nothing new is added keeps its very bytes.
func TestUpdateOfNothing(t *testing.T) {
	needUpdates(t)
	for _, kind := range updatedKinds {
		path := filepath.Join(t.TempDir(), "seen.bloom")
		f, err := kind.create(path)
		if err != nil {
			t.Fatal(err)
		}
		hash := []uint64{1 << 60, 2 << 60}
		f.AddHashes(hash, nil)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(path)
		if f, err = kind.open(path); err != nil {
			t.Fatal(err)
		}
		answers := []bool{true, true}
		if n := f.AddHashes(hash, answers); n != 0 || answers[0] || answers[1] {
			t.Errorf("%s: keys of before are new: %d, %v", kind.name, n, answers)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the file was changed: %v", kind.name, err)
		}
	}
}

// TestUpdateConcurrent: many goroutines add to a Scalable in a file that grows,
// while others look up and sync.
func TestUpdateConcurrent(t *testing.T) {
	needUpdates(t)
	path := filepath.Join(t.TempDir(), "seen.bloom")
	f, err := bloom.ScalableConfig{First: 100, Rate: 0.01}.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const goroutines, each = 4, 20_000
	var adders sync.WaitGroup
	for g := range uint64(goroutines) {
		adders.Go(func() {
			for i := range uint64(each) {
				f.AddUint64(g<<32 | i)
				if !f.ContainsUint64(g<<32 | i) {
					t.Errorf("key %d of %d is lost", i, g)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { adders.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(time.Millisecond):
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Err(), f.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := bloom.LoadScalable(path)
	if err != nil {
		t.Fatal(err)
	}
	for g := range uint64(goroutines) {
		for i := range uint64(each) {
			if !again.ContainsUint64(g<<32 | i) {
				t.Fatalf("key %d of %d is not in the file", i, g)
			}
		}
	}
	if n := len(again.Layers()); n < 5 {
		t.Errorf("the file has %d layers: it did not grow", n)
	}
}

func TestUpdateLocked(t *testing.T) {
	needUpdates(t)
	for _, kind := range updatedKinds {
		path := filepath.Join(t.TempDir(), "seen.bloom")
		f, err := kind.create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kind.open(path); !errors.Is(err, bloom.ErrLocked) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: a second writer got error %v, want ErrLocked", kind.name, err)
		}
		if _, err := kind.create(path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: Create over it got error %v, want fs.ErrExist", kind.name, err)
		}
		f.AddUint64(1)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		g, err := kind.open(path)
		if err != nil || !g.ContainsUint64(1) {
			t.Fatalf("%s: after Close: %v", kind.name, err)
		}

		// A file that takes the place of one that is locked is another one.
		if err := g.Save(path); err != nil {
			t.Fatal(err)
		}
		h, err := kind.open(path)
		if err != nil {
			t.Fatalf("%s: the file in its place: %v", kind.name, err)
		}
		g.AddUint64(2)
		if err := g.Sync(); err == nil || !strings.Contains(err.Error(), "replaced") {
			t.Errorf("%s: Sync of a file that was replaced: got error %v", kind.name, err)
		}
		if err := g.Close(); err == nil {
			t.Errorf("%s: Close of a file that was replaced: no error", kind.name)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestUpdateRefuses: errors that say what is wrong, and nothing left behind.
func TestUpdateRefuses(t *testing.T) {
	needUpdates(t)
	directory := t.TempDir()
	at := func(name string) string { return filepath.Join(directory, name) }
	f := mustNew(t, bloom.Config{Keys: 100, Rate: 0.01})
	if err := f.Save(at("saved")); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(at("saved"))
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-1] ^= 1
	os.WriteFile(at("damaged"), damaged, 0o666)
	os.WriteFile(at("short"), whole[:len(whole)-1], 0o666)
	os.WriteFile(at("long"), append(whole, 0), 0o666)
	old := bytes.Clone(whole)
	le.PutUint64(old[stateAt:], 1<<63)
	seal(old, stateAt)
	os.WriteFile(at("old"), old, 0o666)
	os.Mkdir(at("directory"), 0o777)
	for _, tt := range []struct {
		name, text string
		want       error
	}{
		{"none", "no such file", fs.ErrNotExist},
		{"directory", "not a regular file", bloom.ErrFormat},
		{"damaged", "list of checksums", bloom.ErrChecksum},
		{"old", "generation", bloom.ErrFormat},
		{"short", "its header says", bloom.ErrFormat},
		{"long", "its header says", bloom.ErrFormat},
	} {
		if _, err := bloom.OpenUpdate(at(tt.name)); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("OpenUpdate of %q: got error %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, err := bloom.OpenUpdateScalable(at("saved")); !errors.Is(err, bloom.ErrVersion) {
		t.Errorf("OpenUpdateScalable of a Filter: got error %v", err)
	}
	if again, err := bloom.OpenUpdate(at("saved")); err != nil { // no lock stays behind
		t.Error(err)
	} else {
		again.Close()
	}

	plan := bloom.Config{Keys: 100, Rate: 0.01}
	for name, config := range map[string]bloom.Config{
		"no rate":      {Keys: 100},
		"short secret": {Keys: 100, Rate: 0.01, Secret: []byte("short")},
	} {
		if _, err := config.Create(at("new"), nil); err == nil {
			t.Errorf("Create, %s: no error", name)
		}
	}
	if _, err := plan.Create(at("new"), map[string]string{"long": strings.Repeat("x", 5000)}); !errors.Is(err, bloom.ErrLimit) {
		t.Errorf("Create with too much metadata: got error %v", err)
	}
	if _, err := plan.Create(at("none/new"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Create in no directory: got error %v", err)
	}
	if _, err := plan.Create(at("directory"), nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a directory: got error %v", err)
	}
	if _, err := (bloom.ScalableConfig{}).Create(at("new")); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("Create of a Scalable without a rate: got error %v", err)
	}
	onlyFile(t, directory, "damaged directory long old saved short")

	if os.Getuid() != 0 { // whom no permission stops
		os.Chmod(at("saved"), 0o444)
		if _, err := bloom.OpenUpdate(at("saved")); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("OpenUpdate of a read-only file: got error %v", err)
		}
		os.Chmod(directory, 0o555)
		defer os.Chmod(directory, 0o777)
		if _, err := plan.Create(at("new"), nil); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Create in a read-only directory: got error %v", err)
		}
	}
}

// TestUpdateGap: bytes between two layers that are not zero are refused by all
// readers of a whole file, and cleared by a writer that mends it.
func TestUpdateGap(t *testing.T) {
	needUpdates(t)
	path := filepath.Join(t.TempDir(), "gap.bloom")
	f := must[*bloom.Scalable](t)(bloom.ScalableConfig{First: 100, Rate: 0.01}.New()).(*bloom.Scalable)
	for key := range uint64(2000) {
		f.AddUint64(key)
	}
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gap := body + int(bloom.Inside.Sizes(f)[0].Plan.Bytes())
	if len(bloom.Inside.Sizes(f)) < 2 || gap%page == 0 {
		t.Fatal("there is no gap behind the first layer")
	}
	file[gap] = 1
	sealAll(file) // the checksum is right
	write := func() {
		t.Helper()
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write()
	refused := func(how string, err error) {
		t.Helper()
		if !errors.Is(err, bloom.ErrFormat) || !strings.Contains(err.Error(), "before section 1") {
			t.Errorf("%s of a file with a gap in use: got error %v", how, err)
		}
	}
	_, err = bloom.LoadScalable(path)
	refused("LoadScalable", err)
	_, err = bloom.OpenUpdateScalable(path)
	refused("OpenUpdateScalable", err)
	opened, err := bloom.OpenScalable(path)
	if err != nil {
		t.Fatal(err)
	}
	refused("Verify", opened.Verify())
	opened.Close()

	file[stateAt+8] = 0 // as a writer leaves it that was killed
	seal(file, stateAt)
	write()
	mended, err := bloom.OpenUpdateScalable(path)
	if err != nil {
		t.Fatal(err)
	}
	if !mended.Recovered() {
		t.Error("Recovered() = false")
	}
	if err := errors.Join(mended.Verify(), mended.Close()); err != nil {
		t.Error(err)
	}
	again, err := bloom.LoadScalable(path)
	if err != nil {
		t.Fatalf("LoadScalable of the mended file: %v", err)
	}
	contains(t, "mended", again, 2000)
}

// TestUpdatePanics: what is not for files.
func TestUpdatePanics(t *testing.T) {
	needUpdates(t)
	f, err := bloom.Config{Keys: 100, Rate: 0.01}.Create(filepath.Join(t.TempDir(), "a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.AddString("Titanic")
	g, err := bloom.ScalableConfig{Rate: 0.01}.Create(filepath.Join(t.TempDir(), "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for name, call := range map[string]func(){
		"Clear":          func() { f.Clear() },
		"Scalable.Clear": func() { g.Clear() },
		"Union":          func() { f.Union(f) },
		"Intersect":      func() { f.Intersect(f.Clone()) },
		"Difference":     func() { f.Difference(f.Clone()) },
		"Share":          func() { f.Share() },
		"Bulk":           func() { f.Bulk(1 << 20) },
		"Prefault":       func() { f.Prefault() },
	} {
		if panicOf(call) == "" {
			t.Errorf("%s of a file does not panic", name)
		}
	}
	if clone := f.Clone(); !f.ContainsString("Titanic") || !clone.AddString("Avatar") || f.ContainsString("Avatar") || clone.Recovered() || clone.Sync() != nil {
		t.Error("a clone is not a filter of its own in memory")
	}
}

// TestOpenScalable opens a file next to its writer, after a kill, and after the file was
// repaired.
func TestOpenScalable(t *testing.T) {
	needUpdates(t)
	path := filepath.Join(t.TempDir(), "seen.bloom")
	f, err := bloom.ScalableConfig{First: 300, Rate: 0.001, Seed: 7}.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for key := range uint64(1000) {
		f.AddUint64(key)
	}
	open := func() *bloom.Scalable {
		t.Helper()
		g, err := bloom.OpenScalable(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		for key := range uint64(1000) {
			if !g.ContainsUint64(key) {
				t.Fatalf("key %d is lost", key)
			}
		}
		return g
	}
	g := open()
	if err := g.Verify(); !errors.Is(err, bloom.ErrUnclean) || !errors.Is(err, bloom.ErrChecksum) {
		t.Errorf("Verify of a file that is being changed: %v, want ErrUnclean and ErrChecksum", err)
	}
	if _, err := bloom.LoadScalable(path); !errors.Is(err, bloom.ErrUnclean) {
		t.Errorf("LoadScalable of the same: %v, want ErrUnclean", err)
	}
	if got, want := g.Config(), (bloom.ScalableConfig{First: 300, Rate: 0.001, Growth: 2, Seed: 7}); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(f.Config(), want) {
		t.Errorf("Config() = %+v and %+v, want %+v", got, f.Config(), want)
	}
	if f.AddUint64(1000); !g.ContainsUint64(1000) {
		t.Error("an add to the newest layer is not seen")
	}
	for name, call := range map[string]func(){
		"AddUint64": func() { g.AddUint64(1) },
		"AddHash":   func() { g.AddHash(1 << 60) },
		"AddHashes": func() { g.AddHashes([]uint64{1 << 60}, nil) },
		"Clear":     g.Clear,
		"Saturate":  func() { bloom.Inside.Saturate(g) },
	} {
		if panicOf(call) == "" {
			t.Errorf("%s of a file that was opened read-only does not panic", name)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	whole := open()
	if err := whole.Verify(); err != nil {
		t.Errorf("Verify of a whole file: %v", err)
	}
	if r := whole.Report(); r.Added < 990 || r.Overfull() {
		t.Errorf("the whole file reports %+v", r)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[13000] ^= 1
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := open().Verify(); !errors.Is(err, bloom.ErrChecksum) || errors.Is(err, bloom.ErrUnclean) {
		t.Errorf("Verify of a damaged file: %v, want ErrChecksum and not ErrUnclean", err)
	}
	if _, err := bloom.OpenScalable(filepath.Dir(path)); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("OpenScalable of a directory: %v, want ErrFormat", err)
	}
}

// TestLock: the holder of the lock excludes writers that would change the file in place,
// and the other way round.
func TestLock(t *testing.T) {
	needUpdates(t)
	path := filepath.Join(t.TempDir(), "seen.bloom")
	f, err := bloom.Config{Keys: 100, Rate: 0.01}.Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bloom.Inside.Lock(path); !errors.Is(err, bloom.ErrLocked) {
		t.Errorf("Lock of a file that is open for update: %v, want ErrLocked", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	unlock, err := bloom.Inside.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bloom.OpenUpdate(path); !errors.Is(err, bloom.ErrLocked) {
		t.Errorf("OpenUpdate of a locked file: %v, want ErrLocked", err)
	}
	unlock()
	g, err := bloom.OpenUpdate(path)
	if err != nil {
		t.Fatalf("OpenUpdate after unlock: %v", err)
	}
	g.Close()
	if _, err := bloom.Inside.Lock(path + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Lock of no file: %v, want fs.ErrNotExist", err)
	}
}

// TestUpdateSpeed: opening, one add and closing do not depend on the size. The
// bound is far above what it takes, and far below what reading all takes.
func TestUpdateSpeed(t *testing.T) {
	needUpdates(t)
	path := filepath.Join(t.TempDir(), "large.bloom")
	f, err := bloom.Config{Keys: 100_000_000, Rate: 1e-6}.Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if f, err = bloom.OpenUpdate(path); err != nil {
		t.Fatal(err)
	}
	isNew := f.AddString("Titanic")
	if err := f.Close(); err != nil || !isNew {
		t.Fatal(isNew, err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("open, add and close of %d bytes took %v", bloom.Inside.FileBytes(f), took)
	} else {
		t.Logf("open, add and close of %d bytes took %v", bloom.Inside.FileBytes(f), took)
	}
}

// childVariable makes the test binary a writer that is to be killed.
const childVariable = "BLOOM_TEST_UPDATE_CHILD"

// TestUpdateKilled kills writers at any moment, again and again on the same file.
// No key whose add returned may be lost, whether synced or not: the system still
// writes the pages of a process that is gone.
func TestUpdateKilled(t *testing.T) {
	if name := os.Getenv(childVariable); name != "" {
		addUntilKilled(name, os.Getenv(childVariable+"_PATH"))
		return
	}
	needUpdates(t)
	rounds := 120
	if testing.Short() || raceEnabled {
		rounds = 20
	}
	for i, kind := range updatedKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			directory := t.TempDir()
			path := filepath.Join(directory, "seen.bloom")
			keys, recovered, grown := uint64(0), 0, 0
			for round := range rounds {
				keys = max(keys, killOne(t, kind.name, path, rng, keys))
				// What is left of a Create that was killed has another name.
				rests, _ := filepath.Glob(filepath.Join(directory, ".seen*"))
				for _, rest := range rests {
					os.Remove(rest)
				}
				f, err := kind.open(path)
				if errors.Is(err, fs.ErrNotExist) && keys == 0 {
					continue
				}
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				if f.Recovered() {
					recovered++
				}
				contains(t, fmt.Sprint("round ", round), f, keys)
				if r := f.Report(); r.Rate > 0.0011 {
					t.Fatalf("round %d: the rate is %v: the test says nothing any more", round, r.Rate)
				}
				if s, ok := f.(*bloom.Scalable); ok {
					grown = max(grown, len(s.Layers()))
				}
				if err := f.Close(); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				g, err := kind.load(path)
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				contains(t, fmt.Sprint("round ", round, ", loaded"), g, keys)
				g.Close()
				if keys > 60_000 {
					os.Remove(path)
					keys = 0
				}
			}
			t.Logf("%d rounds, %d of them mended, at most %d layers", rounds, recovered, grown)
			if recovered < rounds/10 {
				t.Errorf("%d of %d files had to be mended: the kills come too late", recovered, rounds)
			}
		})
	}
}

// killOne lets a child add to the file and kills it. It returns how many keys it
// is known to have added, counting from key 0.
func killOne(t *testing.T, kind, path string, rng *rand.Rand, keys uint64) uint64 {
	child := exec.Command(os.Args[0], "-test.run=^TestUpdateKilled$")
	child.Env = append(os.Environ(), childVariable+"="+kind, childVariable+"_PATH="+path,
		fmt.Sprintf("%s_FROM=%d", childVariable, keys), fmt.Sprintf("%s_SEED=%d", childVariable, rng.Uint64()))
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	before := rng.IntN(25) // lines to wait for
	delay := time.Duration(rng.IntN(3000)) * time.Microsecond
	lines := bufio.NewScanner(out)
	killed := false
	for n := 0; ; n++ {
		if n == before {
			if n > 0 {
				beside(t, path, keys)
			}
			time.Sleep(delay)
			child.Process.Kill()
			killed = true
		}
		if !lines.Scan() {
			break
		}
		if _, err := fmt.Sscan(lines.Text(), &keys); err != nil {
			t.Errorf("the child says %q", lines.Text())
		}
	}
	if err := child.Wait(); !killed {
		t.Errorf("the child ended by itself: %v", err)
	}
	return keys
}

// beside looks at the file while a child adds to it.
func beside(t *testing.T, path string, keys uint64) {
	if f, err := bloom.OpenUpdate(path); !errors.Is(err, bloom.ErrLocked) {
		t.Errorf("a second writer beside a process that adds: got %v, error %v, want ErrLocked", f, err)
	}
	f, err := bloom.Open(path)
	if errors.Is(err, bloom.ErrVersion) {
		return // a Scalable, which nothing opens to be read
	}
	if err != nil {
		t.Errorf("Open beside a process that adds: %v", err)
		return
	}
	defer f.Close()
	for key := range keys {
		if !f.ContainsUint64(key) {
			t.Errorf("opened beside a process that adds: key %d of %d is lost", key, keys)
			return
		}
	}
}

// addUntilKilled adds keys in batches and one by one, syncs now and then, and says
// after each step how many it has added.
func addUntilKilled(kind, path string) {
	var key, seed uint64
	fmt.Sscan(os.Getenv(childVariable+"_FROM"), &key)
	fmt.Sscan(os.Getenv(childVariable+"_SEED"), &seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, k := range updatedKinds {
		if k.name != kind {
			continue
		}
		f, err := k.open(path)
		if errors.Is(err, fs.ErrNotExist) {
			f, err = k.create(path)
		}
		for err == nil {
			for range rng.IntN(300) {
				f.AddUint64(key)
				key++
			}
			fmt.Println(key)
			if rng.IntN(3) == 0 {
				err = f.Sync()
				fmt.Println(key)
			}
		}
		fmt.Println(err)
	}
	io.Copy(io.Discard, os.Stdin)
}
