package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/bloomery/bloom/internal/human"
)

// print is the plan for people. keysVary says that n is an answer, and so
// differs between the layouts.
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

// over writes an overhead over the textbook.
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

// alignColumns makes a line of each row: the first and the last column lie
// against the left, the others against the right. A row may be shorter than the
// first.
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
