package browser

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/human"
)

// A planned is a request, with what the library makes of it. Floats are their bits, so
// that they are compared to the last one.
type planned struct {
	Layout             string
	Keys, Bits, Probes uint64
	Rate               string // as bits
	OK                 bool
	Plan               [4]uint64 // keys, bits, probes, blocks
	Got, Half, Double  string    // rates as bits: planned, at half and at twice the keys
}

func bitsOf(x float64) string { return strconv.FormatUint(math.Float64bits(x), 16) }

var planners = map[string]func(bloom.Config) (bloom.Plan, error){
	"paired":   bloom.Config.Plan,
	"split":    bloom.Config.PlanSplitBlock,
	"counting": bloom.Config.PlanCounting,
	"classic": func(c bloom.Config) (bloom.Plan, error) {
		return classic.Config{Keys: c.Keys, Rate: c.Rate, Bits: c.Bits, Probes: c.Probes}.Plan()
	},
}

// grid is n x p, n x m and p x m, with and without k, for every layout.
func grid() (all []planned) {
	keys := []uint64{0, 1, 2, 3, 7, 10, 33, 100, 1000, 4097, 65_537, 123_456, 1_000_000, 30_000_000, 1e9, 1e10, 3e11, 1 << 44, 1<<44 + 1}
	rates := []float64{0, 0.7, 0.5, 0.1, 0.03, 0.01, 1. / 1009, 0.001, 1e-4, 3e-6, 1e-8, 1e-9, 1e-12, 1e-15}
	sizes := []uint64{0, 1, 100, 4096, 10_000, 65_535, 65_536, 1 << 20, 12_345_678, 1 << 30, 8 * 2 << 30, 1 << 40, 1 << 45, 1 << 46}
	for layout, plan := range planners {
		for i, n := range keys {
			for j, p := range rates {
				for l, m := range sizes {
					given := 0
					for _, is := range []bool{n != 0, p != 0, m != 0} {
						if is {
							given++
						}
					}
					if given == 0 || given == 3 && (i+j+l)%7 != 0 {
						continue
					}
					k := []int{0, 0, 0, 1, 4, 0, 8, 13}[(i+3*j+5*l)%8]
					if layout == "classic" && p != 0 && p < 1e-9 && m != 0 && n == 0 && m < 65_536 {
						continue // takes the library itself seconds
					}
					one := planned{Layout: layout, Keys: n, Bits: m, Probes: uint64(k), Rate: bitsOf(p)}
					made, err := plan(bloom.Config{Keys: n, Rate: p, Bits: m, Probes: k})
					if given == 1 && layout == "classic" && n != 0 {
						continue // ten bits a key, which plan does not ask for
					}
					if err == nil {
						one.OK = true
						one.Plan = [4]uint64{made.Keys, made.Bits, uint64(made.Probes), made.Blocks}
						one.Got, one.Half, one.Double = bitsOf(made.Rate), bitsOf(made.RateAt(made.Keys/2)), bitsOf(made.RateAt(2*made.Keys))
					}
					all = append(all, one)
				}
			}
		}
	}
	return all
}

