package kernel

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// alignedWords returns words on a 512-byte boundary, with set bits before and after
// them: a kernel that reads out of bounds finds keys that were never added.
func alignedWords(n uint64) []uint64 {
	words := make([]uint64, n+2*WordsPerBlock+WordsPerBlock)
	for i := range words {
		words[i] = ^uint64(0)
	}
	skip := int(-uintptr(unsafe.Pointer(&words[0]))%BlockBytes) / 8
	words = words[WordsPerBlock+skip:][:n]
	clear(words)
	return words
}

func newPaired(blocks uint64, bitsPerLine int) *Paired {
	return &Paired{Words: alignedWords(blocks * WordsPerBlock), Blocks: blocks, Rows: RowsFor(bitsPerLine)}
}

func newSplit(blocks uint64) *Split {
	return &Split{Words: alignedWords(blocks * SplitBlockWords), Blocks: blocks}
}

// randomHashes returns hashes with repeats, of each other and of those before.
func randomHashes(random *rand.Rand, n int, before []uint64) []uint64 {
	hashes := make([]uint64, n)
	for i := range hashes {
		switch {
		case i > 0 && random.IntN(8) == 0:
			hashes[i] = hashes[random.IntN(i)]
		case len(before) > 0 && random.IntN(2) == 0:
			hashes[i] = before[random.IntN(len(before))]
		default:
			hashes[i] = random.Uint64()
		}
	}
	return hashes
}

// filter is what the two layouts have in common.
type filter interface {
	Add(h uint64) bool
	Contains(h uint64) bool
	AddBatch(hashes []uint64, isNew []bool) int
}

// check adds a batch to f and the same hashes one by one to the Go twin, and
// compares every answer before and after and every word.
func check(t *testing.T, random *rand.Rand, f, twin filter, words, twinWords []uint64, hashes []uint64, contains func([]uint64, []bool) int) {
	t.Helper()
	n := len(hashes)
	got, want := make([]bool, n), make([]bool, n)
	compare := func(what string, count int) {
		t.Helper()
		if !slices.Equal(got, want) || count != countTrue(want) {
			t.Fatalf("%s of %d keys: %v, count %d, want %v", what, n, got, count, want)
		}
	}
	lookUp := func(when string) {
		t.Helper()
		for i, h := range hashes {
			want[i] = twin.Contains(h)
			if got := f.Contains(h); got != want[i] {
				t.Fatalf("Contains(%#x) %s = %v, want %v", h, when, got, want[i])
			}
		}
		count := contains(hashes, got)
		compare("ContainsBatch "+when, count)
	}
	lookUp("before")
	if random.IntN(4) == 0 {
		for i, h := range hashes {
			got[i], want[i] = f.Add(h), twin.Add(h)
		}
		compare("Add", countTrue(got))
	} else {
		for i, h := range hashes {
			want[i] = twin.Add(h)
		}
		compare("AddBatch", f.AddBatch(hashes, got))
	}
	if !slices.Equal(words, twinWords) {
		t.Fatalf("%d keys set other bits than those of the Go twin", n)
	}
	lookUp("after")
}

// goPaired is the Go twin under the same method names.
type goPaired struct{ *Paired }

func (f goPaired) Add(h uint64) bool      { return f.addGeneric(h) }
func (f goPaired) Contains(h uint64) bool { return f.containsGeneric(h) }
func (f goPaired) AddBatch(hashes []uint64, isNew []bool) int {
	return f.addBatchGeneric(hashes, isNew)
}

type goSplit struct{ *Split }

func (f goSplit) Add(h uint64) bool      { return f.addGeneric(h) }
func (f goSplit) Contains(h uint64) bool { return f.containsGeneric(h) }

