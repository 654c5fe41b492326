package tidy

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// link finds the addresses of links and pictures, in Markdown and in the HTML
// that it may hold.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:href|src|srcset)="([^"]+)"`)

// TestLinks follows every relative link of every Markdown file, headings included.
func TestLinks(t *testing.T) {
	report(t, checkLinks(tracked(t, ".md"), func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}))
}

func TestLinksSelf(t *testing.T) {
	exists := func(name string) bool { return name == "docs/a.md" || name == "README.md" || name == "docs" }
	for _, tt := range []struct{ text, want string }{
		{"[a](a.md) [r](../README.md) [d](../docs) [w](https://example.org/x)", ""},
		{"[a](b.md)", "docs/a.md:1: the link b.md leads nowhere"},
		{"\n![a](a.svg)", "docs/a.md:2: the link a.svg"},
		{`<img src="a.svg">`, "the link a.svg"},
		{"# Add a kind's *row*\n[a](#add-a-kinds-row) [b](a.md#add-a-kinds-row)", ""},
		{"# A\n[a](#b)", "no heading #b"},
		{"`[a](b.md)`\n```\n[a](b.md)\n# A\n```\n", ""},
	} {
		t.Run(tt.text, func(t *testing.T) {
			wantProblem(t, checkLinks(map[string]string{"docs/a.md": tt.text}, exists), tt.want)
		})
	}
}

// checkLinks returns the relative links of documents that lead nowhere.
func checkLinks(documents map[string]string, exists func(name string) bool) (problems []string) {
	for name, text := range documents {
		for i, line := range strings.Split(withoutCode(text), "\n") {
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				address := match[1] + match[2]
				to, err := url.Parse(address)
				if err != nil || to.Scheme != "" || to.Host != "" {
					continue
				}
				target := name
				if to.Path != "" {
					target = path.Join(path.Dir(name), to.Path)
				}
				bad := ""
				if !exists(target) {
					bad = "leads nowhere"
				} else if text, ours := documents[target]; ours && to.Fragment != "" && !slices.Contains(anchors(text), to.Fragment) {
					bad = fmt.Sprintf("leads nowhere: %s has no heading #%s", target, to.Fragment)
				}
				if bad != "" {
					problems = append(problems, fmt.Sprintf("%s:%d: the link %s %s", name, i+1, address, bad))
				}
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// codeSpan finds code within a line.
var codeSpan = regexp.MustCompile("`[^`\n]+`")

// withoutCode blanks fenced blocks and code within lines, and keeps line ends.
func withoutCode(text string) string {
	lines := strings.Split(text, "\n")
	fence := ""
	for i, line := range lines {
		open := fenceLine.FindStringSubmatch(line)
		switch {
		case fence != "":
			if closes(line, fence) {
				fence = ""
			}
			lines[i] = ""
		case open != nil:
			fence, lines[i] = open[2], ""
		case !headingLine.MatchString(line):
			lines[i] = codeSpan.ReplaceAllString(line, "")
		}
	}
	return strings.Join(lines, "\n")
}

// anchors returns the names that GitHub gives the headings of a document.
func anchors(text string) (names []string) {
	for line := range strings.Lines(withoutCode(text)) {
		if headingLine.MatchString(line) {
			name := strings.Map(func(r rune) rune {
				switch {
				case r == ' ' || r == '-':
					return '-'
				case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(strings.TrimLeft(line, "# ")))
			names = append(names, name)
		}
	}
	return names
}
