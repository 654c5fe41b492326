package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/cespare/xxhash/v2"
	"github.com/greatroar/blobloom"
)

// Keys of the lengths that text has, at one size of filter: what hashing adds to a batch,
// what a secret adds, and single calls beside blobloom with XXH64. The other tables have
// medians; here every figure is the minimum of the rounds, in which all ways take turns.

// keyLengths are the lengths of a hash, a path, a short URL and a long one.
var keyLengths = []int{16, 23, 40, 100}

// A way is one thing that is timed over a list of keys.
type way struct {
	name string
	run  func()
	ns   float64 // per key, the minimum
}

// The ways, by number.
const (
	emptyCall = iota
	hashAlone
	keyedHash
	readLine
	writeLines
	addHashes
	addMany
	addKeyed
	hitHashes
	hitMany
	hitKeyed
	missHashes
	missMany
	missKeyed
	addOne
	addBlob
	hitOne
	hitBlob
	missOne
	missBlob
	ways
)

// These are the limits for n = 1e5, 1e7, 1e8: a batch of keys against one of hashes, a
// keyed one against one that is not, and how many times faster than blobloom a call is.
var (
	hashingLimits = map[uint64]float64{1e5: 1.8, 1e7: 1.6, 1e8: 1.25}
	secretLimits  = map[uint64]float64{1e5: 2, 1e7: 1.8, 1e8: 1.4}
	singleLimits  = map[uint64]float64{1e5: 1.6, 1e7: 1.5, 1e8: 1.3}
)

//go:noinline
func nothing(f *bloom.Filter, key []byte) bool { return f != nil }

// writeKeys measures every size and length and writes three tables.
func writeKeys(out io.Writer, opt options) {
	var floors, batches, singles []string
	for _, n := range opt.sizesOr(1e5, 1e7) {
		for _, length := range keyLengths {
			progress("n = %s: keys of %d bytes", sizeName(n), length)
			w := measureKeys(n, length, opt)
			head := fmt.Sprintf("| %s | %d |", sizeName(n), length)
			floors = append(floors, fmt.Sprintf("%s %s | %s | %s | %s | %s |", head, significant(w[emptyCall].ns), significant(w[hashAlone].ns),
				significant(w[keyedHash].ns), significant(w[readLine].ns), significant(w[writeLines].ns)))
			for i, op := range []operation{add, hit, miss} {
				hashes, many, keyed := w[addHashes+3*i].ns, w[addMany+3*i].ns, w[addKeyed+3*i].ns
				batches = append(batches, fmt.Sprintf("%s %v | %s | %s | %s | %.2f | %s | %s | %.2f | %s |", head, op,
					significant(hashes), significant(many), atMost(many/hashes, hashingLimits[n]), (hashes+w[hashAlone].ns)/hashes,
					significant(keyed), atMost(keyed/many, secretLimits[n]), (hashes+w[keyedHash].ns)/many, verdict(hashes, many, keyed, n)))
				one, blob := w[addOne+2*i].ns, w[addBlob+2*i].ns
				met := "-"
				if asked := singleLimits[n]; asked > 0 && blob/one >= asked {
					met = "met"
				} else if asked > 0 {
					met = "**missed**"
				}
				singles = append(singles, fmt.Sprintf("%s %v | %s | %s | %.2fx | %gx | %s |", head, op, significant(one), significant(blob), blob/one, singleLimits[n], met))
			}
		}
	}
	progress("")
	fmt.Fprintf(out, "Nanoseconds per key, CPU time of one core, p = %g, minima of interleaved rounds. The floors:\n\n", opt.rate)
	writeLinesOf(out, "| n | bytes | empty call | hash alone, batch | SipHash alone, batch | read a line | write two lines |", floors)
	fmt.Fprintf(out, "Batches. The floor is the batch of hashes and the hash alone, one after the other:\n\n")
	writeLinesOf(out, "| n | bytes | operation | hashes | keys | keys / hashes | floor | keyed | keyed / keys | floor | verdict |", batches)
	fmt.Fprintf(out, "One key at a time, beside blobloom with XXH64:\n\n")
	writeLinesOf(out, "| n | bytes | operation | Filter | blobloom | faster | asked | verdict |", singles)
}

// atMost is a ratio with its limit, if there is one.
func atMost(ratio, limit float64) string {
	if limit == 0 {
		return fmt.Sprintf("%.2f", ratio)
	}
	return fmt.Sprintf("%.2f (at most %g)", ratio, limit)
}

func verdict(hashes, many, keyed float64, n uint64) string {
	hashing, secret := hashingLimits[n], secretLimits[n]
	switch {
	case hashing == 0:
		return "-"
	case many <= hashing*hashes && keyed <= secret*many:
		return "met"
	case many <= hashing*hashes:
		return "**missed: keyed**"
	case keyed <= secret*many:
		return "**missed: keys**"
	}
	return "**missed: keys, keyed**"
}

func writeLinesOf(out io.Writer, header string, rows []string) {
	fmt.Fprintln(out, header)
	fmt.Fprintln(out, strings.Repeat("|---", strings.Count(header, "|")-1)+"|")
	for _, row := range rows {
		fmt.Fprintln(out, row)
	}
	fmt.Fprintln(out)
}

