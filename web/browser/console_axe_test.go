package browser

import (
	"strings"
	"testing"
)

// TestConsoleAccessible: axe-core finds nothing to complain about in the console's list,
// a filter's page and a dialogue.
func TestConsoleAccessible(t *testing.T) {
	t.Parallel()
	source := axe(t)
	c := startConsole(t)
	c.fill()
	b := newTab(t)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			for _, view := range []string{"list", "filter", "dialog"} {
				b.look(width, theme)
				b.open(c.url + "/plan") // a change of the hash alone would not load it
				if view == "filter" {
					b.open(c.url + "/#lang=en&f=%3Demails%3Asent")
					b.until(`document.querySelector("[data-fact=items]") && document.querySelector("#health svg")`)
					b.write("#key", "key:7")
					b.click("#test")
					b.until(`document.querySelector("[data-verdict]")`)
				} else {
					b.open(c.url + "/#lang=zh")
					b.until(`document.querySelectorAll("#rows .row").length === 7`)
				}
				if view == "dialog" {
					b.click("#new")
				}
				var problems []string
				b.run(source+`;
					const { violations, passes } = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
					if (passes.length < 20) return ["only " + passes.length + " rules ran"];
					return violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.failureSummary.split("\n")[1]).join("; "))`, &problems)
				if len(problems) > 0 {
					t.Errorf("%s, %d, %s:\n\t%s", theme, width, view, strings.Join(problems, "\n\t"))
				}
			}
		}
	}
}
