package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/bloomery/bloom/internal/memory"
)

// TestPlace compares the modulus by multiplication with the processor's, around
// every multiple where the quotient could be one too low.
func TestPlace(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 45))
	sizes := []uint64{1, 2, 3, 7, 63, 64, 65, 1152, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1<<44 + 7, MaxModularBits - 1, MaxModularBits}
	for range 2000 {
		sizes = append(sizes, random.Uint64()>>(19+random.IntN(44))+1)
	}
	for _, m := range sizes {
		f := Modular{Bits: m, magic: ^uint64(0) / m}
		xs := []uint64{0, 1, m - 1, m, m + 1, 2*m - 1, 2 * m, 1<<63 - 1, 1 << 63, ^uint64(0), ^uint64(0) - 1}
		last := ^uint64(0) / m * m
		xs = append(xs, last-1, last, last-m, last-m-1)
		for range 50 {
			x := random.Uint64()
			xs = append(xs, x, x/m*m, x/m*m-1)
		}
		for _, x := range xs {
			if got := f.place(x); got != x%m {
				t.Fatalf("%d mod %d = %d, want %d", x, m, got, x%m)
			}
		}
	}
}

// modularWords returns words between words that are all set: reading out of bounds
// finds keys that were never added.
func modularWords(m uint64) []uint64 { return alignedWords((m + 63) / 64) }

func randomPairs(random *rand.Rand, n int, before [][2]uint64) [][2]uint64 {
	pairs := make([][2]uint64, n)
	for i := range pairs {
		switch {
		case i > 0 && random.IntN(8) == 0:
			pairs[i] = pairs[random.IntN(i)]
		case len(before) > 0 && random.IntN(2) == 0:
			pairs[i] = before[random.IntN(len(before))]
		case random.IntN(100) == 0:
			pairs[i] = [2]uint64{random.Uint64(), 0} // all positions the same
		default:
			pairs[i] = [2]uint64{random.Uint64(), random.Uint64()}
		}
	}
	return pairs
}

// naive is the definition, with the processor's modulus and a map of bits.
type naive struct {
	m    uint64
	k    int
	bits map[uint64]bool
	size uint64
}

func (f *naive) contains(p [2]uint64) bool {
	for i := range uint64(f.k) {
		if !f.bits[(p[0]+i*p[1])%f.m] {
			return false
		}
	}
	return true
}

func (f *naive) add(p [2]uint64) {
	for i := range uint64(f.k) {
		f.bits[(p[0]+i*p[1])%f.m] = true
	}
	f.size++
}

func (f *naive) words() []uint64 {
	words := make([]uint64, (f.m+63)/64)
	for i := range f.bits {
		words[i/64] |= 1 << (i % 64)
	}
	return words
}

// TestModular runs batches of every length around that of a chunk, for many m and k,
// through the three loops, and compares each answer, the count and every word with the
// definition.
func TestModular(t *testing.T) {
	onEachModularPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(2, 9))
		s := new(Sieve)
		for _, k := range []int{1, 2, 3, 4, 5, 7, 8, 13, 64, 127, 128, 255, 256, 257, 1074, MaxModularProbes} {
			for _, m := range []uint64{1, 5, 64, 1152, 4096, 100_003, 1 << 20} {
				most := uint64(random.IntN(300))
				for _, stripes := range [][]Stripe{nil, NewStripes(1), NewStripes(64)} {
					f, want := NewModular(modularWords(m), m, k), naive{m: m, k: k, bits: map[uint64]bool{}}
					var size uint64
					var recent Recent
					var before [][2]uint64
					lengths := []int{0, 1, 2, 31, 32, 33, 63, 64, 65, 200, SieveKeys}
					if k > 64 {
						lengths = []int{1, 2, 3, 33}
					}
					for _, n := range lengths {
						pairs := randomPairs(random, n, before)
						before = append(before, pairs...)
						compareContains(t, &f, &want, pairs, s, &recent)
						compareAdd(t, &f, &want, stripes, &size, most, pairs, s)
						compareContains(t, &f, &want, pairs, s, &recent)
					}
					if !slices.Equal(f.Words, want.words()) {
						t.Fatalf("m %d, k %d: the bits differ from those of the definition", m, k)
					}
				}
			}
		}
	})
}

