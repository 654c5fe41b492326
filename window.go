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

// Window is a filter that forgets. A key is found for the time T after it was
// last added, surely, and forgotten T(1+1/G) after it at the latest. In between
// it may be either.
//
//	|<-------------------- T ------------------->|<-- T/G -->|
//	+----------+-----------+----------+-----------+----------+
//	|  oldest  |           |          |           |  newest  |    G = 4
//	+----------+-----------+----------+-----------+----------+
//	 dropped when the newest one's time is over     adds go here
//
// It is a ring of generations, each of which takes the adds of T/G. G+1 of them
// are looked in, so that between G and G+1 of these times are remembered. Add
// always writes the newest one, also if an older has the key, and answers "new" if
// none of them had it.
//
// The rate is at most p however the keys come: n in any T, evenly or all at once,
// and beyond that, too. A generation has room for the n/G keys that come in its
// time when all is even. When it is full it grows, as a [Scalable] does, by layers
// that are forgotten with it; see [WindowConfig.Layers] for what that takes. A key
// takes room once in each generation that it is added in.
//
// Any number of goroutines may use it at once, as with [Shared]: of those
// that add a key at the same time at most one is told that it is new, also while
// generations change, and looking up takes no lock.
//
// # Time
//
// Every call reads the clock. Without Config's Now it is the system's monotonic
// clock, which nobody sets back or forth, at some 25 ns a call; the Many methods
// read it once for a thousand keys. After a clock of the caller's own jumps
// backwards, nothing is forgotten until it is where it was: late, never early.
// After a jump forwards everything older is forgotten at once.
//
// # At the limit
//
// As with a [Scalable], a key that was added is found, so Add cannot refuse one.
// When the newest generation is full and cannot grow, adds go into its last layer
// and the rate rises above p until that generation is forgotten. So long
// [Window.Err] returns an error that says why.
type Window struct {
	Hasher
	Metadata

	config WindowConfig
	chain  atomic.Pointer[chain]
	first  Plan // of the first layer of each generation

	origin time.Time    // the chain's starts are counted from here
	step   int64        // WindowConfig.step
	next   atomic.Int64 // when the newest generation ends, after origin

	turning  sync.Mutex   // held to replace the chain
	clean    chan *Shared // empty first layers, waiting for their turn
	cleaning sync.WaitGroup
	further  uint64 // bytes of all layers but the first ones; guarded by turning
	limits   windowLimits
	closed   bool // guarded by turning
}

// WindowConfig says what Window to make. Keys, Rate and Span must be given; all
// other fields may be zero.
type WindowConfig struct {
	Keys uint64        // n, the number of different keys in a Span
	Rate float64       // p
	Span time.Duration // T, how long a key is found at least

	// Generations is G, 1 to 30; zero means 4. A key is forgotten Span/G after
	// Span at the latest. Up to a dozen, more of them take less memory, as there
	// is room for the keys of (G+2)/G Spans; and a lookup takes more steps.
	Generations int

	// Budget is the most bytes that the bits of all layers may take; zero means no
	// limit. It is not stored in a file.
	Budget uint64

	Seed   uint64 // of XXH3; public
	Secret []byte // SecretBytes bytes: SipHash-2-4 in place of XXH3

	// Now is the clock, nil for the system's. It must be safe for many
	// goroutines. One that ticks only now and then saves time in each call, and
	// Span is then kept to within a tick.
	Now func() time.Time
}

const (
	defaultGenerations = 4

	// maxGenerations of two layers each are as many layers as a file can hold.
	// Files may have more generations, from when each had one layer.
	maxGenerations       = filterfile.MaxSections/2 - 1
	maxStoredGenerations = 60

	// maxSpan and maxTime, in nanoseconds, keep sums of times from overflowing:
	// 73 and 146 years.
	maxSpan = 1 << 61
	maxTime = 1 << 62
)

