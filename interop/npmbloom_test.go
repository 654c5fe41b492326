package interop_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
)

type npmBloomVectors struct {
	Filters []struct {
		program
		Size, Seed uint64
		K          int
		JSON       string
	}
}

func TestNPMBloom(t *testing.T) {
	var v npmBloomVectors
	keys := loadVectors(t, "callidon_bloom_filters", &v)
	for _, w := range v.Filters {
		file := mustRewrite(t, "npm-bloom-filters", []byte(w.JSON), interop.Options{Limit: int64(len(w.JSON))})
		w.compare(t, file, keys)
		if p := file.Plan(); p.Bits != w.Size || p.Probes != w.K {
			t.Errorf("%s: m %d, k %d, want %d and %d", w.Name, p.Bits, p.Probes, w.Size, w.K)
		}
		c := classic.Config{Bits: w.Size, Probes: w.K, Scheme: classic.SchemeNPMBloomFilters, Seed: w.Seed}
		if w.Seed == 0x1234567890 {
			c.Seed = 0 // the default
		}
		made := newClassic(t, c)
		w.fill(made, keys)
		var b bytes.Buffer
		if err := interop.WriteNPMBloom(&b, made); err != nil || b.String() != w.JSON {
			t.Errorf("%s: made from its keys it is %.80s..., %v, want %.80s...", w.Name, b.String(), err, w.JSON)
		}
	}
}

// npmJSON is a filter of 10 bits with one key.
func npmJSON(old, new string) string {
	return strings.Replace(`{"type":"BloomFilter","_size":10,"_nbHashes":3,"_filter":{"size":16,"content":"3gM="},"_seed":7}`, old, new, 1)
}

// TestNPMBloomSeeds: zero is a seed, not the default, and of others the low 32
// bits count, after 1 or 2 was added. Node wrote the filters, by bloom-filters
// 3.0.4: new BloomFilter(101, 4), f.seed = seed, and the keys "key 0" to "key 11".
// Of "key 12" to "key 199" it found those.
func TestNPMBloomSeeds(t *testing.T) {
	key := func(i int) []byte { return fmt.Append(nil, "key ", i) }
	for _, w := range []struct {
		seed    int64
		content string
		found   []int
	}{
		{0, "fjCRbAgQYMmuFSNJAw==", []int{99, 131, 140, 150}},
		{1, "iyrCBC2MUACFlMwAGA==", []int{48, 114}},
		{4294967294, "wWA6ULDnEFqhFRuTCA==", []int{33, 43, 110, 116}},
		{4294967295, "xRKVRQqEYBhCC667Aw==", []int{182}},
		{4294967296, "fjCRbAgQYMmuFSNJAw==", []int{99, 131, 140, 150}},
		{8589934591, "xRKVRQqEYBhCC667Aw==", []int{182}},
		{9007199254740990, "wWA6ULDnEFqhFRuTCA==", []int{33, 43, 110, 116}},
		{-3, "gMRWAUilAFwFdI7RBg==", []int{20, 147, 164}},
		{-5, "8dZDjMOGMJlg8ICUAA==", []int{72, 74, 101, 145, 173}},
		{-4294967295, "iyrCBC2MUACFlMwAGA==", []int{48, 114}},
		{-4294967296, "fjCRbAgQYMmuFSNJAw==", []int{99, 131, 140, 150}},
		{-9007199254740991, "iyrCBC2MUACFlMwAGA==", []int{48, 114}},
	} {
		text := fmt.Sprintf(`{"type":"BloomFilter","_size":101,"_nbHashes":4,"_filter":{"size":104,"content":%q},"_seed":%d}`, w.content, w.seed)
		file := mustRewrite(t, "npm-bloom-filters", []byte(text), interop.Options{})
		if want := [2]string{"seed", fmt.Sprint(w.seed)}; file.Details[0] != want {
			t.Errorf("seed %d: details %q", w.seed, file.Details)
		}
		seed := uint64(w.seed)
		if seed == 0 {
			seed = 1 << 32 // zero is the package's own
		}
		made := newClassic(t, classic.Config{Bits: 101, Probes: 4, Scheme: classic.SchemeNPMBloomFilters, Seed: seed})
		for i := range 12 {
			made.Add(key(i))
		}
		if got := written(t, &interop.File{Filter: made}, "npm-bloom-filters"); !strings.Contains(string(got), `"`+w.content+`"`) {
			t.Errorf("seed %d: made from its keys it is %s, want %s", w.seed, got, text)
		}
		for i := range 200 {
			if got, want := file.Contains(key(i)), i < 12 || slices.Contains(w.found, i); got != want {
				t.Errorf("seed %d: Contains(%q) = %v, want %v", w.seed, key(i), got, want)
			}
		}
	}
	for _, tt := range []struct {
		seed    uint64
		written string
	}{
		{1<<60 + 5, "5"},
		{1<<53 - 1, "4294967295"},
		{1<<53 - 2, "9007199254740990"},
		{1<<64 - 1, "4294967295"}, // not -1, which is a rule of its own
		{1<<64 - 2, "4294967294"},
		{1<<64 - 3, "-3"},
		{1 << 63, "0"},
		{0, "78187493520"}, // the default
	} {
		f := newClassic(t, classic.Config{Bits: 10, Probes: 3, Scheme: classic.SchemeNPMBloomFilters, Seed: tt.seed})
		if got := written(t, &interop.File{Filter: f}, "npm-bloom-filters"); !strings.HasSuffix(string(got), `"_seed":`+tt.written+`}`) {
			t.Errorf("the seed %d is written as %s, want %s", tt.seed, got, tt.written)
		}
	}
}

