package tidy

import (
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/bloomery/bloom"

// A room is a directory and what its files, tests aside, may import. An entry of
// may is "std"; a directory of this module; or the path of another module, which
// allows all of its packages. Directories below a room follow the nearest row
// above them, except that the root's row is for the root alone.
type room struct {
	dir   string
	may   []string
	never []string // packages of std that the room must do without
}

var (
	hashes = []string{"github.com/zeebo/xxh3", "github.com/cespare/xxhash/v2", "github.com/twmb/murmur3", "github.com/dchest/siphash"}

	// Each step of the one-way street includes the ones to its left:
	// elementary, filterfile, kernel, memory, rate, replace, scheme, sizing -> bloom -> classic -> redisbloom -> store -> server -> cmd/bloomery.
	atRoot = append([]string{
		"std", "golang.org/x/sys",
		"internal/elementary",
		"internal/filterfile",
		"internal/kernel",
		"internal/memory",
		"internal/rate",
		"internal/replace",
		"internal/scheme", // RedisBloom's hash, for Cuckoo
		"internal/sizing",
	}, hashes...)
	atClassic = append([]string{"."}, atRoot...)
	atEngine  = append([]string{"classic"}, atClassic...)
	atStore   = append([]string{"redisbloom"}, atEngine...)
	atServer  = append([]string{"store"}, atStore...)
)

// policy is the table. A new dependency is added to its row in the commit that
// says why it is needed.
var policy = []room{
	{dir: "internal/elementary", may: []string{"std"}},
	// The file format knows words and locks, not hashes.
	{dir: "internal/filterfile", may: []string{"std", "golang.org/x/sys", "internal/kernel", "internal/memory", "internal/replace", "internal/scheme", "internal/sizing"}},
	{dir: "internal/kernel", may: []string{"std", "golang.org/x/sys"}},
	{dir: "internal/memory", may: []string{"std", "golang.org/x/sys"}},
	{dir: "internal/rate", may: []string{"std", "internal/elementary"}},
	{dir: "internal/replace", may: []string{"std"}},
	{dir: "internal/sizing", may: []string{"std", "internal/elementary", "internal/memory", "internal/rate"}},
	{dir: "internal/scheme", may: append([]string{"std", "golang.org/x/sys", "internal/elementary"}, hashes...)},
	// The library opens files and maps memory, but talks to nobody and runs nothing.
	{dir: ".", may: atRoot, never: []string{"net", "net/http", "os/exec"}},
	{dir: "classic", may: atClassic},
	{dir: "redisbloom", may: atEngine},
	{dir: "interop", may: atStore},
	{dir: "store", may: atStore},
	// The one store that talks to other machines.
	{dir: "store/redisstore", may: append([]string{"github.com/redis/rueidis"}, atServer...)},
	{dir: "store/storetest", may: atServer},
	{dir: "internal/redistest", may: []string{"std"}},
	{dir: "internal/resp", may: []string{"std"}},
	// What browsers run comes embedded; what pages compute, they compute there.
	{dir: "web", may: []string{"std"}},
	{dir: "server", may: append([]string{"internal/human", "internal/resp", "web", "github.com/prometheus/client_golang"}, atServer...)},
	{dir: "cmd/bloomery", may: []string{"everything"}},
	// What the subcommands share. The pipeline knows no filter, only what remembers.
	{dir: "internal/machine", may: []string{"std", "golang.org/x/sys"}},
	{dir: "internal/human", may: atEngine},
	{dir: "internal/lines", may: []string{"std", "internal/human", "golang.org/x/sys", "golang.org/x/term", "github.com/klauspost/compress", "github.com/schollz/progressbar/v3"}},
	{dir: "internal/anyfile", may: append([]string{"interop", "internal/filterfile", "internal/human", "internal/lines", "internal/machine", "github.com/klauspost/compress"}, atStore...)},
	// The chart draws; what it draws comes from its caller.
	{dir: "internal/chart", may: []string{"std"}},
	// The tour is a user: it sees the binary, not the packages.
	{dir: "internal/tour", may: []string{"std"}},
	// The commands print what the server has in its table.
	{dir: "internal/commands", may: []string{"std", "server"}},
	// The tables print what the library works out.
	{dir: "internal/tables", may: append([]string{"internal/human"}, atEngine...)},
	// The examples are users: the public API, and the client of Redis that users have.
	{dir: "examples", may: []string{"std", ".", "github.com/redis/go-redis/v9"}},
	{dir: "internal/tidy", may: []string{"std"}},
	{dir: "internal/long", may: []string{"std"}},
	{dir: "internal/webtest", may: append([]string{"internal/anyfile"}, atStore...)},
}

func TestImports(t *testing.T) {
	report(t, checkImports(sources(t, ".go")))
}

func TestImportsSelf(t *testing.T) {
	for _, tt := range []struct{ file, imports, want string }{
		{"filter.go", module + "/internal/kernel", ""},
		{"filter.go", "golang.org/x/sys/cpu", ""},
		{"filter.go", "net/netip", ""},
		{"filter.go", "net/http", `filter.go:2: imports "net/http"`},
		{"filter.go", "os/exec", `filter.go:2: imports "os/exec"`},
		{"filter.go", "C", "cgo"},
		{"filter.go", "github.com/redis/rueidis", "add it to its row"},
		{"filter.go", "golang.org/x/system", "add it to its row"},
		{"filter.go", module + "/interop", "add it to its row"},
		{"filter_test.go", "pgregory.net/rapid", ""},
		{"internal/kernel/paired.go", module, "add it to its row"},
		{"internal/kernel/paired.go", "github.com/zeebo/xxh3", "add it to its row"},
		{"interop/guava.go", module, ""},
		{"interop/guava.go", module + "/store", "add it to its row"},
		{"store/local.go", module + "/store/storetest", "add it to its row"},
		{"store/storetest/suite.go", module + "/store", ""},
		{"store/storetest/suite.go", module + "/server", "add it to its row"},
		{"server/server.go", module + "/store", ""},
		{"server/server.go", module + "/server/console", ""},
		{"server/server.go", module + "/store/storetest", "add it to its row"},
		{"server/console/pages.go", module + "/internal/resp", ""},
		{"cmd/bloomery/serve.go", module + "/server", ""},
		{"internal/tour/main.go", module, "add it to its row"},
		{"examples/crawler/main.go", module, ""},
		{"examples/crawler/main.go", module + "/internal/kernel", "add it to its row"},
		{"shed/shed.go", "fmt", "shed has no row"},
	} {
		source := "package p\nimport _ " + strconv.Quote(tt.imports) + "\n"
		t.Run(tt.file+" "+tt.imports, func(t *testing.T) {
			wantProblem(t, checkImports(map[string]string{tt.file: source}), tt.want)
		})
	}
}

// checkImports returns what is wrong with the imports of files, a map from path
// to source. Test files are free: they may use test modules, and the compiler
// refuses cycles anyway.
func checkImports(files map[string]string) (problems []string) {
	for name, source := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, source, parser.ImportsOnly)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		dir := path.Dir(name)
		row := rowOf(dir)
		if row == nil {
			problems = append(problems, fmt.Sprintf("%s: %s has no row in the policy table of internal/tidy/imports_test.go: add one that says what it may import", name, dir))
			continue
		}
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
			if why := refuse(row, imported); why != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: imports %q: %s", name, fset.Position(spec.Pos()).Line, imported, why))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// rowOf returns the nearest row at or above dir, nil if there is none.
func rowOf(dir string) *room {
	for at := dir; ; at = path.Dir(at) {
		for i := range policy {
			if policy[i].dir == at && (at != "." || dir == ".") {
				return &policy[i]
			}
		}
		if at == "." {
			return nil
		}
	}
}

// refuse says why the room must not import the package, or "" if it may.
func refuse(row *room, imported string) string {
	if imported == "C" {
		return "cgo: the module builds with Go alone; use Go or assembly"
	}
	if slices.Contains(row.never, imported) {
		return fmt.Sprintf("never in room %q: do this in a room further right", row.dir)
	}
	for _, may := range row.may {
		switch {
		case may == "everything":
			return ""
		case may == "std":
			// Only paths outside std have a dot in their first element.
			if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
				return ""
			}
		case may == ".":
			if imported == module {
				return ""
			}
		case strings.Contains(may, "."): // another module
			if imported == may || strings.HasPrefix(imported, may+"/") {
				return ""
			}
		default:
			// A room of ours, with the directories that have no row of their own:
			// "store" is not "store/storetest".
			dir, ours := strings.CutPrefix(imported, module+"/")
			if to := rowOf(dir); ours && to != nil && to.dir == may {
				return ""
			}
		}
	}
	if dir, ours := strings.CutPrefix(imported, module+"/"); ours && rowOf(dir) == row {
		return "" // a room may be several packages: server and server/console
	}
	return fmt.Sprintf("room %q may import only %s (imports go one way); if that is too narrow, add it to its row in internal/tidy/imports_test.go and say why", row.dir, strings.Join(row.may, ", "))
}
