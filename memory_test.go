package bloom

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
)

// TestMappingsAreCollected: the memory of a filter that nobody closed goes back
// to the system when the filter is garbage, and not while it is in use.
func TestMappingsAreCollected(t *testing.T) {
	const size = 256 << 20
	before := mappedBytes(t)
	f, err := Config{Keys: 1, Bits: size * 8}.New()
	if err != nil {
		t.Fatal(err)
	}
	g, err := Config{Keys: 1000, Bits: 8 * 3 << 20}.New()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "collected.bloom")
	if err := g.Save(path); err != nil {
		t.Fatal(err)
	}
	opened, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}

	runtime.GC()
	if got := mappedBytes(t); got < before+size {
		t.Errorf("with a filter of %d bytes in use, %d bytes are mapped, before it %d", size, got, before)
	}
	if !isMapped(t, path) {
		t.Error("the collector unmapped a file in use")
	}
	f.AddString("Titanic")
	if !f.ContainsString("Titanic") || opened.ContainsString("Titanic") {
		t.Error("the filters are wrong after the collector ran")
	}
	// From here on nobody uses them.
	deadline := time.Now().Add(10 * time.Second)
	for mappedBytes(t) >= before+size || isMapped(t, path) {
		if time.Now().After(deadline) {
			t.Fatalf("ten seconds after the last use %d bytes are mapped, before it %d; file mapped: %v", mappedBytes(t), before, isMapped(t, path))
		}
		runtime.GC() // finds them, and has the cleanup run in a goroutine
		time.Sleep(time.Millisecond)
	}
}

// TestKeepAlive looks at mapped bits while the collector does its best to unmap
// them: each filter's last use is a look. A look at unmapped memory would crash.
func TestKeepAlive(t *testing.T) {
	stop := make(chan bool)
	done := make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	defer func() { close(stop); <-done }()
	const blocks = 2<<20/kernel.BlockBytes + 1
	first, err := Config{Keys: 1000, Bits: blocks * kernel.BlockBits}.New()
	if err != nil {
		t.Fatal(err)
	}
	hashes := make([]uint64, 2*chunk)
	for i := range hashes {
		hashes[i] = rand.Uint64()
	}
	first.AddHashes(hashes, nil)
	path := filepath.Join(t.TempDir(), "alive.bloom")
	if err := first.Save(path); err != nil {
		t.Fatal(err)
	}
	open := func() *Filter {
		t.Helper()
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		if n := open().ContainsHashes(hashes, nil); n != len(hashes) {
			t.Fatalf("%d of %d keys are found", n, len(hashes))
		}
		if !open().ContainsHash(hashes[0]) {
			t.Fatal("a key is lost")
		}
		if err := open().Verify(); err != nil {
			t.Fatal(err)
		}
		if open().Report().Fill == 0 {
			t.Fatal("the filter reports that it is empty")
		}
		if !open().Clone().Equal(open()) {
			t.Fatal("the clone is another")
		}
		if n, err := open().Clone().WriteTo(new(bytes.Buffer)); n != Inside.FileBytes(first) || err != nil {
			t.Fatalf("WriteTo = %d, %v", n, err)
		}
		if err := first.Clone().Union(open()); err != nil {
			t.Fatal(err)
		}
		if _, err := open().Fold(1); err != nil {
			t.Fatal(err)
		}
		first.Clone().Clear()
		first.Clone().AddHashes(hashes, nil)
	}
}

// mappedBytes is how much private writable memory the process has mapped,
// touched or not.
func mappedBytes(t *testing.T) (kB uint64) {
	t.Helper()
	for line := range strings.Lines(procSelf(t, "status")) {
		if rest, ok := strings.CutPrefix(line, "VmData:"); ok {
			for _, c := range strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")) {
				kB = 10*kB + uint64(c-'0')
			}
		}
	}
	return kB << 10
}

func isMapped(t *testing.T, path string) bool {
	t.Helper()
	return strings.Contains(procSelf(t, "maps"), path)
}

func procSelf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/" + name)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("NOT CHECKED: %s does not tell what is mapped", runtime.GOOS)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSaveKeepsTheOldFile: when the new file cannot be written completely, the old
// one stays and no temporary file is left.
func TestSaveKeepsTheOldFile(t *testing.T) {
	f, err := New(100, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	f.AddString("Titanic")
	directory := t.TempDir()
	path := filepath.Join(directory, "saved.bloom")
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	g := f.Clone()
	g.AddString("Avatar")
	large := map[string]string{"source": strings.Repeat("x", filterfile.PageBytes)}
	if err := g.SetMeta(large); !errors.Is(err, ErrLimit) || g.Meta() != nil {
		t.Errorf("SetMeta of more than a page: got error %v and %d entries, want ErrLimit and none", err, len(g.Meta()))
	}
	g.note(large) // as SetMeta never does: now WriteTo fails
	if err := g.Save(path); !errors.Is(err, ErrLimit) {
		t.Errorf("Save of too much metadata: got error %v, want ErrLimit", err)
	}
	kept, err := Load(path)
	if err != nil || !kept.Equal(f) {
		t.Errorf("after a failed Save the old file is %v, %v", kept, err)
	}
	entries, err := os.ReadDir(directory)
	if err != nil || len(entries) != 1 {
		t.Errorf("after a failed Save the directory holds %v, %v", entries, err)
	}
}

func TestMetaRoom(t *testing.T) {
	f, err := New(100, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	const room = filterfile.MaxMetaBytes - 2 - 4 // less the count and two lengths
	for n, want := range map[int]error{room: nil, room + 1: ErrLimit, math.MaxUint16 + 1: ErrLimit} {
		for _, meta := range []map[string]string{{strings.Repeat("k", n): ""}, {"": strings.Repeat("v", n)}} {
			f.note(nil)
			if err := f.SetMeta(meta); !errors.Is(err, want) {
				t.Errorf("SetMeta of %d bytes: got error %v, want %v", n, err, want)
			}
			var file bytes.Buffer
			if _, err := f.WriteTo(&file); err != nil {
				t.Fatal(err)
			}
			g, err := Read(&file, math.MaxInt64)
			if err != nil || len(g.Meta()) != len(f.Meta()) {
				t.Errorf("read with %d bytes of metadata: %v, %v", n, g, err)
			}
		}
	}
}
