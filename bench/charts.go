package main

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"log"
	"math"
	"os"
	"path/filepath"
	"strings"

	bitsandblooms "github.com/bits-and-blooms/bloom/v3"
	"github.com/bloomery/bloom"
	"github.com/greatroar/blobloom"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A style is a line's look. The colours are Okabe and Ito's, which the colour-blind
// can tell apart.
type style struct {
	color  uint32
	width  vg.Length
	dashes []vg.Length
}

var (
	ourStyle      = style{0x0072b2, 2, nil}
	ourOtherStyle = style{0x56b4e9, 2, nil}
	floorStyle    = style{0x777777, 1, []vg.Length{3, 2}}
	bnbStyle      = style{0xd55e00, 1, nil}
	blobStyle     = style{0xe69f00, 1, nil}
	parquetStyle  = style{0x009e73, 1, nil}
)

// drawCharts measures for the charts and writes them as SVG.
func drawCharts(dir string, opt options) {
	writeChart(filepath.Join(dir, "bits.svg"), opt, []*plot.Plot{bitsChart()})

	rivals := []library{touchLibrary, named(bnb), named(blob), named(parq)}
	var results []*result
	for _, n := range opt.sizesOr(1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7) {
		results = append(results, measure(n, opt, filterLibrary, rivals))
	}
	var panels []*plot.Plot
	for op := add; op <= miss; op++ {
		panels = append(panels, speedChart(results, op))
	}
	writeChart(filepath.Join(dir, "speed.svg"), opt, panels)
}

// speedLines are the lines of the speed charts, top of the legend first.
var speedLines = []struct {
	label   string
	library string
	call    call
	style   style
}{
	{"bits-and-blooms", bnb, singleKeys, bnbStyle},
	{"blobloom", blob, singleKeys, blobStyle},
	{"parquet-go", parq, singleKeys, parquetStyle},
	{"Filter, one by one", "Filter", singleKeys, ourOtherStyle},
	{"Filter, batch", "Filter", batchKeys, ourStyle},
	{"bare touch", "bare touch", batchHashes, floorStyle},
}

func speedChart(results []*result, op operation) *plot.Plot {
	p := newPlot(op.String(), "keys (n)", "ns per key")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
	for _, l := range speedLines {
		var points plotter.XYs
		for _, r := range results {
			points = append(points, plotter.XY{X: float64(r.n), Y: r.find(l.library).median(cell{l.call, op})})
		}
		line := addLine(p, points, l.style)
		if op == add { // one legend serves all panels
			p.Legend.Add(l.label, line)
		}
	}
	p.Y.Min, p.Y.Max = 0.5, 1000
	return p
}

// bitsChart compares what the libraries plan, so that nothing is measured.
func bitsChart() *plot.Plot {
	const n = 10_000_000
	p := newPlot("memory", "false-positive rate (p)", "bits per key")
	p.X.Scale = plot.InvertedScale{Normalizer: plot.LogScale{}}
	for _, l := range []struct {
		label string
		style style
		bits  func(p float64) float64
	}{
		{"blobloom", blobStyle, func(p float64) float64 {
			bits, _ := blobloom.Optimize(blobloom.Config{Capacity: n, FPRate: p})
			return float64(bits) / n
		}},
		{"parquet-go", parquetStyle, splitBlockBits},
		{"Filter", ourStyle, func(p float64) float64 {
			return must(bloom.Config{Keys: n, Rate: p}.Plan()).BitsPerKey()
		}},
		{"bits-and-blooms", bnbStyle, func(p float64) float64 {
			bits, _ := bitsandblooms.EstimateParameters(n, p)
			return float64(bits) / n
		}},
		{"textbook", floorStyle, bloom.ClassicBitsPerKey},
	} {
		var points plotter.XYs
		for i := range 101 {
			rate := math.Pow(10, -1-float64(i)/20)
			points = append(points, plotter.XY{X: rate, Y: l.bits(rate)})
		}
		p.Legend.Add(l.label, addLine(p, points, l.style))
	}
	p.Y.Min, p.Y.Max = 0, 50
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 10, Label: "10"}, {Value: 20, Label: "20"},
		{Value: 30, Label: "30"}, {Value: 40, Label: "40"}, {Value: 50, Label: "50"}}
	return p
}

func newPlot(title, x, y string) *plot.Plot {
	plot.DefaultFont.Variant = "Sans"
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(8), vg.Points(-4)
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.Padding = vg.Points(1)
	grid := plotter.NewGrid()
	grid.Horizontal.Color = color.Gray{Y: 220}
	grid.Vertical.Color = color.Gray{Y: 220}
	p.Add(grid)
	return p
}

// decades labels each power of ten and marks the digits between.
func decades(low, high float64) (ticks []plot.Tick) {
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for digit := 1.0; digit < 10; digit++ {
			x := digit * math.Pow(10, e)
			if x < low*(1-1e-9) || x > high*(1+1e-9) {
				continue
			}
			tick := plot.Tick{Value: x}
			if digit == 1 {
				tick.Label = fmt.Sprintf("1e%.0f", e)
				if e >= 0 && e <= 3 {
					tick.Label = fmt.Sprintf("%.0f", x)
				}
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

func addLine(p *plot.Plot, points plotter.XYs, s style) *plotter.Line {
	line := must(plotter.NewLine(points))
	line.Color = color.RGBA{R: uint8(s.color >> 16), G: uint8(s.color >> 8), B: uint8(s.color), A: 255}
	line.Width, line.Dashes = s.width, s.dashes
	p.Add(line)
	return line
}

// writeChart writes the panels side by side, with how they were made.
func writeChart(path string, opt options, panels []*plot.Plot) {
	const side = 9 * vg.Centimeter
	canvas := vgsvg.New(side*vg.Length(len(panels)), side)
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: 3 * vg.Millimeter,
		PadTop: vg.Millimeter, PadBottom: vg.Millimeter, PadLeft: vg.Millimeter, PadRight: 3 * vg.Millimeter}
	for i, c := range plot.Align([][]*plot.Plot{panels}, tiles, draw.New(canvas))[0] {
		panels[i].Draw(c)
	}
	var svg, head bytes.Buffer
	must(canvas.WriteTo(&svg))
	writeHead(&head)
	text := strings.ReplaceAll(svg.String(), "font-family:Liberation Sans", "font-family:Liberation Sans,Arial,Helvetica,sans-serif")
	text = strings.Replace(text, "<g ", fmt.Sprintf("<desc>p = %g\n%s</desc>\n<g ", opt.rate, html.EscapeString(head.String())), 1)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}
}
