package kernel

import "math/bits"

// Counters is Paired with a counter of four bits in place of each bit. Blocks, lines
// and lanes are the same, so the nonzero counters are the bits of a Paired with the
// same keys.
//
// A word of bits becomes four words of counters, half a cache line. They are the
// counters' binary digits, and a counter is read down a column:
//
//	word w of a Paired    . . . . . 1 . . . . .      bit i
//
//	word 4w               . . . . . 1 . . . . .      ones
//	word 4w+1             . . . . . 0 . . . . .      twos
//	word 4w+2             . . . . . 1 . . . . .      fours
//	word 4w+3             . . . . . 0 . . . . .      eights: counter i stands at 5
//
// The OR of the four words is the word of bits. Adding four words to four others, 64
// counters at once and with saturation, takes thirty instructions.
// A lane's four words are one AVX2 register (counters_amd64.s), so that a probe is one
// load and one store. Sixteen counters side by side in a word would be that without AVX2,
// too, but whole filters would have to be processed nibble by nibble.
//
// A counter that has reached MaxCount stays there: how many keys it stands for is no
// longer known, so no removal may decrement it.
type Counters struct {
	Words  []uint64 // Blocks*CounterWordsPerBlock
	Blocks uint64
	Rows   *[256]uint64 // RowsFor
	Stuck  uint64       // the number of counters at MaxCount
}

const (
	// CounterDigits is the number of bits of a counter. With the best k and no
	// key added twice, one counter in 1e15 reaches MaxCount (Poisson with mean
	// ln 2; Fan, Cao, Almeida and Broder 2000 bound it likewise).
	CounterDigits = 4

	MaxCount = 1<<CounterDigits - 1

	CounterWordsPerBlock = WordsPerBlock * CounterDigits
	counterWordsPerLine  = LanesPerLine * CounterDigits
)

// place is Paired's, on words of counters.
func (f *Counters) place(h uint64) place {
	block, a, b, countsA, countsB := derive(h, f.Blocks, f.Rows)
	words := f.Words[block*CounterWordsPerBlock:][:CounterWordsPerBlock]
	return place{
		lineA:   words[a*counterWordsPerLine:][:counterWordsPerLine],
		lineB:   words[b*counterWordsPerLine:][:counterWordsPerLine],
		countsA: countsA,
		countsB: countsB,
	}
}

// digits are the four words of a lane.
type digits = [CounterDigits]uint64

// lanesOf marks the lanes of a counts word that take part, by a bit at 8*lane.
// There are always K, so the processor predicts a loop over them, but not a test of
// each of the eight.
func lanesOf(counts uint64) uint64 { return ^counts >> 6 & 0x0101010101010101 }

// probe returns the first lane of on and its bit of counts.
func probe(line []uint64, counts, on uint64) (lane *digits, bit uint64) {
	at := bits.TrailingZeros64(on) // 8*lane
	return (*digits)(line[at/8*CounterDigits:]), 1 << (counts >> at & 63)
}

// Contains reports whether none of the counters of h is zero.
func (f *Counters) Contains(h uint64) bool {
	at := f.place(h)
	return anyZero(at.lineA, at.countsA) == 0 && anyZero(at.lineB, at.countsB) == 0
}

// anyZero returns a word that is zero if and only if none of the counters selected by
// counts is zero.
func anyZero(line []uint64, counts uint64) (zero uint64) {
	for on := lanesOf(counts); on != 0; on &= on - 1 {
		c, bit := probe(line, counts, on)
		zero |= bit &^ (c[0] | c[1] | c[2] | c[3])
	}
	return zero
}

// Add adds one to the counters of h and reports whether any of them was zero.
func (f *Counters) Add(h uint64) bool {
	at := f.place(h)
	return f.increase(at.lineA, at.countsA)|f.increase(at.lineB, at.countsB) != 0
}

