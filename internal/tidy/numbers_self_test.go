package tidy

import (
	"errors"
	"strings"
	"testing"
)

// fakeRun stands for the commands of the planted documents.
func fakeRun(document, command string) (string, error) {
	switch command {
	case "bloomery plan -n 1000 -p 0.01":
		return "bits per key  9.68\nprobes        6   \n\n", nil
	case "bloomery plan --table":
		return "| p | bits |\n|---|---|\n| 0.01 | 9.68 |\n", nil
	case "bloomery info $TMPDIR/urls.bloom":
		return "keys 30087\n", nil
	case "bloomery quiet":
		return "", nil
	case "go test -run TestTable -v .":
		return "=== RUN   TestTable\nrate 1.02\n--- PASS: TestTable (0.01s)\nPASS\nok  \tgithub.com/bloomery/bloom\t0.012s\n", nil
	}
	return "", errors.New("exit status 2")
}

const fakeMakefile = ".PHONY: bench ghost\nrates := 1\nbench test: ## both\n\tgo test -bench .\n"

// fence wraps lines in a code block, so that documents fit in Go strings.
func fence(language string, lines ...string) string {
	return "```" + language + "\n" + strings.Join(lines, "\n") + "\n```\n"
}

const (
	byPlan  = "<!-- printed by: bloomery plan -n 1000 -p 0.01 -->\n"
	byTable = "<!-- printed by: bloomery plan --table -->\n"
	byInfo  = "<!-- printed by: bloomery info $TMPDIR/urls.bloom -->\n"
)

func TestNumbersSelf(t *testing.T) {
	plan := byPlan + fence("", "bits per key  9.68", "probes        6")
	for _, tt := range []struct{ name, text, want string }{
		// Blocks and markers.
		{"fresh block", plan, ""},
		{"stale block", byPlan + fence("", "bits per key  9.59", "probes        6"), `a.md:3: got "bits per key  9.59", want "bits per key  9.68"`},
		{"short block", byPlan + fence("", "bits per key  9.68"), `got no line, want "probes        6"`},
		{"long block", byPlan + fence("", "bits per key  9.68", "probes        6", "more"), `a.md:5: got "more", want no line`},
		{"trailing space", byPlan + fence("text", "bits per key  9.68  ", "probes        6", ""), ""},
		{"block in a list", "- so:\n\n  " + strings.TrimSuffix(strings.ReplaceAll(plan, "\n", "\n  "), "  "), ""},
		{"fresh table", byTable + "| p | bits |\n|---|---|\n| 0.01 | 9.68 |\n", ""},
		{"stale table", byTable + "| p | bits |\n|---|---|\n| 0.01 | 9.59 |\n", "a.md:4: got"},
		{"failing command", "<!-- printed by: bloomery frobnicate -->\n" + fence("", "1"), "a.md:1: bloomery frobnicate: exit status 2"},
		{"silent command", "<!-- printed by: bloomery quiet -->\n" + fence(""), "prints nothing"},
		{"foreign command", "<!-- printed by: curl example.org -->\n" + fence("", "1"), "must start with"},
		{"go test's own lines", "<!-- printed by: go test -run TestTable -v . -->\n" + fence("", "rate 1.02"), ""},
		{"measured", "<!-- measured by: make bench -->\n" + fence("", "12 ns"), ""},
		{"measured by no target", "<!-- measured by: make rates -->\n" + fence("", "12 ns"), "no target rates"},
		{"measured by a name in .PHONY", "<!-- measured by: make ghost -->\n" + fence("", "12 ns"), "no target ghost"},
		{"drawing", "<!-- drawing -->\n" + fence("", "| magic 8 | version 4 |"), ""},
		{"unmarked block", "\n" + fence("", "bits per key 9.68"), "a.md:2: this fenced block has numbers and no marker"},
		{"unmarked text", fence("text", "AVX2"), "no marker"},
		{"unmarked words", fence("", "no numbers"), ""},
		{"unmarked input", fence("sh", "bloomery plan -n 1000") + fence("go", "bloom.New(1000, 0.01)"), ""},
		{"unmarked table", "| p |\n|---|\n| 0.01 |\n", "this table has numbers and no marker"},
		{"unmarked table of names", "| on | speaks |\n|---|---|\n| Go 1.26 | RESP3 and `512` |\n", ""},
		{"marker too far up", byPlan + "\n" + fence("", "bits"), "a.md:1: this marker marks nothing"},
		{"marker at the end", plan + "<!-- drawing -->", "marks nothing"},
		{"marker with a typo", "<!-- printed by bloomery plan -->\n" + fence("", "bits"), "want <!-- printed by: COMMAND -->"},
		{"open fence", "```\nbits\n", "never closed"},

		// Console blocks: input first, then output.
		{"console, input only", fence("console", "$ bloomery plan -n 1000"), ""},
		{"console, output unmarked", fence("console", "$ bloomery plan", "bits 9.68"), "no marker"},
		{"console, fresh", byInfo + fence("console", "$ bloomery info urls.bloom", "keys 30087"), ""},
		{"console, stale", byInfo + fence("console", "$ bloomery info urls.bloom", "keys 7"), `a.md:4: got "keys 7"`},
		{"console, another command", byInfo + fence("console", "$ bloomery info other.bloom", "keys 30087"), "show what is run"},

		// Prose.
		{"known figure", plan + "It takes 9.68 bits per key.\n", ""},
		{"known figure, with separators", byInfo + fence("", "keys 30087") + "in 30,087 bytes\n", ""},
		{"unknown decimal", plan + "\nIt takes\nabout 9.59, and 6 probes.\n", `a.md:8: the figure "9.59"`},
		{"not a part of a known number", plan + "0.68 bits\n", `"0.68 bits"`},
		{"unknown time", "a lookup takes 12 ns.\n", `"12 ns"`},
		{"unknown percentage", "10% more\n", `"10%"`},
		{"unknown ratio", "is 2x as fast\n", `"2x"`},
		{"unknown range", byPlan + fence("", "bits per key  9.68", "probes        6") + "3..6 GB/s\n", `"3..6 GB/s"`},
		{"unknown figure in bold", "**3** GB, 7&nbsp;keys\n", `"3** GB"`},
		{"unknown figure behind a fixed space", "12&nbsp;ns\n", `ns" stands`},
		{"unknown rate", "serves 7 adds/s\n", `"7 adds/s"`},
		{"figure in a table's neighbour", "| a |\n|---|\n| b |\n\n4 KiB\n", `a.md:5: the figure "4 KiB"`},
		{"figure in a quote", "> takes 3 ms\n", `"3 ms"`},
		{"figure in a link", "[12 ns](bench.md)\n", `"12 ns"`},
		{"counts", "one of 8 lines, 1,000,000 keys, 8 x 8 lanes, RFC 9110\n", ""},
		{"names", "a 64-bit hash, a 512-byte block, AVX2, SHA-256, 0x40\n", ""},
		{"versions", "Go 1.26, Redis ≥ 7.2, v0.8.0, Apache-2.0, 127.0.0.1, since the 1970s\n", ""},
		{"references", "see section 3.2, §4.1, equation (2.3) and Figure 1.1\n", ""},
		{"code and formulas", "`-p 0.01`, `a\n0.5 b`, $m = 1.44 n$ and $$0.5$$\n", ""},
		{"links and tags", "[b](x-1.5.png) <img width=\"1.5\"> https://example.org/1.5 <!-- 1.5 -->\n", ""},
		{"headings", "## 10% more\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantProblem(t, checkNumbers([]*document{parse("a.md", tt.text)}, fakeMakefile, fakeRun), tt.want)
		})
	}
}

