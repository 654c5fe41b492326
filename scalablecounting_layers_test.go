package bloom_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bloomery/bloom"
)

// TestScalableCountingDrops: layers go when they are empty and all older ones have gone, in
// whatever order they became empty, and the newest stays.
func TestScalableCountingDrops(t *testing.T) {
	f := mustGrow(t, bloom.ScalableConfig{First: 300, Rate: 1e-6}) // no mistakes
	var keys [4][]uint64                                           // of each layer
	for key := uint64(0); len(keys[3]) < 100; key++ {
		f.AddUint64(key)
		keys[f.LayerCount()-1] = append(keys[f.LayerCount()-1], key)
	}
	remove := func(keys []uint64, layers int) {
		t.Helper()
		for _, key := range keys {
			if !f.RemoveUint64(key) {
				t.Fatalf("key %d was added, and cannot be removed", key)
			}
		}
		if f.LayerCount() != layers || dropped(f) != uint64(4-layers) {
			t.Fatalf("there are %d layers, and %d were dropped, want %d", f.LayerCount(), dropped(f), layers)
		}
	}
	remove(keys[1], 4)
	remove(keys[2][1:], 4)
	remove(keys[0][1:], 4)
	remove(keys[0][:1], 2)
	if !f.ContainsUint64(keys[2][0]) {
		t.Fatal("a key was dropped with its layer")
	}
	f = reread(t, f, bloom.ReadScalableCounting)
	remove(nil, 2)
	remove(keys[2][:1], 1)
	remove(keys[3], 1)
	if f.Len() != 0 || f.Report().Fill != 0 || f.Plan().Keys < 8*300 {
		t.Errorf("all keys were removed, and it is %v", f)
	}
	for key := range uint64(10_000) {
		f.AddUint64(key)
	}
	if rates := f.Layers(); len(rates) < 2 || rates[1].Plan.Rate < rates[0].Plan.Rate || f.Plan().Rate > 1e-6 {
		t.Errorf("after drops a new layer has the rate of its place; the plan is %v, of %d layers", f.Plan(), len(rates))
	}
	if f.Clear(); f.LayerCount() != 1 || dropped(f) != 0 || f.Plan().Keys > 600 {
		t.Errorf("Clear leaves %v", f)
	}
}

// TestScalableCountingSaturated: a layer in which counters stay has not forgotten all keys,
// and stays, too.
func TestScalableCountingSaturated(t *testing.T) {
	f := mustGrow(t, bloom.ScalableConfig{First: 100, Rate: 1e-6})
	for range 20 {
		f.AddString("again and again")
	}
	key := uint64(0)
	for ; f.LayerCount() < 2; key++ {
		f.AddUint64(key)
	}
	f = reread(t, f, bloom.ReadScalableCounting)
	for i := range key - 1 {
		f.RemoveUint64(i)
	}
	for range 20 {
		f.RemoveString("again and again")
	}
	stuck := f.Saturated()
	if stuck == 0 || f.LayerCount() != 2 || f.Len() != 1 || f.Layers()[0].Added != 0 || !f.ContainsString("again and again") {
		t.Errorf("of %d layers one has %d saturated counters, and %d keys are left", f.LayerCount(), stuck, f.Len())
	}
	f.RemoveUint64(key - 1)
	if f.RemoveString("again and again"); f.Len() != 0 || f.Saturated() != stuck {
		t.Errorf("a key removed more often than added leaves %d, and %d saturated counters", f.Len(), f.Saturated())
	}
	bloom.Inside.Saturate(f)
	if f.AddUint64(99) || f.LayerCount() != 2 || f.Saturated() != f.Plan().Bits || !f.ContainsString("never added") {
		t.Errorf("saturated, it is %v", f)
	}
}

