package redisbloom_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
	"pgregory.net/rapid"
)

func numbered(i int) []byte { return fmt.Appendf(nil, "https://example.com/%d", i) }

// TestOneWinner has goroutines add the same keys in other orders, single and
// in batches, while the chain grows: a key has at most one winner, and is
// contained as soon as one of them is through. Readers run beside them.
func TestOneWinner(t *testing.T) {
	for _, tt := range []struct {
		name    string
		config  redisbloom.Config
		already uint64 // items that the first layer says it has
		keys    int
	}{
		{"many small layers", redisbloom.Config{Keys: 20, Growth: 1}, 0, 400},
		{"from small to large", redisbloom.Config{Keys: 100, Growth: 4}, 0, 6000},
		{"under stripes", redisbloom.Config{Keys: 800_000, Rate: 1e-4}, 0, 6000},
		{"under stripes and over their end", redisbloom.Config{Keys: 800_000, Rate: 1e-4, Growth: 1}, 797_000, 6000},
		{"under stripes and full", redisbloom.Config{Keys: 800_000, Rate: 1e-4, NonScaling: true}, 797_000, 6000},
		{"full", redisbloom.Config{Keys: 1000, NonScaling: true}, 0, 3000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := mustChain(t, tt.config)
			c.SetItems(0, tt.already)
			winners := make([]atomic.Int32, tt.keys)
			var wait sync.WaitGroup
			for worker := range 4 {
				wait.Go(func() { raceToAdd(t, c, rand.New(rand.NewPCG(uint64(worker), 1)), winners) })
			}
			wait.Wait()
			won := uint64(0)
			for i := range winners {
				if n := winners[i].Load(); n > 1 {
					t.Errorf("%d goroutines were told that key %d is new", n, i)
				} else {
					won += uint64(n)
				}
			}
			info := c.Info()
			if info.Items != won+tt.already {
				t.Errorf("%d items, but %d keys were new", info.Items-tt.already, won)
			}
			layers := c.Layers()
			for i, l := range layers {
				if l.Items > l.Capacity || i < len(layers)-1 && l.Items != l.Capacity {
					t.Errorf("layer %d has %d items, made for %d", i, l.Items, l.Capacity)
				}
			}
			if tt.config.NonScaling && info.Items != tt.config.Keys {
				t.Errorf("%d keys, room for %d", info.Items, tt.config.Keys)
			}
		})
	}
}

// raceToAdd adds all keys in an order of its own.
func raceToAdd(t *testing.T, c *redisbloom.Filter, random *rand.Rand, winners []atomic.Int32) {
	order := random.Perm(len(winners))
	for len(order) > 0 {
		part := order[:min(len(order), 1+random.IntN(700))]
		order = order[len(part):]
		pairs, isNew := make([]redisbloom.Pair, len(part)), make([]bool, len(part))
		for i, key := range part {
			pairs[i][0], pairs[i][1] = redisbloom.Hash(numbered(key))
		}
		for len(pairs) > 0 {
			done, err := 1, error(nil)
			if random.IntN(50) == 0 {
				isNew[0], err = c.AddPair(pairs[0][0], pairs[0][1])
			} else {
				done, _, err = c.AddPairs(pairs, isNew)
			}
			if err != nil {
				if !errors.Is(err, redisbloom.ErrFull) {
					t.Error(err)
				}
				done = min(done, len(pairs)-1)
				pairs, isNew, part = pairs[done+1:], isNew[done+1:], part[done+1:]
				continue
			}
			for i := range done {
				if isNew[i] {
					winners[part[i]].Add(1)
				}
			}
			if n := c.ContainsPairs(pairs[:done], nil); n != done {
				t.Errorf("%d of %d keys that were added are contained", n, done)
			}
			pairs, isNew, part = pairs[done:], isNew[done:], part[done:]
		}
	}
}

// modelChain is RedisBloom's algorithm as its documentation has it, with a map for
// each layer's bits.
type modelChain struct {
	growth uint64
	fixed  bool
	layers []*modelLayer
}

type modelLayer struct {
	bits, size, entries uint64
	probes              int
	set                 map[uint64]bool
}

func (l *modelLayer) positions(p redisbloom.Pair) (at []uint64) {
	for i := range uint64(l.probes) {
		at = append(at, (p[0]+i*p[1])%l.bits)
	}
	return at
}

