package main

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/bloomery/bloom"
)

// TestGauge fills filters to 20 times their keys and looks where each level is
// told, and how often the bits are read.
func TestGauge(t *testing.T) {
	for _, n := range []int{1, 100, 10_000, 50_000} {
		for _, p := range []float64{0.1, 0.001, 1e-6} {
			for _, known := range []bool{false, true} {
				f, err := bloom.New(uint64(n), p)
				if err != nil {
					t.Fatal(err)
				}
				g := newGauge(f, known)
				var told []float64
				for i := range 20 * n {
					isNew := 0
					if f.AddString(fmt.Sprint(i)) {
						isNew = 1
					}
					level, _ := g.add(isNew)
					if level == 0 {
						continue
					}
					told = append(told, level)
					// Told late by little: 3 standard errors, and a look's step.
					at := float64(i+1) / float64(n)
					if level <= 1 && n >= 100 && math.Abs(at-level) > 0.01+1.5/math.Sqrt(float64(n)) {
						t.Errorf("n %d, p %g: level %g told at %.4f", n, p, level, at)
					}
				}
				want := fullness
				if known {
					want = want[1:]
				}
				if n >= 100 && !slices.Equal(told, want[:len(told)]) || n >= 100 && len(told) < len(want)-2 {
					t.Errorf("n %d, p %g, known %v: told %v", n, p, known, told)
				}
			}
		}
	}
}

// TestSaturated takes a filter whose bits are all set for over-full: its
// estimate is infinite, and so is the estimate's error.
func TestSaturated(t *testing.T) {
	f, err := bloom.Config{Keys: 10, Rate: 0.1}.New()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		f.AddUint64(uint64(i))
	}
	if r := f.Report(); r.Fill != 1 || !r.Overfull() || !passed(8, r) {
		t.Errorf("fill %g, over-full %v, level 8 passed %v, want 1, true, true", r.Fill, r.Overfull(), passed(8, r))
	}
}

// countedReports counts how often the bits are read.
type countedReports struct {
	*bloom.Filter
	reports int
}

func (c *countedReports) Report() bloom.Report {
	c.reports++
	return c.Filter.Report()
}

// A state that is nearly full is opened as fast as an empty one: its bits are read
// when it may be full, and not before.
func TestGaugeBegins(t *testing.T) {
	const n = 10_000
	for _, p := range []float64{0.1, 0.001} {
		for _, c := range []struct {
			share float64
			level float64 // that is told at once
		}{{0.5, 0}, {0.85, 0}, {0.95, 0.9}, {1.5, 1}} {
			f, err := bloom.New(n, p)
			if err != nil {
				t.Fatal(err)
			}
			for i := range uint64(c.share * n) {
				f.AddUint64(i)
			}
			counted := &countedReports{Filter: f}
			g := newGauge(counted, false)
			level, r := g.add(0)
			if level != c.level || c.share < 1 && counted.reports > 0 {
				t.Errorf("p %g, %g of n: level %g after reading the bits %d times, want %g", p, c.share, level, counted.reports, c.level)
			}
			if level > 0 && math.Abs(r.Full()-c.share) > 0.05 {
				t.Errorf("p %g: told to be %g full, is %g", p, r.Full(), c.share)
			}
			for i := uint64(c.share * n); c.share < 1 && i < 2*n; i++ { // and is still stopped at n
				isNew := 0
				if f.AddUint64(i) {
					isNew = 1
				}
				if level, _ := g.add(isNew); level == 1 {
					if math.Abs(float64(i)/n-1) > 0.05 {
						t.Errorf("p %g, begun at %g: full at %d of %d keys", p, c.share, i, n)
					}
					break
				}
				if i == 2*n-1 {
					t.Errorf("p %g, begun at %g: never full", p, c.share)
				}
			}
		}
	}
}

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
