package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func newCounters(blocks uint64, bitsPerLine int) *Counters {
	return &Counters{Words: alignedWords(blocks * CounterWordsPerBlock), Blocks: blocks, Rows: RowsFor(bitsPerLine)}
}

// bitsOf returns the positions of the bits that h sets in a Paired.
func bitsOf(h, blocks uint64, bitsPerLine int) (positions []int) {
	f := newPaired(blocks, bitsPerLine)
	f.addGeneric(h)
	for w, word := range f.Words {
		for i := range 64 {
			if word>>i&1 == 1 {
				positions = append(positions, 64*w+i)
			}
		}
	}
	return positions
}

// at returns one counter.
func (f *Counters) at(position int) (count int) {
	for digit := range CounterDigits {
		count |= int(f.Words[position/64*CounterDigits+digit]>>(position%64)&1) << digit
	}
	return count
}

// plainCounters is the definition: one integer per bit.
type plainCounters []int

func (p plainCounters) check(t *testing.T, f *Counters, after string) {
	t.Helper()
	stuck, sum := uint64(0), uint64(0)
	for position, want := range p {
		sum += uint64(want)
		if got := f.at(position); got != want {
			t.Fatalf("counter %d is %d after %s, want %d", position, got, after, want)
		}
		if want == MaxCount {
			stuck++
		}
	}
	if f.Stuck != stuck {
		t.Fatalf("Stuck is %d after %s, want %d", f.Stuck, after, stuck)
	}
	again := Counters{Words: f.Words}
	if got := again.Recount(); got != sum || again.Stuck != stuck {
		t.Fatalf("after %s Recount says %d, and %d are stuck, want %d and %d", after, got, again.Stuck, sum, stuck)
	}
}

// TestCounters compares the counters with plain integers, for every k. It uses few
// different keys, so that many counters overflow.
func TestCounters(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	for bitsPerLine := 1; bitsPerLine <= 8; bitsPerLine++ {
		for _, blocks := range []uint64{1, 3} {
			f, plain := newCounters(blocks, bitsPerLine), make(plainCounters, blocks*BlockBits)
			follower := newCounters(blocks, bitsPerLine) // gets only counts
			hashes := randomHashes(random, 60, nil)
			positions := map[uint64][]int{}
			for _, h := range hashes {
				positions[h] = bitsOf(h, blocks, bitsPerLine)
			}
			overflows := 0
			for step := range 3000 {
				// The first keys come often, so that their counters overflow.
				h := hashes[min(random.IntN(len(hashes)), random.IntN(len(hashes)))]
				least := MaxCount
				for _, position := range positions[h] {
					least = min(least, plain[position])
				}
				if got := f.Count(h); got != least || f.Contains(h) != (least > 0) {
					t.Fatalf("the count of %#x is %d, want %d", h, got, least)
				}
				if add := random.IntN(100) < 55; add {
					if got := f.Add(h); got != (least == 0) {
						t.Fatalf("Add(%#x) = %v, and its least counter was %d", h, got, least)
					}
					for _, position := range positions[h] {
						if plain[position] == MaxCount {
							overflows++
						}
						plain[position] = min(plain[position]+1, MaxCount)
					}
				} else {
					if got := f.Remove(h); got != (least > 0) {
						t.Fatalf("Remove(%#x) = %v, and its least counter was %d", h, got, least)
					}
					for _, position := range positions[h] {
						if least > 0 && plain[position] < MaxCount {
							plain[position]--
						}
					}
				}
				follower.SetCounts(h, f.Counts(h))
				if step%100 == 0 {
					plain.check(t, f, "a step")
				}
			}
			plain.check(t, f, "all")
			plain.check(t, follower, "SetCounts")
			if overflows == 0 {
				t.Error("no counter overflowed: this tests less than it should")
			}
		}
	}
}

// TestCountersMerge adds counters of every value to those of every other value, and
// folds neighbouring blocks into one.
func TestCountersMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(23, 24))
	for _, by := range []uint64{1, 2, 3} {
		const blocks = 2
		f, g := newCounters(blocks, 4), newCounters(blocks*by, 4)
		want := make(plainCounters, blocks*BlockBits)
		for range 4 {
			for _, c := range []*Counters{f, g} {
				for i := range c.Words {
					c.Words[i] = random.Uint64() & random.Uint64()
				}
				c.Stuck = 0
				for position := range len(c.Words) / CounterDigits * 64 {
					if c.at(position) == MaxCount {
						c.Stuck++
					}
				}
			}
			for position := range want {
				want[position] = f.at(position)
				for i := range int(by) {
					from := (position/BlockBits*int(by)+i)*BlockBits + position%BlockBits
					want[position] = min(want[position]+g.at(from), MaxCount)
				}
			}
			f.Merge(g)
			want.check(t, f, "Merge")
		}
		for position := range want {
			want[position] = min(2*want[position], MaxCount)
		}
		f.Merge(f)
		want.check(t, f, "Merge with itself")
	}
}

