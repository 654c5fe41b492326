package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomery/bloom/web"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// servePages serves the pages as the program does, with more for the tests.
func servePages(t *testing.T, more map[string]http.Handler) string {
	t.Helper()
	mux := http.NewServeMux()
	web.Mount(mux, false)
	mux.HandleFunc("/blank", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>test</title></html>`)
	})
	for path, handler := range more {
		mux.Handle(path, handler)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// asJSON serves a value.
func asJSON(v any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(v) })
}

// bloomery builds the program, and returns its path.
func bloomery(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "bloomery")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/bloomery")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return program
}

// said is what a program prints, and whether it refuses.
func said(program string, args ...string) (text string, refused bool) {
	output, err := exec.Command(program, args...).Output()
	return string(output), err != nil
}

// call sends a command of the browser's protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// look sets the width and the colours that the system prefers, before a page is opened.
func (b *tab) look(width int64, theme string) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// quoted is text as JavaScript.
func quoted(text string) string {
	q, _ := json.Marshal(text)
	return string(q)
}

// text is what an element shows, once it is there.
func (b *tab) text(selector string) (text string) {
	b.t.Helper()
	b.run(`return document.querySelector(`+quoted(selector)+`)?.textContent ?? "nothing at "+`+quoted(selector), &text)
	return text
}

// value is what an input holds.
func (b *tab) value(selector string) (value string) {
	b.t.Helper()
	b.run(`return document.querySelector(`+quoted(selector)+`).value`, &value)
	return value
}

// click clicks an element, which must be there and enabled.
func (b *tab) click(selector string) {
	b.t.Helper()
	var done bool
	b.run(`const e = document.querySelector(`+quoted(selector)+`); if (!e || e.disabled || e.closest("[hidden]")) return false; e.click(); return true`, &done)
	if !done {
		b.t.Fatalf("cannot click %s", selector)
	}
}

// write replaces what an input holds, by the keyboard.
func (b *tab) write(selector, text string) {
	b.t.Helper()
	var done bool
	b.run(`const e = document.querySelector(`+quoted(selector)+`); e.focus(); e.select(); return document.activeElement === e`, &done)
	if !done {
		b.t.Fatalf("cannot focus %s", selector)
	}
	if text == "" {
		b.press("Delete")
		return
	}
	call(b, input.InsertText, input.InsertTextParams{Text: text})
}

// codes are the keys that press knows.
var codes = map[string]int64{"Enter": 13, "Delete": 46, "Tab": 9, "ArrowRight": 39, "ArrowDown": 40, "End": 35, " ": 32}

// press presses a key.
func (b *tab) press(key string) {
	b.t.Helper()
	text := map[string]string{"Enter": "\r", " ": " "}[key]
	for _, kind := range []input.DispatchKeyEventType{"keyDown", "keyUp"} {
		p := input.DispatchKeyEventParams{Type: kind, Key: key, Code: key, WindowsVirtualKeyCode: codes[key]}
		if kind == "keyDown" {
			p.Text = text
		}
		call(b, input.DispatchKeyEvent, p)
	}
}

// until waits until an expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	var is bool
	b.run(`for (let i = 0; i < 400; i++) { if (`+expression+`) return true; await new Promise((r) => setTimeout(r, 25)); } return false`, &is)
	if !is {
		b.t.Fatalf("never true: %s; the page says %q", expression, b.text("main"))
	}
}

// ready waits until a page has drawn itself.
func (b *tab) ready() {
	b.t.Helper()
	b.until(`document.readyState === "complete" && document.querySelector(".chart svg")`)
}

// shot is a picture of the whole page, or of its upper part if height is not zero.
func (b *tab) shot(width, height float64) []byte {
	b.t.Helper()
	if height == 0 {
		b.run(`return document.documentElement.scrollHeight`, &height)
	}
	yes := true
	return call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: &yes, Clip: &page.Viewport{Width: width, Height: height, Scale: 1},
	}).Data
}

// facts are the values of a list, by their data-fact.
func (b *tab) facts(selector string) (facts map[string]string) {
	b.t.Helper()
	b.run(`return Object.fromEntries([...document.querySelectorAll(`+quoted(selector+" [data-fact]")+`)].map((e) => [e.dataset.fact, e.textContent]))`, &facts)
	return facts
}

// pageNames are the pages, with addresses that show much of them.
var pageNames = map[string][]string{
	"play": {"", "#layout=paired&r=200&q=kiwi", "#layout=counting&k=4&r=900", "#layout=scalable&r=600", "#layout=window&r=80", "#layout=split&m=1024&r=60"},
	"plan": {"", "#n=10 billion&p=1%25&layout=classic", "#p=1 in a million&m=2GiB&layout=counting"},
}

// every shows each page at each address and width, in both languages and themes.
func every(t *testing.T, widths []int64, test func(b *tab, name string, width int64)) {
	address := servePages(t, nil)
	for pageName, states := range pageNames {
		t.Run(pageName, func(t *testing.T) {
			t.Parallel()
			b := newTab(t)
			for i, state := range states {
				for _, width := range widths {
					b.look(width, "light")
					b.open(address + "/blank") // a change of the hash alone would not load it
					b.open(address + "/" + pageName + state)
					b.ready()
					for _, language := range []string{"en", "zh"} {
						b.click("[data-lang=" + language + "]")
						for _, theme := range []string{"light", "dark"} {
							b.look(width, theme)
							b.until(`document.documentElement.dataset.theme === ` + quoted(theme))
							b.until(`await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))`)
							test(b, fmt.Sprintf("%s-%d-%d-%s-%s", pageName, i, width, theme, language), width)
						}
					}
				}
			}
		})
	}
}

// TestCatalogues: each text exists in both languages, with the same {names}.
func TestCatalogues(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.open(servePages(t, nil) + "/play")
	b.ready()
	files, err := filepath.Glob("../pages/*texts.js")
	if err != nil || len(files) < 4 {
		t.Fatalf("catalogues: %q, %v", files, err)
	}
	for _, file := range files {
		var problems []string
		b.run(`
			const { texts } = await import(`+quoted("/web/pages/"+filepath.Base(file))+`);
			const names = (text) => [...text.matchAll(/\{\w+\}/g)].map(String).sort().join(" ");
			const problems = [];
			for (const key of new Set([...Object.keys(texts.en), ...Object.keys(texts.zh)])) {
				if (!texts.en[key] || !texts.zh[key]) problems.push(key + " is in one language only");
				else if (names(texts.en[key]) !== names(texts.zh[key])) problems.push(key + ": " + names(texts.en[key]) + " / " + names(texts.zh[key]));
				else if (texts.en[key] === texts.zh[key] && !/^(k|\{[^ ]*|[{}a-z =/ ]*)$/.test(texts.en[key])) problems.push(key + " is the same in both: " + texts.en[key]);
			}
			return problems`, &problems)
		for _, problem := range problems {
			t.Errorf("%s: %s", file, problem)
		}
	}
}

// TestChoices: language and colours change by their buttons, and are kept in links and in
// the browser.
func TestChoices(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.look(1280, "light")
	address := servePages(t, nil)
	b.open(address + "/plan#lang=en")
	b.ready()
	b.click("[data-lang=zh]")
	if got := b.text("h1"); got != "过滤器需要多大？" {
		t.Errorf("in Chinese the heading is %q", got)
	}
	var lang, link, dark string
	b.run(`return document.documentElement.lang`, &lang)
	b.run(`return document.querySelector(".top nav a[href*=play]").href`, &link)
	if lang != "zh-CN" || !strings.HasSuffix(link, "/play#lang=zh") {
		t.Errorf("lang %q, link %q", lang, link)
	}
	b.click("#theme")
	b.run(`return document.documentElement.dataset.theme`, &dark)
	if dark != "dark" {
		t.Errorf("after the button the theme is %q", dark)
	}
	b.open(address + "/play#lang=en")
	b.ready()
	b.run(`return document.documentElement.dataset.theme + " " + document.querySelector("h1").textContent`, &dark)
	if dark != "dark Watch a filter remember" {
		t.Errorf("on the other page: %q", dark)
	}
	b.run(`localStorage.clear(); return ""`, &dark)
}