func (m *modelChain) contains(p redisbloom.Pair) bool {
	for _, l := range m.layers {
		if !slices.ContainsFunc(l.positions(p), func(i uint64) bool { return !l.set[i] }) {
			return true
		}
	}
	return false
}

// add answers, and says in which layer the key is now; sized sizes the next one.
func (m *modelChain) add(p redisbloom.Pair, sized func(i int) *modelLayer) (isNew bool, layer int, full bool) {
	if m.contains(p) {
		return false, -1, false
	}
	last := m.layers[len(m.layers)-1]
	if last.size >= last.entries {
		if m.fixed {
			return false, -1, true
		}
		last = sized(len(m.layers))
		m.layers = append(m.layers, last)
	}
	for _, i := range last.positions(p) {
		last.set[i] = true
	}
	last.size++
	return true, len(m.layers) - 1, false
}

// TestModel runs random batches through a chain and the model, and now and
// then sends the chain through a dump, a file or Redis's own value, or rebuilds it
// from a log of its adds.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := redisbloom.Config{
			Keys:       rapid.Uint64Range(1, 40).Draw(t, "keys"),
			Rate:       rapid.SampledFrom([]float64{0.5, 0.1, 0.01, 1e-6}).Draw(t, "rate"),
			Growth:     rapid.Uint32Range(1, 4).Draw(t, "growth"),
			NonScaling: rapid.Bool().Draw(t, "non-scaling"),
		}
		c, err := redisbloom.New(config)
		if err != nil {
			t.Fatal(err)
		}
		empty := c.Header()
		sized := func(i int) *modelLayer { // the sizes are tested by the vectors
			l := c.Layers()[i]
			return &modelLayer{bits: l.Bits, entries: l.Capacity, probes: l.Probes, set: map[uint64]bool{}}
		}
		model := &modelChain{growth: uint64(config.Growth), fixed: config.NonScaling, layers: []*modelLayer{sized(0)}}
		log := map[int][]redisbloom.Pair{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				c = anotherWay(t, c, rapid.IntRange(0, 2).Draw(t, "way"))
			case 1:
				c = replayed(t, c, empty, log)
			default:
				addBatch(t, c, model, sized, log)
			}
			compareModel(t, c, model)
		}
	})
}

// addBatch adds keys, some of them repeated, and compares answers and layers.
func addBatch(t *rapid.T, c *redisbloom.Filter, model *modelChain, sized func(int) *modelLayer, log map[int][]redisbloom.Pair) {
	ids := rapid.SliceOfN(rapid.IntRange(0, 300), 1, 60).Draw(t, "ids")
	pairs := make([]redisbloom.Pair, len(ids))
	for i, id := range ids {
		pairs[i][0], pairs[i][1] = redisbloom.Hash(numbered(id))
	}
	isNew := make([]bool, len(pairs))
	for len(pairs) > 0 {
		done, layer, err := c.AddPairs(pairs, isNew)
		for i := range done {
			want, wantLayer, full := model.add(pairs[i], sized)
			if isNew[i] != want || full || want && wantLayer != layer {
				t.Fatalf("adding %x: %v in layer %d, want %v in %d, full %v", pairs[i], isNew[i], layer, want, wantLayer, full)
			}
			if want {
				log[layer] = append(log[layer], pairs[i])
			}
		}
		pairs, isNew = pairs[done:], isNew[done:]
		if err != nil {
			if _, _, full := model.add(pairs[0], sized); !full || !errors.Is(err, redisbloom.ErrFull) {
				t.Fatalf("adding %x: %v, but the model is not full", pairs[0], err)
			}
			pairs, isNew = pairs[1:], isNew[1:]
		}
	}
}

