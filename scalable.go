package bloom

import (
	"fmt"
	"io"
	"iter"
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/bloomery/bloom/internal/elementary"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
)

// Scalable is for an unknown n: it grows, and keeps its rate at any size. It is a
// list of filters, its layers. When a layer holds as many keys as planned, the next
// one begins, Growth times as large and with a lower rate, so that the rates of all
// possible layers add up to p (Almeida, Baquero, Preguiça and Hutchison 2007).
//
// The price: with all layers full, half to three quarters more bits per key than a
// [Filter] planned for n; just after a layer has begun, up to Growth times as many
// again; and a lookup in each layer. If you know n, use a Filter. If you learn it
// later, [Scalable.Compact] makes one.
//
// Any number of goroutines may use it at once, as with [Shared]: of those that add
// one key at most one is told that it is new, also while the filter grows, and
// lookups take no lock. The zero Scalable is not usable: make one with
// [NewScalable], [ScalableConfig.New], [LoadScalable] or [Filter.Growing].
//
// # At the limit
//
// Add cannot refuse a key: a key that was added must be found. So when the layers are
// full and no other is possible, adds go into the last layer, the memory stays within
// the limit, and the rate rises above p. From the first such key on, [Scalable.Err]
// returns the reason; [Scalable.Report] shows the rate, and [Report.Overfull] is true.
// Check Err now and then, as after writing through a bufio.Writer.
type Scalable struct {
	Hasher
	Metadata

	config ScalableConfig
	layers atomic.Pointer[layers]
	update *filterfile.Updater // of the file that the layers are in, nil if they are in memory

	readOnly bool // from OpenScalable
}

// ScalableConfig describes a Scalable. Rate is required; all other fields may be zero.
type ScalableConfig struct {
	First uint64  // the number of keys in the first layer; zero means 1,000
	Rate  float64 // p, never exceeded while Err is nil

	// Growth is how many times more keys each layer holds than the one before,
	// 2 to 16; zero means 2. With 4 there are half as many layers to search, and
	// on average half more bits that wait for keys.
	Growth int

	// Budget is the most bytes that the bits of all layers may take; zero means no
	// limit. The last layer is as large as the rest of it allows.
	Budget uint64

	Seed   uint64 // of XXH3; public
	Secret []byte // SecretBytes bytes: SipHash-2-4 in place of XXH3
}

const (
	defaultFirst  = 1000
	defaultGrowth = 2
	maxGrowth     = 16

	// tightening is r in the series p (1-r) r^i of the layers' rates. A small r
	// spends the rate on the first layers and makes later ones expensive; a large
	// r saves it for layers that may never come. From ten to a thousand times the
	// first size, 0.8 is best or close to it: docs/maths.md has the table.
	tightening = 0.8
)

// NewScalable returns an empty filter for any number of keys at false-positive
// rate p, with room for first keys in its first layer.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget].
func NewScalable(first uint64, p float64) (*Scalable, error) {
	return ScalableConfig{First: first, Rate: p}.New()
}

// New returns an empty filter with its first layer.
func (c ScalableConfig) New() (*Scalable, error) {
	f, plan, err := c.planned()
	if err != nil {
		return nil, err
	}
	layer, err := newLayer(plan, f.Hasher)
	if err != nil {
		return nil, err
	}
	f.layers.Store(newLayers([]*Shared{layer}, layerRoom(plan)))
	return f, nil
}

// planned returns the filter without its first layer, and that layer's plan.
func (c ScalableConfig) planned() (*Scalable, Plan, error) {
	if c.First == 0 {
		c.First = defaultFirst
	}
	if c.Growth == 0 {
		c.Growth = defaultGrowth
	}
	if c.Growth < 2 || c.Growth > maxGrowth {
		return nil, Plan{}, fmt.Errorf("%w: Growth must be 2 to %d, not %d", ErrConfig, maxGrowth, c.Growth)
	}
	if !(c.Rate > 0 && c.Rate < 1) {
		return nil, Plan{}, fmt.Errorf("%w: the rate must be above 0 and below 1, not %g", ErrConfig, c.Rate)
	}
	hash, err := NewHasher(c.Seed, c.Secret)
	if err != nil {
		return nil, Plan{}, err
	}
	c.Secret = nil // the Hasher has it
	plan, err := c.layerPlan(0)
	if err != nil {
		return nil, Plan{}, err
	}
	if c.Budget != 0 && plan.Bytes() > c.Budget {
		return nil, Plan{}, fmt.Errorf("%w: the first layer needs %d bytes, the limit is %d: raise the limit or the rate, or begin with fewer keys", ErrBudget, plan.Bytes(), c.Budget)
	}
	return &Scalable{config: c, Hasher: hash}, plan, nil
}

