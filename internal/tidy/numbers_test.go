package tidy

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// The rule these tests hold, and the markers, are described in doc.go.

var update = flag.Bool("update", false, "rewrite the blocks of the documents that are printed by commands")

// commandTime is the most a command may take. Slower ones belong behind
// "measured by".
const commandTime = time.Minute

// inputLanguages are what readers type or write; blocks in them need no marker.
// A block of output is text, console, json or without a language.
var inputLanguages = []string{"go", "sh", "bash", "python", "java", "js", "javascript", "c", "rust", "html", "css", "yaml", "toml", "ini", "systemd", "nginx", "dockerfile", "make", "sql", "diff", "math"}

// A runner runs a document's command and returns what it prints.
type runner func(document, command string) (string, error)

func TestNumbers(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every command of the documents")
	}
	run := newRunner(t)
	docs := readDocs(t)
	if *update {
		for _, doc := range docs {
			if text, changed := renew(doc, run); changed {
				t.Logf("rewriting %s", doc.name)
				if err := os.WriteFile(filepath.Join(root, doc.name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		docs = readDocs(t)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkNumbers(docs, string(makefile), run))
}

// readDocs parses the documents the rule covers, as far as they exist.
func readDocs(t *testing.T) (docs []*document) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	names = append([]string{filepath.Join(root, "README.md"), filepath.Join(root, "ARCHITECTURE.md")}, names...)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		short, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, parse(filepath.ToSlash(short), string(text)))
	}
	return docs
}

// checkNumbers returns what is wrong with the numbers in docs.
func checkNumbers(docs []*document, makefile string, run runner) (problems []string) {
	known := map[string]bool{} // the numbers of all marked blocks
	for _, doc := range docs {
		for _, b := range doc.blocks {
			if b.marker != "" {
				for _, number := range numbers(strings.Join(doc.body(b), "\n")) {
					known[number.token] = true
				}
			}
		}
	}
	for _, doc := range docs {
		for _, b := range doc.blocks {
			checkBlock(doc, b, makefile, run)
		}
		checkProse(doc, known)
		problems = append(problems, doc.problems...)
	}
	return problems
}

// checkBlock adds to the document's problems what is wrong with a block.
func checkBlock(doc *document, b block, makefile string, run runner) {
	body := doc.body(b)
	switch b.marker {
	case "drawing":
	case "measured by":
		if !hasTarget(makefile, b.command) {
			doc.bad(b.head()-1, "measured by: make %s: the Makefile has no target %s: name one that has, or add it", b.command, b.command)
		}
	case "printed by":
		want, err := printed(doc, b, run)
		if err != nil {
			doc.bad(b.head()-1, "%s: %v", b.command, err)
			return
		}
		for i, typed := range body[:b.input(body)] {
			if !strings.Contains(bare(b.command), bare(typed[2:])) {
				doc.bad(b.first+i, "got input %q, want part of the marker's command %q: show what is run", typed[2:], b.command)
			}
		}
		got := body[b.input(body):]
		for i := range max(len(got), len(want)) {
			if g, w := at(got, i), at(want, i); g != w {
				doc.bad(b.first+b.input(body)+i, "got %s, want %s as %q prints it: if that is right, run go test ./internal/tidy -update", g, w, b.command)
				return // the lines after it are probably only shifted
			}
		}
	default:
		kind, has := "fenced block", strings.ContainsFunc(strings.Join(body[b.input(body):], ""), unicode.IsDigit)
		if b.table {
			kind, has = "table", len(numbers(blank(strings.Join(body, "\n")))) > 0
		}
		if has && !slices.Contains(inputLanguages, b.language) {
			doc.bad(b.head(), "this %s has numbers and no marker: put <!-- printed by: COMMAND --> (compared with its output), <!-- measured by: make TARGET --> or, for a diagram or a definition, <!-- drawing --> on the line directly above it; if it is input, give the fence a language such as sh or go", kind)
		}
	}
}

// at returns line i quoted, or a word for its absence.
func at(lines []string, i int) string {
	if i < len(lines) {
		return fmt.Sprintf("%q", lines[i])
	}
	return "no line"
}

// bare removes from a command what a reader's own files would not have.
func bare(command string) string {
	return strings.NewReplacer("$TMPDIR/", "", "testdata/", "").Replace(command)
}

// goTestLine is what go test adds to the output of a test.
var goTestLine = regexp.MustCompile(`^\s*(=== |--- |PASS$|FAIL|ok  \t|\?   \t)`)

// printed returns what the block's command prints, as lines.
func printed(doc *document, b block, run runner) ([]string, error) {
	isGo := strings.HasPrefix(b.command, "go test ") || strings.HasPrefix(b.command, "go run ./")
	if !isGo && !strings.HasPrefix(b.command, "bloomery ") {
		return nil, errors.New(`the command must start with "bloomery ", "go test " or "go run ./"`)
	}
	output, err := run(doc.name, b.command)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(output, "\n")
	if strings.HasPrefix(b.command, "go test ") {
		lines = slices.DeleteFunc(lines, goTestLine.MatchString)
	}
	lines = trimLines(lines)
	if len(lines) == 0 {
		return nil, errors.New("prints nothing")
	}
	return lines, nil
}

