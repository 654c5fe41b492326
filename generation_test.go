package bloom_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom"
)

// fewer is how many keys a test takes in which nothing races, with the race detector.
func fewer(keys uint64) uint64 {
	if raceEnabled {
		return keys / 20
	}
	return keys
}

// TestWindowGrowsInOneGeneration: n keys at once make a generation grow to what
// WindowConfig.Layers says, and its layers go when it is forgotten.
func TestWindowGrowsInOneGeneration(t *testing.T) {
	for _, g := range []int{1, 2, 3, 4, 8, 11, 12, 30} {
		c := bloom.WindowConfig{Keys: fewer(50_000), Rate: 0.01, Span: time.Hour, Generations: g}
		even, err := c.Plan()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := c.Layers()
		if err != nil {
			t.Fatal(err)
		}
		w, clock := mustWindow(t, c)
		if got := w.Plan().Bits + layers[0].Bits; got != even.Bits {
			t.Errorf("G %d: %d bits and a spare one's, Plan says %d", g, got, even.Bits)
		}
		for i := range c.Keys {
			w.AddHash(hashOf(i))
		}
		sizes := bloom.Inside.Sizes(w)
		if len(sizes) != len(layers) || len(w.Generations()) != 1 {
			t.Errorf("G %d: %d keys are in %d layers, want %d: %+v", g, c.Keys, len(sizes), len(layers), sizes)
		}
		for i, size := range sizes {
			if size.Plan != layers[i] || size.Added > size.Plan.Keys {
				t.Errorf("G %d: layer %d is %+v, want %v", g, i, size, layers[i])
			}
		}
		if r := w.Report(); r.Rate > 0.01 || r.Overfull() || math.Abs(r.Keys-float64(c.Keys)) > 0.05*float64(c.Keys) {
			t.Errorf("G %d: %+v", g, r)
		}
		clock.advance(2*time.Hour + time.Minute)
		if sizes := bloom.Inside.Sizes(w); len(sizes) != 1 || sizes[0].Plan != layers[0] || sizes[0].Added != 0 {
			t.Errorf("G %d: when all is forgotten there is left %+v", g, sizes)
		}
	}
}

// TestWindowEvenKeysTakeNoFurtherLayers: as many as planned in each generation, give or
// take what is chance.
func TestWindowEvenKeysTakeNoFurtherLayers(t *testing.T) {
	perGeneration := fewer(10_000)
	w, clock := mustWindow(t, bloom.WindowConfig{Keys: 4 * perGeneration, Rate: 0.001, Span: time.Hour})
	key := uint64(0)
	for i := range uint64(12) {
		for range perGeneration + 3*perGeneration/100*(i%2) {
			w.AddHash(hashOf(key))
			key++
		}
		if got := len(bloom.Inside.Sizes(w)); got != int(min(i, 4))+1 {
			t.Fatalf("%d layers in generation %d", got, i)
		}
		clock.advance(15 * time.Minute)
	}
}

// TestWindowLayersFitIntoAFile: the same n keys in each of all generations have room in
// what a file can hold, for every G, and come back from it.
func TestWindowLayersFitIntoAFile(t *testing.T) {
	n := fewer(10_000)
	for g := 1; g <= 30; g++ {
		if raceEnabled && g > 4 && g != 11 && g != 30 {
			continue
		}
		w, clock := mustWindow(t, bloom.WindowConfig{Keys: n, Rate: 0.01, Span: time.Hour, Generations: g})
		hashes := make([]uint64, n)
		for i := range hashes {
			hashes[i] = hashOf(uint64(i))
		}
		for i := range g + 1 {
			if i > 0 {
				clock.advance((time.Hour + time.Duration(g) - 1) / time.Duration(g))
			}
			if taken, _, err := bloom.Inside.TryAddHashes(w, hashes, nil); taken != int(n) || err != nil {
				t.Fatalf("G %d: in generation %d there is room for %d of %d keys: %v", g, i, taken, n, err)
			}
		}
		if p := w.Plan(); p.Rate > 0.01 || len(w.Generations()) != g+1 || w.Err() != nil {
			t.Errorf("G %d: %d generations whose rates add up to %g: %v", g, len(w.Generations()), p.Rate, w.Err())
		}
		before := bloom.Inside.Sizes(w)
		w = reread(t, w, func(r io.Reader, limitBytes int64) (*bloom.Window, error) {
			return bloom.ReadWindow(r, limitBytes, clock.now)
		})
		if after := bloom.Inside.Sizes(w); !slices.Equal(after, before) || w.ContainsHashes(hashes, nil) != int(n) {
			t.Errorf("G %d: of %d layers %d were stored", g, len(before), len(after))
		}
		clock.advance(time.Hour + time.Hour/time.Duration(g) + time.Minute)
		if got := w.ContainsHashes(hashes, nil); got != 0 {
			t.Errorf("G %d: %d keys are not forgotten", g, got)
		}
		w.Close()
	}
}

