package browser

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// axe is the source of axe-core, which npm installs below the user's cache, in the
// version of axe/package-lock.json.
func axe(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "bloomery-pages")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	same := true
	for _, name := range []string{"package.json", "package-lock.json"} {
		want, err := os.ReadFile(filepath.Join("axe", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if same = same && err == nil && bytes.Equal(got, want); !same {
			if err := os.WriteFile(filepath.Join(dir, name), want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(source); err != nil || !same {
		install := exec.Command("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts")
		install.Dir = dir
		if text, err := install.CombinedOutput(); err != nil {
			os.Remove(filepath.Join(dir, "package-lock.json"))
			t.Fatalf("npm cannot install axe-core: %v: %s", err, text)
		}
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAccessible: axe-core finds nothing to complain about, in any page, width, theme and
// language, contrast of AA included.
func TestAccessible(t *testing.T) {
	source := axe(t)
	every(t, []int64{390, 1280}, []string{"light", "dark"}, []string{"en", "zh"}, func(b *tab, name string, _ int64) {
		var problems []string
		b.run(source+`;
			const { violations, passes } = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
			if (passes.length < 20) return ["only " + passes.length + " rules ran"];
			return violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.failureSummary.split("\n")[1]).join("; "))`, &problems)
		if len(problems) > 0 {
			b.t.Errorf("%s:\n\t%s", name, strings.Join(problems, "\n\t"))
		}
	})
}

// TestAccessibleSelf: it does complain about a button without a name and about pale text.
func TestAccessibleSelf(t *testing.T) {
	source := axe(t)
	b := newTab(t)
	b.look(1280, "light")
	b.open(servePages(t, nil) + "/plan#lang=en")
	b.ready()
	var got []string
	b.run(source+`;
		const button = document.createElement("button");
		const pale = document.createElement("p");
		pale.textContent = "pale";
		pale.style.color = "#bbb";
		document.querySelector("main").append(button, pale);
		return (await axe.run(document)).violations.map((v) => v.id)`, &got)
	if strings.Join(got, " ") != "button-name color-contrast" {
		t.Errorf("axe complains about %q", got)
	}
}