// renew returns the document's text with each printed block as its command
// prints it now. A command that fails leaves its block, for the check to report.
func renew(doc *document, run runner) (text string, changed bool) {
	// Commands run in the document's order, as they share $TMPDIR.
	fresh := make([][]string, len(doc.blocks))
	for i, b := range doc.blocks {
		if b.marker != "printed by" {
			continue
		}
		want, err := printed(doc, b, run)
		body := doc.body(b)
		typed := b.input(body)
		if err != nil || slices.Equal(body[typed:], want) {
			continue
		}
		fresh[i] = append(fresh[i], doc.lines[b.first:b.first+typed]...)
		for _, line := range want {
			fresh[i] = append(fresh[i], strings.TrimRight(b.indent+line, " "))
		}
	}
	// Blocks are replaced from the end, so that the indexes of the others stay.
	lines := doc.lines
	for i, b := range slices.Backward(doc.blocks) {
		if fresh[i] != nil {
			lines = slices.Concat(lines[:b.first], fresh[i], lines[b.last:])
			changed = true
		}
	}
	return strings.Join(lines, "\n"), changed
}

// hasTarget reports whether the Makefile has a rule for the target.
func hasTarget(makefile, target string) bool {
	for line := range strings.Lines(makefile) {
		targets, rest, isRule := strings.Cut(line, ":")
		if isRule && !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, ".PHONY") &&
			!strings.HasPrefix(rest, "=") && slices.Contains(strings.Fields(targets), target) {
			return true
		}
	}
	return false
}

var (
	number = regexp.MustCompile(`\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?`)

	// unit follows a number, perhaps after the rest of a range: 12..15 ns.
	unit = regexp.MustCompile(`^[*_]{0,2}(?:` + space + `(?:\.\.|…|–|-|to|or|/)` + space + `[\d,.]*\d)*(?:` +
		`[x×](?:$|[^\pL\pN])|` + // 1.5x, attached; "2 x 4" is a product
		space + `(?:[%‰]|(?:\pL+/(?:s|sec|second|key|add|query|op)|` +
		`percent|per cent|bits?|bytes?|[KMGT]?i?B|kB|[kMGT]bit|ns|µs|μs|us|ms|s|` +
		`nanoseconds?|microseconds?|milliseconds?|seconds?|min|minutes?|h|hours?|days?|` +
		`cycles?|instructions?|times)(?:$|[^\pL\pN])))`)
)

// space may stand between a number and its unit; the second one does not break.
const space = `(?:[\s\x{a0}]|&nbsp;)?`

// A numeral is a number in a text. Its token has no thousands separators.
type numeral struct {
	token      string
	start, end int
}

// numbers finds the numbers that stand alone: 64 in "64 bits" or "64x", none in
// "RESP3".
func numbers(text string) (found []numeral) {
	for _, place := range number.FindAllStringIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:place[0]])
		if !unicode.IsLetter(before) && !unicode.IsDigit(before) && before != '_' {
			found = append(found, numeral{strings.ReplaceAll(text[place[0]:place[1]], ",", ""), place[0], place[1]})
		}
	}
	return found
}

// checkProse adds a problem for each figure in prose that no marked block has.
func checkProse(doc *document, known map[string]bool) {
	for _, n := range numbers(doc.prose) {
		after := unit.FindString(doc.prose[n.end:])
		if known[n.token] || after == "" && !strings.Contains(n.token, ".") {
			continue
		}
		figure := strings.Join(strings.Fields(doc.prose[n.start:n.end]+after), " ")
		figure = strings.TrimRight(figure, " ,;:.)!?*_")
		doc.bad(strings.Count(doc.prose[:n.start], "\n"), "the figure %q stands in no marked block: have a program print it, in a block or table under <!-- printed by: COMMAND --> or <!-- measured by: make TARGET --> that has the number %s; or drop it; or, if it is input rather than a result, write it in backticks", figure, n.token)
	}
}

// newRunner returns the runner that runs commands for real: sh, in the root of
// the repository, with a bloomery built from this tree first in PATH.
func newRunner(t *testing.T) runner {
	bin := t.TempDir()
	var buildErr error
	built := false
	tmp := map[string]string{}    // by document
	output := map[string]string{} // by document and command: -update asks twice
	return func(document, command string) (string, error) {
		if text, ok := output[document+"\n"+command]; ok {
			return text, nil
		}
		needs := strings.HasPrefix(command, "bloomery ")
		if needs && !built {
			built = true
			// Without the stamp of version control, which may refuse and is not needed.
			build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(bin, "bloomery"), "./cmd/bloomery")
			build.Dir = root
			if text, err := build.CombinedOutput(); err != nil {
				buildErr = fmt.Errorf("building ./cmd/bloomery: %w\n%s", err, text)
			}
		}
		if needs && buildErr != nil {
			return "", buildErr
		}
		if tmp[document] == "" {
			tmp[document] = t.TempDir()
		}
		ctx, cancel := context.WithTimeout(t.Context(), commandTime)
		defer cancel()
		shell := exec.CommandContext(ctx, "sh", "-c", command)
		shell.Dir = root
		shell.WaitDelay = time.Second // a killed sh may leave children that hold the pipe
		shell.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
			"TMPDIR="+tmp[document], "LC_ALL=C", "TZ=UTC", "NO_COLOR=1")
		var stdout, stderr bytes.Buffer
		shell.Stdout, shell.Stderr = &stdout, &stderr
		err := shell.Run()
		if ctx.Err() != nil {
			return "", fmt.Errorf("took more than %v: make it cheaper, or use <!-- measured by: make TARGET -->", commandTime)
		}
		// Exit code 1 of bloomery means, as with grep, that nothing was selected.
		if err != nil && (strings.HasPrefix(command, "go ") || shell.ProcessState.ExitCode() != 1) {
			return "", fmt.Errorf("%w\n%s", err, bytes.TrimSpace(slices.Concat(stdout.Bytes(), stderr.Bytes())))
		}
		text := strings.ReplaceAll(stdout.String(), tmp[document]+"/", "")
		output[document+"\n"+command] = text
		return text, nil
	}
}
