package interop_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
	"github.com/twmb/murmur3"
)

var guavaFunnels = map[string]interop.Funnel{
	"stringFunnel(UTF_8)":  interop.FunnelUTF8,
	"unencodedCharsFunnel": interop.FunnelUnencodedChars,
	"longFunnel":           interop.FunnelLong,
	"byteArrayFunnel":      interop.FunnelBytes,
}

func funnelled(t testing.TB, f interop.Funnel, line []byte) []byte {
	t.Helper()
	key, err := f.Append(nil, line)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestGuavaFilters(t *testing.T) {
	var v struct {
		Filters []struct {
			Name, Funnel, Strategy string
			BitSize                uint64 `json:"bit_size"`
			K                      int
			Inserted               []string
			PutReturnedTrue        []string `json:"put_returned_true"`
			Bulk                   *keyRange
			BulkAbsent             *struct {
				keyRange
				FalsePositives []int `json:"false_positives"`
			} `json:"bulk_absent"`
			ExpectedFPP   float64         `json:"expected_fpp"`
			ElementCount  int64           `json:"approximate_element_count"`
			WriteToLen    int             `json:"write_to_len"`
			WriteToSHA256 string          `json:"write_to_sha256"`
			WriteToHead   string          `json:"write_to_head_hex"`
			WriteTo       string          `json:"write_to_b64"`
			MightContain  map[string]bool `json:"might_contain"`
		}
	}
	keys := loadVectors(t, "guava_filters", &v)
	schemes := map[string]classic.Scheme{"MURMUR128_MITZ_32": classic.SchemeGuava32, "MURMUR128_MITZ_64": classic.SchemeGuava64}
	for _, w := range v.Filters {
		t.Run(w.Name, func(t *testing.T) {
			funnel, ok := guavaFunnels[w.Funnel]
			if !ok {
				t.Fatalf("no funnel %s", w.Funnel)
			}
			key := func(id string) []byte {
				if funnel == interop.FunnelLong {
					return funnelled(t, funnel, []byte(id)) // the number itself
				}
				return funnelled(t, funnel, keys[id])
			}
			bulkKey := func(i int) []byte { return funnelled(t, funnel, fmt.Appendf(nil, w.BulkAbsent.Fmt, i)) }

			made, err := classic.Config{Bits: w.BitSize, Probes: w.K, Scheme: schemes[w.Strategy]}.New()
			if err != nil {
				t.Fatal(err)
			}
			put := []string{}
			for _, id := range w.Inserted {
				if made.Add(key(id)) {
					put = append(put, id)
				}
			}
			if !slices.Equal(put, w.PutReturnedTrue) {
				t.Errorf("put returns true for %q, want %q", put, w.PutReturnedTrue)
			}
			if w.Bulk != nil {
				for i := w.Bulk.From; i < w.Bulk.To; i++ {
					made.Add(bulkKey(i))
				}
			}
			var file bytes.Buffer
			if err := interop.WriteGuava(&file, made); err != nil {
				t.Fatal(err)
			}
			sum := fmt.Sprintf("%x", sha256.Sum256(file.Bytes()))
			if file.Len() != w.WriteToLen || sum != w.WriteToSHA256 || !strings.HasPrefix(hex.EncodeToString(file.Bytes()), w.WriteToHead) {
				t.Fatalf("written: %d bytes, %.22x..., SHA-256 %s; want %d, %s..., %s", file.Len(), file.Bytes(), sum, w.WriteToLen, w.WriteToHead, w.WriteToSHA256)
			}
			if w.WriteTo != "" && !bytes.Equal(file.Bytes(), fromBase64(t, w.WriteTo)) {
				t.Fatal("the bytes differ from Guava's")
			}

			read := mustRewrite(t, "guava", file.Bytes(), interop.Options{}).Filter.(*classic.Filter)
			if !read.Equal(made) {
				t.Error("what was read differs from what was written")
			}
			for id, want := range w.MightContain {
				if got := read.Contains(key(id)); got != want {
					t.Errorf("Contains(%s) = %v, want %v", id, got, want)
				}
			}
			if w.BulkAbsent != nil {
				if got := w.BulkAbsent.foundAmong(func(i int) bool { return read.Contains(bulkKey(i)) }); !slices.Equal(got, w.BulkAbsent.FalsePositives) {
					t.Errorf("false positives %v, want %v", got, w.BulkAbsent.FalsePositives)
				}
			}
			if got := interop.GuavaElementCount(read); got != w.ElementCount {
				t.Errorf("GuavaElementCount = %d, want %d", got, w.ElementCount)
			}
			if got := read.EstimatedErrorRate(); math.Abs(got-w.ExpectedFPP) > 1e-12*w.ExpectedFPP {
				t.Errorf("expected rate %v, want %v", got, w.ExpectedFPP)
			}
		})
	}
}

func TestGuavaReadFrom(t *testing.T) {
	var v struct {
		ReadFrom []struct{ Name, Hex, Result string } `json:"read_from"`
	}
	loadVectors(t, "guava_filters", &v)
	if len(v.ReadFrom) == 0 {
		t.Fatal("no vectors")
	}
	for _, w := range v.ReadFrom {
		from := bytes.NewReader(fromHex(t, w.Hex))
		f, err := interop.ReadGuava(from)
		if !strings.HasPrefix(w.Result, "ok") {
			if !errors.Is(err, bloom.ErrFormat) {
				t.Errorf("%s: error %v, want ErrFormat as Java has %s", w.Name, err, w.Result)
			}
			continue
		}
		if err != nil || fmt.Sprintf("ok bit_size=%d", f.Plan().Bits) != w.Result {
			t.Errorf("%s: %v, %v, want %s", w.Name, f, err, w.Result)
		}
		if strings.Contains(w.Name, "trailing") {
			if rest, _ := io.ReadAll(from); len(rest) != 2 {
				t.Errorf("%s: ReadGuava leaves %x, want the two bytes after the filter", w.Name, rest)
			}
			file, err := format(t, "guava").Read(bytes.NewReader(fromHex(t, w.Hex)), interop.Options{})
			if err != nil || file.Details[len(file.Details)-1] != [2]string{"bytes after the filter, ignored", "2"} {
				t.Errorf("%s: details %q, %v, want them to report 2 bytes", w.Name, file.Details, err)
			}
		}
	}
}

// TestGuavaPinnedFile is the count that Guava's own tests pin, asked of a filter
// that has been a file: of a million odd numbers, 30,104 are found among a million
// even ones at 3%.
func TestGuavaPinnedFile(t *testing.T) {
	f, err := classic.Config{Keys: 1_000_000, Rate: 0.03, Scheme: classic.SchemeGuava64}.New()
	if err != nil {
		t.Fatal(err)
	}
	var line, key []byte
	chars := func(i int) []byte {
		line = strconv.AppendInt(line[:0], int64(i), 10)
		if key, err = interop.FunnelUnencodedChars.Append(key[:0], line); err != nil {
			t.Fatal(err)
		}
		return key
	}
	for i := 0; i < 2_000_000; i += 2 {
		f.Add(chars(i))
	}
	var file bytes.Buffer
	if err := interop.WriteGuava(&file, f); err != nil {
		t.Fatal(err)
	}
	read, err := interop.ReadGuava(&file)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i := 1; i < 2_000_000; i += 2 {
		if read.Contains(chars(i)) {
			found++
		}
	}
	if found != 30_104 {
		t.Errorf("%d false positives, want 30104", found)
	}
}

// TestFunnels compares the hashes of the funnelled bytes with Guava's.
func TestFunnels(t *testing.T) {
	var v struct {
		Hash128 []struct {
			Key                    *string
			Bytes, UTF8, Unencoded string
			Long, LongFunnel       string
			Integer                string `json:"integerFunnel_of_low32"`
		}
	}
	keys := loadVectors(t, "guava_positions", &v)
	compared := 0
	compare := func(want string, key []byte) {
		t.Helper()
		if want == "" {
			return
		}
		compared++
		high, low := murmur3.Sum128(key)
		got := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, high), low)
		if hex.EncodeToString(got) != want {
			t.Errorf("key %.40x has the hash %x, want %s", key, got, want)
		}
	}
	for _, w := range v.Hash128 {
		if w.Key == nil {
			x, err := strconv.ParseInt(w.Long, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			compare(w.LongFunnel, funnelled(t, interop.FunnelLong, []byte(w.Long)))
			compare(w.LongFunnel, interop.GuavaLong(x))
			compare(w.Integer, funnelled(t, interop.FunnelInteger, fmt.Append(nil, int32(x))))
			compare(w.Integer, interop.GuavaInteger(int32(x)))
			continue
		}
		key := keys[*w.Key]
		compare(w.Bytes, funnelled(t, interop.FunnelBytes, key))
		if w.UTF8 != "" {
			compare(w.UTF8, funnelled(t, interop.FunnelUTF8, key))
			compare(w.Unencoded, funnelled(t, interop.FunnelUnencodedChars, key))
			if !strings.HasPrefix(*w.Key, "lone") { // of which Go's strings know nothing
				compare(w.Unencoded, interop.GuavaChars(string(key)))
			}
		}
	}
	if compared < 300 {
		t.Errorf("only %d hashes compared", compared)
	}
}

