package classic

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/scheme"
)

// The files in testdata/vectors come from the programs themselves, each as its
// made_by says: positions, whole filters and the keys they wrongly find.

// vectorKeys reads a file of vectors into v and returns its keys.
func vectorKeys(t *testing.T, name string, v any) map[string][]byte {
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
		switch {
		case key.Hex != nil:
			keys[id] = unhex(t, *key.Hex)
		default: // unpaired surrogates have no UTF-8
			keys[id] = fromUnits(unhex(t, *key.UTF16))
		}
	}
	return keys
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unbase64(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fromUnits encodes big-endian UTF-16, with each unpaired surrogate as three
// bytes.
func fromUnits(units []byte) (key []byte) {
	for len(units) > 0 {
		r := rune(binary.BigEndian.Uint16(units))
		units = units[2:]
		if r&0xfc00 == 0xd800 && len(units) > 0 && units[0]&0xfc == 0xdc {
			r = 0x10000 + (r&0x3ff)<<10 + rune(binary.BigEndian.Uint16(units)&0x3ff)
			units = units[2:]
		}
		if r&0xf800 == 0xd800 {
			key = append(key, 0xed, byte(0x80|r>>6&0x3f), byte(0x80|r&0x3f))
			continue
		}
		key = append(key, string(r)...)
	}
	return key
}

// keyRun is a run of keys.
type keyRun struct {
	Fmt      string
	From, To int
}

func (b *keyRun) key(i int) []byte {
	if b.Fmt == "sha1upper:%d" {
		return fmt.Appendf(nil, "%X", sha1.Sum([]byte(strconv.Itoa(i))))
	}
	return fmt.Appendf(nil, b.Fmt, i)
}

// vectorFilter is a filter of the programs'.
type vectorFilter struct {
	Name       string
	M          uint64
	K          int
	Inserted   []string
	Bulk       *keyRun
	BulkAbsent *struct {
		keyRun
		FalsePositives []int `json:"false_positives"`
	} `json:"bulk_absent"`
	Contains map[string]bool
}

// check makes the filter and compares its bits, byte by byte with the lowest bit
// first, and its answers. A nil want leaves the bits out.
func (v *vectorFilter) check(t *testing.T, c Config, keys map[string][]byte, want []byte) *Filter {
	t.Helper()
	c.Bits, c.Probes = v.M, v.K
	f, err := c.New()
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	for _, id := range v.Inserted {
		f.Add(keys[id])
	}
	if v.Bulk != nil {
		for i := v.Bulk.From; i < v.Bulk.To; i++ {
			f.Add(v.Bulk.key(i))
		}
	}
	if got := lowFirst(f); want != nil && !bytes.Equal(got[:len(want)], want) {
		t.Errorf("%s: bits are %.40x..., want %.40x...", v.Name, got, want)
	}
	v.checkAnswers(t, keys, f.Contains)
	return f
}

func (v *vectorFilter) checkAnswers(t *testing.T, keys map[string][]byte, contains func([]byte) bool) {
	t.Helper()
	if len(v.Contains) == 0 {
		t.Errorf("%s: no answers to compare", v.Name)
	}
	for id, want := range v.Contains {
		if got := contains(keys[id]); got != want {
			t.Errorf("%s: Contains(%s) = %v, want %v", v.Name, id, got, want)
		}
	}
	if v.BulkAbsent == nil {
		return
	}
	got := []int{}
	for i := v.BulkAbsent.From; i < v.BulkAbsent.To; i++ {
		if contains(v.BulkAbsent.key(i)) {
			got = append(got, i)
		}
	}
	if !slices.Equal(got, v.BulkAbsent.FalsePositives) {
		t.Errorf("%s: false positives %v, want %v", v.Name, got, v.BulkAbsent.FalsePositives)
	}
}

// lowFirst is the filter's bits as bytes, bit i in byte i/8, mask 1<<(i%8).
func lowFirst(f *Filter) []byte {
	b := make([]byte, 0, len(f.words)*8)
	for _, word := range f.words {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// positions calls a numbered scheme with any m and k, those included that the
// filters refuse.
func positions(number uint16, key []byte, m uint64, k int, seed uint64) []uint64 {
	at := make([]uint64, k)
	scheme.Table[number].Fill(at, key, m, seed)
	return at
}

func comparePositions(t *testing.T, number uint16, id string, m uint64, got, want []uint64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: m %d, key %s: positions %d, want %d", scheme.Table[number].Name, m, id, got, want)
	}
}

func TestVectorsMD5IndexKey(t *testing.T) {
	var v struct {
		Positions []struct {
			M    uint64
			K    int
			Key  string
			Bits []uint64
		}
		Filters []struct {
			vectorFilter
			BitsB64 string `json:"bits_lsb_b64"`
			N       uint64
			FP      float64
		}
	}
	keys := vectorKeys(t, "article1_md5", &v)
	for _, p := range v.Positions {
		comparePositions(t, scheme.MD5IndexKey, p.Key, p.M, positions(scheme.MD5IndexKey, keys[p.Key], p.M, p.K, 0), p.Bits)
	}
	for _, f := range v.Filters {
		c := Config{Keys: f.N, Rate: f.FP, Scheme: SchemeMD5IndexKey}
		if f.K == 0 { // "every key is there"
			if _, err := c.New(); !errors.Is(err, bloom.ErrRate) || !strings.Contains(err.Error(), "k = 0") {
				t.Errorf("%s: error %v, want ErrRate that names k = 0", f.Name, err)
			}
			continue
		}
		if p, err := c.Plan(); err != nil || p.Bits != f.M || p.Probes != f.K {
			t.Errorf("%s: plan %v, %v, want m %d, k %d", f.Name, p, err, f.M, f.K)
		}
		f.check(t, Config{Scheme: SchemeMD5IndexKey}, keys, unbase64(t, f.BitsB64))
	}
}

// TestNoSeparatorMD5IndexKey: the hashes 1 of "0x" and 10 of "x" are the same.
func TestNoSeparatorMD5IndexKey(t *testing.T) {
	a, b := positions(scheme.MD5IndexKey, []byte("0x"), 65537, 11, 0), positions(scheme.MD5IndexKey, []byte("x"), 65537, 11, 0)
	if a[1] != b[10] || a[1] != 63759 {
		t.Errorf("positions %d and %d, want 63759", a[1], b[10])
	}
}

// TestMD5KeyIndex works the family out again with math/big.
func TestMD5KeyIndex(t *testing.T) {
	long := strings.Repeat("key ", 1000)
	for _, key := range []string{"", "a", "hello", "布隆过滤器", long} {
		for _, m := range []uint64{1, 10, 9586, 1 << 45} {
			for i, got := range positions(scheme.MD5KeyIndex, []byte(key), m, 12, 0) {
				digest := md5.Sum([]byte(key + strconv.Itoa(i+1)))
				x := new(big.Int).SetBytes(digest[:])
				if want := x.Mod(x, new(big.Int).SetUint64(m)).Uint64(); got != want {
					t.Errorf("m %d, key %.20q: position %d is %d, want %d", m, key, i, got, want)
				}
			}
		}
	}
}

func TestVectorsSHA256MD5(t *testing.T) {
	var v struct {
		Positions []struct {
			Size      uint64
			Key       string
			Positions []uint64 `json:"positions_sha256_md5"`
		}
		FormatHash []struct {
			Size       uint64
			Key        string
			FormatHash string `json:"format_hash"`
		} `json:"format_hash"`
		Filters []struct {
			vectorFilter
			Size  uint64
			Steps []struct {
				Add                string
				Ones               int
				EstimatedErrorRate float64 `json:"estimated_error_rate"`
				BitString          string
			}
			BitStringSHA256 string `json:"bitstring_sha256"`
		}
	}
	keys := vectorKeys(t, "article2_sha256_md5", &v)
	for _, p := range v.Positions {
		comparePositions(t, scheme.SHA256MD5, p.Key, p.Size, positions(scheme.SHA256MD5, keys[p.Key], p.Size, 2, 0), p.Positions)
	}
	for _, p := range v.FormatHash {
		f := mustClassic(t, Config{Bits: p.Size, Probes: 2, Scheme: SchemeSHA256MD5})
		if got := f.FormatHash(keys[p.Key]); got != p.FormatHash {
			t.Errorf("m %d: FormatHash(%s) = %s, want %s", p.Size, p.Key, got, p.FormatHash)
		}
	}
	for _, w := range v.Filters {
		f := mustClassic(t, Config{Bits: w.Size, Probes: 2, Scheme: SchemeSHA256MD5})
		for _, step := range w.Steps {
			f.Add(keys[step.Add])
			if got := f.EstimatedErrorRate(); got != step.EstimatedErrorRate {
				t.Errorf("%s: after %s the error rate is %v, want %v", w.Name, step.Add, got, step.EstimatedErrorRate)
			}
			if step.BitString != "" && f.BitString() != step.BitString {
				t.Errorf("%s: after %s the bits are %s, want %s", w.Name, step.Add, f.BitString(), step.BitString)
			}
		}
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(f.BitString()))); got != w.BitStringSHA256 {
			t.Errorf("%s: the SHA-256 of the bits is %s, want %s", w.Name, got, w.BitStringSHA256)
		}
		w.checkAnswers(t, keys, f.Contains)
	}
}

