package bloom_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/long"
	"pgregory.net/rapid"
)

// fakeClock stands still until it is set. Many goroutines may read it.
type fakeClock struct{ at atomic.Int64 }

func (c *fakeClock) now() time.Time          { return time.Unix(1_000_000_000, c.at.Load()) }
func (c *fakeClock) advance(d time.Duration) { c.at.Add(int64(d)) }

func mustWindow(t testing.TB, c bloom.WindowConfig) (*bloom.Window, *fakeClock) {
	t.Helper()
	clock := new(fakeClock)
	c.Now = clock.now
	w, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	return w, clock
}

// TestWindowForgets: found for T, whenever it was added, and forgotten after
// T(1+1/G).
func TestWindowForgets(t *testing.T) {
	for _, g := range []int{1, 2, 3, 4, 7, 30} {
		w, clock := mustWindow(t, bloom.WindowConfig{Keys: 10_000, Rate: 1e-6, Span: time.Hour, Generations: g})
		step := (time.Hour + time.Duration(g) - 1) / time.Duration(g)
		for i := range uint64(40) {
			clock.advance(time.Duration(i) * step / 13) // somewhere in a generation
			key := hashOf(i)
			if !w.AddHash(key) {
				t.Fatalf("G %d: key %d is not new", g, i)
			}
			clock.advance(time.Hour)
			if !w.ContainsHash(key) {
				t.Errorf("G %d: key %d is forgotten after an hour", g, i)
			}
			clock.advance(time.Duration(g+1)*step - time.Hour) // in whole nanoseconds a little more than T/G
			if w.ContainsHash(key) {
				t.Errorf("G %d: key %d is not forgotten after an hour and %v", g, i, step)
			}
			if !w.AddHash(key) {
				t.Errorf("G %d: key %d is not new again", g, i)
			}
		}
	}
}

// TestWindowIsKeptByAdding: a key that is added again and again is never new and
// never forgotten.
func TestWindowIsKeptByAdding(t *testing.T) {
	w, clock := mustWindow(t, bloom.WindowConfig{Keys: 1000, Rate: 1e-6, Span: time.Hour})
	w.AddString("again")
	for i := range 100 {
		clock.advance(59 * time.Minute)
		hashes := []uint64{w.HashString("again"), w.HashString(fmt.Sprint(i))}
		isNew := make([]bool, 2)
		if i%2 == 0 {
			w.AddHashes(hashes, isNew)
		} else {
			isNew = []bool{w.AddHash(hashes[0]), w.AddHash(hashes[1])}
		}
		if !slices.Equal(isNew, []bool{false, true}) {
			t.Fatalf("after %d times 59 minutes, new: %v", i+1, isNew)
		}
	}
}

// TestWindowClockJumps: back, nothing is forgotten early; far ahead, all is, at
// once.
func TestWindowClockJumps(t *testing.T) {
	w, clock := mustWindow(t, bloom.WindowConfig{Keys: 1000, Rate: 1e-6, Span: time.Hour})
	w.AddString("before")
	clock.advance(-1000 * time.Hour)
	w.AddString("behind")
	clock.advance(time.Hour)
	if !w.ContainsString("before") || !w.ContainsString("behind") {
		t.Error("a clock that was set back made the window forget")
	}
	clock.advance(999 * time.Hour)
	if !w.ContainsString("before") || !w.ContainsString("behind") {
		t.Error("when the clock was where it had been, the window had forgotten")
	}
	clock.advance(time.Hour + 15*time.Minute)
	if w.ContainsString("before") || w.ContainsString("behind") {
		t.Error("the window does not forget once the clock goes on")
	}
	for _, ahead := range []time.Duration{1e6 * time.Hour, 30 * 365 * 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		w.AddString("now")
		began := time.Now()
		clock.advance(ahead)
		if w.ContainsString("now") {
			t.Errorf("the window remembers for %v", ahead)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a jump of %v took %v", ahead, took)
		}
	}
	if r := w.Report(); r.Fill != 0 || r.Added != 0 {
		t.Errorf("after a jump ahead: %+v", r)
	}
	w.AddString("later")
	if !w.ContainsString("later") {
		t.Error("after a jump ahead a key is lost")
	}
}

