package interop_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
)

type pythonListVectors struct {
	Filters []struct {
		program
		M, K, Ones int
		Bits       string `json:"bits_lsb_b64"`
	}
}

type pythonStringVectors struct {
	Filters []struct {
		program
		Size  uint64
		Steps []struct{ Add, BitString string }
		Set   []int  `json:"set_bits"`
		Sum   string `json:"bitstring_sha256"`
	}
	FormatHash []struct {
		Size uint64
		Key  string
		Text string `json:"format_hash"`
	} `json:"format_hash"`
}

func TestPythonList(t *testing.T) {
	var v pythonListVectors
	keys := loadVectors(t, "article1_md5", &v)
	read := 0
	for _, w := range v.Filters {
		var bits []string
		packed := fromBase64(t, w.Bits)
		for i := range w.M {
			bits = append(bits, fmt.Sprint(packed[i/8]>>(i%8)&1))
		}
		text := []byte("[" + strings.Join(bits, ", ") + "]") // as Python prints a list
		o := interop.Options{Probes: w.K}
		if w.K == 0 { // finds every key
			refuse(t, "python-list", o, []refusal{{w.Name, string(text), bloom.ErrConfig}})
			continue
		}
		read++
		file := mustRewrite(t, "python-list", text, o)
		w.compare(t, file, keys)
		if ones := strings.Count(string(text), "1"); ones != w.Ones {
			t.Errorf("%s: %d bits are set, want %d", w.Name, ones, w.Ones)
		}
		made := newClassic(t, classic.Config{Bits: uint64(w.M), Probes: w.K, Scheme: classic.SchemeMD5IndexKey})
		w.fill(made, keys)
		if got := written(t, &interop.File{Filter: made}, "python-list"); string(got) != string(text) {
			t.Errorf("%s: made from its keys it is %.80s..., want %.80s...", w.Name, got, text)
		}
		slices.Reverse(bits)
		if got := written(t, file, "python-bitstring"); string(got) != strings.Join(bits, "") {
			t.Errorf("%s: as a bit string it is %.80s...", w.Name, got)
		}
	}
	if read != 3 {
		t.Errorf("%d lists were read, want 3", read)
	}
	compact := mustRead(t, "python-list", interop.Options{Probes: 2, Bits: 3, Scheme: classic.SchemeMD5KeyIndex}, []byte("\n[0,1 ,\t1]\n"))
	if got := written(t, compact, "python-list"); string(got) != "[0, 1, 1]" {
		t.Errorf("written it is %s", got)
	}
}

func TestPythonBitString(t *testing.T) {
	var v pythonStringVectors
	keys := loadVectors(t, "article2_sha256_md5", &v)
	for _, w := range v.Filters {
		text := []byte(strings.Repeat("0", int(w.Size)))
		for _, i := range w.Set {
			text[int(w.Size)-1-i] = '1'
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(text)); sum != w.Sum {
			t.Fatalf("%s: the test's own bit string has the SHA-256 %s, want %s", w.Name, sum, w.Sum)
		}
		w.compare(t, mustRewrite(t, "python-bitstring", text, interop.Options{}), keys)
		made := &interop.File{Filter: newClassic(t, classic.Config{Bits: w.Size, Probes: 2, Scheme: classic.SchemeSHA256MD5})}
		for _, step := range w.Steps {
			made.Add(keys[step.Add])
			if got := written(t, made, "python-bitstring"); step.BitString != "" && string(got) != step.BitString {
				t.Errorf("%s: after %s it is %s, want %s", w.Name, step.Add, got, step.BitString)
			}
		}
		if got := written(t, made, "python-bitstring"); string(got) != string(text) {
			t.Errorf("%s: made from its keys it is %.80s..., want %.80s...", w.Name, got, text)
		}
	}
	for _, w := range v.FormatHash {
		file := mustRewrite(t, "python-bitstring", []byte(w.Text), interop.Options{Bits: w.Size})
		if !file.Contains(keys[w.Key]) {
			t.Errorf("m %d: the filter of %s does not have it", w.Size, w.Key)
		}
	}
}