// TestWindowGrowsWithOneWinner: generations grow and change while 64 goroutines add.
func TestWindowGrowsWithOneWinner(t *testing.T) {
	n := raceKeys() / 20
	w, clock := mustWindow(t, bloom.WindowConfig{Keys: n / 50, Rate: 1e-8, Span: time.Hour, Generations: 4})
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		for range 3 {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				clock.advance(15 * time.Minute)
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
	sizes := bloom.Inside.Sizes(w)
	for i, size := range sizes {
		if size.Added > size.Plan.Keys {
			t.Errorf("layer %d of %d took %d keys, and was planned for %d", i, len(sizes), size.Added, size.Plan.Keys)
		}
	}
	if len(sizes) == len(w.Generations()) {
		t.Errorf("%d layers in as many generations: the test shows nothing", len(sizes))
	}
}

// TestWindowBudget: when it is used up, adds go into the last layer, Err says so until
// the generation is forgotten, and not longer.
func TestWindowBudget(t *testing.T) {
	c := bloom.WindowConfig{Keys: 10_000, Rate: 0.01, Span: time.Hour}
	even, err := c.Plan()
	if err != nil {
		t.Fatal(err)
	}
	c.Budget = even.Bytes() + even.Bytes()/3 // the second layer fits, the third does not
	w, clock := mustWindow(t, c)
	add := func(from, to uint64) {
		t.Helper()
		for key := from; key < to; key++ {
			w.AddHash(hashOf(key))
		}
	}
	add(0, 4000)
	if err := w.Err(); err != nil || len(bloom.Inside.Sizes(w)) != 2 {
		t.Fatalf("within the budget: %v, %d layers", err, len(bloom.Inside.Sizes(w)))
	}
	add(4000, 30_000)
	if err := w.Err(); !errors.Is(err, bloom.ErrBudget) || len(bloom.Inside.Sizes(w)) != 2 {
		t.Fatalf("beyond the budget: %v, %d layers", err, len(bloom.Inside.Sizes(w)))
	}
	if all := w.Generations(); !all[0].Overfull() || w.Report().Rate <= 0.01 {
		t.Errorf("beyond the budget: %+v", all)
	}
	hashes := []uint64{hashOf(1)}
	for i := range uint64(1000) {
		hashes = append(hashes, hashOf(1<<40+i)) // some of which are taken for old ones
	}
	if taken, added, err := bloom.Inside.TryAddHashes(w, hashes, nil); taken < 1 || taken > 100 || added != 0 || !errors.Is(err, bloom.ErrBudget) {
		t.Errorf("TryAddHashes took %d, %d new: %v", taken, added, err)
	}
	if n := w.AddHashes(hashes, nil); n == 0 || w.ContainsHashes(hashes, nil) != len(hashes) { // in one batch
		t.Errorf("beyond the budget %d keys of a batch were new", n)
	}
	for i := range 5 { // it is forgotten with the fifth turn
		if err := w.Err(); !errors.Is(err, bloom.ErrBudget) {
			t.Errorf("after %d turns, with the over-full generation there: %v", i, err)
		}
		if i == 2 {
			again := reread(t, w, func(r io.Reader, limitBytes int64) (*bloom.Window, error) {
				return bloom.ReadWindow(r, limitBytes, clock.now)
			})
			if w = again; !errors.Is(w.Err(), bloom.ErrRate) {
				t.Errorf("stored and read, the over-full generation is passed over: %v", w.Err())
			}
			break
		}
		clock.advance(15 * time.Minute)
		add(100_000+1000*uint64(i), 101_000+1000*uint64(i))
	}
	for clock.advance(30 * time.Minute); w.Err() != nil; clock.advance(15 * time.Minute) {
		if clock.at.Load() > int64(75*time.Minute) {
			t.Fatalf("when it is forgotten: %v", w.Err())
		}
	}
	if at := time.Duration(clock.at.Load()); at != 75*time.Minute {
		t.Errorf("Err ended after %v", at)
	}
}

// TestWindowLimits: what a store may say about further layers, and that it hears of
// each that is dropped.
func TestWindowLimits(t *testing.T) {
	w, clock := mustWindow(t, bloom.WindowConfig{Keys: 4000, Rate: 0.01, Span: time.Hour})
	granted, refusal := map[bloom.Plan]int{}, error(nil)
	grant := func(layer bloom.Plan) error {
		if refusal == nil {
			granted[layer]++
		}
		return refusal
	}
	bloom.Inside.LimitWindow(w, 4000, grant, func(layer bloom.Plan) { granted[layer]-- })
	hashes, isNew := make([]uint64, 6000), make([]bool, 6000)
	for i := range hashes {
		hashes[i] = hashOf(uint64(i))
	}
	taken, added, err := bloom.Inside.TryAddHashes(w, hashes, isNew)
	if !errors.Is(err, bloom.ErrFull) || taken < 4000 || taken > 4040 || added > taken || slices.Contains(isNew[taken:], true) {
		t.Fatalf("of a limit of 4,000 keys %d were taken, %d new: %v", taken, added, err)
	}
	if held := w.Report().Added; held != 4000 {
		t.Errorf("%d keys in a generation that may have 4,000", held)
	}
	if again, added, err := bloom.Inside.TryAddHashes(w, hashes[:taken], nil); again != taken || added != 0 || err != nil {
		t.Errorf("keys that are there: %d of %d taken, %d new: %v", again, taken, added, err)
	}
	if len(granted) != 2 {
		t.Errorf("%d further layers were granted: %v", len(granted), granted)
	}

	clock.advance(15 * time.Minute) // the next generation has room again
	refusal = errors.New("not now")
	if taken, _, err = bloom.Inside.TryAddHashes(w, hashes, nil); !errors.Is(err, refusal) || taken < 1000 || taken > 1500 {
		t.Errorf("without a grant %d keys were taken: %v", taken, err)
	}
	if w.Err() != nil {
		t.Errorf("what was refused is the window's own error: %v", w.Err())
	}
	refusal = nil
	if taken, _, err = bloom.Inside.TryAddHashes(w, hashes[:3000], nil); err != nil || taken != 3000 {
		t.Errorf("with a grant again %d keys were taken: %v", taken, err)
	}
	w.AddHashes(hashes, nil) // which cannot refuse
	if w.Err() != nil || w.ContainsHashes(hashes, nil) != len(hashes) {
		t.Errorf("AddHashes minds the store's number of keys: %v", w.Err())
	}
	clock.advance(3 * time.Hour)
	w.Contains(nil)
	for layer, n := range granted {
		if n != 0 {
			t.Errorf("%d layers %v are granted when all is forgotten", n, layer)
		}
	}
}

// TestWindowOfOldRelease: windows whose generations had one layer, for n/G keys and with
// all of the generation's rate, are read for ever, written as they were, and keep p from
// then on.
func TestWindowOfOldRelease(t *testing.T) {
	for _, name := range []string{"window", "window-keyed"} {
		path := filepath.Join("testdata", "golden", name+".bloom")
		golden, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		clock := new(fakeClock)
		clock.advance(goldenClock().Sub(clock.now()))
		w, err := bloom.ReadWindow(bytes.NewReader(golden), int64(len(golden)), clock.now)
		if err != nil {
			t.Fatal(err)
		}
		if w.NeedsSecret() {
			if err := w.SetSecret([]byte("0123456789abcdef")); err != nil {
				t.Fatal(err)
			}
		}
		var again bytes.Buffer
		if _, err := w.WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), golden) {
			t.Errorf("%s: written otherwise than it was read: %v", name, err)
		}
		for turn := range 5 {
			for i := range 2000 { // of 200 planned
				w.AddString(fmt.Sprint("later ", turn, i))
			}
			w = reread(t, w, func(r io.Reader, limitBytes int64) (*bloom.Window, error) {
				return bloom.ReadWindow(r, limitBytes, clock.now)
			})
			if w.NeedsSecret() {
				if err := w.SetSecret([]byte("0123456789abcdef")); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 200 {
				if found := w.ContainsString(storedKey(i)); !found && turn < 3 {
					t.Fatalf("%s: %q is lost after %d turns", name, storedKey(i), turn)
				}
			}
			// The old generation has twice the keys that it was planned for.
			if old := turn < 3; old != errors.Is(w.Err(), bloom.ErrRate) || !old && (w.Err() != nil || w.Report().Rate > 0.01) || w.Plan().Rate > 0.01 {
				t.Errorf("%s, turn %d: the rate is %g, by plan %g: %v", name, turn, w.Report().Rate, w.Plan().Rate, w.Err())
			}
			clock.advance(30 * time.Minute)
		}
	}
}

