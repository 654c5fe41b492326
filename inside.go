package bloom

import (
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
)

// Inside is for programs that embed a store, as this module's server does: it counts,
// replays, limits and copies filters while others use them. It is not part of the API
// that other programs can rely on, and changes with the store.
var Inside inside

type inside struct{}

// layerSize is what is known of a layer of a [Scalable] or of a [Window]'s generation
// without reading its bits.
type layerSize struct {
	Plan  Plan
	Added uint64 // adds that were new to it
}

// Sizes describes the layers of a Scalable, or of all generations of a Window, oldest
// first. It is cheap; [Scalable.Layers] and [Window.Generations] report more.
func (inside) Sizes(f interface{ now() *layers }) []layerSize {
	l := f.now()
	sizes := make([]layerSize, 0, len(l.filters))
	for _, layer := range slices.Backward(l.filters) {
		sizes = append(sizes, layerSize{layer.plan, layer.added()})
	}
	return sizes
}

// NextLayer returns the plan of the layer after the newest one, so that a caller with a
// shared memory limit can see what growing would cost. The error says why there is
// none; see [Scalable.Err].
func (inside) NextLayer(f *Scalable) (Plan, error) { return f.nextPlan(f.now()) }

// NewestLayer returns the plan of the layer that takes the adds, and how many new keys
// fit before the filter grows. Adds wait while it counts.
func (inside) NewestLayer(f *Scalable) (plan Plan, room uint64) {
	for {
		l := f.layers.Load()
		l.lock()
		if f.layers.Load() == l {
			plan, room = l.filters[0].plan, uint64(l.collect())
			l.unlock()
			return plan, room
		}
		l.unlock()
	}
}

// Replay adds keys to one layer, counted from the oldest, 0, whether or not other layers
// have them, and first appends layers if there are fewer. It is for a log that records
// the layer in which each key was new: in another order AddHashes would put some keys
// into other layers, and then a key that was a false positive of a layer, which is in no
// log, might be missing. Without keys it only appends layers. Many goroutines may call
// it at once. The error says why the filter cannot grow; see [Scalable.Err].
func (inside) Replay(f *Scalable, layer int, hashes []uint64) error {
	f.mustBeWritable()
	for {
		l := f.layers.Load()
		if layer >= len(l.filters) {
			if err := f.growAnyway(l); err != nil {
				return err
			}
			continue
		}
		if len(hashes) == 0 {
			return nil
		}
		g := l.gate(hashes[0])
		g.Lock()
		if f.layers.Load() == l {
			if f.update != nil {
				f.touch(hashes...)
			}
			added := l.filters[len(l.filters)-1-layer].AddHashes(hashes, nil)
			if layer == len(l.filters)-1 {
				l.take(int64(added))
			}
			g.Unlock()
			return nil
		}
		g.Unlock()
	}
}

// Folded returns an empty filter of a by-th of f's size, which holds f's keys after a
// Union with f: see [Filter.Fold]. So f can be folded while others use it, if they add to
// both from before the Union begins. The error is as for Fold.
func (inside) Folded(f *Shared, by uint64) (*Shared, error) {
	f.mustBeOpen()
	plan, err := f.plan.folded(by)
	if err != nil {
		return nil, err
	}
	g, err := newFilter(plan, f.Hasher)
	if err != nil {
		return nil, err
	}
	g.note(f.noted())
	return g.Share(), nil
}

// SetAdded sets Report's Added, for a caller that has counted the adds itself. Nobody
// may add meanwhile.
func (inside) SetAdded(f *Shared, n uint64) { f.setAdded(n) }

func (f *Shared) setAdded(n uint64) {
	for i := range f.stripes {
		f.stripes[i].Reset()
	}
	f.stripes[0].Count(n)
}

// Saturate sets all bits of a Shared, a Scalable or a Window, or saturates all counters of a
// Counting or a ScalableCounting: from now on every key is found, in a Window for the next
// Span. It is for a filter that has lost some of its bits, for which "perhaps" is the only
// answer that is never wrong.
func (inside) Saturate(f Any) { f.(interface{ saturate() }).saturate() }

