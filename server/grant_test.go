package server

import (
	"bytes"
	"encoding/binary"
	"hash/crc64"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
)

// packedDump is Redis's reply to DUMP for a filter without keys, whose bits LZF
// compresses to nearly a 90th.
func packedDump(t *testing.T, keys uint64) (payload []byte, bits uint64) {
	t.Helper()
	c, err := redisbloom.New(redisbloom.Config{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var plain bytes.Buffer
	if err := c.WritePayload(&plain); err != nil {
		t.Fatal(err)
	}
	size := c.Layers()[0].Bytes
	length := binary.BigEndian.AppendUint32([]byte{0x80}, uint32(size)) // before the bits
	before, after, ok := bytes.Cut(plain.Bytes(), append(bytes.Clone(length), make([]byte, 64)...))
	if !ok {
		t.Fatal("there are no bits")
	}
	packed := []byte{0, 0} // a literal zero, and then repeated copies from one byte back
	left := size - 1
	for ; left >= 264; left -= 264 {
		packed = append(packed, 0xe0, 255, 0)
	}
	packed = append(packed, bytes.Repeat([]byte{0, 0}, int(left))...)
	payload = append(bytes.Clone(before), 0xc3, 0x80)
	payload = binary.BigEndian.AppendUint32(payload, uint32(len(packed)))
	payload = append(append(payload, length...), packed...)
	payload = append(payload, after[size-64:len(after)-8]...)
	sum := ^crc64.Update(^uint64(0), crc64.MakeTable(0x95ac9329ac4bc9b5), payload)
	return binary.LittleEndian.AppendUint64(payload, sum), size
}

// TestRestoreIsGranted: a RESTORE that would unpack too much is refused with the number
// of bytes, before it allocates them, and the accounts are unchanged.
func TestRestoreIsGranted(t *testing.T) {
	payload, size := packedDump(t, 60_000_000)
	if size < 64<<20 || uint64(len(payload)) > size/80 {
		t.Fatalf("%d bytes unpack to %d", len(payload), size)
	}
	for _, tt := range []struct {
		name  string
		limit uint64
		want  string
	}{
		{"too little", 16 << 20, "-OOM out of memory: "},
		{"enough for it and its copy", 2*size + 8<<20, "+OK"},
	} {
		local, err := store.OpenLocal(store.LocalConfig{Memory: tt.limit})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { local.Close() })
		w := connect(t, serve(t, local, Config{}))
		var most atomic.Uint64
		before := memory.Mapped()
		memory.OnChange(func(mapped uint64) { most.Store(max(most.Load(), mapped)) })
		got, err := w.raw(command("RESTORE", "f", "0", string(payload)))
		memory.OnChange(nil)
		if err != nil || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, %v, want %s", tt.name, got, err, tt.want)
		}
		if took := most.Load() - before; took > tt.limit {
			t.Errorf("%s: %d MiB were mapped, of %d allowed", tt.name, took>>20, tt.limit>>20)
		}
		w.must(t, "DEL f")
		used, _ := local.Usage()
		for deadline := time.Now().Add(time.Minute); used != 0 && time.Now().Before(deadline); used, _ = local.Usage() {
			time.Sleep(time.Millisecond) // unmapping may take a while
		}
		if used != 0 {
			t.Errorf("%s: %d bytes stay taken", tt.name, used)
		}
	}
}
