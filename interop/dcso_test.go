package interop_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
)

// hashlookupKey is a key as CIRCL's have it, if the format is "sha1upper:%d".
func hashlookupKey(format string, i int) []byte {
	if format == "sha1upper:%d" {
		return fmt.Appendf(nil, "%X", sha1.Sum([]byte(strconv.Itoa(i))))
	}
	return fmt.Appendf(nil, format, i)
}

func TestDCSOFilters(t *testing.T) {
	var v struct {
		Filters []struct {
			Name       string
			Capacity   uint64 `json:"n"`
			P          float64
			K          int
			M          uint64
			Count      uint64 `json:"N"`
			Inserted   []string
			Bulk       *keyRange
			BulkAbsent *struct {
				keyRange
				FalsePositives []int `json:"false_positives"`
			} `json:"bulk_absent"`
			Contains map[string]bool
			Data     string `json:"data_hex"`
			File     string `json:"file_b64"`
			SHA256   string `json:"file_sha256"`
		}
	}
	keys := loadVectors(t, "dcso_bloom", &v)
	if len(v.Filters) == 0 {
		t.Fatal("no vectors")
	}
	for _, w := range v.Filters {
		t.Run(w.Name, func(t *testing.T) {
			want, data := fromBase64(t, w.File), fromHex(t, w.Data)
			path := filepath.Join(t.TempDir(), "filter")
			if err := os.WriteFile(path, want, 0o666); err != nil {
				t.Fatal(err)
			}
			read, err := interop.ReadDCSO(bytes.NewReader(want), 0)
			if err != nil {
				t.Fatal(err)
			}
			opened, err := interop.OpenDCSO(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range []*interop.DCSO{read, opened} {
				plan := d.Filter.Plan()
				if d.Flags != 1 || d.Capacity != w.Capacity || d.Rate != w.P || plan.Probes != w.K || plan.Bits != w.M ||
					plan.Keys != w.Capacity || d.Count() != w.Count || !bytes.Equal(d.Data, data) || d.Gzip {
					t.Errorf("%+v of %v", d, plan)
				}
				for id, want := range w.Contains {
					if got := d.Filter.Contains(keys[id]); got != want {
						t.Errorf("Contains(%s) = %v, want %v", id, got, want)
					}
				}
				if w.BulkAbsent != nil {
					got := w.BulkAbsent.foundAmong(func(i int) bool { return d.Filter.Contains(hashlookupKey(w.BulkAbsent.Fmt, i)) })
					if !slices.Equal(got, w.BulkAbsent.FalsePositives) {
						t.Errorf("false positives %v, want %v", got, w.BulkAbsent.FalsePositives)
					}
				}
			}
			if err := opened.Filter.Close(); err != nil {
				t.Error(err)
			}
			if file := mustRewrite(t, "dcso", want, interop.Options{}); !bytes.Equal(file.Data, data) {
				t.Errorf("File.Data is %q, want %q", file.Data, data)
			}

			// From n and p alone, and from the keys, comes the same file.
			made, err := classic.Config{Keys: w.Capacity, Rate: w.P, Scheme: classic.SchemeDCSO}.New()
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range w.Inserted {
				made.Add(keys[id])
			}
			if w.Bulk != nil {
				for i := w.Bulk.From; i < w.Bulk.To; i++ {
					made.Add(hashlookupKey(w.Bulk.Fmt, i))
				}
			}
			d := interop.NewDCSO(made)
			d.Data = data
			var file bytes.Buffer
			if err := d.Write(&file); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%x", sha256.Sum256(file.Bytes())); got != w.SHA256 {
				t.Errorf("made: %.60x..., SHA-256 %s; want %.60x..., %s", file.Bytes(), got, want, w.SHA256)
			}
		})
	}
}

