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

// narrow is the width of a small phone.
const narrow = 320

// TestEveryPage: in each width, theme and language no page scrolls sideways, and axe-core
// finds nothing to complain about, contrast of AA included. With -shots there are pictures
// of them all.
func TestEveryPage(t *testing.T) {
	source := axe(t)
	every(t, []int64{narrow, 390, 768, 1280}, func(b *tab, name string, width int64) {
		var got int64
		b.run(`return document.documentElement.scrollWidth`, &got)
		if got > width {
			var wide []string
			b.run(`return [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")).slice(-5).map((e) => e.tagName + "#" + e.id + "." + e.className)`, &wide)
			b.t.Errorf("%s is %d pixels wide: %q", name, got, wide)
		}
		if width == narrow || width == 768 {
			return // as wide as others, to axe
		}
		var loaded bool
		if b.run(`return window.axe !== undefined`, &loaded); !loaded {
			b.run(source+`; return true`, &loaded)
		}
		var problems []string
		b.run(`
			const { violations, passes } = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
			if (passes.length < 20) return ["only " + passes.length + " rules ran"];
			return violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.failureSummary.split("\n")[1]).join("; "))`, &problems)
		if len(problems) > 0 {
			b.t.Errorf("%s:\n\t%s", name, strings.Join(problems, "\n\t"))
		}
		if *shots != "" {
			if err := os.WriteFile(filepath.Join(*shots, name+".png"), b.shot(float64(width), 0), 0o644); err != nil {
				b.t.Fatal(err)
			}
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
