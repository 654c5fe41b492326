package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/machine"
)

// made makes the filter of each layout, with what the library knows of it.
var made = map[string]func(bloom.Config) (io.WriterTo, error){
	"paired":   func(c bloom.Config) (io.WriterTo, error) { return c.New() },
	"split":    func(c bloom.Config) (io.WriterTo, error) { return c.NewSplitBlock() },
	"classic":  func(c bloom.Config) (io.WriterTo, error) { return classicConfig(c).New() },
	"counting": func(c bloom.Config) (io.WriterTo, error) { return c.NewCounting() },
}

// The size of the file that plan tells is that of the file that comes out.
func TestFileBytes(t *testing.T) {
	for _, l := range layouts {
		for _, keys := range []uint64{1, 1000, 123_457, 2_000_000} {
			c := bloom.Config{Keys: keys, Rate: 0.01}
			plan, err := l.plan(c)
			if err != nil {
				t.Fatal(err)
			}
			f, err := made[l.name](c)
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if _, err := f.WriteTo(&file); err != nil {
				t.Fatal(err)
			}
			if got := l.fileBytes(plan); got != uint64(file.Len()) {
				t.Errorf("%s of %d keys: fileBytes = %d, want %d", l.name, keys, got, file.Len())
			}
		}
	}
}

// classicLines against a filter whose bits can be seen.
func TestClassicLines(t *testing.T) {
	for _, keys := range []uint64{20, 300, 20_000} { // one cache line, some that are shared, many
		c := bloom.Config{Keys: keys, Rate: 0.01}
		f, err := classicConfig(c).New()
		if err != nil {
			t.Fatal(err)
		}
		key := func(kind string, i uint64) []byte { return fmt.Appendf(nil, "%s %d", kind, i) }
		for i := range keys {
			f.Add(key("member", i))
		}
		bits := f.BitString()
		const trials = 20_000
		found, absent := 0., 0.
		for i := range uint64(trials) {
			found += float64(touched(f.Positions(key("member", i%keys))))
			at := f.Positions(key("stranger", i))
			for j, position := range at {
				if bits[position] == '0' {
					at = at[:j+1]
					break
				}
			}
			absent += float64(touched(at))
		}
		found, absent = found/trials, absent/trials
		wantFound, wantAbsent := classicLines(f.Plan())
		// The mean of 20,000 trials is off by a hundredth at most; and the members
		// of a small filter, and the line at its end, are not quite like the rest.
		if math.Abs(found-wantFound) > 0.02*found || math.Abs(absent-wantAbsent) > 0.02*absent {
			t.Errorf("%d keys: %.3f lines found, %.3f absent; classicLines = %.3f, %.3f", keys, found, absent, wantFound, wantAbsent)
		}
	}
}

// touched is the number of cache lines that hold the positions.
func touched(positions []uint64) int {
	lines := map[uint64]bool{}
	for _, p := range positions {
		lines[p/512] = true
	}
	return len(lines)
}

// countingLines against the pairs of lanes that all choices of K in 8 touch.
func TestCountingLines(t *testing.T) {
	for k := 1; k <= 8; k++ {
		choices, lines := 0., 0.
		for lanes := range 256 {
			count, pairs := 0, map[int]bool{}
			for lane := range 8 {
				if lanes>>lane&1 != 0 {
					count++
					pairs[lane/2] = true
				}
			}
			if count == k {
				choices++
				lines += float64(len(pairs))
			}
		}
		found, _ := countingLines(bloom.Plan{Probes: 2 * k, Rate: 0.01})
		if want := 2 * lines / choices; math.Abs(found-want) > 1e-12 {
			t.Errorf("k = %d: found = %v, want %v", 2*k, found, want)
		}
	}
}

