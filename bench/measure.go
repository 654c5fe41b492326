package main

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// The method. All contenders of one size are in memory together, with 0.8 n keys in
// each. Then come the rounds. Each round measures every kind of key and every
// operation once, and every contender once for each of those, both in random order,
// so that disturbances affect all contenders alike. A figure is the median over the
// rounds.
//
//   - Adds: fresh keys, until the filter has n; then a new filter replaces it.
//   - Hits and misses: in a filter with n keys. Hits are random present keys, misses
//     were never added.
//   - The rate: over a million keys that were never added.
//
// The clock is the thread's CPU time; the wall-clock time is recorded as well. Before
// the clock starts, keys are laid out in order, and a filter that may fit in a cache
// is warmed up.
const (
	maxKeys   = 500_000 // at most, in one measurement
	chunkKeys = 8192    // while filling
	warmKeys  = 200_000
	warmBits  = 8 * 64 << 20 // a larger filter fits in no cache
	rateKeys  = 1_000_000
)

// An operation is one of the things that are timed.
type operation int

const (
	add operation = iota
	hit
	miss
)

func (op operation) String() string { return [...]string{"add", "hit", "miss"}[op] }

// A cell is one figure of a contender.
type cell struct {
	call call
	op   operation
}

// times are nanoseconds per key, with one element per round.
type times struct{ cpu, wall []float64 }

func (t *times) add(cpu, wall, keys float64) {
	t.cpu = append(t.cpu, cpu/keys)
	t.wall = append(t.wall, wall/keys)
}

// An entrant is a library at one size, with its measurements.
type entrant struct {
	library
	*contender
	load      uint64
	times     map[cell]*times
	buildTime times // for static filters
	rate      float64
}

// result is a finished comparison at one size. The first entrant is the
// baseline.
type result struct {
	n        uint64
	p        float64
	entrants []*entrant
}

// A comparison is a result that is being measured.
type comparison struct {
	result
	rounds    int
	prefilled uint64
	addKeys   uint64 // per measurement
	freshID   uint64
	shuffle   *rand.Rand
	hits      [kinds]material
	misses    [kinds]material
	fresh     [2]material // for calls one by one, and for batches
	scratch   material    // for filling
}

func measure(n uint64, opt options, base library, rivals []library) *result {
	runtime.LockOSThread() // the clock counts this thread only
	defer runtime.UnlockOSThread()
	c := &comparison{rounds: opt.rounds, freshID: freshIDs, shuffle: rand.New(rand.NewPCG(n, 1))}
	c.n, c.p = n, opt.rate
	if c.rounds == 0 {
		c.rounds = 5
		if n < 1e6 {
			c.rounds = 15
		} else if n < 1e8 {
			c.rounds = 9
		}
	}
	c.prefilled = n / 5 * 4
	reserve := n - c.prefilled
	c.addKeys = min(max(reserve/uint64(len(calls)*c.rounds), 10_000), reserve, maxKeys)
	queries := min(max(n/10, 25_000), maxKeys)
	for kind := range kinds {
		c.hits[kind] = newMaterial(kind, present(kind, c.prefilled, queries))
		c.misses[kind] = newMaterial(kind, span(missIDs, max(queries, 100_000)))
	}
	for _, l := range append([]library{base}, rivals...) {
		progress("n = %s: filling %s", sizeName(n), l.name)
		e := &entrant{library: l, times: map[cell]*times{}}
		c.refill(e)
		c.entrants = append(c.entrants, e)
		debug.FreeOSMemory() // also collects garbage
	}
	c.runRounds(add)
	for _, e := range c.entrants {
		c.topUp(e)
	}
	runtime.GC()
	c.runRounds(hit, miss)
	for _, e := range c.entrants {
		progress("n = %s: the rate of %s", sizeName(n), e.name)
		e.rate = falsePositives(e)
	}
	for _, e := range c.entrants {
		e.release()
	}
	progress("")
	return &c.result
}