// TestPlansEqual: the page's plans and rates are the library's, to the last bit.
func TestPlansEqual(t *testing.T) {
	t.Parallel()
	all := grid()
	b := newTab(t)
	b.open(servePages(t, map[string]http.Handler{"/grid": asJSON(all)}) + "/blank")
	var got struct {
		Plans, Refused int
		Wrong          []string
	}
	b.run(`
		const { plan, rateAt, Refused } = await import("/web/pages/sizing.js");
		const view = new DataView(new ArrayBuffer(8));
		const float = (bits) => (view.setBigUint64(0, BigInt("0x" + bits)), view.getFloat64(0));
		const bits = (x) => (view.setFloat64(0, x), view.getBigUint64(0).toString(16));
		const result = { Plans: 0, Refused: 0, Wrong: [] };
		for (const one of await (await fetch("/grid")).json()) {
			const want = { ...one };
			const got = { ...one, OK: false, Plan: [0, 0, 0, 0], Got: "", Half: "", Double: "" };
			try {
				const p = plan(one.Layout, { keys: one.Keys, rate: float(one.Rate), bits: one.Bits, probes: one.Probes });
				const blocks = one.Layout === "classic" ? p.bits : p.blocks;
				const at = (n) => bits(rateAt(one.Layout, p, n));
				Object.assign(got, { OK: true, Plan: [p.keys, p.bits, p.probes, blocks], Got: bits(p.rate), Half: at(Math.floor(p.keys / 2)), Double: at(2 * p.keys) });
			} catch (error) {
				if (!(error instanceof Refused)) throw error;
			}
			result[got.OK ? "Plans" : "Refused"]++;
			if (JSON.stringify(got) !== JSON.stringify(want)) result.Wrong.push(JSON.stringify(want) + " page: " + JSON.stringify(got));
		}
		return result`, &got)
	t.Logf("%d plans and %d refusals compared", got.Plans, got.Refused)
	if got.Plans < 2000 || got.Refused < 500 {
		t.Errorf("only %d plans and %d refusals were compared", got.Plans, got.Refused)
	}
	for i, wrong := range got.Wrong {
		if i == 10 {
			t.Fatalf("and %d more", len(got.Wrong)-i)
		}
		t.Error(wrong)
	}
}

// requests are what the page and `bloomery plan` are asked, as people write it.
var requests = []map[string]string{
	{"n": "1e7", "p": "0.1%"},
	{"n": "10e9", "p": "0.01"},
	{"n": "1", "p": "0.5"},
	{"n": "30087", "p": "1/1000"},
	{"n": "1_000_000", "p": "1 in 1000000"},
	{"n": "123,456", "p": "3e-6"},
	{"n": "50M", "p": "1e-9"},
	{"n": "1e9", "m": "2GiB"},
	{"n": "1e6", "m": "2^23"},
	{"n": "1000", "m": "64KiB"},
	{"n": "5", "m": "1e6"},
	{"n": "2G", "m": "1e9"},
	{"p": "1e-4", "m": "2GiB"},
	{"p": "1 in 1000", "m": "64 MiB"},
	{"p": "30%", "m": "1000"},
	{"n": "1e6", "p": "1%", "k": "4"},
	{"n": "1e9", "m": "2GiB", "k": "8"},
	{"m": "1e6", "k": "7"},
	{"n": "5T", "p": "10%"},
	{"n": "16T", "p": "1e-3"},
	{"n": "777", "p": "1e-11"},
}

// ofPage is how the page describes and commands a request.
const ofPage = `
	const human = await import("/web/pages/human.js");
	const { describe, layouts, plan, Refused } = await import("/web/pages/sizing.js");
	const { commands } = await import("/web/pages/commands.js");
	const ask = ({ n, p, m, k }) => ({ keys: n ? human.parseCount(n) : 0, rate: p ? human.parseRate(p) : 0, bits: m ? human.parseBits(m) : 0, probes: k ? human.parseProbes(k) : 0 });
`

