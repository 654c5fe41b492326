package tidy

import (
	"fmt"
	"regexp"
	"strings"
)

// This file reads as much Markdown as the rule about numbers needs: fenced
// blocks, tables, the markers above them, and the prose in between.

// A document is a Markdown file, taken apart.
type document struct {
	name     string
	lines    []string
	blocks   []block
	prose    string // the lines outside blocks and headings; exempt text is blanked, so that offsets stay
	problems []string
}

// A block is a fenced code block or a table. Its body is lines[first:last].
type block struct {
	table       bool
	language    string // of a fence: its first word, "" if none
	indent      string // of a fence inside a list
	first, last int
	marker      string // "printed by", "measured by", "drawing" or ""
	command     string // of the marker: COMMAND or TARGET
}

var (
	fenceLine   = regexp.MustCompile("^([ \t]*)(```+|~~~+)[ \t]*([^ \t`]*)[^`]*$")
	tableRule   = regexp.MustCompile(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
	headingLine = regexp.MustCompile(`^ {0,3}#{1,6}([ \t]|$)`)

	// Whatever starts like a marker has to be one, or a typo would unmark a block.
	markerStart = regexp.MustCompile(`^<!--\s*(printed|measured|drawing)\b`)
	markerLine  = regexp.MustCompile(`^<!-- (?:(printed by): (\S.*)|(measured by): make (\S+)|(drawing)) -->$`)
)

// parse takes a document apart. What it cannot make sense of is a problem.
func parse(name, text string) *document {
	doc := &document{name: name, lines: strings.Split(text, "\n")}
	prose := make([]string, len(doc.lines)) // blocks and headings stay empty
	var marker []string                     // of the line above
	for i := 0; i < len(doc.lines); i++ {
		line := doc.lines[i]
		above := marker
		marker = nil
		trimmed := strings.TrimSpace(line)
		fence := fenceLine.FindStringSubmatch(line)
		isTable := strings.Contains(line, "|") && i+1 < len(doc.lines) &&
			strings.Contains(doc.lines[i+1], "|") && tableRule.MatchString(doc.lines[i+1])
		if above != nil && fence == nil && !isTable {
			doc.bad(i-1, "this marker marks nothing: it must stand on the line directly above a fenced block or a table")
		}
		switch {
		case fence != nil:
			b := block{indent: fence[1], language: fence[3], first: i + 1}
			for i++; i < len(doc.lines) && !closes(doc.lines[i], fence[2]); i++ {
			}
			if i == len(doc.lines) {
				doc.bad(b.first-1, "this fenced block is never closed")
			}
			b.last = i
			b.mark(above)
			doc.blocks = append(doc.blocks, b)
		case isTable:
			b := block{table: true, first: i}
			for i++; i < len(doc.lines) && strings.Contains(doc.lines[i], "|"); i++ {
			}
			b.last = i
			i-- // the line after a table is read again
			b.mark(above)
			doc.blocks = append(doc.blocks, b)
		case markerStart.MatchString(trimmed):
			if marker = markerLine.FindStringSubmatch(trimmed); marker == nil {
				doc.bad(i, "got marker %q, want <!-- printed by: COMMAND -->, <!-- measured by: make TARGET --> or <!-- drawing -->", trimmed)
			}
		case !headingLine.MatchString(line):
			prose[i] = line
		}
	}
	if marker != nil {
		doc.bad(len(doc.lines)-1, "this marker marks nothing: the document ends here")
	}
	doc.prose = blank(strings.Join(prose, "\n"))
	return doc
}

// bad records a problem at a line, which counts from 0.
func (doc *document) bad(line int, format string, args ...any) {
	doc.problems = append(doc.problems, fmt.Sprintf("%s:%d: ", doc.name, line+1)+fmt.Sprintf(format, args...))
}

// mark takes over a match of markerLine.
func (b *block) mark(match []string) {
	if match != nil {
		b.marker = match[1] + match[3] + match[5]
		b.command = match[2] + match[4]
	}
}

// head returns the line of the opening fence or of the table's head. A marker
// stands above it.
func (b block) head() int {
	if b.table {
		return b.first
	}
	return b.first - 1
}

// closes reports whether the line ends a block that fence opened.
func closes(line, fence string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, fence) && strings.Trim(line, fence[:1]) == ""
}

// body returns the block's lines without the fence's indent and trailing space.
func (doc *document) body(b block) []string {
	var body []string
	for _, line := range doc.lines[b.first:b.last] {
		body = append(body, strings.TrimPrefix(line, b.indent))
	}
	return trimLines(body)
}

// trimLines removes space at the end of each line and empty lines at the end.
func trimLines(lines []string) []string {
	trimmed := make([]string, len(lines))
	for i, line := range lines {
		trimmed[i] = strings.TrimRight(line, " \t\r")
	}
	for len(trimmed) > 0 && trimmed[len(trimmed)-1] == "" {
		trimmed = trimmed[:len(trimmed)-1]
	}
	return trimmed
}

// input returns how many lines at the start of a console block show what was
// typed.
func (b block) input(body []string) int {
	n := 0
	for b.language == "console" && n < len(body) && strings.HasPrefix(body[n], "$ ") {
		n++
	}
	return n
}

// products are names that a version number follows.
const products = `Go|Bloomery|Redis|RedisBloom|Valkey|Guava|Python|Java|Debian|Ubuntu|Linux|Chromium|Parquet|RocksDB|TLS|HTTP|Unicode|versions?|release`

// exempt is text in which a number is not a figure, in this order: comments come
// before tags, and code before all that may stand inside it.
var exempt = []*regexp.Regexp{
	regexp.MustCompile(`(?s)<!--.*?-->`),
	regexp.MustCompile("``.+?``|`[^`\n]+(?:\n[^`\n]+)?`"),
	regexp.MustCompile(`\$\$[^$]+\$\$|\$[^\s$](?:[^$\n]*[^\s$])?\$`), // formulas
	regexp.MustCompile(`\]\([^)\n]*\)`),
	regexp.MustCompile(`https?://[^\s<>)]+`),
	regexp.MustCompile(`</?[A-Za-z][^<>]*>`),
	regexp.MustCompile(`\b(?:` + products + `)\s+(?:>=\s*|≥\s*)?\d+(?:\.\d+)*\+?`),
	regexp.MustCompile(`\bv\d+(?:\.\d+)*`),
	regexp.MustCompile(`[A-Za-z]-\d+(?:\.\d+)*\b`),    // Apache-2.0
	regexp.MustCompile(`\b\d+\.\d+\.\d+(?:\.\d+)*\b`), // versions, dates, addresses
	regexp.MustCompile(`\b(?:19|20)\d0s\b`),           // decades are not seconds
	regexp.MustCompile(`(?i)(?:\b(?:sections?|chapters?|figures?|tables?|equations?|eq\.|articles?|part|appendix|RFC)|§§?)\s*\(?\d+(?:\.\d+)*`),
}

// blank replaces exempt text by as many spaces, and keeps line ends.
func blank(text string) string {
	for _, pattern := range exempt {
		text = pattern.ReplaceAllStringFunc(text, func(match string) string {
			blanked := []byte(match)
			for i, c := range blanked {
				if c != '\n' {
					blanked[i] = ' '
				}
			}
			return string(blanked)
		})
	}
	return text
}