// TestCountersBatch: a batch gives the answers of single calls, by whatever way, moves the
// same counters, also those that get stuck, and the nonzero ones are the bits of a Paired
// with the same keys. So does a batch of removals.
func TestCountersBatch(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(25, 26))
		for bitsPerLine := 1; bitsPerLine <= 8; bitsPerLine++ {
			for _, blocks := range []uint64{5, 700} { // 700 have two loops of their own
				f, single, paired := newCounters(blocks, bitsPerLine), newCounters(blocks, bitsPerLine), newPaired(blocks, bitsPerLine)
				var before []uint64
				for _, n := range []int{0, 1, 2, 7, 15, 16, 17, 33, 100, 1024} {
					hashes := randomHashes(random, n, before)
					before = append(before, hashes...)
					got, want := make([]bool, n), make([]bool, n)
					looks := map[string]func() int{}
					for _, hits := range []bool{false, true} {
						looks[fmt.Sprintf("ContainsBatch after hits: %v", hits)] = func() int { return f.ContainsBatch(hashes, got, &Recent{hits}) }
					}
					for way, run := range everyWayToCount(f) {
						looks[way] = func() int { run(hashes, got); return countTrue(got) }
					}
					for i, h := range hashes {
						want[i] = single.Contains(h)
					}
					for way, look := range looks {
						clear(got)
						if count := look(); !slices.Equal(got, want) || count != countTrue(want) {
							t.Fatalf("%s: of %d keys differs from single calls", way, n)
						}
					}
					paired.addBatchGeneric(hashes, want)
					for i, h := range hashes {
						if isNew := single.Add(h); isNew != want[i] {
							t.Fatalf("Add says %v, the bits say %v", isNew, want[i])
						}
					}
					if count := f.AddBatch(hashes, got); !slices.Equal(got, want) || count != countTrue(want) || !slices.Equal(f.Words, single.Words) || f.Stuck != single.Stuck {
						t.Fatalf("AddBatch of %d keys differs from single calls", n)
					}
					words := make([]uint64, len(paired.Words))
					NonZero(words, f.Words)
					if !slices.Equal(words, paired.Words) {
						t.Fatalf("the counters that are not zero are not the bits of the same %d keys", n)
					}
				}
				for _, n := range []int{0, 1, 63, 64, 65, 1024, 300} {
					hashes := randomHashes(random, n, before) // some are there, some twice
					got, want := make([]bool, n), make([]bool, n)
					for i, h := range hashes {
						want[i] = single.Remove(h)
					}
					if count := f.RemoveBatch(hashes, got); !slices.Equal(got, want) || count != countTrue(want) || !slices.Equal(f.Words, single.Words) || f.Stuck != single.Stuck {
						t.Fatalf("RemoveBatch of %d keys differs from single calls", n)
					}
				}
				if blocks == 5 && bitsPerLine > 3 && f.Stuck == 0 {
					t.Errorf("k = %d: no counter got stuck: this tests less than it should", 2*bitsPerLine)
				}
			}
		}
	})
}

func BenchmarkCounters(b *testing.B) {
	for name, keys := range map[string]int{"1e5": 100_000, "1e7": 10_000_000} {
		random := rand.New(rand.NewPCG(27, 28))
		f := newCounters(uint64(keys)*10/BlockBits, 3)
		var recent Recent
		hits, misses, answers := make([]uint64, keys), make([]uint64, keys), make([]bool, 1024)
		for i := range keys {
			hits[i], misses[i] = random.Uint64(), random.Uint64()
			f.Add(hits[i])
		}
		for verb, run := range map[string]func(at int){
			"hit":  func(at int) { f.ContainsBatch(hits[at:][:1024], answers, &recent) },
			"miss": func(at int) { f.ContainsBatch(misses[at:][:1024], answers, &recent) },
			"add and remove": func(at int) { // adds alone would soon leave all counters stuck
				f.AddBatch(hits[at:][:1024], answers)
				f.RemoveBatch(hits[(at+keys/2)%(keys-1024):][:1024], answers)
			},
		} {
			b.Run(verb+"/"+name, func(b *testing.B) {
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