// TestPlanCommand: what the page computes and tells to paste is what `bloomery plan`
// prints, for every layout.
func TestPlanCommand(t *testing.T) {
	t.Parallel()
	program := bloomery(t)
	b := newTab(t)
	b.open(servePages(t, nil) + "/blank")
	for _, request := range requests {
		for layout := range planners {
			args := []string{"plan", "--json", "--layout", layout}
			for letter, text := range request {
				args = append(args, "-"+letter, text)
			}
			asked, _ := json.Marshal(request)
			var got struct {
				Facts    map[string]any
				Commands map[string]string
			}
			b.run(ofPage+`
				const want = ask(`+string(asked)+`);
				try {
					const p = plan(`+quoted(layout)+`, want);
					return { Facts: describe(`+quoted(layout)+`, p), Commands: commands(`+quoted(layout)+`, want, p) };
				} catch (error) {
					if (!(error instanceof Refused)) throw error;
					return { Facts: null };
				}`, &got)
			text, refused := said(program, args...)
			if refused != (got.Facts == nil) {
				t.Errorf("%q: the program refuses: %v, the page: %v", args, refused, got.Facts == nil)
				continue
			}
			if refused {
				continue
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			for key, value := range got.Facts {
				if want[key] != value {
					t.Errorf("%q: %s is %v, the page has %v", args, key, want[key], value)
				}
			}
			lines := want["commands"].(map[string]any)
			for _, key := range []string{"build", "dedupe", "redis", "go"} {
				if line, _ := lines[key].(string); line != got.Commands[key] {
					t.Errorf("%q: %s is %q, the page has %q", args, key, line, got.Commands[key])
				}
			}
		}
	}
}

// row matches a line of what `bloomery plan` prints first.
var row = regexp.MustCompile(`^(\S+(?: \S+)*)  +(.+)$`)

// TestPlanPage: the page shows what `bloomery plan` prints, row for row.
func TestPlanPage(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"keys": "keys", "rate": "rate", "bits": "bits", "bits set per key": "probes", "memory": "memory", "bits per key": "bits_per_key",
		"over the optimum": "overhead", "at twice the keys": "double", "cache lines read": "lines", "file": "file",
	}
	program := bloomery(t)
	b := newTab(t)
	b.look(1280, "light")
	address := servePages(t, nil)
	for i, request := range requests {
		if request["n"] == "16T" {
			continue // every layout refuses it
		}
		layout := []string{"paired", "classic", "counting", "split"}[i%4]
		if request["k"] == "7" || request["k"] == "4" {
			layout = "classic"
		}
		if layout == "split" && (request["n"] == "50M" || request["n"] == "777") {
			layout = "paired"
		}
		values := url.Values{"layout": {layout}, "lang": {"en"}}
		args := []string{"plan", "--layout", layout}
		for letter, text := range request {
			values.Set(letter, text)
			args = append(args, "-"+letter, text)
		}
		b.open(address + "/blank")
		b.open(address + "/plan#" + strings.ReplaceAll(values.Encode(), "+", "%20"))
		b.ready()
		got := b.facts("#plan")
		text, refused := said(program, args...)
		if refused {
			t.Fatalf("%q is refused", args)
		}
		lines, _, _ := strings.Cut(text, "\n\n")
		rows := 0
		for line := range strings.Lines(lines) {
			parts := row.FindStringSubmatch(strings.TrimRight(line, "\n"))
			if parts == nil {
				t.Fatalf("%q prints %q", args, line)
			}
			want := parts[2]
			if strings.HasPrefix(want, "no filter at all") {
				want = "no filter at all: it says yes to everything"
			}
			if got[names[parts[1]]] != want {
				t.Errorf("%q: %s is %q, the page shows %q", args, parts[1], want, got[names[parts[1]]])
			}
			rows++
		}
		if rows != len(names) || len(got) != len(names) {
			t.Errorf("%q: %d rows printed, %d shown, want %d", args, rows, len(got), len(names))
		}
	}
}

