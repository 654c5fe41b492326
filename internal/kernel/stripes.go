package kernel

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

// Adding from many goroutines, with one winner per new key.
//
// A writer first looks without a lock: if all bits of the key are set, it was added
// before, and nothing is written. Otherwise the writer takes the lock of the key's
// block, looks again, sets the bits and releases the lock. Blocks share a fixed number
// of locks, their stripes. Since every write to a block happens under its lock, the
// second look and the setting are one step, and of several goroutines that add one key
// only the first finds a bit missing.
//
// Readers take no lock. A word is read and written whole (on amd64 an aligned
// 64-bit lane of a vector load or store is; the Go twin uses atomic loads and
// stores), and bits are only ever set, so a reader sees each word as some writer
// left it: it can miss only bits of an add that has not returned. An add that has
// returned has released its lock, or saw its bits set by an add that has released its
// lock or is about to. Any goroutine that learns of it by Go's synchronisation sees the
// bits.
//
// On arm64 the Go twin runs, and assembly only fetches its lines ahead: NEON's loads and
// stores do not promise to be atomic, even where a lane is aligned (ARMv8 Instruction Set
// Overview, 5.7.22).

// MaxStripes bounds the number of locks: with that many, two of a hundred goroutines
// seldom need the same one.
const MaxStripes = 4096

// Stripe is a lock on a cache line of its own, and the number of adds under it
// that were new. Counting here keeps goroutines from contending for one counter.
type Stripe struct {
	lock  uint32
	_     uint32
	added uint64
	_     [48]byte
}

// NewStripes returns the locks for the given number of blocks.
func NewStripes(blocks uint64) []Stripe { return make([]Stripe, Stripes(blocks)) }

// Stripes returns the number of locks for the given number of blocks: a power of two.
func Stripes(blocks uint64) uint64 { return min(uint64(1)<<bits.Len64(blocks-1), MaxStripes) }

// Added returns the number of adds that were new.
func Added(stripes []Stripe) (n uint64) {
	for i := range stripes {
		n += atomic.LoadUint64(&stripes[i].added)
	}
	return n
}

// Lock waits for the stripe. It yields to other goroutines rather than spin.
func (s *Stripe) Lock() {
	for !atomic.CompareAndSwapUint32(&s.lock, 0, 1) {
		runtime.Gosched()
	}
}

// Unlock releases the stripe.
func (s *Stripe) Unlock() { atomic.StoreUint32(&s.lock, 0) }

// Count adds n to the stripe's counter, and Reset clears it; call them under the lock,
// or before the stripe is shared.
func (s *Stripe) Count(n uint64) { atomic.StoreUint64(&s.added, s.added+n) }
func (s *Stripe) Reset()         { atomic.StoreUint64(&s.added, 0) }

// busy is what addSyncAVX2 returns if it did not get the lock.
const busy = 2

// AddSync is Add for many goroutines at once.
func (f *Paired) AddSync(stripes []Stripe, h uint64) bool {
	if !useAVX2 {
		return f.addSyncGeneric(stripes, h)
	}
	for {
		answer := addSyncAVX2(f, stripes, h)
		if answer != busy {
			return answer == 1
		}
		runtime.Gosched()
	}
}

// AddBatchSync is AddBatch for many goroutines at once. Keys of other goroutines may
// come in between.
func (f *Paired) AddBatchSync(stripes []Stripe, hashes []uint64, isNew []bool) int {
	if !useAVX2 {
		n := 0
		for i, h := range hashes {
			if useNEON {
				f.fetchAhead(hashes, i)
			}
			isNew[i] = f.addSyncGeneric(stripes, h)
			if isNew[i] {
				n++
			}
		}
		return n
	}
	for done := 0; done < len(hashes); {
		done += addBatchSyncAVX2(f, stripes, hashes[done:], &isNew[done])
		if done < len(hashes) {
			runtime.Gosched() // another goroutine holds the next key's lock
		}
	}
	return countTrue(isNew[:len(hashes)])
}

// ContainsSync is Contains while others add.
func (f *Paired) ContainsSync(h uint64) bool {
	if useAVX2 {
		return f.Contains(h)
	}
	at := f.place(h)
	return missingAtomic(at.lineA, at.countsA) == 0 && missingAtomic(at.lineB, at.countsB) == 0
}

