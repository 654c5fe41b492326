package bloom_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bloomery/bloom"
)

// resident is how many bytes of this process are in memory.
func resident(t *testing.T) uint64 {
	t.Helper()
	var pages, inMemory uint64
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(text), &pages, &inMemory)
	}
	if err != nil {
		t.Fatal(err)
	}
	return inMemory * uint64(unix.Getpagesize())
}

// TestDroppedFilters: large filters that are dropped without Close are given back
// before they are many. They lie outside Go's heap, so its collector alone would
// not come for minutes.
func TestDroppedFilters(t *testing.T) {
	const each = 12 << 20 // of a filter for ten million keys
	f, err := bloom.New(10_000_000, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Add([]byte("a key"))
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "filter")
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	var current atomic.Pointer[bloom.Filter]
	must := func(f *bloom.Filter, err error) *bloom.Filter {
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, tt := range []struct {
		name string
		make func() *bloom.Filter
	}{
		{"Clone", f.Clone},
		{"Read", func() *bloom.Filter { return must(bloom.Read(bytes.NewReader(file.Bytes()), 1<<30)) }},
		{"Load", func() *bloom.Filter { return must(bloom.Load(path)) }},
	} {
		runtime.GC()
		before := resident(t)
		stop, stopped := make(chan struct{}), make(chan struct{})
		current.Store(tt.make())
		go func() { // a reader, who may be in any filter that was ever current
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !current.Load().Contains([]byte("a key")) {
					t.Errorf("%s: the key is gone", tt.name)
					return
				}
			}
		}()
		most := uint64(0)
		for range 40 {
			current.Store(tt.make())
			most = max(most, resident(t))
		}
		close(stop)
		<-stopped
		// Two are in use at a time, and 64 MiB may wait; half as much again is
		// for what else the process does.
		if limit := before + 2*each + 2*each + 96<<20; most > limit {
			t.Errorf("%s: %d MiB, and after 40 filters of %d MiB %d", tt.name, before>>20, each>>20, most>>20)
		}
	}
}
