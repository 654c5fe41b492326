package kernel

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync/atomic"
)

// Modular is a bit array whose positions are computed by a modulus, as RedisBloom's
// are: a key is a pair of hashes (a, b), and its bit i, from 0 to Probes-1, is
//
//	(a + i*b mod 2^64) mod Bits       word i/64, mask 1<<(i%64)
//
// Bits is from 1 to 2^45, and Words holds at least that many; later bits are never
// touched.
//
// # The modulus without a division
//
// With magic = floor((2^64-1)/m), the quotient of x and m is q = hi64(x*magic) or
// q + 1:
//
//	magic > (2^64-1)/m - 1, and both sides times m are whole, so m*magic >= 2^64 - m
//	x*magic/2^64 >= x/m * (2^64-m)/2^64 = x/m - x/2^64 > x/m - 1
//	x*magic/2^64 <= x/m
//
// So q is floor(x/m) or floor(x/m) - 1. The remainder x - q*m is below 2m, which fits
// into 64 bits, and if it is not below m, one subtraction makes it exact.
//
// # Many keys at once
//
// A batch is processed in chunks. First all positions of a chunk's keys are computed
// and their cache lines prefetched; then they are tested in the same order, and by then
// the lines have arrived. In a half-full filter an absent key fails at the second
// position on average, so fetching all of its lines would be wasted. If most keys are
// absent, two positions are tested at a time, and the next two only for the keys that
// have passed so far.
//
// Assembly cannot be preempted. SieveKeys keys take some microseconds or, with the
// largest k that any rate needs, a millisecond or two.
type Modular struct {
	Words  []uint64
	Bits   uint64
	Probes int
	magic  uint64
}

// MaxModularBits stays far below the limit of the proof above. It is also the limit of
// every kind of filter.
const MaxModularBits = 1 << 45

// NewModular returns the kernel for the first bits of words.
func NewModular(words []uint64, m uint64, probes int) Modular {
	if m == 0 || m > MaxModularBits || uint64(len(words)) < (m+63)/64 || probes < 1 || probes > MaxModularProbes {
		panic(fmt.Sprintf("kernel: %d words for %d bits and %d probes", len(words), m, probes))
	}
	return Modular{Words: words, Bits: m, Probes: probes, magic: ^uint64(0) / m}
}

const (
	// SieveKeys is the maximum number of keys in a batch.
	SieveKeys = 512

	// MaxModularProbes is above 1074, the k for the smallest positive float64 as a
	// rate.
	MaxModularProbes = 1 << 11

	// placesAtOnce is how many positions are prefetched before the first is tested:
	// 8 KiB of cache lines, so that they stay in the first-level cache.
	placesAtOnce = 128

	// fewProbes are tested together if most keys are absent.
	fewProbes = 2
)

// Sieve is scratch space for one batch, used by one goroutine at a time.
type Sieve struct {
	pairs  [SieveKeys][2]uint64
	at     [SieveKeys]uint16 // the key's index in the batch
	places [MaxModularProbes]uint64
}

// chunk returns how many keys' positions are computed together.
func (f *Modular) chunk(probes int) int { return max(placesAtOnce/probes, 1) }

// place is x mod f.Bits.
func (f *Modular) place(x uint64) uint64 {
	q, _ := bits.Mul64(x, f.magic)
	x -= q * f.Bits
	if x >= f.Bits {
		x -= f.Bits
	}
	return x
}

// Contains reports whether all bits of the key are set. Other goroutines may be adding.
func (f *Modular) Contains(a, b uint64) bool {
	for range f.Probes {
		i := f.place(a)
		if atomic.LoadUint64(&f.Words[i/64])>>(i%64)&1 == 0 {
			return false
		}
		a += b
	}
	return true
}

