package tidy

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// maxStoreys is how deep the imports of the module may go. To read a package is to
// read what it stands on.
const maxStoreys = 14

// TestMap compares ARCHITECTURE.md with the tree: every package and every file of
// the root is on it, and every path that it names exists.
func TestMap(t *testing.T) {
	if testing.Short() {
		t.Skip("the map is complete before a release, not at every step")
	}
	document, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkMap(string(document), sources(t, ".go"), func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}))
}

func TestMapSelf(t *testing.T) {
	files := map[string]string{"a.go": "", "a_test.go": "", "store/b.go": "", "store/b_test.go": ""}
	exists := func(name string) bool {
		return files[name] != "" || name == "store" || name == "a.go" || name == "store/b.go"
	}
	for _, tt := range []struct{ document, want string }{
		{"`bloom` has `a.go`, `store` has `store/b.go` and `BF.ADD`", ""},
		{"`bloom` has `a.go`", "`store` is missing"},
		{"`bloom`, `store`", "`a.go` is missing"},
		{"`bloom` `a.go` `store` `store/c.go`", "store/c.go does not exist"},
		{"`bloom` `a.go` `store` `c.go`", "c.go does not exist"},
	} {
		t.Run(tt.document, func(t *testing.T) {
			wantProblem(t, checkMap(tt.document, files, exists), tt.want)
		})
	}
}

// namedPath is code that is a path of the repository: a file, or a directory in one.
var namedPath = regexp.MustCompile("`([a-z][a-z0-9_./]*)`")

// checkMap returns what the map lacks, and what it names that is not there.
func checkMap(document string, files map[string]string, exists func(name string) bool) (problems []string) {
	named := map[string]bool{}
	for _, match := range namedPath.FindAllStringSubmatch(document, -1) {
		name := match[1]
		named[name] = true
		isPath := strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".md") || strings.Contains(name, "/")
		if isPath && !exists(name) {
			problems = append(problems, fmt.Sprintf("ARCHITECTURE.md: %s does not exist", name))
		}
	}
	want := map[string]bool{}
	for name := range files {
		switch dir := path.Dir(name); {
		case strings.HasSuffix(name, "_test.go"):
		case dir == ".":
			want[name], want["bloom"] = true, true
		default:
			want[dir] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !named[name] {
			problems = append(problems, fmt.Sprintf("ARCHITECTURE.md: `%s` is missing: add a row that says what it is", name))
		}
	}
	return problems
}

// TestStoreys measures the imports of the module: a package that imports none of
// the others is on the first storey, another one is a storey above the highest
// that it imports.
func TestStoreys(t *testing.T) {
	chain, problems := highest(sources(t, ".go"))
	report(t, problems)
	if len(chain) > maxStoreys {
		t.Errorf("the imports have %d storeys, want at most %d: %s", len(chain), maxStoreys, strings.Join(chain, " -> "))
	}
	t.Logf("%d storeys: %s", len(chain), strings.Join(chain, " -> "))
}

func TestStoreysSelf(t *testing.T) {
	importing := func(dirs ...string) string {
		source := "package p\n"
		for _, dir := range dirs {
			source += "import _ " + strconv.Quote(path.Join(module, dir)) + "\n"
		}
		return source
	}
	files := map[string]string{"a.go": importing("internal/k"), "internal/k/k.go": importing(), "store/s.go": importing(".", "internal/k"), "store/s_test.go": importing("server")}
	chain, problems := highest(files)
	if got := strings.Join(chain, " "); got != "store . internal/k" || problems != nil {
		t.Errorf("got %q, %v, want the chain from store to internal/k", got, problems)
	}
	files["internal/k/k.go"] = importing("store")
	_, problems = highest(files)
	wantProblem(t, problems, "imports go round")
}

// highest returns the longest chain of imports.
func highest(files map[string]string) (longest, problems []string) {
	imports := map[string]map[string]bool{}
	for name, source := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		dir := path.Dir(name)
		if imports[dir] == nil {
			imports[dir] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if imported == module {
				imports[dir]["."] = true
			} else if of, ours := strings.CutPrefix(imported, module+"/"); ours {
				imports[dir][of] = true
			}
		}
	}
	chains := map[string][]string{}
	underway := map[string]bool{}
	var climb func(dir string) []string
	climb = func(dir string) []string {
		if underway[dir] {
			problems = []string{"imports go round at " + dir}
			return nil
		}
		if chains[dir] == nil {
			underway[dir] = true
			var below []string
			for _, to := range slices.Sorted(maps.Keys(imports[dir])) {
				if chain := climb(to); len(chain) > len(below) {
					below = chain
				}
			}
			underway[dir] = false
			chains[dir] = append([]string{dir}, below...)
		}
		return chains[dir]
	}
	for _, dir := range slices.Sorted(maps.Keys(imports)) {
		if chain := climb(dir); len(chain) > len(longest) {
			longest = chain
		}
	}
	return longest, problems
}
