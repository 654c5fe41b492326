package interop_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
)

type bloomFilterJSVectors struct {
	FromJSON []struct{ Name, JSON, Result string } `json:"from_json"`
	Filters  []struct {
		Name       string
		M          uint64
		K          int
		Rounded    uint64 `json:"m_rounded"`
		Inserted   []string
		Bulk       *keyRange
		JSON       string          `json:"json_v1_1_0"`
		Buckets    json.RawMessage `json:"buckets_v0_0_18"`
		V1         map[string]bool `json:"contains_v1_1_0"`
		V0         map[string]bool `json:"contains_v0_0_18"`
		BulkAbsent *struct {
			keyRange
			V1 []int `json:"false_positives_v1_1_0"`
			V0 []int `json:"false_positives_v0_0_18"`
		} `json:"bulk_absent"`
	}
}

func TestBloomFilterJS(t *testing.T) {
	var v bloomFilterJSVectors
	keys := loadVectors(t, "jasondavies_bloomfilter", &v)
	absent := 0
	for _, w := range v.Filters {
		compact := bytes.NewBuffer(nil)
		if err := json.Compact(compact, w.Buckets); err != nil {
			t.Fatal(err)
		}
		for _, version := range []struct {
			format   string
			o        interop.Options
			scheme   classic.Scheme
			text     []byte
			contains map[string]bool
		}{
			{"bloomfilter.js", interop.Options{}, classic.SchemeBloomFilterJS64, []byte(w.JSON), w.V1},
			{"bloomfilter.js-array", interop.Options{Scheme: classic.SchemeBloomFilterJS32, Probes: w.K, Bits: w.M}, classic.SchemeBloomFilterJS32, compact.Bytes(), w.V0},
		} {
			p := program{Name: w.Name + " as " + version.format, Inserted: w.Inserted, Bulk: w.Bulk, Contains: version.contains}
			file := mustRewrite(t, version.format, version.text, version.o)
			p.compare(t, file, keys)
			if plan := file.Plan(); plan.Bits != w.Rounded || plan.Probes != w.K {
				t.Errorf("%s: m %d, k %d, want %d and %d", p.Name, plan.Bits, plan.Probes, w.Rounded, w.K)
			}
			made := &interop.File{Filter: newClassic(t, classic.Config{Bits: w.M, Probes: w.K, Scheme: version.scheme})}
			p.fill(made, keys)
			if got := written(t, made, version.format); !bytes.Equal(got, version.text) {
				t.Errorf("%s: made from its keys it is %.80s..., want %.80s...", p.Name, got, version.text)
			}
			if w.BulkAbsent == nil {
				continue
			}
			absent++
			want := w.BulkAbsent.V1
			if version.scheme == classic.SchemeBloomFilterJS32 {
				want = w.BulkAbsent.V0
			}
			found := w.BulkAbsent.foundAmong(func(i int) bool { return file.Contains(fmt.Appendf(nil, w.BulkAbsent.Fmt, i)) })
			if fmt.Sprint(found) != fmt.Sprint(want) {
				t.Errorf("%s: false positives %v, want %v", p.Name, found, want)
			}
		}
	}
	if absent != 2 {
		t.Errorf("%d lists of false positives, want 2", absent)
	}
}

func TestBloomFilterJSFromJSON(t *testing.T) {
	var v bloomFilterJSVectors
	loadVectors(t, "jasondavies_bloomfilter", &v)
	for _, w := range v.FromJSON {
		f, err := interop.ReadBloomFilterJS(strings.NewReader(w.JSON))
		switch {
		case strings.HasPrefix(w.Result, "ok"):
			if want := fmt.Sprintf("ok m=%d k=%d", f.Plan().Bits, f.Plan().Probes); err != nil || want != w.Result {
				t.Errorf("%s: %s, %v, want %s", w.Name, want, err, w.Result)
			}
		case strings.Contains(w.Result, "Unsupported"):
			if !errors.Is(err, bloom.ErrVersion) {
				t.Errorf("%s: %v, want ErrVersion", w.Name, err)
			}
		case !errors.Is(err, bloom.ErrFormat):
			t.Errorf("%s: %v, want ErrFormat", w.Name, err)
		}
	}
}