// TestWindowModel runs random operations, steps and jumps of the clock, and keeps
// for each key when it was added last, by the latest time the clock ever showed.
func TestWindowModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := new(fakeClock)
		g := rapid.IntRange(1, 6).Draw(t, "generations")
		n := rapid.SampledFrom([]uint64{20_000, 2000, 600}).Draw(t, "planned keys") // the fewer, the more layers
		w, err := bloom.WindowConfig{Keys: n, Rate: 1e-9, Span: time.Hour, Generations: g, Now: clock.now}.New()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { w.Close() }()
		step := (time.Hour + time.Duration(g) - 1) / time.Duration(g)
		latest, last := int64(0), map[uint64]int64{}
		move := func(d time.Duration) {
			clock.advance(d)
			latest = max(latest, clock.at.Load())
		}
		// check what was said of a key before it is added.
		check := func(t *rapid.T, key uint64, found bool) {
			at, ever := last[key]
			if age := time.Duration(latest - at); ever && age <= time.Hour && !found {
				t.Fatalf("false negative for %d, added %v before", key, age)
			} else if found && (!ever || age >= time.Hour+step) {
				t.Fatalf("%d was added %v before (%v) and is found", key, age, ever)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				key := rapid.Uint64Range(0, 5000).Draw(t, "key")
				check(t, key, !w.AddHash(hashOf(key)))
				last[key] = latest
			},
			"add many": func(t *rapid.T) {
				keys := drawKeys(t)
				hashes, isNew := make([]uint64, len(keys)), make([]bool, len(keys))
				for i, key := range keys {
					hashes[i] = hashOf(key)
				}
				w.AddHashes(hashes, isNew)
				for i, key := range keys {
					check(t, key, !isNew[i])
					last[key] = latest
				}
			},
			"save and load": func(t *rapid.T) {
				w = reread(t, w, func(r io.Reader, limitBytes int64) (*bloom.Window, error) {
					return bloom.ReadWindow(r, limitBytes, clock.now)
				})
			},
			"wait": func(t *rapid.T) {
				move(time.Duration(rapid.Int64Range(0, int64(step)*3/2).Draw(t, "nanoseconds")))
			},
			"to the end of a generation": func(t *rapid.T) {
				move(step - time.Duration(latest)%step - time.Duration(rapid.IntRange(0, 1).Draw(t, "short")))
			},
			"jump": func(t *rapid.T) {
				move(time.Duration(rapid.Int64Range(-3*int64(time.Hour), 3*int64(time.Hour)).Draw(t, "nanoseconds")))
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "dice") == 0 {
					w.Clear()
					clear(last)
				}
			},
			"look all up": func(t *rapid.T) {
				for key := range last {
					check(t, key, w.ContainsHash(hashOf(key)))
				}
			},
			"": func(t *rapid.T) {
				if n := len(w.Generations()); n > g+1 {
					t.Fatalf("%d generations live", n)
				}
				if p := w.Plan(); p.Rate > 1e-9 || w.Err() != nil {
					t.Fatalf("the rates of all layers add up to %g: %v", p.Rate, w.Err())
				}
			},
		})
	})
}

// TestWindowOneWinner: generations change while 64 goroutines add, but not so
// often that a key is forgotten: each is told new exactly once.
func TestWindowOneWinner(t *testing.T) {
	n := max(raceKeys()/20, 10_000) // fewer are added before the clock ticks
	w, clock := mustWindow(t, bloom.WindowConfig{Keys: 30 * n, Rate: 1e-8, Span: time.Hour, Generations: 30})
	done := make(chan struct{})
	var ticking sync.WaitGroup
	turns := 0
	ticking.Go(func() {
		for turns < 29 {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				clock.advance(2 * time.Minute)
				turns++
			}
		}
	})
	told := raceOn(t, w, n)
	close(done)
	ticking.Wait()
	for key, times := range told {
		if times != 1 || !w.ContainsHash(hashOf(uint64(key))) {
			t.Fatalf("key %d was told new %d times, contained: %v", key, times, w.ContainsHash(hashOf(uint64(key))))
		}
	}
	t.Logf("%d keys, %d turns of generations", n, turns)
	if turns < 3 {
		t.Errorf("only %d turns: the test shows nothing", turns)
	}
}

