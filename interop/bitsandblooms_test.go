package interop_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
)

type bitsAndBloomsVectors struct {
	Filters []struct {
		program
		M       uint64
		K       int
		Binary  string `json:"binary_b64"`
		JSON    string
		StdJSON string `json:"variant_after_bitset_Base64StdEncoding_json"`
		Little  string `json:"variant_after_bitset_LittleEndian_hex"`
	}
	ReadFrom []struct{ Name, Hex, Result string } `json:"read_from"`
}

func TestBitsAndBlooms(t *testing.T) {
	var v bitsAndBloomsVectors
	keys := loadVectors(t, "bits_and_blooms", &v)
	little, standard := 0, 0
	for _, w := range v.Filters {
		data := fromBase64(t, w.Binary)
		file := mustRewrite(t, "bits-and-blooms", data, interop.Options{Limit: int64(len(data))})
		w.compare(t, file, keys)
		if p := file.Plan(); p.Bits != w.M || p.Probes != w.K {
			t.Errorf("%s: m %d, k %d, want %d and %d", w.Name, p.Bits, p.Probes, w.M, w.K)
		}
		made := newClassic(t, classic.Config{Bits: w.M, Probes: w.K, Scheme: classic.SchemeBitsAndBlooms})
		w.fill(made, keys)
		var b bytes.Buffer
		if err := interop.WriteBitsAndBlooms(&b, made); err != nil || !bytes.Equal(b.Bytes(), data) {
			t.Errorf("%s: made from its keys it is %.80x..., %v, want %.80x...", w.Name, b.Bytes(), err, data)
		}
		if got := written(t, file, "bits-and-blooms-json"); string(got) != w.JSON {
			t.Errorf("%s: as JSON it is %s, want %s", w.Name, got, w.JSON)
		}
		fromJSON := mustRewrite(t, "bits-and-blooms-json", []byte(w.JSON), interop.Options{})
		if got := written(t, fromJSON, "bits-and-blooms"); !bytes.Equal(got, data) {
			t.Errorf("%s: from JSON it is %.80x..., want %.80x...", w.Name, got, data)
		}
		if w.StdJSON != "" {
			standard++
			mustRewrite(t, "bits-and-blooms-json", []byte(w.StdJSON), interop.Options{})
		}
		if w.Little != "" {
			little++
			w.compare(t, mustRewrite(t, "bits-and-blooms", fromHex(t, w.Little), interop.Options{}), keys)
		}
	}
	if little == 0 || standard == 0 {
		t.Errorf("%d vectors of bitset.LittleEndian, %d of Base64StdEncoding", little, standard)
	}
}

func TestBitsAndBloomsReadFrom(t *testing.T) {
	var v bitsAndBloomsVectors
	loadVectors(t, "bits_and_blooms", &v)
	for _, w := range v.ReadFrom {
		rest := bytes.NewReader(fromHex(t, w.Hex))
		f, err := interop.ReadBitsAndBlooms(rest)
		switch w.Name {
		case "ok", "trailing", "m_larger_than_bitset":
			if err != nil {
				t.Errorf("%s: %v", w.Name, err)
				continue
			}
			if want := fmt.Sprintf("m=%d k=%d", f.Plan().Bits, f.Plan().Probes); !strings.Contains(w.Result, want) {
				t.Errorf("%s: %s, want %s", w.Name, want, w.Result)
			}
			if f.ContainsString("hello") {
				t.Errorf("%s: hello is in it, want %s", w.Name, w.Result)
			}
			if w.Name == "trailing" && rest.Len() != 1 {
				t.Errorf("trailing: %d bytes were left, want 1", rest.Len())
			}
		default: // that program panics, or finds every key
			if !errors.Is(err, bloom.ErrFormat) {
				t.Errorf("%s: error %v, want ErrFormat", w.Name, err)
			}
		}
	}
}

