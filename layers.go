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

// layers are the filters of a Scalable or a Window, all of one hash, the newest
// first. The list never changes: to grow or rotate, a writer builds new layers and
// swaps the pointer to them, so readers need no lock.
//
// Only the newest layer is written. Of goroutines that add a key at the same time,
// exactly one wins:
//
//   - The older layers are frozen, so their answer stays true. They are searched
//     before any lock is taken.
//   - The newest layer decides by itself, as Shared does, under the lock of
//     the key's block.
//   - Between the two the layers must not be replaced. So an add holds one of their
//     gates, the one chosen by the hash, and checks that they are still current. A
//     writer that replaces them holds all gates.
type layers struct {
	filters []*Shared
	bits    []*kernel.Paired // of the filters
	gates   []gate

	// room is how many new keys the newest layer can take, minus those already
	// handed to its gates (see refill).
	room atomic.Int64

	err error // why there are, or were, more keys than planned

	// Only a Window uses the rest.
	starts     []int64 // when each layer's generation began, nanoseconds after the window's origin
	newest     int     // the number of layers in the newest generation
	overfull   bool    // whether that takes more keys than planned, without counting them
	overfullAt int64   // the start of the newest generation that did; see err
}

// gate is a lock on a cache line of its own, and the number of new keys that may
// pass it before it takes more from room: so goroutines rarely contend for room.
type gate struct {
	sync.Mutex
	left int64
	_    [48]byte
}

const (
	// maxLayers is more than any growth factor needs to reach a layer of maxKeys.
	// A Window has at most as many as a file can hold, which is less.
	maxLayers = 64

	maxGates    = 64
	keysPerGate = 1024 // gates of fewer are not worth their memory

	unlimited = math.MaxInt64 / 2 // room

	never = math.MinInt64 // overfullAt
)

func newLayers(filters []*Shared, room int64) *layers {
	gates := uint64(1) << bits.Len64(filters[0].plan.Keys/keysPerGate)
	l := &layers{filters: filters, gates: make([]gate, min(gates, maxGates)), overfullAt: never}
	for _, layer := range filters {
		l.bits = append(l.bits, &layer.bits)
	}
	l.room.Store(room)
	return l
}

// newRing is newLayers for a Window: filters and starts are newest first.
func newRing(filters []*Shared, starts []int64, room int64) *layers {
	l := newLayers(filters, room)
	l.starts, l.newest = starts, 1
	for !l.isFirst(l.newest - 1) {
		l.newest++
	}
	return l
}

// isFirst reports whether the i-th layer is the first, and so the oldest, of its
// generation.
func (l *layers) isFirst(i int) bool {
	return i+1 == len(l.starts) || l.starts[i+1] != l.starts[i]
}

// generations returns the number of generations in a Window's layers.
func (l *layers) generations() (n int) {
	for i := range l.filters {
		if l.isFirst(i) {
			n++
		}
	}
	return n
}

// gate returns the gate of a key.
func (l *layers) gate(h uint64) *gate { return &l.gates[h&uint64(len(l.gates)-1)] }

func (l *layers) lock() {
	for i := range l.gates {
		l.gates[i].Lock()
	}
}

func (l *layers) unlock() {
	for i := range l.gates {
		l.gates[i].Unlock()
	}
}

// refill hands room for some new keys to a gate: the less room there is, the fewer.
// It reports whether there was any. The caller holds the gate.
func (l *layers) refill(g *gate) bool {
	g.left = l.take(max(l.room.Load()/int64(4*len(l.gates)), 1))
	return g.left > 0
}

// take reserves room for n new keys, or for as many as fit, and returns the number.
func (l *layers) take(n int64) int64 {
	for {
		room := l.room.Load()
		n = min(n, room)
		if n <= 0 || l.room.CompareAndSwap(room, room-n) {
			return max(n, 0)
		}
	}
}

// collect takes back what is left at the gates and returns the room: exactly what
// the newest layer's plan leaves. The caller holds all gates.
func (l *layers) collect() int64 {
	for i := range l.gates {
		l.room.Add(l.gates[i].left)
		l.gates[i].left = 0
	}
	return l.room.Load()
}

