package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func draw(t *testing.T, f Figure) string {
	t.Helper()
	var b strings.Builder
	if err := f.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// mustBeXML parses the page strictly, as browsers do, and returns its text.
func mustBeXML(t *testing.T, page string) (text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return text
		}
		if err != nil {
			t.Fatalf("not well formed: %v\n%s", err, page)
		}
		if data, ok := token.(xml.CharData); ok {
			text += string(data)
		}
	}
}

// decay returns a panel with a line from the upper left to the lower right corner: x
// from 0 to 10 and y from 1 down to 1e-10.
func decay() Panel {
	p := Panel{
		Title:  "Decay",
		X:      Axis{Label: "time", From: 0, To: 10, Ticks: Steps(10, 5)},
		Y:      Axis{Label: "left", From: 1e-10, To: 1, Log: true, Ticks: Decades(1e-10, 1, 10)},
		Height: 200,
	}
	line := Line{Name: "decay", Role: Main, End: "gone"}
	for x := range 11 {
		line.Points = append(line.Points, Point{float64(x), math.Pow(10, -float64(x))})
	}
	p.Lines = []Line{line}
	return p
}

func TestPlaces(t *testing.T) {
	f := Figure{Title: "T", Panels: []Panel{decay(), decay()}}
	f.Panels[1].Marks = []Mark{{Point: Point{5, 1e-5}, Name: "half"}}
	f.Panels[1].Rules = []Rule{{At: 1e-5, Label: "rule"}}
	v := f.layOut()
	for i, p := range v.Views {
		if p.Bottom-p.Top != 200 {
			t.Errorf("panel %d is %v high, want 200", i, p.Bottom-p.Top)
		}
		path := p.Paths[0].D
		from := "M" + pixels(p.Left) + " " + pixels(p.Top)
		to := "L" + pixels(p.Right) + " " + pixels(p.Bottom)
		if !strings.HasPrefix(path, from) || !strings.HasSuffix(path, to) {
			t.Errorf("panel %d: path %s, want from %s to %s", i, path, from, to)
		}
		if end := p.Ends[0]; end.From != p.Bottom || end.Y != p.Bottom {
			t.Errorf("panel %d: end %+v, want at %v", i, end, p.Bottom)
		}
	}
	first, second := v.Views[0], v.Views[1]
	if second.Heading < first.NameY()+10 {
		t.Errorf("the second panel's title is at %v, the first's labels reach to %v", second.Heading, first.NameY())
	}
	if float64(v.Height) < second.NameY()+10 {
		t.Errorf("the page ends at %d, its last label is at %v", v.Height, second.NameY())
	}
	dot := second.Dots[0]
	if dot.X != second.Center() || math.Abs(dot.Y-second.Middle()) > 1e-9 {
		t.Errorf("the mark of the middle is at %v %v, want %v %v", dot.X, dot.Y, second.Center(), second.Middle())
	}
	if !dot.Main || !dot.Ruled {
		t.Errorf("mark %+v, want one with a name, on the rule", dot)
	}
}

func pixels(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// Points that have no place on the axes are left out. The rest is still drawn.
func TestHoles(t *testing.T) {
	p := decay()
	p.Lines = append(p.Lines,
		Line{Name: "holes", Role: Other, Points: []Point{{1, 1}, {2, 0}, {3, -1}, {math.NaN(), 1}, {math.Inf(1), 1}, {4, math.Inf(1)}, {5, 1}}},
		Line{Name: "nothing", Role: Other, End: "nowhere"})
	p.Marks = []Mark{{Point: Point{11, 1}, Name: "outside"}, {Point: Point{1, math.NaN()}, Name: "no number"}}
	page := draw(t, Figure{Panels: []Panel{p}})
	mustBeXML(t, page)
	for _, bad := range []string{"NaN", "Inf", "nowhere", "outside", "no number"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	v := p.layOut("p", 0)
	if got := strings.Count(v.Paths[1].D, "L"); len(v.Paths) != 2 || got != 1 {
		t.Errorf("%d paths, the second with %d steps; want 2, and 1 between the two good points", len(v.Paths), got)
	}
}

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		name     string
		at, want []float64
	}{
		{"far apart", []float64{10, 50, 90}, []float64{10, 50, 90}},
		{"out of order", []float64{90, 10, 50}, []float64{10, 50, 90}},
		{"two in one place", []float64{50, 50}, []float64{50 - endHeight/2, 50 + endHeight/2}},
		{"three in one place", []float64{50, 50, 50}, []float64{50 - endHeight, 50, 50 + endHeight}},
		{"at the bottom", []float64{100, 100}, []float64{100 - endHeight, 100}},
		{"a pushed neighbour", []float64{50, 50, 52}, []float64{(152 - 3*endHeight) / 3, 152. / 3, (152 + 3*endHeight) / 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ends []endView
			for _, y := range tt.at {
				ends = append(ends, endView{From: y, Y: y})
			}
			spread(ends, 100, endHeight)
			for i, e := range ends {
				if math.Abs(e.Y-tt.want[i]) > 1e-9 {
					t.Errorf("label %d at %v, want %v", i, e.Y, tt.want[i])
				}
			}
		})
	}
}