// goBloom builds a file of four numbers, the third in either byte order.
func goBloom(m, k, length uint64, words ...uint64) string {
	b := binary.BigEndian.AppendUint64(nil, m)
	b = binary.BigEndian.AppendUint64(b, k)
	b = binary.BigEndian.AppendUint64(b, length)
	for _, word := range words {
		b = binary.BigEndian.AppendUint64(b, word)
	}
	return string(b)
}

func TestBitsAndBloomsRefuses(t *testing.T) {
	good := goBloom(65, 3, 65, 1, 1)
	refuseCut(t, "bits-and-blooms", interop.Options{}, []byte(good))
	refuse(t, "bits-and-blooms", interop.Options{}, []refusal{
		{"m 0", goBloom(0, 3, 0), bloom.ErrFormat},
		{"k 0", goBloom(65, 0, 65, 1, 1), bloom.ErrFormat},
		{"k above all", goBloom(65, 256, 65, 1, 1), bloom.ErrFormat},
		{"k of 64 bits", goBloom(65, 1<<63, 65, 1, 1), bloom.ErrFormat},
		{"m above all", goBloom(1<<46, 3, 1<<46), bloom.ErrFormat},
		{"m of 64 bits", goBloom(1<<64-1, 3, 1<<64-1), bloom.ErrFormat},
		{"4 TiB claimed", goBloom(1<<45, 3, 1<<45, 1, 2, 3), bloom.ErrFormat},
		{"4 TiB claimed, of a short bit set", goBloom(1<<45, 3, 64, 1), bloom.ErrFormat},
		{"a bit set too long", goBloom(65, 3, 65+64<<20+1, 1, 1, 1), bloom.ErrFormat},
		{"a bit behind m", goBloom(65, 3, 65, 1, 2), bloom.ErrFormat},
		{"a bit behind a short bit set", goBloom(4096, 3, 65, 1, 2), bloom.ErrFormat},
	})
	refuse(t, "bits-and-blooms", interop.Options{Limit: 39}, []refusal{{"over the limit", good, bloom.ErrLimit}})
	words := base64.URLEncoding.EncodeToString([]byte(good[16:]))
	text := `{"m":65,"k":3,"b":"` + words + `"}`
	refuseCut(t, "bits-and-blooms-json", interop.Options{}, []byte(text))
	refuse(t, "bits-and-blooms-json", interop.Options{}, []refusal{
		{"m missing", `{"k":3,"b":"` + words + `"}`, bloom.ErrFormat},
		{"k missing", `{"m":65,"b":"` + words + `"}`, bloom.ErrFormat},
		{"b missing", `{"m":65,"k":3}`, bloom.ErrFormat},
		{"m twice", `{"m":65,"m":65,"k":3,"b":"` + words + `"}`, bloom.ErrFormat},
		{"m negative", `{"m":-65,"k":3,"b":"` + words + `"}`, bloom.ErrFormat},
		{"m a fraction", `{"m":65.5,"k":3,"b":"` + words + `"}`, bloom.ErrFormat},
		{"m with exponent", `{"m":6e1,"k":3,"b":"` + words + `"}`, bloom.ErrFormat},
		{"m of 30 digits", `{"m":650000000000000000000000000000,"k":3,"b":"` + words + `"}`, bloom.ErrFormat},
		{"m NaN", `{"m":NaN,"k":3,"b":"` + words + `"}`, bloom.ErrFormat},
		{"m a string", `{"m":"65","k":3,"b":"` + words + `"}`, bloom.ErrFormat},
		{"NaN in an unknown field", `{"x":NaN,"m":65,"k":3,"b":"` + words + `"}`, bloom.ErrFormat},
		{"bytes behind", text + `1`, bloom.ErrFormat},
		{"words behind", `{"m":65,"k":3,"b":"` + base64.URLEncoding.EncodeToString([]byte(good[16:]+"behind")) + `"}`, bloom.ErrFormat},
		{"two alphabets", `{"m":65,"k":3,"b":"+_AA"}`, bloom.ErrFormat},
		{"no padding", `{"m":65,"k":3,"b":"AAA"}`, bloom.ErrFormat},
		{"more than padding", `{"m":65,"k":3,"b":"AA==AAAA"}`, bloom.ErrFormat},
		{"a bomb of arrays", `{"x":` + strings.Repeat("[", 1<<20), bloom.ErrFormat},
		{"a bomb of objects", strings.Repeat(`{"x":`, 1<<20), bloom.ErrFormat},
		{"a bomb of names", `{` + strings.Repeat(" ", 1<<20) + `"` + strings.Repeat("x", 1<<20), bloom.ErrFormat},
		{"an array", `[1]`, bloom.ErrFormat},
		{"a comma too many", `{"m":65,"k":3,}`, bloom.ErrFormat},
		{"an escape that is none", `{"\x":1}`, bloom.ErrFormat},
	})
	// What JSON allows beyond what the program writes.
	loose := " {\"x\" : [{\"y\":\"\\ud83d\\n\"}, -1.5e3, true, null, {}, []],\n\t\"b\":\"" + strings.ReplaceAll(words, "A", `\u0041`) + "\", \"\\u006b\":3, \"m\": 65}\r\n"
	if !equal(mustRead(t, "bits-and-blooms-json", interop.Options{}, []byte(loose)), mustRead(t, "bits-and-blooms", interop.Options{}, []byte(good))) {
		t.Error("JSON with escapes, space and more members reads differently")
	}
	if f, ok := interop.Recognise([]byte(loose)[:64], -1); !ok || f.Name != "bits-and-blooms-json" {
		t.Errorf("%.64q is recognised as %v", loose, f)
	}
}

