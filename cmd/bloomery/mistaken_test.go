package main

import (
	"math"
	"testing"

	"github.com/bloomery/bloom"
)

// What is expected of new keys that were taken for old ones is what is counted.
func TestMistaken(t *testing.T) {
	for _, c := range []struct {
		name        string
		keys, lines uint64
		rate        float64
	}{
		{"as planned", 100_000, 100_000, 0.01},
		{"a third", 100_000, 30_000, 0.05},
		{"over-full", 10_000, 30_000, 0.05},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := bloom.New(c.keys, c.rate)
			if err != nil {
				t.Fatal(err)
			}
			for half := range uint64(2) { // as by build, and then add
				had := half * c.lines / 2
				isNew := uint64(0)
				for i := range c.lines / 2 {
					if f.AddUint64(had + i) {
						isNew++
					}
				}
				counted := float64(c.lines/2 - isNew)
				expected := mistaken(f.Plan(), had, isNew, 2*c.lines)
				if sigma := math.Sqrt(expected + 1); math.Abs(counted-expected) > 4*sigma+0.03*expected {
					t.Errorf("half %d: counted %g, expected %g +- %g", half, counted, expected, sigma)
				}
			}
		})
	}
}
