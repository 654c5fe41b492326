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
