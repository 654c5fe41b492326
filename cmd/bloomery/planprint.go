package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/human"
)

// print prints the plan for people. keysVary says that n is a result, and so differs
// between the layouts.
func (v planJSON) print(w io.Writer, keysVary bool) error {
	t := &human.Table{To: w}
	t.Row("keys", "%s (n)", human.Commas(v.Keys))
	t.Row("rate", "%s (p = %.4g)", human.OneIn(v.Rate), v.Rate)
	t.Row("bits", "%s (m)", human.Commas(v.Bits))
	t.Row("bits set per key", "%d (k)", v.Probes)
	t.Row("memory", "%s", human.BytesOf(v.Bytes))
	t.Row("bits per key", "%.2f", v.BitsPerKey)
	if v.Overhead == nil {
		t.Row("over the optimum", "no filter at all: it says yes to everything; give more bits or fewer keys")
	} else {
		t.Row("over the optimum", "%s (a textbook filter takes %.2f bits per key)", over(v.Overhead), v.BitsPerKey/(1+*v.Overhead))
	}
	t.Row("at twice the keys", "%s", human.OneIn(v.RateAtDouble))
	t.Row("cache lines read", "%.3g for a key that is there, %.4g for one that is not", v.LinesPerHit, v.LinesPerMiss)
	t.Row("file", "%s", human.BytesOf(v.FileBytes))
	if v.Budget != 0 {
		t.Row("budget", "%s bytes (%s): fits, %s used", human.Commas(v.Budget), human.BinarySize(v.Budget), human.Percent(float64(v.Bytes)/float64(v.Budget)))
	}
	if t.Err != nil {
		return t.Err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := v.printLayouts(w, keysVary); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n\nTo paste:\n%s", v.verdict(), v.Commands)
	return err
}

// over formats an overhead over the textbook's filter.
func over(overhead *float64) string {
	switch {
	case overhead == nil:
		return "-"
	case *overhead > 10: // a tiny filter for few keys
		return fmt.Sprintf("%.3g times", *overhead+1)
	}
	return fmt.Sprintf("%+.1f%%", 100**overhead)
}

// printLayouts prints all layouts side by side.
func (v planJSON) printLayouts(w io.Writer, keysVary bool) error {
	rows := [][]string{{"layout", "keys", "rate", "k", "bits/key", "memory", "over textbook", "lines: hit", "miss", "here"}}
	if v.Budget != 0 {
		rows[0][len(rows[0])-1] = "budget"
	}
	for _, l := range v.Layouts {
		if l.sizeJSON == nil {
			rows = append(rows, []string{l.Layout})
			continue
		}
		rows = append(rows, []string{
			l.Layout, human.Commas(l.Keys), human.OneIn(l.Rate), fmt.Sprint(l.Probes), fmt.Sprintf("%.2f", l.BitsPerKey),
			human.BinarySize(l.Bytes), over(l.Overhead), fmt.Sprintf("%.3g", l.LinesPerHit), fmt.Sprintf("%.3g", l.LinesPerMiss), v.fit(l.Bytes),
		})
	}
	if !keysVary {
		for i, row := range rows {
			if len(row) > 1 {
				rows[i] = append(row[:1:1], row[2:]...)
			}
		}
	}
	text := alignColumns(rows)
	for i, l := range v.Layouts {
		if l.sizeJSON == nil {
			text[i+1] += "  " + l.Refused
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(text, "\n"))
	return err
}

// alignColumns makes a line of each row: the first and the last column are aligned
// to the left, the others to the right. A row may be shorter than the first.
func alignColumns(rows [][]string) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(rows))
	for r, row := range rows {
		for i, cell := range row {
			switch {
			case i == 0:
				lines[r] = fmt.Sprintf("%-*s", widths[i], cell)
			case i == len(widths)-1:
				lines[r] += "  " + cell
			default:
				lines[r] += fmt.Sprintf("  %*s", widths[i], cell)
			}
		}
		lines[r] = strings.TrimRight(lines[r], " ")
	}
	return lines
}

// commandsJSON holds the lines to paste, empty where the plan has none.
type commandsJSON struct {
	Build            string `json:"build,omitempty"`
	Dedupe           string `json:"dedupe,omitempty"`
	Redis            string `json:"redis,omitempty"`
	Go               string `json:"go"`
	noShell, noRedis string // why there is none, for people
}

// redisMostKeys is RedisBloom's limit of BF.RESERVE's capacity.
const redisMostKeys = 1 << 30