func TestFunnelsRefuse(t *testing.T) {
	for _, tt := range []struct {
		funnel interop.Funnel
		line   string
	}{
		{interop.FunnelLong, ""},
		{interop.FunnelLong, "ten"},
		{interop.FunnelLong, " 1"},
		{interop.FunnelLong, "9223372036854775808"},
		{interop.FunnelInteger, "2147483648"},
		{interop.FunnelUTF8, "\xff"},
		{interop.FunnelUTF8, "a\xed\xa0"},
		{interop.FunnelUnencodedChars, "\xc3\x28"},
		{interop.Funnel(99), "a"},
	} {
		if key, err := tt.funnel.Append(nil, []byte(tt.line)); !errors.Is(err, interop.ErrFunnel) {
			t.Errorf("%v of %q = %x, %v, want ErrFunnel", tt.funnel, tt.line, key, err)
		}
	}
	for _, f := range interop.Funnels() {
		if got, ok := interop.FunnelNamed(f.String()); !ok || got != f {
			t.Errorf("FunnelNamed(%q) = %v, %v", f, got, ok)
		}
	}
	if f, ok := interop.FunnelNamed("UTF_8"); ok {
		t.Errorf("there is a funnel UTF_8: %v", f)
	}
}

// javaObject is the beginning of a filter that Guava 31.1 left to
// ObjectOutputStream.
const javaObject = "aced00057372002d636f6d2e676f6f676c652e636f6d6d6f6e2e686173682e426c6f6f6d46696c7465722453657269616c466f726d0000000000000001020004"

