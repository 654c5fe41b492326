package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/bloomery/bloom"
)

// TestMeasure runs every library through one short comparison. It fails (in
// measure) if one does not find a key that was added, as when keys are laid out
// wrongly, and here if a figure is missing or the filter is not the one asked for.
func TestMeasure(t *testing.T) {
	r := measure(30_000, options{rate: 0.01, rounds: 1}, filterLibrary, libraries)
	for _, e := range r.entrants {
		if e.bits == 0 {
			t.Errorf("%s: no size", e.name)
		}
		if isTouch := e.name == touchLibrary.name; !isTouch && e.rate > 0.012 {
			t.Errorf("%s: rate %v, want 0.01", e.name, e.rate)
		}
		for at, times := range e.times {
			if len(times.cpu) != 1 || times.cpu[0] <= 0 || times.wall[0] <= 0 {
				t.Errorf("%s, %v, %v: got %v", e.name, at.call, at.op, *times)
			}
		}
	}
	for _, call := range calls {
		for op := add; op <= miss; op++ {
			if r.find("Filter").median(cell{call, op}) == 0 {
				t.Errorf("Filter, %v, %v: not measured", call, op)
			}
		}
	}
	var out bytes.Buffer
	writeTable(&out, []*result{r})
	for _, want := range []string{"| 3e4 | Filter |", "| 3e4 | bare touch |", " to build |", "Noise at n = 3e4"} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("the table has no %q:\n%s", want, &out)
		}
	}
}

// TestTouch compares the assembly with its twin in Go.
func TestTouch(t *testing.T) {
	memory, close := hugeMemory(100 * blockBytes)
	defer close()
	for i := range memory {
		memory[i] = byte(mix(uint64(i)))
	}
	hashes := newMaterial(hashed, span(0, 1000+touchAhead)).hashes
	got := touchOne(&memory[0], 800, &hashes[0], 1000)
	if want := touchOneGo(memory, 800, hashes[:1000]); got != want {
		t.Errorf("touchOne = %#x, want %#x", got, want)
	}
	for groups, touch := range map[int]func(*byte, uint64, *uint64, int) uint64{1: touchGroup, 2: touchGroups} {
		got := touch(&memory[0], 25, &hashes[0], 1000)
		if want := touchGroupsGo(memory, 25, hashes[:1000], groups); got != want {
			t.Errorf("the touch of %d groups is %#x, want %#x", groups, got, want)
		}
	}
	for i := range memory {
		memory[i] = 0
	}
	twin := unsafe.Slice((*byte)(unsafe.Pointer(&make([]uint64, len(memory)/8)[0])), len(memory))
	hashes = hashes[:40+touchAhead] // few, so that a wrong line shows
	touchTwo(&memory[0], 100, &hashes[0], 40)
	touchTwoGo(twin, 100, hashes[:40])
	if !slices.Equal(memory, twin) {
		t.Error("touchTwo touches other lines than touchTwoGo")
	}
	clear(memory)
	clear(twin)
	touchGroupsToWrite(&memory[0], 25, &hashes[0], 40)
	touchGroupsToWriteGo(twin, 25, hashes[:40])
	if !slices.Equal(memory, twin) {
		t.Error("touchGroupsToWrite touches other lines than touchGroupsToWriteGo")
	}
}

func TestTargets(t *testing.T) {
	us := &entrant{library: filterLibrary, times: map[cell]*times{}}
	rival := &entrant{library: named(bnb), times: map[cell]*times{}}
	for op := add; op <= miss; op++ {
		us.times[cell{singleKeys, op}] = &times{cpu: []float64{10}}
		rival.times[cell{singleKeys, op}] = &times{cpu: []float64{51}}
	}
	us.times[cell{singleKeys, miss}].cpu[0] = 20
	row, met, all := targets[0].row(&result{n: 1e5, p: 0.01, entrants: []*entrant{us, rival}})
	want := "| Filter: 16-byte keys one by one | bits-and-blooms/bloom/v3 | 1e5 | 5x / 5x / 5x | 5.10x / 5.10x / 2.55x | **missed: miss** |"
	if row != want || met != 2 || all != 3 {
		t.Errorf("row = %q, %d of %d met; want %q, 2 of 3", row, met, all, want)
	}
	for _, tt := range []struct {
		limit limit
		ours  float64
		want  bool
	}{
		{within(1.5, 0, 0, 2), 17, true},
		{within(1.5, 0, 0, 2), 17.1, false},
		{faster(2, 0, 0), 5, true},
		{faster(2, 0, 0), 5.1, false},
		{limit{}, 1000, true},
	} {
		if _, _, ok := tt.limit.check(add, tt.ours, 10); ok != tt.want {
			t.Errorf("%+v: %g beside 10: met is %v, want %v", tt.limit, tt.ours, ok, tt.want)
		}
	}
}

