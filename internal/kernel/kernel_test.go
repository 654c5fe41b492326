package kernel

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

// TestPlacement checks the promises of the layout: two different lines of the
// right block, K bits in each, at most one a lane.
func TestPlacement(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for bitsPerLine := 1; bitsPerLine <= 8; bitsPerLine++ {
		for _, blocks := range []uint64{1, 2, 5, 1000} {
			f := &Paired{Words: make([]uint64, blocks*WordsPerBlock), Blocks: blocks, Rows: RowsFor(bitsPerLine)}
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

// TestRows checks that the rows spread evenly over all patterns of K lanes.
func TestRows(t *testing.T) {
	for k := 1; k <= 8; k++ {
		times := map[uint64]int{}
		for _, row := range RowsFor(k) {
			times[row]++
			if off := bits.OnesCount64(row & 0x4040404040404040); off != 8-k || row&^0x4040404040404040 != 0 {
				t.Errorf("K %d: row %#x leaves out %d lanes", k, row, off)
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
				t.Errorf("K %d: row %#x stands %d times, want %d or one more", k, row, n, 256/patterns)
			}
		}
	}
}
