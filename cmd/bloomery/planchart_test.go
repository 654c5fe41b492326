package main

import (
	"math"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/chart"
)

// chartOf is the chart of what one layout plans.
func chartOf(t *testing.T, layoutName string, c bloom.Config) planChart {
	t.Helper()
	l, ok := layoutNamed(layoutName)
	if !ok {
		t.Fatalf("no layout %q", layoutName)
	}
	plan, err := l.plan(c)
	if err != nil {
		t.Fatal(err)
	}
	return planChart{layout: l, plan: plan, probes: c.Probes, target: plan.Rate}
}

func lineNamed(t *testing.T, p chart.Panel, name string) []chart.Point {
	t.Helper()
	for _, line := range p.Lines {
		if line.Name == name {
			return line.Points
		}
	}
	t.Fatalf("no line %q", name)
	return nil
}

// at reads log10 of a line's height at x, between its points.
func at(t *testing.T, points []chart.Point, x float64) float64 {
	t.Helper()
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		if a.X <= x && x <= b.X {
			share := (x - a.X) / (b.X - a.X)
			return (1-share)*math.Log10(a.Y) + share*math.Log10(b.Y)
		}
	}
	t.Fatalf("the line does not come to x = %v", x)
	return 0
}

// The plan lies on the line of its layout.
func TestPlanOnItsLine(t *testing.T) {
	for _, tt := range []struct {
		layout string
		probes int
		line   string
	}{
		{"paired", 0, "paired"},
		{"paired", 8, "paired, k = 8"},
		{"split", 0, "split"},
		{"classic", 0, "textbook, the best k"},
		{"classic", 16, "textbook, k = 1 to 16"},
		{"counting", 0, "paired and counting (m counters)"},
	} {
		for _, rate := range []float64{0.2, 0.01, 1e-4} {
			for _, keys := range []uint64{1e6, 3e9} {
				c := chartOf(t, tt.layout, bloom.Config{Keys: keys, Rate: rate, Probes: tt.probes})
				panel := c.bySpace()
				mark := panel.Marks[0]
				got := at(t, lineNamed(t, panel, tt.line), mark.X)
				if math.Abs(got-math.Log10(mark.Y)) > 0.005 { // a fifth of a pixel
					t.Errorf("%s, %d keys at %g: the line lies at 1e%.4f, the plan at 1e%.4f", tt.layout, keys, rate, got, math.Log10(mark.Y))
				}
				if mark.X > 0.75*panel.X.To || mark.Y < panel.Y.From {
					t.Errorf("%s at %g: the plan at %v is near the edge of %v, %v", tt.layout, rate, mark.Point, panel.X.To, panel.Y.From)
				}
			}
		}
	}
}

// No layout beats the textbook's best k, which is the lower edge of its lines;
// these are the textbook's (1 - e^(-k/c))^k.
func TestLinesOfTheTextbook(t *testing.T) {
	panel := chartOf(t, "paired", bloom.Config{Keys: 10_000_000, Rate: 0.001}).bySpace()
	best := lineNamed(t, panel, "textbook, the best k")
	k := 0
	for _, line := range panel.Lines {
		if line.Role == chart.Context {
			k++
		}
		lowest := math.Inf(1)
		for _, p := range line.Points {
			if p.X < best[0].X {
				continue
			}
			above := math.Log10(p.Y) - at(t, best, p.X)
			if above < -0.003 {
				t.Errorf("line %d: %v is below the best k", k, p)
			}
			lowest = min(lowest, above)
			if want := math.Pow(-math.Expm1(-float64(k)/p.X), float64(k)); line.Role == chart.Context && math.Abs(p.Y/want-1) > 0.001 {
				t.Errorf("k = %d: rate %v at %v bits per key, want %v", k, p.Y, p.X, want)
			}
		}
		if line.Role == chart.Context && lowest > 0.01 {
			t.Errorf("k = %d never is the best: 10^%.3f times at least", k, lowest)
		}
	}
	if k != mostTextbookProbes {
		t.Errorf("%d lines, want one for each k up to %d", k, mostTextbookProbes)
	}
}

// Overfill: through the plan, rising, and with a tenth to ten times its keys.
func TestOverfill(t *testing.T) {
	for _, l := range layouts {
		for _, keys := range []uint64{1, 7, 1000, 1e9} {
			c := chartOf(t, l.name, bloom.Config{Keys: keys, Rate: 0.01})
			panel := c.byOverfill()
			points := panel.Lines[0].Points
			first, last := points[0], points[len(points)-1]
			if math.Abs(last.X-10) > 1e-6 || first.X < 0.0999 || keys >= 1000 && first.X > 0.1001 {
				t.Errorf("%s of %d: from %v to %v times, want 0.1 to 10", l.name, keys, first.X, last.X)
			}
			for i := 1; i < len(points); i++ {
				if points[i].X <= points[i-1].X || points[i].Y < points[i-1].Y {
					t.Errorf("%s of %d: from %v to %v", l.name, keys, points[i-1], points[i])
				}
			}
			if got := at(t, points, 1); math.Abs(got-math.Log10(c.plan.Rate)) > 0.005 {
				t.Errorf("%s of %d: 1e%.4f at one times the keys, planned 1e%.4f", l.name, keys, got, math.Log10(c.plan.Rate))
			}
		}
	}
}
