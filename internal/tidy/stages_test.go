package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stageLists are the Makefile's variables that hold the packages of a stage, in
// the order of the table's columns. The stage unit runs all packages.
var stageLists = []string{"RACED", "TWINS", "BITS32"}

// TestStages compares the table in docs/testing.md with the Makefile and the
// tree: each package has a row, and each row says what make test runs.
func TestStages(t *testing.T) {
	if testing.Short() {
		t.Skip("the table is complete before a release, not at every step")
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(root, "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkStages(string(makefile), string(document), sources(t, ".go")))
}

func TestStagesSelf(t *testing.T) {
	const (
		makefile = "RACED = . ./store\nTWINS = .\nBITS32 = .\n"
		head     = "| package | unit | race | purego | 32-bit |\n| --- | --- | --- | --- | --- |\n"
		rows     = "| `bloom` | yes | yes | yes | yes |\n| `store` | yes | yes | | |\n"
	)
	files := func() map[string]string {
		return map[string]string{"a.go": "package bloom\n", "a_test.go": "package bloom\n", "store/b.go": "package store\nimport \"sync\"\n", "store/b_test.go": "package store\n"}
	}
	untested := files()
	untested["internal/tour/c.go"] = "package main\n"
	concurrent := files()
	concurrent["c/c.go"], concurrent["c/c_test.go"] = "package c\nfunc f() { go f() }\n", "package c\n"
	twin := files()
	twin["store/c.go"] = "//go:build purego\n\npackage store\n"
	for _, tt := range []struct {
		name, makefile, document string
		files                    map[string]string
		want                     string
	}{
		{"fine", makefile, head + rows, files(), ""},
		{"no row", makefile, head + strings.Split(rows, "\n")[0] + "\n", files(), "no row for `store`"},
		{"no package", makefile, head + rows + "| `shed` | yes | | | |\n", files(), "no package shed"},
		{"another mark", makefile, head + strings.Replace(rows, "yes | yes | | ", "yes | | | ", 1), files(), "`store` | yes | yes | | |"},
		{"without tests", makefile, head + rows + "| `internal/tour` | no tests | | | |\n", untested, ""},
		{"concurrent, not raced", makefile, head + rows + "| `c` | yes | | | |\n", concurrent, "c: starts goroutines or shares memory"},
		{"twin, not run", makefile, head + rows, twin, "store: has code for purego"},
		{"unknown package in a list", strings.Replace(makefile, "./store", "./store ./shed", 1), head + rows, files(), "RACED names ./shed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantProblem(t, checkStages(tt.makefile, tt.document, tt.files), tt.want)
		})
	}
}

// stageRow finds the rows of the table: a package and four cells.
var stageRow = regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\|([^|\n]*)\\|([^|\n]*)\\|([^|\n]*)\\|([^|\n]*)\\|$")

// checkStages returns what is wrong with the table and the lists.
func checkStages(makefile, document string, files map[string]string) (problems []string) {
	packages := packagesOf(files)
	var lists [][]string
	for _, name := range stageLists {
		found := regexp.MustCompile(`(?m)^` + name + ` *= *(.*)$`).FindStringSubmatch(makefile)
		if found == nil {
			return []string{"Makefile: no list " + name}
		}
		var list []string
		for _, entry := range strings.Fields(found[1]) {
			dir := path.Clean(entry)
			if packages[dir] == nil {
				problems = append(problems, fmt.Sprintf("Makefile: %s names %s, which is no package", name, entry))
			}
			list = append(list, dir)
		}
		lists = append(lists, list)
	}
	rows := map[string]string{}
	for _, match := range stageRow.FindAllStringSubmatch(document, -1) {
		dir := match[1]
		if dir == "bloom" {
			dir = "."
		}
		rows[dir] = strings.Join(strings.Fields(match[0]), " ")
		if packages[dir] == nil {
			problems = append(problems, fmt.Sprintf("docs/testing.md: there is no package %s: remove its row", dir))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		p := packages[dir]
		name, want := dir, "yes"
		if dir == "." {
			name = "bloom"
		}
		if !p.tested {
			want = "no tests"
		}
		want = "| `" + name + "` | " + want + " |"
		for _, list := range lists {
			if slices.Contains(list, dir) {
				want += " yes"
			}
			want += " |"
		}
		if row, has := rows[dir]; !has {
			problems = append(problems, fmt.Sprintf("docs/testing.md: no row for `%s`: add %s", name, want))
		} else if row != want {
			problems = append(problems, fmt.Sprintf("docs/testing.md: got row %s, want %s", row, want))
		}
		if p.concurrent && p.tested && !slices.Contains(lists[0], dir) {
			problems = append(problems, dir+": starts goroutines or shares memory between them: add it to RACED in the Makefile")
		}
		if p.twin && !slices.Contains(lists[1], dir) {
			problems = append(problems, dir+": has code for purego: add it to TWINS in the Makefile")
		}
	}
	return problems
}

// stages is what the files of a package say about the stages it needs.
type stages struct {
	tested     bool
	concurrent bool // a go statement, or package sync or sync/atomic, outside tests
	twin       bool // a file for builds without assembly
}

// packagesOf returns the packages that files make, by directory.
func packagesOf(files map[string]string) map[string]*stages {
	packages := map[string]*stages{}
	for name, source := range files {
		dir := path.Dir(name)
		p := packages[dir]
		if p == nil {
			p = &stages{}
			packages[dir] = p
		}
		p.tested = p.tested || strings.HasSuffix(name, "_test.go")
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		p.twin = p.twin || constraint.MatchString(source)
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			continue // other tests report it
		}
		for _, spec := range file.Imports {
			p.concurrent = p.concurrent || spec.Path.Value == `"sync"` || spec.Path.Value == `"sync/atomic"`
		}
		ast.Inspect(file, func(node ast.Node) bool {
			_, starts := node.(*ast.GoStmt)
			p.concurrent = p.concurrent || starts
			return true
		})
	}
	return packages
}

// constraint finds a build constraint that knows the tag purego.
var constraint = regexp.MustCompile(`(?m)^//go:build .*\bpurego\b`)