// In a row, the last panel names the lines of all, in their colours.
func TestRow(t *testing.T) {
	p := decay()
	p.Lines = nil
	for _, role := range []Role{Main, Variant, Other} {
		p.Lines = append(p.Lines, Line{End: string(role) + ", one of eighteen", Role: role, Points: []Point{{0, 1}, {10, 0.01}}})
	}
	f := Figure{Title: "T", Panels: []Panel{p, p, p}, Row: true, Source: "a <machine>"}
	v := f.layOut()
	for i, panel := range v.Views {
		if panel.Right-panel.Left != v.Views[0].Right-v.Views[0].Left || panel.Top != v.Views[0].Top {
			t.Errorf("panel %d: %v wide at %v, want as the first", i, panel.Right-panel.Left, panel.Top)
		}
		if i > 0 && panel.Left < v.Views[i-1].Right {
			t.Errorf("panel %d begins at %v, in the one before", i, panel.Left)
		}
		if last := i == len(v.Views)-1; last != (len(panel.Ends) == 3) {
			t.Errorf("panel %d has %d ends", i, len(panel.Ends))
		}
	}
	last := v.Views[2]
	for i, end := range last.Ends {
		if right := last.EndX() + 3 + letterWidth*float64(len(end.Label)); right > width {
			t.Errorf("%q reaches to %v, want on the page", end.Label, right)
		}
		if i > 0 && end.Y < last.Ends[i-1].Y+nameHeight-1e-9 {
			t.Errorf("%q at %v overlaps the one at %v", end.Label, end.Y, last.Ends[i-1].Y)
		}
	}
	page := draw(t, f)
	mustBeXML(t, page)
	for text, want := range map[string]int{">1e-5<": 1, ">left<": 1, ">time<": 3, `class="of-other" fill="#`: 1, "<metadata>a &lt;machine&gt;</metadata>": 1} {
		if got := strings.Count(page, text); got != want {
			t.Errorf("the page has %s %d times, want %d", text, got, want)
		}
	}
	if again := p.Lines[0].End; again == "" {
		t.Error("drawing removed the ends from the caller's lines")
	}
}

