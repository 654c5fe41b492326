package kernel

import (
	"math/rand/v2"
	"testing"
)

// TestFirst compares FirstSync with a search one by one by the Go twin, in up to nine filters
// of different sizes and probes. They are fairly full, so that one line or both are found by
// chance as well.
func TestFirst(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(7, 8))
		var filters []*Paired
		for range 10 {
			if got := len(filters); got > 0 {
				counts := make([]int, got+1)
				for _, h := range randomHashes(random, 2000, nil) {
					if random.IntN(3) == 0 {
						filters[random.IntN(len(filters))].addGeneric(h)
					}
					want := 0
					for want < len(filters) && !filters[want].containsGeneric(h) {
						want++
					}
					if got := FirstSync(filters, h); got != want {
						t.Fatalf("FirstSync(%d filters, %#x) = %d, want %d", len(filters), h, got, want)
					}
					counts[want]++
				}
				for i, n := range counts {
					if n == 0 {
						t.Errorf("of %d filters, none of the keys was tested with the answer %d", got, i)
					}
				}
			} else if FirstSync(nil, 1) != 0 {
				t.Error("FirstSync(nil, 1) is not 0")
			}
			f := newPaired(uint64(1+random.IntN(40)), 1+random.IntN(8))
			for _, h := range randomHashes(random, int(f.Blocks)*20, nil) {
				f.addGeneric(h)
			}
			filters = append(filters, f)
		}
	})
}
