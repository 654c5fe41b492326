package main

import (
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"strings"
	"unicode/utf8"
)

// record runs the tour and draws its first chapter, as a terminal shows it, to the file at
// path. This is the picture in README.md; all chapters would fill two screens.
func record(path string, run func() error) error {
	printed, err := os.CreateTemp("", "bloomery-tour")
	if err != nil {
		return err
	}
	defer os.Remove(printed.Name())
	defer printed.Close()
	terminal := os.Stdout
	os.Stdout = printed
	err = run()
	os.Stdout = terminal
	if err != nil {
		return err
	}
	text, err := os.ReadFile(printed.Name())
	if err != nil {
		return err
	}
	first, _, more := strings.Cut(string(text), "\n2. ")
	if !more {
		return errors.New("the tour has no second chapter")
	}
	return os.WriteFile(path, []byte(terminalSVG("$ make run\n"+first)), 0o644)
}

const (
	cellWidth, cellHeight = 7.8, 18 // of a letter at 13 px
	columns               = 115     // longer lines are folded
	inset                 = 20      // between the frame and the text
	barHeight             = 34
)

// terminalSVG draws text in a window: input bright, output plain, the tour's own words in
// colour. It follows the reader's light or dark theme.
func terminalSVG(text string) string {
	var lines, classes []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		for _, part := range fold(line) {
			lines, classes = append(lines, part), append(classes, class(line))
		}
	}
	width, height := int(math.Ceil(columns*cellWidth))+2*inset, barHeight+len(lines)*cellHeight+2*inset
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title">
<title id="title">make run: bloomery dedupe finds the repeats in a list of 58,999 URLs</title>
<style>
svg { --paper: #f7f8fa; --frame: #d3d9e1; --bar: #e8ebf0; --plain: #38424f; --input: #0b1a2e; --say: #0b57c2; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { svg { --paper: #11161d; --frame: #303a47; --bar: #1b222c; --plain: #b4bfcc; --input: #ffffff; --say: #79b8ff; } }
text { font: 13px/1 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: var(--plain); }
.input { fill: var(--input); font-weight: 600; }
.say { fill: var(--say); }
</style>
<rect x="0.5" y="0.5" width="%[3]d" height="%[4]d" rx="9" fill="#f7f8fa" stroke="#d3d9e1" style="fill: var(--paper); stroke: var(--frame)"/>
<path d="M0.5 34.5V9.5a9 9 0 0 1 9-9H%[5]d.5a9 9 0 0 1 9 9V34.5z" fill="#e8ebf0" style="fill: var(--bar)"/>
<circle cx="20" cy="17.5" r="6" fill="#ed6a5e"/><circle cx="40" cy="17.5" r="6" fill="#f4bf4f"/><circle cx="60" cy="17.5" r="6" fill="#61c554"/>
`, width, height, width-1, height-1, width-10)
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(&b, "<text%s x=\"%d\" y=\"%d\" xml:space=\"preserve\">%s</text>\n", classes[i], inset, barHeight+inset+i*cellHeight+13, html.EscapeString(line))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// class returns the attributes with which a line is drawn. The fill attribute is for
// programs that ignore style sheets.
func class(line string) string {
	said := !strings.HasPrefix(line, " ")
	for _, start := range []string{"   (", "   And ", "   An exact ", "   No URL "} {
		said = said || strings.HasPrefix(line, start)
	}
	switch {
	case strings.HasPrefix(strings.TrimLeft(line, " "), "$ "):
		return ` class="input" fill="#0b1a2e"`
	case said:
		return ` class="say" fill="#0b57c2"`
	}
	return ` fill="#38424f"`
}

// fold breaks a long line at spaces.
func fold(line string) (lines []string) {
	indent := strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " ")))
	for utf8.RuneCountInString(line) > columns {
		at := strings.LastIndexByte(line[:columns], ' ')
		if at <= len(indent) {
			break
		}
		lines = append(lines, line[:at])
		line = indent + line[at+1:]
	}
	return append(lines, line)
}
