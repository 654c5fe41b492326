package memory

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"weak"
)

// Large filters lie outside Go's heap, where the garbage collector does not see them.
// To the collector, a filter of 1 GiB is an object of 300 bytes; a program that drops
// one filter after the other without Close would fill the machine before the collector
// had a reason to run. So this file counts the mapped bytes and paces collections as
// Go does for its heap with GOGC=100: once the bytes mapped since the last collection
// equal the bytes that it left, the collector runs, and unreachable mappings are
// unmapped. A program that closes its filters never gets that far.
//
// The collection begins in the background at three quarters of that allowance, so in
// normal use no goroutine waits. Once the allowance is used up, mapping more waits for
// the end of the collection.

// floorBytes may always be mapped between two collections, however little the last one
// left. Mapping and filling 64 MiB takes some 30 ms, a collection of a small heap less
// than one.
const floorBytes = 64 << 20

// region is a piece of mapped memory. The cleanup of its Mapping refers to the region,
// so the region must not refer to the Mapping.
type region struct {
	bytes []byte
	unmap func([]byte) error
}

// pacer counts regions of anonymous memory, and decides when to collect.
type pacer struct {
	mu      sync.Mutex
	regions map[*region]weak.Pointer[Mapping] // all mapped regions

	mapped uint64 // bytes mapped now
	live   uint64 // bytes that the last collection left: an upper bound on those in use
	fresh  uint64 // bytes mapped since a collection began, which it does not cover
	heap   uint64 // bytes that the last collection left in Go's heap

	ceiling uint64 // see SetCeiling; 0 means none

	running  chan struct{} // closed when the current collection has ended; nil if there is none
	collect  func()        // runtime.GC
	heapLive func() uint64
	changed  func(mapped uint64) // see OnChange; may be nil
}

var pace = newPacer(runtime.GC, liveHeap)

func newPacer(collect func(), heapLive func() uint64) *pacer {
	return &pacer{regions: map[*region]weak.Pointer[Mapping]{}, collect: collect, heapLive: heapLive}
}

// liveHeap returns how many bytes the last collection found in use in Go's heap.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// Mapped returns how many bytes of memory for filters are mapped now, outside Go's
// heap, including those that are no longer used but not unmapped yet.
func Mapped() uint64 {
	pace.mu.Lock()
	defer pace.mu.Unlock()
	return pace.mapped
}

// OnChange sets a function that is called with the value of Mapped after every change,
// and once now. It must be quick and must not map memory. It replaces the function set
// before; nil removes it.
func OnChange(changed func(mapped uint64)) {
	pace.mu.Lock()
	defer pace.mu.Unlock()
	if pace.changed = changed; changed != nil {
		changed(pace.mapped)
	}
}

// SetCeiling asks for at most this many mapped bytes, used or not; zero removes the
// ceiling. The ceiling refuses nothing: a mapping that would exceed it waits for a
// collection, and is then made in any case.
func SetCeiling(bytes uint64) {
	pace.mu.Lock()
	defer pace.mu.Unlock()
	pace.ceiling = bytes
}

// allowance returns how many bytes may be mapped in addition to those in use. If Go's
// heap is large, a collection is expensive, so the allowance is at least the size of
// the heap.
func (p *pacer) allowance() uint64 { return max(p.live, p.heap, floorBytes) }

// add counts the region of a Mapping, and begins a collection if one is due.
func (p *pacer) add(r *region, of *Mapping) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.regions[r] = weak.Make(of)
	p.count(uint64(len(r.bytes)), 0)
	p.fresh += uint64(len(r.bytes))
	if p.mapped-p.live > p.allowance()/4*3 {
		p.begin()
	}
}

// wait is called before size bytes are mapped. It returns once they fit below the
// ceiling and the mapped bytes are within the allowance, or after two collections: the
// first may have begun too early.
func (p *pacer) wait(size uint64) {
	for range 2 {
		p.mu.Lock()
		if p.mapped-p.live <= p.allowance() && (p.ceiling == 0 || p.mapped+size <= p.ceiling) {
			p.mu.Unlock()
			return
		}
		running := p.begin()
		p.mu.Unlock()
		<-running
	}
}

// begin starts a collection unless one is running, and returns a channel that is
// closed at its end. The caller holds p.mu.
func (p *pacer) begin() <-chan struct{} {
	if p.running == nil {
		p.running, p.fresh = make(chan struct{}), 0
		go p.run()
	}
	return p.running
}

// run collects, and unmaps the regions whose Mappings are then unreachable. The weak
// pointers show that at once; cleanups, which unmap after ordinary collections, run
// some time later.
func (p *pacer) run() {
	p.collect()
	p.mu.Lock()
	var dead []*region
	for r, of := range p.regions {
		if of.Value() == nil {
			dead = append(dead, r)
		}
	}
	p.mu.Unlock()
	for _, r := range dead {
		p.free(r)
	}
	heap := p.heapLive()
	p.mu.Lock()
	p.live, p.heap = p.mapped-min(p.mapped, p.fresh), heap
	close(p.running)
	p.running = nil
	p.mu.Unlock()
}

// free unmaps a region, once.
func (p *pacer) free(r *region) error {
	p.mu.Lock()
	_, mapped := p.regions[r]
	delete(p.regions, r)
	p.mu.Unlock()
	if !mapped {
		return nil
	}
	err := r.unmap(r.bytes) // slow: some 100 ms for a GiB
	p.mu.Lock()
	p.count(0, uint64(len(r.bytes)))
	p.mu.Unlock()
	return err
}

// count updates the number of mapped bytes. The caller holds p.mu.
func (p *pacer) count(more, less uint64) {
	p.mapped += more
	p.mapped -= less
	p.live = min(p.live, p.mapped)
	if p.changed != nil {
		p.changed(p.mapped)
	}
}