// The Go that plan prints compiles, for every layout and every choice of
// letters, and is the plan.
func TestGoLine(t *testing.T) {
	letters := []planCommand{
		{keys: 10_000, rate: 0.01},
		{keys: 10_000, bits: 200_000},
		{rate: 1e-7, bits: 200_000},
		{keys: 10_000, rate: 0.01, bits: 200_000},
		{keys: 10_000, rate: 0.01, probes: 8},
	}
	var source, want strings.Builder
	source.WriteString("package main\n\nimport (\n\"fmt\"\n\n\"github.com/bloomery/bloom\"\n\"github.com/bloomery/bloom/classic\"\n)\n\nfunc main() {\n")
	add := func(l layout, p planCommand, plan bloom.Plan) {
		fmt.Fprintf(&source, "{\n%s\nif err != nil {\npanic(err)\n}\nfmt.Println(f.Plan())\n}\n", p.goLine(l))
		fmt.Fprintln(&want, plan)
	}
	for _, l := range layouts {
		for _, p := range letters {
			plan, err := l.plan(p.config(0))
			if err != nil {
				t.Fatal(err)
			}
			add(l, p, plan)
		}
	}
	textbook, _ := layoutNamed("classic")
	bitsAndProbes := planCommand{bits: 200_000, probes: 5}
	plan, err := textbook.plan(bitsAndProbes.config(0))
	if err != nil {
		t.Fatal(err)
	}
	add(textbook, bitsAndProbes, plan)
	source.WriteString("}\n")
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(source.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command("go", "run", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, got, source.String())
	}
	if string(got) != want.String() {
		t.Errorf("the lines make\n%swant\n%s", got, want.String())
	}
}

// The rate to paste gives a filter that keeps it and is no larger than planned.
func TestPasteRate(t *testing.T) {
	for _, l := range layouts {
		for _, bits := range []human.BitsFlag{50_000, 123_456, 1_000_000} {
			p := planCommand{keys: 10_000, bits: bits}
			plan, err := l.plan(p.config(0))
			if err != nil {
				t.Fatal(err)
			}
			text, err := p.pasteRate(l, plan)
			if err != nil {
				if plan.Rate > 1e-8 {
					t.Errorf("%s of %d bits: %v", l.name, bits, err)
				}
				continue // below what a layout keeps by plan
			}
			rate, err := human.ParseRate(text)
			if err != nil {
				t.Fatal(err)
			}
			again, err := l.plan(bloom.Config{Keys: plan.Keys, Rate: rate})
			if err != nil {
				t.Fatal(err)
			}
			if again.Bits > plan.Bits || rate < plan.Rate || rate > plan.Rate*1.002 {
				t.Errorf("%s: -p %s gives %v, planned %v", l.name, text, again, plan)
			}
		}
	}
}

func TestFit(t *testing.T) {
	const gib = 1 << 30
	for _, tt := range []struct {
		name    string
		budget  uint64
		machine machineJSON
		bytes   uint64
		word    string
		verdict string
	}{
		{"fits", 0, machineJSON{4 * gib, 3 * gib}, gib, "fits", "3.0 GiB of it free:\nthe filter fits, and takes 25.0% of it."},
		{"small", 0, machineJSON{4 * gib, 3 * gib}, 1000, "fits", "takes almost none of it."},
		{"tight", 0, machineJSON{4 * gib, gib}, 2 * gib, "tight", "2.0 GiB are tight; other programs must free memory first."},
		{"too large", 0, machineJSON{4 * gib, gib}, 5 * gib, "too large", "does not fit. It needs more memory than 5.0 GiB"},
		{"free memory unknown", 0, machineJSON{4 * gib, 0}, 2 * gib, "fits", "4.0 GiB of memory:\nthe filter fits"},
		{"nothing known", 0, machineJSON{}, gib, "", "It is unknown how much memory"},
		{"budget", gib, machineJSON{4 * gib, 3 * gib}, gib, "fits", "fits"},
		{"over budget", gib, machineJSON{4 * gib, 3 * gib}, gib + 1, "over budget", "fits"},
	} {
		v := planJSON{Budget: tt.budget, Machine: tt.machine, layoutJSON: layoutJSON{sizeJSON: &sizeJSON{Bytes: tt.bytes}}}
		if got := v.fit(tt.bytes); got != tt.word {
			t.Errorf("%s: fit = %q, want %q", tt.name, got, tt.word)
		}
		if got := v.verdict(); !strings.Contains(got, tt.verdict) {
			t.Errorf("%s: verdict = %q, want it to have %q", tt.name, got, tt.verdict)
		}
	}
}

func TestAvailableMemory(t *testing.T) {
	memory, available := machine.Memory(), machine.Available()
	if available > memory {
		t.Errorf("%d bytes available of %d", available, memory)
	}
	if _, err := os.Stat("/proc/meminfo"); err == nil && available == 0 {
		t.Error("there is /proc/meminfo, and availableMemory = 0")
	}
}
