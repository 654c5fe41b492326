package tidy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// worn are turns of phrase that crept into these texts and made readers stop.
// Each has a plainer form; the list keeps them from coming back. Add to it what
// you had to read twice.
var worn = []struct{ pattern, better string }{
	{`\b(for|of|by|to|as|on|from|with|at) who\b`, "the caller, or name the one who"},
	{`\bwhoever\b`, "the caller, or name the one who"},
	{`\b(for|of|in|has|by) so many\b|\bso many (bytes|bits|keys|lines|blocks|items|times|steps)\b`, "the number, or this many"},
	{`\bthat it is told\b`, "the words for what is passed"},
	{`\band (its|their) (kin|like)\b`, "and the like"},
	{`gives? it its name`, "renames"},
	{`what has that name`, "the value with that name"},
	{`\bits bytes tell\b`, "is detected"},
	{`takes it over from there`, "converts it"},
	{`of who names none`, "the default"},
	{`by who needs no more`, "stops"},
	{`for now and ever`, "cannot be changed later"},
	{`is for no cpu to foresee`, "mispredicts"}, // in lower case, as the text is searched
	{`what was the word for`, "nothing: history is in the log"},
	{`\bin so far as\b`, "as far as"},
	{`as who asks`, "as the caller asks"},
	{`found no room in`, "finds it full"},
	{`which alone can be a`, "must be a"},
	{`tells in how many`, "returns the number of"},
	{`and never a panic or an allocation that they do not back`, "never panics, and allocates no more than"},
	{`what was done to make it lose`, "how we tried to make it lose"},
	{`printed is the interval`, "it prints the interval"},
}

// TestWords looks for them in every tracked text: Go, documents, scripts.
func TestWords(t *testing.T) {
	report(t, checkWords(tracked(t, ".go", ".s", ".md", ".sh", ".tmpl", "Makefile", ".service", ".yml")))
}

func TestWordsSelf(t *testing.T) {
	for _, tt := range []struct{ file, text, want string }{
		{"a.go", "package a\n\n// grow is for who found no room.\n", "a.go:3: \"for who\""},
		{"a.md", "It ends in so\nmany seconds.\n", "a.md:1: \"in so many\""},
		{"a.go", "// put gives it\n// its name.\n", "a.go:1:"},
		{"a.md", "for whole files, for whom\n", ""},
		{"internal/tidy/words_test.go", "for who \n", ""},
	} {
		t.Run(tt.file+" "+tt.text, func(t *testing.T) {
			wantProblem(t, checkWords(map[string]string{tt.file: tt.text}), tt.want)
		})
	}
}

// lineBreak is where a line of text ends, with what opens a line of a comment.
var lineBreak = regexp.MustCompile(`\s*\n[ \t]*(?://|#)?[ \t]*|[ \t]+`)

// checkWords returns where files have one of the phrases, which may run over the
// end of a line.
func checkWords(files map[string]string) (problems []string) {
	for name, text := range files {
		if path.Base(name) == "words_test.go" {
			continue
		}
		flat, lines := flatten(strings.ToLower(text))
		for _, w := range worn {
			for _, at := range regexp.MustCompile(w.pattern).FindAllStringIndex(flat, -1) {
				problems = append(problems, fmt.Sprintf("%s:%d: %q: write %s", name, lines[at[0]], flat[at[0]:at[1]], w.better))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// flatten makes each stretch of white space one space, and returns for each byte
// of the result the line it is from.
func flatten(text string) (flat string, lines []int) {
	var b strings.Builder
	line := 1
	add := func(s string) {
		for i := range len(s) {
			lines = append(lines, line)
			if s[i] == '\n' {
				line++
			}
		}
		b.WriteString(s)
	}
	from := 0
	for _, at := range lineBreak.FindAllStringIndex(text, -1) {
		add(text[from:at[0]])
		lines = append(lines, line)
		b.WriteByte(' ')
		line += strings.Count(text[at[0]:at[1]], "\n")
		from = at[1]
	}
	add(text[from:])
	return b.String(), lines
}
