package bloom

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom/internal/filterfile"
)

// Window is a filter whose keys expire. A key is certainly found for the time T after
// it was last added, and expires T(1+1/G) after that at the latest. In between it may
// be either.
//
//	|<-------------------- T ------------------->|<-- T/G -->|
//	+----------+-----------+----------+-----------+----------+
//	|  oldest  |           |          |           |  newest  |    G = 4
//	+----------+-----------+----------+-----------+----------+
//	 dropped when the newest one's time is over     adds go here
//
// It is a ring of generations, each of which takes the adds of T/G. Lookups search G+1
// of them, so they cover between G and G+1 of these times. Add always writes the
// newest, even if an older one has the key, and answers "new" if none had it.
//
// The rate is at most p however the keys arrive: n in any T, evenly or all at once,
// and beyond that, too. A generation has room for the n/G keys of its time, if they
// arrive evenly. When it is full it grows, as a [Scalable] does, by layers that expire
// with it; see [WindowConfig.Layers] for the memory. A key takes room once in each
// generation that it is added in.
//
// Any number of goroutines may use it at once, as with [Shared]: of those that add a
// key at the same time at most one is told that it is new, also while generations
// change, and lookups take no lock. The zero Window is not usable: make one with
// [NewWindow], [WindowConfig.New] or [LoadWindow].
//
// # Time
//
// Every call reads the clock. Without WindowConfig.Now that is the system's monotonic
// clock, which nobody can set, at about 25 ns a call; the Many methods read it once
// for a thousand keys. After your own clock jumps backwards, nothing expires until it
// is back where it was: late, never early. After a jump forwards everything older
// expires at once.
//
// # At the limit
//
// As in a [Scalable], a key that was added must be found, so Add cannot refuse one.
// When the newest generation is full and cannot grow, adds go into its last layer and
// the rate rises above p until that generation expires. Meanwhile [Window.Err] returns
// the reason.
type Window struct {
	Hasher
	Metadata

	config WindowConfig
	layers atomic.Pointer[layers]
	first  Plan // of the first layer of each generation

	origin time.Time    // the layers' starts are counted from here
	step   int64        // WindowConfig.step
	next   atomic.Int64 // when the newest generation ends, after origin

	turning  sync.Mutex   // held to replace the layers
	clean    chan *Shared // empty first layers, waiting for their turn
	cleaning sync.WaitGroup
	further  uint64 // bytes of all layers but the first ones; guarded by turning
	limits   windowLimits
	closed   bool // guarded by turning
}

// WindowConfig describes a Window. Keys, Rate and Span are required; all other fields
// may be zero.
type WindowConfig struct {
	Keys uint64        // n, the number of different keys in a Span
	Rate float64       // p
	Span time.Duration // T, how long a key is certainly found

	// Generations is G, 1 to 30; zero means 4. A key expires Span/G after Span at
	// the latest. Up to a dozen, more generations take less memory, since there is
	// room for the keys of (G+2)/G Spans; and a lookup takes more steps.
	Generations int

	// Budget is the most bytes that the bits of all layers may take; zero means no
	// limit. It is not stored in a file.
	Budget uint64

	Seed   uint64 // of XXH3; public
	Secret []byte // SecretBytes bytes: SipHash-2-4 in place of XXH3

	// Now is the clock, nil for the system's. It must be safe for concurrent use.
	// A coarse clock saves time in each call; Span is then exact to within a tick.
	Now func() time.Time
}

const (
	defaultGenerations = 4

	// maxGenerations of two layers each fill the sections of a file. Files may have
	// more generations, from releases in which each had one layer.
	maxGenerations       = filterfile.MaxSections/2 - 1
	maxStoredGenerations = 60

	// maxSpan and maxTime, in nanoseconds, keep sums of times from overflowing:
	// 73 and 146 years.
	maxSpan = 1 << 61
	maxTime = 1 << 62
)

// NewWindow returns an empty window for n different keys in any span of time, at
// false-positive rate p.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget].
func NewWindow(n uint64, p float64, span time.Duration) (*Window, error) {
	return WindowConfig{Keys: n, Rate: p, Span: span}.New()
}

// New returns an empty window. It allocates what is needed while keys arrive evenly:
// one layer for each of the G+1 generations, and one that is being cleared for the
// next turn.
func (c WindowConfig) New() (*Window, error) {
	c.Generations = c.generations()
	layers, err := c.Layers()
	if err != nil {
		return nil, err
	}
	hash, err := NewHasher(c.Seed, c.Secret)
	if err != nil {
		return nil, err
	}
	c.Secret = nil // the Hasher has it
	w, err := c.empty(layers[0], hash, c.Generations+2)
	if err != nil {
		return nil, err
	}
	w.layers.Store(newRing([]*Shared{<-w.clean}, []int64{0}, layerRoom(w.first)))
	w.next.Store(w.step)
	return w, nil
}