func (f *Shared) saturate() {
	for i := range f.bits.Words {
		atomic.StoreUint64(&f.bits.Words[i], ^uint64(0))
	}
	runtime.KeepAlive(f)
}

func (f *Scalable) saturate() {
	f.mustBeWritable()
	f.now().saturate()
}

func (w *Window) saturate() { w.now().saturate() }

func (f *Counting) saturate() {
	f.mustBeOpen()
	for i := range f.counters.Words {
		f.counters.Words[i] = ^uint64(0)
	}
	f.counters.Stuck = f.plan.Bits
	f.keepAlive()
}

func (f *ScalableCounting) saturate() {
	for _, layer := range f.layers {
		layer.saturate()
	}
}

func (l *layers) saturate() {
	for _, layer := range l.filters {
		layer.saturate()
	}
}

// LimitWindow is for a store with a memory limit for many filters. keys is the most that
// TryAddHashes adds in a generation; zero means no limit. The window calls grant before
// a generation gets another layer, which it does without if grant returns an error, and
// release when such a layer is dropped. Both may be nil; they must not use the window.
func (inside) LimitWindow(w *Window, keys uint64, grant func(layer Plan) error, release func(layer Plan)) {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.limits = windowLimits{keys, grant, release}
	l := w.layers.Load()
	l.lock()
	defer l.unlock()
	_, held := l.generation()
	l.room.Store(w.limits.room(l.collect(), held))
}

// TryAddHashes is AddHashes, but stops before the first key without room, instead of
// raising the rate above p. It returns how many keys it took and, if not all, why: the
// error wraps [ErrFull], [ErrBudget], [ErrRate] or the error of a grant.
func (inside) TryAddHashes(w *Window, hashes []uint64, isNew []bool) (taken, added int, err error) {
	checkAnswers(len(hashes), isNew)
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for taken < len(hashes) && err == nil {
		part := hashes[taken:min(taken+chunk, len(hashes))]
		var n, more int
		more, n, err = w.addPart(part, s.part(&isNew, len(part)), true)
		added, taken = added+more, taken+n
	}
	return taken, added, err
}

// AddDisjoint is AddHashes for goroutines that have divided the blocks among themselves:
// any number may call it at once, without a lock, as long as no two have hashes of the
// same block, hi64(h * Plan().Blocks). Nobody else may use the filter meanwhile.
func (inside) AddDisjoint(f *Filter, hashes []uint64, isNew []bool) int {
	if f.readOnly || f.update != nil {
		panicReadOnly()
	}
	added := inParts(hashes, isNew, f.bits.AddBatch)
	f.keepAlive()
	atomic.AddUint64(&f.added, uint64(added))
	return added
}

// Hashes sets hashes to the Hash of each of the keys.
func (inside) Hashes(f Any, keys [][]byte, hashes []uint64) {
	f.(interface {
		fillBytes(hashes []uint64, keys [][]byte)
	}).fillBytes(hashes, keys)
}

// FileBytes returns the length of the file that WriteTo would write.
func (inside) FileBytes(f *Filter) int64 { return int64(filterfile.FileBytes(f.plan.Bytes())) }

// Image returns the file that WriteTo of a Shared, a Scalable, a Window, a Counting or a
// ScalableCounting would write, made piece by piece while others add, so that a store can
// send a filter of any size to a slow reader. It has every key whose Add returned before the
// call, and perhaps some that are added until its last piece is read. Do not close the filter
// before.
//
// Of a Counting or a ScalableCounting nobody may add or remove keys while a piece is read, but
// in between they may. Each block of counters is then as it was when its piece was read, which
// for a removed key may be before or after. Reading the file recounts the keys of each layer.
func (inside) Image(f Any) (*filterfile.Image, error) {
	s, err := f.(interface {
		stored() (*filterfile.File, error)
	}).stored()
	if err != nil {
		return nil, err
	}
	if s.Live == nil { // a Counting
		s.Live = f
	}
	return s.Image()
}

