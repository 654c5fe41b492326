package bloom

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/rate"
)

// chain is what a Scalable or a Window looks in: filters of one hash, the newest
// first. A chain does not change its shape. Whoever grows or turns it makes
// another and puts that in its place, so that readers need no lock.
//
// Only the newest layer is written. That makes one winner of those that add a
// key at the same time:
//
//   - What the older layers said of a key stays true, they are frozen; so they
//     are asked before any lock is taken.
//   - The newest layer decides by itself, as Shared does, under the lock of
//     the key's block.
//   - In between the chain must not change. So whoever adds holds one of its
//     gates, the one chosen by the hash, and looks whether the chain is still in
//     its place; who replaces it holds them all.
type chain struct {
	layers []*Shared
	gates  []gate

	// room is how many new keys the newest layer may still take, but for those
	// that its gates have taken out: see refill.
	room atomic.Int64

	err error // why the chain takes, or took, more keys than planned

	// The rest is a Window's: when the generation of each layer began, nanoseconds
	// after the window's origin; how many layers the newest generation has; whether
	// that takes more keys than planned, without counting them; and the start of the
	// newest generation that did, for err.
	starts     []int64
	newest     int
	overfull   bool
	overfullAt int64
}

// gate is a lock on a cache line of its own, and the number of new keys that may
// go through it before room is asked again: then goroutines seldom meet at room.
type gate struct {
	sync.Mutex
	left int64
	_    [48]byte
}

const (
	// maxLayers is above what any growth factor reaches before the keys of a
	// layer do maxKeys. A Window's are as many as a file can hold, which is less.
	maxLayers = 64

	maxGates    = 64
	keysPerGate = 1024 // gates of less would take more memory than they are worth

	unlimited = math.MaxInt64 / 2 // room

	never = math.MinInt64 // overfullAt
)

func newChain(layers []*Shared, room int64) *chain {
	gates := uint64(1) << bits.Len64(layers[0].plan.Keys/keysPerGate)
	c := &chain{layers: layers, gates: make([]gate, min(gates, maxGates)), overfullAt: never}
	c.room.Store(room)
	return c
}

// newRing is newChain for a Window: layers and starts newest first.
func newRing(layers []*Shared, starts []int64, room int64) *chain {
	c := newChain(layers, room)
	c.starts, c.newest = starts, 1
	for !c.isFirst(c.newest - 1) {
		c.newest++
	}
	return c
}

// isFirst reports whether the i-th layer is the first, so the oldest, of its
// generation.
func (c *chain) isFirst(i int) bool {
	return i+1 == len(c.starts) || c.starts[i+1] != c.starts[i]
}

// generations is how many there are in a Window's chain.
func (c *chain) generations() (n int) {
	for i := range c.layers {
		if c.isFirst(i) {
			n++
		}
	}
	return n
}

// gate is where a key goes through.
func (c *chain) gate(h uint64) *gate { return &c.gates[h&uint64(len(c.gates)-1)] }

func (c *chain) lock() {
	for i := range c.gates {
		c.gates[i].Lock()
	}
}

func (c *chain) unlock() {
	for i := range c.gates {
		c.gates[i].Unlock()
	}
}

// refill lets some new keys through a gate, which the caller holds: fewer, the
// less room there is. It reports whether there was any.
func (c *chain) refill(g *gate) bool {
	g.left = c.take(max(c.room.Load()/int64(4*len(c.gates)), 1))
	return g.left > 0
}

// take takes room for n new keys, or as many as there is room for.
func (c *chain) take(n int64) int64 {
	for {
		room := c.room.Load()
		n = min(n, room)
		if n <= 0 || c.room.CompareAndSwap(room, room-n) {
			return max(n, 0)
		}
	}
}

// collect takes back what is left at the gates, all of which the caller holds,
// and returns the room there is: exactly what the newest layer's plan leaves.
func (c *chain) collect() int64 {
	for i := range c.gates {
		c.room.Add(c.gates[i].left)
		c.gates[i].left = 0
	}
	return c.room.Load()
}

// freeze returns the filter for use in a chain where nobody adds to it any more:
// the same bits, without the locks, which would be an eighth of a small filter's
// size. The caller holds all gates.
func (f *Shared) freeze() *Shared {
	frozen := f.sameBits(make([]kernel.Stripe, 1))
	frozen.stripes[0].Count(f.added())
	return frozen
}

// emptied clears the bits and returns the filter that has them. Lookups that
// still have f in their chain may answer either way.
func (f *Shared) emptied() *Shared {
	kernel.ClearShared(f.bits.Words)
	runtime.KeepAlive(f)
	return f.sameBits(kernel.NewStripes(f.bits.Blocks))
}

