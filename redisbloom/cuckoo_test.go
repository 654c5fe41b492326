package redisbloom_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
)

// cuckooCase is what RedisBloom made of some adds and deletes; made_by says which release.
type cuckooCase struct {
	Name    string
	Reserve []string
	Add     []string
	Del     []string
	Chunks  []cuckooChunk
	Probes  []string
	Counts  []int
	Debug   string
}

type cuckooChunk struct {
	Iter int64
	B64  []byte
}

func cuckooCases(t *testing.T) []cuckooCase {
	file, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", "cuckoo.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct{ Cases []cuckooCase }
	if err := json.Unmarshal(file, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Cases) != 7 {
		t.Fatalf("%d cases", len(vectors.Cases))
	}
	return vectors.Cases
}

// config turns the words of CF.RESERVE into a config.
func (tt *cuckooCase) config(t *testing.T) (c bloom.CuckooConfig) {
	if len(tt.Reserve) == 0 {
		return c
	}
	words := append([]string{"CAPACITY"}, tt.Reserve...)
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.Atoi(words[i+1])
		if err != nil {
			t.Fatal(err)
		}
		switch words[i] {
		case "CAPACITY":
			c.Keys = uint64(n)
		case "BUCKETSIZE":
			c.BucketSize = n
		case "MAXITERATIONS":
			c.Iterations = n
		case "EXPANSION":
			c.Growth, c.NonScaling = n, n == 0
		default:
			t.Fatalf("the word %s", words[i])
		}
	}
	return c
}

func mustCuckoo(t testing.TB, c bloom.CuckooConfig) redisbloom.Cuckoo {
	t.Helper()
	f, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	return redisbloom.Cuckoo{Cuckoo: f}
}

// debug is what CF.DEBUG answers.
func debug(c redisbloom.Cuckoo) string {
	i := c.Info()
	return fmt.Sprintf("bktsize:%d buckets:%d items:%d deletes:%d filters:%d max_iterations:%d expansion:%d",
		i.BucketSize, i.Buckets, i.Items, i.Removed, i.Filters, i.MaxMoves, i.Expansion)
}

// dump returns all chunks of a filter.
func dump(c redisbloom.Cuckoo) (chunks []cuckooChunk) {
	for at := int64(0); ; {
		next, data := c.ScanDump(at)
		if next == 0 {
			return chunks
		}
		chunks = append(chunks, cuckooChunk{next, data})
		at = next
	}
}

func wantChunks(t *testing.T, got, want []cuckooChunk) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d chunks, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Iter != want[i].Iter || !bytes.Equal(got[i].B64, want[i].B64) {
			t.Errorf("chunk %d: iterator %d, want %d\n%x\n%x", i, got[i].Iter, want[i].Iter, got[i].B64, want[i].B64)
		}
	}
}

