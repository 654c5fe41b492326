package interop_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
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
	"github.com/bloomery/bloom/redisbloom"
)

// The vectors of RedisBloom 2.8.20, live on Redis 7.0.15; made_by says more.

type redisLink struct {
	Bytes, Bits, Size, Entries uint64
	Error, Bpe                 float64
	Hashes                     int
	N2                         int
}

type redisFilter struct {
	program
	Reserve    []string
	AddReplies []any `json:"add_replies"`
	BulkAddNew int   `json:"bulk_add_new"`
	Info       map[string]*uint64
	Debug      []string
	Chunks     []struct {
		Iter   int64
		Len    int
		SHA256 string
	}
	HeaderHex string `json:"header_hex"`
	Exists    map[string]bool
	BitsB64   string `json:"bits_b64"`
	DumpHex   string `json:"redis_dump_hex"`
}

type redisSizing struct {
	ErrorRate string `json:"error_rate"`
	Capacity  uint64
	Reply     string
	redisLink
}

type redisVectors struct {
	Positions []struct{ Key, A, B string }
	Sizing    []redisSizing
	Chunking  []struct {
		Iter int64
		Len  int
	} `json:"big_chunking"`
	Errors []struct {
		Name  string
		Args  []any
		Reply any
	} `json:"loadchunk_errors"`
	Filters []*redisFilter
}

