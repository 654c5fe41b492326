package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var golden = flag.Bool("golden", false, "TestGolden creates the directories of this version in testdata, where there are none yet")

// The golden directories in testdata/versionN were made by
//
//	go test ./store -run 'TestGolden$' -golden
//
// with the release that wrote version N of the format. Each is what goldenLife had on
// disk at some moment. Directories are added, never changed: every later release must
// read them, and find every key, count, name and time in them.
const (
	goldenKilled = "killed" // a snapshot, two segments after it, and a torn end
	goldenClosed = "closed" // after Close
)

// goldenNow is the time when the directories were copied.
var goldenNow = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// goldenValue is what a name must stand for.
type goldenValue struct {
	kind     Kind
	from, to int // keys
	items    uint64
	text     string
	expires  time.Time
	level    Level
	loading  bool // the second half of its dump is still to come
}

var far = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

var goldenValues = map[string]goldenValue{
	"fixed":             {kind: RedisBloom, to: 80, items: 80},
	"growing":           {kind: RedisBloom, to: 120, items: 119}, // four layers; one key was a false positive
	"merged":            {kind: RedisBloom, to: 60, items: 60},
	"paired":            {kind: Paired, to: 200, items: 200},
	"paired public":     {kind: Paired, to: 200, items: 200, expires: far},
	"paired growing":    {kind: Paired, to: 120, items: 120},
	"paired merged":     {kind: Paired, to: 60, items: 60},
	"paired folded":     {kind: Paired, to: 100, items: 100},
	"paired half":       {kind: Paired, to: 200, items: 200, loading: true},
	"paired later half": {kind: Paired, to: 200, items: 200, loading: true},
	"redisbloom header": {kind: RedisBloom, items: 80},
	"redisbloom loaded": {kind: RedisBloom, to: 80, items: 80},
	"window":            {kind: Window, to: 100, items: 100},
	"window public":     {kind: Window, to: 100, items: 100},
	"none":              {kind: RedisBloom, to: 50, items: 50, level: Unlogged},
	"always":            {kind: Paired, to: 50, items: 50, level: Always},
	"renamed":           {kind: RedisBloom, to: 10, items: 10},
	"swapped a":         {kind: RedisBloom, from: 100, to: 120, items: 20},
	"swapped b":         {kind: RedisBloom, to: 10, items: 10},
	"text":              {kind: String, text: "some text"},
	"empty text":        {kind: String},
	"text that ends":    {kind: String, text: "until 2100", expires: far},
	"\x00\xff\r\n":      {kind: String, text: "\x00\xff"},
	"":                  {kind: String, text: "a name of no bytes"},
}

func goldenKeys(from, to int) (keys [][]byte) {
	for i := from; i < to; i++ {
		keys = append(keys, fmt.Appendf(nil, "key %d", i))
	}
	return keys
}

// life is a store that makes the golden directories.
type life struct {
	t      *testing.T
	config LocalConfig
	clock  time.Time
	*Local
}

func (g *life) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *life) start() {
	var err error
	g.Local, err = OpenLocal(g.config)
	g.must(err)
}

func (g *life) create(name string, spec Spec) {
	g.t.Helper()
	if spec.Rate == 0 {
		spec.Rate = 0.001
	}
	_, err := g.Create(bg, name, spec)
	g.must(err)
}

func (g *life) add(name string, from, to int) {
	g.t.Helper()
	f, err := g.Open([]byte(name))
	g.must(err)
	_, err = f.Add(bg, goldenKeys(from, to), make([]bool, to-from))
	g.must(err)
}

func (g *life) merge(into, from string) {
	g.t.Helper()
	f, err := g.Open([]byte(into))
	g.must(err)
	other, err := g.Open([]byte(from))
	g.must(err)
	g.must(f.Merge(bg, other))
}

// load begins to load a dump, with this share of its only chunk.
func (g *life) load(name, from string, share float64) {
	g.t.Helper()
	f, err := g.Open([]byte(from))
	g.must(err)
	_, header, err := f.Dump(0)
	g.must(err)
	h, err := g.Load(bg, name, header)
	g.must(err)
	_, chunk, err := f.Dump(1)
	g.must(err)
	if n := int(share * float64(len(chunk))); n > 0 {
		g.must(h.Load(bg, int64(n)+1, chunk[:n]))
	}
}

