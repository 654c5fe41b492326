package browser

import "testing"

// TestConsolePictures takes pictures of the console, wide and narrow, light and dark, in
// both languages, and checks that nothing is wider than the page.
func TestConsolePictures(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.fill()
	b := newTab(t)
	for _, view := range []struct {
		name, hash string
		high       int64
	}{{"list", "", 1250}, {"paired", "f=%3Demails%3Asent", 2300}, {"chain", "f=%3Dcrawler%3Aseen", 2300}, {"window", "f=%3Dlogin-attempts", 1900}} {
		for _, look := range []struct {
			name, theme, lang string
			wide              int64
		}{{"light-en-1280", "light", "en", 1280}, {"dark-zh-1280", "dark", "zh", 1280}, {"dark-en-390", "dark", "en", 390}, {"light-zh-390", "light", "zh", 390}} {
			b.open(c.url + "/web/pages/icon.svg") // so that the next page is loaded anew
			var ok any
			b.open(c.url + "/plan")
			b.run(`localStorage.setItem("theme", "`+look.theme+`"); return 1`, &ok)
			b.size(look.wide, 800)
			b.open(c.url + "/#lang=" + look.lang + "&" + view.hash)
			if view.hash == "" {
				b.until(`document.querySelectorAll("#rows .row").length === 7 && document.querySelectorAll("#rows .rate b").length === 7`)
			} else {
				b.until(`document.querySelector("#detail [data-fact]") && document.querySelector("#population canvas")`)
				b.run(`document.querySelector("#key").value = "key:77"; document.querySelector("#test").click(); return 1`, &ok)
				b.until(`document.querySelector("[data-verdict=seen]")`)
			}
			c.addMany("crawler:seen", 2000)
			b.until(`document.querySelectorAll("#strip .spark").length > 0`)
			var wider int
			if b.run(`return document.documentElement.scrollWidth - innerWidth`, &wider); wider > 0 {
				t.Errorf("%s %s: the page is %d pixels wider than the screen", view.name, look.name, wider)
			}
			high := view.high
			if look.wide < 600 {
				high = high * 3 / 2
			}
			b.picture("console-"+view.name+"-"+look.name, look.wide, high)
		}
	}
}