// ReportOf makes the report of a filter of paired lines whose bits lie elsewhere. words
// are whole blocks: all of the filter's, or a sample.
func (inside) ReportOf(plan Plan, words []uint64) Report {
	var sample moments
	for at := 0; at < len(words); at += kernel.WordsPerBlock {
		sample.add(measureBlock(words[at:][:kernel.WordsPerBlock], plan.Probes/2))
	}
	return sample.report(plan, uint64(len(words)) == plan.Blocks*kernel.WordsPerBlock)
}

// ReportOfLayers sums up the reports of layers, oldest first.
func (inside) ReportOfLayers(layers []Report) Report { return summed(layers) }

// A shownLayer is a layer of a filter, to be shown to people.
type shownLayer struct {
	Bits *Shared

	// Of a Window's layer: when its generation began, and when its keys have expired.
	Starts, Expires time.Time
}

// ShownLayers returns the layers of a Shared, a Scalable or a Window, oldest first.
func (inside) ShownLayers(f Any) []shownLayer {
	if f, ok := f.(*Shared); ok {
		return []shownLayer{{Bits: f}}
	}
	l := f.(interface{ now() *layers }).now()
	w, _ := f.(*Window)
	shown := make([]shownLayer, 0, len(l.filters))
	for i, layer := range slices.Backward(l.filters) {
		s := shownLayer{Bits: layer}
		if w != nil {
			s.Starts = w.origin.Add(time.Duration(l.starts[i]))
			s.Expires = s.Starts.Add(time.Duration(int64(w.config.Generations+1) * w.step))
		}
		shown = append(shown, s)
	}
	return shown
}

// Population divides the filter into parts of equally many blocks, give or take one, and
// returns how many bits of each are set, and how many were read: all, or of a large
// filter a sample of at most sampled bytes. There are at most as many parts as blocks.
// Other goroutines may add.
func (inside) Population(f *Shared, parts int, sampled uint64) (set, read []uint64) {
	blocks := f.plan.Blocks
	n := min(uint64(parts), blocks)
	stride := max(blocks*kernel.BlockBytes/max(sampled, 1), 1)
	set, read = make([]uint64, n), make([]uint64, n)
	for i := range n {
		from, to := scaled(i, blocks, n), scaled(i+1, blocks, n)
		for block := from; block < to; block += stride {
			words := f.bits.Words[block*kernel.WordsPerBlock:][:kernel.WordsPerBlock]
			for at := range words {
				set[i] += uint64(bits.OnesCount64(atomic.LoadUint64(&words[at])))
			}
			read[i] += kernel.BlockBits
		}
	}
	f.keepAlive()
	return set, read
}

// scaled is i*m/n, for i up to n.
func scaled(i, m, n uint64) uint64 {
	high, low := bits.Mul64(i, m)
	q, _ := bits.Div64(high, low, n)
	return q
}

// Place returns where a key's bits lie, and which of them are set: set[i] has the bits
// of the masks of line i that are.
func (inside) Place(f *Shared, h uint64) (place kernel.Probe, set [2][kernel.LanesPerLine]uint64) {
	place = f.bits.Probe(h)
	for i, line := range place.Lines {
		at := place.Block*kernel.WordsPerBlock + uint64(line)*kernel.LanesPerLine
		for lane := range set[i] {
			set[i][lane] = atomic.LoadUint64(&f.bits.Words[at+uint64(lane)]) & place.Masks[i][lane]
		}
	}
	f.keepAlive()
	return place, set
}

// Lock takes [OpenUpdate]'s lock on the file at path. Hold it from reading the file
// until you have replaced it, so that no other process's changes in between are lost.
// The file need not hold a filter. unlock gives the lock back.
//
// The error wraps [ErrLocked] if the file is open for update, or is the system's:
// no such file, no permission to write, no locks.
func (inside) Lock(path string) (unlock func(), err error) { return filterfile.Lock(path) }