func mustClassic(t *testing.T, c Config) *Filter {
	t.Helper()
	f, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestVectorsMurmurFNVJS(t *testing.T) {
	var v struct {
		Example []struct {
			Word        string
			FNV, Murmur uint64
		}
		LLimllib []struct {
			Key           string
			FNV1s, Murmur uint64
			Mod15, Mod10  []uint64
		}
	}
	keys := vectorKeys(t, "article3_formulas", &v)
	for _, w := range v.Example {
		comparePositions(t, scheme.MurmurFNVJS, w.Word, 15, positions(scheme.MurmurFNVJS, []byte(w.Word), 15, 2, 0), []uint64{w.FNV, w.Murmur})
	}
	for _, w := range v.LLimllib {
		for m, want := range map[uint64][]uint64{1 << 40: {w.FNV1s, w.Murmur}, 15: w.Mod15, 10: w.Mod10} {
			comparePositions(t, scheme.MurmurFNVJS, w.Key, m, positions(scheme.MurmurFNVJS, keys[w.Key], m, 2, 0), want)
		}
	}
}

func TestVectorsJavaBitSet(t *testing.T) {
	type at struct {
		Cap  uint64
		Key  string
		Bits []uint64
	}
	var v struct {
		Positions []at
		SmallSize []at `json:"small_size"`
		Filters   []struct {
			vectorFilter
			ToByteArrayLen    int    `json:"to_byte_array_len"`
			ToByteArraySHA256 string `json:"to_byte_array_sha256"`
			BulkAbsent        *struct {
				keyRun
				Count int `json:"false_positive_count"`
			} `json:"bulk_absent"`
		}
	}
	keys := vectorKeys(t, "article4_java", &v)
	for i := range v.Positions {
		v.Positions[i].Cap = 2 << 28
	}
	for _, p := range append(v.Positions, v.SmallSize...) {
		comparePositions(t, scheme.JavaBitSet, p.Key, p.Cap, positions(scheme.JavaBitSet, keys[p.Key], p.Cap, 8, 0), p.Bits)
	}
	for _, w := range v.Filters {
		w.M, w.K = 2<<28, 8
		f := w.check(t, Config{Scheme: SchemeJavaBitSet}, keys, nil)
		got := bytes.TrimRight(lowFirst(f), "\x00")
		if sum := fmt.Sprintf("%x", sha256.Sum256(got)); len(got) != w.ToByteArrayLen || sum != w.ToByteArraySHA256 {
			t.Errorf("%s: %d bytes with SHA-256 %s, want %d with %s", w.Name, len(got), sum, w.ToByteArrayLen, w.ToByteArraySHA256)
		}
		if w.BulkAbsent != nil {
			count := 0
			for i := w.BulkAbsent.From; i < w.BulkAbsent.To; i++ {
				if f.Contains(w.BulkAbsent.key(i)) {
					count++
				}
			}
			if count != w.BulkAbsent.Count {
				t.Errorf("%s: %d false positives, want %d", w.Name, count, w.BulkAbsent.Count)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestVectorsGuava(t *testing.T) {
	numbers := map[string]uint16{"MURMUR128_MITZ_32": scheme.Guava32, "MURMUR128_MITZ_64": scheme.Guava64}
	var at struct {
		Positions []struct {
			Strategy string
			BitSize  uint64 `json:"bit_size"`
			K        int
			Key      string
			Sorted   []uint64 `json:"bits_sorted"`
		}
	}
	keys := vectorKeys(t, "guava_positions", &at)
	for _, p := range at.Positions {
		got := positions(numbers[p.Strategy], keys[p.Key], p.BitSize, p.K, 0)
		slices.Sort(got)
		comparePositions(t, numbers[p.Strategy], p.Key, p.BitSize, slices.Compact(got), p.Sorted)
	}
	var v struct {
		Filters []struct {
			vectorFilter
			Funnel, Strategy string
			N                uint64
			FPP              float64
			BitSize          uint64          `json:"bit_size"`
			WriteToB64       string          `json:"write_to_b64"`
			WriteToSHA256    string          `json:"write_to_sha256"`
			MightContain     map[string]bool `json:"might_contain"`
			ExpectedFPP      float64         `json:"expected_fpp"`
		}
	}
	keys = vectorKeys(t, "guava_filters", &v)
	for _, w := range v.Filters {
		w.M, w.Contains = w.BitSize, w.MightContain
		s := numbered(numbers[w.Strategy])
		f := w.check(t, Config{Scheme: s}, guavaKeys(w.Funnel, keys, w.MightContain), nil)
		b := binary.BigEndian.AppendUint32([]byte{byte(s.Number() - scheme.Guava32), byte(w.K)}, uint32(len(f.words)))
		for _, word := range f.words {
			b = binary.BigEndian.AppendUint64(b, word)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(b)); sum != w.WriteToSHA256 {
			t.Errorf("%s: writeTo would give %.20x..., SHA-256 %s, want %s", w.Name, b, sum, w.WriteToSHA256)
		}
		if got := f.EstimatedErrorRate(); got/w.ExpectedFPP-1 > 1e-12 || 1-got/w.ExpectedFPP > 1e-12 {
			t.Errorf("%s: error rate %v, want %v", w.Name, got, w.ExpectedFPP)
		}
		if w.N == 0 {
			continue // Guava takes it for 1, we ask back
		}
		if p, err := (Config{Keys: w.N, Rate: w.FPP, Scheme: s}).Plan(); err != nil || p.Bits != w.M || p.Probes != w.K {
			if w.Name != "k255" || p.Probes != 255 || p.Bits != w.M {
				t.Errorf("%s: plan %v, %v, want m %d, k %d", w.Name, p, err, w.M, w.K)
			}
		}
	}
}

// guavaKeys passes the keys through a funnel. The long funnel's are numbers.
func guavaKeys(funnel string, keys map[string][]byte, ids map[string]bool) map[string][]byte {
	through := map[string][]byte{}
	for id := range ids {
		key := keys[id]
		switch funnel {
		case "longFunnel":
			x, _ := strconv.ParseInt(id, 10, 64)
			through[id] = binary.LittleEndian.AppendUint64(nil, uint64(x))
		case "byteArrayFunnel":
			through[id] = key
		default:
			through[id] = funnelString(key, funnel == "unencodedCharsFunnel")
		}
	}
	return through
}

// funnelString writes a string as UTF-16, low byte first, or as UTF-8 with a
// question mark for an unpaired surrogate.
func funnelString(key []byte, asUnits bool) (b []byte) {
	for len(key) > 0 {
		r, size := utf8.DecodeRune(key)
		isLone := r == utf8.RuneError && size == 1
		if isLone {
			r, size = 0xd000|rune(key[1]&0x3f)<<6|rune(key[2]&0x3f), 3
		}
		key = key[size:]
		switch {
		case asUnits && isLone:
			b = binary.LittleEndian.AppendUint16(b, uint16(r))
		case asUnits:
			for _, unit := range utf16.Encode([]rune{r}) {
				b = binary.LittleEndian.AppendUint16(b, unit)
			}
		case isLone:
			b = append(b, '?')
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// TestGuavaPinned is the count that Guava's own tests pin: of a million odd
// numbers, 30,104 are found among a million even ones at 3%.
func TestGuavaPinned(t *testing.T) {
	f := mustClassic(t, Config{Keys: 1_000_000, Rate: 0.03, Scheme: SchemeGuava64})
	chars := func(i int) (key []byte) {
		for _, digit := range strconv.Itoa(i) {
			key = append(key, byte(digit), 0)
		}
		return key
	}
	for i := 0; i < 2_000_000; i += 2 {
		f.Add(chars(i))
	}
	found := 0
	for i := 1; i < 2_000_000; i += 2 {
		if f.Contains(chars(i)) {
			found++
		}
	}
	if found != 30_104 {
		t.Errorf("%d false positives, want 30104", found)
	}
}

func TestVectorsRedisBloom(t *testing.T) {
	var v struct {
		Positions []struct{ Key, A, B string }
		Filters   []struct {
			vectorFilter
			Header struct {
				Options int
				Links   []struct {
					Bits    uint64
					Error   float64
					Hashes  int
					Entries uint64
				}
			}
			AddReplies []any `json:"add_replies"`
			Exists     map[string]bool
			BitsB64    string `json:"bits_b64"`
			BulkAddNew int    `json:"bulk_add_new"`
		}
	}
	keys := vectorKeys(t, "redisbloom", &v)
	for _, p := range v.Positions {
		if a, b := scheme.RedisBloomHashes(keys[p.Key]); fmt.Sprintf("%016x %016x", a, b) != p.A+" "+p.B {
			t.Errorf("%s: hashes %016x %016x, want %s %s", p.Key, a, b, p.A, p.B)
		}
	}
	for _, w := range v.Filters {
		var chain []*Filter
		for _, link := range w.Header.Links {
			m, k, err := FormulaRedisBloom.Size(link.Entries, link.Error)
			if err != nil || m != link.Bits || k != link.Hashes {
				t.Errorf("%s: m %d, k %d, %v, want m %d, k %d", w.Name, m, k, err, link.Bits, link.Hashes)
			}
			chain = append(chain, mustClassic(t, Config{Bits: link.Bits, Probes: link.Hashes, Scheme: SchemeRedisBloom}))
		}
		contains := func(key []byte) bool {
			return slices.ContainsFunc(chain, func(f *Filter) bool { return f.Contains(key) })
		}
		last := 0
		add := func(key []byte) int {
			if contains(key) {
				return 0
			}
			if chain[last].added == w.Header.Links[last].Entries && last+1 < len(chain) {
				last++
			} else if chain[last].added == w.Header.Links[last].Entries {
				return -1 // full
			}
			chain[last].Add(key)
			return 1
		}
		for i, id := range w.Inserted {
			got := any(float64(add(keys[id])))
			if got == -1. {
				got = "ERR:ERR non scaling filter is full"
			}
			if got != w.AddReplies[i] {
				t.Errorf("%s: BF.ADD of %s answers %v, want %v", w.Name, id, got, w.AddReplies[i])
			}
		}
		count := 0
		if w.Bulk != nil {
			for i := w.Bulk.From; i < w.Bulk.To; i++ {
				count += add(w.Bulk.key(i))
			}
		}
		if count != w.BulkAddNew {
			t.Errorf("%s: %d of the bulk are new, want %d", w.Name, count, w.BulkAddNew)
		}
		var got []byte
		for _, f := range chain {
			got = append(got, lowFirst(f)...)
		}
		if want := unbase64(t, w.BitsB64); !bytes.Equal(got, want) {
			t.Errorf("%s: bits are %.40x..., want %.40x...", w.Name, got, want)
		}
		w.Contains = w.Exists
		w.checkAnswers(t, keys, contains)
	}
}

func TestVectorsBitsAndBlooms(t *testing.T) {
	var v struct {
		Positions []struct {
			K         int
			Key       string
			Locations []string `json:"locations64"`
		}
		Filters []struct {
			vectorFilter
			BinaryB64 string `json:"binary_b64"`
		}
	}
	keys := vectorKeys(t, "bits_and_blooms", &v)
	for _, p := range v.Positions {
		for _, m := range []uint64{1 << 63, 9586} {
			want := make([]uint64, len(p.Locations))
			for i, location := range p.Locations {
				x, err := strconv.ParseUint(location, 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				want[i] = x % m
			}
			comparePositions(t, scheme.BitsAndBlooms, p.Key, m, positions(scheme.BitsAndBlooms, keys[p.Key], m, p.K, 0), want)
		}
	}
	for _, w := range v.Filters {
		want := unbase64(t, w.BinaryB64)[24:]
		for at := 0; at < len(want); at += 8 {
			slices.Reverse(want[at : at+8])
		}
		w.check(t, Config{Scheme: SchemeBitsAndBlooms}, keys, want)
	}
}

func TestVectorsDCSO(t *testing.T) {
	var v struct {
		Positions []struct {
			M    uint64
			K    int
			Key  string
			Bits []uint64
		}
		Filters []struct {
			vectorFilter
			N       uint64 `json:"n"`
			P       float64
			FileB64 string `json:"file_b64"`
		}
	}
	keys := vectorKeys(t, "dcso_bloom", &v)
	for _, p := range v.Positions {
		comparePositions(t, scheme.DCSO, p.Key, p.M, positions(scheme.DCSO, keys[p.Key], p.M, p.K, 0), p.Bits)
	}
	for _, w := range v.Filters {
		want := unbase64(t, w.FileB64)[48:]
		w.check(t, Config{Scheme: SchemeDCSO}, keys, want[:(w.M+63)/64*8])
	}
}

func TestVectorsBloomFilterJS(t *testing.T) {
	type answers struct {
		keyRun
		V1 []int `json:"false_positives_v1_1_0"`
		V0 []int `json:"false_positives_v0_0_18"`
	}
	var v struct {
		Positions []struct {
			Rounded uint64 `json:"m_rounded"`
			K       int
			Key     string
			V1      []uint64 `json:"v1_1_0"`
			V0      []uint64 `json:"v0_0_18"`
		}
		Filters []struct {
			Name       string
			M          uint64
			K          int
			Rounded    uint64 `json:"m_rounded"`
			Inserted   []string
			Bulk       *keyRun
			JSON       string          `json:"json_v1_1_0"`
			Buckets    []int32         `json:"buckets_v0_0_18"`
			V1         map[string]bool `json:"contains_v1_1_0"`
			V0         map[string]bool `json:"contains_v0_0_18"`
			BulkAbsent *answers        `json:"bulk_absent"`
		}
	}
	keys := vectorKeys(t, "jasondavies_bloomfilter", &v)
	for _, p := range v.Positions {
		comparePositions(t, scheme.BloomFilterJS1, p.Key, p.Rounded, positions(scheme.BloomFilterJS1, keys[p.Key], p.Rounded, p.K, 0), p.V0)
		comparePositions(t, scheme.BloomFilterJS2, p.Key, p.Rounded, positions(scheme.BloomFilterJS2, keys[p.Key], p.Rounded, p.K, 0), p.V1)
	}
	for _, w := range v.Filters {
		var v1 struct{ Buckets []uint32 }
		if err := json.Unmarshal([]byte(w.JSON), &v1); err != nil {
			t.Fatal(err)
		}
		var bits1, bits0 []byte
		for i := range v1.Buckets {
			bits1 = binary.LittleEndian.AppendUint32(bits1, v1.Buckets[i])
			bits0 = binary.LittleEndian.AppendUint32(bits0, uint32(w.Buckets[i]))
		}
		filter := vectorFilter{Name: w.Name, M: w.M, K: w.K, Inserted: w.Inserted, Bulk: w.Bulk}
		for _, family := range []struct {
			scheme   Scheme
			bits     []byte
			contains map[string]bool
		}{{SchemeBloomFilterJS64, bits1, w.V1}, {SchemeBloomFilterJS32, bits0, w.V0}} {
			filter.Contains = family.contains
			f := filter.check(t, Config{Scheme: family.scheme}, keys, family.bits)
			if f.Plan().Bits != w.Rounded {
				t.Errorf("%s: m %d, want %d", w.Name, f.Plan().Bits, w.Rounded)
			}
			if w.BulkAbsent == nil {
				continue
			}
			want := w.BulkAbsent.V1
			if family.scheme == SchemeBloomFilterJS32 {
				want = w.BulkAbsent.V0
			}
			absent := vectorFilter{Name: w.Name, Contains: family.contains}
			absent.BulkAbsent = &struct {
				keyRun
				FalsePositives []int `json:"false_positives"`
			}{w.BulkAbsent.keyRun, want}
			absent.checkAnswers(t, keys, f.Contains)
		}
	}
}

func TestVectorsNPMBloomFilters(t *testing.T) {
	var v struct {
		Positions []struct {
			Key string
			Idx []struct {
				Size    uint64
				K       int
				Indexes []uint64
			}
		}
		Filters []struct {
			vectorFilter
			Size, Seed uint64
			JSON       string
		}
	}
	keys := vectorKeys(t, "callidon_bloom_filters", &v)
	for _, p := range v.Positions {
		for _, i := range p.Idx {
			comparePositions(t, scheme.NPMBloom, p.Key, i.Size, positions(scheme.NPMBloom, keys[p.Key], i.Size, i.K, 0x1234567890), i.Indexes)
		}
	}
	for _, w := range v.Filters {
		var saved struct {
			Filter struct{ Content string } `json:"_filter"`
		}
		if err := json.Unmarshal([]byte(w.JSON), &saved); err != nil {
			t.Fatal(err)
		}
		w.M = w.Size
		c := Config{Scheme: SchemeNPMBloomFilters, Seed: w.Seed}
		if w.Seed == 0x1234567890 {
			c.Seed = 0 // the default
		}
		w.check(t, c, keys, unbase64(t, saved.Filter.Content))
	}
}

func TestVectorsRedisSetBit(t *testing.T) {
	var v struct {
		Positions []struct {
			Bit     int
			Hashes  int `json:"hash_number"`
			Key     string
			Offsets []uint64
		}
		Filters []struct {
			vectorFilter
			Bit    int
			Hashes int `json:"hash_number"`
			Bulk   *struct {
				Text     string
				From, To int
			}
			Length int    `json:"redis_string_len"`
			String string `json:"redis_string_b64"`
			Exists map[string]bool
		}
	}
	keys := vectorKeys(t, "scrapy_redis_bitmap", &v)
	for _, p := range v.Positions {
		comparePositions(t, scheme.RedisSetBit, p.Key, 1<<p.Bit, positions(scheme.RedisSetBit, keys[p.Key], 1<<p.Bit, p.Hashes, 0), p.Offsets)
	}
	for _, w := range v.Filters {
		f := mustClassic(t, Config{Bits: 1 << w.Bit, Probes: w.Hashes, Scheme: SchemeRedisSetBit})
		for _, id := range w.Inserted {
			f.Add(keys[id])
		}
		if w.Bulk != nil {
			for i := w.Bulk.From; i < w.Bulk.To; i++ {
				f.AddString(fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "https://example.com/main/%d", i))))
			}
		}
		got := lowFirst(f)
		for i, b := range got {
			for bit := range 8 { // Redis counts from the top
				got[i] = got[i]&^(1<<bit) | b>>(7-bit)&1<<bit
			}
		}
		if want := unbase64(t, w.String); !bytes.Equal(got[:w.Length], want) || len(bytes.Trim(got[w.Length:], "\x00")) != 0 {
			t.Errorf("%s: bits are %.40x..., want %.40x...", w.Name, got, want)
		}
		w.Contains = w.Exists
		delete(w.Contains, "empty") // the program answers no without looking
		w.checkAnswers(t, keys, f.Contains)
	}
}

// TestVectorsSizing compares the formulas with what the programs work out.
func TestVectorsSizing(t *testing.T) {
	type row struct {
		N          int64
		FP, Eps, P float64
		FPP        float64
		Error      any // a rate, a message or both
		M          int64
		Longs      uint64
		K          int
		K31        int `json:"k_31_1"`
		K33        int `json:"k_33_7_1"`
		Size       uint64
		ErrorRate  string `json:"error_rate"`
		Capacity   int64
		Bits       uint64
		Hashes     int
		Reply      string
	}
	compare := func(f Formula, n int64, p float64, m uint64, k int) {
		if n <= 0 {
			return // the programs raise errors, or are asked for no keys
		}
		if gotM, gotK := formulas[f].size(float64(n), p); gotM != m || gotK != k {
			t.Errorf("%v of n %d, p %g: m %d, k %d, want m %d, k %d", f, n, p, gotM, gotK, m, k)
		}
		gotM, gotK, err := f.Size(uint64(n), p)
		if isFilter := m > 0 && m <= scheme.MaxBits && k > 0 && k <= scheme.MaxProbes && p < 1; isFilter && (gotM != m || gotK != k || err != nil) {
			t.Errorf("%v of n %d, p %g: m %d, k %d, %v, want m %d, k %d", f, n, p, gotM, gotK, err, m, k)
		} else if !isFilter && err == nil {
			t.Errorf("%v of n %d, p %g: no error for m %d, k %d", f, n, p, m, k)
		}
	}
	for _, tt := range []struct {
		file    string
		compare func(r row)
	}{
		{"article1_md5", func(r row) {
			if r.Error == nil {
				compare(FormulaTruncated, r.N, r.FP, uint64(max(r.M, 0)), r.K)
			}
		}},
		{"article3_formulas", func(r row) { compare(FormulaCeiling, r.N, r.Eps, uint64(r.M), r.K) }},
		{"guava_filters", func(r row) {
			compare(FormulaGuava31, max(r.N, 1), r.FPP, r.Longs*64, r.K31)
			compare(FormulaGuava33, max(r.N, 1), r.FPP, r.Longs*64, r.K33)
		}},
		{"bits_and_blooms", func(r row) { compare(FormulaBitsAndBlooms, r.N, r.FP, uint64(r.M), r.K) }},
		{"dcso_bloom", func(r row) { compare(FormulaDCSO, r.N, r.P, uint64(r.M), r.K) }},
		{"jasondavies_bloomfilter", func(r row) { compare(FormulaBloomFilterJS, r.N, r.Error.(float64), uint64(r.M+31)/32*32, r.K) }},
		{"callidon_bloom_filters", func(r row) { compare(FormulaNPMBloomFilters, r.N, r.Error.(float64), r.Size, r.K) }},
		{"redisbloom", func(r row) {
			p, err := strconv.ParseFloat(r.ErrorRate, 64)
			if r.Reply != "" || err != nil || p >= 1 {
				return // the server refuses
			}
			compare(FormulaRedisBloomScaling, r.Capacity, p, r.Bits, r.Hashes)
		}},
	} {
		var v struct{ Sizing []row }
		vectorKeys(t, tt.file, &v)
		if len(v.Sizing) < 30 {
			t.Errorf("%s: %d rows, want 30 and more", tt.file, len(v.Sizing))
		}
		for _, r := range v.Sizing {
			tt.compare(r)
		}
	}
	var real struct {
		Rows []struct {
			N       uint64
			P       float64
			Formula string
			M, K    float64
		}
	}
	vectorKeys(t, "sizing_comparison", &real)
	count := 0
	for _, r := range real.Rows {
		if r.Formula == "seed4 (real numbers)" {
			count++
			m, k := scheme.Real(float64(r.N), r.P)
			if m/r.M-1 > 1e-12 || 1-m/r.M > 1e-12 || k/r.K-1 > 1e-12 || 1-k/r.K > 1e-12 {
				t.Errorf("real m %v, k %v for n %d, p %g, want %v and %v", m, k, r.N, r.P, r.M, r.K)
			}
		}
	}
	if count == 0 {
		t.Error("no rows for the real formula")
	}
}

// TestSchemesFrozen pins every scheme: number, name and the positions of three
// keys. A line may be added; none may ever change.
func TestSchemesFrozen(t *testing.T) {
	want := `
1 bloomery [838326 659793 744695 830395 120235] [48491 925360 151308 199908 467708] [846775 157190 488364 866676 381310]
2 md5-index-key [155518 470349 395514 9497 622050] [1008759 223166 34849 794708 875187] [903945 450098 309261 242668 128891]
3 sha256-md5 [913964 16733] [1039526 952125] [606967 841295]
4 md5-key-index [416978 457044 922030 178870 134935] [267160 932288 781671 971412 919556] [877595 171649 51665 867645 875551]
5 murmur2-fnv-js [536721 76235] [1002810 1045272] [648385 521231]
6 java-bitset [12558 80976 290506 622886 66280] [110735 158869 207003 303271 351405] [262132 393198 524264 786396 917462]
7 guava-mitz-32 [410293 71063 552420 14798 582017] [95149 828590 535120 850255 116814] [80512 1009728 890368 771008 651648]
8 guava-mitz-64 [891650 768027 644404 520781 397158] [410284 153256 944804 687776 430748] [199872 397104 594336 791568 988800]
9 redisbloom [255641 305469 355297 405125 454953] [923170 947334 971498 995662 1019826] [539476 669510 799544 929578 11036]
10 bits-and-blooms [891650 431029 952378 154239 563082] [410284 708839 244866 753087 708528] [199872 210966 227340 929601 127788]
11 dcso [132629 203135 438845 210935 514981] [453646 488362 870782 83962 391790] [357058 818374 525266 136182 226658]
12 bloomfilter.js-32 [184457 373383 562309 751235 940161] [80555 742749 356367 1018561 632179] [888654 530690 172726 863338 505374]
13 bloomfilter.js-64 [55366 759121 414301 69483 773244] [749576 840964 932353 1023744 66562] [866583 1017688 120218 271326 422437]
14 npm-bloom-filters [695829 704333 712838 721345 729855] [696483 624255 552028 479803 407581] [780931 36673 340992 645313 949637]
15 redis-setbit [532 3231 12558 35359 80976] [62601 86668 110735 134802 158869] [131066 196599 262132 327665 393198]
`
	var got strings.Builder
	for i, s := range Schemes() {
		if int(s.Number()) != i+1 {
			t.Errorf("scheme %v has number %d, want %d", s, s.Number(), i+1)
		}
		if t, ok := SchemeNumbered(s.Number()); !ok || t != s {
			panic(s)
		}
		k, m := 5, uint64(1<<20)
		k = min(k, s.def().MaxProbes)
		f := mustClassic(t, Config{Bits: m, Probes: k, Scheme: s})
		fmt.Fprintf(&got, "%d %v", s.Number(), s)
		for _, key := range []string{"hello", "布隆", "\x00\xff\x80"} {
			fmt.Fprint(&got, " ", f.Positions([]byte(key)))
		}
		got.WriteByte('\n')
	}
	if strings.TrimSpace(got.String()) != strings.TrimSpace(want) {
		t.Errorf("the schemes are\n%swant%s", got.String(), want)
	}
}