// TestWindowRacesWithItsClock: during adds and lookups time flies, and the window's own
// goroutines clear large generations. Every key is there once its Add has returned, by
// a clock that is held still for it.
func TestWindowRacesWithItsClock(t *testing.T) {
	w, clock := mustWindow(t, bloom.WindowConfig{Keys: 400_000, Rate: 1e-4, Span: time.Hour, Generations: 2})
	var wait sync.WaitGroup
	var still sync.RWMutex // held to read while the clock must not jump
	stop := make(chan struct{})
	var turning sync.WaitGroup
	turning.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Microsecond):
			}
			still.Lock()
			clock.advance(time.Duration(i%5) * time.Hour / 3)
			still.Unlock()
			if i%50 == 0 {
				w.Report()
			}
		}
	})
	for g := range uint64(8) {
		wait.Go(func() {
			hashes := make([]uint64, 200)
			for i := range raceKeys() / 1000 {
				for j := range hashes {
					hashes[j] = hashOf(g<<32 + i<<16 + uint64(j))
				}
				still.RLock()
				w.AddHashes(hashes[:100], nil)
				for _, h := range hashes[100:] {
					w.AddHash(h)
				}
				if n := w.ContainsHashes(hashes, nil); n != len(hashes) {
					t.Errorf("%d of %d keys are found at once", n, len(hashes))
				}
				still.RUnlock()
			}
		})
	}
	wait.Wait()
	close(stop)
	turning.Wait()
	w.Clear()
	if r := w.Report(); r.Added != 0 || r.Fill != 0 {
		t.Errorf("Clear left %+v", r)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestWindowRates makes the three comparisons of rate_test.go, with all
// generations full.
func TestWindowRates(t *testing.T) {
	long.Test(t)
	if raceEnabled {
		t.Skip("one goroutine, and many keys")
	}
	for _, p := range []float64{1e-1, 1e-2, 1e-4} {
		for _, g := range []int{1, 4, 12} {
			var rates sample
			found, expected, want := 0., 0., 0.
			for seed := range uint64(40) {
				w, clock := mustWindow(t, bloom.WindowConfig{Keys: 12_000, Rate: p, Span: time.Hour, Generations: g, Seed: mix(seed)})
				perGeneration := uint64(12_000 / g)
				for i := range uint64(g + 1) {
					if i > 0 {
						clock.advance(time.Hour / time.Duration(g))
					}
					for j := range perGeneration {
						w.AddUint64(i<<32 + j)
					}
				}
				r := w.Report()
				rates.add(r.Rate)
				passed := 1.
				for _, r := range w.Generations() {
					passed *= 1 - r.Plan.RateAt(perGeneration)
				}
				want = 1 - passed
				if r.Plan.Rate > p || len(w.Generations()) != g+1 {
					t.Errorf("p %g, G %d: the plan's rate is %g, %d generations", p, g, r.Plan.Rate, len(w.Generations()))
				}
				strangers := manyStrangers(seed)
				found += float64(w.ContainsHashes(strangers, nil))
				expected += r.Rate * float64(len(strangers))
			}
			if z := (rates.mean - want) / rates.standardError(); math.Abs(z) > maxSigmas {
				t.Errorf("p %g, G %d: the rate from the bits is %.6g ± %.2g on average, want %.6g: %+.1f standard errors", p, g, rates.mean, rates.standardError(), want, z)
			}
			if z := (found - expected) / math.Sqrt(expected); math.Abs(z) > maxSigmas {
				t.Errorf("p %g, G %d: %v strangers found, the bits say %.1f: %+.1f sigma", p, g, found, expected, z)
			}
			t.Logf("p %g, G %d: from the bits %.5g, expected %.5g; %v found, expected %.0f", p, g, rates.mean, want, found, expected)
		}
	}
}

// TestWindowVerbs: all ways to add and to look up give the same answers.
func TestWindowVerbs(t *testing.T) {
	for _, secret := range [][]byte{nil, testSecret} {
		c := bloom.WindowConfig{Keys: 300, Rate: 0.01, Span: time.Hour, Secret: secret} // several layers
		single, clock1 := mustWindow(t, c)
		asBytes, clock2 := mustWindow(t, c)
		asStrings, clock3 := mustWindow(t, c)
		for round := range 12 {
			n := 500 * round
			keys, texts, want, wantNew := make([][]byte, n), make([]string, n), make([]bool, n), 0
			for i := range keys {
				texts[i] = fmt.Sprintf("key %d", mix(uint64(round*1000+i))%3000)
				keys[i] = []byte(texts[i])
				if i%2 == 0 {
					want[i] = single.Add(keys[i])
				} else {
					want[i] = single.AddString(texts[i])
				}
				if want[i] {
					wantNew++
				}
			}
			got := make([]bool, n)
			if count := asBytes.AddMany(keys, got); count != wantNew || !slices.Equal(got, want) {
				t.Errorf("AddMany of %d keys differs from as many Adds: %d new, want %d", n, count, wantNew)
			}
			if count := asStrings.AddStrings(texts, got); count != wantNew || !slices.Equal(got, want) {
				t.Errorf("AddStrings of %d keys differs from as many Adds: %d new, want %d", n, count, wantNew)
			}
			for i, key := range keys {
				if !single.Contains(key) || !single.ContainsString(texts[i]) || !single.ContainsHash(single.Hash(key)) {
					t.Fatalf("%q is lost", key)
				}
			}
			if asBytes.ContainsMany(keys, got) != n || slices.Contains(got, false) || asStrings.ContainsStrings(texts, nil) != n {
				t.Errorf("of %d keys some are lost", n)
			}
			if single.Report() != asBytes.Report() || single.Report() != asStrings.Report() {
				t.Error("the reports differ")
			}
			if strangers := manyStrangers(1); single.ContainsHashes(strangers, nil) != countEach(single, strangers) {
				t.Error("ContainsHashes finds other strangers than ContainsHash")
			}
			for _, clock := range []*fakeClock{clock1, clock2, clock3} {
				clock.advance(11 * time.Minute)
			}
		}
		single.AddUint64(77)
		if !single.ContainsUint64(77) || single.HashIdentity() != asBytes.HashIdentity() || single.Span() != time.Hour {
			t.Error("the small verbs fail")
		}
	}
}

func TestWindowConfig(t *testing.T) {
	ok := bloom.WindowConfig{Keys: 1000, Rate: 0.01, Span: time.Hour}
	for name, tt := range map[string]struct {
		change func(*bloom.WindowConfig)
		want   error
	}{
		"nothing":          {func(c *bloom.WindowConfig) {}, nil},
		"no keys":          {func(c *bloom.WindowConfig) { c.Keys = 0 }, bloom.ErrConfig},
		"no rate":          {func(c *bloom.WindowConfig) { c.Rate = 0 }, bloom.ErrConfig},
		"rate of two":      {func(c *bloom.WindowConfig) { c.Rate = 2 }, bloom.ErrConfig},
		"no number":        {func(c *bloom.WindowConfig) { c.Rate = math.NaN() }, bloom.ErrConfig},
		"low rate":         {func(c *bloom.WindowConfig) { c.Rate = 1e-12 }, bloom.ErrRate},
		"no span":          {func(c *bloom.WindowConfig) { c.Span = 0 }, bloom.ErrConfig},
		"long span":        {func(c *bloom.WindowConfig) { c.Span = math.MaxInt64 }, bloom.ErrConfig},
		"few generations":  {func(c *bloom.WindowConfig) { c.Generations = -1 }, bloom.ErrConfig},
		"many generations": {func(c *bloom.WindowConfig) { c.Generations = 31 }, bloom.ErrConfig},
		"budget":           {func(c *bloom.WindowConfig) { c.Budget = 1000 }, bloom.ErrBudget},
		"secret":           {func(c *bloom.WindowConfig) { c.Secret = []byte("short") }, bloom.ErrConfig},
	} {
		c := ok
		tt.change(&c)
		if w, err := c.New(); !errors.Is(err, tt.want) || (w == nil) != (err != nil) {
			t.Errorf("%s: New = %v, %v, want %v", name, w, err, tt.want)
		}
	}
	w, err := bloom.NewWindow(1000, 0.01, 50*time.Millisecond) // by the system's clock
	if err != nil {
		t.Fatal(err)
	}
	w.AddUint64(1)
	for began := time.Now(); w.ContainsUint64(1); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Fatal("a window of 50 ms remembers for 5 s")
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	for range 2 { // also when another generation would have begun
		if got := panicOf(func() { w.AddUint64(1) }); got != "bloom: the window is closed" {
			t.Errorf("adding to a closed window panics with %q", got)
		}
		if got := panicOf(func() { w.ContainsMany([][]byte{nil}, nil) }); got != "bloom: the window is closed" {
			t.Errorf("looking into a closed window panics with %q", got)
		}
		time.Sleep(60 * time.Millisecond)
	}
	if err := w.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestWindowNoAllocations(t *testing.T) {
	w, err := bloom.NewWindow(100_000, 0.01, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	noAllocations(t, w)
}

func BenchmarkWindow(b *testing.B) {
	const n = 1_000_000
	w, err := bloom.NewWindow(n, 0.01, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	i := uint64(0)
	b.Run("add", func(b *testing.B) {
		for b.Loop() {
			w.AddHash(hashOf(i % n))
			i++
		}
	})
	b.Run("miss", func(b *testing.B) {
		for b.Loop() {
			w.ContainsHash(hashOf(1<<40 + i))
			i++
		}
	})
}