// Counts returns the counters of a hash, packed into a word, and SetCounts sets them to what
// Counts has returned.
func (inside) Counts(f *Counting, h uint64) uint64 {
	counts := f.counters.Counts(h)
	f.keepAlive()
	return counts
}

func (inside) SetCounts(f *Counting, h, counts uint64) {
	f.counters.SetCounts(h, counts)
	f.keepAlive()
}

// CountingLayers returns the layers of a Counting or a ScalableCounting, oldest first, and the
// number of the oldest one: layers keep their numbers when older ones are dropped.
func (inside) CountingLayers(f Any) (first uint64, layers []*Counting) {
	if f, ok := f.(*ScalableCounting); ok {
		return f.dropped, f.layers
	}
	return 0, []*Counting{f.(*Counting)}
}

// CountingLayer returns the number of the layer that has all copies of a hash, false if the
// filter does not contain it.
func (inside) CountingLayer(f Any, h uint64) (layer uint64, found bool) {
	if f, ok := f.(*ScalableCounting); ok {
		i := f.layerFor(h)
		return f.dropped + uint64(max(i, 0)), i >= 0
	}
	return 0, f.(*Counting).ContainsHash(h)
}

// CountingRoom returns how many keys may be added before a ScalableCounting grows; at least
// one if it contains h already, which goes to the layer that does.
func (inside) CountingRoom(f *ScalableCounting, h uint64) uint64 {
	room := f.room()
	if room == 0 && f.layerFor(h) >= 0 {
		return 1
	}
	return room
}

// NextCountingLayer returns the plan of the layer that GrowCounting would make.
func (inside) NextCountingLayer(f *ScalableCounting) (Plan, error) { return f.nextPlan() }

// GrowCounting makes a layer, which the next new key goes to.
func (inside) GrowCounting(f *ScalableCounting) error { return f.grow() }

// CountingState is what a filter of counters has besides them: the number of the layer that
// comes first, the removals from all layers, and the keys of one layer and how many of them
// were new.
type countingState struct{ First, Removed, Live, Added uint64 }

// CountingState returns the state, of a layer by its number.
func (inside) CountingState(f Any, layer uint64) countingState {
	first, layers := Inside.CountingLayers(f)
	s := countingState{First: first}
	if f, ok := f.(*ScalableCounting); ok {
		s.Removed = f.removed
	}
	if layer -= first; layer < uint64(len(layers)) {
		s.Live, s.Added = layers[layer].live, layers[layer].added
	}
	return s
}

// ReplayCounts gives counters of a layer the values that they had: each hash is followed by
// its Counts. A layer that is not there yet is made, layers before s.First are dropped, and
// the state is set. It does not matter whether the counters have some of these values, or
// later ones, already. The error wraps [ErrFormat], or is that of growing.
func (inside) ReplayCounts(f Any, layer uint64, s countingState, counts func() (h, counts uint64, ok bool)) error {
	grows, _ := f.(*ScalableCounting)
	first, layers := Inside.CountingLayers(f)
	if layer < first || s.First < first || grows == nil && layer+s.First > 0 || layer-first > uint64(len(layers)) {
		return fmt.Errorf("%w: counts of layer %d of a filter with layers %d to %d", ErrFormat, layer, first, first+uint64(len(layers))-1)
	}
	if layer-first == uint64(len(layers)) {
		if err := grows.grow(); err != nil {
			return err
		}
		layers = grows.layers
	}
	of := layers[layer-first]
	for h, n, ok := counts(); ok; h, n, ok = counts() {
		of.counters.SetCounts(h, n)
	}
	of.live, of.added = s.Live, s.Added
	of.keepAlive()
	if grows == nil {
		return nil
	}
	if s.First-first >= uint64(len(grows.layers)) {
		return fmt.Errorf("%w: all layers of a filter are dropped", ErrFormat)
	}
	grows.removed = s.Removed
	grows.dropOldest(int(s.First - first))
	return nil
}

