package bloom

import (
	"fmt"
	"slices"
	"sync"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
)

// ScalableCounting is a [Counting] that grows: it is for an unknown n of keys that leave
// again. Like a [Scalable] it is a list of layers, here of counters, whose rates add up to
// less than p. When the newest layer holds as many keys as planned, the next new key begins
// another one, Growth times as large.
//
// What [Counting] says about overflow and about removing what was never added holds here,
// too: remove only what you know was added. Then the filter never has false negatives.
//
// # Layers
//
// Any layer may contain a key by mistake, so which one should a removal use? Both add and
// remove use the OLDEST layer that contains the key; only a key that no layer contains goes
// into the newest. All layers but the newest thus get only keys that they contain already,
// whose counters are all above zero. So they never come to contain a key that they did not
// contain: whichever layer is the oldest to contain a key when it is added stays so until its
// copies are removed, and has all of them.
//
// A layer that is empty, and not the newest, contains nothing and never will. So it makes no
// difference that it is dropped, as soon as all older ones have been. Thus a filter whose
// keys come and go does not grow without end: its layers are at most as large as the next
// size above the most keys that it ever held at a time. A layer with saturated counters is
// not empty.
//
// Any number of goroutines may read a ScalableCounting at once; a method that changes it
// must run alone. The zero ScalableCounting is not usable: make one with
// [NewScalableCounting], [ScalableConfig.NewCounting] or [LoadScalableCounting]. After Close
// every method panics.
type ScalableCounting struct {
	Hasher
	Metadata

	config  ScalableConfig
	layers  []*Counting // oldest first; replaced when layers are dropped, never overwritten
	dropped uint64      // the layers before these
	removed uint64      // removals
	err     error       // why there was no further layer; nil: none was needed, or one was dropped since
}

// maxCountingLayers is how many layers a file can have. Layers that grow do not get that far:
// only many small ones can, at the end of a budget.
const maxCountingLayers = filterfile.MaxSections

// NewScalableCounting returns an empty counting filter for any number of keys at
// false-positive rate p, with room for first keys in its first layer.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget].
func NewScalableCounting(first uint64, p float64) (*ScalableCounting, error) {
	return ScalableConfig{First: first, Rate: p}.NewCounting()
}

// NewCounting returns an empty [ScalableCounting] with its first layer. Budget is the most
// bytes that the counters of all layers may take.
func (c ScalableConfig) NewCounting() (*ScalableCounting, error) {
	f, plan, err := c.plannedCounting()
	if err != nil {
		return nil, err
	}
	layer, err := newCounting(plan, f.Hasher)
	if err != nil {
		return nil, err
	}
	f.layers = []*Counting{layer}
	return f, nil
}

// plannedCounting returns the filter without its first layer, and that layer's plan.
func (c ScalableConfig) plannedCounting() (*ScalableCounting, Plan, error) {
	budget := c.Budget
	c.Budget = 0
	f, plan, err := c.planned()
	if err != nil {
		return nil, Plan{}, err
	}
	if bytes := countingBytes(plan); budget != 0 && bytes > budget {
		return nil, Plan{}, fmt.Errorf("%w: the counters of the first layer need %d bytes, the limit is %d: raise the limit or the rate, or begin with fewer keys", ErrBudget, bytes, budget)
	}
	f.config.Budget = budget
	return &ScalableCounting{config: f.config, Hasher: f.Hasher}, plan, nil
}

// PlanCounting is [ScalableConfig.Plan] for a [ScalableCounting]. Bits (m) is the number of
// counters. Only Budget differs: it must allow four times [Plan.Bytes].
func (c ScalableConfig) PlanCounting() (Plan, error) {
	_, plan, err := c.plannedCounting()
	return plan, err
}

// newest returns the layer that takes new keys.
func (f *ScalableCounting) newest() *Counting { return f.layers[len(f.layers)-1] }

