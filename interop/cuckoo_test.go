package interop_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
)

// cuckooDumps returns the dumps of the vectors as files, by name, with the counts of some
// keys.
func cuckooDumps(t testing.TB) (files map[string][]byte, counts map[string]map[string]int) {
	t.Helper()
	var v struct {
		Cases []struct {
			Name   string
			Chunks []struct{ B64 []byte }
			Probes []string
			Counts []int
		}
	}
	loadVectors(t, "cuckoo", &v)
	files, counts = map[string][]byte{}, map[string]map[string]int{}
	for _, c := range v.Cases {
		counts[c.Name] = map[string]int{}
		for _, chunk := range c.Chunks {
			files[c.Name] = append(files[c.Name], chunk.B64...)
		}
		for i, key := range c.Probes {
			counts[c.Name][key] = c.Counts[i]
		}
	}
	if len(files) != 7 {
		t.Fatalf("%d dumps", len(files))
	}
	return files, counts
}

func cuckooHead(items, buckets, removed, layers uint64, size, iterations, growth uint16) []byte {
	order := binary.LittleEndian
	var b []byte
	for _, field := range []uint64{items, buckets, removed, layers} {
		b = order.AppendUint64(b, field)
	}
	for _, field := range []uint16{size, iterations, growth} {
		b = order.AppendUint16(b, field)
	}
	return b
}

// TestCuckooFiles: a dump of RedisBloom's is recognised, answers as it did there, and is
// written again byte for byte, also after it was a file of ours.
func TestCuckooFiles(t *testing.T) {
	files, counts := cuckooDumps(t)
	for name, data := range files {
		for _, size := range []int64{int64(len(data)), -1} {
			if f, ok := interop.Recognise(data[:min(len(data), 64)], size); !ok || f.Name != "redisbloom-cuckoo" {
				t.Errorf("%s: recognised as %v", name, f)
			}
		}
		file := mustRead(t, "redisbloom-cuckoo", interop.Options{}, data)
		f := file.Filter.(*bloom.Cuckoo)
		for key, want := range counts[name] {
			if got := f.CountString(key); got != want || file.Contains([]byte(key)) != (want > 0) {
				t.Errorf("%s: Count(%q) = %d, want %d", name, key, got, want)
			}
		}
		if again := written(t, file, "redisbloom-cuckoo"); !bytes.Equal(again, data) {
			t.Errorf("%s: other bytes are written", name)
		}
		var ours bytes.Buffer
		if _, err := f.WriteTo(&ours); err != nil {
			t.Fatal(err)
		}
		loaded, err := bloom.ReadCuckoo(&ours, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if again := written(t, &interop.File{Filter: loaded}, "redisbloom-cuckoo"); !bytes.Equal(again, data) {
			t.Errorf("%s: other bytes are written after a file of ours", name)
		}
		if file.Unplanned || len(file.Details) != 8 || file.Details[3][1] == "0" {
			t.Errorf("%s: unplanned %v, details %v", name, file.Unplanned, file.Details)
		}
	}
	refuseCut(t, "redisbloom-cuckoo", interop.Options{}, files["small-growing"])
}

// TestCuckooWrites: only a filter of RedisBloom's hash is written, an empty one, too.
func TestCuckooWrites(t *testing.T) {
	for name, tt := range map[string]struct {
		config bloom.CuckooConfig
		want   error
	}{
		"an empty filter": {bloom.CuckooConfig{}, nil},
		"no growth":       {bloom.CuckooConfig{NonScaling: true}, nil},
		"a seed":          {bloom.CuckooConfig{Seed: 1}, interop.ErrScheme},
		"a secret":        {bloom.CuckooConfig{Secret: []byte("0123456789abcdef")}, interop.ErrScheme},
	} {
		f, err := tt.config.New()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := (&interop.File{Filter: f}).Write(&b, format(t, "redisbloom-cuckoo")); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		} else if err == nil && !mustRead(t, "redisbloom-cuckoo", interop.Options{}, b.Bytes()).Filter.(*bloom.Cuckoo).Equal(f) {
			t.Errorf("%s: it is read as another filter", name)
		}
	}
}