// TestScalableCountingChurn: a filter whose keys come and go does not grow without end, nor
// does it use up its rate, whether or not its memory is limited.
func TestScalableCountingChurn(t *testing.T) {
	const n, turns = 3000, 100
	for _, budget := range []uint64{0, 80_000, 30_000} {
		f := mustGrow(t, bloom.ScalableConfig{First: 300, Rate: 0.01, Budget: budget})
		random := rand.New(rand.NewPCG(5, 6))
		var live []uint64
		most, layers := uint64(0), 0
		next := uint64(0)
		for turn := range turns {
			for len(live) < n {
				f.AddUint64(next)
				live = append(live, next)
				next++
			}
			most, layers = max(most, f.Bytes()), max(layers, f.LayerCount())
			if r := f.Report(); f.Err() == nil && (f.Plan().Rate > 0.01 || r.Rate > 0.012) {
				t.Errorf("budget %d, turn %d: the rate is %g", budget, turn, r.Rate)
			}
			for _, key := range live {
				if !f.ContainsUint64(key) {
					t.Fatalf("budget %d, turn %d: key %d is lost", budget, turn, key)
				}
			}
			if turn%3 == 0 { // not always the oldest
				random.Shuffle(n, func(i, j int) { live[i], live[j] = live[j], live[i] })
			}
			for _, key := range live[:n*2/3] {
				if !f.RemoveUint64(key) {
					t.Fatalf("budget %d, turn %d: key %d cannot be removed", budget, turn, key)
				}
			}
			live = live[n*2/3:]
		}
		if budget == 0 && most > 4*2*2*n*20/8 || budget > 0 && most > budget {
			t.Errorf("budget %d: %d keys at a time took %d bytes", budget, n, most)
		}
		if f.Err() != nil && budget == 0 || errors.Is(f.Err(), bloom.ErrLayers) || errors.Is(f.Err(), bloom.ErrRate) {
			t.Errorf("budget %d: %v", budget, f.Err())
		}
		t.Logf("budget %d: %d keys at a time, %d in all: at most %d bytes in %d layers, %d dropped; %v", budget, n, next, most, layers, dropped(f), f.Err())
	}
}

// TestScalableCountingAtItsLimit: from the first key that does not fit Err says so, until
// enough are removed; the memory stays as it is, and no key is lost.
func TestScalableCountingAtItsLimit(t *testing.T) {
	for _, budget := range []uint64{9000, 40_000, 400_000} {
		f := mustGrow(t, bloom.ScalableConfig{First: 1000, Rate: 0.01, Budget: budget})
		key := uint64(0)
		for ; f.Err() == nil; key++ {
			f.AddUint64(key)
		}
		plan, r := f.Plan(), f.Report()
		if !errors.Is(f.Err(), bloom.ErrBudget) || r.Rate > 0.01 || f.Bytes() > budget || f.Bytes()+2048 <= budget/2 || r.Remaining != 0 {
			t.Errorf("budget %d: full with %d keys in %d bytes, rate %g: %v", budget, r.Added, f.Bytes(), r.Rate, f.Err())
		}
		reread := reread(t, f.Clone(), bloom.ReadScalableCounting)
		if !errors.Is(reread.Err(), bloom.ErrBudget) {
			t.Errorf("budget %d: over-full, and from a file: %v", budget, reread.Err())
		}
		for _, g := range []*bloom.ScalableCounting{f, reread} {
			hashes := make([]uint64, 2*key)
			for i := range hashes {
				hashes[i] = g.HashString(storedKey(i))
			}
			g.AddHashes(hashes, nil)
			if g.ContainsHashes(hashes, nil) != len(hashes) || g.Plan() != plan || g.Report().Rate < 0.01 || g.Err() == nil {
				t.Errorf("budget %d: with three times as many keys as fit: %+v, %v", budget, g.Report(), g.Err())
			}
			for _, h := range hashes {
				g.RemoveHash(h)
			}
			for i := range key {
				if !g.ContainsUint64(i) {
					t.Fatalf("budget %d: key %d is lost", budget, i)
				}
			}
			if g.RemoveUint64(key - 1); g.Err() != nil || g.Report().Rate > 0.01 {
				t.Errorf("budget %d: with as many keys as fit the rate is %g, and the error %v", budget, g.Report().Rate, g.Err())
			}
		}
	}
	f := mustGrow(t, bloom.ScalableConfig{First: 10, Rate: 1e-11})
	for key := uint64(0); f.Err() == nil; key++ {
		f.AddUint64(key)
	}
	if !errors.Is(f.Err(), bloom.ErrRate) {
		t.Errorf("Err = %v, want ErrRate", f.Err())
	}
	if f.Clear(); f.Err() != nil || !f.AddUint64(1) {
		t.Errorf("after Clear: %v", f.Err())
	}
}

