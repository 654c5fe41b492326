package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/human"
)

// windowPlanJSON is the plan of a window: what it costs, by how its keys arrive.
type windowPlanJSON struct {
	Keys        uint64            `json:"keys"` // in a span
	Rate        float64           `json:"rate"`
	SpanSeconds float64           `json:"span_seconds"`
	Generations int               `json:"generations"`
	Arrivals    []arrivalPlanJSON `json:"arrivals"`
	Commands    commandsJSON      `json:"commands"`
}

// arrivalPlanJSON is what a window costs when its keys arrive in a given pattern.
type arrivalPlanJSON struct {
	Keys       string  `json:"keys_come"`
	Bytes      uint64  `json:"bytes"`
	BitsPerKey float64 `json:"bits_per_key"`
	Layers     int     `json:"layers"` // that a lookup may need to read
}

// planWindow plans a window instead of a filter.
func (p *planCommand) planWindow(stdout io.Writer) error {
	if p.keys == 0 {
		return usagef("--window needs -n, the number of distinct keys in that time")
	}
	if p.bits != 0 || p.probes != 0 || len(p.layouts) > 0 || p.plot != "" {
		return usagef("--window is planned from -n and -p alone: leave -m, -k, --layout and --plot out")
	}
	if p.rate == 0 {
		p.rate = defaultRate
	}
	c := bloom.WindowConfig{Keys: uint64(p.keys), Rate: float64(p.rate), Span: time.Duration(p.window), Generations: p.generations, Budget: uint64(p.budget)}
	layers, err := c.Layers()
	if err != nil {
		return err
	}
	first, all := layers[0].Bytes(), uint64(0)
	for _, layer := range layers {
		all += layer.Bytes()
	}
	g := uint64(p.generations)
	v := windowPlanJSON{Keys: c.Keys, Rate: c.Rate, SpanSeconds: c.Span.Seconds(), Generations: c.Generations, Commands: p.windowCommands()}
	add := func(keys string, bytes, layers uint64) {
		v.Arrivals = append(v.Arrivals, arrivalPlanJSON{keys, bytes, float64(bytes) * 8 / float64(c.Keys), int(layers)})
	}
	add("evenly", (g+2)*first, g+1)
	add("in one burst each span", g*first+2*all, g-1+2*uint64(len(layers))) // two are remembered
	add("the same again and again", first+(g+1)*all, (g+1)*uint64(len(layers)))
	if p.asJSON {
		return printJSON(stdout, v)
	}
	return v.print(stdout, time.Duration(p.window))
}

// windowCommands are the lines that make the window.
func (p *planCommand) windowCommands() commandsJSON {
	keys, rate, span := uint64(p.keys), p.rate.String(), spanText(time.Duration(p.window))
	if p.generations != defaultGenerations {
		return commandsJSON{
			noShell: "dedupe, build and servers make windows of 4 generations",
			Go:      fmt.Sprintf("w, err := bloom.WindowConfig{Keys: %s, Rate: %s, Span: %s, Generations: %d}.New()", underscores(keys), rate, spanGo(time.Duration(p.window)), p.generations),
		}
	}
	return commandsJSON{
		Dedupe: fmt.Sprintf("bloomery dedupe --window %s -n %d -p %s", span, keys, rate),
		Build:  fmt.Sprintf("bloomery build -o keys.bloom --kind window --span %s -n %d -p %s keys.txt", span, keys, rate),
		Redis:  fmt.Sprintf("BF.RESERVE keys %s %d WINDOW %s", rate, keys, span),
		Go:     fmt.Sprintf("w, err := bloom.NewWindow(%s, %s, %s)", underscores(keys), rate, spanGo(time.Duration(p.window))),
	}
}

// spanText writes a time without the zeros at its end: 24h for 24h0m0s.
func spanText(span time.Duration) string {
	text := span.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// spanGo writes a time as Go does.
func spanGo(span time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}} {
		if span%unit.of == 0 {
			return fmt.Sprintf("%d*time.%s", span/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%d*time.Nanosecond", span)
}

func (v windowPlanJSON) print(w io.Writer, span time.Duration) error {
	t := &human.Table{To: w}
	t.Row("window", "%s, in %d generations", spanText(span), v.Generations)
	t.Row("forgotten", "%s after a key was added, at the latest", spanText(span+(span/time.Duration(v.Generations)).Round(time.Second)))
	t.Row("keys", "%s in any %s (n)", human.Commas(v.Keys), spanText(span))
	t.Row("rate", "%s (p = %.4g), however the keys come", human.OneIn(v.Rate), v.Rate)
	if t.Err != nil {
		return t.Err
	}
	rows := [][]string{{"keys come", "bits/key", "memory", "layers"}}
	for _, a := range v.Arrivals {
		rows = append(rows, []string{a.Keys, fmt.Sprintf("%.2f", a.BitsPerKey), human.BinarySize(a.Bytes), fmt.Sprint(a.Layers)})
	}
	_, err := fmt.Fprintf(w, "\n%s\n\nTo paste:\n%s", strings.Join(alignColumns(rows), "\n"), v.Commands)
	return err
}
