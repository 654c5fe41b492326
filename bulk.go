package bloom

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
)

// Bulk fills a filter far larger than the cache, faster than batches of adds can. It
// sorts keys, roughly, by the part of the filter that they fall on, and adds each part's
// keys together while that part is in the cache (radix partitioning; Polychroniou and
// Ross 2014 for hash tables, Lang et al. 2019 for filters).
//
//	bulk, err := f.Bulk(512 << 20)
//	feed := bulk.Feed()     // one for each goroutine
//	feed.AddMany(keys)
//	feed.Close()            // adds what is still waiting
//
// A key is in the filter only once its feed is closed or flushed, so Bulk reports how
// many keys were new, not which. Nobody else may use the filter until all feeds are
// closed.
type Bulk struct {
	filter *Filter
	shift  uint         // a part is 1<<shift blocks
	locks  []sync.Mutex // one for each part
	room   uint64       // how many keys may wait for a part, in each feed
	added  atomic.Uint64
	feeds  atomic.Uint64
}

const (
	// partBytes is how much of the filter one part covers: what stays in a
	// second-level cache.
	partBytes = 1 << 20

	// maxParts bounds the parts, whose waiting keys are written side by side:
	// beyond some hundreds of streams the writing is what misses the cache.
	maxParts = 1024

	// minWaiting is the fewest keys that make it worth to visit a part.
	minWaiting = 1024
)

// Bulk returns a bulk adder whose every feed holds at most feedBytes of keys
// back, 8 bytes a key; 256 MiB and more are good for gigabytes of filter. The
// error wraps [ErrConfig] if that is too little for the size of the filter.
func (f *Filter) Bulk(feedBytes uint64) (*Bulk, error) {
	if f.readOnly {
		panicReadOnly()
	}
	shift := uint(bits.TrailingZeros(partBytes / kernel.BlockBytes))
	last := f.plan.Blocks - 1
	for last>>shift >= maxParts {
		shift++
	}
	parts := last>>shift + 1
	room := feedBytes / 8 / parts
	if room < minWaiting {
		return nil, fmt.Errorf("%w: %d bytes of waiting keys are too few for a filter of %d bytes: give at least %d",
			ErrConfig, feedBytes, f.plan.Bytes(), minWaiting*8*parts)
	}
	return &Bulk{filter: f, shift: shift, locks: make([]sync.Mutex, parts), room: room}, nil
}

// Feed returns a feed for one goroutine. The error wraps [ErrBudget] when there
// is no memory for it.
func (b *Bulk) Feed() (*Feed, error) {
	parts := uint64(len(b.locks))
	words, mapping, err := memory.Words(parts * b.room)
	if err != nil {
		return nil, err
	}
	// Feeds that are closed together begin at different parts, or they would wait
	// for each other at every one.
	number := b.feeds.Add(1)
	first := number * (parts/2 + 1) % parts
	return &Feed{bulk: b, waiting: words, memory: mapping, count: make([]uint64, parts), first: first}, nil
}

// Added returns how many of the keys added so far were certainly new.
func (b *Bulk) Added() uint64 { return b.added.Load() }

// Feed takes the keys of one goroutine; see [Bulk].
type Feed struct {
	bulk    *Bulk
	waiting []uint64 // room for each part in turn
	memory  *memory.Mapping
	count   []uint64 // how many wait for each part
	first   uint64   // the part that Flush begins with
}

// AddMany adds keys.
func (feed *Feed) AddMany(keys [][]byte) { feed.bulk.filter.hashMany(keys, nil, feed.take) }

// AddStrings is AddMany for strings.
func (feed *Feed) AddStrings(keys []string) { feed.bulk.filter.hashStrings(keys, nil, feed.take) }

// AddHashes is AddMany for hashed keys; see [Filter.AddHash].
func (feed *Feed) AddHashes(hashes []uint64) { feed.take(hashes, nil) }

// take puts each hash with those that wait for the same part of the filter.
func (feed *Feed) take(hashes []uint64, _ []bool) int {
	if feed.waiting == nil {
		panic("bloom: the feed is closed: take another one from Bulk.Feed")
	}
	blocks, room, shift := feed.bulk.filter.plan.Blocks, feed.bulk.room, feed.bulk.shift
	for _, h := range hashes {
		block, _ := bits.Mul64(h, blocks) // as the kernel does
		part := block >> shift
		at := feed.count[part]
		if at == room {
			feed.drain(part)
			at = 0
		}
		feed.waiting[part*room+at] = h
		feed.count[part] = at + 1
	}
	return 0
}

// drain adds the keys that wait for a part.
func (feed *Feed) drain(part uint64) {
	b := feed.bulk
	b.filter.mustBeOpen() // or the lock below would stay locked
	hashes := feed.waiting[part*b.room:][:feed.count[part]]
	feed.count[part] = 0
	b.locks[part].Lock()
	added := inParts(hashes, nil, b.filter.bits.AddBatch)
	b.locks[part].Unlock()
	b.added.Add(uint64(added))
	atomic.AddUint64(&b.filter.added, uint64(added))
	runtime.KeepAlive(feed)
	b.filter.keepAlive()
}

// Flush adds all keys that wait. After Close there are none.
func (feed *Feed) Flush() {
	if feed.waiting == nil {
		return
	}
	parts := uint64(len(feed.count))
	for i := range parts {
		feed.drain((feed.first + i) % parts)
	}
}

// Close adds all keys that wait and releases the feed's memory. It may be called
// twice; adding to a closed feed panics.
func (feed *Feed) Close() error {
	feed.Flush()
	feed.waiting = nil
	return feed.memory.Close()
}
