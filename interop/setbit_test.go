package interop_test

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
)

func TestSetBitFilters(t *testing.T) {
	var v struct {
		Filters []struct {
			Name     string
			Bit      int
			Hashes   int `json:"hash_number"`
			Inserted []string
			Bulk     *struct {
				Text     string
				From, To int
			}
			Length int    `json:"redis_string_len"`
			String string `json:"redis_string_b64"`
			Exists map[string]bool
		}
	}
	keys := loadVectors(t, "scrapy_redis_bitmap", &v)
	if len(v.Filters) == 0 {
		t.Fatal("no vectors")
	}
	for _, w := range v.Filters {
		t.Run(w.Name, func(t *testing.T) {
			want := fromBase64(t, w.String)
			if len(want) != w.Length {
				t.Fatalf("%d bytes, want %d", len(want), w.Length)
			}
			made, err := classic.Config{Bits: 1 << w.Bit, Probes: w.Hashes, Scheme: classic.SchemeRedisSetBit}.New()
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range w.Inserted {
				made.Add(keys[id])
			}
			if w.Bulk != nil {
				if w.Bulk.Text != `sha1hex("https://example.com/main/%d")` {
					t.Fatalf("no such keys: %s", w.Bulk.Text)
				}
				for i := w.Bulk.From; i < w.Bulk.To; i++ {
					made.AddString(fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "https://example.com/main/%d", i))))
				}
			}
			var file bytes.Buffer
			if err := interop.WriteSetBit(&file, made); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(file.Bytes(), want) {
				t.Errorf("written %.40x..., want %.40x...", file.Bytes(), want)
			}
			read := mustRewrite(t, "redis-setbit", want, interop.Options{Bits: 1 << w.Bit, Probes: w.Hashes})
			if !read.Filter.(*classic.Filter).Equal(made) {
				t.Error("what was read differs from what was made")
			}
			for id, want := range w.Exists {
				if id == "empty" {
					continue // the program answers no without looking
				}
				if got := read.Contains(keys[id]); got != want {
					t.Errorf("Contains(%s) = %v, want %v", id, got, want)
				}
			}
		})
	}
}

// bareConfig is a filter of the scheme, m and k whose bits are nobody's.
func bareConfig(s classic.Scheme, m uint64, k int) classic.Config {
	return classic.Config{Scheme: s, Bits: m, Probes: k}
}