// freeze returns the filter as an older layer, to which nobody adds: the same bits,
// without the locks, which would be an eighth of a small filter's size. The caller
// holds all gates.
func (f *Shared) freeze() *Shared {
	frozen := f.sameBits(make([]kernel.Stripe, 1))
	frozen.stripes[0].Count(f.added())
	return frozen
}

// emptied clears the bits and returns a filter that owns them. Lookups that still
// have f among their layers may answer either way.
func (f *Shared) emptied() *Shared {
	kernel.ClearShared(f.bits.Words)
	runtime.KeepAlive(f)
	return f.sameBits(kernel.NewStripes(f.bits.Blocks))
}

func (f *Shared) sameBits(stripes []kernel.Stripe) *Shared {
	return &Shared{bits: f.bits, stripes: stripes, Hasher: f.Hasher, plan: f.plan, memory: f.memory}
}

func (l *layers) containsHash(h uint64) bool { return l.first(h) < len(l.bits) }

// first returns the index of the newest layer that contains a key, or the number of layers
// if none does.
func (l *layers) first(h uint64) int {
	i := kernel.FirstSync(l.bits, h)
	runtime.KeepAlive(l)
	return i
}

func (l *layers) containsBatch(hashes []uint64, found []bool) int {
	s := newSieve(hashes)
	clear(found)
	n := 0
	for i, layer := range l.filters {
		n += s.drop(i, layer, found)
	}
	runtime.KeepAlive(l)
	sieves.Put(s)
	return n
}

// sieve is a chunk of keys on their way through the layers, from the newest to
// the oldest. Only keys that a layer does not have continue to the next: the newest
// layers have most of the keys.
type sieve struct {
	hashes  [chunk]uint64
	at      [chunk]uint16 // where the key stands in its chunk
	answers [chunk]bool
	seen    [chunk]bool
	n       int // keys still in the sieve

	// recent predicts from earlier calls. A wrong guess only costs time, so the pool
	// may mix filters up.
	recent [maxLayers]kernel.Recent
}

var sieves = sync.Pool{New: func() any { return new(sieve) }}

func newSieve(hashes []uint64) *sieve {
	s := sieves.Get().(*sieve)
	s.fill(hashes)
	return s
}

func (s *sieve) fill(hashes []uint64) {
	s.n = copy(s.hashes[:], hashes)
	for i := range s.n {
		s.at[i] = uint16(i)
	}
}

// drop removes the keys that layer, the i-th, has, and returns their number. found,
// if not nil, becomes true at their places in the chunk.
func (s *sieve) drop(i int, layer *Shared, found []bool) int {
	if s.n == 0 {
		return 0
	}
	hits := layer.bits.ContainsBatchSync(s.hashes[:s.n], s.answers[:s.n], &s.recent[i])
	if hits > 0 {
		s.dropFound(found)
	}
	return hits
}

// dropFound removes the keys for which answers is true; found is as for drop.
func (s *sieve) dropFound(found []bool) {
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
}

// addTo adds the first n keys to the layer, removes them from the sieve and returns
// how many were new to the layer. isNew, of the whole chunk, says which.
func (s *sieve) addTo(layer *Shared, n int, isNew []bool) (added int) {
	added = layer.bits.AddBatchSync(layer.stripes, s.hashes[:n], s.answers[:n])
	s.dropAdded(n, isNew)
	return added
}

// dropAdded removes the first n keys, for which answers says whether they were new.
func (s *sieve) dropAdded(n int, isNew []bool) {
	for j, is := range s.answers[:n] {
		isNew[s.at[j]] = is
	}
	copy(s.hashes[:], s.hashes[n:s.n])
	copy(s.at[:], s.at[n:s.n])
	s.n -= n
}