// TestNPMBloomArrays: old versions had other positions, so arrays must be asked
// for by name.
func TestNPMBloomArrays(t *testing.T) {
	array := npmJSON(`{"size":16,"content":"3gM="}`, "[0,1,1,1,1,0,1,1,1,1]")
	refuse(t, "npm-bloom-filters", interop.Options{}, []refusal{{"an array", array, bloom.ErrVersion}})
	o := interop.Options{Scheme: classic.SchemeNPMBloomFilters}
	file := mustRead(t, "npm-bloom-filters", o, []byte(array))
	if !equal(file, mustRead(t, "npm-bloom-filters", o, []byte(npmJSON("", "")))) || len(file.Details) != 2 {
		t.Errorf("the array reads as %v, %q", file.Filter, file.Details)
	}
	if got := written(t, file, "npm-bloom-filters"); string(got) != npmJSON("", "") {
		t.Errorf("written it is %s", got)
	}
	refuse(t, "npm-bloom-filters", o, []refusal{
		{"an array too short", npmJSON(`{"size":16,"content":"3gM="}`, "[0,1,1,1,1,0,1,1,1]"), bloom.ErrFormat},
		{"an array of 16", npmJSON(`{"size":16,"content":"3gM="}`, "[0,1,1,1,1,0,1,1,1,1,0,0,0,0,0,0]"), bloom.ErrFormat},
		{"an array with 2", npmJSON(`{"size":16,"content":"3gM="}`, "[0,1,1,1,1,0,1,1,1,2]"), bloom.ErrFormat},
		{"an array of true", npmJSON(`{"size":16,"content":"3gM="}`, "[true]"), bloom.ErrFormat},
	})
}

func TestNPMBloomRefuses(t *testing.T) {
	refuseCut(t, "npm-bloom-filters", interop.Options{}, []byte(npmJSON("", "")))
	refuse(t, "npm-bloom-filters", interop.Options{}, []refusal{
		{"another filter", npmJSON(`"BloomFilter"`, `"CountingBloomFilter"`), bloom.ErrVersion},
		{"no type", npmJSON(`"type":"BloomFilter",`, ``), bloom.ErrVersion},
		{"type a number", npmJSON(`"BloomFilter"`, `1`), bloom.ErrFormat},
		{"_size missing", npmJSON(`"_size":10,`, ``), bloom.ErrFormat},
		{"_size 0", npmJSON(`10`, `0`), bloom.ErrFormat},
		{"_size of 2^45", npmJSON(`10`, `35184372088832`), bloom.ErrFormat},
		{"_size too small", npmJSON(`10`, `8`), bloom.ErrFormat},
		{"a bit behind", npmJSON(`10`, `9`), bloom.ErrFormat},
		{"no hashes", npmJSON(`"_nbHashes":3`, `"_nbHashes":0`), bloom.ErrFormat},
		{"300 hashes", npmJSON(`"_nbHashes":3`, `"_nbHashes":300`), bloom.ErrFormat},
		{"_filter missing", `{"type":"BloomFilter","_size":10,"_nbHashes":3,"_seed":7}`, bloom.ErrFormat},
		{"_seed missing", npmJSON(`,"_seed":7`, ``), bloom.ErrFormat},
		{"_seed a fraction", npmJSON(`"_seed":7`, `"_seed":7.5`), bloom.ErrFormat},
		{"_seed -1", npmJSON(`"_seed":7`, `"_seed":-1`), bloom.ErrVersion},
		{"_seed -2", npmJSON(`"_seed":7`, `"_seed":-2`), bloom.ErrVersion},
		{"_seed -2^53", npmJSON(`"_seed":7`, `"_seed":-9007199254740992`), bloom.ErrFormat},
		{"_seed 2^53-1", npmJSON(`"_seed":7`, `"_seed":9007199254740991`), bloom.ErrFormat},
		{"size wrong", npmJSON(`16`, `10`), bloom.ErrFormat},
		{"content too short", npmJSON(`3gM=`, `3g==`), bloom.ErrFormat},
		{"content no base64", npmJSON(`3gM=`, `3gM`), bloom.ErrFormat},
		{"content a number", npmJSON(`"3gM="`, `3`), bloom.ErrFormat},
		{"_filter a string", npmJSON(`{"size":16,"content":"3gM="}`, `"3gM="`), bloom.ErrFormat},
	})
	refuse(t, "npm-bloom-filters", interop.Options{Limit: 50}, []refusal{{"over the limit", npmJSON("", ""), bloom.ErrLimit}})
}

func FuzzNPMBloom(f *testing.F) {
	var v npmBloomVectors
	loadVectors(f, "callidon_bloom_filters", &v)
	for _, w := range v.Filters {
		f.Add([]byte(w.JSON))
	}
	f.Add([]byte(npmJSON(`{"size":16,"content":"3gM="}`, "[0,1,1,1,1,0,1,1,1,1]")))
	f.Add([]byte(npmJSON(`"_seed":7`, `"_seed":0`)))
	f.Add([]byte(npmJSON(`"_seed":7`, `"_seed":-5`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzed(t, "npm-bloom-filters", interop.Options{Scheme: classic.SchemeNPMBloomFilters}, data)
	})
}