// check refuses a configuration that makes no window.
func (c WindowConfig) check(maxGenerations int) error {
	if c.Generations < 1 || c.Generations > maxGenerations {
		return fmt.Errorf("%w: Generations must be 1 to %d, not %d", ErrConfig, maxGenerations, c.Generations)
	}
	if c.Span < time.Duration(c.Generations) || c.Span > maxSpan {
		return fmt.Errorf("%w: the Span of a window must be above zero and at most %v, not %v", ErrConfig, time.Duration(maxSpan), c.Span)
	}
	if !(c.Rate > 0 && c.Rate < 1) {
		return fmt.Errorf("%w: the rate must be above 0 and below 1, not %g", ErrConfig, c.Rate)
	}
	return nil
}

// step is T/G in nanoseconds, rounded up.
func (c WindowConfig) step() int64 {
	g := int64(c.Generations)
	return (int64(c.Span) + g - 1) / g
}

// empty makes a window with clean first layers for this many generations, none of
// them in use yet.
func (c WindowConfig) empty(first Plan, hash Hasher, generations int) (*Window, error) {
	w := &Window{
		config: c,
		Hasher: hash,
		first:  first,
		step:   c.step(),
		clean:  make(chan *Shared, c.Generations+2),
	}
	for range generations {
		layer, err := newLayer(first, hash)
		if err != nil {
			return nil, err
		}
		w.clean <- layer
	}
	if c.Now == nil {
		w.origin = time.Now()
	} else {
		w.origin = c.Now()
	}
	return w, nil
}

// elapsed is the time since the origin. [time.Since] reads only the monotonic
// clock, in half the time of [time.Now].
func (w *Window) elapsed() int64 {
	if w.config.Now == nil {
		return int64(time.Since(w.origin))
	}
	return min(int64(w.config.Now().Sub(w.origin)), maxTime)
}

// now returns the layers of the present generations.
func (w *Window) now() *layers {
	if now := w.elapsed(); now >= w.next.Load() {
		w.advance(now)
	}
	return w.layers.Load()
}

// advance begins the generation that contains now, unless another goroutine has.
func (w *Window) advance(now int64) {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.mustBeOpen()
	if now < w.next.Load() {
		return
	}
	start := w.layers.Load().starts[0]
	start += (now - start) / w.step * w.step
	w.turn(start, start-int64(w.config.Generations)*w.step)
}

// turn begins a generation at start and drops those that began before oldest. The
// caller holds turning.
//
// The first layer of the new generation is ready and empty, so the turn itself takes
// microseconds. Adds wait for it: a key that arrives after the end of a generation
// must not get into it, or it would expire too soon.
func (w *Window) turn(start, oldest int64) {
	filters, starts := []*Shared{<-w.clean}, []int64{start}
	var clean, dropped []*Shared
	l := w.layers.Load()
	l.lock()
	for i, layer := range l.filters {
		switch {
		case l.starts[i] >= oldest:
			if i == 0 {
				layer = layer.freeze()
			}
			filters, starts = append(filters, layer), append(starts, l.starts[i])
		case l.isFirst(i):
			clean = append(clean, layer)
		default:
			dropped = append(dropped, layer)
		}
	}
	next := newRing(filters, starts, w.limits.room(layerRoom(w.first), 0))
	if l.overfullAt >= oldest {
		next.err, next.overfullAt = l.err, l.overfullAt
	}
	w.layers.Store(next)
	w.next.Store(start + w.step)
	l.unlock()
	w.giveBack(dropped)
	w.recycle(clean)
}

// inlineWords is the most that the call which dropped it clears itself: 128 KiB, some
// tens of microseconds.
const inlineWords = 128 << 10 / 8

// recycle clears first layers for their next turn, large ones in a goroutine of its own.
func (w *Window) recycle(filters []*Shared) {
	words := 0
	for _, layer := range filters {
		words += len(layer.bits.Words)
	}
	if words <= inlineWords {
		w.clear(filters)
		return
	}
	w.cleaning.Go(func() { w.clear(filters) })
}

func (w *Window) clear(filters []*Shared) {
	for _, layer := range filters {
		layer = layer.emptied()
		layer.plan = w.first // an older release planned differently
		w.clean <- layer
	}
}

// Add adds key and reports whether it is certainly new, that is, was not added in the
// last Span. Adding a key again renews its time.
func (w *Window) Add(key []byte) bool { return w.AddHash(w.Hash(key)) }

