// Package chart draws curves on axes as SVG, from one template: a page of its
// own that needs nothing else, light or dark as its reader's system is.
//
// A [Figure] is a stack of panels. What a panel shows is given in the units of
// its axes; where that is on the page is worked out here. The colours are chosen
// by role, in the template's style sheet, so that all figures look alike.
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

// A Figure is what a file shows: a title, and panels below each other.
type Figure struct {
	Title    string
	Subtitle string
	Panels   []Panel

	// Row puts the panels side by side. They share the first one's axis of y, and
	// the line ends of the last one name the lines of all.
	Row bool

	// Source says where the figures come from. It is in the file, but not drawn.
	Source string
}

// A Panel is a pair of axes with what is drawn on them, in this order: rules,
// lines, marks.
type Panel struct {
	Title  string
	X, Y   Axis
	Height int // of the area inside the axes, in pixels
	Rules  []Rule
	Lines  []Line
	Marks  []Mark
}

// An Axis goes from From to To, upwards or rightwards. Both are finite and differ;
// on a logarithmic axis both are above zero.
type Axis struct {
	Label    string
	From, To float64
	Log      bool
	Ticks    []Tick
}

// A Tick is a labelled place on an axis, with a line of the grid.
type Tick struct {
	At    float64
	Label string
}

// A Point is a place in a panel, in the units of its axes.
type Point struct{ X, Y float64 }

// A Line joins points. What lies outside the axes is cut off; points that are
// not numbers, or not above zero on a logarithmic axis, are left out.
type Line struct {
	Name   string // in the legend above the panel; none if empty
	End    string // written next to the line's right end; none if empty
	Role   Role
	Points []Point
}

// A Rule is a horizontal line across the panel.
type Rule struct {
	At    float64
	Label string
}

// A Mark is a dot. The one with a name is the figure's point, and has lines to
// both axes.
type Mark struct {
	Point
	Name  string // in the legend; none if empty
	Label string // beside the dot, below the right of it; none if empty
}

// Role is what a line is for, and so how it looks.
type Role string

// The roles of lines.
const (
	Context Role = "context" // one of many, thin and grey, its end in small print
	Bound   Role = "bound"   // what the others are measured by, dotted
	Main    Role = "main"    // what the figure is about
	Variant Role = "variant" // the same in another form, thinner
	Other   Role = "other"   // what Main is compared with
	Second  Role = "second"  // another one to compare with
	Third   Role = "third"   // and another
)

// Decades are the ticks 1e-3, 1e-2 ... of a logarithmic axis, fewer than the
// powers of ten if those are more than most. from and to are powers of ten.
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

// Steps are the ticks 0, step, 2 step ... up to `to` of a linear axis.
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

// class is the attribute of those names, and the attributes that draw nearly the
// same in programs that know no CSS variables, as librsvg does, or no CSS at all:
// there a chart would be black. Where CSS is known it overrides them.
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

// plain has the properties of each class, read from the style sheet, with the
// colours of the light theme.
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
	delete(classes["halo"], "stroke") // over the letters, where paint-order is not known
	delete(classes["halo"], "stroke-width")
	return classes
}()

// drawable are the properties of CSS that are attributes as well.
var drawable = []string{"fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight"}

// escape makes s safe between tags and in attributes, and drops what XML cannot
// hold.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return template.HTMLEscapeString(s)
}

// WriteSVG writes the figure as an SVG page. The same figure gives the same
// bytes.
func (f Figure) WriteSVG(w io.Writer) error {
	return page.Execute(w, f.layOut())
}
