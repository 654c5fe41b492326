// Package kernel holds the hot loops: given a 64-bit hash and a block array of
// words, set bits or test them. It knows nothing of keys, rates or files.
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
// The eight bytes of a counts word are eight shift counts, one per lane: lane
// i's mask is 1 << byte i. The row adds 0x40 to the lanes that do not take
// part, and a shift by 64 or more leaves nothing. That is why one table lookup
// and no masking selects K lanes of 8, in Go and in AVX2 alike.
//
// The bits come from g, not from h or p, because inside one block the high bits
// of h are all the same and those of p nearly so.
package kernel

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
	laneOff   = 0x40               // a shift count that leaves nothing
)

// Paired is a block array as the kernels see it. Words has Blocks*WordsPerBlock
// elements and begins on a 512-byte boundary, and Rows is [RowsFor] of the
// number of bits per line.
type Paired struct {
	Words  []uint64
	Blocks uint64
	Rows   *[256]uint64
}

// RowsFor returns the lane table for K bits per line, 1 to 8: row r marks with
// 0x40 the lanes that take no part. The C(8,K) sets of lanes stand in ascending
// order, a set being the number that has bit i for lane i, spread over 256 rows
// by r*C(8,K)>>8; no set's share of the rows differs from another's by more than
// one row.
func RowsFor(bitsPerLine int) *[256]uint64 { return &rows[bitsPerLine] }

var rows = func() (table [9][256]uint64) {
	for k := 1; k <= 8; k++ {
		var patterns []uint64
		for lanes := range 256 {
			row, chosen := uint64(0), 0
			for lane := range 8 {
				if lanes>>lane&1 == 1 {
					chosen++
				} else {
					row |= laneOff << (8 * lane)
				}
			}
			if chosen == k {
				patterns = append(patterns, row)
			}
		}
		for r := range 256 {
			table[k][r] = patterns[r*len(patterns)>>8]
		}
	}
	return table
}()

// Contains reports whether all bits of h are set.
func (f *Paired) Contains(h uint64) bool { return f.containsGeneric(h) }

// Add sets the bits of h and reports whether any of them was clear.
func (f *Paired) Add(h uint64) bool { return f.addGeneric(h) }

// ContainsBatch sets found[i] to Contains(hashes[i]) and returns how many are
// true. found is at least as long as hashes.
func (f *Paired) ContainsBatch(hashes []uint64, found []bool) int {
	n := 0
	for i, h := range hashes {
		found[i] = f.containsGeneric(h)
		if found[i] {
			n++
		}
	}
	return n
}

// AddBatch sets isNew[i] to Add(hashes[i]), as if one after the other, and
// returns how many are true. isNew is at least as long as hashes.
func (f *Paired) AddBatch(hashes []uint64, isNew []bool) int {
	n := 0
	for i, h := range hashes {
		isNew[i] = f.addGeneric(h)
		if isNew[i] {
			n++
		}
	}
	return n
}