// TestDCSOUpstream is the filter of the Go library's own test.
func TestDCSOUpstream(t *testing.T) {
	var v struct {
		Upstream struct {
			P      float64
			SHA256 string `json:"sha256"`
			Len    int    `json:"file_len"`
		} `json:"upstream_test_bloom"`
	}
	loadVectors(t, "dcso_bloom", &v)
	f, err := classic.Config{Keys: 1000, Rate: v.Upstream.P, Scheme: classic.SchemeDCSO}.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"foo", "bar", "baz"} {
		f.AddString(key)
	}
	if !f.ContainsString("foo") || !f.ContainsString("bar") || f.ContainsString("this") {
		t.Error("the answers differ")
	}
	var file bytes.Buffer
	if err := interop.NewDCSO(f).Write(&file); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(file.Bytes())); file.Len() != v.Upstream.Len || got != v.Upstream.SHA256 {
		t.Errorf("%d bytes with SHA-256 %s, want %d with %s", file.Len(), got, v.Upstream.Len, v.Upstream.SHA256)
	}
}

// TestDCSORead differs from Go's reader in one point: k = 0, which finds every
// key, is no filter here.
func TestDCSORead(t *testing.T) {
	var v struct {
		Read []struct{ Name, Hex, Result string }
	}
	loadVectors(t, "dcso_bloom", &v)
	if len(v.Read) == 0 {
		t.Fatal("no vectors")
	}
	refuses := map[string]error{
		"version_2": bloom.ErrVersion, "version_0": bloom.ErrVersion,
		"truncated_header": bloom.ErrFormat, "truncated_bits": bloom.ErrFormat,
		"k_minus_1": bloom.ErrFormat, "k_0": bloom.ErrFormat,
	}
	for _, w := range v.Read {
		file := fromHex(t, w.Hex)
		path := filepath.Join(t.TempDir(), w.Name)
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
		d, err := interop.ReadDCSO(bytes.NewReader(file), 0)
		opened, openErr := interop.OpenDCSO(path)
		if want := refuses[w.Name]; want != nil {
			if !errors.Is(err, want) || !errors.Is(openErr, want) {
				t.Errorf("%s: errors %v and %v, want %v as Go has %s", w.Name, err, openErr, want, w.Result)
			}
			continue
		}
		if err != nil || openErr != nil {
			t.Errorf("%s: errors %v and %v, want none: %s", w.Name, err, openErr, w.Result)
			continue
		}
		got := fmt.Sprintf("ok n=%d p=%v k=%d m=%d N=%d Check(hello)=%v", d.Capacity, d.Rate, d.Filter.Plan().Probes, d.Filter.Plan().Bits, d.Count(), d.Filter.ContainsString("hello"))
		if got != w.Result {
			t.Errorf("%s: %s, want %s", w.Name, got, w.Result)
		}
		if err := opened.Filter.Close(); err != nil {
			t.Error(err)
		}
		if f := mustRewrite(t, "dcso", file, interop.Options{}); f.Details[0][1] != map[string]string{"ok": "0x1", "flags_bit8_set": "0x101"}[w.Name] {
			t.Errorf("%s: details %q", w.Name, f.Details)
		}
	}
}

// dcsoFile is a file with the header fields n, p, k, m, N and the given number of words.
func dcsoFile(n uint64, p float64, k, m, count uint64, words int) []byte {
	file := []byte{}
	for _, word := range []uint64{1, n, math.Float64bits(p), k, m, count} {
		file = binary.LittleEndian.AppendUint64(file, word)
	}
	return append(file, make([]byte, 8*words)...)
}