// Plan returns the plan of the first layer.
func (c ScalableConfig) Plan() (Plan, error) {
	_, plan, err := c.planned()
	return plan, err
}

func newLayer(plan Plan, hash Hasher) (*Shared, error) {
	f, err := newFilter(plan, hash)
	if err != nil {
		return nil, err
	}
	return f.Share(), nil
}

// layerRate is the rate of the i-th layer. All of them add up to Rate.
func (c ScalableConfig) layerRate(i int) float64 {
	return float64(c.Rate * (1 - tightening) * elementary.Power(tightening, uint64(i)))
}

// layerKeys is the number of keys in the i-th layer.
func (c ScalableConfig) layerKeys(i int) uint64 {
	keys := c.First
	for range i {
		high, low := bits.Mul64(keys, uint64(c.Growth))
		if high != 0 {
			return math.MaxUint64 // which Plan refuses
		}
		keys = low
	}
	return keys
}

// layerPlan sizes the i-th layer.
func (c ScalableConfig) layerPlan(i int) (Plan, error) {
	return planLayer(c.layerKeys(i), c.layerRate(i))
}

// nextPlan sizes the layer after those of l.
func (f *Scalable) nextPlan(l *layers) (Plan, error) {
	i := len(l.filters)
	if i == maxLayers {
		return Plan{}, fmt.Errorf("%w: there are %d layers already", ErrRate, maxLayers)
	}
	plan, err := f.config.layerPlan(i)
	if err != nil || f.config.Budget == 0 {
		return plan, err
	}
	left := f.config.Budget - l.plan().Bytes()
	if plan.Bytes() <= left {
		return plan, nil
	}
	if left >= kernel.BlockBytes {
		if smaller, err := (Config{Bits: left * 8, Rate: f.config.layerRate(i)}).Plan(); err == nil {
			return smaller, nil
		}
	}
	return Plan{}, fmt.Errorf("%w: the next layer needs %d bytes and the limit of %d leaves %d", ErrBudget, plan.Bytes(), f.config.Budget, left)
}

// grow appends a layer when l is full. It does nothing if another goroutine already
// has, or if other gates still have room. Adds wait for it, lookups do not.
func (f *Scalable) grow(l *layers) {
	l.lock()
	defer l.unlock()
	if f.layers.Load() != l || l.collect() > 0 {
		return
	}
	plan, err := f.nextPlan(l)
	var layer *Shared
	if err == nil {
		layer, err = f.nextLayer(plan)
	}
	if err != nil {
		f.layers.Store(f.overfull(l, err))
		return
	}
	f.layers.Store(f.grown(l, layer))
}

// growAnyway appends a layer to l even if its newest has room.
func (f *Scalable) growAnyway(l *layers) error {
	l.lock()
	defer l.unlock()
	if f.layers.Load() != l {
		return nil
	}
	plan, err := f.nextPlan(l)
	var layer *Shared
	if err == nil {
		layer, err = f.nextLayer(plan)
	}
	if err == nil {
		f.layers.Store(f.grown(l, layer))
	}
	return err
}

// grown returns l with another layer. The caller holds all gates.
func (f *Scalable) grown(l *layers, layer *Shared) *layers {
	filters := append([]*Shared{layer, l.filters[0].freeze()}, l.filters[1:]...)
	return newLayers(filters, layerRoom(layer.plan))
}

// overfull returns l when no layer can be added, for the reason err.
func (f *Scalable) overfull(l *layers, err error) *layers {
	full := newLayers(l.filters, unlimited)
	full.err = fmt.Errorf("the filter holds the %d keys it has room for, and more take its rate above %.3g: %w", l.plan().Keys, f.config.Rate, err)
	return full
}