// TestCuckooRefuses: what is no dump is neither recognised nor read.
func TestCuckooRefuses(t *testing.T) {
	slots := func(head []byte, n int) []byte { return append(head, make([]byte, n)...) }
	for name, tt := range map[string]struct {
		data []byte
		want error
	}{
		"nothing":           {nil, bloom.ErrFormat},
		"half a header":     {make([]byte, 20), bloom.ErrFormat},
		"zeros":             {make([]byte, 100), bloom.ErrFormat},
		"3 buckets":         {slots(cuckooHead(1, 3, 0, 1, 2, 20, 1), 6), bloom.ErrFormat},
		"no slots":          {cuckooHead(0, 4, 0, 1, 0, 20, 1), bloom.ErrFormat},
		"256 slots":         {slots(cuckooHead(1, 1, 0, 1, 256, 20, 1), 256), bloom.ErrFormat},
		"no iterations":     {slots(cuckooHead(1, 4, 0, 1, 2, 0, 1), 8), bloom.ErrFormat},
		"an expansion of 3": {slots(cuckooHead(1, 4, 0, 1, 2, 20, 3), 8), bloom.ErrFormat},
		"no layers":         {cuckooHead(0, 4, 0, 0, 2, 20, 1), bloom.ErrFormat},
		"33 layers":         {slots(cuckooHead(1, 4, 0, 33, 2, 20, 1), 33*8), bloom.ErrLimit},
		"2^64-1 layers":     {slots(cuckooHead(1, 4, 0, math.MaxUint64, 2, 20, 1), 8), bloom.ErrLimit},
		"2 that cannot be":  {slots(cuckooHead(1, 4, 0, 2, 2, 20, 0), 16), bloom.ErrFormat},
		"9 in 8 slots":      {slots(cuckooHead(9, 4, 0, 1, 2, 20, 1), 8), bloom.ErrFormat},
		"a slot too few":    {slots(cuckooHead(1, 4, 0, 1, 2, 20, 1), 7), bloom.ErrFormat},
		"a slot too many":   {slots(cuckooHead(1, 4, 0, 1, 2, 20, 1), 9), bloom.ErrFormat},
		"2^35 buckets":      {cuckooHead(1, 1<<35, 0, 1, 2, 20, 1), bloom.ErrLimit},
		"2^63 buckets":      {cuckooHead(1, 1<<63, 0, 1, 2, 20, 1), bloom.ErrLimit},
		"growing to 2^40":   {cuckooHead(1, 1<<10, 0, 3, 2, 20, 1<<15), bloom.ErrLimit},
	} {
		if _, err := format(t, "redisbloom-cuckoo").Read(bytes.NewReader(tt.data), interop.Options{}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if redisbloom.RecogniseCuckoo(tt.data, int64(len(tt.data))) {
			t.Errorf("%s: is recognised", name)
		}
	}
}

// TestCuckooClaims: a header that claims gigabytes takes no more than what follows it, and
// a Grant is asked before that.
func TestCuckooClaims(t *testing.T) {
	data := append(cuckooHead(1, 1<<34, 0, 1, 255, 20, 1), make([]byte, 1<<20)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := format(t, "redisbloom-cuckoo").Read(onlyReader{bytes.NewReader(data)}, interop.Options{})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, bloom.ErrFormat) || after.TotalAlloc-before.TotalAlloc > 16<<20 {
		t.Errorf("%v, and %d bytes were allocated", err, after.TotalAlloc-before.TotalAlloc)
	}
	var o interop.Options
	o.Grant, o.Release = redisbloom.Budget(1 << 20)
	if _, err := format(t, "redisbloom-cuckoo").Read(bytes.NewReader(data), o); !errors.Is(err, bloom.ErrBudget) {
		t.Errorf("%v, want the Grant's error", err)
	}
}

// onlyReader hides how much there is to read.
type onlyReader struct{ from *bytes.Reader }

func (r onlyReader) Read(b []byte) (int, error) { return r.from.Read(b) }

// FuzzRedisBloomCuckoo: whatever the bytes, a dump reads as it is written, or is an error;
// a header that loads and a chunk after it neither panic nor allocate more than is granted.
func FuzzRedisBloomCuckoo(f *testing.F) {
	files, _ := cuckooDumps(f)
	for _, data := range files {
		f.Add(data, int64(9))
	}
	f.Add(cuckooHead(1, 1<<34, 0, 32, 255, 65535, 1), int64(1))
	f.Add(cuckooHead(9999999, 4, 1<<63, 1, 2, 20, 0), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, data []byte, iterator int64) {
		fuzzed(t, "redisbloom-cuckoo", interop.Options{}, data)
		var config redisbloom.Config
		config.Grant, config.Release = redisbloom.Budget(1 << 20)
		head := data[:min(len(data), 38)]
		c, err := config.LoadCuckooHeader(head)
		if err != nil {
			return
		}
		if !bytes.Equal(c.Header(), head) {
			t.Fatalf("the header %x comes back as %x", head, c.Header())
		}
		c.LoadChunk(iterator, data[len(head):])
		key := []byte("key")
		for range 3 {
			if err := c.Insert(key); err == nil && !c.Contains(key) {
				t.Fatal("a key is lost")
			}
			c.InsertUnique(append(key, 1))
		}
		c.Remove(key)
		c.Compact()
		c.ScanDump(iterator)
		c.Report()
		c.Close()
	})
}
