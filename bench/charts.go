package main

import (
	"bytes"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"

	bitsandblooms "github.com/bits-and-blooms/bloom/v3"
	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/chart"
	"github.com/greatroar/blobloom"
)

// drawCharts writes the charts of README.md to dir: speed.svg from the figures in
// dir's speed.tsv, and bits.svg, which needs no measurement.
func drawCharts(dir string) {
	speed, err := os.ReadFile(filepath.Join(dir, speedFile))
	if err != nil {
		log.Fatalf("%v: measure first, with -charts", err)
	}
	writeChart(filepath.Join(dir, "speed.svg"), speedChart(must(parseSpeeds(string(speed)))))
	writeChart(filepath.Join(dir, "bits.svg"), bitsChart())
}

func writeChart(path string, figure chart.Figure) {
	var page bytes.Buffer
	if err := figure.WriteSVG(&page); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// curves are the lines of the speed chart. Each is one way to call one library.
var curves = []struct {
	name    string
	library string
	call    call
	role    chart.Role
}{
	{"bits-and-blooms", bnb, singleKeys, chart.Other},
	{"blobloom", blob, singleKeys, chart.Second},
	{"parquet-go", parq, singleKeys, chart.Third},
	{"Filter, one by one", "Filter", singleKeys, chart.Variant},
	{"Filter, batch", "Filter", batchKeys, chart.Main},
	{"bare touch", "bare touch", batchHashes, chart.Bound},
}

// speedChart has a panel for each operation, all with the same axes.
func speedChart(s speeds) chart.Figure {
	f := chart.Figure{
		Title:    "Nanoseconds per key, by the number of keys in the filter",
		Subtitle: fmt.Sprintf("16-byte keys, one false positive in %g; less is better. %s", math.Round(1/s.rate), s.head["CPU"]),
		Source:   s.source(),
		Row:      true,
	}
	var all, sizes []float64
	for _, row := range s.rows {
		all = append(all, row.ns[:]...)
		sizes = append(sizes, float64(row.n))
	}
	y := chart.Axis{Label: "nanoseconds per key", From: 0.8 * slices.Min(all), To: 1.3 * slices.Max(all), Log: true}
	for _, decade := range []float64{0.1, 1, 10, 100, 1000} {
		for _, at := range []float64{decade, 2 * decade, 5 * decade} {
			if at > y.From && at < y.To {
				y.Ticks = append(y.Ticks, chart.Tick{At: at, Label: fmt.Sprintf("%g", at)})
			}
		}
	}
	x := chart.Axis{Label: "keys (n)", From: slices.Min(sizes), To: slices.Max(sizes), Log: true}
	x.Ticks = chart.Decades(math.Pow(10, math.Ceil(math.Log10(x.From))), math.Pow(10, math.Floor(math.Log10(x.To))), 10)
	for op := add; op <= miss; op++ {
		panel := chart.Panel{Title: panelTitles[op], X: x, Y: y, Height: 290}
		for _, curve := range curves {
			line := chart.Line{End: curve.name, Role: curve.role}
			for _, row := range s.rows {
				if row.curve == curve.name {
					line.Points = append(line.Points, chart.Point{X: float64(row.n), Y: row.ns[op]})
				}
			}
			panel.Lines = append(panel.Lines, line)
		}
		f.Panels = append(f.Panels, panel)
	}
	return f
}

var panelTitles = [...]string{add: "Add", hit: "Hit: the key is there", miss: "Miss: it is not"}

// bitsChart compares the sizes that the libraries plan.
func bitsChart() chart.Figure {
	const (
		n      = 10_000_000
		points = 50 // per decade of the rate
	)
	panel := chart.Panel{
		X:      chart.Axis{Label: "false-positive rate (p)", From: 0.1, To: 1e-6, Log: true, Ticks: chart.Decades(1e-6, 0.1, 10)},
		Y:      chart.Axis{Label: "bits per key", From: 0, To: 70, Ticks: chart.Steps(70, 10)},
		Height: 290,
	}
	for _, l := range []struct {
		name string
		role chart.Role
		bits func(p float64) float64
	}{
		{"parquet-go", chart.Third, splitBlockBits},
		{"blobloom", chart.Second, func(p float64) float64 {
			bits, _ := blobloom.Optimize(blobloom.Config{Capacity: n, FPRate: p})
			return float64(bits) / n
		}},
		{"bits-and-blooms", chart.Other, func(p float64) float64 {
			bits, _ := bitsandblooms.EstimateParameters(n, p)
			return float64(bits) / n
		}},
		{"textbook", chart.Bound, bloom.ClassicBitsPerKey},
		{"Filter", chart.Main, func(p float64) float64 {
			return must(bloom.Config{Keys: n, Rate: p}.Plan()).BitsPerKey()
		}},
	} {
		line := chart.Line{End: l.name, Role: l.role}
		for i := range 5*points + 1 {
			rate := math.Pow(10, -1-float64(i)/points)
			line.Points = append(line.Points, chart.Point{X: rate, Y: l.bits(rate)})
		}
		panel.Lines = append(panel.Lines, line)
	}
	return chart.Figure{
		Title:    "Bits per key, by false-positive rate",
		Subtitle: "What each library plans for ten million keys; less is better.",
		Panels:   []chart.Panel{panel},
	}
}
