package interop_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
)

// redisHeader is the header of one link with a field of it changed: at is its
// offset, size its bytes.
func redisHeader(t testing.TB, at, size int, value uint64) []byte {
	t.Helper()
	header := mustChain(t, redisbloom.Config{}).Header()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], value)
	copy(header[at:at+size], b[:])
	return header
}

// Offsets in the header of one link.
const (
	atItems, atLinks, atOptions               = 0, 8, 12
	atBytes, atBits, atLinkItems              = 20, 28, 36
	atRate, atPerKey, atProbes, atKeys, atLog = 44, 52, 60, 64, 72
)

func TestLoadHeaderRefuses(t *testing.T) {
	float := math.Float64bits
	for _, tt := range []struct {
		name   string
		header []byte
		want   error
	}{
		{"nothing", nil, bloom.ErrFormat},
		{"too short", redisHeader(t, 0, 0, 0)[:72], bloom.ErrFormat},
		{"too long", append(redisHeader(t, 0, 0, 0), 0), bloom.ErrFormat},
		{"no links", redisHeader(t, atLinks, 4, 0)[:20], bloom.ErrFormat},
		{"two links", redisHeader(t, atLinks, 4, 2), bloom.ErrFormat},
		{"four billion links", redisHeader(t, atLinks, 4, math.MaxUint32), bloom.ErrLimit},
		{"unknown option", redisHeader(t, atOptions, 4, 0x15), bloom.ErrFormat},
		{"hash of 32 bits", redisHeader(t, atOptions, 4, 1), bloom.ErrVersion},
		{"items", redisHeader(t, atItems, 8, 1), bloom.ErrFormat},
		{"items of the link", redisHeader(t, atLinkItems, 8, 1), bloom.ErrFormat},
		{"bytes", redisHeader(t, atBytes, 8, 145), bloom.ErrFormat},
		{"bits", redisHeader(t, atBits, 8, 1151), bloom.ErrFormat},
		{"rate 0", redisHeader(t, atRate, 8, 0), bloom.ErrFormat},
		{"rate 1", redisHeader(t, atRate, 8, float(1)), bloom.ErrFormat},
		{"rate NaN", redisHeader(t, atRate, 8, float(math.NaN())), bloom.ErrFormat},
		{"bits per key NaN", redisHeader(t, atPerKey, 8, float(math.NaN())), bloom.ErrFormat},
		{"bits per key Inf", redisHeader(t, atPerKey, 8, float(math.Inf(1))), bloom.ErrFormat},
		{"probes", redisHeader(t, atProbes, 4, 9), bloom.ErrFormat},
		{"log2 of the bits", redisHeader(t, atLog, 1, 64), bloom.ErrFormat},
		{"fewer bits in use", redisHeader(t, atLog, 1, 10), bloom.ErrVersion},
	} {
		if c, err := redisbloom.LoadHeader(tt.header, nil); !errors.Is(err, redisbloom.ErrChunkData) || !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.name, c, err, tt.want)
		}
		if _, err := redisbloom.Read(bytes.NewReader(append(tt.header, make([]byte, 144)...))); err == nil {
			t.Errorf("%s: the file can be read", tt.name)
		}
	}
	// RedisBloom does not look at the keys a link is for.
	for _, keys := range []uint64{0, math.MaxUint64} {
		c, err := redisbloom.LoadHeader(redisHeader(t, atKeys, 8, keys), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.AddPair(1, 2); (keys == 0) != errors.Is(err, redisbloom.ErrInsert) {
			t.Errorf("%d keys: %v", keys, err)
		}
		if err := c.Grow(); keys == math.MaxUint64 && !errors.Is(err, redisbloom.ErrInsert) {
			t.Errorf("twice %d keys: %v", keys, err)
		}
		if n := c.AddMany([][]byte{[]byte("a"), []byte("b")}, nil); (keys == 0) != (n == 0) {
			t.Errorf("%d keys: %d were added", keys, n)
		}
		if n := c.Info().Filters; n != 1 { // no layer is many times as large as none
			t.Errorf("%d keys: the chain grew to %d layers", keys, n)
		}
	}
}

// manyLinks repeats the link of a header of one, for a header with many.
func manyLinks(header []byte, links int) []byte {
	many := bytes.Clone(header[:atBytes])
	binary.LittleEndian.PutUint32(many[atLinks:], uint32(links))
	return append(many, bytes.Repeat(header[atBytes:], links)...)
}

