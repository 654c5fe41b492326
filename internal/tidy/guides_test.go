package tidy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guides are the documents that show code and commands to copy. What is under a marker
// is compared with what its command prints, as everywhere; the rest is checked here.
var guides = []string{"docs/choosing.md", "docs/from-the-articles.md"}

// TestGuideCode: each line of Go in a guide stands in a Go file, which is compiled and,
// as an example or a test, run.
func TestGuideCode(t *testing.T) {
	code := sources(t, ".go")
	for _, name := range guides {
		report(t, checkGuideCode(name, readGuide(t, name), code))
	}
}

// TestGuideCommands runs the commands in the decision table.
func TestGuideCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	const name = "docs/choosing.md"
	report(t, checkGuideCommands(name, readGuide(t, name), newRunner(t)))
}

func TestGuidesSelf(t *testing.T) {
	code := map[string]string{"a_test.go": "\tf, err := bloom.New(10, 0.1)\n"}
	for _, tt := range []struct{ text, want string }{
		{"```go\nf, err := bloom.New(10, 0.1)\n```\n", ""},
		{"```go\nf, err := bloom.New(11, 0.1)\n```\n", "a.md:2: "},
		{"| a | `bloom.New(10, 0.1)` |\n| --- | --- |\n", ""},
		{"| a |\n| --- |\n| `bloom.New(11, 0.1)` |\n", "a.md:3: "},
		{"| a | `Filter`, `bloom.Filter` |\n| --- | --- |\n", ""},
	} {
		wantProblem(t, checkGuideCode("a.md", tt.text, code), tt.want)
	}
	plan := func(_, command string) (string, error) {
		if strings.Contains(command, "bloomery plan -n 0 ") {
			return "", errors.New("at least one key")
		}
		return "", nil
	}
	for _, tt := range []struct{ text, want string }{
		{"| `bloomery plan -n 1` |\n| --- |\n", ""},
		{"| `bloomery plan -n 0` |\n| --- |\n", "a.md:1: bloomery plan -n 0: at least one key"},
		{"Type `bloomery plan -n 1`.\n", "no table has a command"},
	} {
		wantProblem(t, checkGuideCommands("a.md", tt.text, plan), tt.want)
	}
}

func readGuide(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	// tableCode is code in a table that calls something of ours.
	tableCode = regexp.MustCompile("`((?:bloom|classic|interop)\\.[^`]*[({][^`]*)`")

	// tableCommand is a command in a table.
	tableCommand = regexp.MustCompile("`(bloomery [a-z]+ [^`]*)`")
)

// checkGuideCode returns which Go code of a document stands in no Go file.
func checkGuideCode(name, text string, code map[string]string) (problems []string) {
	check := func(line int, fragment string) {
		for _, source := range code {
			if strings.Contains(source, fragment) {
				return
			}
		}
		problems = append(problems, fmt.Sprintf("%s:%d: the code %q stands in no Go file: show what an example or a test runs", name, line+1, fragment))
	}
	doc := parse(name, text)
	for _, b := range doc.blocks {
		for i := b.first; i < b.last; i++ {
			line := strings.TrimSpace(doc.lines[i])
			switch {
			case b.language == "go" && line != "":
				check(i, line)
			case b.table:
				for _, match := range tableCode.FindAllStringSubmatch(line, -1) {
					check(i, match[1])
				}
			}
		}
	}
	return problems
}

// checkGuideCommands runs the commands in the tables of a document, in their order and in
// one directory, which has three lists of lines. It returns which of them fail.
func checkGuideCommands(name, text string, run runner) (problems []string) {
	const enter = "bloomery version >/dev/null && cd $TMPDIR && "
	if _, err := run(name+", tables", enter+"seq 1 100 >urls.txt && seq 91 110 >new.txt && seq 91 95 >gone.txt"); err != nil {
		return []string{err.Error()}
	}
	doc, commands := parse(name, text), 0
	for _, b := range doc.blocks {
		for i := b.first; b.table && i < b.last; i++ {
			for _, match := range tableCommand.FindAllStringSubmatch(doc.lines[i], -1) {
				commands++
				if _, err := run(name+", tables", enter+match[1]+" </dev/null"); err != nil {
					problems = append(problems, fmt.Sprintf("%s:%d: %s: %v", name, i+1, match[1], err))
				}
			}
		}
	}
	if commands == 0 {
		problems = append(problems, name+": no table has a command: does this test still see them?")
	}
	return problems
}
