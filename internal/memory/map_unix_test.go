//go:build unix

package memory

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestDetach: earlier changes reach the file, later ones do not, and memory keeps
// both.
func TestDetach(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 3*4096), 0o666); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m, err := MapFile(file, 3*4096, true)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Bytes()
	b[0], b[5000] = 1, 2
	if err := m.Sync(); err != nil {
		t.Fatal(err)
	}
	b[9000] = 3 // not synced
	if err := m.Detach(file); err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(b)
	if b[0] != 1 || b[5000] != 2 || b[9000] != 3 {
		t.Error("Detach lost what was changed before")
	}
	b[0], b[6000] = 4, 5
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("after Detach a change went to the file, %v", err)
	}
	if b[0] != 4 || b[6000] != 5 || b[9000] != 3 {
		t.Error("after Detach a change was lost")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