func packed(t testing.TB, file []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(file); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDCSOGzip(t *testing.T) {
	plain := append(dcsoFile(60, 0.01, 7, 575, 3, 9), "free data"...)
	file := packed(t, plain)
	f, ok := interop.Recognise(file[:64], int64(len(file)))
	if !ok || f.Name != "dcso" {
		t.Fatalf("gzip is taken for %v", f)
	}
	path := filepath.Join(t.TempDir(), "filter.gz")
	if err := os.WriteFile(path, file, 0o666); err != nil {
		t.Fatal(err)
	}
	read, err := f.Open(path, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if string(read.Data) != "free data" || read.Plan().Bits != 575 {
		t.Errorf("%v with the data %q", read.Filter, read.Data)
	}
	var again bytes.Buffer
	if err := read.Write(&again, f); err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(&again)
	if err != nil {
		t.Fatalf("what was in gzip is not written in gzip: %v", err)
	}
	if got, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%x, %v, want %x", got, err, plain)
	}

	if _, err := interop.OpenDCSO(path); !errors.Is(err, bloom.ErrFormat) || !strings.Contains(err.Error(), "gzip") {
		t.Errorf("OpenDCSO: %v, want ErrFormat that names gzip", err)
	}
	flipped := slices.Clone(file)
	flipped[len(flipped)-6] ^= 1 // the checksum
	for name, damaged := range map[string][]byte{
		"cut":          file[:len(file)-9],
		"cut in head":  file[:5],
		"flipped":      flipped,
		"garbage":      append(slices.Clone(file[:10]), bytes.Repeat([]byte{0xff}, 100)...),
		"no DCSO file": packed(t, []byte("text")),
	} {
		if _, err := interop.ReadDCSO(bytes.NewReader(damaged), 0); !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("%s: error %v, want ErrFormat", name, err)
		}
	}
}

// TestDCSOOtherGzip: most files in gzip are no filters.
func TestDCSOOtherGzip(t *testing.T) {
	good := append(dcsoFile(60, 0.01, 7, 575, 3, 9), "free data"...)
	var noise []byte
	for i := range 1000 {
		sum := sha1.Sum(fmt.Append(nil, i))
		noise = append(noise, sum[:]...)
	}
	for _, tt := range []struct {
		name string
		file []byte
		is   bool // taken for DCSO's
		want error
		says string
	}{
		{"text", packed(t, []byte(strings.Repeat("hello world ", 100))), false, bloom.ErrFormat, "does not begin as"},
		{"a short text", packed(t, []byte("hello world")), false, bloom.ErrFormat, "does not begin as"},
		{"noise", packed(t, noise), false, bloom.ErrFormat, "does not begin as"},
		{"JSON", packed(t, []byte(`{"m":65,"k":3,"b":"AAAAAAAAAEEAAAAAAAAAAQAAAAAAAAAB"}`)), false, bloom.ErrFormat, "does not begin as"},
		{"gzip in gzip", packed(t, packed(t, good)), false, bloom.ErrFormat, "gzip within gzip"},
		{"poppy's version 2", packed(t, append([]byte{2, 3, 0, 0, 0, 0, 0, 0}, make([]byte, 100)...)), true, bloom.ErrVersion, "poppy"},
		{"version 9", packed(t, append([]byte{9, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 100)...)), false, bloom.ErrVersion, "this is 9"},
		{"a filter", packed(t, good), true, nil, ""},
	} {
		if f, ok := interop.Recognise(tt.file[:min(len(tt.file), 64)], int64(len(tt.file))); ok != tt.is {
			t.Errorf("%s: recognised as %v", tt.name, f)
		}
		if _, err := interop.ReadDCSO(bytes.NewReader(tt.file), 0); !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %v that says %q", tt.name, err, tt.want, tt.says)
		}
	}
	// Where little of the file is there, it can be one.
	for n := 2; n < 64; n++ {
		if _, ok := interop.Recognise(packed(t, good)[:n], 1<<20); !ok {
			t.Errorf("the first %d bytes of a filter in gzip are not recognised", n)
		}
	}
}

func TestDCSOLimit(t *testing.T) {
	f := format(t, "dcso")
	for name, file := range map[string][]byte{
		"bits":      dcsoFile(1<<20, 0.01, 7, 64<<20, 0, 1<<20),
		"free data": append(dcsoFile(60, 0.01, 7, 575, 3, 9), make([]byte, 8<<20)...),
	} {
		for _, file := range [][]byte{file, packed(t, file)} {
			limit := interop.Options{Limit: 1 << 20}
			took := allocates(func() {
				if _, err := f.Read(bytes.NewReader(file), limit); !errors.Is(err, bloom.ErrLimit) {
					t.Errorf("%s: 8 MiB of 1 MiB: %v, want ErrLimit", name, err)
				}
			})
			if took > 16<<20 {
				t.Errorf("%s: %d bytes were allocated below a limit of %d", name, took, limit.Limit)
			}
		}
	}
	// 4 TiB are claimed, a few bytes come.
	claim := dcsoFile(1<<40, 0.01, 7, 1<<45, 0, 100)
	took := allocates(func() {
		if _, err := interop.ReadDCSO(bytes.NewReader(claim), 0); !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("4 TiB of 848 bytes: %v, want ErrFormat", err)
		}
	})
	if took > 8<<20 {
		t.Errorf("%d bytes were allocated for %d that came", took, len(claim))
	}
}