// dropped returns how many layers a filter had before those that it has now.
func dropped(f *bloom.ScalableCounting) uint64 {
	first, _ := bloom.Inside.CountingLayers(f)
	return first
}

// TestScalableCountingReplay changes a filter as a store does, and replays the log of what its
// counters were on an older copy, half of whose counters are newer than the others.
func TestScalableCountingReplay(t *testing.T) {
	type change struct {
		layer, h, counts uint64
		replay           func() error
	}
	f := mustGrow(t, bloom.ScalableConfig{First: 50, Rate: 0.3})
	random := rand.New(rand.NewPCG(7, 8))
	var live []uint64
	var g *bloom.ScalableCounting // the copy
	var log []change
	note := func(layer, h uint64) {
		first, layers := bloom.Inside.CountingLayers(f)
		c := change{layer: max(layer, first), h: h}
		if layer >= first {
			c.counts = bloom.Inside.Counts(layers[layer-first], h)
		}
		state := bloom.Inside.CountingState(f, c.layer)
		c.replay = func() error {
			done := layer < first
			return bloom.Inside.ReplayCounts(g, c.layer, state, func() (uint64, uint64, bool) {
				ok := !done
				done = true
				return c.h, c.counts, ok
			})
		}
		log = append(log, c)
	}
	churn := func(steps int) {
		for range steps {
			for len(live) > 1500 || len(live) > 0 && random.IntN(100) < 30 { // mostly of the oldest
				i := random.IntN((len(live) + 1) / 2)
				h := live[i]
				live = slices.Delete(live, i, i+1)
				layer, found := bloom.Inside.CountingLayer(f, h)
				if !found || !f.RemoveHash(h) {
					t.Fatal("a key is lost")
				}
				note(layer, h)
			}
			h := hashOf(random.Uint64N(5000))
			if bloom.Inside.CountingRoom(f, h) == 0 {
				plan, err := bloom.Inside.NextCountingLayer(f)
				if err != nil {
					t.Fatal(err)
				}
				before := f.Bytes()
				if err := bloom.Inside.GrowCounting(f); err != nil || f.Bytes()-before != 4*plan.Bytes() {
					t.Fatalf("a layer of %d bytes took %d, %v", 4*plan.Bytes(), f.Bytes()-before, err)
				}
			}
			_, found := bloom.Inside.CountingLayer(f, h)
			if isNew := f.AddHash(h); isNew == found {
				t.Fatalf("a key that a layer contains, %v, is new, %v", found, isNew)
			}
			layer, _ := bloom.Inside.CountingLayer(f, h)
			live = append(live, h)
			note(layer, h)
		}
	}
	for range 20 {
		churn(random.IntN(1000))
		g, log = f.Clone(), nil
		churn(500)
		// What the first half of the changes has touched is newer in part of the copy.
		first, layers := bloom.Inside.CountingLayers(f)
		mine, copies := bloom.Inside.CountingLayers(g)
		for i, c := range log[:len(log)/2] {
			if i%2 == 0 && c.layer >= max(first, mine) && c.layer-mine < uint64(len(copies)) {
				bloom.Inside.SetCounts(copies[c.layer-mine], c.h, bloom.Inside.Counts(layers[c.layer-first], c.h))
			}
		}
		churn(500)
		for _, c := range log {
			if err := c.replay(); err != nil {
				t.Fatal(err)
			}
		}
		if !g.Equal(f) || g.Len() != f.Len() || g.Removed() != f.Removed() || dropped(g) != dropped(f) {
			t.Fatalf("the replayed filter is\n%v, want\n%v", g, f)
		}
	}
	if dropped(f) == 0 {
		t.Error("no layer was dropped: this tests less than it should")
	}
	state := bloom.Inside.CountingState(f, 0)
	none := func() (h, counts uint64, ok bool) { return }
	if err := bloom.Inside.ReplayCounts(f, 1000, state, none); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("counts of a layer that cannot be: %v", err)
	}
	if state.First = 1000; !errors.Is(bloom.Inside.ReplayCounts(f, dropped(f), state, none), bloom.ErrFormat) {
		t.Error("all layers dropped: no error")
	}
}