// NewWindow returns an empty window that remembers keys for a span of time, n of
// them, at false-positive rate p.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget].
func NewWindow(n uint64, p float64, span time.Duration) (*Window, error) {
	return WindowConfig{Keys: n, Rate: p, Span: span}.New()
}

// New returns an empty window. It takes the memory now that it needs when keys
// come evenly: one layer for each of the G+1 generations, and one that is being
// cleared for the next turn.
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
	w.chain.Store(newRing([]*Shared{<-w.clean}, []int64{0}, layerRoom(w.first)))
	w.next.Store(w.step)
	return w, nil
}

// check refuses what makes no window.
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

// empty makes a window with clean first layers for this many generations, and no
// chain yet.
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

// now returns the chain for this moment.
func (w *Window) now() *chain {
	if now := w.elapsed(); now >= w.next.Load() {
		w.advance(now)
	}
	return w.chain.Load()
}

// advance begins the generation that now lies in, unless another goroutine did.
func (w *Window) advance(now int64) {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.mustBeOpen()
	if now < w.next.Load() {
		return
	}
	start := w.chain.Load().starts[0]
	start += (now - start) / w.step * w.step
	w.turn(start, start-int64(w.config.Generations)*w.step)
}

// turn begins a generation with this start, and drops those that began before
// oldest. The caller holds turning.
//
// The first layer of the new generation lies ready, empty, so the turn itself
// takes microseconds. Adds that come meanwhile wait for it: a key that came after
// the end of a generation must not get into it, or it would be forgotten too soon.
func (w *Window) turn(start, oldest int64) {
	layers, starts := []*Shared{<-w.clean}, []int64{start}
	var clean, dropped []*Shared
	c := w.chain.Load()
	c.lock()
	for i, layer := range c.layers {
		switch {
		case c.starts[i] >= oldest:
			if i == 0 {
				layer = layer.freeze()
			}
			layers, starts = append(layers, layer), append(starts, c.starts[i])
		case c.isFirst(i):
			clean = append(clean, layer)
		default:
			dropped = append(dropped, layer)
		}
	}
	next := newRing(layers, starts, w.limits.room(layerRoom(w.first), 0))
	if c.overfullAt >= oldest {
		next.err, next.overfullAt = c.err, c.overfullAt
	}
	w.chain.Store(next)
	w.next.Store(start + w.step)
	c.unlock()
	w.giveBack(dropped)
	w.recycle(clean)
}

// inlineWords is how much is cleared by the call that dropped it: 128 KiB, some
// tens of microseconds.
const inlineWords = 128 << 10 / 8

// recycle clears first layers for their next turn, large ones in a goroutine.
func (w *Window) recycle(layers []*Shared) {
	words := 0
	for _, layer := range layers {
		words += len(layer.bits.Words)
	}
	if words <= inlineWords {
		w.clear(layers)
		return
	}
	w.cleaning.Go(func() { w.clear(layers) })
}

func (w *Window) clear(layers []*Shared) {
	for _, layer := range layers {
		layer = layer.emptied()
		layer.plan = w.first // an older release planned otherwise
		w.clean <- layer
	}
}

// Add puts key into the window and reports whether it is certainly new: not
// added in the last Span. Added again it is remembered from now on.
func (w *Window) Add(key []byte) bool { return w.AddHash(w.Hash(key)) }

