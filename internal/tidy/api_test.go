package tidy

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apiPackages are those that other modules may import, and their golden files.
var apiPackages = map[string]string{
	".":          "bloom",
	"classic":    "classic",
	"interop":    "interop",
	"redisbloom": "redisbloom",
	"store":      "store",

	"store/redisstore": "redisstore",
}

// TestAPI holds the exported API against api/*.txt, so that no change of it goes
// unseen. If a change is meant, run go test ./internal/tidy -run TestAPI -update and
// commit the files with it.
func TestAPI(t *testing.T) {
	for dir, name := range apiPackages {
		files := sources(t, ".go")
		golden := filepath.Join(root, "api", name+".txt")
		lines, err := apiOf(dir, files)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(lines, "\n") + "\n"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		old := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
		for _, line := range old {
			if !slices.Contains(lines, line) {
				t.Errorf("api/%s.txt: gone: %s", name, line)
			}
		}
		for _, line := range lines {
			if !slices.Contains(old, line) {
				t.Errorf("api/%s.txt: new: %s", name, line)
			}
		}
		if t.Failed() {
			t.Log("if that is meant: go test ./internal/tidy -run TestAPI -update")
		}
	}
}

// apiOf returns a line for each exported constant, variable, function, type, method
// and field of the package in dir, sorted.
func apiOf(dir string, sources map[string]string) ([]string, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if filepath.Dir(name) != dir || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, sources[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, module, doc.PreserveAST)
	if err != nil {
		return nil, err
	}
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	text := func(node any) string {
		var b strings.Builder
		printer.Fprint(&b, fset, node)
		return strings.Join(strings.Fields(b.String()), " ")
	}
	values := func(what string, of []*doc.Value) {
		for _, v := range of {
			for _, spec := range v.Decl.Specs {
				spec := spec.(*ast.ValueSpec)
				for _, name := range spec.Names {
					if name.IsExported() && spec.Type != nil {
						add("%s %s %s", what, name.Name, text(spec.Type))
					} else if name.IsExported() {
						add("%s %s", what, name.Name)
					}
				}
			}
		}
	}
	functions := func(of []*doc.Func) {
		for _, f := range of {
			decl := *f.Decl
			decl.Doc, decl.Body = nil, nil
			if f.Level == 0 { // promoted methods are those of the embedded type
				add("%s", text(&decl))
			}
		}
	}
	values("const", p.Consts)
	values("var", p.Vars)
	functions(p.Funcs)
	for _, t := range p.Types {
		values("const", t.Consts)
		values("var", t.Vars)
		functions(t.Funcs)
		functions(t.Methods)
		for _, spec := range t.Decl.Specs {
			spec := spec.(*ast.TypeSpec)
			fields := func(what string, list *ast.FieldList) {
				add("type %s %s", spec.Name, what)
				for _, field := range list.List {
					for _, name := range field.Names {
						if name.IsExported() {
							add("type %s %s, %s %s", spec.Name, what, name.Name, text(field.Type))
						}
					}
					embedded := text(field.Type)
					if len(field.Names) == 0 && ast.IsExported(embedded[strings.LastIndexAny(embedded, ".*")+1:]) {
						add("type %s %s, %s", spec.Name, what, embedded)
					}
				}
			}
			switch is := spec.Type.(type) {
			case *ast.StructType:
				fields("struct", is.Fields)
			case *ast.InterfaceType:
				fields("interface", is.Methods)
			default:
				add("%s", "type "+text(spec))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

func TestAPISelf(t *testing.T) {
	source := `// Package p is a test.
package p

const A, b = 1, 2

var C int

// S is a type.
type S struct {
	*T
	unexported
	F, g map[string]int // the fields
}

type T uint8

const D T = 1

type I interface{ M(x int) error }

type unexported struct{}

func New() *S { return nil }

func (s *S) M(x int) error { return nil }

func (s *S) m() {}

func (unexported) N() {}
`
	got, err := apiOf("p", map[string]string{"p/p.go": source, "p/p_test.go": "package p\nfunc Hidden() {}", "q/q.go": "package q\nfunc Other() {}"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"const A", "const D T", "func (s *S) M(x int) error", "func New() *S", "type I interface", "type I interface, M func(x int) error",
		"type S struct", "type S struct, *T", "type S struct, F map[string]int", "type T uint8", "var C int",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