// anotherWay copies a chain by its dump, a file, or Redis's value.
func anotherWay(t *rapid.T, c *redisbloom.Filter, way int) *redisbloom.Filter {
	var file bytes.Buffer
	var err error
	switch way {
	case 0:
		iterator, data := c.ScanDump(0)
		loaded, err := redisbloom.LoadHeader(data, nil)
		for err == nil {
			if iterator, data = c.ScanDump(iterator); iterator == 0 {
				return loaded
			}
			half := len(data) / 2 // a client may cut chunks up
			err = errors.Join(loaded.LoadChunk(iterator-int64(len(data)-half), data[:half]), loaded.LoadChunk(iterator, data[half:]))
		}
		t.Fatal(err)
	case 1:
		_, err = c.WriteTo(&file)
	case 2:
		err = c.WritePayload(&file)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, ok := interop.Recognise(file.Bytes()[:min(file.Len(), 64)], int64(file.Len()))
	if !ok {
		t.Fatal("the file is not recognised")
	}
	read, err := f.Read(&file, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return read.Filter.(*redisbloom.Filter)
}

// replayed makes the chain again from what a server's log would hold.
func replayed(t *rapid.T, c *redisbloom.Filter, empty []byte, log map[int][]redisbloom.Pair) *redisbloom.Filter {
	again, err := redisbloom.LoadHeader(empty, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range c.Layers() {
		if i > 0 {
			if err := again.Grow(); err != nil {
				t.Fatal(err)
			}
		}
		again.Replay(i, log[i])
		again.SetItems(i, l.Items)
	}
	return again
}

func compareModel(t *rapid.T, c *redisbloom.Filter, model *modelChain) {
	layers := c.Layers()
	if len(layers) != len(model.layers) {
		t.Fatalf("%d layers, want %d", len(layers), len(model.layers))
	}
	for i, l := range layers {
		want := model.layers[i]
		if l.Items != want.size || l.Capacity != want.entries || l.Bits != want.bits {
			t.Fatalf("layer %d: %+v, want %d of %d", i, l, want.size, want.entries)
		}
	}
	keys, want := make([][]byte, 400), make([]bool, 400)
	for i := range keys {
		keys[i] = numbered(i)
		a, b := redisbloom.Hash(keys[i])
		want[i] = model.contains(redisbloom.Pair{a, b})
		if c.Contains(keys[i]) != want[i] {
			t.Fatalf("Contains(%s) = %v, want %v", keys[i], !want[i], want[i])
		}
	}
	found := make([]bool, 400)
	if c.ContainsMany(keys, found); !slices.Equal(found, want) {
		t.Fatalf("ContainsMany = %v, want %v", found, want)
	}
}

// TestAllocations: promise 7.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what is put into them")
	}
	for _, config := range []redisbloom.Config{{Keys: 100_000}, {Keys: 1_000_000, Rate: 1e-3}} {
		c := mustChain(t, config)
		if config.Keys == 100_000 && c.Grow() != nil {
			t.Fatal("the chain does not grow")
		}
		keys, answers := make([][]byte, 100), make([]bool, 100)
		for i := range keys {
			keys[i] = numbered(i)
		}
		i := 0
		for name, do := range map[string]func(){
			"Add":          func() { i++; c.Add(keys[i%100]) },
			"Contains":     func() { i++; c.Contains(keys[i%100]) },
			"AddMany":      func() { c.AddMany(keys, answers) },
			"ContainsMany": func() { c.ContainsMany(keys, nil) },
		} {
			if n := testing.AllocsPerRun(200, do); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	}
}

// TestMemory: a small chain takes its bits and at most 200 bytes more.
func TestMemory(t *testing.T) {
	const chains = 10_000
	kept := make([]*redisbloom.Filter, chains)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range kept {
		c, err := redisbloom.New(redisbloom.Config{Keys: 100, Rate: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		kept[i] = c
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / chains
	bits := float64(kept[0].Layers()[0].Bytes)
	t.Logf("%.1f bytes a chain, of which %.0f are bits", each, bits)
	if each > bits+200 {
		t.Errorf("%.1f bytes a chain, of which %.0f are bits: more than 200 on top", each, bits)
	}
	runtime.KeepAlive(kept)
}

// TestReport: what the bits say fits what was added, over several layers.
func TestReport(t *testing.T) {
	c := mustChain(t, redisbloom.Config{Keys: 1000, Rate: 0.01})
	const n = 6000
	for i := range n {
		c.Add(numbered(i))
	}
	r := c.Report()
	if r.Added != c.Info().Items || r.Plan.Keys != 7000 || r.Plan.Bits == 0 {
		t.Errorf("report %+v of %v", r, c)
	}
	if diff := r.Keys - float64(r.Added); diff < -5*r.KeysError || diff > 5*r.KeysError || r.KeysError == 0 || r.KeysError > n/20 {
		t.Errorf("%.0f keys +- %.1f, want %d", r.Keys, r.KeysError, r.Added)
	}
	const strangers = 100_000
	found := 0
	for i := range strangers {
		if c.Contains(numbered(n + i)) {
			found++
		}
	}
	if rate := float64(found) / strangers; rate < 0.8*r.Rate || rate > 1.2*r.Rate {
		t.Errorf("measured rate %v, report %v", rate, r.Rate)
	}
	if r.Rate > r.Plan.Rate || r.Plan.Rate > 0.01 {
		t.Errorf("rate %v, plan %v", r.Rate, r.Plan.Rate)
	}
}

// TestBudget: a layer that the budget does not hold is refused, with its
// bytes, and the chain goes on answering.
func TestBudget(t *testing.T) {
	grant, release := redisbloom.Budget(1000)
	c := mustChain(t, redisbloom.Config{Keys: 100, Growth: 8, Grant: grant})
	if _, err := redisbloom.New(redisbloom.Config{Keys: 10_000, Grant: grant}); !errors.Is(err, bloom.ErrBudget) {
		t.Errorf("a chain over the budget: %v", err)
	}
	var keys [][]byte
	for i := range 150 {
		keys = append(keys, numbered(i))
	}
	if n := c.AddMany(keys, nil); uint64(n) != 100 || c.Info().Filters != 1 {
		t.Errorf("%d keys added to %v", n, c)
	}
	a, b := redisbloom.Hash([]byte("one more"))
	if _, err := c.AddPair(a, b); !errors.Is(err, redisbloom.ErrInsert) || !errors.Is(err, bloom.ErrBudget) {
		t.Errorf("a layer over the budget: %v", err)
	}
	if isNew := c.Add(keys[0]); isNew || !c.Contains(keys[0]) {
		t.Error("the first key is not there any more")
	}
	// A batch on a full chain answers false from there on.
	isNew := make([]bool, len(keys))
	for i := range isNew {
		isNew[i] = true
	}
	if n := c.AddMany(keys, isNew); n != 0 || slices.Contains(isNew, true) {
		t.Errorf("%d keys are new, answers %v", n, isNew)
	}
	c.SetGrant(nil, nil)
	if !c.Add([]byte("one more")) || c.Info().Filters != 2 {
		t.Errorf("without a budget: %v", c)
	}
	// That chain has no Release, so its 144 bytes of bits, and 128 of the layer, stay
	// taken; others give theirs back.
	for range 10 {
		c := mustChain(t, redisbloom.Config{Keys: 100, Grant: grant, Release: release})
		if err := c.Grow(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	c = mustChain(t, redisbloom.Config{Keys: 100, Grant: grant, Release: release})
	c.SetGrant(nil, nil)
	if err := grant(1000 - 144 - 128); err != nil {
		t.Errorf("after all others are closed, or have another Grant: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		config redisbloom.Config
		want   error
	}{
		{redisbloom.Config{Rate: 1}, bloom.ErrConfig},
		{redisbloom.Config{Rate: -0.1}, bloom.ErrConfig},
		{redisbloom.Config{Keys: 1 << 63}, bloom.ErrLimit},
		{redisbloom.Config{Rate: math.SmallestNonzeroFloat64}, bloom.ErrLimit}, // half of it is zero
	} {
		if c, err := redisbloom.New(tt.config); !errors.Is(err, tt.want) {
			t.Errorf("New(%+v) = %v, %v, want %v", tt.config, c, err, tt.want)
		}
	}
	c := mustChain(t, redisbloom.Config{Keys: 1 << 20, Growth: 1 << 31, Rate: 1e-9})
	if err := c.Grow(); !errors.Is(err, redisbloom.ErrInsert) || !errors.Is(err, bloom.ErrLimit) {
		t.Errorf("a layer of 2^51 keys: %v", err)
	}
	mustPanic := func(name string, do func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s did not panic", name)
			}
		}()
		do()
	}
	mustPanic("ContainsMany with too few answers", func() { c.ContainsMany(make([][]byte, 2), make([]bool, 1)) })
	mustPanic("Replay into no layer", func() { c.Replay(7, nil) })
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	mustPanic("Add to a closed chain", func() { c.Add(nil) })
	mustPanic("Contains of a closed chain", func() { c.Contains(nil) })
	mustPanic("AddMany to a closed chain", func() { c.AddMany(make([][]byte, 1), nil) })
	mustPanic("Info of a closed chain", func() { c.Info() })
	mustPanic("ScanDump of a closed chain", func() { c.ScanDump(1) })
	mustPanic("LoadChunk into a closed chain", func() { c.LoadChunk(1, nil) })
}

func mustChain(t testing.TB, config redisbloom.Config) *redisbloom.Filter {
	t.Helper()
	c, err := redisbloom.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
