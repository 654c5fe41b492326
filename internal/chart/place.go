package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Positions and sizes on the page, in pixels from its upper left corner.
const (
	width       = 880
	headHeight  = 92 // room for the figure's title and subtitle
	left        = 74 // left of a panel's axes: room for the y labels
	right       = 64 // right of them: room for the line ends, at least
	above       = 44 // above them: the panel's title
	below       = 66 // below them: the x labels, and a gap
	edge        = 24 // the page's margin next to titles and legends
	rowHeight   = 20 // of the legend's rows
	swatch      = 24 // the sample of a line in the legend
	leader      = 12 // from the axes to the label of a line's end
	letterWidth = 7.2
	endHeight   = 11.5 // minimum distance of two labels of line ends
	nameHeight  = 15   // the same for labels in the size of other text
	gap         = 26   // between panels side by side
)

// The data for the template. All coordinates are in pixels.
type (
	figureView struct {
		Figure
		Width, Height int
		Views         []panelView
	}

	panelView struct {
		Panel
		ID                       string
		Inner                    bool    // shares the y axis of the panel to its left
		Margin, Limit            float64 // left and right ends of the title and the legend
		Heading                  float64
		Left, Top, Right, Bottom float64
		XTicks, YTicks           []tickView
		RuleViews                []ruleView
		Paths                    []pathView
		Ends                     []endView
		Dots                     []dotView
		Entries                  []entryView
	}

	tickView struct {
		At    float64
		Label string
	}

	// A ruleView is a rule at height At, whose label is at Y.
	ruleView struct {
		At, Y float64
		Label string
	}

	pathView struct {
		Role Role
		D    string
	}

	// An endView is the label of a line's end. It is at Y; the line ends at From.
	endView struct {
		Role    Role
		From, Y float64
		Label   string
	}

	dotView struct {
		X, Y   float64
		Main   bool // with lines to the axes
		Ruled  bool // one of them is a rule
		Label  string
		Anchor string
		TextX  float64
		TextY  float64
	}

	entryView struct {
		X, Y float64
		Role Role // the line's role; empty for a dot
		Name string
	}
)

func (f Figure) layOut() figureView {
	v := figureView{Figure: f, Width: width, Height: headHeight}
	if f.Row {
		v.row()
		return v
	}
	for i, p := range f.Panels {
		panel := p.layOut(fmt.Sprintf("panel%d", i+1), float64(v.Height+above))
		v.Views = append(v.Views, panel)
		v.Height = int(panel.Bottom) + below
	}
	return v
}

// row lays out the panels side by side, all with the same width. Only the last one has
// line ends.
func (v *figureView) row() {
	if len(v.Panels) == 0 {
		return
	}
	last := len(v.Panels) - 1
	n, top := float64(last+1), float64(v.Height+above)
	wide := (width - left - v.Panels[last].endWidth() - gap*(n-1)) / n
	bottom := top
	for i, p := range v.Panels {
		panel := panelView{Panel: p, ID: fmt.Sprintf("panel%d", i+1), Inner: i > 0, Heading: top - 30, Top: top, Bottom: top + float64(p.Height)}
		panel.Left = left + float64(i)*(wide+gap)
		panel.Right = panel.Left + wide
		panel.Margin, panel.Limit = panel.Left, panel.Right
		if i < last {
			panel.Lines = slices.Clone(p.Lines)
			for line := range panel.Lines {
				panel.Lines[line].End = ""
			}
		}
		panel.place()
		v.Views = append(v.Views, panel)
		bottom = max(bottom, panel.Bottom)
	}
	v.Height = int(bottom) + below
}

func (p Panel) layOut(id string, top float64) panelView {
	v := panelView{Panel: p, ID: id, Margin: edge, Limit: width - edge, Heading: top - 30, Left: left, Top: top, Right: width - p.endWidth(), Bottom: top + float64(p.Height)}
	v.place()
	return v
}

// endWidth returns the width of the space to the right of the axes.
func (p Panel) endWidth() float64 {
	widest := float64(right)
	for _, line := range p.Lines {
		if line.Role != Context && line.End != "" {
			widest = max(widest, leader+3+letterWidth*float64(utf8.RuneCountInString(line.End))+edge/2)
		}
	}
	return widest
}

// place computes the positions of everything in the panel.
func (v *panelView) place() {
	v.legend()
	for _, t := range v.X.Ticks {
		v.XTicks = append(v.XTicks, tickView{v.x(t.At), t.Label})
	}
	for _, t := range v.Y.Ticks {
		v.YTicks = append(v.YTicks, tickView{v.y(t.At), t.Label})
	}
	for _, r := range v.Rules {
		at := v.y(r.At)
		label := at - 6
		if at < v.Top+20 {
			label = at + 16
		}
		v.RuleViews = append(v.RuleViews, ruleView{at, label, r.Label})
	}
	distance := endHeight
	for _, line := range v.Lines {
		path, end := v.path(line.Points)
		if path == "" {
			continue
		}
		v.Paths = append(v.Paths, pathView{line.Role, path})
		if line.End != "" && end >= v.Top && end <= v.Bottom {
			v.Ends = append(v.Ends, endView{line.Role, end, end, line.End})
			if line.Role != Context {
				distance = nameHeight
			}
		}
	}
	spread(v.Ends, v.Bottom, distance)
	for _, m := range v.Marks {
		if v.holds(m.Point) {
			v.Dots = append(v.Dots, v.dot(m))
		}
	}
}

