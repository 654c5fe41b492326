package tidy

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// root is the repository as seen from this package, where go test runs us.
const root = "../.."

// sources returns the text of every file of the module whose name has one of the
// extensions, by its slash-separated path from the root. Left out are what Go
// leaves out (testdata, vendor, names with a leading dot or underscore) and
// modules of their own, such as bench/.
func sources(t *testing.T, extensions ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			if name == "." {
				return nil
			}
			_, notModule := os.Stat(filepath.Join(root, name, "go.mod"))
			if notModule == nil || base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
				return fs.SkipDir
			}
			return nil
		}
		for _, extension := range extensions {
			if strings.HasSuffix(base, extension) {
				text, err := os.ReadFile(filepath.Join(root, name))
				if err != nil {
					return err
				}
				found[name] = string(text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("reading the tree: %v", err)
	}
	return found
}

// tracked returns the text of every file of the repository whose name ends in one
// of the given ways, bench/ and .github included, testdata not: what is recorded
// there stays as it is.
func tracked(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			if base == ".git" || base == "testdata" || base == "node_modules" || name == "bin" || name == "dist" {
				return fs.SkipDir
			}
			return nil
		}
		for _, ending := range endings {
			if entry.Type().IsRegular() && strings.HasSuffix(base, ending) {
				text, err := os.ReadFile(filepath.Join(root, name))
				if err != nil {
					return err
				}
				found[name] = string(text)
				break
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("reading the tree: %v", err)
	}
	return found
}

// report fails the test with one line per problem.
func report(t *testing.T, problems []string) {
	t.Helper()
	for _, problem := range problems {
		t.Error(problem)
	}
}

// wantProblem is for the rules' own tests: of the problems found in planted
// text, there must be exactly one, and it must contain want; or none if want is
// empty. A rule that never fails would otherwise look like a tidy tree.
func wantProblem(t *testing.T, problems []string, want string) {
	t.Helper()
	if want == "" {
		if len(problems) != 0 {
			t.Errorf("got problems %q, want none", problems)
		}
		return
	}
	if len(problems) != 1 || !strings.Contains(problems[0], want) {
		t.Errorf("got problems %q, want one with %q", problems, want)
	}
}
