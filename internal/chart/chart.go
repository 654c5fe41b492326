// Package chart draws curves on axes as SVG, from one template. A chart is a
// self-contained file that follows the reader's light or dark theme.
//
// A [Figure] is a stack or a row of panels. The caller describes a panel in the units
// of its axes; this package computes positions on the page. The template's style
// sheet has a colour for each role of a line, so that all figures look alike.
//
// Nothing here knows what a Bloom filter is.
package chart

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// A Figure is the content of a file: a title, and panels from top to bottom.
type Figure struct {
	Title    string
	Subtitle string
	Panels   []Panel

	// Row puts the panels side by side. They share the y axis of the first panel, which
	// must fit all, and the line ends of the last, which name the lines of all.
	Row bool

	// Source describes where the data come from. It is in the file, but not drawn.
	Source string
}

// A Panel is a pair of axes and what is drawn on them, in this order: rules, lines,
// marks.
type Panel struct {
	Title  string
	X, Y   Axis
	Height int // of the area inside the axes, in pixels
	Rules  []Rule
	Lines  []Line
	Marks  []Mark
}

// An Axis goes from From to To, upwards or to the right. Both are finite, and they
// differ; on a logarithmic axis both are above zero.
type Axis struct {
	Label    string
	From, To float64
	Log      bool
	Ticks    []Tick
}

// A Tick is a labelled place on an axis, with a grid line.
type Tick struct {
	At    float64
	Label string
}

// A Point is a place in a panel, in the units of its axes.
type Point struct{ X, Y float64 }

// A Line joins points. It is clipped at the axes. Points that are not finite, or not
// above zero on a logarithmic axis, are left out.
type Line struct {
	Name   string // entry in the legend above the panel; none if empty
	End    string // label at the line's right end; none if empty
	Role   Role
	Points []Point
}

// A Rule is a horizontal line across the panel.
type Rule struct {
	At    float64
	Label string
}

// A Mark is a dot. A mark with a name is the subject of the figure, and has lines to both
// axes.
type Mark struct {
	Point
	Name  string // entry in the legend; none if empty
	Label string // text next to the dot, to its lower right; none if empty
}

// A Role is the purpose of a line, which determines its look.
type Role string

// The roles of lines.
const (
	Context Role = "context" // one of many, thin and grey, with a small label
	Bound   Role = "bound"   // the limit for the others, dotted
	Main    Role = "main"    // the subject of the figure
	Variant Role = "variant" // another form of Main, thinner
	Other   Role = "other"   // what Main is compared with
	Second  Role = "second"  // another one to compare with
	Third   Role = "third"   // and another
)

// Decades returns the ticks 1e-3, 1e-2 ... of a logarithmic axis. If there are more
// than most intervals, it skips some. from and to are powers of ten.
func Decades(from, to float64, most int) []Tick {
	first, last := int(math.Round(math.Log10(from))), int(math.Round(math.Log10(to)))
	step := max((last-first+most-1)/most, 1)
	var ticks []Tick
	for e := last; e >= first; e -= step {
		label := fmt.Sprintf("1e%d", e)
		if e == 0 {
			label = "1"
		}
		ticks = append(ticks, Tick{math.Pow(10, float64(e)), label})
	}
	return ticks
}

// Steps returns the ticks 0, step, 2 step ... up to `to` of a linear axis.
func Steps(to, step float64) []Tick {
	var ticks []Tick
	for i := 0.; i*step <= to; i++ {
		ticks = append(ticks, Tick{i * step, fmt.Sprintf("%g", i*step)})
	}
	return ticks
}

//go:embed chart.svg.tmpl
var source string

var page = template.Must(template.New("chart.svg").Funcs(template.FuncMap{"text": escape, "class": class}).Parse(source))

// class returns a class attribute for the given names. It adds attributes with nearly the
// same look for programs that do not support CSS variables (librsvg) or CSS, in which
// everything would otherwise be black. CSS overrides these attributes.
func class(names any) string {
	text := fmt.Sprint(names)
	attributes := fmt.Sprintf("class=%q", text)
	drawn := make(map[string]string)
	for name := range strings.FieldsSeq(text) {
		maps.Copy(drawn, plain[name])
	}
	for _, property := range slices.Sorted(maps.Keys(drawn)) {
		attributes += fmt.Sprintf(" %s=%q", property, drawn[property])
	}
	return attributes
}

// plain has the properties of each class, parsed from the style sheet, with the light
// theme's colours.
var plain = func() map[string]map[string]string {
	sheet, _, _ := strings.Cut(source, "</style>")
	light, _, _ := strings.Cut(sheet, "@media")
	colours := make(map[string]string)
	for _, found := range regexp.MustCompile(`--(\w+): (#\w+);`).FindAllStringSubmatch(light, -1) {
		colours["var(--"+found[1]+")"] = found[2]
	}
	classes := make(map[string]map[string]string)
	for _, rule := range regexp.MustCompile(`(?m)^(\.[^{]*) \{(.*)\}$`).FindAllStringSubmatch(sheet, -1) {
		for _, name := range strings.Split(rule[1], ", ") {
			name = strings.TrimPrefix(name, ".")
			if classes[name] == nil {
				classes[name] = make(map[string]string)
			}
			for declaration := range strings.SplitSeq(rule[2], ";") {
				property, value, _ := strings.Cut(strings.TrimSpace(declaration), ": ")
				if colour, is := colours[value]; is {
					value = colour
				}
				if slices.Contains(drawable, property) {
					classes[name][property] = strings.TrimSuffix(value, "px")
				}
			}
		}
	}
	delete(classes["halo"], "stroke") // without support for paint-order it would cover the letters
	delete(classes["halo"], "stroke-width")
	return classes
}()

// drawable lists the CSS properties that are also attributes.
var drawable = []string{"fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight"}

// escape makes s safe in text and attributes, and replaces characters that XML does
// not allow.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return template.HTMLEscapeString(s)
}

// WriteSVG writes the figure as an SVG file. The same figure always gives the same
// bytes.
func (f Figure) WriteSVG(w io.Writer) error {
	return page.Execute(w, f.layOut())
}
