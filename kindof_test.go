package bloom_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
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
	bytes, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), bytes...)
	damaged[33] ^= 1
	other := append([]byte(nil), bytes...)
	other[0] ^= 1
	for name, test := range map[string]struct {
		content []byte
		want    error
	}{
		"empty":   {nil, bloom.ErrFormat},
		"short":   {bytes[:4095], bloom.ErrFormat},
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