// room returns how many keys fit into the newest layer. Unlike a Scalable's it counts every
// key that is added there, also those that it contains already: so a layer has exactly its n
// keys at most, and stops no earlier.
func (f *ScalableCounting) room() uint64 {
	newest := f.newest()
	if newest.live >= newest.plan.Keys {
		return 0
	}
	return newest.plan.Keys - newest.live
}

// nextPlan sizes the layer after the newest. Its rate is that of its place in the list. Where
// layers have been dropped, those that remain have lower rates than their places allow, so all
// of them still add up to less than p, however often layers come and go.
func (f *ScalableCounting) nextPlan() (Plan, error) {
	i := len(f.layers)
	if i == maxCountingLayers {
		return Plan{}, fmt.Errorf("%w: %d", ErrLayers, i)
	}
	rate := f.config.layerRate(i)
	plan, err := planLayer(f.newest().plan.Keys*uint64(f.config.Growth), rate)
	if err != nil || f.config.Budget == 0 {
		return plan, err
	}
	left := f.config.Budget - f.Bytes()
	if countingBytes(plan) <= left {
		return plan, nil
	}
	if bytes := left / kernel.CounterDigits; bytes >= kernel.BlockBytes {
		if smaller, err := (Config{Bits: bytes * 8, Rate: rate}).Plan(); err == nil {
			return smaller, nil
		}
	}
	return Plan{}, fmt.Errorf("%w: the counters of the next layer need %d bytes, and the limit of %d leaves %d", ErrBudget, countingBytes(plan), f.config.Budget, left)
}

// grow appends a layer.
func (f *ScalableCounting) grow() error {
	plan, err := f.nextPlan()
	if err != nil {
		return err
	}
	layer, err := newCounting(plan, f.Hasher)
	if err != nil {
		return err
	}
	f.layers = append(f.layers, layer)
	f.err = nil
	return nil
}

// full reports whether the next new key needs another layer.
func (f *ScalableCounting) full() bool { return f.err == nil && f.room() == 0 }

// makeRoom appends a layer when the newest is full. If that is impossible, the newest takes
// more keys than planned.
func (f *ScalableCounting) makeRoom() {
	if err := f.grow(); err != nil {
		f.err = f.overfull(err)
	}
}

// overfull returns the error of a filter that cannot grow for the reason err.
func (f *ScalableCounting) overfull(err error) error {
	return fmt.Errorf("the newest layer holds the %d keys it has room for, and more take the filter's rate above %.3g: %w", f.newest().plan.Keys, f.config.Rate, err)
}

// dropEmpty drops the oldest layers as long as they are empty, but not the newest, and
// returns their number. The collector frees them: an [Inside].Image may still read them.
func (f *ScalableCounting) dropEmpty() (n int) {
	for n < len(f.layers)-1 && f.layers[n].live == 0 && f.layers[n].counters.Stuck == 0 {
		n++
	}
	f.dropOldest(n)
	return n
}

// dropOldest drops the n oldest layers.
func (f *ScalableCounting) dropOldest(n int) {
	if n > 0 {
		f.layers = slices.Clone(f.layers[n:])
		f.dropped += uint64(n)
		f.err = nil
	}
}

// Err returns nil as long as the rate is kept. Otherwise the newest layer holds more keys
// than it was planned for, and Err returns the reason why there is no further one: it wraps
// [ErrBudget] when Budget or the machine's memory is used up, [ErrRate] when the next layer's
// share of the rate is less than the layout or a 64-bit hash can keep, or [ErrLayers]. The
// rate is kept again when enough keys have been removed. Growing is tried again when an older
// layer has been dropped, or after Clear.
func (f *ScalableCounting) Err() error {
	if newest := f.newest(); newest.live <= newest.plan.Keys {
		return nil
	}
	return f.err
}

// Add adds key, once more if it is there already, and reports whether it is certainly new;
// see [Filter.Add].
func (f *ScalableCounting) Add(key []byte) bool { return f.AddHash(f.Hash(key)) }

