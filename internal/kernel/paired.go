// Package kernel holds the hot loops: given a 64-bit hash and a block array of
// words, set bits or test them; and given many keys, hash them. It knows nothing of
// rates or files.
//
// # The paired-line layout (scheme 1)
//
// The words are an array of blocks. A block is 512 bytes: 8 lines of 64 bytes,
// a line being 8 lanes of 64 bits.
//
//	block   | line 0 | line 1 | ... | line 7 |              512 bytes, a disk sector
//	line    | lane 0 | lane 1 | ... | lane 7 |               64 bytes, a cache line
//	lane    one uint64
//
// A key touches two distinct lines of one block, a and b, and sets K bits in
// each, at most one per lane; the filter's k is 2K. Everything comes from the
// key's hash h:
//
//	block    = hi64(h * B)                        multiply-high: no modulo, and foldable
//	p, q     = lo64, hi64 of h * mixA
//	g        = p ^ q                              picks the bits of line a
//	s        = low 32 bits of p                   picks lines and lanes
//	a        = s>>24 & 7
//	b        = a ^ (1 + (s&0xffffff)*7>>24)       never a
//	x        = lo64 ^ hi64 of g * mixB            picks the bits of line b
//	counts a = g & 0x3f3f3f3f3f3f3f3f | rows[s & 255]
//	counts b = x & 0x3f3f3f3f3f3f3f3f | rows[s>>8 & 255]
//
// The eight bytes of a counts word are eight shift counts, one per lane: lane i's mask
// is 1 << byte i. The row adds 0x40 to the lanes that do not take part, and a shift by
// 64 or more leaves no bit. So one table lookup selects K lanes of 8, without masking,
// in Go, AVX2 and NEON alike.
//
// The bits come from g, not from h or p, because inside one block the high bits
// of h are all the same and those of p nearly so.
package kernel

import "math/bits"

const (
	LanesPerLine  = 8
	LinesPerBlock = 8
	WordsPerBlock = LanesPerLine * LinesPerBlock
	BlockBytes    = WordsPerBlock * 8
	BlockBits     = WordsPerBlock * 64

	// MaxBlocks is where the hash's bits run out: beyond 2^33 blocks (4 TiB)
	// fewer than 31 bits of h vary inside a block.
	MaxBlocks = 1 << 33

	mixA = 0xd1342543de82ef95
	mixB = 0x9fb21c651e98df25

	countMask = 0x3f3f3f3f3f3f3f3f // six bits of shift count per lane
	laneOff   = 0x40               // a shift count that leaves no bit
)

// Paired is a block array as the kernels see it. Words has Blocks*WordsPerBlock
// elements and begins on a 512-byte boundary, and Rows is [RowsFor] of the
// number of bits per line.
type Paired struct {
	Words  []uint64
	Blocks uint64
	Rows   *[256]uint64
}

// Probe is where a key's bits lie, for a filter whose blocks are not in this process's
// memory: two lines of a block, and a mask for each of their words.
type Probe struct {
	Block uint64
	Lines [2]int
	Masks [2][LanesPerLine]uint64
}

// Probe needs only Blocks and Rows of the filter.
func (f *Paired) Probe(h uint64) (p Probe) {
	block, a, b, countsA, countsB := derive(h, f.Blocks, f.Rows)
	p.Block, p.Lines = block, [2]int{int(a), int(b)}
	for i, counts := range [2]uint64{countsA, countsB} {
		for lane := range LanesPerLine {
			p.Masks[i][lane] = 1 << (counts >> (8 * lane) & 255)
		}
	}
	return p
}

// RowsFor returns the lane table for K bits per line, 1 to 8: row r marks with
// 0x40 the lanes that take no part. The C(8,K) sets of lanes share the 256 rows
// as evenly as possible, and the lanes exactly evenly: each set is followed by its
// rotations, and those with the fewest rotations come first, so the sets that get one
// more row than others are whole families of rotations. With the sets in plain ascending
// order, some lanes took part up to 3% more often than others, and the rate was off by 3
// parts in 10,000.
func RowsFor(bitsPerLine int) *[256]uint64 { return &rows[bitsPerLine] }