// NonZero sets the bits of words whose counters are not zero, and clears the others. words
// are whole blocks, from a block on.
func (inside) NonZero(f *Counting, block uint64, words []uint64) {
	kernel.NonZero(words, f.counters.Words[block*kernel.CounterWordsPerBlock:])
	f.keepAlive()
}

// CuckooSlots returns the slots of a Cuckoo's layers, oldest first: not a copy. They are
// valid until the filter changes.
func (inside) CuckooSlots(f *Cuckoo) [][]byte {
	f.mustBeOpen()
	slots := make([][]byte, len(f.layers))
	for i := range slots {
		slots[i] = f.layers[i].Slots
	}
	return slots
}

// Journal makes a Cuckoo append to a journal each slot that changes from now on, in order:
// the fingerprint that it has then, or zero, in the lowest byte, the layer, counted from the
// oldest, in the next one, and the slot above. Layers that are made or dropped are not in
// it. nil ends the journal.
func (inside) Journal(f *Cuckoo, journal *[]uint64) { f.journal = journal }

func journalEntry(layer, slot int, fingerprint byte) uint64 {
	return uint64(slot)<<16 | uint64(layer)<<8 | uint64(fingerprint)
}

// ReplayCuckoo does to a Cuckoo what a journal has, and gives it that many layers, Len and
// Removed. It does not matter whether the slots have some of these changes, or later ones,
// already: replaying those again has the same result. The error wraps [ErrFormat] or
// [ErrBudget], or is Grant's.
func (inside) ReplayCuckoo(f *Cuckoo, journal []uint64, layers int, stored, removed uint64) error {
	f.mustBeOpen()
	if layers < 1 || layers > MaxCuckooLayers || layers > 1 && f.config.NonScaling {
		return fmt.Errorf("%w: a cuckoo filter with %d layers", ErrFormat, layers)
	}
	for len(f.layers) < layers {
		if err := f.grow(); err != nil {
			return err
		}
	}
	for _, entry := range journal {
		layer, slot := int(entry>>8&0xff), entry>>16
		if layer >= len(f.layers) || slot >= uint64(len(f.layers[layer].Slots)) {
			return fmt.Errorf("%w: slot %d of layer %d of a cuckoo filter", ErrFormat, slot, layer)
		}
		f.layers[layer].Slots[slot] = byte(entry)
	}
	f.stored, f.removed = stored, removed
	return f.drop(layers)
}

// CuckooOf makes a Cuckoo with that many layers, whose slots are empty or, unless r is nil,
// are read from r, one layer after the other. stored and removed are [Cuckoo.Len] and
// [Cuckoo.Removed]. If there is no Grant, memory grows as the bytes arrive.
//
// The error wraps [ErrConfig] or [ErrBudget], or is Grant's or r's.
func (inside) CuckooOf(c CuckooConfig, layers int, stored, removed uint64, r io.Reader) (*Cuckoo, error) {
	f, err := c.planned()
	if err != nil {
		return nil, err
	}
	for range layers {
		if r == nil {
			err = f.grow()
		} else {
			err = f.growFrom(r)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("layer %d of %d: %w", len(f.layers)+1, layers, err)
		}
	}
	f.stored, f.removed = stored, removed
	return f, nil
}

// growFrom is grow, with slots that are read from r.
func (f *Cuckoo) growFrom(r io.Reader) error {
	buckets, err := f.nextBuckets()
	if err != nil {
		return err
	}
	slots := buckets * uint64(f.config.BucketSize)
	if f.config.Grant != nil {
		if err := f.config.Grant(cuckooTakes(slots)); err != nil {
			return err
		}
	}
	words, mapping, err := filterfile.ReadWords(r, slots, func([]uint64) {})
	if err != nil {
		mapping.Close()
		f.release(slots)
		return err
	}
	f.append(cuckooRoom{words, mapping}, buckets)
	return nil
}