// increase adds one to the counters and returns what anyZero would have returned.
func (f *Counters) increase(line []uint64, counts uint64) (zero uint64) {
	for on := lanesOf(counts); on != 0; on &= on - 1 {
		c, bit := probe(line, counts, on)
		c0, c1, c2, c3 := c[0], c[1], c[2], c[3]
		zero |= bit &^ (c0 | c1 | c2 | c3)
		if c1&c2&c3&bit != 0 { // the counter is at 14 or 15
			if c0&bit == 0 {
				c[0] = c0 | bit
				f.Stuck++
			}
			continue
		}
		c[0] = c0 ^ bit
		carry := c0 & bit
		c[1] = c1 ^ carry
		carry &= c1
		c[2] = c2 ^ carry
		carry &= c2
		c[3] = c3 ^ carry
	}
	return zero
}

// Remove subtracts one from the counters of h, except those that are stuck, and reports
// whether it did. If any of them is zero, h was never added, and nothing changes.
func (f *Counters) Remove(h uint64) bool {
	at := f.place(h)
	if anyZero(at.lineA, at.countsA)|anyZero(at.lineB, at.countsB) != 0 {
		return false
	}
	decrease(at.lineA, at.countsA)
	decrease(at.lineB, at.countsB)
	return true
}

// decrease subtracts one from the counters, none of which is zero.
func decrease(line []uint64, counts uint64) {
	for on := lanesOf(counts); on != 0; on &= on - 1 {
		c, bit := probe(line, counts, on)
		c0, c1, c2, c3 := c[0], c[1], c[2], c[3]
		if c0&c1&c2&c3&bit != 0 {
			continue
		}
		c[0] = c0 ^ bit
		borrow := bit &^ c0
		c[1] = c1 ^ borrow
		borrow &^= c1
		c[2] = c2 ^ borrow
		borrow &^= c2
		c[3] = c3 ^ borrow
	}
}

// Count returns the least of the counters of h, 0 to MaxCount.
func (f *Counters) Count(h uint64) int {
	at := f.place(h)
	return min(least(at.lineA, at.countsA), least(at.lineB, at.countsB))
}

func least(line []uint64, counts uint64) int {
	count := MaxCount
	for on := lanesOf(counts); on != 0; on &= on - 1 {
		c, bit := probe(line, counts, on)
		n := 0
		for i, digit := range c {
			if digit&bit != 0 {
				n |= 1 << i
			}
		}
		count = min(count, n)
	}
	return count
}

// Counts returns the counters of h, four bits each, in an order of its own. Only the lowest
// digits of a word are used if there are fewer than 16.
func (f *Counters) Counts(h uint64) (counts uint64) {
	at := f.place(h)
	shift := 0
	for _, of := range [2]struct {
		line   []uint64
		counts uint64
	}{{at.lineA, at.countsA}, {at.lineB, at.countsB}} {
		for on := lanesOf(of.counts); on != 0; on &= on - 1 {
			lane := bits.TrailingZeros64(on)
			c, bit := (*digits)(of.line[lane/8*CounterDigits:]), of.counts>>lane&63
			n := c[0]>>bit&1 | c[1]>>bit&1<<1 | c[2]>>bit&1<<2 | c[3]>>bit&1<<3
			counts |= n << shift
			shift += CounterDigits
		}
	}
	return counts
}

// SetCounts sets the counters of h to what Counts has returned.
func (f *Counters) SetCounts(h, counts uint64) {
	at := f.place(h)
	for _, of := range [2]struct {
		line   []uint64
		counts uint64
	}{{at.lineA, at.countsA}, {at.lineB, at.countsB}} {
		for on := lanesOf(of.counts); on != 0; on &= on - 1 {
			c, bit := probe(of.line, of.counts, on)
			if c[0]&c[1]&c[2]&c[3]&bit != 0 {
				f.Stuck--
			}
			for i := range c {
				c[i] &^= bit
				if counts>>i&1 != 0 {
					c[i] |= bit
				}
			}
			if c[0]&c[1]&c[2]&c[3]&bit != 0 {
				f.Stuck++
			}
			counts >>= CounterDigits
		}
	}
}

// AddBatch sets isNew[i] to Add(hashes[i]), as if called one by one, and returns how
// many are true. isNew is as long as hashes. The caller passes a thousand or so at a time.
func (f *Counters) AddBatch(hashes []uint64, isNew []bool) int {
	if len(hashes) == 0 {
		return 0
	}
	if useAVX2 {
		f.Stuck += countersAddAVX2(f, hashes, &isNew[:len(hashes)][0])
		return countTrue(isNew[:len(hashes)])
	}
	for i, h := range hashes {
		isNew[i] = f.Add(h)
	}
	return countTrue(isNew[:len(hashes)])
}