var rows = func() (table [9][256]uint64) {
	for k := 1; k <= 8; k++ {
		var sets []uint8 // bit i is lane i
		for _, rotations := range []int{1, 2, 4, 8} {
			for lanes := range 256 {
				if bits.OnesCount8(uint8(lanes)) == k && isFirst(uint8(lanes), rotations) {
					for i := range rotations {
						sets = append(sets, bits.RotateLeft8(uint8(lanes), i))
					}
				}
			}
		}
		for r := range 256 {
			table[k][r] = rowOf(sets[r%len(sets)])
		}
	}
	return table
}()

// isFirst reports whether lanes has the given number of different rotations and is the
// smallest of them.
func isFirst(lanes uint8, rotations int) bool {
	for i := 1; i < rotations; i++ {
		if bits.RotateLeft8(lanes, i) <= lanes {
			return false
		}
	}
	return bits.RotateLeft8(lanes, rotations) == lanes
}

func rowOf(lanes uint8) (row uint64) {
	for lane := range LanesPerLine {
		if lanes>>lane&1 == 0 {
			row |= laneOff << (8 * lane)
		}
	}
	return row
}

// AddBatch sets isNew[i] to Add(hashes[i]), as if called one by one, and returns how
// many are true. isNew is as long as hashes. Assembly cannot be preempted, so the
// caller passes a thousand or so at a time.
func (f *Paired) AddBatch(hashes []uint64, isNew []bool) int {
	if len(hashes) == 0 {
		return 0
	}
	if useAVX2 {
		if first := &isNew[:len(hashes)][0]; len(f.Words) <= nearWords {
			addNearAVX2(f, hashes, first)
		} else {
			addBatchAVX2(f, hashes, first)
		}
		return countTrue(isNew)
	}
	if useNEON {
		addBatchNEON(f, hashes, &isNew[:len(hashes)][0])
		return countTrue(isNew)
	}
	return f.addBatchGeneric(hashes, isNew)
}

// Recent remembers the share of hits in a run of ContainsBatch calls. The zero value is
// ready to use, by one goroutine at a time.
type Recent struct{ hits bool }

const (
	// nearWords is the size up to which a filter fits in the second-level cache. There
	// out-of-order execution hides the latency, and a ring costs more than it saves.
	nearWords = 512 << 10 / 8

	// cachedWords is the size up to which reading both lines of every key is
	// never slower, whatever the answers: no branch is mispredicted, and every line is
	// near. Like nearWords it was measured on amd64.
	cachedWords = 2 << 20 / 8
)

// ContainsBatch sets found[i] to Contains(hashes[i]) and returns how many are
// true. found is as long as hashes.
//
// There are two ways. Reading both lines of each key at once suits hits. Reading the
// second line only for keys that pass the first saves misses most of their second cache
// miss, at the cost of mispredicted branches. Beyond the cache the answers of earlier
// calls decide: with more than a third of hits, both lines are read.
func (f *Paired) ContainsBatch(hashes []uint64, found []bool, recent *Recent) int {
	if len(hashes) == 0 {
		return 0
	}
	n := 0
	switch {
	case useAVX2:
		switch first := &found[:len(hashes)][0]; {
		case len(f.Words) <= nearWords:
			containsNearAVX2(f, hashes, first)
		case len(f.Words) <= cachedWords || recent.hits:
			containsBothAVX2(f, hashes, first)
		default:
			containsFirstAVX2(f, hashes, first)
		}
		n = countTrue(found)
	case useNEON:
		if first := &found[:len(hashes)][0]; len(f.Words) <= cachedWords || recent.hits {
			containsBothNEON(f, hashes, first)
		} else {
			containsFirstNEON(f, hashes, first)
		}
		n = countTrue(found)
	default:
		n = f.containsBatchGeneric(hashes, found)
	}
	recent.hits = 3*n > len(hashes)
	return n
}