// TestBitsAndBloomsLength: that program's FromWithM makes bit sets of whole words,
// as many as it is given, of which only m bits count; and New(0, 0) one of no bits
// for m = 1.
func TestBitsAndBloomsLength(t *testing.T) {
	surplus := make([]uint64, 100)
	surplus[15], surplus[16], surplus[99] = math.MaxUint64, math.MaxUint64, math.MaxUint64
	counts := slices.Clone(surplus[:16])
	counts[15] = 1<<40 - 1 // up to bit 999
	for _, tt := range []struct{ file, same string }{
		{goBloom(65, 3, 128, 1, 1), goBloom(65, 3, 65, 1, 1)},
		{goBloom(65, 3, 128, 1, 3), goBloom(65, 3, 65, 1, 1)},
		{goBloom(64, 3, 129, 1, 3, 1), goBloom(64, 3, 64, 1)},
		{goBloom(1, 1, 0), goBloom(1, 1, 1, 0)},
		{goBloom(1000, 3, 6400, surplus...), goBloom(1000, 3, 1000, counts...)},
	} {
		m, length := binary.BigEndian.Uint64([]byte(tt.file)), binary.BigEndian.Uint64([]byte(tt.file)[16:])
		for name, encode := range map[string]func(string) string{"bits-and-blooms": asBinary, "bits-and-blooms-json": asJSON} {
			for _, turn := range []func(string) string{asBinary, littleEndian} {
				if length == 0 {
					turn = asBinary // without words, the order is unknown
				}
				file := mustRead(t, name, interop.Options{}, []byte(encode(turn(tt.file))))
				if got := written(t, file, name); string(got) != encode(turn(tt.same)) {
					t.Errorf("%s: %.60x... is written as %.60x..., want %.60x...", name, tt.file, got, tt.same)
				}
				if says := fmt.Sprint(file.Details); length > m && !strings.Contains(says, fmt.Sprintf("beyond m, ignored %d", length-m)) {
					t.Errorf("%d bits for m %d: details %s", length, m, says)
				}
			}
		}
		rest := strings.NewReader(tt.file + "behind")
		if _, err := interop.ReadBitsAndBlooms(rest); err != nil || rest.Len() != len("behind") {
			t.Errorf("%.60x...: %v, and %d bytes are left", tt.file, err, rest.Len())
		}
		if f, ok := interop.Recognise([]byte(tt.file)[:min(len(tt.file), 64)], int64(len(tt.file))); !ok || f.Name != "bits-and-blooms" {
			t.Errorf("%.60x... is recognised as %v", tt.file, f)
		}
	}
	long := goBloom(1000, 3, 6400, surplus...)
	for n := range len(long) {
		if _, err := interop.ReadBitsAndBlooms(strings.NewReader(long[:n])); !errors.Is(err, bloom.ErrFormat) {
			t.Fatalf("the first %d bytes: %v, want ErrFormat", n, err)
		}
	}
}