// lockedFilter stands in for a filter that is safe for concurrent use.
type lockedFilter struct {
	*bloom.Filter
	mutex sync.Mutex
}

func (f *lockedFilter) AddHashes(hashes []uint64, isNew []bool) int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.Filter.AddHashes(hashes, isNew)
}

func TestScale(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one core")
	}
	var out bytes.Buffer
	writeScale(&out, options{sizes: []uint64{10_000}, rate: 0.01, rounds: 1}, "Filter", func(n uint64, p float64) batchFilter {
		return &lockedFilter{Filter: must(bloom.New(n, p))}
	})
	for _, want := range []string{"| 1e4 | add |", "| 1e4 | hit |", "| 1e4 | miss |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, &out)
		}
	}
}

func TestSplitBlockRate(t *testing.T) {
	// Ten bits per key, from parquet-go's own filter; the textbook says 0.8%.
	if got := splitBlockRate(10); got < 0.0125 || got > 0.0135 {
		t.Errorf("splitBlockRate(10) = %v, want 0.013", got)
	}
}

func TestSignificant(t *testing.T) {
	for x, want := range map[float64]string{0.451: "0.45", 4.51: "4.5", 19.94: "19.9", 20.4: "20", 451: "451"} {
		if got := significant(x); got != want {
			t.Errorf("significant(%v) = %q, want %q", x, got, want)
		}
	}
	for n, want := range map[uint64]string{1e5: "1e5", 25e5: "2.5e6", 1e10: "1e10"} {
		if got := sizeName(n); got != want {
			t.Errorf("sizeName(%d) = %q, want %q", n, got, want)
		}
	}
}

// The charts in docs/ are up to date with docs/speed.tsv and with the code that
// draws them. If not, `make charts` draws them again.
func TestCharts(t *testing.T) {
	const docs = "../docs"
	figures, err := os.ReadFile(filepath.Join(docs, speedFile))
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseSpeeds(string(figures))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.String(); got != string(figures) {
		t.Errorf("read and written again, %s is\n%s\nwant\n%s", speedFile, got, figures)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, speedFile), figures, 0o644); err != nil {
		t.Fatal(err)
	}
	drawCharts(dir)
	for _, name := range []string{"speed.svg", "bits.svg"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("docs/%s is stale: make charts draws it", name)
		}
	}
}

// A measurement yields a point for every curve, size and operation.
func TestMeasureSpeeds(t *testing.T) {
	dir := t.TempDir()
	if err := measureSpeeds(dir, options{rate: 0.01, rounds: 1, sizes: []uint64{1000, 20_000}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, speedFile))
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseSpeeds(string(text))
	if err != nil {
		t.Fatal(err)
	}
	figure := speedChart(s)
	if len(figure.Panels) != 3 {
		t.Fatalf("%d panels, want 3", len(figure.Panels))
	}
	for _, panel := range figure.Panels {
		for _, line := range panel.Lines {
			if len(line.Points) != 2 || line.Points[0].Y <= 0 || line.Points[1].Y <= 0 {
				t.Errorf("%s, %s: points %v, want two", panel.Title, line.End, line.Points)
			}
		}
	}
}

func TestParseSpeedsRefuses(t *testing.T) {
	const head = "# p: 0.01\n" + speedColumns + "\n"
	for _, text := range []string{
		"",
		head,
		"# p: 2\n1e4\tblobloom\t1\t2\t3\n",
		"1e4\tblobloom\t1\t2\t3\n",
		head + "1e4\tblobloom\t1\t2\n",
		head + "1e4\tblobloom\t1\t2\tx\n",
		head + "many\tblobloom\t1\t2\t3\n",
	} {
		if s, err := parseSpeeds(text); err == nil {
			t.Errorf("parseSpeeds(%q) = %v, want an error", text, s)
		}
	}
}