// nearCounters is nearWords for counters.
const nearCounters = 1 << 20 / 8

// ContainsBatch sets found[i] to Contains(hashes[i]) and returns how many are
// true. found is as long as hashes. As in a Paired, there is a way for hits and one for
// misses, which reads the second line only of keys that pass the first; the answers of
// earlier calls decide.
func (f *Counters) ContainsBatch(hashes []uint64, found []bool, recent *Recent) int {
	if len(hashes) == 0 {
		return 0
	}
	if useAVX2 {
		switch first := &found[:len(hashes)][0]; {
		case len(f.Words) <= nearCounters:
			countersContainsNearAVX2(f, hashes, first)
		case recent.hits:
			countersContainsBothAVX2(f, hashes, first)
		default:
			countersContainsFirstAVX2(f, hashes, first)
		}
	} else {
		for i, h := range hashes {
			found[i] = f.Contains(h)
		}
	}
	n := countTrue(found[:len(hashes)])
	recent.hits = 3*n > len(hashes)
	return n
}

// removeAhead is how many keys RemoveBatch looks up before it removes them. The lines of
// that many, four or five each, stay in the first-level cache.
const removeAhead = 64

// RemoveBatch sets removed[i] to Remove(hashes[i]), as if called one by one, and returns
// how many are true. removed is as long as hashes. It looks some keys up before it removes
// them, which fetches their lines side by side.
func (f *Counters) RemoveBatch(hashes []uint64, removed []bool) (count int) {
	hits := Recent{hits: true} // most keys will be there: fetch both lines
	for len(hashes) > 0 {
		n := min(len(hashes), removeAhead)
		if len(f.Words) > nearCounters {
			f.ContainsBatch(hashes[:n], removed, &hits)
			hits.hits = true
		}
		for i, h := range hashes[:n] {
			if removed[i] = f.Remove(h); removed[i] {
				count++
			}
		}
		hashes, removed = hashes[n:], removed[n:]
	}
	return count
}

// Merge adds g's counters to f's, folding g.Blocks/f.Blocks neighbouring blocks of g
// into one of f. Each key then counts in f as often as in both together.
func (f *Counters) Merge(g *Counters) {
	by := g.Blocks / f.Blocks
	for block := range g.Blocks {
		dst := f.Words[block/by*CounterWordsPerBlock:][:CounterWordsPerBlock]
		src := g.Words[block*CounterWordsPerBlock:][:CounterWordsPerBlock]
		for w := 0; w < CounterWordsPerBlock; w += CounterDigits {
			f.Stuck += sum((*digits)(dst[w:]), (*digits)(src[w:]))
		}
	}
}

// sum adds 64 counters to 64 others and returns how many of them got stuck.
func sum(dst, src *digits) uint64 {
	stuck := dst[0] & dst[1] & dst[2] & dst[3]
	carry := uint64(0)
	for i := range dst {
		a, b := dst[i], src[i]
		dst[i] = a ^ b ^ carry
		carry = a&b | (a^b)&carry
	}
	for i := range dst { // sums above 15 become 15
		dst[i] |= carry
	}
	return uint64(bits.OnesCount64(dst[0] & dst[1] & dst[2] & dst[3] &^ stuck))
}

// NonZero sets the bits of dst whose counters are not zero, and clears the
// others. counters has CounterDigits words for each word of dst.
func NonZero(dst, counters []uint64) {
	for w := range dst {
		c := (*digits)(counters[w*CounterDigits:])
		dst[w] = c[0] | c[1] | c[2] | c[3]
	}
}

// Recount sets Stuck by counting, for words that were read from a file, and returns the sum
// of all counters. If none is stuck that is k for each add that was not removed: both an add
// and a removal change k counters by one.
func (f *Counters) Recount() (sum uint64) {
	f.Stuck = 0
	for w := 0; w < len(f.Words); w += CounterDigits {
		c := (*digits)(f.Words[w:])
		for i, digit := range c {
			sum += uint64(bits.OnesCount64(digit)) << i
		}
		f.Stuck += uint64(bits.OnesCount64(c[0] & c[1] & c[2] & c[3]))
	}
	return sum
}