func compareContains(t *testing.T, f *Modular, want *naive, pairs [][2]uint64, s *Sieve, recent *Recent) {
	t.Helper()
	found := make([]bool, len(pairs))
	n := f.ContainsBatch(pairs, found, s, recent)
	if n != countTrue(found) {
		t.Fatalf("ContainsBatch = %d, but %d are true", n, countTrue(found))
	}
	for i, p := range pairs {
		if w := want.contains(p); found[i] != w || f.Contains(p[0], p[1]) != w {
			t.Fatalf("m %d, k %d: key %d of %d: ContainsBatch %v, Contains %v, want %v", f.Bits, f.Probes, i, len(pairs), found[i], f.Contains(p[0], p[1]), w)
		}
	}
}

func compareAdd(t *testing.T, f *Modular, want *naive, stripes []Stripe, size *uint64, most uint64, pairs [][2]uint64, s *Sieve) {
	t.Helper()
	isNew := make([]bool, len(pairs))
	var done int
	var full bool
	if stripes == nil {
		done, full = f.AddBatch(size, most, pairs, isNew, s)
	} else {
		done, full = f.AddBatchSync(stripes, size, most, pairs, isNew, s)
	}
	for i, p := range pairs {
		isOld := want.contains(p)
		if !isOld && want.size >= most {
			if done != i || !full {
				t.Fatalf("m %d, k %d: full at key %d of %d, got %d, %v", f.Bits, f.Probes, i, len(pairs), done, full)
			}
			break
		}
		if i >= done || isNew[i] == isOld {
			t.Fatalf("m %d, k %d: key %d of %d (done %d): isNew %v, want %v", f.Bits, f.Probes, i, len(pairs), done, isNew[i], !isOld)
		}
		if !isOld {
			want.add(p)
		}
	}
	if *size != want.size || full != (done < len(pairs)) {
		t.Fatalf("size %d, want %d; full %v after %d of %d", *size, want.size, full, done, len(pairs))
	}
	for i := range stripes {
		if stripes[i].lock != 0 {
			t.Fatal("a stripe is left locked")
		}
	}
}

// TestModularSync has goroutines add the same keys in different orders: each key has
// one winner, and the limit is never exceeded.
func TestModularSync(t *testing.T) {
	onEachModularPath(t, func(t *testing.T) {
		const keys, workers = 3000, 4
		for round := range 10 {
			most := uint64(keys - round%2*keys/2)
			f := NewModular(modularWords(1<<17), 1<<17, 8)
			stripes := NewStripes(16)
			pairs := randomPairs(rand.New(rand.NewPCG(3, uint64(round))), keys, nil)
			var size uint64
			var mutex sync.Mutex
			winners := map[[2]uint64]int{}
			var wait sync.WaitGroup
			for worker := range workers {
				wait.Go(func() {
					mine := slices.Clone(pairs)
					random := rand.New(rand.NewPCG(uint64(worker), uint64(round)))
					random.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
					s, isNew := new(Sieve), make([]bool, SieveKeys)
					for len(mine) > 0 {
						part := mine[:min(len(mine), 1+random.IntN(SieveKeys))]
						done, full := f.AddBatchSync(stripes, &size, most, part, isNew[:len(part)], s)
						mutex.Lock()
						for i, p := range part[:done] {
							if isNew[i] {
								winners[p]++
							}
							if !f.Contains(p[0], p[1]) {
								t.Error("a key that was added is not contained")
							}
						}
						mutex.Unlock()
						mine = mine[done:]
						if full {
							mine = mine[1:]
						}
					}
				})
			}
			wait.Wait()
			for p, n := range winners {
				if n != 1 {
					t.Fatalf("%d goroutines added %x as new", n, p)
				}
			}
			if size != uint64(len(winners)) || size > most {
				t.Fatalf("size %d, %d winners, room for %d", size, len(winners), most)
			}
			if most < keys && size != most {
				t.Fatalf("size %d, want %d", size, most)
			}
		}
	})
}

