package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Where things lie on the page, in pixels from its upper left corner.
const (
	width       = 880
	headHeight  = 92 // the figure's title and subtitle
	left        = 74 // of a panel's area: room for the labels of y
	right       = 64 // of it: room for the ends of lines
	above       = 44 // it: the panel's title
	below       = 66 // it: the labels of x, and a gap
	edge        = 24 // of the page: titles and legends keep off it
	rowHeight   = 20 // of the legend
	swatch      = 24 // the piece of line in front of a name
	letterWidth = 7.2
	endHeight   = 11.5 // the least distance of two labels at the ends of lines
)

// What the template shows. All coordinates are pixels.
type (
	figureView struct {
		Figure
		Width, Height int
		Views         []panelView
	}

	panelView struct {
		Panel
		ID                       string
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

	// ruleView is a rule at At, with its label at Y.
	ruleView struct {
		At, Y float64
		Label string
	}

	pathView struct {
		Role Role
		D    string
	}

	// endView is the label of a line's end: at Y, for a line that ends at From.
	endView struct {
		Role    Role
		From, Y float64
		Label   string
	}

	dotView struct {
		X, Y   float64
		Main   bool // with lines to the axes
		Ruled  bool // a rule is one of them
		Label  string
		Anchor string
		TextX  float64
		TextY  float64
	}

	entryView struct {
		X, Y float64
		Role Role // of a line; empty for a dot
		Name string
	}
)

func (f Figure) layOut() figureView {
	v := figureView{Figure: f, Width: width, Height: headHeight}
	for i, p := range f.Panels {
		panel := p.layOut(fmt.Sprintf("panel%d", i+1), float64(v.Height+above))
		v.Views = append(v.Views, panel)
		v.Height = int(panel.Bottom) + below
	}
	return v
}

func (p Panel) layOut(id string, top float64) panelView {
	v := panelView{Panel: p, ID: id, Heading: top - 30, Left: left, Top: top, Right: width - right, Bottom: top + float64(p.Height)}
	v.legend()
	for _, t := range p.X.Ticks {
		v.XTicks = append(v.XTicks, tickView{v.x(t.At), t.Label})
	}
	for _, t := range p.Y.Ticks {
		v.YTicks = append(v.YTicks, tickView{v.y(t.At), t.Label})
	}
	for _, r := range p.Rules {
		at := v.y(r.At)
		label := at - 6
		if at < v.Top+20 {
			label = at + 16
		}
		v.RuleViews = append(v.RuleViews, ruleView{at, label, r.Label})
	}
	for _, line := range p.Lines {
		path, end := v.path(line.Points)
		if path == "" {
			continue
		}
		v.Paths = append(v.Paths, pathView{line.Role, path})
		if line.End != "" && end >= v.Top && end <= v.Bottom {
			v.Ends = append(v.Ends, endView{line.Role, end, end, line.End})
		}
	}
	spread(v.Ends, v.Bottom)
	for _, m := range p.Marks {
		if v.holds(m.Point) {
			v.Dots = append(v.Dots, v.dot(m))
		}
	}
	return v
}

// What the template asks for beside.
func (v panelView) Width() float64  { return v.Right - v.Left }
func (v panelView) Tall() float64   { return v.Bottom - v.Top }
func (v panelView) Center() float64 { return (v.Left + v.Right) / 2 }
func (v panelView) Middle() float64 { return (v.Top + v.Bottom) / 2 }
func (v panelView) LabelX() float64 { return v.Left - 8 }
func (v panelView) LabelY() float64 { return v.Bottom + 19 }
func (v panelView) NameY() float64  { return v.Bottom + 42 }
func (v panelView) EndX() float64   { return v.Right + 12 }
func (e entryView) DotX() float64   { return e.X + 12 }

// share is how far along the axis x lies: 0 at From, 1 at To.
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

// path is the line in SVG's notation, and the height at which it ends. The
// template cuts off what lies outside of the axes.
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

// spread moves labels apart that would overlap, as little as can be, and keeps
// them above bottom.
//
// With i*endHeight taken off, labels at their least distance have the same
// height. So what is wanted is the rising sequence next to the ends of the lines,
// and that is found by pooling: neighbours in the wrong order get their mean.
func spread(ends []endView, bottom float64) {
	slices.SortStableFunc(ends, func(a, b endView) int { return cmp.Compare(a.From, b.From) })
	type pool struct{ mean, size float64 }
	var pools []pool
	for i, e := range ends {
		last := pool{e.From - endHeight*float64(i), 1}
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
			ends[int(i)].Y = p.mean + endHeight*i
			i++
		}
	}
	for i, lowest := len(ends)-1, bottom; i >= 0; i-- {
		ends[i].Y = min(ends[i].Y, lowest)
		lowest = ends[i].Y - endHeight
	}
}

// dot places a mark, and its label where the panel has room for it.
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

// legend lists the lines and marks that have names in rows above the panel, and
// moves the panel down by so much.
func (v *panelView) legend() {
	x, y := float64(edge), v.Top-6
	add := func(role Role, name string) {
		if name == "" {
			return
		}
		wide := swatch + 8 + letterWidth*float64(utf8.RuneCountInString(name))
		if x > edge && x+wide > width-edge {
			x, y = edge, y+rowHeight
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
	if len(v.Entries) > 0 {
		v.Top, v.Bottom = y+22, v.Bottom+y+22-v.Top
	}
}