// TestPaired compares the kernels with the Go twin, for every k and every batch
// length around the ring and its wrap.
func TestPaired(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		for bitsPerLine := 1; bitsPerLine <= 8; bitsPerLine++ {
			for _, blocks := range []uint64{1, 2, 3, 61} {
				f, twin := newPaired(blocks, bitsPerLine), newPaired(blocks, bitsPerLine)
				var before []uint64
				for n := 0; n <= 130; n++ {
					hashes := randomHashes(random, n, before)
					var recent Recent
					recent.hits = n%2 == 0
					contains, add := everyWay(f)
					got, want := make([]bool, n), make([]bool, n)
					f.containsBatchGeneric(hashes, want)
					for name, way := range contains {
						if way(hashes, got); !slices.Equal(got, want) {
							t.Fatalf("the loop %q says of %d keys %v, want %v", name, n, got, want)
						}
					}
					saved := slices.Clone(f.Words)
					wantWords := &Paired{Words: slices.Clone(f.Words), Blocks: blocks, Rows: f.Rows}
					wantWords.addBatchGeneric(hashes, want)
					for name, way := range add {
						if way(hashes, got); !slices.Equal(got, want) || !slices.Equal(f.Words, wantWords.Words) {
							t.Fatalf("the loop %q adds %d keys otherwise than the Go twin: %v, want %v", name, n, got, want)
						}
						copy(f.Words, saved)
					}
					check(t, random, f, goPaired{twin}, f.Words, twin.Words, hashes, func(hashes []uint64, found []bool) int {
						return f.ContainsBatch(hashes, found, &recent)
					})
					before = hashes
					if n%10 == 0 {
						clear(f.Words)
						clear(twin.Words)
					}
				}
			}
		}
	})
}

func TestSplit(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 4))
		for _, blocks := range []uint64{1, 2, 3, 61, nearWords/SplitBlockWords + 1} { // the last one is not near
			f, twin := newSplit(blocks), newSplit(blocks)
			var before []uint64
			for n := 0; n <= 130; n++ {
				hashes := randomHashes(random, n, before)
				check(t, random, f, goSplit{twin}, f.Words, twin.Words, hashes, f.ContainsBatch)
				before = hashes
				if n%40 == 0 {
					clear(f.Words)
					clear(twin.Words)
				}
			}
		}
	})
}

// TestSplitAddAll compares adding without answers with the Go twin.
func TestSplitAddAll(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(9, 10))
		for _, blocks := range []uint64{1, 61, nearWords/SplitBlockWords + 1} { // the last one is not near
			f, twin := newSplit(blocks), newSplit(blocks)
			var before []uint64
			for n := 0; n <= 130; n++ {
				hashes, want := randomHashes(random, n, before), 0
				for _, h := range hashes {
					if twin.addGeneric(h) {
						want++
					}
				}
				if got := f.AddAll(hashes); got != want || f.Added != twin.Added || !slices.Equal(f.Words, twin.Words) {
					t.Fatalf("AddAll of %d keys = %d, in all %d; want %d, in all %d, and the same bits", n, got, f.Added, want, twin.Added)
				}
				before = hashes
				if n%40 == 0 {
					clear(f.Words)
					clear(twin.Words)
				}
			}
		}
	})
}

// TestSplitKeys compares hashing and probing in one call with the Go twin: keys of every
// length to 300, at every alignment, from a buffer whose other bytes change.
func TestSplitKeys(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(11, 12))
		buffer := make([]byte, 320)
		f, twin := newSplit(500), newSplit(500)
		f.Parquets = true
		for n := 0; n <= 300; n++ {
			for at := range 9 {
				for i := range buffer {
					buffer[i] = byte(random.Uint32())
				}
				key := buffer[at : at+n]
				h := XXH64(key)
				for i := range buffer {
					if i < at || i >= at+n {
						buffer[i]++
					}
				}
				if got, want := f.ContainsKey(key), twin.containsGeneric(h); got != want {
					t.Fatalf("ContainsKey of %d bytes at %d = %v, want %v", n, at, got, want)
				}
				for range 2 {
					got, want := f.AddKey(key), twin.addGeneric(h)
					if got != want || f.Added != twin.Added || !slices.Equal(f.Words, twin.Words) {
						t.Fatalf("AddKey of %d bytes at %d = %v, added %d; want %v, %d, and the same bits", n, at, got, f.Added, want, twin.Added)
					}
				}
				if !f.ContainsKey(key) {
					t.Fatalf("a key of %d bytes at %d is not found", n, at)
				}
			}
			if n%20 == 0 {
				clear(f.Words)
				clear(twin.Words)
			}
		}
	})
}