func TestDCSORefuses(t *testing.T) {
	for name, file := range map[string][]byte{
		"m 0":                 dcsoFile(1, 0.01, 7, 0, 0, 0),
		"m above all":         dcsoFile(1, 0.01, 7, math.MaxUint64, 0, 1),
		"k 256":               dcsoFile(1, 0.01, 256, 64, 0, 1),
		"bits behind m":       append(dcsoFile(1, 0.01, 7, 60, 0, 0), 0, 0, 0, 0, 0, 0, 0, 0x80),
		"nothing":             {},
		"half a version word": {1, 0, 0},
	} {
		path := filepath.Join(t.TempDir(), "filter")
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := interop.ReadDCSO(bytes.NewReader(file), 0); !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("%s: read: %v, want ErrFormat", name, err)
		}
		if _, err := interop.OpenDCSO(path); !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("%s: opened: %v, want ErrFormat", name, err)
		}
	}
	if _, err := interop.OpenDCSO(t.TempDir()); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("a directory: %v, want ErrFormat", err)
	}
	if _, err := interop.OpenDCSO(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v, want ErrNotExist", err)
	}
	poppy := append([]byte{2, 3, 0, 0, 0, 0, 0, 0}, make([]byte, 100)...)
	f, ok := interop.Recognise(poppy[:64], int64(len(poppy)))
	if !ok || f.Name != "dcso" {
		t.Fatalf("poppy's version 2 is taken for %v", f)
	}
	if _, err := f.Read(bytes.NewReader(poppy), interop.Options{}); !errors.Is(err, bloom.ErrVersion) || !strings.Contains(err.Error(), "poppy") {
		t.Errorf("poppy's version 2: %v, want ErrVersion that names poppy", err)
	}
	guava, err := classic.Config{Keys: 10, Rate: 0.01, Scheme: classic.SchemeGuava64}.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := interop.NewDCSO(guava).Write(io.Discard); !errors.Is(err, interop.ErrScheme) {
		t.Errorf("another scheme: %v, want ErrScheme", err)
	}
	if err := (&interop.File{Filter: guava}).Write(io.Discard, f); !errors.Is(err, interop.ErrScheme) {
		t.Errorf("another scheme: %v, want ErrScheme", err)
	}
}

