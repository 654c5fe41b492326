package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestLoadRefusesEmptyDump: a header that claims no bytes is refused. In a snapshot it
// would not show that the value is being loaded.
func TestLoadRefusesEmptyDump(t *testing.T) {
	ctx := context.Background()
	l, err := OpenLocal(LocalConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.Create(ctx, "f", Spec{Kind: Paired, Capacity: 1000, Rate: 0.01, Public: true})
	if err != nil {
		t.Fatal(err)
	}
	_, header, err := f.Dump(0)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(h []byte){
		"no bytes":    func(h []byte) { order.PutUint64(h[56:], 0) },
		"no capacity": func(h []byte) { order.PutUint64(h[16:], 0) },
		"no rate":     func(h []byte) { order.PutUint64(h[24:], 0) },
	} {
		h := bytes.Clone(header)
		change(h)
		order.PutUint32(h[dumpBytes-4:], crc32.Checksum(h[:dumpBytes-4], castagnoli))
		if _, err := l.Load(ctx, "g", h); !errors.Is(err, ErrChunk) {
			t.Errorf("%s: %v, want ErrChunk", name, err)
		}
	}
	if _, err := l.Load(ctx, "h", header); err != nil {
		t.Fatal(err)
	}
	g, err := l.Open([]byte("h"))
	if err != nil {
		t.Fatal(err)
	}
	long := make([]byte, maxLoad+1)
	if err := g.Load(ctx, int64(len(long))+1, long); !errors.Is(err, ErrChunk) {
		t.Errorf("a chunk longer than a record of the log: %v, want ErrChunk", err)
	}
}

// TestUnloggedChains: adds to chains at that level are not logged, so nothing may be
// logged that depends on them, such as a merge or a chunk.
func TestUnloggedChains(t *testing.T) {
	ctx := context.Background()
	config := LocalConfig{Dir: t.TempDir(), Level: Unlogged}
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var filters []Filter
	for _, name := range []string{"a", "b"} {
		f, err := l.Create(ctx, name, Spec{Kind: RedisBloom, Capacity: 16, Rate: 0.01, Growth: 2})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			if _, err := f.Add(ctx, [][]byte{fmt.Appendf(nil, "%s %d", name, i)}, make([]bool, 1)); err != nil {
				t.Fatal(err)
			}
		}
		filters = append(filters, f)
	}
	if err := filters[0].Merge(ctx, filters[1]); err != nil {
		t.Fatal(err)
	}
	next, chunk, err := filters[0].Dump(1)
	for err == nil && next != 0 {
		if err := filters[0].Load(ctx, next, chunk); err != nil {
			t.Fatal(err)
		}
		next, chunk, err = filters[0].Dump(next)
	}
	if err == nil {
		err = l.Commit(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	// What a kill would leave.
	copied := LocalConfig{Dir: t.TempDir(), Level: Unlogged}
	entries, err := os.ReadDir(config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(config.Dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied.Dir, e.Name()), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := OpenLocal(copied)
	if err != nil {
		t.Fatalf("after a kill: %v", err)
	}
	again.Close()
}

// TestDroppedIsFreed: a dropped filter is not kept in memory until the time at which it
// would have expired.
func TestDroppedIsFreed(t *testing.T) {
	ctx := context.Background()
	l, err := OpenLocal(LocalConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Create(ctx, "f", Spec{Kind: Paired, Capacity: 1000, Rate: 0.01, Expires: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Drop(ctx, "f"); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		runtime.GC()
		l.expiries.Lock()
		gone := len(l.expiries.queue) == 0 || l.expiries.queue[0].v.Value() == nil
		l.expiries.Unlock()
		if gone {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the filter is kept in memory until its time has come")
}