// TestSplitKeysOtherHash: a hash that is not Parquet's is the caller's.
func TestSplitKeysOtherHash(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		f := newSplit(500)
		f.Hash = func(key []byte) uint64 { return XXH64(key) * 3 }
		for i := range 300 {
			key := make([]byte, i)
			h := XXH64(key) * 3
			want := !f.Contains(h)
			if got := f.AddKey(key); got != want || !f.Contains(h) || !f.ContainsKey(key) {
				t.Fatalf("AddKey of %d bytes = %v, want %v; contained by hash %v, by key %v", i, got, want, f.Contains(h), f.ContainsKey(key))
			}
		}
		if f.Added < 290 {
			t.Errorf("added %d of 300 keys", f.Added)
		}
	})
}

// TestXXH64 has the values of the xxHash library's own test and of the Go library.
func TestXXH64(t *testing.T) {
	for key, want := range map[string]uint64{
		"":     0xef46db3751d8e999,
		"a":    0xd24ec4f1a98c6e5b,
		"as":   0x1c330fb2d66be179,
		"asd":  0x631c37ce72a97393,
		"asdf": 0x415872f599cea71e,
		"Call me Ishmael. Some years ago--never mind how long precisely-": 0x02a2e85470d6fd96,
	} {
		if got := XXH64([]byte(key)); got != want {
			t.Errorf("XXH64(%q) = %#x, want %#x", key, got, want)
		}
	}
}

// TestSync compares adding under locks, by one goroutine, with the Go twin without
// locks.
func TestSync(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(5, 6))
		for bitsPerLine := 1; bitsPerLine <= 8; bitsPerLine++ {
			for _, blocks := range []uint64{1, 2, 61, MaxStripes + 1} {
				f, twin := &shared{Paired: newPaired(blocks, bitsPerLine), stripes: NewStripes(blocks)}, newPaired(blocks, bitsPerLine)
				var before []uint64
				var recent Recent
				for n := 0; n <= 130; n++ {
					hashes := randomHashes(random, n, before)
					check(t, random, f, goPaired{twin}, f.Words, twin.Words, hashes, func(hashes []uint64, found []bool) int {
						return f.ContainsBatchSync(hashes, found, &recent)
					})
					before = hashes
				}
				if added := Added(f.stripes); added != f.added {
					t.Fatalf("the stripes count %d new keys, the answers %d", added, f.added)
				}
				for i := range f.stripes {
					if f.stripes[i].lock != 0 {
						t.Fatalf("stripe %d is left locked", i)
					}
				}
			}
		}
	})
}

// shared adapts AddSync to Add, and counts its answers.
type shared struct {
	*Paired
	stripes []Stripe
	added   uint64
}

func (f *shared) Contains(h uint64) bool { return f.ContainsSync(h) }

func (f *shared) Add(h uint64) bool {
	isNew := f.AddSync(f.stripes, h)
	if isNew {
		f.added++
	}
	return isNew
}

func (f *shared) AddBatch(hashes []uint64, isNew []bool) int {
	n := f.AddBatchSync(f.stripes, hashes, isNew)
	f.added += uint64(n)
	return n
}

// TestHeldLock: a writer waits for a lock that another holds, and a batch continues
// where it stopped.
func TestHeldLock(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		f := newPaired(1, 3) // one block, one stripe
		stripes := NewStripes(1)
		hashes := randomHashes(rand.New(rand.NewPCG(7, 8)), 100, nil)
		for range 20 {
			stripes[0].Lock()
			done := make(chan int)
			go func() { done <- f.AddBatchSync(stripes, hashes, make([]bool, len(hashes))) }()
			go func() { f.AddSync(stripes, hashes[50]); done <- -1 }()
			for range 100 {
				select {
				case <-done:
					if Added(stripes) == 0 {
						t.Fatal("a key was added while another goroutine held the lock")
					}
				default:
				}
			}
			stripes[0].Unlock()
			<-done
			<-done
			for _, h := range hashes {
				if !f.ContainsSync(h) {
					t.Fatalf("%#x is lost", h)
				}
			}
			clear(f.Words)
		}
	})
}

