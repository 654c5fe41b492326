//go:build !race

package store

// Not with the race detector, whose own memory is many times that of the filters.

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// residentBytes returns the resident memory of the process.
func residentBytes(t *testing.T) uint64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// touch adds a key to about every page.
func touch(t *testing.T, f Filter) {
	t.Helper()
	keys, isNew := make([][]byte, chunkKeys), make([]bool, chunkKeys)
	for i := uint64(0); i < 3*f.Info().Bytes/4096; i += chunkKeys {
		for j := range keys {
			keys[j] = order.AppendUint64(nil, i+uint64(j))
		}
		if _, err := f.Add(bg, keys, isNew); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMemoryComesBack: the memory of a filter returns to the system as soon as its name is
// gone, in whichever way, and not only when the collector runs. With a limit just above
// what is needed, there is always room for the next filter.
func TestMemoryComesBack(t *testing.T) {
	const rounds, size = 20, 64 << 20 // size: about the bytes of a filter
	specs := map[string]Spec{
		"RedisBloom":     {Kind: RedisBloom, Capacity: size * 8 / 10, Rate: 0.01},
		"Paired":         {Kind: Paired, Capacity: size * 8 / 11, Rate: 0.01},
		"Paired growing": {Kind: Paired, Capacity: size * 8 / 14, Rate: 0.01, Growth: 2},
		"Window":         {Kind: Window, Capacity: size * 8 / 24, Rate: 0.01, Span: time.Hour},
	}
	type way struct {
		filters uint64 // at the same time
		end     func(l *Local, now *atomic.Int64)
	}
	ways := map[string]way{
		"dropped":  {1, func(l *Local, _ *atomic.Int64) { l.Drop(bg, "f") }},
		"cleared":  {1, func(l *Local, _ *atomic.Int64) { l.Clear(bg) }},
		"set over": {1, func(l *Local, _ *atomic.Int64) { l.Set(bg, "f", []byte("x")); l.Drop(bg, "f") }},
		"expired":  {1, func(l *Local, now *atomic.Int64) { l.Expire(bg, "f", l.now()); now.Add(1e9); l.sweep() }},
		"built again": {2, func(l *Local, _ *atomic.Int64) {
			if _, err := l.Open([]byte("old")); err == nil {
				l.Swap(bg, "f", "old")
				l.Drop(bg, "f")
			} else {
				l.Rename(bg, "f", "old")
			}
		}},
		"renamed over": {2, func(l *Local, _ *atomic.Int64) { l.Rename(bg, "f", "old") }},
	}
	for kind, spec := range specs {
		for name, way := range ways {
			if kind != "Paired" && name != "dropped" {
				continue
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				var now atomic.Int64
				now.Store(1_700_000_000e9)
				config := LocalConfig{seams: seams{idle: true, now: func() time.Time { return time.Unix(0, now.Load()) }}}
				l, err := OpenLocal(config)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				f, err := l.Create(bg, "f", spec)
				if err != nil {
					t.Fatal(err)
				}
				one := f.Info().Bytes
				l.Drop(bg, "f")
				l.config.Memory = way.filters*one + 1<<20
				before := residentBytes(t)
				most := before
				for round := range rounds {
					if f, err = l.Create(bg, "f", spec); err != nil {
						t.Fatalf("round %d: %v", round, err)
					}
					touch(t, f)
					most = max(most, residentBytes(t))
					way.end(l, &now)
				}
				if limit := before + way.filters*one*5/4 + 100<<20; most > limit {
					t.Errorf("%d MiB in memory, with filters of %d MiB and %d MiB before", most>>20, way.filters*one>>20, before>>20)
				}
			})
		}
	}
}
