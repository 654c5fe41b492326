package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
)

// batchFilter has the methods that the comparison of one goroutine with two calls,
// always with thousands of keys at a time.
type batchFilter interface {
	AddHashes(hashes []uint64, isNew []bool) int
	ContainsHashes(hashes []uint64, found []bool) int
	Clear()
}

const (
	scaleAdds    = 10_000_000 // at most n; they fill the filter
	scaleQueries = 2_000_000
	scaleBatch   = 4096
)

// Targets for two goroutines at scaleTargetKeys, as multiples of the speed of one.
const (
	scaleTargetKeys    = 1e8
	scaleTargetAdds    = 1.5
	scaleTargetQueries = 1.7
)

// writeScale measures one goroutine and two on one filter, by the wall clock, in
// alternating rounds, and writes a table.
func writeScale(out io.Writer, opt options, name string, make func(n uint64, p float64) batchFilter) {
	if runtime.GOMAXPROCS(0) < 2 {
		fmt.Fprintln(out, "Two goroutines are not compared with one: there is one core.")
		return
	}
	fmt.Fprintf(out, "%s, batches of hashes: nanoseconds per key by the wall clock, medians, and how many times faster two goroutines\n", name)
	fmt.Fprintf(out, "are than one. The targets at n = %s: adds %gx, queries %gx. The last column is the same ratio by the CPU time of the\n", sizeName(scaleTargetKeys), scaleTargetAdds, scaleTargetQueries)
	fmt.Fprintf(out, "busier goroutine: if it is higher, other programs used a core.\n\n")
	fmt.Fprintln(out, "| n | operation | one goroutine | two | faster | verdict | by CPU time |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|")
	for _, n := range opt.sizesOr(1e5, 1e7, 1e8) {
		s := measureScale(n, opt, make)
		for op := add; op <= miss; op++ {
			one, two := median(s[op][0].wall), median(s[op][1].wall)
			verdict, asked := "-", scaleTargetQueries
			if op == add {
				asked = scaleTargetAdds
			}
			if n == scaleTargetKeys {
				verdict = "met"
				if one/two < asked {
					verdict = "**missed**"
				}
			}
			fmt.Fprintf(out, "| %s | %v | %s | %s | %.2fx | %s | %.2fx |\n", sizeName(n), op,
				significant(one), significant(two), one/two, verdict, median(s[op][0].cpu)/median(s[op][1].cpu))
		}
	}
	fmt.Fprintln(out)
}

// scaleTimes are nanoseconds per key, by operation and number of goroutines minus
// one.
type scaleTimes [3][2]times

func measureScale(n uint64, opt options, make func(n uint64, p float64) batchFilter) (t scaleTimes) {
	f := make(n, opt.rate)
	adds := min(n, scaleAdds)
	before := n - adds
	fresh := newMaterial(hashed, span(freshIDs, adds)).hashes
	misses := newMaterial(hashed, span(missIDs, scaleQueries)).hashes
	hits := newMaterial(hashed, span(freshIDs, scaleQueries)).hashes
	random := rand.New(rand.NewPCG(n, 2))
	for i := range hits {
		hits[i] = fresh[random.IntN(len(fresh))]
	}
	rounds := opt.rounds
	if rounds == 0 {
		rounds = 7
	}
	for round := range 2 * rounds {
		workers := 1 + round%2
		progress("n = %s: %d goroutines, round %d of %d", sizeName(n), workers, round/2+1, rounds)
		f.Clear()
		var chunk material
		for id := uint64(0); id < before; id += chunkKeys {
			chunk.set(hashed, span(prefillIDs+id, min(chunkKeys, before-id)))
			f.AddHashes(chunk.hashes, nil)
		}
		take := func(op operation, hashes []uint64, do func([]uint64, []bool) int) {
			cpu, wall := inParallel(workers, hashes, do)
			t[op][workers-1].add(float64(cpu), float64(wall), float64(len(hashes)))
		}
		take(add, fresh, f.AddHashes)
		take(hit, hits, f.ContainsHashes)
		take(miss, misses, f.ContainsHashes)
		runtime.GC()
	}
	progress("")
	return t
}

// inParallel gives each worker its share of the hashes, in batches. It returns, in
// nanoseconds, the largest CPU time of any worker and the wall-clock time.
func inParallel(workers int, hashes []uint64, do func([]uint64, []bool) int) (cpu int64, wall time.Duration) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	spent := make([]int64, workers)
	for w := range workers {
		part := hashes[w*len(hashes)/workers : (w+1)*len(hashes)/workers]
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			answers := make([]bool, scaleBatch)
			ready.Done()
			<-start
			began := threadTime()
			for len(part) > 0 {
				k := min(scaleBatch, len(part))
				do(part[:k], answers[:k])
				part = part[k:]
			}
			spent[w] = threadTime() - began
		})
	}
	ready.Wait()
	began := time.Now()
	close(start)
	done.Wait()
	wall = time.Since(began)
	return slices.Max(spent), wall
}
