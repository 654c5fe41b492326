package browser

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	shots    = flag.String("shots", "", "a directory for pictures of every page, width, theme and language")
	pictures = flag.String("pictures", "", "the directory of the README's pictures, which are drawn again")
)

// wide is the width of the README's pictures.
const wide = 1100

// TestPictures draws the README's pictures. They depend on the fonts of the machine, so
// only make screenshots keeps them.
func TestPictures(t *testing.T) {
	t.Parallel()
	dir := *pictures
	if dir == "" {
		dir = t.TempDir()
	}
	address := servePages(t, nil)
	for name, state := range map[string]string{
		"playground": "/play#layout=classic&m=256&k=3&w=kiwi,plum,fig,mango,apple,peach,cherry,melon&r=44&lang=en",
		"plan":       "/plan#n=10 billion&p=1%25&lang=en",
	} {
		b := newTab(t)
		b.look(wide, "light")
		b.open(address + state)
		b.ready()
		if name == "playground" {
			b.click("#stranger")
			b.contains("#verdict", "false positive, caused by")
		}
		keep(b, dir, name, map[string]float64{"playground": 900, "plan": 800}[name])
	}
	if *pictures == "" {
		return // other tests open the console
	}
	c := startConsole(t)
	c.fill()
	b := newTab(t)
	b.look(wide, "light")
	b.open(c.url + "/#lang=en&f=%3Demails%3Asent")
	b.until(`document.querySelector("#detail [data-fact]") && document.querySelector("#population canvas")`)
	for range 20 { // some seconds of history
		c.addMany("emails:sent", 40)
		time.Sleep(300 * time.Millisecond)
	}
	b.write("#key", "key:77")
	b.click("#test")
	b.until(`document.querySelector("[data-verdict=seen]")`)
	keep(b, dir, "console", 1150)
}

// keep writes a picture of the top of the page.
func keep(b *tab, dir, name string, height float64) {
	b.t.Helper()
	picture := b.shot(wide, height)
	if len(picture) > 200_000 {
		b.t.Errorf("%s takes %d bytes", name, len(picture))
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