// TestLetters: two letters are held, and the third follows; the address keeps them.
func TestLetters(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.look(1280, "light")
	b.open(servePages(t, nil) + "/plan#lang=en")
	b.ready()
	check := func(what, selector, want string) {
		t.Helper()
		if got := b.value(selector); got != want {
			t.Errorf("%s: %s holds %q, want %q", what, selector, got, want)
		}
	}
	plan := func(c bloom.Config) bloom.Plan {
		p, err := c.Plan()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	b.write("#n", "10 billion")
	b.write("#p", "1 in 100")
	p := plan(bloom.Config{Keys: 1e10, Rate: 0.01})
	check("n and p", "#m", human.Commas(p.Bits))
	check("n and p", "#k", strconv.Itoa(p.Probes))

	b.write("#m", "12 GiB") // the older of the two, n, is let go
	p = plan(bloom.Config{Rate: 0.01, Bits: 12 << 33})
	check("p and m", "#n", human.Commas(p.Keys))
	b.write("#n", "1e10")
	p = plan(bloom.Config{Keys: 1e10, Bits: 12 << 33})
	check("n and m", "#p", human.OneIn(p.Rate))
	b.write("#k", "4")
	p = plan(bloom.Config{Keys: 1e10, Bits: 12 << 33, Probes: 4})
	check("n, m and k", "#p", human.OneIn(p.Rate))
	var hash string
	b.run(`return decodeURIComponent(location.hash)`, &hash)
	if hash != "#n=1e10&m=12+GiB&k=4&lang=en" {
		t.Errorf("the address has %q", hash)
	}
	b.write("#k", "")
	b.write("#n", "1 hectare")
	if got := b.text("#verdict"); !strings.Contains(got, "whole number") {
		t.Errorf("a wrong number: %q", got)
	}
	b.write("#n", "100亿")
	p = plan(bloom.Config{Keys: 1e10, Bits: 12 << 33})
	check("in Chinese", "#p", human.OneIn(p.Rate))
	b.click("[data-letter=m]")
	if got := b.text("#verdict"); !strings.Contains(got, "Hold two") {
		t.Errorf("one letter held: %q", got)
	}
}

// TestCards: a layout is chosen by its card, by mouse and by keyboard.
func TestCards(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.look(1280, "light")
	b.open(servePages(t, nil) + "/plan#n=1e6&p=1%25&lang=en")
	b.ready()
	for layout, plan := range planners {
		b.click(`[data-layout=` + layout + `] input`)
		p, err := plan(bloom.Config{Keys: 1e6, Rate: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		facts := b.facts("#plan")
		if want := human.Commas(p.Bits) + " (m)"; facts["bits"] != want {
			t.Errorf("%s: bits %q, want %q", layout, facts["bits"], want)
		}
		if card := b.facts(`[data-layout=` + layout + `]`); card["rate"] != human.OneIn(p.Rate) {
			t.Errorf("%s: its card has %q, want %q", layout, card["rate"], human.OneIn(p.Rate))
		}
	}
	b.click(`[data-layout=paired] input`)
	var at string
	b.run(`document.querySelector("[data-layout=paired] input").focus(); return ""`, &at)
	b.press("ArrowRight")
	b.run(`return new URLSearchParams(location.hash.slice(1)).get("layout")`, &at)
	if at != "split" {
		t.Errorf("after an arrow key the layout is %q", at)
	}
}

// TestPlanCharts: the charts have readings for the arrow keys, and tables.
func TestPlanCharts(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.look(1280, "light")
	b.open(servePages(t, nil) + "/plan#n=1e7&p=0.1%25&lang=en")
	b.ready()
	b.until(`document.querySelectorAll(".chart svg[role=application]").length === 3`)
	for _, chart := range []string{"a", "b", "c"} {
		var focused bool
		b.run(`document.querySelector("#chart-`+chart+` svg").focus(); return true`, &focused)
		b.press("ArrowRight")
		if got := b.text("#chart-" + chart + " .reading"); !strings.Contains(got, " \u00b7 ") {
			t.Errorf("chart %s reads %q", chart, got)
		}
	}
	p, err := bloom.Config{Keys: 1e7, Rate: 0.001}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	var twice string
	b.run(`return [...document.querySelectorAll("#chart-b tbody tr")].find((r) => r.cells[0].textContent === "2\u00d7").cells[1].textContent`, &twice)
	if want := human.OneIn(p.RateAt(2e7)); twice != want {
		t.Errorf("at twice the keys the table has %q, want %q", twice, want)
	}
	var million string
	b.run(`return [...document.querySelectorAll("#chart-c tbody tr")].find((r) => r.cells[0].textContent === "1,000,000").cells[1].textContent`, &million)
	p, err = bloom.Config{Keys: 1e6, Rate: 0.001}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if want := human.BinarySize(p.Bytes()); million != want {
		t.Errorf("for a million keys the table has %q, want %q", million, want)
	}
}