// goldenLife creates all values, some before the first snapshot, some after it, some after
// a kill. It calls keep with each directory to be kept.
func goldenLife(t *testing.T, keep func(name, dir string)) {
	g := &life{t: t, clock: goldenNow.Add(-2 * time.Hour)}
	g.config = LocalConfig{Dir: t.TempDir(), Level: EverySecond, CheckpointBytes: 1 << 30, seams: seams{idle: true, now: func() time.Time { return g.clock }}}
	secret := []byte(secretLine + "000102030405060708090a0b0c0d0e0f\n") // so that the false positives are always the same
	g.must(os.WriteFile(filepath.Join(g.config.Dir, secretsName), secret, 0o600))
	g.start()
	g.create("fixed", Spec{Kind: RedisBloom, Capacity: 100})
	g.create("growing", Spec{Kind: RedisBloom, Capacity: 10, Growth: 2})
	g.create("merged", Spec{Kind: RedisBloom, Capacity: 100})
	g.create("paired", Spec{Kind: Paired, Capacity: 1000})
	g.create("paired public", Spec{Kind: Paired, Capacity: 1000, Public: true, Expires: far})
	g.create("paired growing", Spec{Kind: Paired, Capacity: 10, Growth: 2})
	g.create("window", Spec{Kind: Window, Capacity: 1000, Span: 24 * time.Hour})
	g.create("none", Spec{Kind: RedisBloom, Capacity: 100, Level: Unlogged})
	g.create("ended", Spec{Kind: RedisBloom, Capacity: 100, Expires: goldenNow.Add(-time.Hour)})
	g.create("dropped", Spec{Kind: RedisBloom, Capacity: 100})
	g.add("fixed", 0, 40)
	g.add("growing", 0, 25)
	g.add("merged", 0, 30)
	g.add("paired", 0, 200)
	g.add("paired public", 0, 100)
	g.add("paired growing", 0, 25)
	g.add("window", 0, 30)
	g.add("none", 0, 50)
	g.must(g.Set(bg, "text", []byte("another text")))
	g.must(g.Set(bg, "text that ends", []byte("until 2100")))
	g.must(g.Expire(bg, "text that ends", far))
	g.load("paired half", "paired", 0.6)
	g.must(g.Snapshot(bg))

	// In the first segment after the snapshot:
	g.clock = goldenNow.Add(-time.Hour)
	g.add("fixed", 20, 80)
	g.add("growing", 25, 120)
	g.add("paired public", 100, 200)
	g.add("paired growing", 25, 120)
	g.add("window", 10, 60)
	g.create("window public", Spec{Kind: Window, Capacity: 1000, Span: 24 * time.Hour, Public: true})
	g.add("window public", 0, 100)
	g.create("other", Spec{Kind: RedisBloom, Capacity: 100})
	g.add("other", 30, 60)
	g.merge("merged", "other")
	g.create("swapped a", Spec{Kind: RedisBloom, Capacity: 100})
	g.add("swapped a", 0, 10)
	g.create("to be renamed", Spec{Kind: RedisBloom, Capacity: 100})
	g.add("to be renamed", 0, 10)
	g.must(g.Rename(bg, "other", "to be replaced"))
	_, err := g.Drop(bg, "dropped", "to be replaced")
	g.must(err)
	g.must(g.Commit(bg))
	g.must(g.log.syncNow())
	g.must(g.unlock())

	// In the second:
	g.start()
	g.clock = goldenNow
	g.add("window", 60, 100)
	g.create("paired merged", Spec{Kind: Paired, Capacity: 100})
	g.add("paired merged", 0, 40)
	g.create("other", Spec{Kind: Paired, Capacity: 100})
	g.add("other", 40, 60)
	g.merge("paired merged", "other")
	_, err = g.Drop(bg, "other")
	g.must(err)
	g.create("paired folded", Spec{Kind: Paired, Capacity: 2700, Rate: 0.001}) // twelve blocks
	g.add("paired folded", 0, 100)
	f, err := g.Open([]byte("paired folded"))
	g.must(err)
	g.must(f.Fold(bg, 2))
	g.create("always", Spec{Kind: Paired, Capacity: 100, Level: Always})
	g.add("always", 0, 50)
	g.load("paired later half", "paired", 0.5)
	g.load("redisbloom header", "fixed", 0)
	g.load("redisbloom loaded", "fixed", 1)
	g.create("swapped b", Spec{Kind: RedisBloom, Capacity: 100})
	g.add("swapped b", 100, 120)
	g.must(g.Swap(bg, "swapped a", "swapped b"))
	g.must(g.Set(bg, "renamed", []byte("is replaced")))
	g.must(g.Rename(bg, "to be renamed", "renamed"))
	g.must(g.Rename(bg, "swapped a", "for a moment"))
	g.must(g.Rename(bg, "swapped b", "swapped a"))
	g.must(g.Rename(bg, "for a moment", "swapped b"))
	g.must(g.Swap(bg, "swapped a", "swapped b"))
	g.must(g.Set(bg, "text", []byte("some text")))
	g.must(g.Set(bg, "empty text", nil))
	g.must(g.Set(bg, "\x00\xff\r\n", []byte("\x00\xff")))
	g.must(g.Set(bg, "", []byte("a name of no bytes")))
	g.must(g.Commit(bg))
	g.must(g.log.syncNow())
	g.must(g.log.syncNow())
	last := g.log.segment
	g.must(g.unlock())
	torn := filepath.Join(t.TempDir(), "torn")
	g.must(os.CopyFS(torn, os.DirFS(g.config.Dir)))
	log, err := os.OpenFile(filepath.Join(torn, segmentName(last.start)), os.O_WRONLY|os.O_APPEND, 0)
	g.must(err)
	log.Write([]byte{99, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	g.must(log.Close())
	keep(goldenKilled, torn)

	g.start()
	g.must(g.Close())
	keep(goldenClosed, g.config.Dir)
}

// TestGolden opens the directories of all versions, uses them, and opens them again.
func TestGolden(t *testing.T) {
	version := filepath.Join("testdata", fmt.Sprint("version", fileVersion))
	if *golden {
		goldenLife(t, func(name, dir string) {
			to := filepath.Join(version, name)
			if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%s is there: golden directories are added to, never changed", to)
			}
			if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(to, lockName))
		})
	}
	found := 0
	for v := range fileVersion + 1 {
		for _, name := range []string{goldenKilled, goldenClosed} {
			dir := filepath.Join("testdata", fmt.Sprint("version", v), name)
			t.Run(filepath.ToSlash(dir), func(t *testing.T) { testGolden(t, dir, name == goldenKilled) })
			found++
		}
	}
	if found == 0 {
		t.Error("there are none")
	}
}