// Other values for the template.
func (v panelView) Width() float64  { return v.Right - v.Left }
func (v panelView) Tall() float64   { return v.Bottom - v.Top }
func (v panelView) Center() float64 { return (v.Left + v.Right) / 2 }
func (v panelView) Middle() float64 { return (v.Top + v.Bottom) / 2 }
func (v panelView) LabelX() float64 { return v.Left - 8 }
func (v panelView) LabelY() float64 { return v.Bottom + 19 }
func (v panelView) NameY() float64  { return v.Bottom + 42 }
func (v panelView) EndX() float64   { return v.Right + leader }
func (e entryView) DotX() float64   { return e.X + 12 }

// Class returns the label's class: the colour of its line, or small print.
func (e endView) Class() string {
	if e.Role == Context {
		return "end"
	}
	return "of-" + string(e.Role)
}

// share returns the position of x on the axis: 0 at From, 1 at To.
func (a Axis) share(x float64) float64 {
	if a.Log {
		return math.Log(x/a.From) / math.Log(a.To/a.From)
	}
	return (x - a.From) / (a.To - a.From)
}

func (v *panelView) x(x float64) float64 { return v.Left + v.X.share(x)*(v.Right-v.Left) }
func (v *panelView) y(y float64) float64 { return v.Bottom - v.Y.share(y)*(v.Bottom-v.Top) }

func (v *panelView) holds(p Point) bool {
	x, y := v.X.share(p.X), v.Y.share(p.Y)
	return x >= 0 && x <= 1 && y >= 0 && y <= 1
}

// path returns the line in SVG's notation, and the height at which it ends. The
// template clips it at the axes.
func (v *panelView) path(points []Point) (d string, end float64) {
	var b strings.Builder
	verb := 'M'
	for _, p := range points {
		x, y := v.x(p.X), v.y(p.Y)
		if math.IsNaN(x+y) || math.IsInf(x+y, 0) {
			continue
		}
		fmt.Fprintf(&b, "%c%.1f %.1f", verb, x, y)
		verb, end = 'L', y
	}
	return b.String(), end
}

// spread moves labels so that they are at least distance apart, by as little as
// possible, and keeps them above bottom.
//
// After subtracting i*distance from the height of label i, labels that are as close as
// allowed have equal heights. So the best heights are the non-decreasing sequence that is
// closest to the line ends. The pool-adjacent-violators algorithm finds it: neighbours in
// the wrong order get their mean.
func spread(ends []endView, bottom, distance float64) {
	slices.SortStableFunc(ends, func(a, b endView) int { return cmp.Compare(a.From, b.From) })
	type pool struct{ mean, size float64 }
	var pools []pool
	for i, e := range ends {
		last := pool{e.From - distance*float64(i), 1}
		for len(pools) > 0 && pools[len(pools)-1].mean > last.mean {
			above := pools[len(pools)-1]
			pools = pools[:len(pools)-1]
			size := above.size + last.size
			last = pool{(above.mean*above.size + last.mean*last.size) / size, size}
		}
		pools = append(pools, last)
	}
	i := 0.
	for _, p := range pools {
		for range int(p.size) {
			ends[int(i)].Y = p.mean + distance*i
			i++
		}
	}
	for i, lowest := len(ends)-1, bottom; i >= 0; i-- {
		ends[i].Y = min(ends[i].Y, lowest)
		lowest = ends[i].Y - distance
	}
}

// dot places a mark, and its label where there is room in the panel.
func (v *panelView) dot(m Mark) dotView {
	d := dotView{X: v.x(m.X), Y: v.y(m.Y), Main: m.Name != "", Label: m.Label, Anchor: "start"}
	for _, r := range v.RuleViews {
		d.Ruled = d.Ruled || math.Abs(r.At-d.Y) < 3
	}
	d.TextX, d.TextY = d.X+9, d.Y+15
	if d.TextX+letterWidth*float64(utf8.RuneCountInString(m.Label)) > v.Right {
		d.Anchor, d.TextX, d.TextY = "end", d.X-2, d.Y+20
	}
	if d.TextY > v.Bottom-4 {
		d.TextY = d.Y - 9
	}
	return d
}

// legend places the lines and marks with names in rows above the panel. It moves the
// panel down to make room for them, or up if there are none.
func (v *panelView) legend() {
	x, y := v.Margin, v.Top-6
	add := func(role Role, name string) {
		if name == "" {
			return
		}
		wide := swatch + 8 + letterWidth*float64(utf8.RuneCountInString(name))
		if x > v.Margin && x+wide > v.Limit {
			x, y = v.Margin, y+rowHeight
		}
		v.Entries = append(v.Entries, entryView{X: x, Y: y, Role: role, Name: name})
		x += wide + 22
	}
	for _, line := range v.Lines {
		add(line.Role, line.Name)
	}
	for _, m := range v.Marks {
		if v.holds(m.Point) {
			add("", m.Name)
		}
	}
	move := y + 22 - v.Top
	if len(v.Entries) == 0 {
		move = -14
		if v.Title == "" {
			move = -36
		}
	}
	v.Top, v.Bottom = v.Top+move, v.Bottom+move
}