// TestPlacement checks the promises of the layout: two different lines of the right
// block, K bits in each, at most one per lane.
func TestPlacement(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for bitsPerLine := 1; bitsPerLine <= 8; bitsPerLine++ {
		for _, blocks := range []uint64{1, 2, 5, 1000} {
			f := newPaired(blocks, bitsPerLine)
			for range 200 {
				h := random.Uint64()
				f.Add(h)
				block, _ := bits.Mul64(h, blocks)
				var lines []int
				for i, word := range f.Words {
					if bits.OnesCount64(word) > 1 {
						t.Fatalf("%#x sets %d bits in a lane", h, bits.OnesCount64(word))
					}
					if word != 0 {
						if uint64(i/WordsPerBlock) != block {
							t.Fatalf("%#x sets a bit in block %d, want %d", h, i/WordsPerBlock, block)
						}
						lines = append(lines, i/LanesPerLine)
					}
				}
				if len(lines) != 2*bitsPerLine || lines[0] != lines[bitsPerLine-1] || lines[bitsPerLine] != lines[2*bitsPerLine-1] || lines[0] == lines[bitsPerLine] {
					t.Fatalf("%#x with %d bits a line sets bits in lines %v", h, bitsPerLine, lines)
				}
				clear(f.Words)
			}
		}
	}
}

// TestRows checks that the rows are evenly spread over all patterns of K lanes, and
// over the lanes.
func TestRows(t *testing.T) {
	for k := 1; k <= 8; k++ {
		times := map[uint64]int{}
		var lanes [8]int
		for _, row := range RowsFor(k) {
			times[row]++
			for lane := range lanes {
				if row>>(8*lane)&laneOff == 0 {
					lanes[lane]++
				}
			}
			if off := bits.OnesCount64(row & 0x4040404040404040); off != 8-k || row&^0x4040404040404040 != 0 {
				t.Errorf("K %d: row %#x leaves out %d lanes", k, row, off)
			}
		}
		for lane, n := range lanes {
			if n != 256*k/8 {
				t.Errorf("K %d: lane %d takes part in %d rows, want %d", k, lane, n, 256*k/8)
			}
		}
		patterns := 1
		for i := range k {
			patterns = patterns * (8 - i) / (i + 1)
		}
		if len(times) != patterns {
			t.Errorf("K %d: %d patterns, want %d", k, len(times), patterns)
		}
		for row, n := range times {
			if n != 256/patterns && n != 256/patterns+1 {
				t.Errorf("K %d: row %#x occurs %d times, want %d or one more", k, row, n, 256/patterns)
			}
		}
	}
}

func TestCountTrue(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for n := range 100 {
		answers, want := make([]bool, n), 0
		for i := range answers {
			if answers[i] = random.IntN(2) == 0; answers[i] {
				want++
			}
		}
		if got := countTrue(answers); got != want {
			t.Errorf("countTrue of %d answers = %d, want %d", n, got, want)
		}
	}
}

func BenchmarkPaired(b *testing.B) {
	for _, keys := range []int{100_000, 10_000_000} {
		random := rand.New(rand.NewPCG(13, 14))
		f := newPaired(uint64(keys)*10/BlockBits, 3)
		hits, misses, answers := make([]uint64, keys), make([]uint64, keys), make([]bool, 1024)
		for i := range keys {
			hits[i], misses[i] = random.Uint64(), random.Uint64()
			f.Add(hits[i])
		}
		var recent Recent
		for name, run := range map[string]func(at int){
			"add":  func(at int) { f.AddBatch(hits[at:][:1024], answers) },
			"hit":  func(at int) { f.ContainsBatch(hits[at:][:1024], answers, &recent) },
			"miss": func(at int) { f.ContainsBatch(misses[at:][:1024], answers, &recent) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, keys), func(b *testing.B) {
				at := 0
				for b.Loop() {
					run(at)
					if at += 1024; at > keys-1024 {
						at = 0
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/key")
			})
		}
	}
}
