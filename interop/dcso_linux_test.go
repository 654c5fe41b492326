package interop_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
)

// TestOpenDCSOSparse opens a file of 1 GiB that is almost all hole, and so takes
// no room on Linux: mapping it takes milliseconds and no memory.
func TestOpenDCSOSparse(t *testing.T) {
	const m = 1<<33 - 12345
	path := filepath.Join(t.TempDir(), "sparse.bloom")
	if err := os.WriteFile(path, dcsoFile(400_000_000, 0.0001, 14, m, 0, 0), 0o666); err != nil {
		t.Fatal(err)
	}
	const size = 48 + (m+63)/64*8
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	fastest := time.Hour
	for range 3 { // others may have the processor
		start := time.Now()
		var d *interop.DCSO
		took := allocates(func() {
			var err error
			if d, err = interop.OpenDCSO(path); err != nil {
				t.Fatal(err)
			}
		})
		fastest = min(fastest, time.Since(start))
		if took > 1<<20 {
			t.Errorf("opening took %d bytes of memory", took)
		}
		if d.Filter.ContainsString("Titanic") {
			t.Error("an empty file has a key")
		}
		if err := d.Filter.Close(); err != nil {
			t.Error(err)
		}
	}
	if fastest > 50*time.Millisecond {
		t.Errorf("opening %d bytes took %v", size, fastest)
	}

	// The bits of one key, put there by hand, and free data behind the words.
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	d, err := interop.OpenDCSO(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bit := range d.Filter.Positions([]byte("Titanic")) {
		b := make([]byte, 1)
		at := int64(48 + bit/8)
		if _, err := file.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		b[0] |= 1 << (bit % 8)
		if _, err := file.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := file.WriteAt([]byte("free data"), size); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Filter.Close(); err != nil {
		t.Error(err)
	}
	named, err := format(t, "dcso").Open(path, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	if !named.Contains([]byte("Titanic")) || named.Contains([]byte("Avatar")) || !bytes.Equal(named.Data, []byte("free data")) {
		t.Errorf("the file has Titanic: %v, Avatar: %v, data %q", named.Contains([]byte("Titanic")), named.Contains([]byte("Avatar")), named.Data)
	}

	// More free data than anybody wants in memory.
	if err := os.Truncate(path, size+1<<40); err != nil {
		t.Logf("NOT CHECKED: a file of a terabyte: %v", err)
		return
	}
	if _, err := interop.OpenDCSO(path); !errors.Is(err, bloom.ErrLimit) {
		t.Errorf("1 TiB of free data: %v, want ErrLimit", err)
	}
}

// TestOpenPipe: what cannot be mapped is read, in every format.
func TestOpenPipe(t *testing.T) {
	for name, file := range map[string][]byte{
		"dcso":           dcsoFile(60, 0.01, 7, 575, 3, 9),
		"parquet-bitset": make([]byte, 64),
	} {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		go os.WriteFile(path, file, 0) // it waits for the reader
		f, err := format(t, name).Open(path, interop.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := written(t, f, name); !bytes.Equal(got, file) {
			t.Errorf("%s: %x was read, want %x", name, got, file)
		}
	}
	if _, err := format(t, "dcso").Open(t.TempDir(), interop.Options{}); err == nil {
		t.Error("a directory was read")
	}
}