// TestCuckooVectors makes each filter of the vectors again: its slots are the same, its
// counts, and its dump both ways.
func TestCuckooVectors(t *testing.T) {
	for _, tt := range cuckooCases(t) {
		t.Run(tt.Name, func(t *testing.T) {
			c := mustCuckoo(t, tt.config(t))
			refused := 0
			for _, key := range tt.Add {
				if err := c.Insert([]byte(key)); errors.Is(err, bloom.ErrFull) {
					refused++
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if full := tt.Name == "tight"; full != (refused > 0) {
				t.Errorf("%d adds are refused", refused)
			}
			for _, key := range tt.Del {
				c.RemoveString(key)
			}
			wantChunks(t, dump(c), tt.Chunks)
			if want := strings.TrimSpace(tt.Debug[strings.Index(tt.Debug, "\n"):]); debug(c) != want {
				t.Errorf("got  %s\nwant %s", debug(c), want)
			}

			loaded, err := redisbloom.Config{}.LoadCuckooHeader(tt.Chunks[0].B64)
			if err != nil {
				t.Fatal(err)
			}
			for _, chunk := range tt.Chunks[1:] {
				if err := loaded.LoadChunk(chunk.Iter, chunk.B64); err != nil {
					t.Fatal(err)
				}
			}
			wantChunks(t, dump(loaded), tt.Chunks)
			for i, key := range tt.Probes {
				if got := c.CountString(key); got != tt.Counts[i] {
					t.Errorf("Count(%q) = %d, want %d", key, got, tt.Counts[i])
				}
				if got := loaded.CountString(key); got != tt.Counts[i] {
					t.Errorf("loaded: Count(%q) = %d, want %d", key, got, tt.Counts[i])
				}
				if got, want := c.ContainsString(key), tt.Counts[i] > 0; got != want {
					t.Errorf("Contains(%q) = %v, want %v", key, got, want)
				}
			}
			if !loaded.Equal(c.Cuckoo) {
				t.Error("the filter that was loaded is not equal to the one that was made")
			}
		})
	}
}

// recorded are lines of RedisBloom's answers to the CF commands: growing with a key that
// fills its buckets, the limit of layers, and what a filter of 8 slots refuses.
func TestCuckooRecorded(t *testing.T) {
	t.Run("one key again and again", func(t *testing.T) {
		c := mustCuckoo(t, bloom.CuckooConfig{Keys: 4})
		stored := 0
		for range 200 {
			if err := c.Insert([]byte("same")); err == nil {
				stored++
			} else if !errors.Is(err, bloom.ErrLayers) {
				t.Fatal(err)
			}
		}
		if _, err := c.InsertUnique([]byte("other")); !errors.Is(err, bloom.ErrLayers) {
			t.Errorf("a new key: %v, want ErrLayers", err)
		}
		if n := c.CountString("same"); stored != 63 || n != 126 {
			t.Errorf("%d of it were stored and %d counted, want 63 and 126", stored, n)
		}
		if !c.RemoveString("same") {
			t.Error("it cannot be removed")
		}
		if got, want := debug(c), "bktsize:2 buckets:2 items:62 deletes:1 filters:32 max_iterations:20 expansion:1"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("full", func(t *testing.T) {
		c := mustCuckoo(t, bloom.CuckooConfig{Keys: 8, NonScaling: true, Iterations: 3})
		for i := range 14 {
			err := c.Insert(fmt.Append(nil, "k", i))
			if wantFull := i > 6 && i != 9; wantFull != errors.Is(err, bloom.ErrFull) || !wantFull && err != nil {
				t.Errorf("k%d: %v", i, err)
			}
		}
		wantChunks(t, dump(c)[1:], []cuckooChunk{{9, []byte("/\"vk\xd0\x89L\x92")}})
		if got, want := debug(c), "bktsize:2 buckets:4 items:8 deletes:0 filters:1 max_iterations:3 expansion:0"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	for _, tt := range []struct {
		config  bloom.CuckooConfig
		buckets uint64
		growth  int
		size    uint64
	}{
		{bloom.CuckooConfig{Keys: 1000}, 512, 1, 1080},
		{bloom.CuckooConfig{Keys: 1000, BucketSize: 4, Iterations: 10, Growth: 2}, 256, 2, 1080},
		{bloom.CuckooConfig{Keys: 4}, 2, 1, 60},
		{bloom.CuckooConfig{Keys: 1000, NonScaling: true}, 512, 0, 1080},
		{bloom.CuckooConfig{Keys: 1000, Growth: 3}, 512, 4, 1080},
		{bloom.CuckooConfig{Keys: 1000, BucketSize: 3}, 512, 1, 1592},
		{bloom.CuckooConfig{Keys: 100}, 64, 1, 184},
		{bloom.CuckooConfig{Keys: 1000, BucketSize: 1, Iterations: 500}, 1024, 1, 1080},
		{bloom.CuckooConfig{}, 512, 1, 1080},
	} {
		if i := mustCuckoo(t, tt.config).Info(); i.Buckets != tt.buckets || i.Expansion != tt.growth || i.Size != tt.size {
			t.Errorf("%+v has %d buckets, an expansion of %d and %d bytes, want %d, %d and %d", tt.config, i.Buckets, i.Expansion, i.Size, tt.buckets, tt.growth, tt.size)
		}
	}
}

// cuckooHeader returns a header with these fields.
func cuckooHeader(items, buckets, removed, layers uint64, size, iterations, growth uint16) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, struct {
		Items, Buckets, Removed, Layers uint64
		Size, Iterations, Growth        uint16
	}{items, buckets, removed, layers, size, iterations, growth})
	if err != nil {
		panic(err)
	}
	return b
}

// TestCuckooHeaders: which headers make a filter. Those up to the "+" answer as RedisBloom
// does.
func TestCuckooHeaders(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header []byte
		want   error
	}{
		{"an ordinary one", cuckooHeader(1, 4, 0, 1, 2, 20, 1), nil},
		{"two layers", cuckooHeader(1, 4, 0, 2, 2, 20, 2), nil},
		{"more items than slots", cuckooHeader(9999999, 4, 0, 1, 2, 20, 1), nil},
		{"3 bytes", []byte("abc"), redisbloom.ErrCuckooHeader},
		{"a byte more", append(cuckooHeader(1, 4, 0, 1, 2, 20, 1), 0), redisbloom.ErrCuckooHeader},
		{"3 buckets", cuckooHeader(1, 3, 0, 1, 2, 20, 1), redisbloom.ErrCuckooCreate},
		{"no buckets", cuckooHeader(1, 0, 0, 1, 2, 20, 1), redisbloom.ErrCuckooCreate},
		{"no layers", cuckooHeader(1, 4, 0, 0, 2, 20, 1), redisbloom.ErrCuckooCreate},
		{"two layers without expansion", cuckooHeader(1, 4, 0, 2, 2, 20, 0), redisbloom.ErrCuckooCreate},
		{"no slots", cuckooHeader(1, 4, 0, 1, 0, 20, 1), redisbloom.ErrCuckooCreate},
		{"300 slots", cuckooHeader(1, 4, 0, 1, 300, 20, 1), redisbloom.ErrCuckooCreate},
		{"no iterations", cuckooHeader(1, 4, 0, 1, 2, 0, 1), redisbloom.ErrCuckooCreate},
		{"2^60 buckets", cuckooHeader(1, 1<<60, 0, 1, 2, 20, 1), redisbloom.ErrCuckooCreate},
		{"+ an expansion of 3", cuckooHeader(1, 4, 0, 3, 2, 20, 3), redisbloom.ErrCuckooCreate},
		{"+ 70,000 layers", cuckooHeader(1, 4, 0, 70000, 2, 20, 1), redisbloom.ErrCuckooCreate},
		{"+ layers that grow beyond all memory", cuckooHeader(1, 4, 0, 32, 2, 20, 32768), redisbloom.ErrCuckooCreate},
	} {
		c, err := redisbloom.LoadCuckooHeader(tt.header, nil)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if err == nil && !bytes.Equal(c.Header(), tt.header) {
			t.Errorf("%s: the filter's header is %x, not %x", tt.name, c.Header(), tt.header)
		}
	}
}

// TestCuckooChunks: where chunks may lie.
func TestCuckooChunks(t *testing.T) {
	c, err := redisbloom.LoadCuckooHeader(cuckooHeader(3, 4, 0, 2, 2, 20, 2), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		iterator int64
		data     string
		ok       bool
	}{
		{9, "12345678", true}, // the first layer
		{25, "1234567890abcdef", true},
		{5, "AB", true}, // a part
		{25, "12345678", true},
		{2, "abc", false},
		{3, "abc", false},
		{0, "a", false},
		{-1, "a", false},
		{5, "", false},
		{10, "12345678", false}, // over the end of the layer
		{26, "a", false},
		{100000, "abc", false},
		{1<<63 - 1, "abc", false},
	} {
		before := c.Clone()
		err := c.LoadChunk(tt.iterator, []byte(tt.data))
		if (err == nil) != tt.ok || err != nil && (!errors.Is(err, redisbloom.ErrCuckooChunk) || !c.Equal(before)) {
			t.Errorf("%q that ends at %d: %v", tt.data, tt.iterator, err)
		}
	}
	if _, slots := c.ScanDump(1); string(slots) != "12AB5678" {
		t.Errorf("the first layer is %q", slots)
	}
	if _, slots := c.ScanDump(9); string(slots) != "1234567812345678" {
		t.Errorf("the second layer is %q", slots)
	}
	for _, iterator := range []int64{-1, 25, 26, 1<<63 - 1} {
		if next, data := c.ScanDump(iterator); next != 0 || data != nil {
			t.Errorf("ScanDump(%d) = %d, %q", iterator, next, data)
		}
	}
	empty := mustCuckoo(t, bloom.CuckooConfig{Keys: 100})
	for _, iterator := range []int64{0, 5} {
		if next, data := empty.ScanDump(iterator); next != 0 || data != nil {
			t.Errorf("an empty filter: ScanDump(%d) = %d, %q", iterator, next, data)
		}
	}
}

// TestCuckooLargeDump: a layer of more than 16 MiB comes in several chunks.
func TestCuckooLargeDump(t *testing.T) {
	c := mustCuckoo(t, bloom.CuckooConfig{Keys: 32 << 20, BucketSize: 1})
	for i := range uint64(1000) {
		c.AddUint64(i)
	}
	chunks := dump(c)
	if len(chunks) != 3 || chunks[1].Iter != 1+16<<20 || chunks[2].Iter != 1+32<<20 {
		t.Fatalf("%d chunks", len(chunks))
	}
	again, err := redisbloom.LoadCuckooHeader(chunks[0].B64, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, chunk := range chunks[1:] {
		if err := again.LoadChunk(chunk.Iter, chunk.B64); err != nil {
			t.Fatal(err)
		}
	}
	if !again.Equal(c.Cuckoo) || again.Len() != 1000 {
		t.Error("the dump makes another filter")
	}
}

// TestCuckooGrant: a Grant is asked for each layer, and all of it is given back.
func TestCuckooGrant(t *testing.T) {
	granted, limit := uint64(0), uint64(0)
	config := redisbloom.Config{
		Grant: func(bytes uint64) error {
			if granted+bytes > limit {
				return bloom.ErrBudget
			}
			granted += bytes
			return nil
		},
		Release: func(bytes uint64) { granted -= bytes },
	}
	header := cuckooHeader(0, 1<<12, 0, 3, 2, 20, 1)
	limit = 20000
	if _, err := config.LoadCuckooHeader(header); !errors.Is(err, bloom.ErrBudget) || granted != 0 {
		t.Errorf("%v, and %d bytes are granted", err, granted)
	}
	limit = 30000
	c, err := config.LoadCuckooHeader(header)
	if err != nil || granted < 3<<13 {
		t.Fatalf("%v, %d bytes are granted", err, granted)
	}
	var insert error
	for i := 0; insert == nil; i++ {
		insert = c.Insert(fmt.Append(nil, i))
	}
	if !errors.Is(insert, bloom.ErrBudget) {
		t.Errorf("the full filter: %v, want the Grant's error", insert)
	}
	before := granted
	c.Clear()
	if c.LayerCount() != 1 || granted >= before {
		t.Errorf("%d bytes are granted for %d layers, before Clear %d", granted, c.LayerCount(), before)
	}
	c.Close()
	if granted != 0 {
		t.Errorf("%d bytes are granted for a filter that is closed", granted)
	}
	if _, err := config.ReadCuckoo(bytes.NewReader(header)); !errors.Is(err, bloom.ErrFormat) || granted != 0 {
		t.Errorf("a header alone: %v, and %d bytes are granted", err, granted)
	}
}

// TestCuckooReplies repeats recorded commands: three filters grow, lose keys and are
// compacted. Each reply is the recorded one, to the byte.
func TestCuckooReplies(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", "cuckoo_replies.txt"))
	if err != nil {
		t.Fatal(err)
	}
	filters := map[string]redisbloom.Cuckoo{}
	commands := 0
	for line := range strings.Lines(string(file)) {
		command, escaped, ok := strings.Cut(line, "=> ")
		if !ok {
			continue // the comment
		}
		want, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.TrimSpace(escaped), `"`, `\"`) + `"`)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		words := strings.Fields(command)
		c := filters[words[1]]
		got := "+OK\r\n"
		switch words[0] {
		case "CF.RESERVE":
			tt := cuckooCase{Reserve: words[2:]}
			filters[words[1]] = mustCuckoo(t, tt.config(t))
		case "CF.ADD":
			if err := c.Insert([]byte(words[2])); err != nil {
				t.Fatal(err)
			}
			got = ":1\r\n"
		case "CF.DEL":
			got = ":0\r\n"
			if c.Remove([]byte(words[2])) {
				got = ":1\r\n"
			}
		case "CF.COUNT":
			got = fmt.Sprintf(":%d\r\n", c.CountString(words[2]))
		case "CF.COMPACT":
			c.Compact()
		case "CF.DEBUG":
			got = fmt.Sprintf("$%d\r\n%s\r\n", len(debug(c)), debug(c))
		case "CF.INFO":
			i := c.Info()
			got = fmt.Sprintf("*16\r\n+Size\r\n:%d\r\n+Number of buckets\r\n:%d\r\n+Number of filters\r\n:%d\r\n+Number of items inserted\r\n:%d\r\n+Number of items deleted\r\n:%d\r\n+Bucket size\r\n:%d\r\n+Expansion rate\r\n:%d\r\n+Max iterations\r\n:%d\r\n",
				i.Size, i.Buckets, i.Filters, i.Items, i.Removed, i.BucketSize, i.Expansion, i.MaxMoves)
		case "CF.SCANDUMP":
			at, err := strconv.ParseInt(words[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			next, data := c.ScanDump(at)
			got = fmt.Sprintf("*2\r\n:%d\r\n$%d\r\n%s\r\n", next, len(data), data)
			if data == nil {
				got = "*2\r\n:0\r\n$-1\r\n"
			}
		default:
			t.Fatalf("the command %s", words[0])
		}
		if got != want {
			t.Fatalf("%s: %q, want %q", command, got, want)
		}
		commands++
	}
	if commands != 345 {
		t.Errorf("%d commands", commands)
	}
}

// TestCuckooCompactKeepsOrder: a layer that becomes empty stays as long as a newer one
// has fingerprints.
func TestCuckooCompactKeepsOrder(t *testing.T) {
	const buckets = 256
	other := func(bucket int, fingerprint byte) int {
		return (bucket ^ int(uint64(fingerprint)*0x5bd1e995%buckets)) % buckets
	}
	c, err := redisbloom.LoadCuckooHeader(cuckooHeader(5, buckets, 0, 3, 1, 20, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	put := func(layer, bucket int, fingerprint byte) {
		if err := c.LoadChunk(int64(1+layer*buckets+bucket+1), []byte{fingerprint}); err != nil {
			t.Fatal(err)
		}
	}
	p, q := 10, other(10, 7)
	put(0, p, 1)
	put(0, q, 2)
	put(1, p, 3) // these two have room in layer 0, in their other buckets
	put(1, q, 4)
	put(2, p, 7) // this one has room nowhere else
	hash := func(bucket int, fingerprint uint64) uint64 {
		for h := uint64(bucket); ; h += buckets {
			if h%255+1 == fingerprint {
				return h
			}
		}
	}
	keys := []uint64{hash(p, 1), hash(q, 2), hash(p, 3), hash(q, 4), hash(p, 7)}
	c.Compact()
	if n := c.ContainsHashes(keys, nil); n != len(keys) || c.LayerCount() != 3 {
		t.Errorf("%d of %d keys are left in %d layers", n, len(keys), c.LayerCount())
	}
	if _, slots := c.ScanDump(1 + buckets); bytes.Count(slots, []byte{0}) != buckets {
		t.Error("the layer in the middle was not emptied")
	}
	c.RemoveHash(keys[4]) // one removal in five: compacts by itself
	if n := c.ContainsHashes(keys, nil); n < 4 || c.LayerCount() != 1 {
		t.Errorf("%d of 4 keys are left in %d layers", n, c.LayerCount())
	}
}

// TestCuckooHeader compares headers with those of filters that were made.
func TestCuckooHeader(t *testing.T) {
	for _, c := range []bloom.CuckooConfig{
		{}, {Keys: 1000, BucketSize: 3, Growth: 3}, {Keys: 5, Iterations: 500}, {Keys: 1 << 20, BucketSize: 4, NonScaling: true},
	} {
		f, err := c.New()
		if err != nil {
			t.Fatal(err)
		}
		got, err := redisbloom.CuckooHeader(c)
		if want := (redisbloom.Cuckoo{Cuckoo: f}).Header(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%+v: header %x, %v; the filter's is %x", c, got, err, want)
		}
	}
	if _, err := redisbloom.CuckooHeader(bloom.CuckooConfig{BucketSize: 256}); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("256 slots: %v", err)
	}
}
