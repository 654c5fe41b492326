package main

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"runtime"
	"runtime/debug"

	"github.com/bloomery/bloom"
	linvon "github.com/linvon/cuckoo-filter"
	boom "github.com/tylertreat/BoomFilters"
)

// Filters from which keys can be removed, compared by a loop of their own: n keys stay in
// each, and each round adds fresh keys, looks them and strangers up, and removes the fresh
// ones. All contenders of a size are measured in each round, in random order, as in
// measure.go.

// A remover is such a filter. Its loops process many keys each, so that the calls compile as
// a user's would.
type remover struct {
	name   string
	bits   func() float64 // of memory, now
	add    func(keys [][]byte)
	count  func(keys [][]byte) int
	remove func(keys [][]byte)
	times  [4]times
	rate   float64
}

const linvonName = "linvon/cuckoo-filter"

// The steps of a round.
var removerSteps = [...]string{"add", "hit", "miss", "delete"}

// oneByOne returns the loops over calls of one key.
func oneByOne(name string, bits func() float64, add, contains, remove func(key []byte) bool) *remover {
	each := func(keys [][]byte, call func(key []byte) bool) (count int) {
		for _, key := range keys {
			if call(key) {
				count++
			}
		}
		return count
	}
	return &remover{
		name: name, bits: bits,
		add:    func(keys [][]byte) { each(keys, add) },
		count:  func(keys [][]byte) int { return each(keys, contains) },
		remove: func(keys [][]byte) { each(keys, remove) },
	}
}

// ourCuckoo is a Cuckoo, called one key at a time or in batches.
func ourCuckoo(n uint64, name string, c bloom.CuckooConfig, batch bool) *remover {
	c.Keys = n
	f := must(c.New())
	r := oneByOne(name, func() float64 { return 8 * float64(f.Bytes()) },
		func(key []byte) bool { return f.Insert(key) == nil }, f.Contains, f.Remove)
	if batch {
		r.name += ", batch"
		r.inBatches(f)
	}
	return r
}

// inBatches replaces the loops over calls of one key by calls of many.
func (r *remover) inBatches(f interface {
	AddMany(keys [][]byte, isNew []bool) int
	ContainsMany(keys [][]byte, found []bool) int
	RemoveMany(keys [][]byte, removed []bool) int
}) {
	r.add = func(keys [][]byte) { f.AddMany(keys, nil) }
	r.count = func(keys [][]byte) int { return f.ContainsMany(keys, nil) }
	r.remove = func(keys [][]byte) { f.RemoveMany(keys, nil) }
}

// The shape of most cuckoo filters: four slots of a byte in a bucket, and up to 500 moves.
var fourSlots = bloom.CuckooConfig{BucketSize: 4, Iterations: 500}

// cuckooRivals are Cuckoo and the cuckoo filters of others, for n keys.
func cuckooRivals(n uint64) []*remover {
	l := linvon.NewFilter(4, 8, uint(n), linvon.TableTypeSingle)
	all := []*remover{
		ourCuckoo(n, "Cuckoo", fourSlots, false),
		ourCuckoo(n, "Cuckoo", fourSlots, true),
		oneByOne(linvonName, func() float64 { return 8 * float64(l.SizeInBytes()) }, l.Add, l.Contain, l.Delete),
	}
	if n <= 1e6 { // for 1e7 keys it would take 13 GB
		b := boom.NewCuckooFilter(uint(n), 0.03)
		bits := func() float64 { return float64(b.Buckets()) * 4 * 8 * 24 } // of the headers of its slices
		all = append(all, oneByOne("tylertreat/BoomFilters", bits,
			func(key []byte) bool { return b.Add(key) == nil }, b.Test, b.TestAndRemove))
	}
	return all
}

// removers are our filters from which keys can be removed, for n keys: Cuckoo in two shapes,
// each before a Counting of the rate that it has then.
func removers(n uint64) (all []*remover) {
	for _, shape := range []struct {
		name   string
		config bloom.CuckooConfig
	}{
		{"Cuckoo, RedisBloom's defaults", bloom.CuckooConfig{}},
		{"Cuckoo, 4 slots, 500 moves", fourSlots},
	} {
		p := cuckooRate(n, shape.config)
		f := must(bloom.NewCounting(n, p))
		counting := &remover{name: fmt.Sprintf("Counting, p = %.4f", p), bits: func() float64 { return 8 * float64(f.Bytes()) }}
		counting.inBatches(f)
		all = append(all, ourCuckoo(n, shape.name, shape.config, true), counting)
	}
	return all
}

