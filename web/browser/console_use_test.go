package browser

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A filterRow is what the API says of a filter, as far as the tests need it.
type filterRow struct {
	Name, Kind             string
	Items, Capacity, Bytes float64
	Target, Fill           float64
	Rate                   *float64
	Remaining              float64
}

// commas writes a number as the pages do.
func commas(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// oneIn is the pages' rate.
func oneIn(rate float64) string {
	n := 1 / rate
	if n < 100 {
		return fmt.Sprintf("1 in %.3g", n)
	}
	return "1 in " + commas(math.Round(n))
}

// TestConsoleList compares the rows with the API, sorts, searches, and goes through the
// list by the keyboard.
func TestConsoleList(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.fill()
	b := newTab(t)
	b.size(1280, 900)
	b.open(c.url + "/#lang=en")
	b.until(`document.querySelectorAll("#rows .row").length === 7 && ![...document.querySelectorAll("#rows .rate b")].some((e) => e.textContent === "not computed")`)
	var rows [][]string
	b.run(`return [...document.querySelectorAll("#rows .row")].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => [...row.children].map((e) => e.innerText.trim()))`, &rows)
	for _, row := range rows {
		var f filterRow
		c.api("/filters/"+strings.ReplaceAll(row[0], "去重:文章", "%E5%8E%BB%E9%87%8D:%E6%96%87%E7%AB%A0"), &f)
		rate := "0"
		if f.Rate != nil && *f.Rate > 0 {
			rate = oneIn(*f.Rate)
		}
		share := 100 * f.Items / f.Capacity
		level := fmt.Sprintf("%.0f%%", share)
		if share > 0 && share < 10 {
			level = fmt.Sprintf("%.1f%%", share)
		}
		if got := strings.Fields(row[3]); row[2] != level || strings.Join(got, " ") != rate+" target "+oneIn(f.Target) {
			t.Errorf("%q, want %s and %s of a target of %s", row, level, rate, oneIn(f.Target))
		}
	}
	first := func() string { return strings.TrimSpace(b.text(`#rows .row[aria-rowindex="2"] a`)) }
	if len(rows) != 7 || first() != "coupons" {
		t.Fatalf("%d rows, the first %q", len(rows), first())
	}
	for _, tt := range []struct{ column, first, again string }{
		{"level", "coupons", "nightly"}, {"rate", "coupons", "nightly"}, {"bytes", "emails:sent", "coupons"}, {"ttl", "coupons", "nightly"},
		{"kind", "emails:sent", "login-attempts"}, {"ops", "coupons", "coupons"}, {"name", "coupons", "去重:文章"},
	} {
		for _, want := range []string{tt.first, tt.again} {
			b.click(`#head [data-column="` + tt.column + `"] button`)
			if got := first(); got != want {
				t.Errorf("sorted by %s: %q is first, want %q", tt.column, got, want)
			}
		}
	}
	b.click(`#head [data-column="name"] button`)
	b.write("#search", "SE")
	b.until(`document.querySelectorAll("#rows .row").length === 3 && document.querySelector("#count").textContent === "3 of 7"`)
	b.write("#search", "nothing")
	b.until(`!document.querySelector("#empty").hidden`)
	b.write("#search", "")
	b.until(`document.querySelectorAll("#rows .row").length === 7`)

	b.run(`document.querySelector('#rows .row[aria-rowindex="2"] a').focus(); return 1`, new(int))
	b.press("ArrowDown")
	b.press("ArrowDown")
	b.until(`document.activeElement.textContent === "emails:sent"`)
	b.press("End")
	b.until(`document.activeElement.textContent === "去重:文章"`)
	b.press("Home")
	b.press("ArrowDown")
	b.press("Enter")
	b.until(`!document.querySelector("#detail").hidden && document.querySelector("#detail-name").textContent === "crawler:seen"`)
	b.run("history.back(); return 1", new(int))
	b.until(`document.querySelector("#detail").hidden && !document.querySelector("#list").hidden`)

	var address string
	b.write("#search", "sent")
	b.run("return location.hash", &address)
	other := newTab(t)
	other.size(1280, 900)
	other.open(c.url + "/" + address) // what its sender saw
	other.until(`document.querySelectorAll("#rows .row").length === 1 && document.querySelector("#search").value === "sent"`)

	b.click("#clients summary")
	b.until(`document.querySelectorAll("#clients-list tbody tr").length === 1`)
	b.click("#snapshot")
	b.click("#dialog button.main")
	b.until(`document.querySelector("#status").textContent === "A snapshot is being written."`)
	b.click(`[data-lang="zh"]`)
	b.until(`document.querySelector("#list-title").textContent === "过滤器" && document.documentElement.lang === "zh-CN"`)
}

// TestConsoleFilter compares a filter's page with the API, and uses every control of it.
func TestConsoleFilter(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.fill()
	b := newTab(t)
	b.size(1280, 900)
	b.open(c.url + "/#lang=en&f=%3Dsessions")
	b.until(`document.querySelector("[data-fact=items]")`)
	var f filterRow
	c.api("/filters/sessions", &f)
	for fact, want := range map[string]string{
		"items": commas(f.Items), "capacity": commas(f.Capacity), "rateNow": oneIn(*f.Rate), "targetIs": oneIn(f.Target),
		"remaining": commas(f.Remaining), "hash": "with the server’s secret", "growth": "refuses more items", "fill": fmt.Sprintf("%.0f%%", 100*f.Fill),
	} {
		if got := b.text("[data-fact=" + fact + "]"); got != want {
			t.Errorf("%s is %q, want %q", fact, got, want)
		}
	}
	b.until(`document.querySelector("#health svg .dot") && document.querySelector("#population canvas")`)

	b.write("#key", "never added")
	b.click("#test")
	b.until(`document.querySelector("[data-verdict=new]") && document.querySelectorAll(".bits i.clear").length > 0`)
	b.click("#add")
	b.click("#dialog button.main")
	b.until(`document.querySelector("[data-verdict=seen]") && document.querySelectorAll(".bits i.clear").length === 0 && document.querySelectorAll(".bits i.set").length > 0`)

	act := func(action, confirm string, fields map[string]string) {
		t.Helper()
		b.click(`[data-action="` + action + `"]`)
		for key, value := range fields {
			b.write("#dialog-"+key, value)
		}
		b.write("#dialog-confirm", "not this")
		b.click("#dialog .buttons button:last-child")
		b.until(`document.querySelector("#dialog .error").textContent === "That is not the name."`)
		b.write("#dialog-confirm", confirm)
		b.click("#dialog .buttons button:last-child")
		b.until(`!document.querySelector("#dialog").open`)
	}
	act("expire", "sessions", map[string]string{"seconds": "3600"})
	b.until(`document.querySelector("[data-fact=ttl]").textContent.length > 5`)
	act("rename", "sessions", map[string]string{"to": "visits"})
	b.until(`document.querySelector("#detail-name").textContent === "visits" && document.querySelector("[data-fact=items]")`)
	act("swap", "visits", map[string]string{"with": "coupons"})
	b.until(`document.querySelector("[data-fact=capacity]").textContent === "100"`)
	act("delete", "visits", nil)
	b.until(`document.querySelector("#detail").hidden`)
	b.until(`![...document.querySelectorAll("#rows a")].some((a) => a.textContent === "visits")`)

	b.click("#new")
	b.write("#dialog-name", "big")
	b.write("#dialog-capacity", "much")
	b.click("#dialog button.main")
	b.until(`document.querySelector("#dialog .error").textContent.startsWith("Not a number")`)
	b.write("#dialog-capacity", "3M")
	b.run(`document.querySelector("#dialog-layout").value = "paired"; return 1`, new(int))
	b.click("#dialog button.main")
	b.until(`document.querySelector("#detail-name")?.textContent === "big" && document.querySelector("[data-fact=capacity]")`)
	c.say("BF.RESERVE foldable 0.01 3000000 LAYOUT PAIRED NONSCALING")
	b.open(c.url + "/#lang=en&f=%3Dfoldable")
	b.open(c.url + "/?again#lang=en&f=%3Dfoldable")
	b.until(`document.querySelector("[data-fact=bytes]")`)
	whole := b.text("[data-fact=bytes]")
	act("fold", "foldable", map[string]string{"by": "2"})
	b.until(fmt.Sprintf(`document.querySelector("[data-fact=bytes]").textContent !== %q`, whole))
	var folded filterRow
	if c.api("/filters/foldable", &folded); folded.Bytes > 2.1e6 {
		t.Errorf("folded it takes %.0f bytes, before %s", folded.Bytes, whole)
	}
	c.say("DEL foldable")
	b.until(`document.querySelector("#detail [role=status]")?.textContent === "There is no filter with this name any more."`)
}

// TestConsoleRemovable shows filters from which keys can be removed: they have neither a
// curve nor bits.
func TestConsoleRemovable(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.say("BF.RESERVE counted 0.01 1000 LAYOUT COUNTING", "BF.MADD counted a b c", "BF.DEL counted a", "CF.RESERVE nest 1000", "CF.INSERT nest ITEMS a b c", "CF.DEL nest a")
	b := newTab(t)
	b.size(1280, 900)
	for name, kind := range map[string]string{"counted": "counting", "nest": "cuckoo"} {
		b.open(c.url + "/?" + name + "#lang=en&f=%3D" + name)
		b.until(`document.querySelector("[data-fact=items]")?.textContent === "2"`)
		b.until(`document.querySelector("#detail .tag").textContent === "` + kind + `"`)
		b.until(`document.querySelector("#health figure").hidden && document.querySelector("#health").textContent.includes("Keys can be removed from this filter")`)
		b.until(`document.querySelector("#population").textContent.includes("keys can be removed from it")`)
		b.write("#key", "b")
		b.click("#test")
		b.until(`document.querySelector("[data-verdict=seen]")`)
		b.write("#key", "added here")
		b.click("#add")
		b.click("#dialog button.main")
		b.until(`document.querySelector("[data-fact=items]").textContent === "3"`)
	}
	b.open(c.url + "/?list#lang=en")
	b.until(`document.querySelectorAll("#rows .row .rate b").length === 2`)
}

// TestConsoleLive watches the page while a client adds and looks up keys.
func TestConsoleLive(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.say("BF.RESERVE live 0.001 100000", "BF.RESERVE idle 0.001 100")
	b := newTab(t)
	b.size(1280, 900)
	b.open(c.url + "/#lang=en")
	b.until(`document.querySelectorAll("#rows .row .rate b").length === 2`)
	level := `#rows .row[data-id="=live"] .c-level span`
	if got := b.text(level); got != "0%" {
		t.Errorf("before: %q, want 0%%", got)
	}
	c.addMany("live", 25_000)
	b.until(`document.querySelector('` + level + `').textContent === "25%"`)
	b.until(`document.querySelector('#rows .row[data-id="=live"] .spark')`)
	b.click(`#rows .row[data-id="=live"] a`)
	b.until(`document.querySelector("[data-fact=items]")?.textContent === "25,000" || Number(document.querySelector("[data-fact=items]")?.textContent.replaceAll(",", "")) > 24900`)
	time.Sleep(1500 * time.Millisecond) // until the stream shows it
	c.addMany("live", 50_000)
	b.until(`Number(document.querySelector("[data-fact=items]").textContent.replaceAll(",", "")) > 49900`)
	var drawn []string
	b.until(`document.querySelector('[data-series="new"] b') && document.querySelector(".series path.new").getAttribute("d").length > 10`)
	b.run(`return [...document.querySelectorAll(".series path")].map((p) => p.getAttribute("d"))`, &drawn)
	if len(drawn) != 4 {
		t.Errorf("%d lines, want 4", len(drawn))
	}
	b.until(`document.querySelector("#health [role=status]").textContent.includes("capacity is reached")`)
}

// TestConsolePassword enters wrong and right passwords, and changes something with the
// full one.
func TestConsolePassword(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"full", "look"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+" word"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := startConsole(t, "--password-file", filepath.Join(dir, "full"), "--read-password-file", filepath.Join(dir, "look"))
	c.pass = "look word"
	c.say(`AUTH "full word"`, "BF.RESERVE secret 0.01 1000")
	b := newTab(t)
	b.refusals = true // a password that is refused is an error in the browser's log
	b.size(1280, 900)
	b.open(c.url + "/#lang=en")
	b.until(`!document.querySelector("#login").hidden && document.querySelector("#list").hidden`)
	for password, want := range map[string]string{"wrong": "Wrong password.", "": "Wrong password."} {
		b.write("#password", password)
		b.click("#login button")
		b.until(fmt.Sprintf(`document.querySelector("#login-error").textContent === %q`, want))
	}
	b.write("#password", "look word")
	b.click("#login button")
	b.until(`document.querySelector("#login").hidden && document.querySelectorAll("#rows .row").length === 1`)
	b.click("#clients summary")
	b.until(`document.querySelector("#clients-list").textContent === "This takes the full password."`)
	b.click("#rows a")
	b.until(`document.querySelector("[data-fact=items]")`)
	b.click("[data-action=delete]")
	b.write("#dialog-confirm", "secret")
	for _, password := range []string{"look word", "wrong"} {
		b.write("#dialog-admin", password)
		b.click("#dialog .buttons button:last-child")
		b.until(`document.querySelector("#dialog .error").textContent !== "" && document.querySelector("#dialog").open`)
	}
	var there filterRow
	c.api("/filters/secret", &there)
	b.write("#dialog-admin", "full word")
	b.click("#dialog .buttons button:last-child")
	b.until(`document.querySelector("#detail").hidden && document.querySelectorAll("#rows .row").length === 0`)
}

// TestConsoleTenThousand measures how long the list takes to appear, and to scroll.
func TestConsoleTenThousand(t *testing.T) {
	c := startConsole(t)
	for from := 0; from < 10_000; from += 500 {
		var commands []string
		for i := from; i < from+500; i++ {
			commands = append(commands, fmt.Sprintf("BF.RESERVE tenant:%05d 0.01 1000", i))
		}
		c.say(commands...)
	}
	b := newTab(t)
	b.size(1280, 900)
	b.open(c.url + "/#lang=en")
	b.until(`performance.getEntriesByName("bloomery-all-rows").length > 0`)
	var times struct{ First, All, Slowest, Median float64 }
	var rows int
	b.run(`return document.querySelectorAll("#rows .row").length`, &rows)
	b.run(`
		const at = (name) => performance.getEntriesByName(name)[0].startTime;
		const frames = [];
		const box = document.querySelector("#window");
		let before = await new Promise(requestAnimationFrame);
		for (let i = 0; i < 120; i++) {
			box.scrollTop += 4000;
			const now = await new Promise(requestAnimationFrame);
			frames.push(now - before);
			before = now;
		}
		frames.sort((a, b) => a - b);
		return {First: at("bloomery-first-rows"), All: at("bloomery-all-rows"), Slowest: frames.at(-1), Median: frames[60]};
	`, &times)
	fmt.Printf("10,000 filters: first rows after %.0f ms, all after %.0f ms, %d rows in the page; scrolling, a frame takes %.0f ms (median), %.0f ms (slowest)\n",
		times.First, times.All, rows, times.Median, times.Slowest)
	if times.First > 1000 || rows > 60 || times.Median > 50 {
		t.Errorf("%+v with %d rows, want the first within 1 s, few rows, and quick frames", times, rows)
	}
	b.run(`document.querySelector("#window").scrollTop = 1e9; return 1`, new(int))
	b.until(`[...document.querySelectorAll("#rows a")].some((a) => a.textContent === "tenant:09999") && document.querySelector('#rows .row[data-id="=tenant:09999"] .rate b').textContent === "0"`)
}

// TestConsoleReconnects stops the server under an open console, and starts it again.
func TestConsoleReconnects(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.say("BF.RESERVE kept 0.001 1000")
	b := newTab(t)
	b.refusals = true // a connection that fails is an error in the browser's log
	b.size(1280, 900)
	b.open(c.url + "/#lang=en")
	b.until(`document.querySelector('#rows .row[data-id="=kept"] .rate b')?.textContent === "0"`)
	c.end()
	b.until(`document.querySelector("#status").textContent.startsWith("No connection to the server")`)
	again := startConsole(t, "--data", c.data, "--http", strings.TrimPrefix(c.url, "http://"))
	again.addMany("kept", 500)
	b.until(`document.querySelector("#status").hidden && document.querySelector('#rows .row[data-id="=kept"] .c-level span').textContent === "50%"`)
}

// TestConsoleNames opens filters whose names are no plain text.
func TestConsoleNames(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.say(`BF.RESERVE "\xff\x00" 0.01 100`, `BF.RESERVE ".." 0.01 100`, `BF.RESERVE "" 0.01 100`, `BF.RESERVE "a/b?c#d%20&e" 0.01 100`, `BF.RESERVE "<b>x</b>" 0.01 100`)
	b := newTab(t)
	b.size(1280, 900)
	b.open(c.url + "/#lang=en")
	b.until(`document.querySelectorAll("#rows .row").length === 5`)
	for _, name := range []string{`\xff\x00`, "..", `""`, "a/b?c#d%20&e", "<b>x</b>"} {
		b.run(fmt.Sprintf(`[...document.querySelectorAll("#rows a")].find((a) => a.textContent === %q).click(); return 1`, name), new(int))
		b.until(fmt.Sprintf(`document.querySelector("#detail-name")?.textContent === %q && document.querySelector("[data-fact=items]")`, name))
		b.write("#key", "x")
		b.click("#add")
		b.click("#dialog button.main")
		b.until(`document.querySelector("[data-verdict=seen]") && document.querySelector("[data-fact=items]").textContent === "1"`)
		b.run("history.back(); return 1", new(int))
		b.until(`document.querySelector("#detail").hidden && document.querySelectorAll("#rows .row").length === 5`)
	}
}

// TestConsoleIsSafe checks the page's policy, and that its parts have names.
func TestConsoleIsSafe(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.fill()
	answer, err := http.Get(c.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if policy := answer.Header.Get("Content-Security-Policy"); err != nil || !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q, %v", policy, err)
	}
	for _, no := range []string{"style=", "onclick=", "<style", "http://", "https://"} {
		if strings.Contains(string(text), no) {
			t.Errorf("the page has %s", no)
		}
	}
	b := newTab(t)
	b.size(1280, 900)
	for _, hash := range []string{"", "&f=%3Demails%3Asent"} {
		b.open(c.url + "/?x" + hash[:min(len(hash), 1)] + "#lang=en" + hash)
		b.until(map[bool]string{true: `document.querySelectorAll("#rows .row").length === 7`, false: `document.querySelector("[data-fact=items]")`}[hash == ""])
		var nameless []string
		b.run(`
			const named = (e) => e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length || e.getAttribute("aria-labelledby") || e.title;
			const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
			return [
				...[...document.querySelectorAll("button, a, input, select, canvas, [role=img], [role=region], [role=grid], h1, h2, h3")].filter((e) => e.checkVisibility() && !named(e)).map((e) => "nameless: " + e.outerHTML.slice(0, 200)),
				...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => "twice: " + id),
				...[...document.querySelectorAll("[aria-labelledby]")].filter((e) => e.checkVisibility() && !document.getElementById(e.getAttribute("aria-labelledby"))).map((e) => "labelled by nothing: " + e.outerHTML.slice(0, 100)),
				...[...document.querySelectorAll("[role=row]")].filter((e) => ![...e.children].every((c) => ["gridcell", "columnheader", "rowheader"].includes(c.getAttribute("role")))).map((e) => "not of cells: " + e.outerHTML.slice(0, 100)),
			];
		`, &nameless)
		for _, problem := range nameless {
			t.Error(problem)
		}
	}
}