// AddString is Add for a string.
func (f *ScalableCounting) AddString(key string) bool { return f.AddHash(f.HashString(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (f *ScalableCounting) AddUint64(key uint64) bool { return f.AddHash(f.integer(key)) }

// AddHash is Add for a hashed key; see [Filter.AddHash].
func (f *ScalableCounting) AddHash(h uint64) bool {
	older, newest := f.layers[:len(f.layers)-1], f.newest()
	for _, layer := range older {
		if layer.ContainsHash(h) {
			layer.AddHash(h)
			return false
		}
	}
	if f.full() && !newest.ContainsHash(h) {
		f.makeRoom()
		newest = f.newest()
	}
	return newest.AddHash(h)
}

// layerFor returns the index of the oldest layer that contains a key, or -1.
func (f *ScalableCounting) layerFor(h uint64) int {
	for i, layer := range f.layers {
		if layer.ContainsHash(h) {
			return i
		}
	}
	return -1
}

// Remove removes key once and reports whether it did; see [Counting.Remove].
func (f *ScalableCounting) Remove(key []byte) bool { return f.RemoveHash(f.Hash(key)) }

// RemoveString is Remove for a string.
func (f *ScalableCounting) RemoveString(key string) bool { return f.RemoveHash(f.HashString(key)) }

// RemoveUint64 is Remove of the eight little-endian bytes of key.
func (f *ScalableCounting) RemoveUint64(key uint64) bool { return f.RemoveHash(f.integer(key)) }

// RemoveHash is Remove for a hashed key; see [Filter.AddHash].
func (f *ScalableCounting) RemoveHash(h uint64) bool {
	for i, layer := range f.layers {
		if layer.RemoveHash(h) {
			f.removed++
			if i == 0 && layer.live == 0 {
				f.dropEmpty()
			}
			return true
		}
	}
	return false
}

// Contains reports whether key is probably in the filter; see [Counting.Contains].
func (f *ScalableCounting) Contains(key []byte) bool { return f.ContainsHash(f.Hash(key)) }

// ContainsString is Contains for a string.
func (f *ScalableCounting) ContainsString(key string) bool { return f.ContainsHash(f.HashString(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (f *ScalableCounting) ContainsUint64(key uint64) bool { return f.ContainsHash(f.integer(key)) }

// ContainsHash is Contains for a hashed key; see [Filter.AddHash].
func (f *ScalableCounting) ContainsHash(h uint64) bool {
	for _, layer := range slices.Backward(f.layers) { // the newest has most of the keys
		if layer.ContainsHash(h) {
			return true
		}
	}
	return false
}

// Count estimates how many times key is in the filter, 0 to [MaxCount]; see
// [Counting.Count].
func (f *ScalableCounting) Count(key []byte) int { return f.CountHash(f.Hash(key)) }

// CountString is Count for a string.
func (f *ScalableCounting) CountString(key string) int { return f.CountHash(f.HashString(key)) }

// CountUint64 is Count of the eight little-endian bytes of key.
func (f *ScalableCounting) CountUint64(key uint64) int { return f.CountHash(f.integer(key)) }

// CountHash is Count for a hashed key; see [Filter.AddHash].
func (f *ScalableCounting) CountHash(h uint64) int {
	if i := f.layerFor(h); i >= 0 {
		return f.layers[i].CountHash(h)
	}
	return 0
}

// AddMany adds the keys in order; see [Filter.AddMany].
func (f *ScalableCounting) AddMany(keys [][]byte, isNew []bool) int {
	return f.hashMany(keys, isNew, f.addBatch)
}

// AddStrings is AddMany for strings.
func (f *ScalableCounting) AddStrings(keys []string, isNew []bool) int {
	return f.hashStrings(keys, isNew, f.addBatch)
}

// AddHashes is AddMany for hashed keys; see [Filter.AddHash].
func (f *ScalableCounting) AddHashes(hashes []uint64, isNew []bool) int {
	return inParts(hashes, isNew, f.addBatch)
}

func (f *ScalableCounting) addBatch(hashes []uint64, isNew []bool) int {
	s := countedSieves.Get().(*countedSieve)
	s.fill(hashes)
	clear(isNew)
	for i := range f.layers[:len(f.layers)-1] {
		s.addFound(i, f.layers[i])
	}
	added := 0
	for s.n > 0 {
		newest, n := f.newest(), s.n
		if f.full() {
			if s.addFound(len(f.layers)-1, newest); s.n > 0 { // the next one is new
				f.makeRoom()
			}
			continue
		}
		if f.err == nil {
			n = int(min(f.room(), uint64(n)))
		}
		added += newest.addBatch(s.hashes[:n], s.answers[:n])
		s.dropAdded(n, isNew)
	}
	countedSieves.Put(s)
	return added
}

// countedSieve is a sieve from which keys go into the layers that they fall through to.
type countedSieve struct {
	sieve
	found [chunk]uint64
}

var countedSieves = sync.Pool{New: func() any { return new(countedSieve) }}

// addFound adds the keys that layer, the i-th, contains to it, and removes them from the
// sieve.
func (s *countedSieve) addFound(i int, layer *Counting) {
	if s.n == 0 || layer.containsBatch(s.hashes[:s.n], s.answers[:s.n], &s.recent[i]) == 0 {
		return
	}
	n := 0
	for j, has := range s.answers[:s.n] {
		if has {
			s.found[n] = s.hashes[j]
			n++
		}
	}
	s.dropFound(nil)
	layer.addBatch(s.found[:n], s.answers[:n])
}

// RemoveMany removes the keys in order, each once; see [Counting.RemoveMany].
func (f *ScalableCounting) RemoveMany(keys [][]byte, removed []bool) int {
	return f.hashMany(keys, removed, f.removeBatch)
}

// RemoveStrings is RemoveMany for strings.
func (f *ScalableCounting) RemoveStrings(keys []string, removed []bool) int {
	return f.hashStrings(keys, removed, f.removeBatch)
}

// RemoveHashes is RemoveMany for hashed keys; see [Filter.AddHash].
func (f *ScalableCounting) RemoveHashes(hashes []uint64, removed []bool) int {
	return inParts(hashes, removed, f.removeBatch)
}

// removeBatch looks keys up first, as Cuckoo's does. Layer by layer would be another order:
// a layer that is empty is dropped at once, with counters that are stuck.
func (f *ScalableCounting) removeBatch(hashes []uint64, removed []bool) (count int) {
	for len(hashes) > 0 {
		n := min(len(hashes), ahead)
		f.containsBatch(hashes[:n], removed[:n])
		for i, h := range hashes[:n] {
			if removed[i] = f.RemoveHash(h); removed[i] {
				count++
			}
		}
		hashes, removed = hashes[n:], removed[n:]
	}
	return count
}

// ContainsMany is Contains for many keys; see [Filter.ContainsMany].
func (f *ScalableCounting) ContainsMany(keys [][]byte, found []bool) int {
	return f.hashMany(keys, found, f.containsBatch)
}

// ContainsStrings is ContainsMany for strings.
func (f *ScalableCounting) ContainsStrings(keys []string, found []bool) int {
	return f.hashStrings(keys, found, f.containsBatch)
}

// ContainsHashes is ContainsMany for hashed keys; see [Filter.AddHash].
func (f *ScalableCounting) ContainsHashes(hashes []uint64, found []bool) int {
	return inParts(hashes, found, f.containsBatch)
}

func (f *ScalableCounting) containsBatch(hashes []uint64, found []bool) int {
	s := newSieve(hashes)
	clear(found)
	n := 0
	for i, layer := range slices.Backward(f.layers) {
		if s.n == 0 {
			break
		}
		if hits := layer.containsBatch(s.hashes[:s.n], s.answers[:s.n], &s.recent[i]); hits > 0 {
			s.dropFound(found)
			n += hits
		}
	}
	sieves.Put(s)
	return n
}

// Config returns what the filter was made with, defaults filled in, without the secret. Rate
// is the p of the whole filter.
func (f *ScalableCounting) Config() ScalableConfig { return f.config }

// Plan returns the sizing of all layers there are now; see [Scalable.Plan]. m counts counters.
func (f *ScalableCounting) Plan() Plan {
	sum := f.newest().plan
	for _, layer := range f.layers[:len(f.layers)-1] {
		sum = sum.plus(layer.plan)
	}
	return sum
}

// Bytes is the memory of the counters: four times [Plan.Bytes].
func (f *ScalableCounting) Bytes() (sum uint64) {
	for _, layer := range f.layers {
		sum += layer.Bytes()
	}
	return sum
}

// Saturated is the exact number of counters that stay at [MaxCount]. It reads none.
func (f *ScalableCounting) Saturated() (sum uint64) {
	for _, layer := range f.layers {
		sum += layer.Saturated()
	}
	return sum
}

// Len is the number of adds, new or not, less that of removals.
func (f *ScalableCounting) Len() (sum uint64) {
	for _, layer := range f.layers {
		sum += layer.live
	}
	return sum
}

// Removed is the number of removals since the filter was made or cleared.
func (f *ScalableCounting) Removed() uint64 { return f.removed }

// LayerCount is how many layers there are.
func (f *ScalableCounting) LayerCount() int { return len(f.layers) }

// Report reports on all layers together; see [Counting.Report] and, for each layer,
// [ScalableCounting.Layers]. Added is [ScalableCounting.Len]. Remaining is how many keys fit
// before the filter grows.
func (f *ScalableCounting) Report() Report {
	r := summed(f.Layers())
	r.Remaining = f.room()
	return r
}

// Layers returns a report for each layer, oldest first. Added is what was added to the layer
// less what was removed from it.
func (f *ScalableCounting) Layers() []Report {
	reports := make([]Report, len(f.layers))
	for i, layer := range f.layers {
		reports[i] = layer.Report()
		reports[i].Added = layer.live
	}
	return reports
}

// Equal reports whether f and g have the same hash and configuration but for Budget, and the
// same counters in as many layers.
func (f *ScalableCounting) Equal(g *ScalableCounting) bool {
	a, b := f.config, g.config
	return f.id == g.id && a.First == b.First && a.Rate == b.Rate && a.Growth == b.Growth &&
		slices.EqualFunc(f.layers, g.layers, (*Counting).Equal)
}

// Clear empties the filter and shrinks it to its first layer; its hash stays.
func (f *ScalableCounting) Clear() {
	first := f.layers[0]
	first.mustBeOpen()
	if plan, err := f.config.layerPlan(0); err == nil && f.dropped > 0 && countingBytes(plan) <= f.Bytes() {
		if layer, err := newCounting(plan, f.Hasher); err == nil {
			first = layer
		}
	}
	first.Clear()
	f.layers, f.dropped, f.removed, f.err = []*Counting{first}, 0, 0, nil
}

// Clone returns a copy in memory of its own; see [Filter.Clone].
func (f *ScalableCounting) Clone() *ScalableCounting {
	g := &ScalableCounting{Hasher: f.Hasher, config: f.config, dropped: f.dropped, removed: f.removed, err: f.err}
	for _, layer := range f.layers {
		g.layers = append(g.layers, layer.Clone())
	}
	g.note(f.noted())
	return g
}

// Close releases the memory at once; see [Filter.Close].
func (f *ScalableCounting) Close() (first error) {
	for _, layer := range f.layers {
		if err := layer.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// SetSecret is [Hasher.SetSecret].
func (f *ScalableCounting) SetSecret(secret []byte) error {
	if err := f.Hasher.SetSecret(secret); err != nil {
		return err
	}
	for _, layer := range f.layers {
		layer.Hasher = f.Hasher
	}
	return nil
}

func (f *ScalableCounting) String() string {
	return fmt.Sprintf("scalable counting filter: p %.4g, %d layers, m %d, %d bytes; %v", f.config.Rate, len(f.layers), f.Plan().Bits, f.Bytes(), f.id)
}
