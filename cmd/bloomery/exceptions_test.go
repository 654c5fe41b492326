package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
)

// TestExceptionsFile: a file with known false positives answers no to them by
// itself, in every command.
func TestExceptionsFile(t *testing.T) {
	f, err := bloom.Config{Keys: 1000, Rate: 0.001, Folds: 2}.New()
	if err != nil {
		t.Fatal(err)
	}
	f.AddStrings([]string{"one", "two", "false positive"}, nil)
	x := bloom.WithExceptions(f)
	if err := x.ExceptString("false positive"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.bloom")
	if err := x.Save(path); err != nil {
		t.Fatal(err)
	}
	check := func(line string) string {
		var out strings.Builder
		root := newRoot()
		root.SetArgs([]string{"check", path})
		root.SetIn(strings.NewReader(line + "\n"))
		root.SetOut(&out)
		execute(root)
		return out.String()
	}
	if got := check("one") + check("false positive") + check("two"); got != "one\ntwo\n" {
		t.Errorf("check printed %q", got)
	}
	stdout, stderr, code := command(t, "info", path)
	if code != exitDone || !strings.Contains(stdout, "exceptions         1 key answered no (14 bytes)\n") {
		t.Errorf("%s%s", stdout, stderr)
	}
	merged, folded := filepath.Join(t.TempDir(), "merged"), filepath.Join(t.TempDir(), "folded")
	if _, stderr, code := command(t, "merge", "-o", merged, path, path); code != exitDone {
		t.Error(stderr)
	}
	if _, stderr, code := command(t, "fold", "--by", "2", "-o", folded, path); code != exitDone {
		t.Error(stderr)
	}
	if _, stderr, code := command(t, "verify", "--random", "100000", merged); code != exitDone {
		t.Error(stderr)
	}

	// Added after all: no longer an exception.
	root := newRoot()
	root.SetArgs([]string{"add", path})
	root.SetIn(strings.NewReader("false positive\n"))
	root.SetErr(&strings.Builder{})
	if code := execute(root); code != exitDone {
		t.Fatal(code)
	}
	if got := check("false positive"); got != "false positive\n" {
		t.Errorf("check printed %q", got)
	}
}
