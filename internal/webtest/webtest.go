// Package webtest has what the tests of package web share, in Node.js and in a browser:
// files, keys, and the library's answers, with which those of JavaScript are compared.
package webtest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
)

// Secret is that of the keyed golden files.
const Secret = "0123456789abcdef"

// A Case is a file that JavaScript must read as the library does.
type Case struct {
	Name   string
	Path   string
	Secret string    // of 16 bytes; empty if the filter is not keyed
	Now    time.Time // what a window takes for now
}

// Golden returns a case for each file in testdata/golden that the reader knows, given the
// path of the repository's root.
func Golden(t testing.TB, root string) (cases []Case) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "testdata", "golden", "*.bloom"))
	if err != nil || len(paths) < 31 {
		t.Fatalf("%d golden files, %v", len(paths), err)
	}
	for _, path := range paths {
		c := Case{Name: strings.TrimSuffix(filepath.Base(path), ".bloom"), Path: path, Now: time.Unix(1_800_000_000, 0)}
		if strings.HasSuffix(c.Name, "-keyed") {
			c.Secret = Secret
		}
		cases = append(cases, c)
	}
	return cases
}

// StoredKey is a key of the golden files, which have the first 200.
func StoredKey(i int) string { return fmt.Sprint("key ", i) }

// Keys returns n keys: a quarter are stored keys, and the others are text and bytes
// of all kinds, hardly any of which is stored.
func Keys(n int) [][]byte {
	random := rand.New(rand.NewPCG(7, 11))
	keys := make([][]byte, 0, n)
	letters := []string{"a", "Z", "0", "ž", "€", "한", "𝄞", "\xed\xa0\x81", "\xed\xb0\x80", "\xff", "\xe2\x82", "\x00"}
	for i := range n {
		switch {
		case i == 1:
			keys = append(keys, []byte("taken for one of them"))
		case i == 5 || i == 6: // longer than the reader's buffer
			keys = append(keys, []byte(strings.Repeat("ž", 35_000+i)))
		case i%4 == 0:
			keys = append(keys, []byte(StoredKey(i/4)))
		case i%4 == 1:
			keys = append(keys, fmt.Appendf(nil, "before key %d", i/4))
		case i%4 == 2:
			length := random.IntN(40)
			if i%100 == 2 {
				length = random.IntN(600)
			}
			key := make([]byte, length)
			for j := range key {
				key[j] = byte(random.Uint32())
			}
			keys = append(keys, key)
		default:
			var key []byte
			for range random.IntN(12) {
				key = append(key, letters[random.IntN(len(letters))]...)
			}
			keys = append(keys, fmt.Appendf(key, "%d", i))
		}
	}
	return keys
}

// Pack returns the keys as testdata/answers.mjs reads them: each after its length, a
// little-endian u32.
func Pack(keys [][]byte) (packed []byte) {
	for _, key := range keys {
		packed = binary.LittleEndian.AppendUint32(packed, uint32(len(key)))
		packed = append(packed, key...)
	}
	return packed
}

// Answers returns a character for each key: 1 if the library finds it in the case's
// file, otherwise 0.
func Answers(t testing.TB, c Case, keys [][]byte) string {
	t.Helper()
	f := load(t, c)
	defer f.Close()
	if c.Secret != "" {
		if err := f.(interface{ SetSecret([]byte) error }).SetSecret([]byte(c.Secret)); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
	}
	found := make([]bool, len(keys))
	f.ContainsMany(keys, found)
	answers := make([]byte, len(keys))
	for i, is := range found {
		answers[i] = '0'
		if is {
			answers[i] = '1'
		}
	}
	return string(answers)
}

func load(t testing.TB, c Case) bloom.Any {
	t.Helper()
	kind, err := bloom.KindOf(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	if kind == bloom.KindWindow {
		f, err := bloom.LoadWindow(c.Path, func() time.Time { return c.Now })
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f, err := anyfile.Load(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	return f.(bloom.Any)
}

// Compare fails the test if JavaScript's answers are not the library's.
func Compare(t testing.TB, c Case, keys [][]byte, got string) {
	t.Helper()
	want := Answers(t, c, keys)
	if len(got) != len(want) {
		t.Errorf("%s: %d answers to %d keys: %.200s", c.Name, len(got), len(want), got)
		return
	}
	wrong := 0
	for i := range want {
		if got[i] != want[i] {
			if wrong++; wrong <= 3 {
				t.Errorf("%s: the answer for %q is %c, want %c", c.Name, keys[i], got[i], want[i])
			}
		}
	}
	if wrong > 3 {
		t.Errorf("%s: %d answers are wrong", c.Name, wrong)
	}
}

// ReadFile returns the text of a file.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
