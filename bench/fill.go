package main

import (
	"runtime"
	"runtime/debug"
	"time"
)

// refill replaces the entrant's filter by a new one that holds the prefill keys:
// c.prefilled of them, or n in a static filter.
func (c *comparison) refill(e *entrant) {
	if e.contender != nil && e.close != nil {
		e.close()
	}
	e.contender = e.make(c.n, c.p)
	e.load = c.prefilled
	if e.build != nil {
		e.load = c.n
	}
	var ids [kinds][]uint64
	flush := func() {
		for kind := range kinds {
			c.addIDs(e, kind, ids[kind])
			ids[kind] = ids[kind][:0]
		}
	}
	for id := range e.load {
		kind := kindOf(id)
		ids[kind] = append(ids[kind], prefillIDs+id)
		if id%chunkKeys == chunkKeys-1 {
			flush()
		}
	}
	flush()
	if e.build != nil {
		wall, cpu := time.Now(), threadTime()
		e.build()
		e.buildTime.add(float64(threadTime()-cpu), float64(time.Since(wall)), float64(e.load))
	}
}

// topUp adds keys until the filter has n.
func (c *comparison) topUp(e *entrant) {
	var ids []uint64
	for e.load < c.n {
		ids = appendSpan(ids[:0], topUpIDs+e.load, min(chunkKeys, c.n-e.load))
		c.addIDs(e, hashed, ids)
		e.load += uint64(len(ids))
	}
}

// addIDs adds the ids as keys of the given kind, or of a kind that the entrant
// accepts, with its fastest call.
func (c *comparison) addIDs(e *entrant, kind kind, ids []uint64) {
	for _, call := range []call{{kind, true}, {kind, false}, {hashed, true}, {hashed, false}, {key16, false}} {
		if add := e.adder(call); add != nil {
			c.scratch.set(call.kind, ids)
			add(c.scratch)
			return
		}
	}
}

// falsePositives returns the fraction of absent keys that the entrant finds.
func falsePositives(e *entrant) float64 {
	for _, call := range []call{{key16, true}, {key16, false}, {hashed, false}} {
		if count := e.counter(call); count != nil {
			found := 0
			for first := uint64(0); first < rateKeys; first += chunkKeys {
				found += count(newMaterial(call.kind, span(rateIDs+first, min(chunkKeys, rateKeys-first))))
			}
			return float64(found) / rateKeys
		}
	}
	return 1 // the bare touch, which answers nothing
}

// release drops the filter. It records the filter's size if only the heap knows it.
func (e *entrant) release() {
	var before, after runtime.MemStats
	bits := e.bits
	if bits == 0 {
		runtime.GC()
		runtime.ReadMemStats(&before)
	}
	if e.close != nil {
		e.close()
	}
	e.contender = nil
	debug.FreeOSMemory() // collects first
	if bits == 0 {
		runtime.ReadMemStats(&after)
		bits = 8 * float64(before.HeapAlloc-after.HeapAlloc)
	}
	e.contender = &contender{bits: bits}
}