// cuckooRate is the rate of a Cuckoo with n keys.
func cuckooRate(n uint64, c bloom.CuckooConfig) float64 {
	c.Keys = n
	f := must(c.New())
	defer f.Close()
	var keys material
	for from := uint64(0); from < n; from += chunkKeys {
		keys.set(hashed, span(prefillIDs+from, min(chunkKeys, n-from)))
		f.AddHashes(keys.hashes, nil)
	}
	return f.Report().Rate
}

// compareRemovers measures contenders with n keys in each.
func compareRemovers(n uint64, rounds int, all []*remover) {
	runtime.LockOSThread() // the clock counts this thread only
	defer runtime.UnlockOSThread()
	shuffle := rand.New(rand.NewPCG(n, 2))
	if rounds == 0 {
		rounds = 15
	}
	step := max(min(n/10, maxKeys), 10_000)
	for _, r := range all {
		progress("n = %s: filling %s", sizeName(n), r.name)
		var keys material
		for from := uint64(0); from < n-step; from += chunkKeys {
			keys.set(key16, span(prefillIDs+from, min(chunkKeys, n-step-from)))
			r.add(keys.keys)
		}
		debug.FreeOSMemory() // also collects garbage
	}
	fresh, missIDs := freshIDs, missIDs
	var present, absent material
	for round := range rounds {
		progress("n = %s: round %d of %d", sizeName(n), round+1, rounds)
		present.set(key16, span(fresh, step))
		absent.set(key16, span(missIDs, step))
		fresh, missIDs = fresh+step, missIDs+step
		for _, i := range shuffle.Perm(len(all)) {
			r := all[i]
			r.count(absent.keys[:min(len(absent.keys), 10_000)]) // the other filters have evicted it from the caches
			found := 0
			for s, run := range []func(){
				func() { r.add(present.keys) },
				func() { found = r.count(present.keys) },
				func() { r.rate += float64(r.count(absent.keys)) / float64(step) / float64(rounds) },
				func() { r.remove(present.keys) },
			} {
				cpu := threadTime()
				run()
				r.times[s].add(float64(threadTime()-cpu), 0, float64(step))
			}
			if found != len(present.keys) {
				log.Fatalf("%s finds only %d of %d keys that were added", r.name, found, len(present.keys))
			}
		}
	}
	progress("")
}

// writeCuckoo compares Cuckoo with the cuckoo filters of others, and with Counting.
func writeCuckoo(out io.Writer, opt options) {
	removerHead(out, "Cuckoo filters of a byte per slot. In brackets: how many times as long as Cuckoo, one key at a time / in a batch.")
	for _, n := range opt.sizesOr(1e5, 1e7) {
		all := cuckooRivals(n)
		compareRemovers(n, opt.rounds, all)
		for i, r := range all {
			r.write(out, n, func(figure func(*remover) float64, memory bool) string {
				if i < 2 || memory {
					return ""
				}
				return fmt.Sprintf(" (%sx / %sx)", significant(figure(r)/figure(all[0])), significant(figure(r)/figure(all[1])))
			})
		}
	}
	fmt.Fprintln(out)
	removerHead(out, "Filters from which keys can be removed, in batches. In brackets: the share of what a Counting of the same rate takes, the row below.")
	for _, n := range opt.sizesOr(1e5, 1_900_000, 1e7) {
		all := removers(n)
		compareRemovers(n, opt.rounds, all)
		for i, r := range all {
			r.write(out, n, func(figure func(*remover) float64, _ bool) string {
				if i%2 == 1 {
					return ""
				}
				return fmt.Sprintf(" (%.2fx)", figure(r)/figure(all[i+1]))
			})
		}
	}
	fmt.Fprintln(out)
}

func removerHead(out io.Writer, head string) {
	fmt.Fprintf(out, "%s Nanoseconds per 16-byte key, CPU time of one core, medians of interleaved rounds.\n\n", head)
	fmt.Fprintf(out, "| n | filter | bits per key | rate | add | hit | miss | delete |\n|---|---|---|---|---|---|---|---|\n")
}

// write writes the filter's row. ratio returns the text in brackets for a figure, which may
// be that of the memory.
func (r *remover) write(out io.Writer, n uint64, ratio func(figure func(*remover) float64, memory bool) string) {
	bits := func(r *remover) float64 { return r.bits() }
	fmt.Fprintf(out, "| %s | %s | %.1f%s | %.2f%% |", sizeName(n), r.name, r.bits()/float64(n), ratio(bits, true), 100*r.rate)
	for s := range removerSteps {
		ns := func(r *remover) float64 { return median(r.times[s].cpu) }
		fmt.Fprintf(out, " %s%s |", significant(ns(r)), ratio(ns, false))
	}
	fmt.Fprintln(out)
}