// AddString is Add for a string: the same bytes give the same bits.
func (w *Window) AddString(key string) bool { return w.AddHash(w.HashString(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (w *Window) AddUint64(key uint64) bool { return w.AddHash(w.integer(key)) }

// AddHash is Add for a key that is hashed already; see [Filter.AddHash].
func (w *Window) AddHash(h uint64) bool {
	for c := w.now(); ; c = w.chain.Load() {
		if anyContains(c.layers[:c.newest], h) {
			return false
		}
		seen := anyContains(c.layers[c.newest:], h)
		g := c.gate(h)
		g.Lock()
		if w.chain.Load() != c {
			g.Unlock()
			continue
		}
		if !c.overfull && g.left == 0 && !c.refill(g) {
			g.Unlock()
			w.makeRoom(c, false)
			continue
		}
		isNew := c.layers[0].AddHash(h)
		if isNew && !c.overfull {
			g.left--
		}
		g.Unlock()
		return isNew && !seen
	}
}

// AddMany adds the keys one after the other, between those of other goroutines,
// and returns how many were certainly new; see [Filter.AddMany].
func (w *Window) AddMany(keys [][]byte, isNew []bool) int {
	return w.hashMany(keys, isNew, w.addBatch)
}

// AddStrings is AddMany for strings.
func (w *Window) AddStrings(keys []string, isNew []bool) int {
	return w.hashStrings(keys, isNew, w.addBatch)
}

// AddHashes is AddMany for keys that are hashed already; see [Filter.AddHash].
func (w *Window) AddHashes(hashes []uint64, isNew []bool) int {
	return inParts(hashes, isNew, w.addBatch)
}

func (w *Window) addBatch(hashes []uint64, isNew []bool) int {
	added, _, _ := w.addPart(hashes, isNew, false)
	return added
}

// addPart adds a chunk of keys. It returns how many were new, and how many were
// taken: all, unless bounded and a key comes for which there is no room.
func (w *Window) addPart(hashes []uint64, isNew []bool, bounded bool) (added, taken int, err error) {
	s := newSieve(hashes)
	clear(isNew)
	for c := w.now(); err == nil; c = w.chain.Load() {
		for i, layer := range c.layers[:c.newest] {
			s.drop(i, layer, nil)
		}
		if s.n == 0 {
			break
		}
		s.look(c.layers, c.newest)
		n, full := w.addTo(c, s, isNew, bounded)
		if added += n; full {
			err = w.makeRoom(c, bounded)
		}
	}
	taken = len(hashes)
	if s.n > 0 {
		taken = int(s.at[0])
	}
	sieves.Put(s)
	return added, taken, err
}

// addTo adds the keys in the sieve, none of which is in c's newest generation, as
// far as there is room. full says that there was too little.
func (w *Window) addTo(c *chain, s *sieve, isNew []bool, bounded bool) (added int, full bool) {
	g := c.gate(s.hashes[0])
	g.Lock()
	defer g.Unlock()
	if w.chain.Load() != c {
		return 0, false
	}
	if c.overfull && !bounded {
		_, added = s.addUnseen(c.layers[0], s.n, isNew)
		return added, false
	}
	room := c.take(int64(s.n))
	changed, added := s.addUnseen(c.layers[0], int(room), isNew)
	c.room.Add(room - int64(changed))
	return added, s.n > 0
}

// Contains reports whether key was probably added in the last Span(1+1/G). False
// is certain: it was not added in the last Span.
func (w *Window) Contains(key []byte) bool { return w.ContainsHash(w.Hash(key)) }

// ContainsString is Contains for a string.
func (w *Window) ContainsString(key string) bool { return w.ContainsHash(w.HashString(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (w *Window) ContainsUint64(key uint64) bool { return w.ContainsHash(w.integer(key)) }

// ContainsHash is Contains for a key that is hashed already; see [Filter.AddHash].
func (w *Window) ContainsHash(h uint64) bool { return w.now().containsHash(h) }

// ContainsMany returns how many of the keys Contains would find; see
// [Filter.ContainsMany].
func (w *Window) ContainsMany(keys [][]byte, found []bool) int {
	return w.hashMany(keys, found, w.containsBatch)
}

// ContainsStrings is ContainsMany for strings.
func (w *Window) ContainsStrings(keys []string, found []bool) int {
	return w.hashStrings(keys, found, w.containsBatch)
}

// ContainsHashes is ContainsMany for keys that are hashed already; see
// [Filter.AddHash].
func (w *Window) ContainsHashes(hashes []uint64, found []bool) int {
	return inParts(hashes, found, w.containsBatch)
}

func (w *Window) containsBatch(hashes []uint64, found []bool) int {
	return w.now().containsBatch(hashes, found)
}

// Span is the time for which a key is found at least.
func (w *Window) Span() time.Duration { return w.config.Span }

// Clear forgets all keys while nobody can add any. A lookup that runs beside it
// may answer either way.
func (w *Window) Clear() {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.mustBeOpen()
	w.turn(w.chain.Load().starts[0], math.MaxInt64)
}

// Close releases the memory at once. It must not run beside any other method; a
// window may also be dropped, see [Filter.Close].
func (w *Window) Close() error {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.closed = true
	w.next.Store(math.MinInt64) // every call comes to advance, and panics there
	w.cleaning.Wait()
	first := w.chain.Load().close()
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

// SetSecret gives a keyed window that was read from a file its secret; see
// [Filter.SetSecret]. It must run before the window is shared.
func (w *Window) SetSecret(secret []byte) error {
	if err := w.Hasher.SetSecret(secret); err != nil {
		return err
	}
	for _, layer := range w.chain.Load().layers {
		layer.Hasher = w.Hasher
	}
	return nil
}

// stored is the window as it is written while others add to it: the generations of
// this moment. A generation's start is stored as the time of day, which outlives the
// process.
//
// A generation that is dropped while it is written may be cleared, and keys of the
// next turn come into it: the file then has some of these under the old start, where
// they are forgotten too soon, but never remembered too long. They were added after
// the call, so nothing was promised of them; and keys that were there at the call are
// lost only when their time is over.
func (w *Window) stored() (*filterfile.File, error) {
	c := w.chain.Load()
	c.mustBeOpen()
	sections, words := c.sections()
	added := uint64(0)
	for i := range sections {
		sections[i].Start = w.origin.UnixNano() + c.starts[len(sections)-1-i]
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
	s.Live = c
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
	layers := layersFrom(s, hashIdentity(s.Hash).Hasher())
	w, err := c.empty(c.firstLike(s.Sections), hashIdentity(s.Hash).Hasher(), c.Generations+2-generations)
	if err != nil {
		return nil, err
	}
	w.note(s.Meta)
	var starts []int64
	for _, e := range slices.Backward(s.Sections) {
		starts = append(starts, e.Start-w.origin.UnixNano())
	}
	layers[0].countByBits()
	room := layerRoom(layers[0].plan) - int64(min(layers[0].added(), math.MaxInt64))
	loaded := newRing(layers, starts, max(room, 0)) // without room the next new key makes it grow
	for i, layer := range layers {
		if !loaded.isFirst(i) {
			w.further += layer.plan.Bytes()
		}
	}
	loaded.findOverfull(c.Rate)
	w.chain.Store(loaded)
	w.next.Store(starts[0] + w.step)
	return w, nil
}

// WriteTo writes the window as a file. Nobody waits for it, and it copies a MiB at a
// time: the file has every key whose Add returned before the call, unless its time is
// over meanwhile, and perhaps some that are added while it is written. See
// [Filter.WriteTo].
func (w *Window) WriteTo(to io.Writer) (int64, error) {
	s, err := w.stored()
	if err != nil {
		return 0, err
	}
	return s.WriteTo(to)
}

// Save writes the window to a file at path; see [Filter.Save].
func (w *Window) Save(path string) error { return filterfile.Save(path, w.WriteTo) }

// ReadWindow reads a window that [Window.WriteTo] wrote; see [Read]. now is its
// clock from then on, nil for the system's; time goes on while a window lies in
// a file. It takes memory for the first layers of all generations, also for those
// that the file, of a window that has just begun, has none of. It has no Budget.
func ReadWindow(r io.Reader, limitBytes int64, now func() time.Time) (*Window, error) {
	return read(r, limitBytes, func(s *filterfile.File) (*Window, error) { return windowFrom(s, now) })
}

// LoadWindow reads the file at path; see [Load] and [ReadWindow].
func LoadWindow(path string, now func() time.Time) (*Window, error) {
	return load(path, func(s *filterfile.File) (*Window, error) { return windowFrom(s, now) })
}