func TestGuavaRefuses(t *testing.T) {
	object := fromHex(t, javaObject)
	f, ok := interop.Recognise(object, 400)
	if !ok || f.Name != "guava" {
		t.Fatalf("Java's own serialisation is taken for %v", f)
	}
	for _, file := range [][]byte{object, object[:4]} {
		_, err := f.Read(bytes.NewReader(file), interop.Options{})
		if !errors.Is(err, bloom.ErrFormat) || !strings.Contains(err.Error(), "BloomFilter.writeTo") {
			t.Errorf("Java's own serialisation: error %v, want ErrFormat that names writeTo", err)
		}
	}
	for name, file := range map[string][]byte{
		"longer than its head says": append([]byte{1, 5, 0, 0, 0, 1}, make([]byte, 9)...),
		"a bitmap":                  {0, 1, 0, 0, 0, 1, 0, 0, 0},
	} {
		if f, ok := interop.Recognise(file, int64(len(file))); ok {
			t.Errorf("%s: taken for %s", name, f.Name)
		}
	}
	dcso, err := classic.Config{Keys: 10, Rate: 0.01, Scheme: classic.SchemeDCSO}.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := interop.WriteGuava(io.Discard, dcso); !errors.Is(err, interop.ErrScheme) {
		t.Errorf("another scheme: %v, want ErrScheme", err)
	}
	file := &interop.File{Filter: dcso}
	if err := file.Write(io.Discard, f); !errors.Is(err, interop.ErrScheme) {
		t.Errorf("another scheme: %v, want ErrScheme", err)
	}
	limit := interop.Options{Limit: 100}
	if _, err := f.Read(bytes.NewReader(append([]byte{1, 5, 0, 0, 0, 20}, make([]byte, 160)...)), limit); !errors.Is(err, bloom.ErrLimit) {
		t.Errorf("166 bytes of 100: %v, want ErrLimit", err)
	}
}