// Set sets all bits of the key. Other goroutines may be reading and setting.
func (f *Modular) Set(a, b uint64) {
	for range f.Probes {
		i := f.place(a)
		if bit := uint64(1) << (i % 64); atomic.LoadUint64(&f.Words[i/64])&bit == 0 {
			atomic.OrUint64(&f.Words[i/64], bit)
		}
		a += b
	}
}

// ContainsBatch sets found[i] to Contains(pairs[i]) and returns how many are true,
// for at most SieveKeys keys. found is as long as pairs. Other goroutines may be adding.
func (f *Modular) ContainsBatch(pairs [][2]uint64, found []bool, s *Sieve, recent *Recent) int {
	if len(pairs) == 0 {
		return 0
	}
	n := copy(s.pairs[:len(pairs)], pairs)
	for i := range n {
		s.at[i] = uint16(i)
	}
	for probes, left := f.Probes, f.Probes; n > 0 && left > 0; left -= probes {
		probes = left
		if !recent.hits && left > 2*fewProbes {
			probes = fewProbes
		}
		n = f.sieve(s, n, probes)
	}
	clear(found)
	for _, at := range s.at[:n] {
		found[at] = true
	}
	recent.hits = 3*n > len(pairs)
	return n
}

// Why AddBatch stopped before its last key.
const (
	addedAll  = 0
	addedFull = 1 // the next key is new, and the filter is full
	addedBusy = 2 // another goroutine held the next key's lock for too long
)

// AddBatch adds keys in order. It stops before a new key once *size has reached most;
// full is then true. For each processed key, isNew[i] reports whether a bit was missing,
// and *size counts those keys. There are at most SieveKeys keys; isNew is as long as
// pairs.
//
// The caller holds the lock that every adder holds; other goroutines may be reading.
func (f *Modular) AddBatch(size *uint64, most uint64, pairs [][2]uint64, isNew []bool, s *Sieve) (done int, full bool) {
	if len(pairs) == 0 {
		return 0, false
	}
	done, why := f.addBatch(size, most, pairs, isNew, s)
	return done, why == addedFull
}

// AddBatchSync is AddBatch for many goroutines at once. It takes each key's stripe; the
// number of stripes is a power of two. Keys of other goroutines may come in between.
func (f *Modular) AddBatchSync(stripes []Stripe, size *uint64, most uint64, pairs [][2]uint64, isNew []bool, s *Sieve) (done int, full bool) {
	for done < len(pairs) {
		n, why := f.addBatchSync(stripes, size, most, pairs[done:], isNew[done:], s)
		done += n
		switch why {
		case addedFull:
			return done, true
		case addedBusy:
			runtime.Gosched()
		}
	}
	return done, false
}

// Add is AddBatch for one key.
func (f *Modular) Add(size *uint64, most, a, b uint64) (isNew, full bool) {
	if f.Contains(a, b) {
		return false, false
	}
	if *size >= most {
		return false, true
	}
	atomic.StoreUint64(size, *size+1)
	for range f.Probes {
		i := f.place(a)
		word := &f.Words[i/64]
		if bit := uint64(1) << (i % 64); *word&bit == 0 {
			atomic.StoreUint64(word, *word|bit)
		}
		a += b
	}
	return true, false
}

// AddSync is AddBatchSync for one key.
func (f *Modular) AddSync(stripes []Stripe, size *uint64, most, a, b uint64) (isNew, full bool) {
	if f.Contains(a, b) {
		return false, false
	}
	stripe := &stripes[a&uint64(len(stripes)-1)]
	stripe.Lock()
	defer stripe.Unlock()
	if f.Contains(a, b) {
		return false, false
	}
	if !countUpTo(size, most) {
		return false, true
	}
	f.Set(a, b)
	return true, false
}

// countUpTo adds one to *size unless it has reached most.
func countUpTo(size *uint64, most uint64) bool {
	for {
		n := atomic.LoadUint64(size)
		if n >= most {
			return false
		}
		if atomic.CompareAndSwapUint64(size, n, n+1) {
			return true
		}
	}
}
