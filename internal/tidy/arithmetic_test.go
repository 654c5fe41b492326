package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exactRooms are where a float may end in a file or in a size.
var exactRooms = []string{".", "classic", "interop", "redisbloom", "internal/elementary", "internal/rate", "internal/scheme", "internal/sizing"}

// inexact are the functions of package math whose last bits differ between
// processors.
var inexact = strings.Fields(`Acos Acosh Asin Asinh Atan Atan2 Atanh Cbrt Cos Cosh Erf Erfc Erfcinv Erfinv
	Exp Exp2 Expm1 Gamma Hypot J0 J1 Jn Lgamma Log Log10 Log1p Log2 Pow Sin Sincos Sinh Tan Tanh Y0 Y1 Yn`)

func TestExactFunctions(t *testing.T) {
	report(t, checkExactFunctions(sources(t, ".go")))
}

func TestExactFunctionsSelf(t *testing.T) {
	for _, tt := range []struct{ file, expression, want string }{
		{"plan.go", "math.Log(2)", "plan.go:3: math.Log"},
		{"interop/guava.go", "math.Pow(2, 3)", "interop/guava.go:3: math.Pow"},
		{"plan.go", "math.Sqrt(2)", ""},
		{"plan_test.go", "math.Log(2)", ""},
		{"server/server.go", "math.Log(2)", ""},
	} {
		source := "package p\nimport \"math\"\nvar x = " + tt.expression + "\n"
		t.Run(tt.file+" "+tt.expression, func(t *testing.T) {
			wantProblem(t, checkExactFunctions(map[string]string{tt.file: source}), tt.want)
		})
	}
}

// checkExactFunctions returns where the exact rooms call an inexact function.
func checkExactFunctions(files map[string]string) (problems []string) {
	for name, source := range files {
		if strings.HasSuffix(name, "_test.go") || !slices.Contains(exactRooms, path.Dir(name)) {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, source, 0)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := selector.X.(*ast.Ident); ok && of.Name == "math" && slices.Contains(inexact, selector.Sel.Name) {
				at := fset.Position(selector.Pos())
				problems = append(problems, fmt.Sprintf("%s:%d: math.%s differs between processors in the last bits: use internal/elementary", name, at.Line, selector.Sel.Name))
			}
			return true
		})
	}
	return problems
}

// fusedAt finds an operation of arm64 that multiplies floats and adds, rounding
// once, and the file and line it comes from.
var fusedAt = regexp.MustCompile(`\(([^()]+\.go):(\d+)\)\tFN?M(?:ADD|SUB)[DS]\t`)

// TestNothingIsFused asks the compiler. On arm64 it fuses all that the language
// allows it to, and other processors fuse no more than that.
func TestNothingIsFused(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the library for arm64")
	}
	files := sources(t, ".go") // also so that go test runs this again when they change
	args := []string{"build", "-gcflags=-S"}
	for _, room := range exactRooms {
		args = append(args, "./"+room)
	}
	build := exec.Command("go", args...)
	build.Dir = root
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	listing, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, listing[max(len(listing)-2000, 0):])
	}
	if !strings.Contains(string(listing), "\tFMULD\t") {
		t.Fatal("the listing has no multiplication: it shows nothing")
	}
	report(t, checkFused(t, files, string(listing)))
}

// checkFused returns the lines of files that listing has a fused operation of,
// unless they ask for it by math.FMA.
func checkFused(t *testing.T, files map[string]string, listing string) (problems []string) {
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range fusedAt.FindAllStringSubmatch(listing, -1) {
		name, err := filepath.Rel(top, match[1])
		if err != nil {
			t.Fatal(err)
		}
		number, _ := strconv.Atoi(match[2])
		lines := strings.Split(files[filepath.ToSlash(name)], "\n")
		if number > len(lines) {
			continue // of another module
		}
		if line := lines[number-1]; !strings.Contains(line, "math.FMA(") {
			problems = append(problems, fmt.Sprintf("%s:%d: the compiler fuses a product with a sum here, on some processors: write float64(x*y) + z", name, number))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

func TestFusedSelf(t *testing.T) {
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"rate.go": "package bloom\nvar x = a*b + c\nvar y = math.FMA(a, b, c)\n"}
	line := func(n int, operation string) string {
		return fmt.Sprintf("\t0x0010 00016 (%s:%d)\t%s\tF1, F2, F3, F4\n", filepath.Join(top, "rate.go"), n, operation)
	}
	for _, tt := range []struct{ listing, want string }{
		{line(2, "FMADDD"), "rate.go:2: the compiler fuses"},
		{line(2, "FNMSUBD") + line(2, "FMADDD"), "rate.go:2: the compiler fuses"},
		{line(2, "FMULD") + line(2, "MADD"), ""},
		{line(3, "FMADDD"), ""},
	} {
		wantProblem(t, checkFused(t, files, tt.listing), tt.want)
	}
}
