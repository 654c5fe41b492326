package interop_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
)

// packedZeros is a value, as DUMP answers it, of a filter without keys that has
// this many bytes of bits, compressed by LZF to nearly a 90th.
func packedZeros(t testing.TB, size int) []byte {
	packed := []byte{0, 0} // a zero as it is, and then again and again what is one back
	for left := size - 1; left > 0; {
		n := min(left, 264)
		if n < 9 {
			n = 1
			packed = append(packed, 0, 0)
		} else {
			packed = append(packed, 0xe0, byte(n-9), 0)
		}
		left -= n
	}
	length := func(b []byte, n int) []byte { return binary.BigEndian.AppendUint32(append(b, 0x80), uint32(n)) }
	b := fromHex(t, "07813016e5a289bef804"+"0200020102050202"+"024064"+"04")
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(0.005))
	b = append(b, 2, 8, 4)
	b = append(b, redisHeader(t, 0, 0, 0)[atPerKey:atPerKey+8]...)
	b = append(b, 2, 0x81)
	b = binary.BigEndian.AppendUint64(b, 8*uint64(size))
	b = append(b, 2, 0, 5, 0xc3)
	b = length(length(b, len(packed)), size)
	b = append(b, packed...)
	b = append(b, 2, 0, 0, 10, 0)
	return withCRC(append(b, make([]byte, 8)...))
}

// TestReadAsksGrant: what bytes unpack to is granted before memory is taken for it,
// and given back when the reading fails, or the filter is closed.
func TestReadAsksGrant(t *testing.T) {
	const size = 8 << 20
	value := packedZeros(t, size)
	if len(value) > size/80 {
		t.Fatalf("%d bytes unpack to %d", len(value), size)
	}
	var file bytes.Buffer
	whole, err := format(t, "redis-dump").Read(bytes.NewReader(value), interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.Write(&file, format(t, "redisbloom")); err != nil {
		t.Fatal(err)
	}
	whole.Close()
	for name, data := range map[string][]byte{"redis-dump": value, "redisbloom": file.Bytes()} {
		read := func(limit uint64, data []byte) (o interop.Options, err error) {
			o.Grant, o.Release = redisbloom.Budget(limit)
			f, err := format(t, name).Read(bytes.NewReader(data), o)
			if err == nil {
				if again := o.Grant(limit - size); !errors.Is(again, bloom.ErrBudget) {
					t.Errorf("%s: the filter takes less than its bits", name)
				}
				err = f.Close()
			}
			if again := o.Grant(limit); again != nil {
				t.Errorf("%s: %v, and not all was given back: %v", name, err, again)
			}
			return o, err
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := read(size, data) // a layer takes more than its bits
		runtime.ReadMemStats(&after)
		if !errors.Is(err, bloom.ErrBudget) || !strings.Contains(err.Error(), "bytes are needed") {
			t.Errorf("%s: beyond the limit: %v", name, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > size/8 {
			t.Errorf("%s: %d bytes were allocated beyond the limit", name, took)
		}
		if _, err := read(2*size, data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for cut := 1; cut < len(data); cut += len(data)/20 + 1 { // so it ends in every part
			if _, err := read(2*size, data[:cut]); err == nil {
				t.Errorf("%s: %d bytes of %d read", name, cut, len(data))
			}
		}
		if _, err := read(2*size, append(bytes.Clone(data[:len(data)-1]), data[len(data)-1]^1, 0)); err == nil {
			t.Errorf("%s: bytes after the end are read", name)
		}
	}
	// A compressed string that continues after its end.
	long := bytes.Clone(value)
	long[bytes.Index(long, []byte{0xc3, 0x80})+5]++ // of packed bytes: the next field's first is one of them
	grant, release := redisbloom.Budget(2 * size)
	if f, err := format(t, "redis-dump").Read(bytes.NewReader(long), interop.Options{Grant: grant, Release: release}); err == nil {
		t.Errorf("%v was read", f)
	}
	if err := grant(2 * size); err != nil {
		t.Errorf("not all was given back: %v", err)
	}
}

// TestReadChainGrant: a dump of several links is granted link by link.
func TestReadChainGrant(t *testing.T) {
	c := mustChain(t, redisbloom.Config{Keys: 100})
	for i := range 1000 {
		c.Add(numbered(i))
	}
	var dump bytes.Buffer
	if _, err := c.WriteTo(&dump); err != nil {
		t.Fatal(err)
	}
	grant, release := redisbloom.Budget(1 << 20)
	config := redisbloom.Config{Grant: grant, Release: release}
	read, err := config.Read(bytes.NewReader(dump.Bytes()))
	if err != nil || read.Info() != c.Info() {
		t.Fatalf("%v, %v, want %v", read, err, c)
	}
	if err := read.Close(); err != nil {
		t.Error(err)
	}
	if _, err := config.Read(io.LimitReader(&dump, int64(dump.Len()-1))); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("a dump cut short: %v", err)
	}
	if err := grant(1 << 20); err != nil {
		t.Errorf("not all was given back: %v", err)
	}
}
