package browser

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var (
	shots    = flag.String("shots", "", "a directory for pictures of every page, width, theme and language")
	pictures = flag.String("pictures", "", "the directory of the README's pictures, which are drawn again")
)

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
		b.look(1100, "light")
		b.open(address + state)
		b.ready()
		if name == "playground" {
			b.click("#stranger")
			b.contains("#verdict", "false positive, caused by")
		}
		height := map[string]float64{"playground": 900, "plan": 800}[name]
		picture := b.shot(1100, height)
		if len(picture) > 200_000 {
			t.Errorf("%s takes %d bytes", name, len(picture))
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