// AddString is Add for a string.
func (w *Window) AddString(key string) bool { return w.AddHash(w.HashString(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (w *Window) AddUint64(key uint64) bool { return w.AddHash(w.integer(key)) }

// AddHash is Add for a hashed key; see [Filter.AddHash].
func (w *Window) AddHash(h uint64) bool {
	for l := w.now(); ; l = w.layers.Load() {
		i := l.first(h)
		if i < l.newest {
			return false
		}
		seen := i < len(l.filters)
		g := l.gate(h)
		g.Lock()
		if w.layers.Load() != l {
			g.Unlock()
			continue
		}
		if !l.overfull && g.left == 0 && !l.refill(g) {
			g.Unlock()
			w.makeRoom(l, false)
			continue
		}
		isNew := l.filters[0].AddHash(h)
		if isNew && !l.overfull {
			g.left--
		}
		g.Unlock()
		return isNew && !seen
	}
}

// AddMany adds the keys in order, among other goroutines'; see [Filter.AddMany].
func (w *Window) AddMany(keys [][]byte, isNew []bool) int {
	return w.hashMany(keys, isNew, w.addBatch)
}

// AddStrings is AddMany for strings.
func (w *Window) AddStrings(keys []string, isNew []bool) int {
	return w.hashStrings(keys, isNew, w.addBatch)
}

// AddHashes is AddMany for hashed keys; see [Filter.AddHash].
func (w *Window) AddHashes(hashes []uint64, isNew []bool) int {
	return inParts(hashes, isNew, w.addBatch)
}

func (w *Window) addBatch(hashes []uint64, isNew []bool) int {
	added, _, _ := w.addPart(hashes, isNew, false)
	return added
}

// addPart adds a chunk of keys. It returns how many were new, and how many were taken:
// all, unless bounded is set and a key finds no room.
func (w *Window) addPart(hashes []uint64, isNew []bool, bounded bool) (added, taken int, err error) {
	s := newSieve(hashes)
	clear(isNew)
	for l := w.now(); err == nil; l = w.layers.Load() {
		for i, layer := range l.filters[:l.newest] {
			s.drop(i, layer, nil)
		}
		if s.n == 0 {
			break
		}
		s.look(l.filters, l.newest)
		n, full := w.addTo(l, s, isNew, bounded)
		if added += n; full {
			err = w.makeRoom(l, bounded)
		}
	}
	taken = len(hashes)
	if s.n > 0 {
		taken = int(s.at[0])
	}
	sieves.Put(s)
	return added, taken, err
}

// addTo adds the keys in the sieve, none of which is in l's newest generation, as far
// as there is room. full reports that there was too little.
func (w *Window) addTo(l *layers, s *sieve, isNew []bool, bounded bool) (added int, full bool) {
	g := l.gate(s.hashes[0])
	g.Lock()
	defer g.Unlock()
	if w.layers.Load() != l {
		return 0, false
	}
	if l.overfull && !bounded {
		_, added = s.addUnseen(l.filters[0], s.n, isNew)
		return added, false
	}
	room := l.take(int64(s.n))
	changed, added := s.addUnseen(l.filters[0], int(room), isNew)
	l.room.Add(room - int64(changed))
	return added, s.n > 0
}

// Contains reports whether key was probably added in the last Span(1+1/G). False
// is certain: it was not added in the last Span.
func (w *Window) Contains(key []byte) bool { return w.ContainsHash(w.Hash(key)) }

// ContainsString is Contains for a string.
func (w *Window) ContainsString(key string) bool { return w.ContainsHash(w.HashString(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (w *Window) ContainsUint64(key uint64) bool { return w.ContainsHash(w.integer(key)) }

// ContainsHash is Contains for a hashed key; see [Filter.AddHash].
func (w *Window) ContainsHash(h uint64) bool { return w.now().containsHash(h) }

// ContainsMany is Contains for many keys; see [Filter.ContainsMany].
func (w *Window) ContainsMany(keys [][]byte, found []bool) int {
	return w.hashMany(keys, found, w.containsBatch)
}

// ContainsStrings is ContainsMany for strings.
func (w *Window) ContainsStrings(keys []string, found []bool) int {
	return w.hashStrings(keys, found, w.containsBatch)
}

// ContainsHashes is ContainsMany for hashed keys; see [Filter.AddHash].
func (w *Window) ContainsHashes(hashes []uint64, found []bool) int {
	return inParts(hashes, found, w.containsBatch)
}

func (w *Window) containsBatch(hashes []uint64, found []bool) int {
	return w.now().containsBatch(hashes, found)
}

// Span returns T, the time for which a key is certainly found.
func (w *Window) Span() time.Duration { return w.config.Span }

// Clear empties the window. Adds wait for it; a concurrent lookup may answer either way.
func (w *Window) Clear() {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.mustBeOpen()
	w.turn(w.layers.Load().starts[0], math.MaxInt64)
}

// Close releases the memory at once; see [Filter.Close].
func (w *Window) Close() error {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.closed = true
	w.next.Store(math.MinInt64) // every call reaches advance, and panics there
	w.cleaning.Wait()
	first := w.layers.Load().close()
	for len(w.clean) > 0 {
		if err := (<-w.clean).Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// mustBeOpen is for methods that use the bits. The caller holds turning.
func (w *Window) mustBeOpen() {
	if w.closed {
		panic("bloom: the window is closed")
	}
}

func (w *Window) String() string {
	return fmt.Sprintf("window of %v: %d generations of %v; %v", w.config.Span, w.config.Generations+1, w.first, w.id)
}

// SetSecret is [Hasher.SetSecret].
func (w *Window) SetSecret(secret []byte) error {
	if err := w.Hasher.SetSecret(secret); err != nil {
		return err
	}
	for _, layer := range w.layers.Load().filters {
		layer.Hasher = w.Hasher
	}
	return nil
}

// stored lays out the window's present generations as a file, while others may add. A
// generation's start is stored as wall-clock time, which outlives the process.
//
// A generation that is dropped while it is being written may be cleared and get keys of
// the next turn. The file then has some of these under the old start, where they expire
// too soon, but never too late. They were added after the call, so nothing was promised
// about them; and keys that were there at the call are lost only when they expire.
func (w *Window) stored() (*filterfile.File, error) {
	l := w.layers.Load()
	l.mustBeOpen()
	sections, words := l.sections()
	added := uint64(0)
	for i := range sections {
		sections[i].Start = w.origin.UnixNano() + l.starts[len(sections)-1-i]
		added += sections[i].Added
	}
	s := filterfile.New(filterfile.Header{
		Kind:       filterfile.KindWindow,
		Scheme:     filterfile.SchemePaired,
		Hash:       w.id.stored(),
		Keys:       w.config.Keys,
		Rate:       w.config.Rate,
		Meta:       w.noted(),
		Parameters: [2]uint64{uint64(w.config.Generations), uint64(w.config.Span)},
	}, added, sections, words)
	s.Live = l
	return s, nil
}

// windowFrom makes the window that a file holds, with a clock.
func windowFrom(s *filterfile.File, now func() time.Time) (*Window, error) {
	if err := s.MustHold(filterfile.KindWindow); err != nil {
		return nil, err
	}
	c := WindowConfig{Keys: s.Keys, Rate: s.Rate, Now: now}
	if g := s.Parameters[0]; g >= 1 && g <= maxStoredGenerations {
		c.Generations = int(g)
	}
	if span := s.Parameters[1]; span <= maxSpan {
		c.Span = time.Duration(span)
	}
	if err := c.check(maxStoredGenerations); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if HashAlgorithm(s.Hash.Algorithm) == XXH3 {
		c.Seed = s.Hash.Key
	}
	generations, err := c.checkSections(s.Sections)
	if err != nil {
		return nil, err
	}
	filters := layersFrom(s, hashIdentity(s.Hash).Hasher())
	w, err := c.empty(c.firstLike(s.Sections), hashIdentity(s.Hash).Hasher(), c.Generations+2-generations)
	if err != nil {
		return nil, err
	}
	w.note(s.Meta)
	var starts []int64
	for _, e := range slices.Backward(s.Sections) {
		starts = append(starts, e.Start-w.origin.UnixNano())
	}
	filters[0].countByBits()
	room := layerRoom(filters[0].plan) - int64(min(filters[0].added(), math.MaxInt64))
	loaded := newRing(filters, starts, max(room, 0)) // without room the next new key makes it grow
	for i, layer := range filters {
		if !loaded.isFirst(i) {
			w.further += layer.plan.Bytes()
		}
	}
	loaded.findOverfull(c.Rate)
	w.layers.Store(loaded)
	w.next.Store(starts[0] + w.step)
	return w, nil
}

// WriteTo writes the window as a file, while others may add; see [Shared.WriteTo]. Keys
// that expire meanwhile may be missing.
func (w *Window) WriteTo(to io.Writer) (int64, error) {
	s, err := w.stored()
	if err != nil {
		return 0, err
	}
	return s.WriteTo(to)
}

// Save writes the window to a file at path; see [Filter.Save].
func (w *Window) Save(path string) error { return filterfile.Save(path, w.WriteTo) }

// ReadWindow reads a window that [Window.WriteTo] wrote; see [Read]. now is its clock,
// nil for the system's; time passes while a window is in a file. It allocates the first
// layers of all generations, even those that a young window's file does not have. The
// window has no Budget.
func ReadWindow(r io.Reader, limitBytes int64, now func() time.Time) (*Window, error) {
	return read(r, limitBytes, func(s *filterfile.File) (*Window, error) { return windowFrom(s, now) })
}

// LoadWindow reads the file at path; see [Load] and [ReadWindow].
func LoadWindow(path string, now func() time.Time) (*Window, error) {
	return load(path, func(s *filterfile.File) (*Window, error) { return windowFrom(s, now) })
}