// config is what the filter was reserved with.
func (f *redisFilter) config(t testing.TB) (c redisbloom.Config) {
	t.Helper()
	for i, word := range f.Reserve {
		var err error
		switch {
		case i == 0:
			c.Rate, err = strconv.ParseFloat(word, 64)
		case i == 1:
			c.Keys, err = strconv.ParseUint(word, 10, 64)
		case word == "NONSCALING":
			c.NonScaling = true
		case word == "EXPANSION":
			var growth uint64
			growth, err = strconv.ParseUint(f.Reserve[i+1], 10, 32)
			c.Growth = uint32(growth)
		case i != 3:
			t.Fatalf("%s: reserved with %q", f.Name, f.Reserve)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func mustChain(t testing.TB, config redisbloom.Config) *redisbloom.Filter {
	t.Helper()
	c, err := redisbloom.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// fullText is how the server answers to a key without room.
func fullText(err error) string { return "ERR:ERR " + err.Error() }

// TestRedisBloomFilters makes each filter of the vectors again, one key after the
// other and in batches, and compares every answer, BF.INFO and BF.DEBUG, the
// header, each chunk, and all answers afterwards; then those of the filter that
// comes out of its own dump.
func TestRedisBloomFilters(t *testing.T) {
	var v redisVectors
	keys := loadVectors(t, "redisbloom", &v)
	if len(v.Filters) < 10 {
		t.Fatalf("%d filters", len(v.Filters))
	}
	for _, f := range v.Filters {
		t.Run(f.Name, func(t *testing.T) {
			f.Contains = f.Exists
			one, many := mustChain(t, f.config(t)), mustChain(t, f.config(t))
			var pairs []redisbloom.Pair
			for i, id := range f.Inserted {
				a, b := redisbloom.Hash(keys[id])
				pairs = append(pairs, redisbloom.Pair{a, b})
				isNew, err := one.AddPair(a, b)
				switch want := f.AddReplies[i].(type) {
				case float64:
					if isNew != (want == 1) || err != nil {
						t.Errorf("adding %s: %v, %v, want %v", id, isNew, err, want)
					}
				case string:
					if !errors.Is(err, redisbloom.ErrFull) || fullText(err) != want {
						t.Errorf("adding %s: %v, want %v", id, err, want)
					}
				default:
					t.Fatalf("unknown reply %v", want)
				}
			}
			for len(pairs) > 0 {
				done, _, err := many.AddPairs(pairs, make([]bool, len(pairs)))
				if pairs = pairs[done:]; err != nil {
					pairs = pairs[1:]
				}
			}
			if f.Bulk != nil {
				var bulk [][]byte
				count := 0
				for i := f.Bulk.From; i < f.Bulk.To; i++ {
					key := fmt.Appendf(nil, f.Bulk.Fmt, i)
					bulk = append(bulk, key)
					if one.Add(key) {
						count++
					}
				}
				if got := many.AddMany(bulk, nil); count != f.BulkAddNew || got != count {
					t.Errorf("%d and %d of the bulk are new, want %d", count, got, f.BulkAddNew)
				}
			}
			loaded := throughDump(t, one)
			for i, c := range []*redisbloom.Filter{one, many, loaded} {
				t.Run([]string{"one by one", "batches", "loaded"}[i], func(t *testing.T) {
					f.compareChain(t, c)
					f.compare(t, c, keys)
				})
			}
			f.compareFiles(t, one)
		})
	}
}

// throughDump loads a chain from another's dump, as a client would.
func throughDump(t testing.TB, c *redisbloom.Filter) *redisbloom.Filter {
	t.Helper()
	iterator, data := c.ScanDump(0)
	loaded, err := redisbloom.LoadHeader(data, nil)
	if err != nil || iterator != 1 {
		t.Fatalf("ScanDump(0) = %d, LoadHeader: %v", iterator, err)
	}
	t.Cleanup(func() { loaded.Close() })
	for {
		if iterator, data = c.ScanDump(iterator); iterator == 0 {
			return loaded
		}
		if err := loaded.LoadChunk(iterator, data); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *redisFilter) compareChain(t *testing.T, c *redisbloom.Filter) {
	t.Helper()
	info := c.Info()
	got := map[string]uint64{
		"Capacity": info.Capacity, "Size": info.Size, "Number of filters": uint64(info.Filters),
		"Number of items inserted": info.Items, "Expansion rate": uint64(info.Expansion),
	}
	if len(f.Info) != len(got) {
		t.Errorf("%d facts, want %d", len(got), len(f.Info))
	}
	for name, want := range f.Info {
		if want == nil {
			want = new(uint64) // nil: it does not scale
		}
		if got[name] != *want {
			t.Errorf("%s: %d, want %d", name, got[name], *want)
		}
	}
	debug := []string{fmt.Sprintf("size:%d", info.Items)}
	for _, l := range c.Layers() {
		debug = append(debug, fmt.Sprintf("bytes:%d bits:%d hashes:%d hashwidth:64 capacity:%d size:%d ratio:%s",
			l.Bytes, l.Bits, l.Probes, l.Capacity, l.Items, strconv.FormatFloat(l.Rate, 'g', 6, 64)))
	}
	if !slices.Equal(debug, f.Debug) {
		t.Errorf("BF.DEBUG: %q, want %q", debug, f.Debug)
	}
	iterator, data := c.ScanDump(0)
	if hex.EncodeToString(data) != f.HeaderHex {
		t.Errorf("header %x, want %s", data, f.HeaderHex)
	}
	for _, want := range f.Chunks {
		if iterator != want.Iter || len(data) != want.Len || fmt.Sprintf("%x", sha256.Sum256(data)) != want.SHA256 {
			t.Errorf("chunk of %d bytes, iterator %d, want %d bytes, %d", len(data), iterator, want.Len, want.Iter)
		}
		iterator, data = c.ScanDump(iterator)
	}
}

// compareFiles compares the dump as a file, and Redis's own value.
func (f *redisFilter) compareFiles(t *testing.T, c *redisbloom.Filter) {
	t.Helper()
	dump := append(fromHex(t, f.HeaderHex), fromBase64(t, f.BitsB64)...)
	var written bytes.Buffer
	if _, err := c.WriteTo(&written); err != nil || !bytes.Equal(written.Bytes(), dump) {
		t.Errorf("another dump than the vector's; %v", err)
	}
	mustRewrite(t, "redisbloom", dump, interop.Options{})
	var value bytes.Buffer
	if err := c.WritePayload(&value); err != nil {
		t.Fatal(err)
	}
	read := mustRewrite(t, "redis-dump", value.Bytes(), interop.Options{})
	var again bytes.Buffer
	if _, err := read.Filter.(*redisbloom.Filter).WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), dump) {
		t.Errorf("our own value for Redis holds another dump; %v", err)
	}
	if f.DumpHex == "" {
		return
	}
	file, err := format(t, "redis-dump").Read(bytes.NewReader(fromHex(t, f.DumpHex)), interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	again.Reset()
	if err := file.Write(&again, format(t, "redisbloom")); err != nil || !bytes.Equal(again.Bytes(), dump) {
		t.Errorf("Redis's value holds another dump; %v", err)
	}
	if f.Name == "nonscaling_full" && hex.EncodeToString(value.Bytes()) != f.DumpHex { // short: not compressed
		t.Errorf("our value for Redis is %x, want %s", value.Bytes(), f.DumpHex)
	}
}

// TestRedisBloomHashes compares the two hashes of keys with Redis's, batch and
// single.
func TestRedisBloomHashes(t *testing.T) {
	var v redisVectors
	keys := loadVectors(t, "redisbloom", &v)
	if len(v.Positions) < 90 {
		t.Fatalf("%d keys", len(v.Positions))
	}
	for _, p := range v.Positions {
		pairs := make([]redisbloom.Pair, 1)
		redisbloom.HashMany([][]byte{keys[p.Key]}, pairs)
		a, b := redisbloom.Hash(keys[p.Key])
		if got := fmt.Sprintf("%016x %016x", a, b); got != p.A+" "+p.B || pairs[0] != (redisbloom.Pair{a, b}) {
			t.Errorf("%s: %s, %x, want %s %s", p.Key, got, pairs, p.A, p.B)
		}
	}
}

// TestRedisBloomSizing: layers are sized as by 2.8.20, and, of a rate cut to
// 0.25, as by the module of Redis 8.
func TestRedisBloomSizing(t *testing.T) {
	compare := func(program string, rate float64, want redisSizing) {
		t.Helper()
		if want.Reply != "" {
			if _, err := redisbloom.New(redisbloom.Config{Keys: want.Capacity, Rate: rate}); want.Capacity > 0 && rate != 0 && !errors.Is(err, bloom.ErrConfig) {
				t.Errorf("%d keys at %v: %v, want ErrConfig", want.Capacity, rate, err)
			}
			return
		}
		c := mustChain(t, redisbloom.Config{Keys: want.Capacity, Rate: rate})
		bpe := math.Float64frombits(binary.LittleEndian.Uint64(c.Header()[20+32:]))
		l := c.Layers()[0]
		got := redisLink{Bytes: l.Bytes, Bits: l.Bits, Size: l.Items, Entries: l.Capacity, Error: l.Rate, Hashes: l.Probes, Bpe: bpe}
		if got != want.redisLink {
			t.Errorf("%s, %d keys at %v: %+v, want %+v", program, want.Capacity, rate, got, want.redisLink)
		}
	}
	parse := func(text string) float64 {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return rate
	}
	var v redisVectors
	loadVectors(t, "redisbloom", &v)
	for _, s := range v.Sizing {
		if s.ErrorRate == "abc" {
			continue // the server's own parsing
		}
		compare("2.8.20", parse(s.ErrorRate), s)
	}
	var differences struct {
		Differences []struct {
			What string
			Old  redisSizing `json:"v2_8_20"`
			Head redisSizing
		}
	}
	loadVectors(t, "redisbloom_head_diff", &differences)
	if len(v.Sizing) < 100 || len(differences.Differences) < 19 {
		t.Fatalf("%d and %d sizes", len(v.Sizing), len(differences.Differences))
	}
	for _, d := range differences.Differences {
		if d.What != "sizing" {
			t.Fatalf("a difference in %s", d.What)
		}
		compare("2.8.20", parse(d.Old.ErrorRate), d.Old)
		rate := parse(d.Head.ErrorRate)
		if d.Head.Reply == "" {
			rate = min(rate, 0.25)
		}
		compare("Redis 8", rate, d.Head)
	}
}

// TestRedisBloomBigChunks: chunks end after 16 MiB, and only there.
func TestRedisBloomBigChunks(t *testing.T) {
	var v redisVectors
	loadVectors(t, "redisbloom", &v)
	c := mustChain(t, redisbloom.Config{Keys: 20_000_000, Rate: 0.01})
	c.Add([]byte("hello"))
	loaded, next := (*redisbloom.Filter)(nil), int64(0)
	for _, want := range v.Chunking[:4] {
		var data []byte
		if next, data = c.ScanDump(next); next != want.Iter || len(data) != want.Len {
			t.Fatalf("iterator %d with %d bytes, want %d with %d", next, len(data), want.Iter, want.Len)
		}
		var err error
		switch next {
		case 0:
		case 1:
			loaded, err = redisbloom.LoadHeader(data, nil)
		default:
			err = loaded.LoadChunk(next, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	defer loaded.Close()
	if !loaded.Contains([]byte("hello")) || loaded.Contains([]byte("world")) {
		t.Error("the copy answers otherwise")
	}
}

// TestRedisBloomLoadChunkErrors replays the module's checks, with its texts.
func TestRedisBloomLoadChunkErrors(t *testing.T) {
	var v redisVectors
	loadVectors(t, "redisbloom", &v)
	var c *redisbloom.Filter
	seen := 0
	for _, step := range v.Errors {
		iterator, isNumber := step.Args[2].(float64)
		if !isNumber {
			continue // the server's own parsing
		}
		command := step.Args[0].(string)
		if command == "BF.SCANDUMP" {
			if step.Args[1] == "nokey" {
				continue // there are no names here
			}
			next, data := c.ScanDump(int64(iterator))
			got, err := json.Marshal([]any{next, string(data)})
			want, _ := json.Marshal(step.Reply)
			if err != nil || !bytes.Equal(got, want) || data == nil {
				t.Errorf("%s: %s, want %s", step.Name, got, want)
			}
			seen++
			continue
		}
		data := fromHex(t, step.Args[3].(string))
		var err error
		switch {
		case strings.HasSuffix(step.Reply.(string), "not found"):
			continue
		case iterator == 1 && step.Name != "header again on existing key":
			var loaded *redisbloom.Filter
			if loaded, err = redisbloom.LoadHeader(data, nil); err == nil {
				c = loaded
			}
		default:
			err = c.LoadChunk(int64(iterator), data)
		}
		got := "OK"
		for _, sentinel := range []error{redisbloom.ErrChunkData, redisbloom.ErrChunkOffset, redisbloom.ErrChunkSize} {
			if errors.Is(err, sentinel) {
				got = "ERR:ERR " + sentinel.Error()
			}
		}
		if got != step.Reply || (err == nil) != (got == "OK") {
			t.Errorf("%s: %v, want %v", step.Name, err, step.Reply)
		}
		seen++
	}
	if seen < 12 {
		t.Errorf("%d steps", seen)
	}
	// As a live server answered for 8 bytes.
	c = mustChain(t, redisbloom.Config{Rate: 0.1, Keys: 10})
	c.AddMany([][]byte{[]byte("item1"), []byte("item2")}, nil)
	for _, tt := range []struct {
		iterator int64
		data     string
		want     error
	}{
		{1, "abc", redisbloom.ErrChunkData}, {0, "abc", redisbloom.ErrChunkData}, {-5, "abc", redisbloom.ErrChunkData},
		{9999, "abc", redisbloom.ErrChunkOffset}, {3, "", nil}, {17, "abc", redisbloom.ErrChunkOffset},
		{3, "abc", redisbloom.ErrChunkOffset}, {2, "abc", redisbloom.ErrChunkData}, {math.MinInt64, "a", redisbloom.ErrChunkData}, {1, "", nil}, {9, "12", redisbloom.ErrChunkSize}, {10, "", redisbloom.ErrChunkOffset},
		{9, "123456789", redisbloom.ErrChunkOffset}, {1 << 62, "1", redisbloom.ErrChunkOffset},
	} {
		if tt.iterator == 9 && tt.data == "12" {
			tt.iterator = 10 // one byte over the end
		}
		if err := c.LoadChunk(tt.iterator, []byte(tt.data)); !errors.Is(err, tt.want) {
			t.Errorf("LoadChunk(%d, %q) = %v, want %v", tt.iterator, tt.data, err, tt.want)
		}
	}
	for iterator, want := range map[int64]string{1: "9 \x05\x08D\x80\x00\x04 @", 2: "9 \x08D\x80\x00\x04 @", 17: "0 ", 9: "0 ", 9999: "0 ", -1: "0 "} {
		next, data := c.ScanDump(iterator)
		if got := fmt.Sprintf("%d %s", next, data); got != want {
			t.Errorf("ScanDump(%d) = %q, want %q", iterator, got, want)
		}
	}
}

// TestRedisBloomClassic goes from a chain of one layer to a Classic and back.
func TestRedisBloomClassic(t *testing.T) {
	c := mustChain(t, redisbloom.Config{Keys: 1000, Rate: 0.01, NonScaling: true})
	for i := range 500 {
		c.Add(fmt.Appendf(nil, "key %d", i))
	}
	single, ok := c.Single()
	if !ok || single.Scheme() != classic.SchemeRedisBloom {
		t.Fatalf("Single = %v, %v", single, ok)
	}
	back, err := redisbloom.From(single)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		key := fmt.Appendf(nil, "key %d", i)
		if want := c.Contains(key); single.Contains(key) != want || back.Contains(key) != want || i < 500 && !want {
			t.Fatalf("%s: the chain says %v, the Classic %v, and back %v", key, want, single.Contains(key), back.Contains(key))
		}
	}
	// RedisBloom takes what came back, and counts about as many keys.
	if items := back.Info().Items; items < 450 || items > 550 || back.Info().Capacity != 1000 {
		t.Errorf("back it is %v", back)
	}
	throughDump(t, back)
	for _, config := range []classic.Config{{Bits: 64, Probes: 1}, {Bits: 640, Probes: 20}, {Bits: 6400, Probes: 255}, {Keys: 10, Rate: 0.5}, {Keys: 1e5, Rate: 1e-9}} {
		config.Scheme = classic.SchemeRedisBloom
		filter, err := config.New()
		if err != nil {
			t.Fatal(err)
		}
		filter.Add([]byte("a"))
		back, err := redisbloom.From(filter)
		if err != nil {
			t.Fatal(err)
		}
		if l := back.Layers()[0]; l.Bits != filter.Plan().Bits || l.Probes != filter.Plan().Probes || !throughDump(t, back).Contains([]byte("a")) {
			t.Errorf("%v became %v", filter, back)
		}
	}
	// A file of a Classic is written as a dump, with the same bits.
	var file bytes.Buffer
	if err := (&interop.File{Filter: single}).Write(&file, format(t, "redisbloom")); err != nil {
		t.Fatal(err)
	}
	var bits bytes.Buffer
	if _, err := single.WriteBits(&bits, classic.LittleEndianWords); err != nil || !bytes.Equal(file.Bytes()[73:], bits.Bytes()) {
		t.Errorf("the dump of the Classic has other bits; %v", err)
	}
	own, err := classic.New(100, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := redisbloom.From(own); !errors.Is(err, bloom.ErrUnlike) {
		t.Errorf("a chain of our own scheme: %v", err)
	}
	for _, name := range []string{"redisbloom", "redis-dump"} {
		if err := (&interop.File{Filter: own}).Write(io.Discard, format(t, name)); !errors.Is(err, interop.ErrScheme) {
			t.Errorf("our own scheme as %s: %v", name, err)
		}
	}
	if c := mustChain(t, redisbloom.Config{Keys: 1}); c.Grow() != nil {
		t.Error("the chain does not grow")
	} else if _, ok := c.Single(); ok {
		t.Error("two layers are a Classic")
	}
}