// look marks as seen the keys that any of the layers has, from the first-th on.
func (s *sieve) look(filters []*Shared, first int) {
	clear(s.seen[:s.n])
	for i := first; i < len(filters); i++ {
		if filters[i].bits.ContainsBatchSync(s.hashes[:s.n], s.answers[:s.n], &s.recent[i]) == 0 {
			continue
		}
		for j, has := range s.answers[:s.n] {
			s.seen[j] = s.seen[j] || has
		}
	}
}

// addUnseen adds the first n keys to the layer and removes them from the sieve.
// changed counts those that were new to the layer, and added those of them that look
// had not seen: for these isNew, of the whole chunk, becomes true.
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

// reports returns the layers' reports, oldest first.
func (l *layers) reports() []Report {
	reports := make([]Report, len(l.filters))
	for i, layer := range l.filters {
		reports[len(reports)-1-i] = layer.Report()
	}
	return reports
}

// plan sums up the layers' plans. A key that was never added is found if any layer
// finds it, so the rate is at most the sum of theirs.
func (l *layers) plan() Plan {
	sum := l.filters[0].plan
	for _, layer := range l.filters[1:] {
		sum = sum.plus(layer.plan)
	}
	return sum
}

// plus returns the sum of p and a layer's plan.
func (p Plan) plus(layer Plan) Plan {
	p.Keys += layer.Keys
	p.Rate += layer.Rate
	p.Bits += layer.Bits
	p.Blocks += layer.Blocks
	return p
}

// report sums up the layers' reports.
func (l *layers) report() Report { return summed(l.reports()) }

// summed sums up reports of layers, oldest first. The rate assumes that layers answer
// independently, as they do when no key is in two of them. Otherwise it is lower.
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

func (l *layers) close() (first error) {
	for _, layer := range l.filters {
		if err := layer.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// mustBeOpen is for saving; see [Filter.mustBeOpen].
func (l *layers) mustBeOpen() { l.filters[0].mustBeOpen() }

// sections returns the sections of a file with these layers, oldest first, and their
// bits, which others may be setting. The counts are read before the bits are copied,
// so they never count a key that is not there.
func (l *layers) sections() (sections []filterfile.Section, words [][]uint64) {
	for _, layer := range slices.Backward(l.filters) {
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

// addedByBits returns the least number of keys in a layer that was read from a file.
// The file counts the keys that were there when writing began, but its bits may
// include keys added meanwhile, which take up room as well.
func (f *Shared) addedByBits() uint64 {
	added := f.added()
	r := f.Report()
	if least := r.Keys - float64(4*r.KeysError); least > float64(added) && least < maxKeys { // neither if saturated
		return uint64(least)
	}
	return added
}

// countByBits sets the count to addedByBits. The filter is not shared yet.
func (f *Shared) countByBits() { f.setAdded(f.addedByBits()) }

// layersFrom makes the filters of a file's sections, which are oldest first, newest
// first. Only the newest gets locks.
func layersFrom(s *filterfile.File, hash Hasher) []*Shared {
	filters := make([]*Shared, 0, len(s.Sections))
	for i, e := range slices.Backward(s.Sections) {
		stripes := uint64(1)
		if len(filters) == 0 {
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
		filters = append(filters, layer)
	}
	return filters
}

// layerRoom is the number of keys answered "new" that a layer has room for. A key that
// is new but a false positive sets no bit, yet the plan counts it: the bits are fuller
// than the keys answered "new" alone would make them on average. So the layer stops
// earlier by the share of such keys, which is at most its rate.
func layerRoom(plan Plan) int64 {
	return int64(max(float64(plan.Keys)*(1-plan.Rate), 1))
}

// planLayer sizes a layer with room for the keys: first for these, then for all that
// its whole blocks can hold, which is more if there are few blocks.
func planLayer(keys uint64, rate float64) (Plan, error) {
	most := math.Ceil(float64(keys) / (1 - rate)) // for layerRoom
	plan, err := Config{Keys: uint64(min(most, 1<<63)), Rate: rate}.Plan()
	if err != nil {
		return Plan{}, err
	}
	return Config{Bits: plan.Bits, Probes: plan.Probes, Rate: rate}.Plan()
}
