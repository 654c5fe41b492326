package anyfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
)

// TestGolden: every golden file is read as its kind, by each of the functions.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", "golden", "*.bloom"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d golden files, %v", len(paths), err)
	}
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		types := map[string]bool{}
		for how, get := range map[string]func() (bloom.Any, error){
			"Load": func() (bloom.Any, error) { return anyfile.Load(path) },
			"Open": func() (bloom.Any, error) { return anyfile.Open(path) },
			"Read": func() (bloom.Any, error) { return anyfile.Read(bytes.NewReader(file), int64(len(file))) },
		} {
			f, err := get()
			if err != nil {
				t.Errorf("%s of %s: %v", how, path, err)
				continue
			}
			types[fmt.Sprintf("%T", f)] = true
			f.Close()
		}
		if len(types) != 1 {
			t.Errorf("%s is read as %v", path, types)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, content := range []string{"", "bloomery", string(make([]byte, 5000))} {
		if f, err := anyfile.Read(bytes.NewReader([]byte(content)), 1<<20); f != nil || !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("%d bytes: %v, %v, want ErrFormat", len(content), f, err)
		}
	}
	if f, err := anyfile.Load(filepath.Join(t.TempDir(), "missing")); f != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v, %v", f, err)
	}
}
