package kernel

import "math/bits"

// place is where a key's bits lie: two lines of eight words, and the eight shift
// counts for each.
type place struct {
	lineA, lineB     []uint64
	countsA, countsB uint64
}

func (f *Paired) place(h uint64) place {
	block, a, b, countsA, countsB := derive(h, f.Blocks, f.Rows)
	words := f.Words[block*WordsPerBlock:][:WordsPerBlock]
	return place{
		lineA:   words[a*LanesPerLine:][:LanesPerLine],
		lineB:   words[b*LanesPerLine:][:LanesPerLine],
		countsA: countsA,
		countsB: countsB,
	}
}

// derive is the layout's arithmetic as in the package comment: from a hash it computes
// the block, its two lines and the shift counts in each.
func derive(h, blocks uint64, rows *[256]uint64) (block, a, b, countsA, countsB uint64) {
	block, _ = bits.Mul64(h, blocks)
	q, p := bits.Mul64(h, mixA)
	g := p ^ q
	s := uint32(p)
	a = uint64(s >> 24 & 7)
	b = a ^ uint64(1+(s&0xffffff)*7>>24)
	hi, lo := bits.Mul64(g, mixB)
	return block, a, b, g&countMask | rows[s&255], (lo^hi)&countMask | rows[s>>8&255]
}

// missing returns a word that is zero if and only if the line has every bit that counts
// selects.
func missing(line []uint64, counts uint64) (miss uint64) {
	for lane := range LanesPerLine {
		miss |= uint64(1) << (counts >> (8 * lane) & 255) &^ line[lane]
	}
	return miss
}

// set ORs the bits into the line and returns what missing would have returned.
func set(line []uint64, counts uint64) (miss uint64) {
	for lane := range LanesPerLine {
		bit := uint64(1) << (counts >> (8 * lane) & 255)
		miss |= bit &^ line[lane]
		line[lane] |= bit
	}
	return miss
}

func (f *Paired) containsGeneric(h uint64) bool {
	at := f.place(h)
	return missing(at.lineA, at.countsA) == 0 && missing(at.lineB, at.countsB) == 0
}

func (f *Paired) addGeneric(h uint64) bool {
	at := f.place(h)
	return set(at.lineA, at.countsA)|set(at.lineB, at.countsB) != 0
}

func (f *Paired) containsBatchGeneric(hashes []uint64, found []bool) (n int) {
	for i, h := range hashes {
		found[i] = f.containsGeneric(h)
		if found[i] {
			n++
		}
	}
	return n
}

func (f *Paired) addBatchGeneric(hashes []uint64, isNew []bool) (n int) {
	for i, h := range hashes {
		isNew[i] = f.addGeneric(h)
		if isNew[i] {
			n++
		}
	}
	return n
}