// A figure may stand in one document and its block in another.
func TestNumbersAcrossDocuments(t *testing.T) {
	readme := parse("README.md", "It takes 9.68 bits per key.\n")
	maths := parse("docs/maths.md", byPlan+fence("", "bits per key  9.68", "probes        6"))
	wantProblem(t, checkNumbers([]*document{readme, maths}, fakeMakefile, fakeRun), "")
}

func TestNumbersUpdate(t *testing.T) {
	stale := "# A\n\n" + byPlan + fence("", "old", "old", "old") + "between\n\n" +
		"- so:\n\n  <!-- printed by: bloomery info $TMPDIR/urls.bloom -->\n  ```console\n  $ bloomery info urls.bloom\n  old\n  ```\n\n" +
		byTable + "| p |\n|---|\n| old |\n\nafter\n"
	want := "# A\n\n" + byPlan + fence("", "bits per key  9.68", "probes        6") + "between\n\n" +
		"- so:\n\n  <!-- printed by: bloomery info $TMPDIR/urls.bloom -->\n  ```console\n  $ bloomery info urls.bloom\n  keys 30087\n  ```\n\n" +
		byTable + "| p | bits |\n|---|---|\n| 0.01 | 9.68 |\n\nafter\n"
	got, changed := renew(parse("a.md", stale), fakeRun)
	if got != want || !changed {
		t.Errorf("renew = %q, %v, want %q, true", got, changed, want)
	}
	if _, changed := renew(parse("a.md", want), fakeRun); changed {
		t.Errorf("renew changed a fresh document")
	}
}