// TestDCSOAdds: keys that are added later count, and all that the file said stays.
func TestDCSOAdds(t *testing.T) {
	file := append(dcsoFile(60, 0.25, 7, 575, 3, 9), "free data"...)
	file[1] = 2 // poppy's level
	f := mustRewrite(t, "dcso", file[:len(file):len(file)], interop.Options{})
	if !f.Add([]byte("a")) || f.Add([]byte("a")) || !f.Add([]byte("b")) {
		t.Fatal("Add does not tell what is new")
	}
	var again bytes.Buffer
	if err := f.Write(&again, f.Format); err != nil {
		t.Fatal(err)
	}
	d, err := interop.ReadDCSO(&again, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d.Count() != 5 || d.Capacity != 60 || d.Rate != 0.25 || d.Flags != 0x201 || string(d.Data) != "free data" || !d.Filter.ContainsString("b") {
		t.Errorf("after two adds: %+v, N %d", d, d.Count())
	}
}

// TestDCSOConverts: a filter of the scheme becomes a file wherever it comes from.
func TestDCSOConverts(t *testing.T) {
	// No p gives this k and this m.
	f, err := classic.Config{Keys: 1000, Bits: 4000, Probes: 9, Scheme: classic.SchemeDCSO}.New()
	if err != nil {
		t.Fatal(err)
	}
	f.AddString("Titanic")
	var file bytes.Buffer
	if err := (&interop.File{Filter: f}).Write(&file, format(t, "dcso")); err != nil {
		t.Fatal(err)
	}
	d, err := interop.ReadDCSO(&file, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Filter.Equal(f) || d.Count() != 1 || d.Capacity != 1000 || d.Rate != f.Plan().Rate {
		t.Errorf("%+v of %v, want the filter %v", d, d.Filter, f)
	}
}

// FuzzDCSO: whatever reads, and is not in gzip, is written byte for byte.
func FuzzDCSO(f *testing.F) {
	plain := append(dcsoFile(60, 0.01, 7, 575, 3, 9), "free data"...)
	f.Add(plain)
	f.Add(plain[:100])
	f.Add(packed(f, plain))
	f.Add(packed(f, make([]byte, 1<<20)))
	f.Add(dcsoFile(math.MaxUint64, math.NaN(), 255, 1<<45, math.MaxUint64, 1))
	f.Add(dcsoFile(0, math.Inf(1), 1, 1, 0, 1))
	f.Add([]byte{2, 3, 0, 0, 0, 0, 0, 0})
	f.Add(packed(f, packed(f, plain)))
	const limit = 1 << 20
	f.Fuzz(func(t *testing.T, file []byte) {
		interop.Recognise(file, -1)
		d, err := interop.ReadDCSO(bytes.NewReader(file), limit)
		if err != nil {
			if !errors.Is(err, bloom.ErrFormat) && !errors.Is(err, bloom.ErrVersion) && !errors.Is(err, bloom.ErrLimit) {
				t.Fatalf("error %v, want one of the library's", err)
			}
			return
		}
		d.Filter.ContainsString("a key")
		var again bytes.Buffer
		if err := d.Write(&again); err != nil {
			t.Fatal(err)
		}
		if !d.Gzip && !bytes.Equal(again.Bytes(), file) {
			t.Fatalf("written again it is %x", again.Bytes())
		}
		g, err := interop.ReadDCSO(&again, limit)
		if err != nil {
			t.Fatal(err)
		}
		if !g.Filter.Equal(d.Filter) || g.Flags != d.Flags || g.Capacity != d.Capacity || math.Float64bits(g.Rate) != math.Float64bits(d.Rate) ||
			g.Count() != d.Count() || !bytes.Equal(g.Data, d.Data) || g.Gzip != d.Gzip {
			t.Fatalf("%+v, written and read again, is %+v", d, g)
		}
	})
}

// CIRCL's hashlookup-full.bloom is such a file, of 418,299,668 keys: upper-case
// hex SHA-1 digests of known files. This one has three keys.
func ExampleOpenDCSO() {
	known, err := classic.Config{Keys: 3, Rate: 0.0001, Scheme: classic.SchemeDCSO}.New()
	if err != nil {
		panic(err)
	}
	for _, file := range []string{"a", "b", "c"} {
		known.AddString(fmt.Sprintf("%X", sha1.Sum([]byte(file))))
	}
	directory, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)
	path := filepath.Join(directory, "known.bloom")
	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	out := interop.NewDCSO(known)
	out.Data = []byte(`{"source": "an example"}`)
	if err := errors.Join(out.Write(file), file.Close()); err != nil {
		panic(err)
	}

	d, err := interop.OpenDCSO(path)
	if err != nil {
		panic(err)
	}
	defer d.Filter.Close()
	fmt.Println("n", d.Capacity, "p", d.Rate, "N", d.Count(), string(d.Data))
	fmt.Println(d.Filter.ContainsString("86F7E437FAA5A7FCE15D1DDCB9EAEAEA377667B8")) // SHA-1 of "a"
	fmt.Println(d.Filter.ContainsString("86f7e437faa5a7fce15d1ddcb9eaeaea377667b8")) // another key
	// Output:
	// n 3 p 0.0001 N 3 {"source": "an example"}
	// true
	// false
}