func asBinary(file string) string { return file }

// asJSON is goBloom's file as JSON.
func asJSON(file string) string {
	m, k := binary.BigEndian.Uint64([]byte(file)), binary.BigEndian.Uint64([]byte(file)[8:])
	return fmt.Sprintf(`{"m":%d,"k":%d,"b":%q}`, m, k, base64.URLEncoding.EncodeToString([]byte(file)[16:]))
}

// littleEndian is goBloom's file after bitset.LittleEndian.
func littleEndian(file string) string {
	b := []byte(file)
	for at := 16; at < len(b); at += 8 {
		slices.Reverse(b[at : at+8])
	}
	return string(b)
}

// TestTextMemory: text takes memory as it comes, and a bomb next to none.
func TestTextMemory(t *testing.T) {
	zeros := strings.Repeat("0,", 1<<20) + "0]"
	for _, tt := range []struct {
		format, text string
		most         uint64 // bytes, all that was thrown away included
	}{
		{"bloomfilter.js", `{"k":2,"buckets":[` + zeros + `}`, 32 << 20}, // 4 MiB of bits
		{"python-list", "[" + zeros, 2 << 20},
		{"bits-and-blooms-json", `{"x":` + strings.Repeat("[", 2<<20), 1 << 17},
		{"bits-and-blooms-json", `{"` + strings.Repeat("x", 2<<20), 1 << 17},
		{"npm-bloom-filters", `{"x":` + strings.Repeat("9", 2<<20), 1 << 17},
		{"parquet", "\x68" + strings.Repeat("\xff", 2<<20), 1 << 17},
	} {
		got := allocates(func() {
			file, err := format(t, tt.format).Read(strings.NewReader(tt.text), interop.Options{Probes: 2})
			if err == nil {
				file.Close()
			} else if !errors.Is(err, bloom.ErrFormat) {
				t.Errorf("%s: %v", tt.format, err)
			}
		})
		if got > tt.most {
			t.Errorf("%s: %.20q... of %d bytes took %d bytes, want at most %d", tt.format, tt.text, len(tt.text), got, tt.most)
		}
	}
}

func ExampleReadBitsAndBlooms() {
	// What a service wrote by (*bloom.BloomFilter).WriteTo, with "hello" in it.
	theirs := "\x00\x00\x00\x00\x00\x00\x00\x40" + "\x00\x00\x00\x00\x00\x00\x00\x03" +
		"\x00\x00\x00\x00\x00\x00\x00\x40" + "\x04\x20\x00\x00\x00\x00\x00\x04"
	f, err := interop.ReadBitsAndBlooms(strings.NewReader(theirs))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.ContainsString("hello"), f.ContainsString("world"))
	f.AddString("world")

	var b bytes.Buffer
	if err := interop.WriteBitsAndBloomsJSON(&b, f); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.String())
	// Output:
	// true false
	// {"m":64,"k":3,"b":"AAAAAAAAAEBEIAQAAAAAFA=="}
}

func FuzzBitsAndBlooms(f *testing.F) {
	var v bitsAndBloomsVectors
	loadVectors(f, "bits_and_blooms", &v)
	for _, w := range v.Filters {
		f.Add(fromBase64(f, w.Binary))
		f.Add([]byte(w.JSON))
	}
	for _, w := range v.ReadFrom {
		f.Add(fromHex(f, w.Hex))
	}
	f.Add([]byte(goBloom(65, 3, 128, 1, 1)))
	f.Add([]byte(goBloom(65, 3, 256, 1, 3, 1, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzed(t, "bits-and-blooms", interop.Options{}, data)
		fuzzed(t, "bits-and-blooms-json", interop.Options{}, data)
	})
}
