package memory

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"weak"
)

// Large filters lie outside Go's heap, where its collector does not see them: to
// it a filter of 1 GiB is an object of 300 bytes, and a program that drops one
// after the other without Close would fill the machine before the collector has a
// reason to run. So the mapped bytes are counted here, and paced as Go paces its
// heap with GOGC=100: when what was mapped since the last collection comes to as
// much as was left after it, the collector runs, and what it finds unreachable is
// unmapped. A program that closes its filters never gets that far.
//
// The collection begins in the background at three quarters of that, so that in
// normal use nobody waits; once it is all used up, mapping more waits for its end.

// floorBytes is what may be mapped between two collections, however little was left
// after the last one. Mapping and filling 64 MiB takes some 30 ms, a collection of a
// small heap less than one.
const floorBytes = 64 << 20

// region is memory that is mapped. The cleanup of its Mapping refers to it, so it
// does not refer to that.
type region struct {
	bytes []byte
	unmap func([]byte) error
}

// pacer counts regions of anonymous memory, and decides when to collect.
type pacer struct {
	mu      sync.Mutex
	regions map[*region]weak.Pointer[Mapping] // all that are mapped

	mapped uint64 // bytes, until they are unmapped
	live   uint64 // those left after the last collection: at most this many are in use
	fresh  uint64 // those mapped since a collection began, of which it knows nothing
	heap   uint64 // what the last collection left in Go's heap

	ceiling uint64 // see SetCeiling; 0: there is none

	running  chan struct{} // closed when the collection under way has ended; nil: there is none
	collect  func()        // runtime.GC
	heapLive func() uint64
	changed  func(mapped uint64) // see OnChange; nil: nobody wants to know
}

var pace = newPacer(runtime.GC, liveHeap)

func newPacer(collect func(), heapLive func() uint64) *pacer {
	return &pacer{regions: map[*region]weak.Pointer[Mapping]{}, collect: collect, heapLive: heapLive}
}

// liveHeap is how many bytes the last collection found in use in Go's heap.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// Mapped is how many bytes of memory for filters are mapped now, outside Go's heap:
// those in use, and those that nobody uses but that are not unmapped yet.
func Mapped() uint64 {
	pace.mu.Lock()
	defer pace.mu.Unlock()
	return pace.mapped
}

// OnChange calls back with Mapped whenever it has changed, and once now. The
// function must be quick and must not map memory. There is one; nil ends it.
func OnChange(changed func(mapped uint64)) {
	pace.mu.Lock()
	defer pace.mu.Unlock()
	if pace.changed = changed; changed != nil {
		changed(pace.mapped)
	}
}

// SetCeiling asks for at most this many mapped bytes, used or not; zero removes the
// ceiling. Mapping more waits for a collection first, and then maps: the ceiling
// refuses nothing.
func SetCeiling(bytes uint64) {
	pace.mu.Lock()
	defer pace.mu.Unlock()
	pace.ceiling = bytes
}

// allowance is how many bytes may be mapped beyond those that are in use. Where Go's
// heap is large a collection is dear, so there may be as many as lie there.
func (p *pacer) allowance() uint64 { return max(p.live, p.heap, floorBytes) }

// add counts the region of a Mapping, and begins a collection if it is time.
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

// wait is called before this number of bytes is mapped. It returns when there is room for
// them below the ceiling and what is mapped is within the allowance, or after two
// collections: the first may have begun too early.
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

// begin starts a collection unless one is under way, and returns what is closed at
// its end. p.mu is held.
func (p *pacer) begin() <-chan struct{} {
	if p.running == nil {
		p.running, p.fresh = make(chan struct{}), 0
		go p.run()
	}
	return p.running
}

// run collects, and unmaps what is unreachable then. The weak pointers say so at
// once; the cleanups, which unmap what an ordinary collection finds, come at a time
// of their own.
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
	err := r.unmap(r.bytes) // takes long: some 100 ms for a GiB
	p.mu.Lock()
	p.count(0, uint64(len(r.bytes)))
	p.mu.Unlock()
	return err
}

// count corrects the mapped bytes. p.mu is held.
func (p *pacer) count(more, less uint64) {
	p.mapped += more
	p.mapped -= less
	p.live = min(p.live, p.mapped)
	if p.changed != nil {
		p.changed(p.mapped)
	}
}