// TestPythonMemory: writing a string of many bits takes a copy of the bits, not of
// the text.
func TestPythonMemory(t *testing.T) {
	const m = 8 << 20
	f := newClassic(t, classic.Config{Bits: m, Probes: 2, Scheme: classic.SchemeSHA256MD5})
	f.AddString("Titanic")
	var text byteCounter
	took := allocates(func() {
		if err := interop.WritePythonBitString(&text, f); err != nil {
			t.Error(err)
		}
	})
	if text.written != m || took > m/2 {
		t.Errorf("%d characters took %d bytes, want %d characters and at most %d bytes", text.written, took, m, m/2)
	}
}

// byteCounter counts what is written to it.
type byteCounter struct{ written int }

func (c *byteCounter) Write(b []byte) (int, error) {
	c.written += len(b)
	return len(b), nil
}

func TestPythonRefuses(t *testing.T) {
	list := interop.Options{Probes: 2}
	refuse(t, "python-list", list, []refusal{
		{"empty", "", bloom.ErrFormat},
		{"no bits", "[]", bloom.ErrFormat},
		{"cut", "[0, 1", bloom.ErrFormat},
		{"a 2", "[0, 1, 2]", bloom.ErrFormat},
		{"booleans", "[True, False]", bloom.ErrFormat},
		{"a fraction", "[0, 1.0]", bloom.ErrFormat},
		{"a tuple", "(0, 1)", bloom.ErrFormat},
		{"lists in lists", strings.Repeat("[", 1<<20), bloom.ErrFormat},
		{"an endless number", "[" + strings.Repeat("1", 1<<20), bloom.ErrFormat},
		{"another behind", "[0, 1] [0, 1]", bloom.ErrFormat},
	})
	refuse(t, "python-bitstring", interop.Options{}, []refusal{
		{"empty", "", bloom.ErrFormat},
		{"space", " \n", bloom.ErrFormat},
		{"a 2", "0102", bloom.ErrFormat},
		{"a prefix", "0b01", bloom.ErrFormat},
		{"two strings", "01 01", bloom.ErrFormat},
	})
	refuse(t, "python-list", interop.Options{Limit: 5, Probes: 2}, []refusal{{"over the limit", "[0, 1]", bloom.ErrLimit}})
	refuse(t, "python-bitstring", interop.Options{Limit: 5}, []refusal{{"over the limit", "010101", bloom.ErrLimit}})
	refuse(t, "python-bitstring", interop.Options{Bits: 5}, []refusal{{"more bits", "010101", bloom.ErrFormat}})
	for _, o := range []interop.Options{
		{}, {Probes: -1}, {Probes: 256}, {Probes: 2, Scheme: classic.SchemeGuava64}, {Probes: 3, Scheme: classic.SchemeSHA256MD5},
	} {
		refuse(t, "python-list", o, []refusal{{"bad options", "[0, 1]", bloom.ErrConfig}})
	}
}

func FuzzPython(f *testing.F) {
	f.Add([]byte("[0, 1, 1]"))
	f.Add([]byte("[0,1,1]"))
	f.Add([]byte("0110\n"))
	f.Add([]byte(strings.Repeat("01", 100)))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzed(t, "python-list", interop.Options{Probes: 3}, data)
		fuzzed(t, "python-bitstring", interop.Options{}, data)
	})
}

// A tutorial's filter: MD5 of a number and the key, and the bits as a Python list.
func ExampleWritePythonList() {
	words, err := classic.Config{Keys: 3, Rate: 0.1, Scheme: classic.SchemeMD5IndexKey}.New()
	if err != nil {
		panic(err)
	}
	words.AddStrings([]string{"to", "be", "or"}, nil)
	if err := interop.WritePythonList(os.Stdout, words); err != nil {
		panic(err)
	}
	fmt.Println()
	fmt.Println(words.ContainsString("be"), words.ContainsString("question"))
	// Output:
	// [1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0]
	// true false
}