// TestCountingImage: the pieces of an image are the file; what is added, removed and dropped
// between two of them is in it block by block, and the keys of a layer are recounted.
func TestCountingImage(t *testing.T) {
	f := mustGrow(t, bloom.ScalableConfig{First: 20_000, Rate: 1e-6})
	fixed := mustCount(t, bloom.Config{Keys: 200_000, Rate: 1e-6})
	const n = 100_000
	for i := range uint64(n) {
		f.AddUint64(i)
		fixed.AddUint64(i)
	}
	images := func(do func()) (files [2][]byte) {
		for i, kind := range []bloom.Any{f, fixed} {
			image, err := bloom.Inside.Image(kind)
			if err != nil {
				t.Fatal(err)
			}
			for {
				piece, err := image.Piece(uint64(len(files[i])), 2<<20)
				if err != nil {
					t.Fatal(err)
				}
				if len(piece) == 0 {
					break
				}
				files[i] = append(files[i], piece...)
				do()
			}
		}
		return files
	}
	files := images(func() {})
	for i, w := range []io.WriterTo{f, fixed} {
		var want bytes.Buffer
		if _, err := w.WriteTo(&want); err != nil || !bytes.Equal(files[i], want.Bytes()) {
			t.Errorf("image %d differs from the file, %v", i, err)
		}
	}
	gone := uint64(0)
	files = images(func() {
		for range 8000 {
			f.RemoveUint64(gone)
			fixed.RemoveUint64(gone)
			f.AddUint64(n + gone)
			fixed.AddUint64(n + gone)
			gone++
		}
	})
	if dropped := dropped(f); dropped == 0 || gone > n/2 {
		t.Fatalf("%d keys were replaced, and %d layers dropped", gone, dropped)
	}
	g, err := bloom.ReadScalableCounting(bytes.NewReader(files[0]), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	h, err := bloom.ReadCounting(bytes.NewReader(files[1]), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for i := gone; i < n; i++ {
		if !g.ContainsUint64(i) || !h.ContainsUint64(i) {
			t.Fatalf("key %d was there all the time, and is not in the file", i)
		}
	}
	for what, f := range map[string]interface {
		Len() uint64
		Report() bloom.Report
	}{"ScalableCounting": g, "Counting": h} {
		if r := f.Report(); math.Abs(float64(f.Len())-r.Keys) > 6*r.KeysError+float64(r.Rate)*n {
			t.Errorf("%s: %d keys are counted, and there are about %.0f", what, f.Len(), r.Keys)
		}
	}
}

// TestScalableCountingImpossible: files that are well formed and mean no filter.
func TestScalableCountingImpossible(t *testing.T) {
	le := binary.LittleEndian
	f := mustGrow(t, bloom.ScalableConfig{First: 300, Rate: 0.01})
	for i := range uint64(1000) {
		f.AddUint64(i)
	}
	read := func(r io.Reader) (*bloom.ScalableCounting, error) { return bloom.ReadScalableCounting(r, 1<<30) }
	for name, edit := range map[string]func(header, state []byte){
		"growth 1":                                 func(header, _ []byte) { le.PutUint64(header[48:], 1) },
		"growth 2^32 + 2":                          func(header, _ []byte) { le.PutUint64(header[48:], 1<<32+2) },
		"layers above their limit":                 func(header, _ []byte) { le.PutUint64(header[56:], 4096) },
		"rate 0":                                   func(header, _ []byte) { le.PutUint64(header[40:], 0) },
		"a rate below the layers'":                 func(header, _ []byte) { le.PutUint64(header[40:], math.Float64bits(0.001)) },
		"a billion keys in few blocks":             func(_, state []byte) { le.PutUint64(state[64+32:], 1<<30) },
		"another rate of a layer":                  func(_, state []byte) { le.PutUint64(state[64+40:], math.Float64bits(1e-5)) },
		"a count that the layers do not add up to": func(_, state []byte) { le.PutUint64(state[16:], 9) },
		"a start of a layer":                       func(_, state []byte) { le.PutUint64(state[64+56:], 9) },
		"bytes behind the dropped layers":          func(_, state []byte) { state[56] = 1 },
	} {
		if _, err := read(edited(t, f, edit)); !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", name, err)
		}
	}
	if _, err := read(edited(t, f, func(_, _ []byte) {})); err != nil {
		t.Error(err)
	}
	// Counts that the counters belie, as an image may have them: the counters are right.
	g, err := read(edited(t, f, func(_, state []byte) {
		le.PutUint64(state[64+48:], 0)
		le.PutUint64(state[16:], f.Len()-f.Layers()[0].Added)
	}))
	if err != nil || g.Len() != f.Len() || !g.Equal(f) {
		t.Errorf("with a count of no keys it has %v, want %d, %v", g, f.Len(), err)
	}
	// Counters that are no sum of keys: no removal may take the count below zero, or have a
	// layer dropped that has some.
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	b := file.Bytes()
	end := len(b) - 8
	b[12288] ^= 1
	le.PutUint32(b[end:], crc32.Checksum(b[12288:end], crc32.MakeTable(crc32.Castagnoli)))
	le.PutUint32(b[end+4:], crc32.Checksum(b[end:end+4], crc32.MakeTable(crc32.Castagnoli)))
	odd, err := read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(1000) {
		odd.RemoveUint64(i)
	}
	if odd.Len() > 1000 || odd.LayerCount() > 1 && odd.Layers()[0].Fill == 0 {
		t.Errorf("%d keys are left in %d layers", odd.Len(), odd.LayerCount())
	}
}

func TestScalableCountingClosed(t *testing.T) {
	f := mustGrow(t, bloom.ScalableConfig{Rate: 0.01})
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
		"Clone":    func() { f.Clone() },
		"Clear":    func() { f.Clear() },
		"Equal":    func() { f.Equal(f) },
		"WriteTo":  func() { f.WriteTo(io.Discard) },
	} {
		if panicOf(call) == "" {
			t.Errorf("%s of a closed filter does not panic", name)
		}
	}
}

