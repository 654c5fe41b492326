package interop_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/bloomery/bloom/interop"
)

// loadVectors reads a file of vectors into v and returns its keys as UTF-8, with
// an unpaired surrogate as three bytes. The programs themselves made the vectors,
// each as made_by says.
func loadVectors(t testing.TB, name string, v any) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Keys map[string]struct{ Hex, UTF16 *string }
	}
	for _, into := range []any{&file, v} {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	keys := map[string][]byte{}
	for id, key := range file.Keys {
		if key.Hex != nil {
			keys[id] = fromHex(t, *key.Hex)
			continue
		}
		// Strings with unpaired surrogates, and no pairs, have no UTF-8.
		for units := fromHex(t, *key.UTF16); len(units) > 0; units = units[2:] {
			r := rune(binary.BigEndian.Uint16(units))
			if r&0xf800 == 0xd800 {
				keys[id] = append(keys[id], 0xed, byte(0x80|r>>6&0x3f), byte(0x80|r&0x3f))
			} else {
				keys[id] = append(keys[id], string(r)...)
			}
		}
	}
	return keys
}

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fromBase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// keyRange is a run of keys: Fmt with the numbers from From to To-1 in it.
type keyRange struct {
	Fmt      string
	From, To int
}

// foundAmong are the numbers of the keys that are found.
func (r keyRange) foundAmong(contains func(i int) bool) []int {
	found := []int{}
	for i := r.From; i < r.To; i++ {
		if contains(i) {
			found = append(found, i)
		}
	}
	return found
}

func format(t testing.TB, name string) *interop.Format {
	t.Helper()
	f, ok := interop.FormatNamed(name)
	if !ok {
		t.Fatalf("there is no format %q", name)
	}
	return f
}

// mustRewrite reads a file by its format, which must be recognised if it has a
// mark, writes it again and compares the bytes.
func mustRewrite(t *testing.T, name string, file []byte, o interop.Options) *interop.File {
	t.Helper()
	f := format(t, name)
	if f.Matches != nil {
		for _, size := range []int64{int64(len(file)), -1} {
			if got, ok := interop.Recognise(file[:min(len(file), 64)], size); !ok || got != f {
				t.Errorf("a file of %d bytes is not recognised as %s, but %v", size, name, got)
			}
		}
	}
	read, err := f.Read(bytes.NewReader(file), o)
	if err != nil {
		t.Fatal(err)
	}
	if read.Format != f {
		t.Errorf("the file's format is %v, want %s", read.Format, name)
	}
	var again bytes.Buffer
	if err := read.Write(&again, f); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Bytes(), file) {
		t.Errorf("%s: written again it is %.60x..., want %.60x...", name, again.Bytes(), file)
	}
	return read
}

// allocates is how many bytes of Go's heap do takes, those given back among them.
func allocates(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