// ContainsKeySync is ContainsKey while others add.
func (f *Paired) ContainsKeySync(key []byte, seed uint64) bool {
	if useAVX2 {
		return f.ContainsKey(key, seed)
	}
	return f.ContainsSync(XXH3(key, seed))
}

// ContainsBatchSync is ContainsBatch while others add.
func (f *Paired) ContainsBatchSync(hashes []uint64, found []bool, recent *Recent) int {
	if useAVX2 {
		return f.ContainsBatch(hashes, found, recent)
	}
	n := 0
	for i, h := range hashes {
		if useNEON {
			f.fetchAhead(hashes, i)
		}
		found[i] = f.ContainsSync(h)
		if found[i] {
			n++
		}
	}
	return n
}

// fetchAhead prefetches for a loop in Go, which calls it with each i, the lines of the
// keys that the loop comes to 16 to 32 keys later. It calls assembly once for 16 keys.
func (f *Paired) fetchAhead(hashes []uint64, i int) {
	const group = 16
	if i%group != 0 {
		return
	}
	from, to := i+group, min(i+2*group, len(hashes))
	if i == 0 {
		from = 0
	}
	if from < to {
		fetchLines(f, hashes[from:to])
	}
}

func (f *Paired) addSyncGeneric(stripes []Stripe, h uint64) bool {
	if f.ContainsSync(h) {
		return false
	}
	block, _ := bits.Mul64(h, f.Blocks)
	stripe := &stripes[block&uint64(len(stripes)-1)]
	stripe.Lock()
	at := f.place(h)
	isNew := setAtomic(at.lineA, at.countsA)|setAtomic(at.lineB, at.countsB) != 0
	if isNew {
		stripe.Count(1)
	}
	stripe.Unlock()
	return isNew
}

// missingAtomic is missing, for words that other goroutines may be setting.
func missingAtomic(line []uint64, counts uint64) (miss uint64) {
	for lane := range LanesPerLine {
		miss |= uint64(1) << (counts >> (8 * lane) & 255) &^ atomic.LoadUint64(&line[lane])
	}
	return miss
}

// setAtomic is set, under the block's lock, for words that other goroutines may be
// reading.
func setAtomic(line []uint64, counts uint64) (miss uint64) {
	for lane := range LanesPerLine {
		bit := uint64(1) << (counts >> (8 * lane) & 255)
		if bit&^line[lane] != 0 {
			miss |= bit
			atomic.StoreUint64(&line[lane], line[lane]|bit)
		}
	}
	return miss
}

// CopyShared copies words that other goroutines may be setting, each word atomically.
func CopyShared(dst, src []uint64) {
	for i := range src {
		dst[i] = atomic.LoadUint64(&src[i])
	}
}

// ClearShared clears words that other goroutines may be reading, each word atomically.
func ClearShared(words []uint64) {
	for i := range words {
		atomic.StoreUint64(&words[i], 0)
	}
}

// UnionSync ORs blocks of src into the blocks [from, to) of f, while other goroutines
// add to both. src has `by` times as many blocks as f, and `by` neighbouring blocks of
// src fold onto one of f. Each block of f is written under its lock, so that each new
// key still has one winner; lookups never wait.
func (f *Paired) UnionSync(stripes []Stripe, src []uint64, by, from, to uint64) {
	var sum [WordsPerBlock]uint64
	for block := from; block < to; block++ {
		CopyShared(sum[:], src[block*by*WordsPerBlock:][:WordsPerBlock])
		for more := block*by + 1; more < (block+1)*by; more++ {
			for i, words := 0, src[more*WordsPerBlock:][:WordsPerBlock]; i < WordsPerBlock; i++ {
				sum[i] |= atomic.LoadUint64(&words[i])
			}
		}
		words := f.Words[block*WordsPerBlock:][:WordsPerBlock]
		stripe := &stripes[block&uint64(len(stripes)-1)]
		stripe.Lock()
		for i, word := range sum {
			if old := words[i]; word&^old != 0 {
				atomic.StoreUint64(&words[i], old|word)
			}
		}
		stripe.Unlock()
	}
}