func TestNewModularRefuses(t *testing.T) {
	for _, tt := range []struct {
		words, m uint64
		probes   int
	}{{1, 0, 1}, {1, 65, 1}, {1, 64, 0}, {1, 64, MaxModularProbes + 1}, {1, MaxModularBits + 1, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewModular(%d words, %d, %d) did not panic", tt.words, tt.m, tt.probes)
				}
			}()
			NewModular(make([]uint64, tt.words), tt.m, tt.probes)
		}()
	}
}

// BenchmarkModular: filters of 1e5, 1e7 and 1e8 keys at 1%, with the pairs precomputed.
// naive is the loop with the processor's modulus, one key after the other.
func BenchmarkModular(b *testing.B) {
	for _, keys := range []uint64{1e5, 1e7, 1e8} {
		if testing.Short() && keys > 1e7 {
			continue
		}
		m := (keys*9586/1000 + 63) / 64 * 64
		words, mapping, err := memory.Words(m / 64)
		if err != nil {
			b.Fatal(err)
		}
		defer mapping.Close()
		f := NewModular(words, m, 7)
		random := rand.New(rand.NewPCG(7, keys))
		for i := range words { // as full as a filter with its planned keys
			words[i] = random.Uint64()
		}
		pool := make([][2]uint64, 1<<17)
		hits := make([][2]uint64, 1<<17)
		for i := range pool {
			pool[i] = [2]uint64{random.Uint64(), random.Uint64()}
			hits[i] = [2]uint64{random.Uint64(), random.Uint64()}
			f.Set(hits[i][0], hits[i][1])
		}
		s, answers := new(Sieve), make([]bool, SieveKeys)
		stripes := NewStripes(MaxStripes)
		naiveContains := func(p [2]uint64) bool {
			at := p[0]
			for range f.Probes {
				i := at % m
				if words[i/64]>>(i%64)&1 == 0 {
					return false
				}
				at += p[1]
			}
			return true
		}
		naiveAdd := func(p [2]uint64) (isNew bool) {
			at := p[0]
			for range f.Probes {
				i := at % m
				isNew = isNew || words[i/64]>>(i%64)&1 == 0
				words[i/64] |= 1 << (i % 64)
				at += p[1]
			}
			return isNew
		}
		run := func(what string, pairs [][2]uint64, do func(part [][2]uint64)) {
			b.Run(fmt.Sprintf("%s/%.0e", what, float64(keys)), func(b *testing.B) {
				at, n := 0, 0
				for b.Loop() {
					do(pairs[at:][:256])
					at = (at + 256) % len(pairs)
					n += 256
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/key")
			})
		}
		var recent Recent
		contains := func(part [][2]uint64) { f.ContainsBatch(part, answers[:len(part)], s, &recent) }
		run("miss", pool, contains)
		run("miss-naive", pool, func(part [][2]uint64) {
			for i, p := range part {
				answers[i] = naiveContains(p)
			}
		})
		run("hit", hits, contains)
		run("hit-naive", hits, func(part [][2]uint64) {
			for i, p := range part {
				answers[i] = naiveContains(p)
			}
		})
		// Every added key is new. A filter that fits in the cache is restored now and
		// then, before it is full; the others have room for long enough.
		saved := slices.Clone(words[:min(len(words), 1<<14)])
		x, part := uint64(0), make([][2]uint64, 256)
		add := func(what string, do func()) {
			b.Run(fmt.Sprintf("%s/%.0e", what, float64(keys)), func(b *testing.B) {
				n := 0
				for b.Loop() {
					if n%8192 == 0 && len(words) <= 1<<14 {
						b.StopTimer()
						copy(words, saved)
						b.StartTimer()
					}
					for i := range part {
						x++
						part[i] = [2]uint64{x * 0x9fb21c651e98df25, x*0xd1342543de82ef95 ^ x>>7}
					}
					do()
					n += len(part)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/key")
			})
		}
		size := uint64(0)
		add("add", func() { f.AddBatch(&size, 1<<62, part, answers[:len(part)], s) })
		add("add-sync", func() { f.AddBatchSync(stripes, &size, 1<<62, part, answers[:len(part)], s) })
		add("add-naive", func() {
			for i, p := range part {
				answers[i] = naiveAdd(p)
			}
		})
	}
}
