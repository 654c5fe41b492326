package bloom_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
)

// arrival is a pattern in which keys come to a Window.
type arrival struct {
	name string

	// in returns which keys come in a generation, of those planned for n keys in g
	// generations: from the first to before the last.
	in func(generation, g, n uint64) (first, last uint64)
}

// arrivals bring n keys in each span. The last two bring more.
var arrivals = []arrival{
	{"even", func(i, g, n uint64) (first, last uint64) { return i * n / g, (i + 1) * n / g }},
	{"ramp", func(i, g, n uint64) (first, last uint64) { // 1, 2, .. g parts of n, and again
		span, at, parts := i/g*n, i%g, g*(g+1)/2
		return span + at*(at+1)/2*n/parts, span + (at+1)*(at+2)/2*n/parts
	}},
	{"one burst each span", func(i, g, n uint64) (first, last uint64) {
		if i%g != 0 {
			return 0, 0
		}
		return i / g * n, (i/g + 1) * n
	}},
	{"the same keys in every generation", func(i, g, n uint64) (first, last uint64) { return 0, n }},
	{"n at the end of one generation, n at the beginning of the next", func(i, g, n uint64) (first, last uint64) {
		if i < 2*g-1 {
			return 0, 0
		}
		return (i - 2*g + 1) * n, (i - 2*g + 2) * n
	}},
	{"one burst of ten times as many", func(i, g, n uint64) (first, last uint64) {
		if i != 2*g {
			return 0, 0
		}
		return 0, 10 * n
	}},
}

// measured is what came out of one pattern.
type measured struct {
	name     string
	rate     float64 // asked
	keys     int     // that were new when they came
	isNew    int     // those of them that were answered so
	layers   int
	bits     float64 // per key of the capacity, at the end
	fromBits float64 // the rate
	probes   int
	found    int
}

// check holds the answers against the rate that was asked. Each key that is new is
// taken for an old one with at most that probability, as is each stranger.
func (m *measured) check(t *testing.T) {
	t.Helper()
	within := func(what string, found, of int) {
		t.Helper()
		most := m.rate * float64(of)
		if z := (float64(found) - most) / math.Sqrt(most); z > maxSigmas {
			t.Errorf("%s, p %g: %d of %d %s: %.4g, %+.1f sigma above p", m.name, m.rate, found, of, what, float64(found)/float64(of), z)
		}
	}
	within("strangers found", m.found, m.probes)
	within("new keys taken for old ones", m.keys-m.isNew, m.keys)
	if m.fromBits > m.rate {
		t.Errorf("%s, p %g: the rate from the bits is %g", m.name, m.rate, m.fromBits)
	}
}

// probe looks strangers up.
func (m *measured) probe(f interface {
	ContainsMany(keys [][]byte, found []bool) int
}, probes int) {
	random := rand.New(rand.NewPCG(rateSeed, uint64(probes)))
	keys, text := make([][]byte, 1000), make([]byte, 0, 32_000)
	for m.probes < probes {
		text = text[:0]
		for i := range keys {
			at := len(text)
			text = strconv.AppendUint(append(text, "stranger "...), random.Uint64(), 36)
			keys[i] = text[at:]
		}
		m.found += f.ContainsMany(keys, nil)
		m.probes += len(keys)
	}
}

// probes is how many strangers a rate takes.
func probes(rate float64) int {
	if *ratesFlag == "full" {
		return int(min(max(200/rate, 1e6), 2e7))
	}
	return int(min(max(40/rate, 1e5), 2e6))
}

// arriving lets keys come for two spans and a generation, in batches and one by one.
func arriving(t *testing.T, a arrival, rate float64, g, n uint64) *measured {
	t.Helper()
	w, clock := mustWindow(t, bloom.WindowConfig{Keys: n, Rate: rate, Span: time.Hour, Generations: int(g), Seed: mix(n)})
	defer w.Close()
	m := &measured{name: fmt.Sprintf("Window of %d generations, %s", g, a.name), rate: rate}
	seen, isNew := map[uint64]bool{}, make([]bool, 1000)
	hashes := make([]uint64, 0, 1000)
	for i := range 2*g + 1 {
		first, last := a.in(i, g, n)
		if a.name == "one burst each span" && first > 0 {
			clear(seen) // for the burst before is a span old, and may be forgotten
		}
		for first < last {
			hashes = hashes[:0]
			for ; first < last && len(hashes) < 1000; first++ {
				hashes = append(hashes, w.Hash(strconv.AppendUint(nil, first, 10)))
				if !seen[first] {
					seen[first] = true
					m.keys++
				}
			}
			if first%3 == 0 {
				for _, h := range hashes {
					m.isNew += toInt(w.AddHash(h))
				}
			} else {
				m.isNew += w.AddHashes(hashes, isNew[:len(hashes)])
			}
			if lost := len(hashes) - w.ContainsHashes(hashes, nil); lost > 0 {
				t.Fatalf("%s, p %g: %d keys are lost", m.name, rate, lost)
			}
		}
		if i < 2*g {
			clock.advance(time.Hour / time.Duration(g))
		}
	}
	if plan := w.Plan(); plan.Rate > rate || w.Err() != nil {
		t.Errorf("%s: the layers' rates add up to %g, p is %g: %v", m.name, plan.Rate, rate, w.Err())
	}
	m.layers = len(bloom.Inside.Sizes(w))
	r := w.Report()
	m.bits, m.fromBits = float64(r.Plan.Bits)/float64(n), r.Rate
	m.probe(w, probes(rate))
	return m
}