// TestLoadHeaderBudget: headers that are refused leave a budget as it was.
func TestLoadHeaderBudget(t *testing.T) {
	const limit = 6 * (144 + 128) // six layers, with their bits
	grant, release := redisbloom.Budget(limit)
	one := redisHeader(t, 0, 0, 0)
	for range 10 {
		for _, links := range []int{7, maxLinks} {
			if _, err := redisbloom.LoadHeader(manyLinks(one, links), grant); !errors.Is(err, bloom.ErrBudget) || !errors.Is(err, redisbloom.ErrChunkData) {
				t.Fatalf("%d links: %v, want ErrBudget", links, err)
			}
		}
		c, err := redisbloom.Config{Grant: grant, Release: release}.LoadHeader(manyLinks(one, 6))
		if err != nil {
			t.Fatalf("six links after others were refused: %v", err)
		}
		if _, err := redisbloom.LoadHeader(one, grant); !errors.Is(err, bloom.ErrBudget) {
			t.Fatalf("a seventh layer: %v, want ErrBudget", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := grant(limit); err != nil {
		t.Errorf("after all are closed: %v", err)
	}
}

const maxLinks = 1100

// terabytes is a header that claims 4 TiB, and agrees with itself.
func terabytes(t testing.TB) []byte {
	header := redisHeader(t, atBits, 8, 1<<45)
	binary.LittleEndian.PutUint64(header[atBytes:], 1<<42)
	return header
}

// TestRedisBloomClaims: what a header merely claims is not allocated.
func TestRedisBloomClaims(t *testing.T) {
	header := terabytes(t)
	value := redisValue(t)
	binary.BigEndian.PutUint64(value[len(value)-8:], 1<<42) // the string's length
	for name, read := range map[string]func() error{
		"LOADCHUNK": func() error {
			grant, _ := redisbloom.Budget(1 << 30)
			_, err := redisbloom.LoadHeader(header, grant)
			return err
		},
		"file": func() error {
			_, err := redisbloom.Read(io.MultiReader(bytes.NewReader(header), bytes.NewReader(make([]byte, 1000))))
			return err
		},
		"value": func() error {
			_, err := format(t, "redis-dump").Read(io.MultiReader(bytes.NewReader(value), bytes.NewReader(make([]byte, 1000))), interop.Options{})
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		want := bloom.ErrFormat
		if name == "LOADCHUNK" {
			want = bloom.ErrBudget
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 1<<20 {
			t.Errorf("%s: %d bytes allocated for a claim", name, bytes)
		}
	}
}

// redisValue is the beginning of Redis's own value, up to a string's length, of a
// link that claims 4 TiB.
func redisValue(t testing.TB) []byte {
	b := fromHex(t, "07813016e5a289bef804"+"0200020102050202"+"024064"+"04")
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(0.005))
	b = append(b, 2, 8, 4)
	b = append(b, redisHeader(t, 0, 0, 0)[atPerKey:atPerKey+8]...)
	b = append(b, 2, 0x81)
	b = binary.BigEndian.AppendUint64(b, 1<<45)
	b = append(b, 2, 0, 5, 0x81)
	return binary.BigEndian.AppendUint64(b, 1<<42)
}

// TestRedisDumpRefuses damages a value at every byte: no byte may change without
// an error, except to a value that says the same.
func TestRedisDumpRefuses(t *testing.T) {
	var v redisVectors
	loadVectors(t, "redisbloom", &v)
	f := format(t, "redis-dump")
	for _, filter := range v.Filters {
		if filter.DumpHex == "" {
			continue
		}
		value := fromHex(t, filter.DumpHex)
		for i := range value {
			damaged := bytes.Clone(value)
			damaged[i] ^= 1 << (i % 8)
			if _, err := f.Read(bytes.NewReader(damaged), interop.Options{}); err == nil {
				t.Fatalf("%s: byte %d changed, and read", filter.Name, i)
			} else if !errors.Is(err, bloom.ErrFormat) && !errors.Is(err, bloom.ErrVersion) && !errors.Is(err, bloom.ErrLimit) && !errors.Is(err, bloom.ErrChecksum) {
				t.Fatalf("%s: byte %d changed: %v, want one of the library's errors", filter.Name, i, err)
			}
			if _, err := f.Read(bytes.NewReader(value[:i]), interop.Options{}); !errors.Is(err, bloom.ErrFormat) {
				t.Fatalf("%s: cut at byte %d: %v, want ErrFormat", filter.Name, i, err)
			}
		}
		if _, err := f.Read(bytes.NewReader(append(value, 0)), interop.Options{}); !errors.Is(err, bloom.ErrFormat) {
			t.Fatalf("%s: a byte behind the value: %v", filter.Name, err)
		}
	}
}

// FuzzRedisBloom: a header that loads, and chunks that come after it, neither
// panic nor ask for more than they were granted; whatever reads as a file is
// written byte for byte.
func FuzzRedisBloom(f *testing.F) {
	c := mustChain(f, redisbloom.Config{Keys: 5})
	for i := range 30 {
		c.Add(numbered(i))
	}
	var file bytes.Buffer
	if _, err := c.WriteTo(&file); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes(), int64(9), []byte("12345678"))
	f.Add(file.Bytes()[:100], int64(0), []byte(nil))
	f.Add(terabytes(f), int64(math.MaxInt64), []byte("1"))
	f.Add(redisHeader(f, atOptions, 4, 1), int64(math.MinInt64), []byte("1"))
	f.Add(redisHeader(f, atKeys, 8, 0), int64(145), make([]byte, 144))
	f.Fuzz(func(t *testing.T, file []byte, iterator int64, data []byte) {
		var config redisbloom.Config
		config.Grant, config.Release = redisbloom.Budget(1 << 20)
		loaded, err := config.LoadHeader(file)
		if err == nil {
			if err := loaded.LoadChunk(iterator, data); err == nil && len(data) > 0 {
				if next, got := loaded.ScanDump(iterator - int64(len(data))); iterator > int64(len(data)) && (next < iterator || !bytes.HasPrefix(got, data)) {
					t.Fatalf("chunk %x reads back as %x", data, got)
				}
			}
			useChain(t, loaded)
		} else if !errors.Is(err, redisbloom.ErrChunkData) {
			t.Fatalf("error %v, want ErrChunkData", err)
		}
		if err := config.Grant(1 << 20); err != nil {
			t.Fatalf("the budget was not given back: %v", err)
		}
		read, err := redisbloom.Read(bytes.NewReader(file))
		if err != nil {
			if !errors.Is(err, bloom.ErrFormat) && !errors.Is(err, bloom.ErrVersion) && !errors.Is(err, bloom.ErrLimit) {
				t.Fatalf("error %v, want one of the library's", err)
			}
			return
		}
		var again bytes.Buffer
		if _, err := read.WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), file) {
			t.Fatalf("written again it is %x, %v", again.Bytes(), err)
		}
		read.SetGrant(redisbloom.Budget(1 << 20))
		useChain(t, read)
	})
}

// useChain does whatever can be done with a chain from a stranger.
func useChain(t *testing.T, c *redisbloom.Filter) {
	defer c.Close()
	if c.Add([]byte("a key")) && !c.Contains([]byte("a key")) {
		t.Fatal("a key that was added is not contained")
	}
	c.AddMany([][]byte{[]byte("b"), []byte("c"), []byte("b")}, nil)
	_, _, _ = c.Plan(), c.Report(), c.String()
	if single, ok := c.Single(); ok {
		if back, err := redisbloom.From(single); err != nil || c.Contains([]byte("b")) != back.Contains([]byte("b")) {
			t.Fatalf("as a Classic and back it answers otherwise: %v", err)
		}
	}
}

// FuzzRedisDump: whatever reads as Redis's value gives the same chain when it is
// written and read again.
func FuzzRedisDump(f *testing.F) {
	var v redisVectors
	loadVectors(f, "redisbloom", &v)
	for _, filter := range v.Filters {
		if filter.DumpHex != "" {
			f.Add(fromHex(f, filter.DumpHex))
		}
	}
	f.Add(redisValue(f))
	f.Fuzz(func(t *testing.T, value []byte) {
		// A checksum that fits, so that the fuzzer gets behind it.
		for _, value := range [][]byte{value, withCRC(value)} {
			file, err := format(t, "redis-dump").Read(bytes.NewReader(value), interop.Options{})
			if err != nil {
				if !errors.Is(err, bloom.ErrFormat) && !errors.Is(err, bloom.ErrVersion) && !errors.Is(err, bloom.ErrLimit) && !errors.Is(err, bloom.ErrChecksum) {
					t.Fatalf("error %v, want one of the library's", err)
				}
				continue
			}
			var again bytes.Buffer
			if err := file.Write(&again, format(t, "redis-dump")); err != nil {
				t.Fatal(err)
			}
			twice, err := format(t, "redis-dump").Read(&again, interop.Options{})
			if err != nil {
				t.Fatal(err)
			}
			a, b := dumped(t, file), dumped(t, twice)
			if !bytes.Equal(a, b) {
				t.Fatalf("%x, written and read again, is %x", a, b)
			}
		}
	})
}

func dumped(t *testing.T, f *interop.File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b, format(t, "redisbloom")); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withCRC returns the value with the checksum that its other bytes have, worked
// out bit by bit.
func withCRC(value []byte) []byte {
	if len(value) < 8 {
		return value
	}
	body := bytes.Clone(value[:len(value)-8])
	crc := uint64(0)
	for _, b := range body {
		crc ^= uint64(b)
		for range 8 {
			crc = crc>>1 ^ 0x95ac9329ac4bc9b5*(crc&1)
		}
	}
	return binary.LittleEndian.AppendUint64(body, crc)
}