func (f *Shared) sameBits(stripes []kernel.Stripe) *Shared {
	return &Shared{bits: f.bits, stripes: stripes, Hasher: f.Hasher, plan: f.plan, memory: f.memory}
}

func (c *chain) containsHash(h uint64) bool {
	found := anyContains(c.layers, h)
	runtime.KeepAlive(c)
	return found
}

// anyContains asks layer by layer. The answer is no for nearly all, so the
// processor goes on to the next layer before it is there, and their cache misses
// overlap.
func anyContains(layers []*Shared, h uint64) bool {
	for _, layer := range layers {
		if layer.bits.ContainsSync(h) {
			return true
		}
	}
	return false
}

func (c *chain) containsBatch(hashes []uint64, found []bool) int {
	s := newSieve(hashes)
	clear(found)
	n := 0
	for i, layer := range c.layers {
		n += s.drop(i, layer, found)
	}
	runtime.KeepAlive(c)
	sieves.Put(s)
	return n
}

// sieve is a chunk of keys on their way through the layers, from the newest to
// the oldest. Only those that a layer does not have go on to the next: the newest
// layers have most of the keys.
type sieve struct {
	hashes  [chunk]uint64
	at      [chunk]uint16 // where the key stands in its chunk
	answers [chunk]bool
	seen    [chunk]bool
	n       int // keys still in the sieve

	// recent guesses from the calls before; a wrong guess costs time, so it does
	// no harm that the pool mixes filters up.
	recent [maxLayers]kernel.Recent
}

var sieves = sync.Pool{New: func() any { return new(sieve) }}

func newSieve(hashes []uint64) *sieve {
	s := sieves.Get().(*sieve)
	s.n = copy(s.hashes[:], hashes)
	for i := range s.n {
		s.at[i] = uint16(i)
	}
	return s
}

// drop takes the keys out that the layer, the i-th, has, and returns how many.
// found, if not nil, becomes true where they stand in their chunk.
func (s *sieve) drop(i int, layer *Shared, found []bool) int {
	if s.n == 0 {
		return 0
	}
	hits := layer.bits.ContainsBatchSync(s.hashes[:s.n], s.answers[:s.n], &s.recent[i])
	if hits == 0 {
		return 0
	}
	kept := 0
	for j, has := range s.answers[:s.n] {
		if has {
			if found != nil {
				found[s.at[j]] = true
			}
			continue
		}
		s.hashes[kept], s.at[kept] = s.hashes[j], s.at[j]
		kept++
	}
	s.n = kept
	return hits
}

// addTo adds the first n keys to the layer, takes them out and returns how many
// were new to it. isNew, of the whole chunk, says which.
func (s *sieve) addTo(layer *Shared, n int, isNew []bool) (added int) {
	added = layer.bits.AddBatchSync(layer.stripes, s.hashes[:n], s.answers[:n])
	for j, is := range s.answers[:n] {
		isNew[s.at[j]] = is
	}
	copy(s.hashes[:], s.hashes[n:s.n])
	copy(s.at[:], s.at[n:s.n])
	s.n -= n
	return added
}

// look notes which keys in the sieve any of the layers has, from the first-th on.
func (s *sieve) look(layers []*Shared, first int) {
	clear(s.seen[:s.n])
	for i := first; i < len(layers); i++ {
		if layers[i].bits.ContainsBatchSync(s.hashes[:s.n], s.answers[:s.n], &s.recent[i]) == 0 {
			continue
		}
		for j, has := range s.answers[:s.n] {
			s.seen[j] = s.seen[j] || has
		}
	}
}

// addUnseen adds the first n keys to the layer and takes them out. changed counts
// those that were new to the layer, and added those of them that look has not seen:
// for these isNew, of the whole chunk, becomes true.
func (s *sieve) addUnseen(layer *Shared, n int, isNew []bool) (changed, added int) {
	changed = layer.bits.AddBatchSync(layer.stripes, s.hashes[:n], s.answers[:n])
	for j, is := range s.answers[:n] {
		if is && !s.seen[j] {
			isNew[s.at[j]] = true
			added++
		}
	}
	copy(s.hashes[:], s.hashes[n:s.n])
	copy(s.at[:], s.at[n:s.n])
	s.n -= n
	return changed, added
}

// reports are those of the layers, oldest first.
func (c *chain) reports() []Report {
	reports := make([]Report, len(c.layers))
	for i, layer := range c.layers {
		reports[len(reports)-1-i] = layer.Report()
	}
	return reports
}

// plan sums up the layers' plans. A stranger is found if any layer finds it, so
// its chance is at most the sum of theirs.
func (c *chain) plan() Plan {
	sum := c.layers[0].plan
	for _, layer := range c.layers[1:] {
		sum = sum.plus(layer.plan)
	}
	return sum
}

