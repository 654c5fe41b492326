package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/chart"
	"github.com/bloomery/bloom/internal/human"
)

// planChart is a plan as a picture: rate against space, and against overfill.
// Every point is a rate that the library gives for a plan.
type planChart struct {
	layout layout
	plan   bloom.Plan
	probes int     // k as given, or zero
	target float64 // the rate that the plan should keep
}

const (
	mostTextbookProbes = 16  // a line for each k up to this
	curvePoints        = 160 // of a line; less than five pixels apart

	// nearlyOne is a rate that needs no label: it is at the upper edge and says nothing.
	nearlyOne = 0.99

	// lowestRate is the lower limit of the axes of rates: no filter is below the chance
	// that two keys have the same 64-bit hash, 2^-64.
	lowestRate = 1e-20

	// The lines against bits per key are drawn for a number of keys in this range: the
	// plan's number, if a filter is then large enough that its size in whole blocks does
	// not show as steps, and small enough that the most bits per key are possible.
	fewestChartKeys, mostChartKeys = 1e6, 1 << 38
)

func (c planChart) figure() chart.Figure {
	return chart.Figure{
		Title: fmt.Sprintf("A Bloom filter for %s keys at %s", human.Commas(c.plan.Keys), shortOneIn(c.plan.Rate)),
		Subtitle: fmt.Sprintf("%s layout: %s per key, k = %d, %s bytes (%s)",
			c.layout.name, c.space(), c.plan.Probes, human.Commas(c.layout.memory(c.plan)), human.BinarySize(c.layout.memory(c.plan))),
		Panels: []chart.Panel{c.bySpace(), c.byOverfill()},
	}
}

// space is m/n in words.
func (c planChart) space() string {
	if c.layout.name == "counting" {
		return fmt.Sprintf("%.2f counters", c.plan.BitsPerKey())
	}
	return fmt.Sprintf("%.2f bits", c.plan.BitsPerKey())
}

// bySpace is the rate against bits per key: the textbook filter for each k and for
// the best k, paired lines, split blocks, and the plan itself.
func (c planChart) bySpace() chart.Panel {
	widest := c.widest()
	step := 4.
	for widest/step > 12 {
		step *= 2
	}
	best := c.curve(widest, planClassic)
	lowest := best[len(best)-1].Y
	if c.plan.BitsPerKey() <= widest {
		lowest = min(lowest, c.plan.Rate)
	}
	lowest = max(decadeBelow(lowest), lowestRate)
	panel := chart.Panel{
		Title:  "Rate against space" + c.spaceNote(widest),
		X:      chart.Axis{Label: "bits per key (m/n)", From: 0, To: widest, Ticks: chart.Steps(widest, step)},
		Y:      chart.Axis{Label: "false-positive rate (p)", From: lowest, To: 1, Log: true, Ticks: chart.Decades(lowest, 1, 10)},
		Height: 440,
	}
	for k := 1; k <= mostTextbookProbes; k++ {
		line := chart.Line{Role: chart.Context, End: fmt.Sprintf("k = %d", k), Points: c.curve(widest, withProbes(planClassic, k))}
		if k == mostTextbookProbes {
			line.Name = fmt.Sprintf("textbook, k = 1 to %d", k)
		}
		panel.Lines = append(panel.Lines, line)
	}
	paired, planPaired := "paired", planner(bloom.Config.Plan)
	if c.layout.name == "counting" {
		paired = "paired and counting (m counters)"
	}
	if c.probes != 0 && (c.layout.name == "paired" || c.layout.name == "counting") {
		paired += fmt.Sprintf(", k = %d", c.probes)
		planPaired = withProbes(bloom.Config.Plan, c.probes)
	}
	panel.Lines = append(panel.Lines,
		chart.Line{Role: chart.Bound, Name: "textbook, the best k", Points: best},
		chart.Line{Role: chart.Other, Name: "split", Points: c.curve(widest, bloom.Config.PlanSplitBlock)},
		chart.Line{Role: chart.Main, Name: paired, Points: c.curve(widest, planPaired)})
	panel.Marks = []chart.Mark{{
		Point: chart.Point{X: c.plan.BitsPerKey(), Y: c.plan.Rate},
		Name:  fmt.Sprintf("the plan: %s, %s, %s", c.layout.name, c.space(), shortOneIn(c.plan.Rate)),
	}}
	return panel
}

// decadeBelow is the next power of ten at or below x.
func decadeBelow(x float64) float64 { return math.Pow(10, math.Floor(math.Log10(x))) }