// Err returns nil as long as the rate is kept. Otherwise it returns the reason why the
// filter could not grow; it is over-full until Clear. The error wraps [ErrBudget] when
// Budget or the machine's memory is used up, and [ErrRate] when the next layer's share
// of the rate is less than the layout or a 64-bit hash can keep.
func (f *Scalable) Err() error { return f.layers.Load().err }

// Add adds key and reports whether it is certainly new; see [Filter.Add].
func (f *Scalable) Add(key []byte) bool { return f.AddHash(f.Hash(key)) }

// AddString is Add for a string.
func (f *Scalable) AddString(key string) bool { return f.AddHash(f.HashString(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (f *Scalable) AddUint64(key uint64) bool { return f.AddHash(f.integer(key)) }

// AddHash is Add for a hashed key; see [Filter.AddHash].
func (f *Scalable) AddHash(h uint64) bool {
	f.mustBeWritable()
	for {
		l := f.layers.Load()
		if l.containsHash(h) {
			return false
		}
		g := l.gate(h)
		g.Lock()
		if f.layers.Load() != l {
			g.Unlock()
			continue
		}
		if g.left == 0 && !l.refill(g) {
			g.Unlock()
			f.grow(l)
			continue
		}
		if f.update != nil {
			f.touch(h)
		}
		isNew := l.filters[0].AddHash(h)
		if isNew {
			g.left--
		}
		g.Unlock()
		return isNew
	}
}

// AddMany adds the keys in order, among other goroutines'; see [Filter.AddMany].
func (f *Scalable) AddMany(keys [][]byte, isNew []bool) int {
	return f.hashMany(keys, isNew, f.addBatch)
}

// AddStrings is AddMany for strings.
func (f *Scalable) AddStrings(keys []string, isNew []bool) int {
	return f.hashStrings(keys, isNew, f.addBatch)
}

// AddHashes is AddMany for hashed keys; see [Filter.AddHash].
func (f *Scalable) AddHashes(hashes []uint64, isNew []bool) int {
	return inParts(hashes, isNew, f.addBatch)
}

func (f *Scalable) addBatch(hashes []uint64, isNew []bool) int {
	f.mustBeWritable()
	s := newSieve(hashes)
	clear(isNew)
	added := 0
	for s.n > 0 {
		l := f.layers.Load()
		for i, layer := range l.filters {
			s.drop(i, layer, nil)
		}
		if s.n > 0 {
			added += f.addTo(l, s, isNew)
		}
	}
	sieves.Put(s)
	return added
}

// addTo adds the keys in the sieve, none of which is in l, as far as there is room,
// and then grows the filter if keys are left.
func (f *Scalable) addTo(l *layers, s *sieve, isNew []bool) int {
	g := l.gate(s.hashes[0])
	g.Lock()
	if f.layers.Load() != l {
		g.Unlock()
		return 0
	}
	room := l.take(int64(s.n))
	if f.update != nil {
		f.touch(s.hashes[:room]...)
	}
	added := s.addTo(l.filters[0], int(room), isNew)
	l.room.Add(room - int64(added))
	g.Unlock()
	if s.n > 0 {
		f.grow(l)
	}
	return added
}

// Contains reports whether key is probably in the filter; see [Filter.Contains].
func (f *Scalable) Contains(key []byte) bool { return f.ContainsHash(f.Hash(key)) }

// ContainsString is Contains for a string.
func (f *Scalable) ContainsString(key string) bool { return f.ContainsHash(f.HashString(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (f *Scalable) ContainsUint64(key uint64) bool { return f.ContainsHash(f.integer(key)) }

// ContainsHash is Contains for a hashed key; see [Filter.AddHash].
func (f *Scalable) ContainsHash(h uint64) bool { return f.layers.Load().containsHash(h) }

// ContainsMany is Contains for many keys; see [Filter.ContainsMany].
func (f *Scalable) ContainsMany(keys [][]byte, found []bool) int {
	return f.hashMany(keys, found, f.containsBatch)
}

// ContainsStrings is ContainsMany for strings.
func (f *Scalable) ContainsStrings(keys []string, found []bool) int {
	return f.hashStrings(keys, found, f.containsBatch)
}

// ContainsHashes is ContainsMany for hashed keys; see [Filter.AddHash].
func (f *Scalable) ContainsHashes(hashes []uint64, found []bool) int {
	return inParts(hashes, found, f.containsBatch)
}

func (f *Scalable) containsBatch(hashes []uint64, found []bool) int {
	return f.layers.Load().containsBatch(hashes, found)
}

// now returns the current layers.
func (f *Scalable) now() *layers { return f.layers.Load() }

// Config returns what the filter was made with, defaults filled in, without the
// secret. Rate is the p of the whole filter.
func (f *Scalable) Config() ScalableConfig { return f.config }

// Plan returns the sizing of all layers there are now: their keys, bits and blocks, and
// the sum of their rates, which is below p. Probes is the newest's. Its RateAt is
// meaningless: it takes the bits for those of one filter.
func (f *Scalable) Plan() Plan { return f.layers.Load().plan() }

// Report reports on all layers together; see [Filter.Report] and, for each layer,
// [Scalable.Layers]. Remaining is how many keys fit before the filter grows. It holds
// more keys than planned only when Err is not nil.
func (f *Scalable) Report() Report { return f.layers.Load().report() }

// Layers returns a report for each layer, oldest first.
func (f *Scalable) Layers() []Report { return f.layers.Load().reports() }

// Compact returns one Filter of the same rate and hash, planned for the number of keys
// in the Scalable. It is smaller and faster, and does not grow. The layers' bits cannot
// be joined, so keys must provide the keys again. Compact may run while others add;
// their keys are in the Filter if the stream has them.
//
// The error wraps [ErrRate] when the stream has more different keys than the Scalable
// had when the call began, by more than chance explains.
func (f *Scalable) Compact(keys iter.Seq[[]byte]) (*Filter, error) {
	r := f.Report()
	n := float64(r.Added)
	if !math.IsInf(r.Keys, 1) {
		n = max(n, math.Ceil(r.Keys+float64(4*r.KeysError)))
	}
	plan, err := Config{Keys: uint64(max(n, 1)), Rate: f.config.Rate}.Plan()
	if err != nil {
		return nil, err
	}
	compact, err := newFilter(plan, f.Hasher)
	if err != nil {
		return nil, err
	}
	compact.note(f.noted())
	hashes := make([]uint64, 0, chunk)
	for key := range keys {
		if hashes = append(hashes, f.Hash(key)); len(hashes) == chunk {
			compact.AddHashes(hashes, nil)
			hashes = hashes[:0]
		}
	}
	compact.AddHashes(hashes, nil)
	if got := compact.Report(); got.Overfull() {
		compact.Close()
		return nil, fmt.Errorf("%w: the stream has about %.0f keys, and the filter to compact %.0f", ErrRate, got.Keys, n)
	}
	return compact, nil
}

// Clear empties the filter and shrinks it to its first layer. Adds wait for it; a
// concurrent lookup may answer either way. It panics if the filter is an open file, in
// which bits are only ever set.
func (f *Scalable) Clear() {
	f.mustBeWritable()
	if f.update != nil {
		panic("bloom: a file that is open for update cannot be cleared: remove it, and create another")
	}
	l := f.lockedLayers()
	defer l.unlock()
	first := l.filters[len(l.filters)-1].emptied()
	f.layers.Store(newLayers([]*Shared{first}, layerRoom(first.plan)))
	// The collector frees the other layers when no lookup uses them any longer.
}

// Close releases the memory at once; see [Filter.Close]. It syncs a filter from
// [OpenUpdateScalable] or [ScalableConfig.Create].
func (f *Scalable) Close() error {
	if f.update != nil {
		return f.closeUpdate()
	}
	return f.layers.Load().close()
}

func (f *Scalable) String() string {
	l := f.layers.Load()
	return fmt.Sprintf("scalable filter: p %.4g, %d layers, m %d; %v", f.config.Rate, len(l.filters), l.plan().Bits, f.id)
}

// SetSecret is [Hasher.SetSecret].
func (f *Scalable) SetSecret(secret []byte) error {
	if err := f.Hasher.SetSecret(secret); err != nil {
		return err
	}
	for _, layer := range f.layers.Load().filters {
		layer.Hasher = f.Hasher
	}
	return nil
}

func (f *Scalable) mustBeWritable() {
	if f.readOnly {
		panic("bloom: the filter was opened read-only: LoadScalable the file, or open it for update")
	}
}

// stored lays the filter out as a file while others may add to it. Layers that begin
// later are not in the file.
func (f *Scalable) stored() (*filterfile.File, error) {
	l := f.layers.Load()
	l.mustBeOpen()
	sections, words := l.sections()
	added := uint64(0)
	for _, e := range sections {
		added += e.Added
	}
	s := filterfile.New(f.header(), added, sections, words)
	s.Live = l
	return s, nil
}

func (f *Scalable) header() filterfile.Header {
	return filterfile.Header{
		Kind:       filterfile.KindScalable,
		Scheme:     filterfile.SchemePaired,
		Hash:       f.id.stored(),
		Keys:       f.config.First,
		Rate:       f.config.Rate,
		Meta:       f.noted(),
		Parameters: [2]uint64{uint64(f.config.Growth), f.config.Budget},
	}
}

// lockedLayers returns the layers with all of their gates held, so nobody adds.
func (f *Scalable) lockedLayers() *layers {
	for {
		l := f.layers.Load()
		l.mustBeOpen()
		l.lock()
		if f.layers.Load() == l {
			return l
		}
		l.unlock()
	}
}

func scalableFrom(s *filterfile.File) (*Scalable, error) {
	if err := s.MustHold(filterfile.KindScalable); err != nil {
		return nil, err
	}
	growth := s.Parameters[0]
	if growth < 2 || growth > maxGrowth || s.Rate <= 0 || s.Rate >= 1 {
		return nil, fmt.Errorf("%w: growth %d at rate %g", ErrFormat, growth, s.Rate)
	}
	f := &Scalable{
		config: ScalableConfig{First: s.Keys, Rate: s.Rate, Growth: int(growth), Budget: s.Parameters[1]},
		Hasher: hashIdentity(s.Hash).Hasher(),
	}
	f.note(s.Meta)
	if HashAlgorithm(s.Hash.Algorithm) == XXH3 {
		f.config.Seed = s.Hash.Key
	}
	filters := layersFrom(s, f.Hasher)
	room := layerRoom(filters[0].plan) - int64(min(filters[0].added(), math.MaxInt64))
	l := newLayers(filters, max(room, 0)) // without room the next new key makes it grow
	if limit := f.config.Budget; limit != 0 && l.plan().Bytes() > limit {
		return nil, fmt.Errorf("%w: layers of %d bytes under a limit of %d", ErrFormat, l.plan().Bytes(), limit)
	}
	if room < 0 { // it was over-full, and Err must say so at once
		if _, err := f.nextPlan(l); err != nil {
			l = f.overfull(l, err)
		}
	}
	f.layers.Store(l)
	return f, nil
}

// WriteTo writes the filter as a file, while others may add; see [Shared.WriteTo].
func (f *Scalable) WriteTo(w io.Writer) (int64, error) {
	s, err := f.stored()
	if err != nil {
		return 0, err
	}
	return s.WriteTo(w)
}

// Save writes the filter to a file at path; see [Filter.Save].
func (f *Scalable) Save(path string) error { return filterfile.Save(path, f.WriteTo) }

// ReadScalable reads a filter that [Scalable.WriteTo] wrote; see [Read].
func ReadScalable(r io.Reader, limitBytes int64) (*Scalable, error) {
	return read(r, limitBytes, scalableInMemory)
}

// LoadScalable reads the file at path; see [Load].
func LoadScalable(path string) (*Scalable, error) { return load(path, scalableInMemory) }

// scalableInMemory makes the filter that a file holds. If the file was written while
// keys were being added, the newest layer has less room than its count says.
func scalableInMemory(s *filterfile.File) (*Scalable, error) {
	f, err := scalableFrom(s)
	if err != nil {
		return nil, err
	}
	if l := f.layers.Load(); l.err == nil {
		l.room.Store(max(layerRoom(l.filters[0].plan)-int64(l.filters[0].addedByBits()), 0))
	}
	return f, nil
}