func testGolden(t *testing.T, golden string, torn bool) {
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	config := LocalConfig{Dir: dir, seams: seams{idle: true, now: func() time.Time { return goldenNow }}}
	for round := range 4 { // as it was, after a kill, after Close, and without any log
		l, err := OpenLocal(config)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if r := l.Recovered(); (r.TornBytes > 0) != (torn && round == 0) {
			t.Errorf("round %d: %d torn bytes", round, r.TornBytes)
		}
		checkGolden(t, l, !torn)
		if round == 0 {
			err = l.unlock()
		} else {
			err = l.Close()
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	files, err := l.config.disk.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if data, _ := os.ReadFile(filepath.Join(dir, name)); len(data) >= headBytes && order.Uint32(data[8:]) != fileVersion {
			t.Errorf("%s is of version %d", name, order.Uint32(data[8:]))
		}
	}
	for name, want := range goldenValues {
		if want.loading {
			finishLoading(t, l, name)
		}
	}
}

// checkGolden compares the contents of the store with goldenValues.
func checkGolden(t *testing.T, l *Local, closed bool) {
	t.Helper()
	names, _, _ := l.List(0, 1000)
	slices.Sort(names)
	var want []string
	for name := range goldenValues {
		want = append(want, name)
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Fatalf("there are %q, want %q", names, want)
	}
	for name, want := range goldenValues {
		kind, expires, _ := l.Kind([]byte(name))
		if kind != want.kind || !expires.Equal(want.expires) {
			t.Errorf("%q is of kind %d and ends at %v, want %d and %v", name, kind, expires, want.kind, want.expires)
			continue
		}
		if kind == String {
			if got, err := l.Get([]byte(name)); err != nil || !bytes.Equal(got, []byte(want.text)) {
				t.Errorf("%q is %q, %v, want %q", name, got, err, want.text)
			}
			continue
		}
		f, err := l.Open([]byte(name))
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		level := want.level
		if level == StoreLevel {
			level = EverySecond
		}
		if i := f.Info(); i.Items != want.items || i.Level != level {
			t.Errorf("%q counts %d items, level %v, want %d, %v", name, i.Items, i.Level, want.items, level)
		}
		if !want.loading {
			checkKeys(t, f, name, want)
		}
	}
}

// checkKeys looks for the keys that were added, and for a thousand that were not.
func checkKeys(t *testing.T, f Filter, name string, want goldenValue) {
	t.Helper()
	found := make([]bool, want.to-want.from)
	f.Contains(bg, goldenKeys(want.from, want.to), found)
	if n := countTrue(found); n != len(found) {
		t.Errorf("%q has %d of %d keys", name, n, len(found))
	}
	found = make([]bool, 1000)
	f.Contains(bg, goldenKeys(1000, 2000), found)
	if n := countTrue(found); n > 20 { // 0.1% to 0.4% are expected
		t.Errorf("%q has %d of 1000 keys that were never added", name, n)
	}
}

// finishLoading loads the rest of a partly loaded dump.
func finishLoading(t *testing.T, l *Local, name string) {
	t.Helper()
	from, err := l.Open([]byte("paired"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = from.Dump(0); err != nil {
		t.Fatal(err)
	}
	next, chunk, err := from.Dump(1)
	if err != nil {
		t.Fatal(err)
	}
	v := l.lookup([]byte(name))
	have := int(v.body.(*paired).incoming.have)
	if have == 0 || have == len(chunk) {
		t.Errorf("%q: %d of %d bytes were loaded", name, have, len(chunk))
	}
	if err := v.Load(bg, next, chunk[have:]); err != nil {
		t.Fatalf("%q: the second half: %v", name, err)
	}
	checkKeys(t, v, name, goldenValues[name])
}