// commands are the lines that make what was planned. In the shell and in Redis a
// filter is made from n and p alone, except for a classic.
func (p *planCommand) commands(l layout, plan bloom.Plan) commandsJSON {
	c := commandsJSON{Go: p.goLine(l)}
	rate, err := p.pasteRate(l, plan)
	switch {
	case err != nil:
		c.noShell = fmt.Sprintf("build and dedupe work from n and p, and refuse these: %s", human.TrimPrefixes(err.Error()))
	case p.probes != 0 && l.name != "classic":
		c.noShell = "build and dedupe choose k themselves"
	case l.name == "classic" && (p.bits != 0 || p.probes != 0):
		c.Build = fmt.Sprintf("bloomery build -o keys.bloom --kind classic -n %d --bits %d --probes %d keys.txt", plan.Keys, plan.Bits, plan.Probes)
	default:
		c.Build = fmt.Sprintf("bloomery build -o keys.bloom%s -n %d -p %s keys.txt", l.kindFlag(), plan.Keys, rate)
	}
	if c.Build != "" && l.name == "paired" {
		c.Dedupe = fmt.Sprintf("bloomery dedupe -n %d -p %s keys.txt", plan.Keys, rate)
	}
	switch {
	case err != nil || l.name == "counting" || l.name == "split" || p.probes != 0:
	case l.name == "paired": // as 'bloomery serve' has it
		c.Redis = fmt.Sprintf("BF.RESERVE keys %s %d LAYOUT PAIRED", rate, plan.Keys)
	case plan.Keys > redisMostKeys:
		c.noRedis = fmt.Sprintf("BF.RESERVE: RedisBloom takes %s keys at most", human.Commas(redisMostKeys))
	default:
		c.Redis = fmt.Sprintf("BF.RESERVE keys %s %d", rate, plan.Keys)
	}
	return c
}

// kindFlag is the flag that makes build use the layout.
func (l layout) kindFlag() string {
	kind := map[string]string{"split": "splitblock", "classic": "classic", "counting": "counting"}[l.name]
	if kind == "" {
		return ""
	}
	return " --kind " + kind
}

// pasteRate is the rate that together with n gives the same filter, or one that is
// no larger: the given rate, or if m is given with n the planned one, rounded up to
// four digits.
func (p *planCommand) pasteRate(l layout, plan bloom.Plan) (string, error) {
	rate := float64(p.rate)
	if rate == 0 || p.keys != 0 && p.bits != 0 { // then m may do better than p
		digits := math.Pow(10, 3-math.Floor(math.Log10(plan.Rate)))
		rate = math.Ceil(plan.Rate*digits) / digits
	}
	_, err := l.plan(bloom.Config{Keys: plan.Keys, Rate: rate})
	format := byte('f')
	if rate < 1e-6 {
		format = 'g'
	}
	return strconv.FormatFloat(rate, format, -1, 64), err
}

// goLine is the call that makes the filter.
func (p *planCommand) goLine(l layout) string {
	call := ""
	switch {
	case p.keys != 0 && p.rate != 0 && p.bits == 0 && p.probes == 0:
		call = fmt.Sprintf("%s(%s, %s)", l.make, underscores(uint64(p.keys)), p.rate.String())
	case p.keys == 0 && p.rate == 0: // m and k, which Config does not accept
		call = fmt.Sprintf("classic.Config{Bits: %s, Probes: %d}.New()", underscores(uint64(p.bits)), int(p.probes))
	default:
		var fields []string
		add := func(is bool, name, value string) {
			if is {
				fields = append(fields, name+": "+value)
			}
		}
		add(p.keys != 0, "Keys", underscores(uint64(p.keys)))
		add(p.rate != 0, "Rate", p.rate.String())
		add(p.bits != 0, "Bits", underscores(uint64(p.bits)))
		add(p.probes != 0, "Probes", p.probes.String())
		room, method, _ := strings.Cut(l.make, ".")
		call = fmt.Sprintf("%s.Config{%s}.%s()", room, strings.Join(fields, ", "), method)
	}
	return "f, err := " + call
}

// underscores writes n as Go does.
func underscores(n uint64) string { return strings.ReplaceAll(human.Commas(n), ",", "_") }

func (c commandsJSON) String() string {
	var b strings.Builder
	line := func(text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %s\n", text)
		}
	}
	note := func(text string) {
		if text != "" {
			line("# " + text)
		}
	}
	line(c.Build)
	line(c.Dedupe)
	note(c.noShell)
	line(c.Redis)
	note(c.noRedis)
	line(c.Go)
	return b.String()
}