// A legend takes as many rows as it needs, and pushes the axes down.
func TestLegend(t *testing.T) {
	p := decay()
	one := p.layOut("p", 100)
	for range 7 {
		p.Lines = append(p.Lines, Line{Name: "another line of twenty-eight letters", Role: Other, Points: p.Lines[0].Points})
	}
	many := p.layOut("p", 100)
	if many.Top <= one.Top {
		t.Errorf("axes begin at %v under eight names, %v under one: want lower", many.Top, one.Top)
	}
	for i, e := range many.Entries {
		end := e.X + swatch + 8 + letterWidth*float64(len(e.Name))
		if end > width || e.Y > many.Top-8 || e.Y < many.Heading+8 {
			t.Errorf("entry %d: from %v to %v at %v, want on the page, between %v and %v", i, e.X, end, e.Y, many.Heading, many.Top)
		}
		if i > 0 && e.Y == many.Entries[i-1].Y && e.X < many.Entries[i-1].X+letterWidth*float64(len(many.Entries[i-1].Name)) {
			t.Errorf("entry %d begins in the one before", i)
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(ticks []Tick) string {
		var all []string
		for _, tick := range ticks {
			all = append(all, tick.Label)
		}
		return strings.Join(all, " ")
	}
	for _, tt := range []struct{ name, got, want string }{
		{"steps", labels(Steps(32, 8)), "0 8 16 24 32"},
		{"steps that do not reach the end", labels(Steps(10, 4)), "0 4 8"},
		{"decades", labels(Decades(1e-3, 1, 10)), "1 1e-1 1e-2 1e-3"},
		{"every second", labels(Decades(1e-7, 1, 4)), "1 1e-2 1e-4 1e-6"},
		{"as many as may be", labels(Decades(1e-8, 1, 8)), "1 1e-1 1e-2 1e-3 1e-4 1e-5 1e-6 1e-7 1e-8"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

// Texts are drawn as they are, whatever they contain.
func TestEscape(t *testing.T) {
	hostile := `<script>alert("&amp;")</script> ]]> 'x` + "\x00\x1b\n\xff\ufffe"
	p := decay()
	p.Title, p.X.Label, p.Y.Label = hostile, hostile, hostile
	p.X.Ticks[0].Label, p.Lines[0].Name, p.Lines[0].End = hostile, hostile, hostile
	p.Rules = []Rule{{At: 0.1, Label: hostile}}
	p.Marks = []Mark{{Point: Point{1, 0.1}, Name: hostile, Label: hostile}}
	page := draw(t, Figure{Title: hostile, Subtitle: hostile, Panels: []Panel{p}})
	text := mustBeXML(t, page)
	if strings.Contains(page, "<script") {
		t.Error("a tag was not escaped")
	}
	if want := 13; strings.Count(text, `<script>alert("&amp;")</script>`) != want {
		t.Errorf("the words appear on the page %d times, want %d", strings.Count(text, "<script>"), want)
	}
}

// The page is self-contained: it has no URL but SVG's namespace, and no script.
func TestSelfContained(t *testing.T) {
	page := draw(t, Figure{Title: "T", Panels: []Panel{decay()}})
	mustBeXML(t, page)
	rest := strings.Replace(page, `xmlns="http://www.w3.org/2000/svg"`, "", 1)
	if bad := regexp.MustCompile(`http|//|<script|<image|@import|url\([^#]`).FindString(rest); bad != "" {
		t.Errorf("the page has %q", bad)
	}
	if !strings.Contains(page, "prefers-color-scheme: dark") {
		t.Error("no dark theme")
	}
	if again := draw(t, Figure{Title: "T", Panels: []Panel{decay()}}); again != page {
		t.Error("drawn twice, and not the same")
	}
	for _, role := range []Role{Context, Bound, Main, Variant, Other, Second, Third} {
		if !strings.Contains(source, "\n."+string(role)+" { stroke") {
			t.Errorf("the style sheet has no role %q", role)
		}
	}
}

// Programs without CSS variables, such as librsvg, used to draw everything black.
func TestColoursWithoutStyle(t *testing.T) {
	p := decay()
	p.Rules = []Rule{{At: 0.1, Label: "a rule"}}
	p.Marks = []Mark{{Point: Point{1, 0.1}, Name: "a mark", Label: "a mark"}}
	_, drawn, _ := strings.Cut(draw(t, Figure{Title: "T", Panels: []Panel{p}}), "</style>")
	colour := regexp.MustCompile(` (fill|stroke)="#[0-9a-f]{6}"`)
	elements := regexp.MustCompile(`<(path|circle|rect class)[^>]*>`).FindAllString(drawn, -1)
	if len(elements) < 10 {
		t.Fatalf("%d elements, want a chart", len(elements))
	}
	for _, element := range elements {
		if !colour.MatchString(element) {
			t.Errorf("no colour: %s", element)
		}
		if strings.Count(element, " fill=") > 1 || strings.Count(element, " stroke=") > 1 {
			t.Errorf("an attribute twice: %s", element)
		}
	}
}
