package web_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/webtest"
)

const maxModuleLines = 600 // as for Go; see internal/tidy

// TestPackage: the npm package has every module, its types declare what it exports, and
// its modules import each other only.
func TestPackage(t *testing.T) {
	t.Parallel()
	var manifest struct {
		Name, Version, License string
		Type                   string
		Files                  []string
		SideEffects            *bool
		Dependencies           map[string]string
	}
	if err := json.Unmarshal([]byte(webtest.ReadFile(t, "package.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Name != "bloomery" || manifest.License != "Apache-2.0" || manifest.Type != "module" || manifest.SideEffects == nil || *manifest.SideEffects || manifest.Dependencies != nil {
		t.Errorf("package.json: %+v", manifest)
	}
	modules, err := filepath.Glob("*.js")
	if err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(modules), "bloomery.d.ts", "README.md")
	slices.Sort(want)
	slices.Sort(manifest.Files)
	if !slices.Equal(manifest.Files, want) {
		t.Errorf("package.json: files %q, want %q", manifest.Files, want)
	}
	for _, name := range modules {
		text := webtest.ReadFile(t, name)
		if lines := strings.Count(text, "\n"); lines > maxModuleLines {
			t.Errorf("%s has %d lines, want at most %d", name, lines, maxModuleLines)
		}
		for _, from := range regexp.MustCompile(`(?m)^(?:import|export) .* from '(.*)';$`).FindAllStringSubmatch(text, -1) {
			if !slices.Contains(modules, strings.TrimPrefix(from[1], "./")) || !strings.HasPrefix(from[1], "./") {
				t.Errorf("%s imports %s", name, from[1])
			}
		}
	}
	if webtest.ReadFile(t, "LICENSE") != webtest.ReadFile(t, filepath.Join(root, "LICENSE")) {
		t.Error("LICENSE is another than the repository's")
	}
	var declared []string
	for _, match := range regexp.MustCompile(`(?m)^export (?:class|function|const) (\w+)`).FindAllStringSubmatch(webtest.ReadFile(t, "bloomery.d.ts"), -1) {
		declared = append(declared, match[1])
	}
	slices.Sort(declared)
	if exported := strings.Fields(node(t, "exports.mjs")); !slices.Equal(exported, slices.Compact(declared)) {
		t.Errorf("bloomery.js exports %q, bloomery.d.ts declares %q", exported, declared)
	}
}

// TestShown compares with what docs/format.md shows: how a key gets to its bits, and the
// tables of rows.
func TestShown(t *testing.T) {
	t.Parallel()
	text := webtest.ReadFile(t, filepath.Join(root, "docs", "format.md"))
	for _, line := range strings.Split(strings.TrimSpace(node(t, "shown.mjs")), "\n") {
		if !strings.Contains(text, line) {
			t.Errorf("docs/format.md does not show %q", line)
		}
	}
}

// TestSecrets: a keyed filter answers with its secret, and with no other.
func TestSecrets(t *testing.T) {
	t.Parallel()
	golden := filepath.Join(root, "testdata", "golden")
	if got := strings.TrimSpace(node(t, "secrets.mjs", golden)); got != "fine" {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(golden, "filter-keyed.bloom")); err != nil {
		t.Error(err)
	}
}