// spaceNote says where the plan and the lines do not meet.
func (c planChart) spaceNote(widest float64) string {
	note := ""
	if keys := c.lineKeys(); keys != c.plan.Keys {
		note = fmt.Sprintf(", lines for %s keys", human.Commas(keys))
	}
	if c.plan.BitsPerKey() > widest {
		note += fmt.Sprintf("; the plan's %.2f bits per key are beyond the edge", c.plan.BitsPerKey())
	}
	return note
}

// widest is the end of the axis of bits per key: the plan is in the middle, if that
// leaves room for the lines.
func (c planChart) widest() float64 {
	const few, many, most = 24, 64, 128
	bitsPerKey := c.plan.BitsPerKey()
	if bitsPerKey > most {
		return 32
	}
	return max(few, min(8*math.Ceil(bitsPerKey/4), many), 16*math.Ceil(bitsPerKey/16))
}

// lineKeys is the number of keys for which the lines of bySpace are drawn.
func (c planChart) lineKeys() uint64 { return min(max(c.plan.Keys, fewestChartKeys), mostChartKeys) }

// withProbes plans with k given.
func withProbes(plan planner, k int) planner {
	return func(c bloom.Config) (bloom.Plan, error) {
		c.Probes = k
		return plan(c)
	}
}

// curve is the rate at 0 to widest bits per key. Sizes that the layout does not
// have are left out.
func (c planChart) curve(widest float64, plan planner) []chart.Point {
	keys := c.lineKeys()
	var points []chart.Point
	for i := 1; i <= curvePoints; i++ {
		bitsPerKey := widest * float64(i) / curvePoints
		p, err := plan(bloom.Config{Keys: keys, Bits: uint64(bitsPerKey * float64(keys))})
		if err == nil {
			points = append(points, chart.Point{X: p.BitsPerKey(), Y: p.Rate})
		}
	}
	return points
}

// byOverfill is the rate of the planned filter from a tenth of its keys to ten times
// its keys.
func (c planChart) byOverfill() chart.Panel {
	var points []chart.Point
	lowest := min(c.plan.Rate, c.target)
	for i := range curvePoints + 1 {
		at := c.filled(math.Pow(10, 2*float64(i)/curvePoints-1))
		if len(points) > 0 && at.X == points[len(points)-1].X { // small plans have few distinct points
			continue
		}
		points = append(points, at)
		if at.Y > 0 {
			lowest = min(lowest, at.Y)
		}
	}
	lowest = min(max(decadeBelow(lowest), lowestRate), 0.1)
	panel := chart.Panel{
		Title:  "Rate against overfill",
		X:      chart.Axis{Label: "keys in the filter, as a multiple of n", From: 0.1, To: 10, Log: true},
		Y:      chart.Axis{Label: "false-positive rate (p)", From: lowest, To: 1, Log: true, Ticks: chart.Decades(lowest, 1, 8)},
		Height: 280,
		Lines:  []chart.Line{{Role: chart.Main, Name: fmt.Sprintf("%s, %s for each of n keys, k = %d", c.layout.name, c.space(), c.plan.Probes), Points: points}},
		Marks:  []chart.Mark{{Point: chart.Point{X: 1, Y: c.plan.Rate}, Name: "the plan: " + shortOneIn(c.plan.Rate)}},
	}
	for _, x := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10} {
		panel.X.Ticks = append(panel.X.Ticks, chart.Tick{At: x, Label: fmt.Sprintf("%g\u00d7", x)})
	}
	if c.target < nearlyOne {
		panel.Rules = []chart.Rule{{At: c.target, Label: "target: " + shortOneIn(c.target)}}
	}
	for _, x := range []float64{0.5, 2, 5} {
		if at := c.filled(x); at.Y > 0 && at.Y < nearlyOne {
			panel.Marks = append(panel.Marks, chart.Mark{Point: at, Label: shortOneIn(at.Y)})
		}
	}
	return panel
}

// shortOneIn is human.OneIn with fewer digits, to fit a label.
func shortOneIn(rate float64) string {
	if x := 1 / rate; x >= 1e10 {
		return "1 in " + strings.Replace(fmt.Sprintf("%.3g", x), "e+", "e", 1)
	}
	return human.OneIn(rate)
}

// filled is the rate with about x times the planned keys, at least one.
func (c planChart) filled(x float64) chart.Point {
	keys := max(uint64(math.Round(x*float64(c.plan.Keys))), 1)
	return chart.Point{X: float64(keys) / float64(c.plan.Keys), Y: c.plan.RateAt(keys)}
}