// plus adds a layer up with others.
func (p Plan) plus(layer Plan) Plan {
	p.Keys += layer.Keys
	p.Rate += layer.Rate
	p.Bits += layer.Bits
	p.Blocks += layer.Blocks
	return p
}

// report sums up the layers' reports.
func (c *chain) report() Report { return summed(c.reports()) }

// summed sums up reports of layers, oldest first. The rate is that of layers that
// answer independently of each other, as they do when no key is in two of them; if
// keys are, it is less.
func summed(layers []Report) Report {
	sum := Report{Plan: layers[len(layers)-1].Plan}
	for _, r := range layers[:len(layers)-1] {
		sum.Plan = sum.Plan.plus(r.Plan)
	}
	var all rate.Layers
	for _, r := range layers {
		all.Add(r.Rate, r.RateError, r.Keys, r.KeysError)
		sum.Fill += r.Fill * float64(r.Plan.Bits) / float64(sum.Plan.Bits)
		sum.Added += r.Added
	}
	sum.Rate, sum.RateError = all.Rate(), all.RateError
	sum.Keys, sum.KeysError = all.Keys, all.KeysError
	if left := float64(sum.Plan.Keys) - sum.Keys; left > 0 {
		sum.Remaining = uint64(left)
	}
	return sum
}

func (c *chain) close() (first error) {
	for _, layer := range c.layers {
		if err := layer.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// mustBeOpen is for saving; see [Filter.mustBeOpen].
func (c *chain) mustBeOpen() { c.layers[0].mustBeOpen() }

// sections are those of the layers for a file, oldest first, and words their bits,
// which others may be setting. The counts come before the bits are copied, so that
// they never count a key that is not there.
func (c *chain) sections() (sections []filterfile.Section, words [][]uint64) {
	for _, layer := range slices.Backward(c.layers) {
		sections = append(sections, filterfile.Section{
			Kind:   filterfile.SectionPaired,
			Probes: uint32(layer.plan.Probes),
			Blocks: layer.plan.Blocks,
			Keys:   layer.plan.Keys,
			Rate:   layer.plan.Rate,
			Added:  layer.added(),
		})
		words = append(words, layer.bits.Words)
	}
	return sections, words
}

// addedByBits is how many keys a layer that was read from a file has at least. The
// file counts those that were there when writing it began; the layer has bits of
// keys that came meanwhile, too, and must not be filled as if it had not.
func (f *Shared) addedByBits() uint64 {
	added := f.added()
	r := f.Report()
	if least := r.Keys - float64(4*r.KeysError); least > float64(added) && least < maxKeys { // neither if saturated
		return uint64(least)
	}
	return added
}

// countByBits counts the keys of addedByBits. Nobody has the filter yet.
func (f *Shared) countByBits() { f.setAdded(f.addedByBits()) }

// layersFrom makes the layers, newest first, that a file has oldest first. Only
// the newest gets locks.
func layersFrom(s *filterfile.File, hash Hasher) []*Shared {
	layers := make([]*Shared, 0, len(s.Sections))
	for i, e := range slices.Backward(s.Sections) {
		stripes := uint64(1)
		if len(layers) == 0 {
			stripes = e.Blocks
		}
		layer := &Shared{
			bits:    kernel.Paired{Words: s.Words[i], Blocks: e.Blocks, Rows: kernel.RowsFor(int(e.Probes) / 2)},
			stripes: kernel.NewStripes(stripes),
			Hasher:  hash,
			plan:    pairedPlan(e.Keys, e.Rate, &e),
			memory:  s.Memory[i],
		}
		layer.stripes[0].Count(e.Added)
		layers = append(layers, layer)
	}
	return layers
}

// layerRoom is how many keys a layer takes that are answered "new". Those that
// are not, though nobody added them before, change no bit, but the layer is more
// crowded than so many keys make one on average. A plan counts them, so the
// layer must stop earlier by their share, which is at most its rate.
func layerRoom(plan Plan) int64 {
	return int64(max(float64(plan.Keys)*(1-plan.Rate), 1))
}

// planLayer sizes a layer with room for the keys: first for these, and then for all
// that its whole blocks hold, which is more where there are few.
func planLayer(keys uint64, rate float64) (Plan, error) {
	most := math.Ceil(float64(keys) / (1 - rate)) // for layerRoom
	plan, err := Config{Keys: uint64(min(most, 1<<63)), Rate: rate}.Plan()
	if err != nil {
		return Plan{}, err
	}
	return Config{Bits: plan.Bits, Probes: plan.Probes, Rate: rate}.Plan()
}