// TestBloomFilterJSArrays: the buckets of 0.0.21 are signed and hashed as in 1.x;
// some programs keep arrays unsigned, and get them back so.
func TestBloomFilterJSArrays(t *testing.T) {
	v1 := mustRead(t, "bloomfilter.js", interop.Options{}, []byte(`{"k":2,"buckets":[4294967295,1]}`))
	if got := written(t, v1, "bloomfilter.js-array"); string(got) != "[-1,1]" {
		t.Errorf("as an array it is %s, want [-1,1]", got)
	}
	o := interop.Options{Scheme: classic.SchemeBloomFilterJS64, Probes: 2}
	signed := mustRewrite(t, "bloomfilter.js-array", []byte("[-1,1]"), o)
	unsigned := mustRewrite(t, "bloomfilter.js-array", []byte("[4294967295,1]"), o)
	if !equal(signed, unsigned) || !equal(signed, v1) {
		t.Error("signed, unsigned and in JSON the buckets differ")
	}
	if got := written(t, signed, "bloomfilter.js"); string(got) != `{"version":1,"m":64,"k":2,"buckets":[4294967295,1]}` {
		t.Errorf("as JSON it is %s", got)
	}
	var b bytes.Buffer
	if err := interop.WriteBloomFilterJSArray(&b, signed.Filter.(*classic.Filter)); err != nil {
		t.Fatal(err)
	}
	f, err := interop.ReadBloomFilterJSArray(&b, classic.SchemeBloomFilterJS64, 2)
	if err != nil || !f.Equal(signed.Filter.(*classic.Filter)) {
		t.Errorf("written and read again: %v, %v", f, err)
	}
}

func TestBloomFilterJSRefuses(t *testing.T) {
	good := `{"version":1,"m":64,"k":2,"buckets":[1,2147483648]}`
	refuseCut(t, "bloomfilter.js", interop.Options{}, []byte(good))
	refuse(t, "bloomfilter.js", interop.Options{}, []refusal{
		{"k above all", `{"k":256,"buckets":[1]}`, bloom.ErrFormat},
		{"buckets missing", `{"k":2}`, bloom.ErrFormat},
		{"buckets twice", `{"k":2,"buckets":[1],"buckets":[1]}`, bloom.ErrFormat},
		{"version as text", `{"version":"1","k":2,"buckets":[1]}`, bloom.ErrFormat},
		{"a bucket NaN", `{"k":2,"buckets":[NaN]}`, bloom.ErrFormat},
		{"a bucket null", `{"k":2,"buckets":[null]}`, bloom.ErrFormat},
		{"a bucket of 400 digits", `{"k":2,"buckets":[` + strings.Repeat("9", 400) + `]}`, bloom.ErrFormat},
		{"a bucket 01", `{"k":2,"buckets":[01]}`, bloom.ErrFormat},
		{"a bucket -", `{"k":2,"buckets":[-]}`, bloom.ErrFormat},
		{"a bucket 1e3", `{"k":2,"buckets":[1e3]}`, bloom.ErrFormat},
		{"a comma too many", `{"k":2,"buckets":[1,]}`, bloom.ErrFormat},
		{"buckets in buckets", `{"k":2,"buckets":` + strings.Repeat("[", 1<<20), bloom.ErrFormat},
	})
	refuse(t, "bloomfilter.js", interop.Options{Limit: 20}, []refusal{{"over the limit", good, bloom.ErrLimit}})
	o := interop.Options{Scheme: classic.SchemeBloomFilterJS32, Probes: 2}
	refuse(t, "bloomfilter.js-array", o, []refusal{
		{"empty", ``, bloom.ErrFormat},
		{"no buckets", `[]`, bloom.ErrFormat},
		{"an object", good, bloom.ErrFormat},
		{"signed and unsigned", `[-1,4294967295]`, bloom.ErrFormat},
		{"below 32 bits", `[-2147483649]`, bloom.ErrFormat},
		{"above 32 bits", `[4294967296]`, bloom.ErrFormat},
		{"bytes behind", `[1] 2`, bloom.ErrFormat},
	})
	o.Bits = 65
	refuse(t, "bloomfilter.js-array", o, []refusal{{"fewer bits", `[1,2]`, bloom.ErrFormat}})
	for _, o := range []interop.Options{
		{Probes: 2},
		{Scheme: classic.SchemeBloomFilterJS64},
		{Scheme: classic.SchemeBloomFilterJS64, Probes: 256},
		{Scheme: classic.SchemeGuava64, Probes: 2},
	} {
		refuse(t, "bloomfilter.js-array", o, []refusal{{"bad options", `[1,2]`, bloom.ErrConfig}})
	}
}

func FuzzBloomFilterJS(f *testing.F) {
	var v bloomFilterJSVectors
	loadVectors(f, "jasondavies_bloomfilter", &v)
	for _, w := range v.Filters {
		f.Add([]byte(w.JSON))
		f.Add([]byte(w.Buckets))
	}
	for _, w := range v.FromJSON {
		f.Add([]byte(w.JSON))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzed(t, "bloomfilter.js", interop.Options{}, data)
		fuzzed(t, "bloomfilter.js-array", interop.Options{Scheme: classic.SchemeBloomFilterJS32, Probes: 3}, data)
	})
}