// TestWindowLayersImpossible: files whose layers make no window.
func TestWindowLayersImpossible(t *testing.T) {
	le := binary.LittleEndian
	w, clock := mustWindow(t, bloom.WindowConfig{Keys: 3000, Rate: 1e-6, Span: time.Hour, Generations: 2})
	for i := range uint64(3000) {
		w.AddUint64(i)
	}
	clock.advance(30 * time.Minute)
	w.AddUint64(0)
	const layers = 3 // of which the last is the only one of its generation
	if got := len(bloom.Inside.Sizes(w)); got != layers {
		t.Fatalf("%d layers", got)
	}
	field := func(layer, at int) func(_, state []byte, value uint64) {
		return func(_, state []byte, value uint64) { le.PutUint64(state[64+64*layer+at:], value) }
	}
	for _, tt := range []struct {
		name  string
		set   func(header, state []byte, value uint64)
		value uint64
	}{
		{"a layer that begins before the first of its generation", field(1, 56), 5},
		{"a layer that begins a little after the first of its generation", field(1, 56), uint64(1_000_000_000_000_000_000 + 5)},
		{"a further layer of a rate that is not its own", field(1, 40), math.Float64bits(1e-3)},
		{"more keys than the bits give", field(2, 32), 1 << 44},
		{"a layer that begins after all time", field(2, 56), 1<<62 + 1},
		{"more generations than there are", func(header, _ []byte, g uint64) { le.PutUint64(header[48:], g) }, 61},
	} {
		began := time.Now()
		_, err := readWindow(edited(t, w, func(header, state []byte) { tt.set(header, state, tt.value) }), 1<<30)
		if !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", tt.name, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: refused after %v", tt.name, took)
		}
	}
}
