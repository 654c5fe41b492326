package interop_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
)

// TestWriters writes every filter in every format: only those whose bits mean the
// same there are written, and a disk that is full after any number of bytes is
// told of.
func TestWriters(t *testing.T) {
	filters := map[string]interop.Filter{
		"a chain":           mustChain(t, redisbloom.Config{}),
		"a chain of two":    mustChain(t, redisbloom.Config{}),
		"split blocks":      emptyBlocks(t, 2),
		"other split block": nil,
	}
	if err := filters["a chain of two"].(*redisbloom.Filter).Grow(); err != nil {
		t.Fatal(err)
	}
	seeded, err := bloom.Config{Keys: 100, Rate: 0.01, Seed: 1}.NewSplitBlock()
	if err != nil {
		t.Fatal(err)
	}
	filters["other split block"] = seeded
	cuckoo, err := bloom.NewCuckoo(100)
	if err != nil {
		t.Fatal(err)
	}
	filters["cuckoo"] = cuckoo
	for _, s := range classic.Schemes() {
		filters[s.Name()] = newClassic(t, bareConfig(s, 1<<13, 2))
	}
	for _, f := range filters {
		for i := range 20 {
			f.Add(numbered(i))
		}
	}
	chains, python := []string{"redisbloom", "a chain", "a chain of two"}, []string{"md5-index-key", "sha256-md5", "md5-key-index"}
	takes := map[string][]string{
		"bits-and-blooms":      {"bits-and-blooms"},
		"bits-and-blooms-json": {"bits-and-blooms"},
		"bloomfilter.js":       {"bloomfilter.js-64"},
		"bloomfilter.js-array": {"bloomfilter.js-32", "bloomfilter.js-64"},
		"dcso":                 {"dcso"},
		"guava":                {"guava-mitz-32", "guava-mitz-64"},
		"java-bitset":          {"java-bitset"},
		"java-bitset-bytes":    {"java-bitset"},
		"npm-bloom-filters":    {"npm-bloom-filters"},
		"parquet":              {"split blocks"},
		"parquet-bitset":       {"split blocks"},
		"python-bitstring":     python,
		"python-list":          python,
		"redis-dump":           chains,
		"redis-setbit":         {"java-bitset", "redis-setbit"},
		"redisbloom":           chains,
		"redisbloom-cuckoo":    {"cuckoo"},
	}
	for _, format := range interop.Formats {
		if takes[format.Name] == nil {
			t.Errorf("%s is not in the table", format.Name)
		}
		for name, filter := range filters {
			file := &interop.File{Filter: filter}
			var whole bytes.Buffer
			err := file.Write(&whole, format)
			if !slices.Contains(takes[format.Name], name) {
				if !errors.Is(err, interop.ErrScheme) || whole.Len() != 0 {
					t.Errorf("%s as %s: %d bytes, %v, want none and ErrScheme", name, format.Name, whole.Len(), err)
				}
				if name == "a chain of two" && format.Holds != interop.SplitBlocks && format.Holds != interop.Cuckoos && !strings.Contains(fmt.Sprint(err), "several layers") {
					t.Errorf("%s as %s: %v, want the reason: several layers", name, format.Name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s as %s: %v", name, format.Name, err)
			}
			for room := 0; room < whole.Len(); room += 1 + room/7 {
				if err := file.Write(&disk{room}, format); !errors.Is(err, errFull) {
					t.Fatalf("%s as %s: the disk is full after %d of %d bytes, and the error %v", name, format.Name, room, whole.Len(), err)
				}
			}
		}
	}
}

// disk has room for this many bytes.
type disk struct{ room int }

var errFull = errors.New("disk full")

func (d *disk) Write(b []byte) (int, error) {
	n := min(len(b), d.room)
	d.room -= n
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

// TestRecogniseJSON: names alone are no mark, since others have members b and
// buckets, too.
func TestRecogniseJSON(t *testing.T) {
	long := strings.Repeat("A", 100)
	for _, tt := range []struct{ head, want string }{
		{`{"m":65,"k":3,"b":"AAAA"}`, "bits-and-blooms-json"},
		{`{"m":65,"k":3,"b":"` + long, "bits-and-blooms-json"},
		{`{"b":"` + long, "bits-and-blooms-json"}, // m and k may follow
		{"\ufeff" + `{"m":65,"k":3,"b":"AAAA"}`, "bits-and-blooms-json"},
		{`{"a":1,"b":2}`, ""},
		{`{"a":1,"b":"x"}`, ""},
		{`{"m":"x","b":"` + long, ""},
		{`{"m":65,"k":null,"b":"AAAA"}`, ""},
		{`{"k":2,"buckets":[1,2]}`, "bloomfilter.js"},
		{`{"buckets":[1,2` + strings.Repeat(",3", 100), "bloomfilter.js"},
		{`{"version":1,"m":64,"k":2,"buckets":[1` + strings.Repeat(",3", 100), "bloomfilter.js"},
		{`{"name":"x","buckets":{}}`, ""},
		{`{"name":"x","buckets":[]}`, ""},
		{`{"k":[2],"buckets":[1]}`, ""},
		{npmJSON("", ""), "npm-bloom-filters"},
		{npmJSON("", "")[:64], "npm-bloom-filters"},
		{npmJSON(`7}`, `-7}`), "npm-bloom-filters"},
		{`{"_filter":{"content":"` + long, "npm-bloom-filters"},
		{npmJSON(`"BloomFilter"`, `"CountingBloomFilter"`), ""},
		{npmJSON(`"_size":10`, `"size":10`), ""},
		{npmJSON(`"_nbHashes":3`, `"_nbHashes":"3"`), ""},
		{`{"type":"BloomFilter","bits":[1,2,3]}`, ""},
		{`{"_filter":"` + long, ""},
		{`{"_filter":`, ""},
		{`{}`, ""},
		{`{`, ""},
	} {
		name := ""
		if f, ok := interop.Recognise([]byte(tt.head), -1); ok {
			name = f.Name
		}
		if name != tt.want {
			t.Errorf("%.60s... is recognised as %q, want %q", tt.head, name, tt.want)
		}
	}
}

// TestJSONEnds: a file that ends in a value is cut, and not damaged; and a byte
// order mark is no part of it.
func TestJSONEnds(t *testing.T) {
	for _, text := range []string{`{"x":12`, `{"x":tru`, `{"x":-`, `{"m":6`, `{"x":[1`, `{"x":"`, `{`, ``, "\ufeff"} {
		if _, err := interop.ReadBitsAndBloomsJSON(strings.NewReader(text)); !errors.Is(err, bloom.ErrFormat) || !strings.Contains(err.Error(), "ends too early") {
			t.Errorf("%s: %v, want ErrFormat that says that it ends too early", text, err)
		}
	}
	endless := `{"x":` + strings.Repeat("1", 1<<10) + `}`
	if _, err := interop.ReadBitsAndBloomsJSON(strings.NewReader(endless)); !errors.Is(err, bloom.ErrFormat) || !strings.Contains(err.Error(), "more than 256 bytes") {
		t.Errorf("a number of 1024 digits: %v", err)
	}
	for name, o := range map[string]interop.Options{"npm-bloom-filters": {}, "python-list": {Probes: 2}, "python-bitstring": {}} {
		text := map[string]string{"npm-bloom-filters": npmJSON("", ""), "python-list": "[0, 1]", "python-bitstring": "01"}[name]
		if got := written(t, mustRead(t, name, o, []byte("\ufeff"+text)), name); string(got) != text {
			t.Errorf("%s: behind a byte order mark, %s is %s", name, text, got)
		}
	}
}

func numbered(i int) []byte { return fmt.Appendf(nil, "https://example.com/%d", i) }
