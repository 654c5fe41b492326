package bloom_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
)

func TestKindOf(t *testing.T) {
	dir := t.TempDir()
	seen := make(map[bloom.Kind]bool)
	for _, kind := range storedKinds {
		f := kind.make(t, nil)
		defer f.Close()
		path := filepath.Join(dir, kind.name)
		if err := f.Save(path); err != nil {
			t.Fatal(err)
		}
		got, err := bloom.KindOf(path)
		if err != nil || got.String() != strings.ToLower(kind.name) {
			t.Errorf("%s: %v, %v", kind.name, got, err)
		}
		seen[got] = true
	}
	if len(seen) != len(storedKinds) {
		t.Errorf("%d kinds have %d names", len(storedKinds), len(seen))
	}
	if got := bloom.Kind(99).String(); got != "kind 99" {
		t.Errorf("an unknown kind is called %q", got)
	}
}

// TestAny: whatever kind a file has, it comes back as that, with its keys, also by
// way of a stream and, where the kind can, of a mapping.
func TestAny(t *testing.T) {
	secret := []byte("0123456789abcdef")
	for _, kind := range storedKinds {
		for _, secret := range [][]byte{nil, secret} {
			f := kind.make(t, secret)
			for i := range 100 {
				f.AddString(storedKey(i))
			}
			path := filepath.Join(t.TempDir(), kind.name)
			if err := f.Save(path); err != nil {
				t.Fatal(err)
			}
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			loadAny, openAny, readAny, typeName := bloom.LoadAny, bloom.OpenAny, bloom.ReadAny, "*bloom."+kind.name
			if kind.name == "Classic" {
				for _, any := range []func(string) (bloom.Any, error){loadAny, openAny} {
					if g, err := any(path); g != nil || !errors.Is(err, bloom.ErrVersion) || !strings.Contains(err.Error(), "package classic") {
						t.Errorf("a Classic: %v, %v, want ErrVersion and the name of the package", g, err)
					}
				}
				loadAny, openAny, readAny, typeName = anyfile.Load, anyfile.Open, anyfile.Read, "*classic.Filter"
			}
			for how, get := range map[string]func() (bloom.Any, error){
				"LoadAny": func() (bloom.Any, error) { return loadAny(path) },
				"OpenAny": func() (bloom.Any, error) { return openAny(path) },
				"ReadAny": func() (bloom.Any, error) { return readAny(bytes.NewReader(file), int64(len(file))) },
			} {
				g, err := get()
				if err != nil {
					t.Errorf("%s of a %s: %v", how, kind.name, err)
					continue
				}
				if name := fmt.Sprintf("%T", g); name != typeName {
					t.Errorf("%s of a %s returns a %s", how, kind.name, name)
				}
				if secret != nil {
					if err := g.(kept).SetSecret(secret); err != nil {
						t.Fatal(err)
					}
				}
				keys := [][]byte{[]byte(storedKey(0)), []byte(storedKey(99))}
				if n := g.ContainsMany(keys, nil); n != 2 || !g.Contains(keys[1]) {
					t.Errorf("%s of a %s has lost keys", how, kind.name)
				}
				if r := g.Report(); r.Plan != g.Plan() || r.Added < 98 {
					t.Errorf("%s of a %s reports %+v", how, kind.name, r)
				}
				g.Close()
			}
			if g, err := readAny(bytes.NewReader(file), int64(len(file)-1)); g != nil || !errors.Is(err, bloom.ErrLimit) {
				t.Errorf("ReadAny past its limit of a %s: %v, %v", kind.name, g, err)
			}
			f.Close()
		}
	}
	for how, open := range map[string]func(string) (bloom.Any, error){"LoadAny": bloom.LoadAny, "OpenAny": bloom.OpenAny} {
		if f, err := open(t.TempDir()); f != nil || !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("%s of a directory: %v, %v", how, f, err)
		}
	}
}

var _ bloom.Any = (*bloom.Shared)(nil)

func TestKindOfRefuses(t *testing.T) {
	dir := t.TempDir()
	f, err := bloom.New(10, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(dir, "whole")
	if err := f.Save(whole); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), file...)
	damaged[33] ^= 1
	other := append([]byte(nil), file...)
	other[0] ^= 1
	for name, test := range map[string]struct {
		content []byte
		want    error
	}{
		"empty":   {nil, bloom.ErrFormat},
		"short":   {file[:4095], bloom.ErrFormat},
		"damaged": {damaged, bloom.ErrChecksum},
		"magic":   {other, bloom.ErrFormat},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, test.content, 0o666); err != nil {
			t.Fatal(err)
		}
		if kind, err := bloom.KindOf(path); !errors.Is(err, test.want) || kind != 0 {
			t.Errorf("%s: %v, %v", name, kind, err)
		}
	}
	if _, err := bloom.KindOf(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := bloom.KindOf(dir); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("a directory: %v", err)
	}
}