func TestScalableCountingNoAllocations(t *testing.T) {
	f := mustGrow(t, bloom.ScalableConfig{First: 100_000, Rate: 0.01})
	noAllocations(t, f)
	for key := uint64(0); f.LayerCount() < 2; key++ {
		f.AddUint64(key)
	}
	noAllocations(t, f)
	for name, call := range map[string]func(){
		"Remove": func() { f.AddUint64(1 << 50); f.RemoveUint64(1 << 50) },
		"Count":  func() { f.CountUint64(7) },
	} {
		if n := testing.AllocsPerRun(1000, call); n != 0 && !raceEnabled {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkScalableCounting(b *testing.B) {
	f, err := bloom.NewScalableCounting(10_000, 0.01)
	if err != nil {
		b.Fatal(err)
	}
	for i := range uint64(100_000) {
		f.AddUint64(i)
	}
	hashes := make([]uint64, 1024)
	for i := range hashes {
		hashes[i] = f.Hash(binary.LittleEndian.AppendUint64(nil, uint64(i)*97))
	}
	for name, call := range map[string]func(i uint64){
		"add and remove": func(i uint64) { f.AddUint64(i + 1e6); f.RemoveUint64(i + 1e6) },
		"hit":            func(i uint64) { f.ContainsUint64(i) },
		"miss":           func(i uint64) { f.ContainsUint64(i + 1e6) },
		"1024 hits":      func(uint64) { f.ContainsHashes(hashes, nil) },
	} {
		b.Run(name, func(b *testing.B) {
			for i := uint64(0); b.Loop(); i++ {
				call(i % 100_000)
			}
		})
	}
}