// TestGuavaClaims: 16 GiB are claimed, a few bytes come.
func TestGuavaClaims(t *testing.T) {
	file := append([]byte{1, 5, 0x7f, 0xff, 0xff, 0xff}, make([]byte, 1000)...)
	took := allocates(func() {
		if _, err := interop.ReadGuava(bytes.NewReader(file)); !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("error %v, want ErrFormat", err)
		}
	})
	if took > 8<<20 {
		t.Errorf("%d bytes were allocated for %d that came", took, len(file))
	}
}

func TestGuavaElementCountOfAll(t *testing.T) {
	full, err := interop.ReadGuava(bytes.NewReader(append([]byte{1, 5, 0, 0, 0, 1}, bytes.Repeat([]byte{0xff}, 8)...)))
	if err != nil {
		t.Fatal(err)
	}
	if got := interop.GuavaElementCount(full); got != math.MaxInt64 {
		t.Errorf("all bits set: %d elements, want %d", got, int64(math.MaxInt64))
	}
}

// FuzzGuava: whatever reads is written byte for byte.
func FuzzGuava(f *testing.F) {
	for _, file := range []string{
		"0105000000010010004008002004ffff",
		"00050000000674283450e6411c0b63a094f09317e6e64c43431a3cbd9cf13e094c2af32280b6689186f245420c03f58f7c12a63f49b9",
		"01ff7fffffff0010004008002004",
		"010500000000",
		javaObject,
	} {
		f.Add(fromHex(f, file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		filter, err := interop.ReadGuava(bytes.NewReader(file))
		if err != nil {
			if !errors.Is(err, bloom.ErrFormat) {
				t.Fatalf("error %v, want ErrFormat", err)
			}
			return
		}
		filter.ContainsString("a key")
		var again bytes.Buffer
		if err := interop.WriteGuava(&again, filter); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Bytes(), file[:again.Len()]) {
			t.Fatalf("written again it is %x", again.Bytes())
		}
	})
}

// BloomFilter.create(Funnels.stringFunnel(UTF_8), 1, 0.03) with "hello" in it, as
// its writeTo left it.
func ExampleReadGuava() {
	file := []byte("\x01\x05\x00\x00\x00\x01\x00\x10\x00\x40\x08\x00\x20\x04")
	f, err := interop.ReadGuava(bytes.NewReader(file))
	if err != nil {
		panic(err)
	}
	fmt.Println("m", f.Plan().Bits, "k", f.Plan().Probes, f.Scheme())
	fmt.Println(f.ContainsString("hello"), f.ContainsString("world"))

	// A filter with Funnels.unencodedCharsFunnel() would have other keys.
	fmt.Println(f.Contains(interop.GuavaChars("hello")))
	// Output:
	// m 64 k 5 guava-mitz-64
	// true false
	// false
}