func TestSetBitRefuses(t *testing.T) {
	f := format(t, "redis-setbit")
	for name, tt := range map[string]struct {
		file string
		o    interop.Options
		want error
		says string
	}{
		"no m and k":        {"\x80", interop.Options{}, bloom.ErrConfig, "Bits and Probes"},
		"no k":              {"\x80", interop.Options{Bits: 64}, bloom.ErrConfig, "Bits and Probes"},
		"m no power of two": {"\x80", interop.Options{Bits: 65, Probes: 2}, bloom.ErrConfig, "power of two"},
		"m above Redis":     {"\x80", interop.Options{Bits: 1 << 33, Probes: 2}, bloom.ErrConfig, "2^32"},
		"another scheme":    {"\x80", interop.Options{Bits: 64, Probes: 2, Scheme: classic.SchemeGuava64}, bloom.ErrConfig, "redis-setbit"},
		"a bit in byte m/8": {"12345678\x01", interop.Options{Bits: 64, Probes: 2}, bloom.ErrFormat, "is m right"},
		"far behind m":      {"1" + strings.Repeat("\x00", 10000) + "\x01", interop.Options{Bits: 64, Probes: 2}, bloom.ErrFormat, "is m right"},
		"bit m in its byte": {"\x08", interop.Options{Bits: 4, Probes: 2}, bloom.ErrFormat, "behind the last of 4"},
		"over the limit":    {"12345678", interop.Options{Bits: 64, Probes: 2, Limit: 7}, bloom.ErrLimit, ""},
	} {
		if _, err := f.Read(strings.NewReader(tt.file), tt.o); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %v that says %q", name, err, tt.want, tt.says)
		}
	}
	if _, err := f.Read(strings.NewReader("12345678\x00"), interop.Options{Bits: 64, Probes: 2}); err != nil {
		t.Errorf("a zero behind m, as SETBIT writes with the value 0: %v", err)
	}
	// Guava's scheme would round m up to a multiple of 64, and mean other bits.
	if _, err := interop.ReadSetBit(strings.NewReader("\x80"), bareConfig(classic.SchemeGuava32, 100, 3)); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("a rounded m: %v, want ErrConfig", err)
	}
	broken := errors.New("broken")
	for _, behind := range []string{"1234", "12345678"} {
		from := io.MultiReader(strings.NewReader(behind), failing{broken})
		if _, err := f.Read(from, interop.Options{Bits: 64, Probes: 2}); !errors.Is(err, broken) {
			t.Errorf("a reader that fails after %q: %v", behind, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestSetBitTrims: an empty filter is an empty string, and long holes between
// bits are written.
func TestSetBitTrims(t *testing.T) {
	c := bareConfig(classic.SchemeRedisSetBit, 1<<24, 1)
	f, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	written := func() []byte {
		t.Helper()
		var file bytes.Buffer
		if err := interop.WriteSetBit(&file, f); err != nil {
			t.Fatal(err)
		}
		read, err := interop.ReadSetBit(bytes.NewReader(file.Bytes()), c)
		if err != nil || !read.Equal(f) {
			t.Errorf("%d bytes read as %v, %v", file.Len(), read, err)
		}
		return file.Bytes()
	}
	if got := written(); len(got) != 0 {
		t.Errorf("an empty filter has %d bytes", len(got))
	}
	f.AddString("\x01") // the sum of its code points: bit 1
	if got := written(); !bytes.Equal(got, []byte{0x40}) {
		t.Errorf("bit 1 is written as %x, want 40", got)
	}
	f.AddString("\U0010ffff") // bit 0x10ffff
	if got := written(); len(got) != 0x10ffff/8+1 || got[0] != 0x40 || got[0x10ffff/8] != 1 || bytes.Count(got, []byte{0}) != len(got)-2 {
		t.Errorf("bits 1 and %d are written as %d bytes", 0x10ffff, len(got))
	}
}

// TestBitSetFilters writes the Java class's filters as toByteArray does, and reads
// them again.
func TestBitSetFilters(t *testing.T) {
	var v struct {
		Filters []struct {
			Name     string
			Inserted []string
			Bulk     *keyRange
			Len      int    `json:"to_byte_array_len"`
			SHA256   string `json:"to_byte_array_sha256"`
			Contains map[string]bool
		}
	}
	keys := loadVectors(t, "article4_java", &v)
	if len(v.Filters) == 0 {
		t.Fatal("no vectors")
	}
	for _, w := range v.Filters {
		made, err := bareConfig(classic.SchemeJavaBitSet, 2<<28, 8).New()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range w.Inserted {
			made.Add(keys[id])
		}
		if w.Bulk != nil {
			for i := w.Bulk.From; i < w.Bulk.To; i++ {
				made.Add(fmt.Appendf(nil, w.Bulk.Fmt, i))
			}
		}
		var file bytes.Buffer
		if err := interop.WriteBitSetBytes(&file, made); err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(file.Bytes())); file.Len() != w.Len || sum != w.SHA256 {
			t.Errorf("%s: %d bytes with SHA-256 %s, want %d with %s", w.Name, file.Len(), sum, w.Len, w.SHA256)
		}
		read, err := format(t, "java-bitset-bytes").Read(&file, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !read.Filter.(*classic.Filter).Equal(made) {
			t.Errorf("%s: what was read differs from what was made", w.Name)
		}
		for id, want := range w.Contains {
			if got := read.Contains(keys[id]); got != want {
				t.Errorf("%s: Contains(%s) = %v, want %v", w.Name, id, got, want)
			}
		}
		for _, f := range []interop.Filter{made, read} {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestBitSetIO is one BitSet in both of Java's forms, and, as a copy of the class
// would keep it, in Redis.
func TestBitSetIO(t *testing.T) {
	var v struct {
		IO struct {
			Set    []uint64
			Bytes  string `json:"to_byte_array_hex"`
			Stream string `json:"object_output_stream_hex"`
		} `json:"java_bitset_io"`
	}
	loadVectors(t, "article4_java", &v)
	stream, array := fromHex(t, v.IO.Stream), fromHex(t, v.IO.Bytes)
	o := interop.Options{Bits: 256, Probes: 8}
	asBytes := mustRewrite(t, "java-bitset-bytes", array, o)
	for _, o := range []interop.Options{o, {}} { // 4 longs are 256 bits
		f := mustRewrite(t, "java-bitset", stream, o)
		filter := f.Filter.(*classic.Filter)
		if filter.Plan().Bits != 256 || filter.Plan().Probes != 8 || !filter.Equal(asBytes.Filter.(*classic.Filter)) {
			t.Errorf("the stream is %v, the array %v", filter, asBytes.Filter)
		}
		text := []byte(strings.Repeat("0", 256))
		for _, i := range v.IO.Set {
			text[255-i] = '1'
		}
		if got := filter.BitString(); got != string(text) {
			t.Errorf("bits %s, want %s", got, text)
		}
		for name, want := range map[string][]byte{"java-bitset": stream, "java-bitset-bytes": array, "redis-setbit": nil} {
			var file bytes.Buffer
			if err := f.Write(&file, format(t, name)); err != nil {
				t.Fatal(err)
			}
			if want != nil && !bytes.Equal(file.Bytes(), want) {
				t.Errorf("written as %s it is %x, want %x", name, file.Bytes(), want)
			}
			o := interop.Options{Bits: 256, Probes: 8, Scheme: classic.SchemeJavaBitSet}
			if again, err := format(t, name).Read(&file, o); err != nil || !again.Filter.(*classic.Filter).Equal(filter) {
				t.Errorf("by way of %s it is %v, %v", name, again, err)
			}
		}
	}
	// More may follow in the stream.
	from := bytes.NewReader(append(bytes.Clone(stream), "more"...))
	if _, err := interop.ReadBitSet(from, classic.Config{}); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(from); string(rest) != "more" {
		t.Errorf("ReadBitSet leaves %q", rest)
	}
	// toLongArray ends with the zeros of its last long.
	if _, err := interop.ReadBitSetBytes(bytes.NewReader(append(bytes.Clone(array), make([]byte, 7)...)), bareConfig(classic.Scheme{}, 256, 8)); err != nil {
		t.Error(err)
	}
}

// bitSetStream is what ObjectOutputStream writes around the longs, of which it
// claims that there are that many.
func bitSetStream(t testing.TB, longs uint32, array []byte) []byte {
	t.Helper()
	head := fromHex(t, "aced0005737200106a6176612e7574696c2e4269745365746efd887e3934ab210300015b0004626974737400025b4a7870757200025b4a782004b512b175930200007870")
	head = append(head, byte(longs>>24), byte(longs>>16), byte(longs>>8), byte(longs))
	return append(append(head, array...), 0x78)
}

func TestBitSetRefuses(t *testing.T) {
	long := []byte{0, 0, 0, 0, 0, 0, 0, 1}
	valid := bitSetStream(t, 1, long)
	if _, err := interop.ReadBitSet(bytes.NewReader(valid), classic.Config{}); err != nil {
		t.Fatal(err)
	}
	for cut := range valid {
		if _, err := interop.ReadBitSet(bytes.NewReader(valid[:cut]), classic.Config{}); !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("cut to %d bytes: %v, want ErrFormat", cut, err)
		}
	}
	noEnd := bytes.Clone(valid)
	noEnd[len(noEnd)-1] = 0x77
	otherClass := bytes.Clone(valid)
	otherClass[10] ^= 1
	for name, tt := range map[string]struct {
		file []byte
		c    classic.Config
		want error
	}{
		"no end of the object":      {noEnd, classic.Config{}, bloom.ErrFormat},
		"another class":             {otherClass, classic.Config{}, bloom.ErrFormat},
		"a Guava filter":            {fromHex(t, javaObject), classic.Config{}, bloom.ErrFormat},
		"three longs, and no m":     {bitSetStream(t, 3, make([]byte, 24)), classic.Config{}, bloom.ErrConfig},
		"no longs, and no m":        {bitSetStream(t, 0, nil), classic.Config{}, bloom.ErrConfig},
		"negative longs":            {bitSetStream(t, 1<<31, nil), classic.Config{}, bloom.ErrFormat},
		"more longs than the class": {bitSetStream(t, 1<<30, long), classic.Config{}, bloom.ErrFormat},
		"k above the seeds":         {valid, bareConfig(classic.SchemeJavaBitSet, 64, 9), bloom.ErrConfig},
		"bits behind m":             {bitSetStream(t, 2, append(make([]byte, 8), long...)), bareConfig(classic.SchemeJavaBitSet, 64, 8), bloom.ErrFormat},
	} {
		if _, err := interop.ReadBitSet(bytes.NewReader(tt.file), tt.c); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		file []byte
		c    classic.Config
	}{
		"three longs of four":   {bitSetStream(t, 3, make([]byte, 24)), bareConfig(classic.Scheme{}, 256, 0)},
		"none of four":          {bitSetStream(t, 0, nil), bareConfig(classic.Scheme{}, 256, 0)},
		"a zero long behind m":  {bitSetStream(t, 2, append(bytes.Clone(long), make([]byte, 8)...)), bareConfig(classic.Scheme{}, 64, 0)},
		"k of a shorter class":  {valid, bareConfig(classic.Scheme{}, 64, 3)},
		"another of the caller": {valid, bareConfig(classic.SchemeRedisSetBit, 64, 3)},
	} {
		if _, err := interop.ReadBitSet(bytes.NewReader(tt.file), tt.c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// 128 MiB are claimed, a few bytes come.
	claim := bitSetStream(t, 1<<24, make([]byte, 1000))
	took := allocates(func() {
		if _, err := interop.ReadBitSet(bytes.NewReader(claim), classic.Config{}); !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("128 MiB of 1000 bytes: %v, want ErrFormat", err)
		}
	})
	if took > 8<<20 {
		t.Errorf("%d bytes were allocated for %d that came", took, len(claim))
	}
}

// FuzzSetBit: whatever reads is written up to its last byte that is not zero.
func FuzzSetBit(f *testing.F) {
	f.Add([]byte("\x68\x68"), uint8(4), uint8(6))
	f.Add([]byte{}, uint8(0), uint8(1))
	f.Add([]byte("12345678\x00"), uint8(6), uint8(3))
	f.Add(make([]byte, 100), uint8(17), uint8(255))
	f.Fuzz(func(t *testing.T, file []byte, bit, k uint8) {
		c := bareConfig(classic.SchemeRedisSetBit, 1<<(bit%18), int(k))
		for _, form := range []struct {
			read  func(io.Reader, classic.Config) (*classic.Filter, error)
			write func(io.Writer, *classic.Filter) error
		}{
			{interop.ReadSetBit, interop.WriteSetBit},
			{interop.ReadBitSetBytes, interop.WriteBitSetBytes},
		} {
			filter, err := form.read(bytes.NewReader(file), c)
			if err != nil {
				if !errors.Is(err, bloom.ErrFormat) && !errors.Is(err, bloom.ErrConfig) {
					t.Fatalf("error %v, want ErrFormat or ErrConfig", err)
				}
				continue
			}
			filter.ContainsString("a key")
			var again bytes.Buffer
			if err := form.write(&again, filter); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(again.Bytes(), bytes.TrimRight(file, "\x00")) {
				t.Fatalf("written again it is %x", again.Bytes())
			}
		}
	})
}

// FuzzJavaBitSet gives the reader the bytes as they are, and as the longs of a
// stream that is right but for its count.
func FuzzJavaBitSet(f *testing.F) {
	long := []byte{0, 0, 0, 0, 0, 0, 0, 1}
	f.Add(bitSetStream(f, 1, long), uint32(1), uint8(6))
	f.Add(long, uint32(1), uint8(0))
	f.Add(long, uint32(2), uint8(8))
	f.Add([]byte{}, uint32(0), uint8(8))
	f.Add(long, uint32(1<<24), uint8(0))
	f.Add(long, uint32(1<<31), uint8(0))
	f.Fuzz(func(t *testing.T, file []byte, longs uint32, bit uint8) {
		c := classic.Config{}
		if bit %= 20; bit != 0 {
			c.Bits = 1 << bit
		}
		for _, file := range [][]byte{file, bitSetStream(t, longs, file)} {
			filter, err := interop.ReadBitSet(bytes.NewReader(file), c)
			if err != nil {
				if !errors.Is(err, bloom.ErrFormat) && !errors.Is(err, bloom.ErrConfig) {
					t.Fatalf("error %v, want ErrFormat or ErrConfig", err)
				}
				continue
			}
			filter.ContainsString("a key")
			var again bytes.Buffer
			if err := interop.WriteBitSet(&again, filter); err != nil {
				t.Fatal(err)
			}
			same := bareConfig(filter.Scheme(), filter.Plan().Bits, filter.Plan().Probes)
			if g, err := interop.ReadBitSet(&again, same); err != nil || !g.Equal(filter) {
				t.Fatalf("written and read again, it is %v, %v, not %v", g, err, filter)
			}
		}
	})
}

// A crawler's filter of 2^12 bits and 6 hashes, as GET mycrawler:bloomfilter
// returns it: the fingerprints of requests are the keys.
func ExampleReadSetBit() {
	crawler := classic.Config{Scheme: classic.SchemeRedisSetBit, Bits: 1 << 12, Probes: 6}
	seen, err := crawler.New()
	if err != nil {
		panic(err)
	}
	fingerprint := fmt.Sprintf("%x", sha1.Sum([]byte("https://example.com/")))
	seen.AddString(fingerprint)
	var redis bytes.Buffer
	if err := interop.WriteSetBit(&redis, seen); err != nil {
		panic(err)
	}
	fmt.Println(redis.Len(), "bytes for SET")

	read, err := interop.ReadSetBit(&redis, crawler)
	if err != nil {
		panic(err)
	}
	fmt.Println(read.ContainsString(fingerprint), read.ContainsString("another"))
	// Output:
	// 368 bytes for SET
	// true false
}