// runRounds measures the operations in rounds.
func (c *comparison) runRounds(ops ...operation) {
	type part struct {
		kind kind
		op   operation
	}
	var parts []part
	for kind := range kinds {
		for _, op := range ops {
			parts = append(parts, part{kind, op})
		}
	}
	for round := range c.rounds {
		progress("n = %s: %v, round %d of %d", sizeName(c.n), ops, round+1, c.rounds)
		c.shuffle.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		for _, p := range parts {
			switch p.op {
			case add:
				c.timeAdds(p.kind)
			case hit:
				c.timeQueries(p.kind, hit, c.hits[p.kind])
			case miss:
				c.timeQueries(p.kind, miss, c.misses[p.kind])
			}
		}
	}
}

// turn is one entrant and one way to call it.
type turn struct {
	*entrant
	call call
}

// turns are all ways to call the entrants on keys of the kind, in random order.
func (c *comparison) turns(kind kind) (turns []turn) {
	for _, e := range c.entrants {
		turns = append(turns, turn{e, call{kind, false}}, turn{e, call{kind, true}})
	}
	c.shuffle.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	return turns
}

func (c *comparison) timeAdds(kind kind) {
	// A filter is called in up to two ways, each with keys that are new to it.
	for i := range c.fresh {
		c.fresh[i].set(kind, span(c.freshID, c.addKeys))
		c.freshID += c.addKeys
	}
	for _, t := range c.turns(kind) {
		if t.adder(t.call) == nil || t.build != nil {
			continue
		}
		if t.load+c.addKeys > c.n {
			c.refill(t.entrant)
		}
		c.warm(t.entrant)
		run := t.adder(t.call)
		keys := c.fresh[0]
		if t.call.batch {
			keys = c.fresh[1]
		}
		t.clock(cell{t.call, add}, keys.len(), func() { run(keys) })
		t.load += c.addKeys
	}
}

func (c *comparison) timeQueries(kind kind, op operation, keys material) {
	for _, t := range c.turns(kind) {
		run := t.counter(t.call)
		if run == nil {
			continue
		}
		c.warm(t.entrant)
		found := 0
		t.clock(cell{t.call, op}, keys.len(), func() { found = run(keys) })
		if op == hit && found != keys.len() {
			log.Fatalf("%s finds only %d of %d keys that were added, %v", t.name, found, keys.len(), t.call)
		}
	}
}

// clock times run, which processes the given number of keys.
func (e *entrant) clock(cell cell, keys int, run func()) {
	t := e.times[cell]
	if t == nil {
		t = &times{}
		e.times[cell] = t
	}
	wall, cpu := time.Now(), threadTime()
	run()
	t.add(float64(threadTime()-cpu), float64(time.Since(wall)), float64(keys))
}

// warm looks up present keys, because the other filters have evicted this one from
// the caches.
func (c *comparison) warm(e *entrant) {
	if e.bits > warmBits {
		return
	}
	for _, call := range []call{{hashed, true}, {hashed, false}, {key16, false}} {
		if count := e.counter(call); count != nil {
			count(c.hits[call.kind].first(warmKeys))
			return
		}
	}
}

// median is the cell's figure, or 0 if it was not measured.
func (e *entrant) median(cell cell) float64 {
	if t := e.times[cell]; t != nil {
		return median(t.cpu)
	}
	return 0
}

func median(x []float64) float64 { return quantile(x, 0.5) }

func quantile(x []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	at := q * float64(len(sorted)-1)
	low := sorted[int(at)]
	high := sorted[min(int(at)+1, len(sorted)-1)]
	return low + (high-low)*(at-float64(int(at)))
}

// progress replaces a status line on standard error if that is a terminal.
func progress(format string, args ...any) {
	if info, err := os.Stderr.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "\r\x1b[K"+format, args...)
}
