package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// print is the plan for people. keysVary says that n is an answer, and so
// differs between the layouts.
func (v planJSON) print(w io.Writer, keysVary bool) error {
	t := &table{to: w}
	t.row("keys", "%s (n)", commas(v.Keys))
	t.row("rate", "%s (p = %.4g)", oneIn(v.Rate), v.Rate)
	t.row("bits", "%s (m)", commas(v.Bits))
	t.row("bits set per key", "%d (k)", v.Probes)
	t.row("memory", "%s", bytesOf(v.Bytes))
	t.row("bits per key", "%.2f", v.BitsPerKey)
	if v.Overhead == nil {
		t.row("over the optimum", "no filter at all: it says yes to everything; give more bits or fewer keys")
	} else {
		t.row("over the optimum", "%s (a textbook filter takes %.2f bits per key)", over(v.Overhead), v.BitsPerKey/(1+*v.Overhead))
	}
	t.row("at twice the keys", "%s", oneIn(v.RateAtDouble))
	t.row("cache lines read", "%.3g for a key that is there, %.4g for one that is not", v.LinesPerHit, v.LinesPerMiss)
	t.row("file", "%s", bytesOf(v.FileBytes))
	if v.Budget != 0 {
		t.row("budget", "%s bytes (%s): fits, %s used", commas(v.Budget), binarySize(v.Budget), percent(float64(v.Bytes)/float64(v.Budget)))
	}
	if t.err != nil {
		return t.err
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
			l.Layout, commas(l.Keys), oneIn(l.Rate), fmt.Sprint(l.Probes), fmt.Sprintf("%.2f", l.BitsPerKey),
			binarySize(l.Bytes), over(l.Overhead), fmt.Sprintf("%.3g", l.LinesPerHit), fmt.Sprintf("%.3g", l.LinesPerMiss), v.fit(l.Bytes),
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
