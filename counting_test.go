package bloom_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
	"pgregory.net/rapid"
)

func mustCount(t rapid.TB, c bloom.Config) *bloom.Counting {
	t.Helper()
	f, err := c.NewCounting()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// mustBits is f.Filter().
func mustBits(t rapid.TB, f *bloom.Counting) *bloom.Filter {
	t.Helper()
	g, err := f.Filter()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCountingVerbs(t *testing.T) {
	f := mustCount(t, bloom.Config{Keys: 1000, Rate: 0.001, Secret: []byte("0123456789abcdef")})
	defer f.Close()
	if f.RemoveString("a") || f.CountString("a") != 0 || f.ContainsString("a") {
		t.Error("an empty filter has a key")
	}
	isNew, found := make([]bool, 3), make([]bool, 3)
	if n := f.AddStrings([]string{"a", "b", "a"}, isNew); n != 2 || !slices.Equal(isNew, []bool{true, true, false}) {
		t.Errorf("AddStrings says %d, %v", n, isNew)
	}
	if n := f.AddMany([][]byte{[]byte("c"), []byte("a")}, nil); n != 1 {
		t.Errorf("AddMany says %d, want 1", n)
	}
	if n := f.AddHashes([]uint64{f.HashString("d"), f.Hash([]byte("d"))}, nil); n != 1 {
		t.Errorf("AddHashes says %d, want 1", n)
	}
	if !f.AddUint64(258) || !f.Contains([]byte{2, 1, 0, 0, 0, 0, 0, 0}) || f.CountUint64(258) != 1 {
		t.Error("AddUint64(258) is not Add of its little-endian bytes")
	}
	for key, want := range map[string]int{"a": 3, "b": 1, "c": 1, "d": 2, "e": 0} {
		if got := f.Count([]byte(key)); got != want || f.CountHash(f.HashString(key)) != want {
			t.Errorf("Count(%q) = %d, want %d", key, got, want)
		}
	}
	if n := f.ContainsStrings([]string{"a", "d", "e"}, found); n != 2 || !slices.Equal(found, []bool{true, true, false}) {
		t.Errorf("ContainsStrings says %d, %v", n, found)
	}
	if f.ContainsMany([][]byte{[]byte("b"), []byte("x")}, nil) != 1 || f.ContainsHashes([]uint64{f.HashString("b")}, nil) != 1 {
		t.Error("a batch has lost b, or found x")
	}
	if r := f.Report(); r.Added != 5 || math.Abs(r.Keys-5) > 0.1 || f.Saturated() != 0 || f.Len() != 8 {
		t.Errorf("it has %d keys and reports %+v", f.Len(), r)
	}
	if !f.Remove([]byte("b")) || !f.RemoveUint64(258) || !f.RemoveHash(f.HashString("c")) ||
		!f.RemoveString("a") || !f.RemoveString("a") || !f.ContainsString("a") || !f.RemoveString("a") {
		t.Error("a key that was added cannot be removed as often")
	}
	for _, key := range []string{"a", "b", "c"} {
		if f.ContainsString(key) || f.RemoveString(key) {
			t.Errorf("%q has been removed as often as it was added, and is still there", key)
		}
	}
	if r := f.Report(); !f.ContainsString("d") || math.Abs(r.Keys-1) > 0.1 || f.Len() != 2 {
		t.Errorf("one key is left, twice, and it has %d and reports %+v", f.Len(), r)
	}
	if !strings.Contains(f.String(), fmt.Sprint(f.Bytes())) || f.HashIdentity().Algorithm != bloom.SipHash {
		t.Errorf("it calls itself %q", f)
	}
}

// TestCounterOverflow is the first of article 4's two troubles with counters in
// place of bits: they wrap around. With 4 bits that wrap, a key added 16 times
// is gone, together with the keys that share its counters.
func TestCounterOverflow(t *testing.T) {
	for _, times := range []int{bloom.MaxCount - 1, bloom.MaxCount, bloom.MaxCount + 1, 2*bloom.MaxCount + 2, 1000} {
		f := mustCount(t, bloom.Config{Keys: 300, Bits: 4096})
		for i := range uint64(300) { // they share their counters with the key
			f.AddUint64(i)
		}
		for range times {
			f.AddString("again and again")
		}
		if !f.ContainsString("again and again") || f.CountString("again and again") < min(times, bloom.MaxCount) {
			t.Errorf("a key added %d times is lost, or counted %d times", times, f.CountString("again and again"))
		}
		if n := f.Saturated(); (n == 0) != (times < bloom.MaxCount-1) && n > uint64(f.Plan().Probes) {
			t.Errorf("a key was added %d times, %d counters are saturated", times, n)
		}
		saturated := f.Saturated()
		for range times {
			if !f.RemoveString("again and again") {
				t.Errorf("a key added %d times cannot be removed as often", times)
			}
		}
		for i := range uint64(300) {
			if !f.ContainsUint64(i) {
				t.Errorf("key %d is lost after another was added and removed %d times", i, times)
			}
		}
		if after := f.Saturated(); after != saturated {
			t.Errorf("%d counters were saturated, after removals %d", saturated, after)
		}
		if times >= bloom.MaxCount && saturated != uint64(f.Plan().Probes) {
			t.Errorf("a key was added %d times, and %d counters are saturated, want its %d", times, saturated, f.Plan().Probes)
		}
		f.Clear()
		if r := f.Report(); f.Saturated() != 0 || r.Fill != 0 || r.Added != 0 {
			t.Errorf("after Clear it reports %+v", r)
		}
	}
}

// TestRemoveOfWhatWasNeverAdded is the second: a removal may be of a key that is
// not there. Where the filter can know, it refuses. Where it cannot, since it
// finds the key by mistake, what its documentation warns of happens.
func TestRemoveOfWhatWasNeverAdded(t *testing.T) {
	f := mustCount(t, bloom.Config{Keys: 1000, Rate: 0.01})
	const n = 1000
	for i := range uint64(n) {
		f.AddUint64(i)
	}
	before := f.Clone()
	refused, mistakes := 0, []uint64(nil)
	for i := uint64(n); i < 20*n; i++ {
		if f.ContainsUint64(i) {
			mistakes = append(mistakes, i)
		} else if f.RemoveUint64(i) {
			t.Errorf("key %d is not contained, and was removed", i)
		} else {
			refused++
		}
	}
	if refused == 0 || len(mistakes) == 0 {
		t.Fatalf("%d refused, %d mistakes: this tests nothing", refused, len(mistakes))
	}
	if !f.Equal(before) {
		t.Error("a refused removal changed the filter")
	}

	// What cannot be refused: the key's counters are others'.
	lost := 0
	for _, i := range mistakes {
		g := f.Clone()
		if !g.RemoveUint64(i) {
			t.Errorf("key %d is contained, and was not removed", i)
		}
		for k := range uint64(n) {
			if !g.ContainsUint64(k) {
				lost++
			}
		}
	}
	if lost == 0 {
		t.Error("removing false positives lost no key: then the documentation is too gloomy")
	}
	t.Logf("removing each of %d false positives alone makes %.1f of %d keys go missing", len(mistakes), float64(lost)/float64(len(mistakes)), n)

	// Adding the mistake again puts all counters back.
	g := f.Clone()
	g.RemoveUint64(mistakes[0])
	g.AddUint64(mistakes[0])
	if !g.Equal(before) {
		t.Error("Remove and Add of one key do not cancel out")
	}
}

// TestCountingIsFilter: the same plan, the same answers and the very same bits.
func TestCountingIsFilter(t *testing.T) {
	for _, p := range []float64{0.3, 0.01, 1e-4, 1e-9} {
		c := bloom.Config{Keys: 3000, Rate: p, Seed: 5}
		f, g := mustCount(t, c), mustNew(t, c)
		if f.Plan() != g.Plan() {
			t.Errorf("p %g: the plan is %v, a Filter's %v", p, f.Plan(), g.Plan())
		}
		for i := range uint64(3000) {
			if got, want := f.AddUint64(i), g.AddUint64(i); got != want {
				t.Fatalf("p %g: Add = %v, a Filter's %v", p, got, want)
			}
		}
		for i := range uint64(6000) {
			if got, want := f.ContainsUint64(i), g.ContainsUint64(i); got != want {
				t.Fatalf("p %g: Contains(%d) = %v, a Filter's %v", p, i, got, want)
			}
		}
		if r := f.Report(); r != g.Report() {
			t.Errorf("p %g: it reports %+v, a Filter %+v", p, r, g.Report())
		}
		if bits := mustBits(t, f); !bits.Equal(g) || bits.Report() != g.Report() {
			t.Errorf("p %g: Filter has other bits than a Filter with the same keys", p)
		}
		for i := uint64(1000); i < 3000; i++ {
			f.RemoveUint64(i)
		}
		g.Clear()
		for i := range uint64(1000) {
			g.AddUint64(i)
		}
		if !mustBits(t, f).Equal(g) {
			t.Errorf("p %g: after removals Filter has other bits than a Filter with the remaining keys", p)
		}
	}
}

func TestCountingBudget(t *testing.T) {
	c := bloom.Config{Keys: 100_000, Rate: 0.01}
	f := mustCount(t, c)
	if want := f.Plan().Bits / 2; f.Bytes() != want {
		t.Errorf("%d counters of 4 bits take %d bytes, it says %d", f.Plan().Bits, want, f.Bytes())
	}
	c.Budget = f.Bytes()
	if plan, err := c.PlanCounting(); err != nil || plan != f.Plan() {
		t.Errorf("with a budget of just its bytes: %v, %v", plan, err)
	}
	c.Budget--
	if _, err := c.NewCounting(); !errors.Is(err, bloom.ErrBudget) || !strings.Contains(err.Error(), fmt.Sprint(f.Bytes())) {
		t.Errorf("one byte less: %v, want ErrBudget that names the bytes", err)
	}
	if _, err := (bloom.Config{Keys: 1}).NewCounting(); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("without p: %v, want ErrConfig", err)
	}
	if _, err := bloom.NewCounting(1<<44, 1e-9); err == nil {
		t.Error("a filter of more than a petabyte was made")
	}
}

func TestCountingUnion(t *testing.T) {
	c := bloom.Config{Keys: 2000, Rate: 0.01, Folds: 2}
	a, b, both := mustCount(t, c), mustCount(t, c), mustCount(t, c)
	small := mustCount(t, bloom.Config{Keys: 2000, Bits: a.Plan().Bits / 2, Probes: a.Plan().Probes})
	smallBoth := small.Clone()
	for i := range uint64(1000) {
		a.AddUint64(i)
		b.AddUint64(i + 500)
		small.AddUint64(i)
		for _, key := range []uint64{i, i + 500} {
			both.AddUint64(key)
			smallBoth.AddUint64(key)
		}
	}
	if err := a.Union(b); err != nil || !a.Equal(both) {
		t.Errorf("Union is not the filter of both: %v", err)
	}
	if err := small.Union(b); err != nil || !small.Equal(smallBoth) {
		t.Errorf("Union of a filter twice the size is not the filter of both: %v", err)
	}
	if a.CountUint64(700) < 2 || !a.RemoveUint64(700) || !a.RemoveUint64(700) {
		t.Error("a key of both cannot be removed twice")
	}
	before := a.Clone()
	seeded := c
	seeded.Seed = 1
	for name, other := range map[string]bloom.Config{
		"another seed":   seeded,
		"another k":      {Keys: 2000, Bits: a.Plan().Bits, Probes: 16},
		"a size between": {Keys: 2000, Bits: a.Plan().Bits + 4096, Probes: a.Plan().Probes},
	} {
		g := mustCount(t, other)
		g.AddUint64(1)
		if err := a.Union(g); !errors.Is(err, bloom.ErrUnlike) || !a.Equal(before) {
			t.Errorf("Union with %s: %v, want ErrUnlike and no change", name, err)
		}
		if a.Equal(g) {
			t.Errorf("it is Equal to one with %s", name)
		}
	}
}

// TestCountingManyCounters goes past 2^32 counters: a rival's lost what lay
// beyond 2^30, where four times the number ends 32 bits. TestCountersFar in
// internal/kernel goes to 2^45 and looks at the counters.
func TestCountingManyCounters(t *testing.T) {
	for _, size := range []uint64{1 << 31, 1<<33 + 12345*kernel.BlockBits, 1 << 37} {
		f, err := bloom.Config{Keys: 1 << 20, Bits: size}.NewCounting()
		if err != nil {
			if !errors.Is(err, bloom.ErrBudget) {
				t.Fatal(err)
			}
			t.Logf("NOT CHECKED: %d counters. This machine says: %v", size, err)
			continue
		}
		blocks := f.Plan().Blocks
		var hashes []uint64
		for _, counter := range []uint64{0, 1 << 28, 1 << 29, 1 << 30, 1 << 31, 1 << 32, 1 << 33, 1 << 34, size / 3, size - 1} {
			for _, block := range []uint64{counter/kernel.BlockBits - 1, counter / kernel.BlockBits} {
				if block < blocks {
					h, _ := bits.Div64(block, 1<<63, blocks) // in the middle of those that fall into the block
					hashes = append(hashes, h)
				}
			}
		}
		slices.Sort(hashes)
		hashes = slices.Compact(hashes)
		for i, h := range hashes {
			if f.ContainsHash(h) || f.RemoveHash(h) || !f.AddHash(h) || f.AddHash(h) {
				t.Errorf("%d counters: hash %#x was there before it was added, or not afterwards", size, h)
			}
			if n := f.ContainsHashes(hashes, nil); n != i+1 {
				t.Errorf("%d counters: %d hashes were added, %d are found", size, i+1, n)
			}
		}
		for i, h := range hashes {
			if f.CountHash(h) != 2 || !f.RemoveHash(h) || !f.RemoveHash(h) || f.RemoveHash(h) {
				t.Errorf("%d counters: hash %#x was added twice, and cannot be removed just twice", size, h)
			}
			if n := f.ContainsHashes(hashes, nil); n != len(hashes)-i-1 {
				t.Errorf("%d counters: of %d hashes %d were removed, %d are found", size, len(hashes), i+1, n)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCountingClosed(t *testing.T) {
	f := mustCount(t, bloom.Config{Keys: 1000, Rate: 0.01})
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, call := range map[string]func(){
		"Add":      func() { f.AddString("x") },
		"Remove":   func() { f.RemoveString("x") },
		"Contains": func() { f.ContainsString("x") },
		"Count":    func() { f.CountString("x") },
		"Report":   func() { f.Report() },
		"Filter":   func() { f.Filter() },
		"Clone":    func() { f.Clone() },
		"Clear":    func() { f.Clear() },
		"Equal":    func() { f.Equal(f) },
		"Union":    func() { f.Union(f) },
	} {
		if panicOf(call) == "" {
			t.Errorf("%s of a closed filter does not panic", name)
		}
	}
}

func TestCountingNoAllocations(t *testing.T) {
	f := mustCount(t, bloom.Config{Keys: 100_000, Rate: 0.01})
	key, text := []byte("https://example.org/a/page"), "https://example.org/a/page"
	keys, answers := [][]byte{key, key, key}, make([]bool, 3)
	texts, hashes := []string{text, text, text}, []uint64{1, 2, 3}
	for name, call := range map[string]func(){
		"Add":             func() { f.Add(key) },
		"AddString":       func() { f.AddString(text) },
		"AddUint64":       func() { f.AddUint64(1) },
		"AddHash":         func() { f.AddHash(1) },
		"Remove":          func() { f.Remove(key) },
		"RemoveString":    func() { f.RemoveString(text) },
		"RemoveUint64":    func() { f.RemoveUint64(1) },
		"Contains":        func() { f.Contains(key) },
		"ContainsString":  func() { f.ContainsString(text) },
		"ContainsUint64":  func() { f.ContainsUint64(1) },
		"Count":           func() { f.Count(key) },
		"CountString":     func() { f.CountString(text) },
		"CountUint64":     func() { f.CountUint64(1) },
		"AddMany":         func() { f.AddMany(keys, answers) },
		"AddStrings":      func() { f.AddStrings(texts, nil) },
		"AddHashes":       func() { f.AddHashes(hashes, nil) },
		"ContainsMany":    func() { f.ContainsMany(keys, answers) },
		"ContainsStrings": func() { f.ContainsStrings(texts, nil) },
		"ContainsHashes":  func() { f.ContainsHashes(hashes, nil) },
		"RemoveMany":      func() { f.RemoveMany(keys, answers) },
		"RemoveHashes":    func() { f.RemoveHashes(hashes, nil) },
	} {
		if n := testing.AllocsPerRun(1000, call); n != 0 && !raceEnabled {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// countingModel is a Counting with the exact multiset of its keys.
type countingModel struct {
	filter  *bloom.Counting
	times   map[string]int
	guessed bool // Len is an estimate
}

func newCountingModel(t *rapid.T) *countingModel {
	return &countingModel{filter: mustCount(t, countingModelConfig), times: map[string]int{}}
}

// countingModelConfig makes filters so small that keys share counters and false
// positives are common.
var countingModelConfig = bloom.Config{Keys: 300, Bits: 4096, Probes: 4}

var countedKey = rapid.Custom(func(t *rapid.T) string {
	return fmt.Sprint(rapid.IntRange(0, 400).Draw(t, "key"))
})

// fill adds some keys, some of them often.
func (m *countingModel) fill(t *rapid.T) {
	for key, times := range rapid.MapOfN(countedKey, rapid.IntRange(1, 20), 0, 60).Draw(t, "keys") {
		for range times {
			m.filter.AddString(key)
		}
		m.times[key] += times
	}
}

// check compares everything that the filter says with the multiset.
func (m *countingModel) check(t *rapid.T) {
	exact, err := countingModelConfig.New()
	if err != nil {
		t.Fatal(err)
	}
	counted := mustCount(t, countingModelConfig)
	for key, times := range m.times {
		for range times {
			counted.AddString(key)
		}
		if times > 0 {
			exact.AddString(key)
			if !m.filter.ContainsString(key) {
				t.Fatalf("false negative for %q, which is in %d times", key, times)
			}
		}
		if count := m.filter.CountString(key); count < min(times, bloom.MaxCount) {
			t.Fatalf("%q is in %d times, and Count says %d", key, times, count)
		}
	}
	all := uint64(0)
	for _, times := range m.times {
		all += uint64(times)
	}
	got := mustBits(t, m.filter)
	if n := m.filter.Len(); n != all && !m.guessed {
		t.Fatalf("Len is %d, want %d", n, all)
	}
	if m.filter.Saturated() == 0 {
		if !got.Equal(exact) {
			t.Fatal("no counter is saturated, and Filter has other bits than a Filter with the same keys")
		}
		if !m.filter.Equal(counted) {
			t.Fatal("no counter is saturated, and some differ from those of the same keys")
		}
	} else if union := got.Clone(); union.Union(exact) != nil || !union.Equal(got) {
		t.Fatal("Filter lacks bits that a Filter with the same keys has")
	}
}

// TestCountingModel does at random what may be done to a Counting.
func TestCountingModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newCountingModel(t)
		m.fill(t)
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"Add": func(t *rapid.T) {
				key := countedKey.Draw(t, "key")
				if m.filter.AddString(key) && m.times[key] > 0 {
					t.Fatalf("%q was there, and is called new", key)
				}
				m.times[key]++
			},
			"Remove": func(t *rapid.T) {
				key := countedKey.Draw(t, "key")
				if m.times[key] == 0 {
					if found := m.filter.ContainsString(key); found { // must not be removed
						t.Skip()
					}
				}
				before := m.filter.Clone()
				if got, want := m.filter.RemoveString(key), m.times[key] > 0; got != want {
					t.Fatalf("%q is in %d times, and Remove says %v", key, m.times[key], got)
				} else if got {
					m.times[key]--
				} else if !m.filter.Equal(before) {
					t.Fatal("a refused removal changed the filter")
				}
			},
			"Remove many": func(t *rapid.T) {
				var keys []string
				for _, key := range slices.Sorted(maps.Keys(m.times)) {
					if m.times[key] > 0 && len(keys) < 100 {
						keys = append(keys, key)
						m.times[key]--
					}
				}
				if n := m.filter.RemoveStrings(keys, nil); n != len(keys) {
					t.Fatalf("of %d keys that are in only %d can be removed", len(keys), n)
				}
			},
			"Union": func(t *rapid.T) {
				other := newCountingModel(t)
				other.fill(t)
				if err := m.filter.Union(other.filter); err != nil {
					t.Fatal(err)
				}
				for key, times := range other.times {
					m.times[key] += times
				}
			},
			"Save and load": func(t *rapid.T) {
				m.guessed = m.guessed || m.filter.Saturated() > 0
				m.filter = reread(t, m.filter, bloom.ReadCounting)
			},
			"Clone": func(t *rapid.T) {
				clone := m.filter.Clone()
				if !clone.Equal(m.filter) || clone.Report() != m.filter.Report() {
					t.Fatal("a clone differs")
				}
				m.filter.Clear()
				if m.filter.Report().Fill != 0 || m.filter.Saturated() != 0 {
					t.Fatal("Clear left something")
				}
				m.filter = clone
			},
		})
	})
}

func BenchmarkCounting(b *testing.B) {
	f, err := bloom.NewCounting(100_000, 0.01)
	if err != nil {
		b.Fatal(err)
	}
	for i := range uint64(100_000) {
		f.AddUint64(i)
	}
	for name, call := range map[string]func(i uint64){
		"add and remove": func(i uint64) { f.AddUint64(i); f.RemoveUint64(i) },
		"hit":            func(i uint64) { f.ContainsUint64(i) },
		"miss":           func(i uint64) { f.ContainsUint64(i + 1e6) },
	} {
		b.Run(name, func(b *testing.B) {
			for i := uint64(0); b.Loop(); i++ {
				call(i % 100_000)
			}
		})
	}
}