func toInt(is bool) int {
	if is {
		return 1
	}
	return 0
}

// growingInBatches fills a filter that grows, of ours or RedisBloom's, from first to
// many times first keys.
func growingInBatches(t *testing.T, name string, f interface {
	AddMany(keys [][]byte, isNew []bool) int
	ContainsMany(keys [][]byte, found []bool) int
}, rate float64, n int) *measured {
	t.Helper()
	m := &measured{name: name, rate: rate, keys: n}
	keys, text := make([][]byte, 0, 700), []byte(nil)
	for i := 0; i < n; {
		keys, text = keys[:0], text[:0]
		for ; i < n && len(keys) < 700; i++ {
			at := len(text)
			text = strconv.AppendUint(slices.Grow(text, 20), uint64(i), 10)
			keys = append(keys, text[at:len(text):len(text)])
		}
		m.isNew += f.AddMany(keys, nil)
		if lost := len(keys) - f.ContainsMany(keys, nil); lost > 0 {
			t.Fatalf("%s: %d keys are lost", name, lost)
		}
	}
	return m
}

// TestArrivalRates: filters of several layers keep their rate in whatever pattern the
// keys come, up to the planned number and beyond.
func TestArrivalRates(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine, and many keys")
	}
	full := *ratesFlag == "full"
	path, heading := filepath.Join("docs", "maths.md"), "## Forgetting"
	rates, generations, n := []float64{1e-1, 1e-2, 1e-4}, []uint64{4}, uint64(20_000)
	if full {
		withTable(t, path, heading, nil) // fails now rather than later
		rates, generations, n = []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-6}, []uint64{1, 4, 11, 12, 30}, 100_000
	}
	var rows []*measured
	for _, rate := range rates {
		for _, g := range generations {
			for _, a := range arrivals {
				m := arriving(t, a, rate, g, n)
				m.check(t)
				if g == 4 {
					rows = append(rows, m)
				}
			}
		}
		for _, growth := range []int{2, 4} {
			f := mustScale(t, bloom.ScalableConfig{First: n / 100, Rate: rate, Growth: growth, Seed: mix(n)})
			m := growingInBatches(t, fmt.Sprintf("Scalable, growth %d, to a hundred times its first keys", growth), f, rate, int(n))
			r := f.Report()
			m.layers, m.bits, m.fromBits = len(f.Layers()), float64(r.Plan.Bits)/float64(n), r.Rate
			m.probe(f, probes(rate))
			m.check(t)
			rows = append(rows, m)
		}
		if rate < 1e-2 {
			continue // RedisBloom's own double hashing misses low rates; see redisbloom.Filter
		}
		f, err := redisbloom.New(redisbloom.Config{Keys: n / 100, Rate: rate, Growth: 2})
		if err != nil {
			t.Fatal(err)
		}
		m := growingInBatches(t, "RedisBloom's chain, growth 2, to a hundred times its first keys", f, rate, int(n))
		r := f.Report()
		m.layers, m.bits, m.fromBits = len(f.Layers()), float64(r.Plan.Bits)/float64(n), r.Rate
		m.probe(f, probes(rate))
		m.check(t)
		rows = append(rows, m)
	}
	if full && !t.Failed() {
		if err := os.WriteFile(path, []byte(withTable(t, path, heading, arrivalTable(rows))), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// arrivalTable is the table for docs/maths.md.
func arrivalTable(rows []*measured) (lines []string) {
	lines = append(lines,
		"| filter, and how keys come | p | layers | bits per key | rate from the bits | strangers | found | rate measured | new keys | answered new |",
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, m := range rows {
		lines = append(lines, fmt.Sprintf("| %s | %s | %d | %.1f | %.3g | %s | %s | %.3g | %s | %s |",
			m.name, strconv.FormatFloat(m.rate, 'f', -1, 64), m.layers, m.bits, m.fromBits,
			grouped(m.probes), grouped(m.found), float64(m.found)/float64(m.probes), grouped(m.keys), grouped(m.isNew)))
	}
	return lines
}
