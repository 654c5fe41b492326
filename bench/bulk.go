package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/bloomery/bloom"
)

// A builder is a way to add very many keys to a filter.
type builder struct {
	name   string
	start  func(f *bloom.Filter) (add func(hashes []uint64), finish func())
	beside int     // the builder to compare with: its index in builders
	target float64 // times faster than that one, at 1e9 keys
}

var builders = []builder{
	{"batch adds in random order", batchAdds, 0, 0},
	{"bulk, one worker", bulkOf(1), 0, 1.5},
	{"bulk, two workers", bulkOf(2), 1, 1.6},
}

func batchAdds(f *bloom.Filter) (add func(hashes []uint64), finish func()) {
	return func(hashes []uint64) { f.AddHashes(hashes, nil) }, func() {}
}

// feedBytes is how many bytes of keys each worker buffers.
const feedBytes = 512 << 20

func bulkOf(workers int) func(f *bloom.Filter) (add func(hashes []uint64), finish func()) {
	return func(f *bloom.Filter) (add func(hashes []uint64), finish func()) {
		bulk := must(f.Bulk(feedBytes))
		feeds := make([]*bloom.Feed, workers)
		for i := range feeds {
			feeds[i] = must(bulk.Feed())
		}
		each := func(do func(i int)) {
			var wait sync.WaitGroup
			for i := range feeds {
				wait.Go(func() { do(i) })
			}
			wait.Wait()
		}
		add = func(hashes []uint64) {
			share := len(hashes) / workers
			each(func(i int) { feeds[i].AddHashes(hashes[i*share:][:share]) })
		}
		return add, func() { each(func(i int) { feeds[i].Close() }) }
	}
}

// bulkKeys are added per round.
const bulkKeys = 1 << 26

// writeBulk builds one filter with each builder, alternating after every bulkKeys
// keys, and writes the wall-clock time each took for all keys. The filters' memory
// is touched beforehand.
func writeBulk(out io.Writer, opt options) {
	n := opt.sizesOr(1e9)[0]
	filters := make([]*bloom.Filter, len(builders))
	adds, finishes := make([]func([]uint64), len(builders)), make([]func(), len(builders))
	spent := make([]time.Duration, len(builders))
	for i, b := range builders {
		progress("making filter %d of %d", i+1, len(filters))
		filters[i] = must(bloom.New(n, opt.rate))
		began := time.Now()
		filters[i].Prefault()
		fmt.Fprintf(out, "First touch of %.2f GB: %.1f s.\n", float64(filters[i].Plan().Bytes())/1e9, time.Since(began).Seconds())
		adds[i], finishes[i] = b.start(filters[i])
	}
	var keys material
	var ids []uint64
	for first := uint64(0); first < n; first += bulkKeys {
		progress("bulk: %s of %s keys", sizeName(first), sizeName(n))
		ids = appendSpan(ids[:0], first, min(bulkKeys, n-first))
		keys.set(hashed, ids)
		for i := range builders {
			began := time.Now()
			adds[i](keys.hashes)
			spent[i] += time.Since(began)
		}
	}
	for i := range builders {
		began := time.Now()
		finishes[i]()
		spent[i] += time.Since(began)
	}
	progress("")
	for i := range builders[1:] {
		if !filters[i+1].Equal(filters[0]) {
			panic(builders[i+1].name + ": other bits than " + builders[0].name)
		}
	}
	perKey := func(i int) float64 { return float64(spent[i]) / float64(n) }
	fmt.Fprintf(out, "\n%s keys, hashed, p = %g: nanoseconds per key by the wall clock, all keys and the last flush.\n\n", sizeName(n), opt.rate)
	fmt.Fprintln(out, "| builder | ns per key | faster than | asked | measured |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
	for i, b := range builders {
		compared := "- | - | -"
		if b.target > 0 {
			compared = fmt.Sprintf("%s | %gx | %.2fx", builders[b.beside].name, b.target, perKey(b.beside)/perKey(i))
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", b.name, significant(perKey(i)), compared)
	}
}