// keyList returns n random keys that lie in order in memory.
func keyList(random *rand.Rand, n, length int) [][]byte {
	arena := make([]byte, n*length)
	for i := range arena {
		arena[i] = byte(random.Uint32())
	}
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = arena[i*length:][:length:length]
	}
	return keys
}

// measureKeys fills a filter, a keyed one and blobloom with n keys, and times every way.
func measureKeys(n uint64, length int, opt options) *[ways]way {
	runtime.LockOSThread() // the clock counts this thread only
	defer runtime.UnlockOSThread()
	random := rand.New(rand.NewPCG(n, uint64(length)))
	queries := int(min(max(n/10, 25_000), maxKeys))
	present, absent := keyList(random, queries, length), keyList(random, queries, length)
	secret := []byte("a secret of 16 b")
	f := must(bloom.Config{Keys: n, Rate: opt.rate}.New())
	keyed := must(bloom.Config{Keys: n, Rate: opt.rate, Secret: secret}.New())
	blobs := blobloom.NewOptimized(blobloom.Config{Capacity: n, FPRate: opt.rate})
	touch := newTouch(n, opt.rate)
	defer f.Close()
	defer keyed.Close()
	defer touch.close()
	f.AddMany(present, nil)
	keyed.AddMany(present, nil)
	for _, key := range present {
		blobs.Add(xxhash.Sum64(key))
	}
	fill := make([]uint64, chunkKeys)
	for left := int64(n) - int64(queries); left > 0; left -= chunkKeys {
		for i := range fill {
			fill[i] = random.Uint64()
		}
		f.AddHashes(fill, nil)
		keyed.AddHashes(fill, nil)
		for _, h := range fill {
			blobs.Add(h)
		}
	}
	hashesOf := func(keys [][]byte) []uint64 {
		hashes := make([]uint64, len(keys))
		kernel.XXH3Bytes(hashes, keys, 0)
		return hashes
	}
	presentHashes, absentHashes, scratch := hashesOf(present), hashesOf(absent), make([]uint64, 4096)
	answers, sink := make([]bool, queries), 0
	chunks := func(do func(keys [][]byte)) func() {
		return func() {
			for keys := absent; len(keys) > 0; keys = keys[min(len(keys), len(scratch)):] {
				do(keys[:min(len(keys), len(scratch))])
			}
		}
	}
	each := func(keys [][]byte, do func(keys [][]byte) int) func() { return func() { sink += do(keys) } }
	one := newFilterCalls(f)
	w := &[ways]way{
		emptyCall: {name: "an empty call", run: each(absent, func(keys [][]byte) (n int) {
			for _, key := range keys {
				if nothing(f, key) {
					n++
				}
			}
			return n
		})},
		hashAlone:  {run: chunks(func(keys [][]byte) { kernel.XXH3Bytes(scratch, keys, 0) })},
		keyedHash:  {run: chunks(func(keys [][]byte) { kernel.SipHashBytes(scratch, keys, 1, 2) })},
		readLine:   {run: func() { sink += touch.hashBatch.count(absentHashes) }},
		writeLines: {run: func() { touch.hashBatch.add(absentHashes) }},
		addHashes:  {run: func() { f.AddHashes(presentHashes, answers) }},
		addMany:    {run: func() { f.AddMany(present, answers) }},
		addKeyed:   {run: func() { keyed.AddMany(present, answers) }},
		hitHashes:  {run: func() { f.ContainsHashes(presentHashes, answers) }},
		hitMany:    {run: func() { f.ContainsMany(present, answers) }},
		hitKeyed:   {run: func() { keyed.ContainsMany(present, answers) }},
		missHashes: {run: func() { f.ContainsHashes(absentHashes, answers) }},
		missMany:   {run: func() { f.ContainsMany(absent, answers) }},
		missKeyed:  {run: func() { keyed.ContainsMany(absent, answers) }},
		addOne:     {run: func() { one.add(present) }},
		hitOne:     {run: each(present, one.count)},
		missOne:    {run: each(absent, one.count)},
		addBlob: {run: func() {
			for _, key := range present {
				blobs.Add(xxhash.Sum64(key))
			}
		}},
	}
	find := func(keys [][]byte) (n int) {
		for _, key := range keys {
			if blobs.Has(xxhash.Sum64(key)) {
				n++
			}
		}
		return n
	}
	w[hitBlob].run, w[missBlob].run = each(present, find), each(absent, find)
	rounds := opt.rounds
	if rounds == 0 {
		rounds = 15
	}
	for round := range rounds {
		for _, i := range random.Perm(int(ways)) {
			if f.Plan().Bits <= warmBits {
				w[i].run() // because the other filters have evicted this one from the caches
			}
			began := threadTime()
			w[i].run()
			if ns := float64(threadTime()-began) / float64(queries); round == 0 || ns < w[i].ns {
				w[i].ns = ns
			}
		}
	}
	runtime.KeepAlive(sink)
	return w
}
