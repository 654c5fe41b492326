package bloom

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
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
// It is a ring of filters, its generations, each of which takes the adds of T/G.
// G+1 of them are looked in, so that between G and G+1 of these times are
// remembered. Add always writes the newest one, also if an older has the key, and
// answers "new" if none of them had it.
//
// The rate is p with all generations full. Each is planned for n/G keys at the
// rate p/(G+1): n keys in any T, coming evenly. If they come in bursts, plan for
// G times as many as come in the busiest T/G; a key counts once in each
// generation that it is added in. A window does not grow: with more keys than
// that its rate rises, and Report says so.
//
// Any number of goroutines may use it at once, as with [SyncFilter]: of those
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
type Window struct {
	config WindowConfig
	hash   hasher
	chain  atomic.Pointer[chain]

	origin time.Time    // the chain's starts are counted from here
	step   int64        // WindowConfig.step
	next   atomic.Int64 // when the newest generation ends, after origin

	turning  sync.Mutex       // held by who replaces the chain
	clean    chan *SyncFilter // empty generations, waiting for their turn
	cleaning sync.WaitGroup
}

// WindowConfig says what Window to make. Keys, Rate and Span must be given; all
// other fields may be zero.
type WindowConfig struct {
	Keys uint64        // n, the number of different keys in a Span
	Rate float64       // p
	Span time.Duration // T, how long a key is found at least

	// Generations is G, 1 to 60; zero means 4. A key is forgotten Span/G after
	// Span at the latest. Up to a dozen, more of them take less memory, as there
	// is room for the keys of (G+2)/G Spans; and a lookup takes more steps.
	Generations int

	Budget uint64 // the most bytes that the bits may take; zero means no limit

	Seed   uint64 // of XXH3; public
	Secret []byte // SecretBytes bytes: SipHash-2-4 in place of XXH3

	// Now is the clock, nil for the system's. It must be safe for many
	// goroutines. One that ticks only now and then saves time in each call, and
	// Span is then kept to within a tick.
	Now func() time.Time
}

const (
	defaultGenerations = 4
	maxGenerations     = 60 // with what is beside them, fewer than maxLayers

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

// New returns an empty window. It takes all its memory now: one filter for each
// of the G+1 generations, and one that is being cleared for the next turn.
func (c WindowConfig) New() (*Window, error) {
	if c.Generations == 0 {
		c.Generations = defaultGenerations
	}
	plan, err := c.check()
	if err != nil {
		return nil, err
	}
	hash, err := newHasher(c.Seed, c.Secret)
	if err != nil {
		return nil, err
	}
	c.Secret = nil // the hasher has it
	w, err := c.empty(plan, hash, c.Generations+2)
	if err != nil {
		return nil, err
	}
	first := newChain([]*SyncFilter{<-w.clean}, unlimited)
	first.starts = []int64{0}
	w.chain.Store(first)
	w.next.Store(w.step)
	return w, nil
}

// check refuses what makes no window, and sizes a generation.
func (c WindowConfig) check() (Plan, error) {
	if c.Generations < 1 || c.Generations > maxGenerations {
		return Plan{}, fmt.Errorf("%w: Generations must be 1 to %d, not %d", ErrConfig, maxGenerations, c.Generations)
	}
	if c.Span < time.Duration(c.Generations) || c.Span > maxSpan {
		return Plan{}, fmt.Errorf("%w: the Span of a window must be above zero and at most %v, not %v", ErrConfig, time.Duration(maxSpan), c.Span)
	}
	return c.plan()
}

// step is T/G in nanoseconds, rounded up.
func (c WindowConfig) step() int64 {
	g := int64(c.Generations)
	return (int64(c.Span) + g - 1) / g
}

// empty makes a window of so many clean generations, none of them in its chain
// yet.
func (c WindowConfig) empty(plan Plan, hash hasher, generations int) (*Window, error) {
	w := &Window{
		config: c,
		hash:   hash,
		step:   c.step(),
		clean:  make(chan *SyncFilter, c.Generations+2),
	}
	for range generations {
		layer, err := newLayer(plan, hash)
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

// plan sizes a generation.
func (c WindowConfig) plan() (Plan, error) {
	g := uint64(c.Generations)
	one := Config{Keys: c.Keys / g, Rate: c.Rate / float64(g+1)}
	if c.Keys%g != 0 {
		one.Keys++
	}
	if !(c.Rate > 0 && c.Rate < 1) {
		one.Rate = c.Rate // for Plan to refuse what was given
	}
	plan, err := one.Plan()
	if err != nil {
		return Plan{}, err
	}
	if total := plan.Bytes() * (g + 2); c.Budget != 0 && total > c.Budget {
		return Plan{}, fmt.Errorf("%w: %d generations and a spare one of %d bytes need %d, the budget is %d: raise the budget or the rate, or plan for fewer keys",
			ErrBudget, g+1, plan.Bytes(), total, c.Budget)
	}
	return plan, nil
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

// advance begins the generation that now lies in, unless somebody else did.
func (w *Window) advance(now int64) {
	w.turning.Lock()
	defer w.turning.Unlock()
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
// The new generation is an empty one that lies ready, so the turn itself takes
// microseconds. Adds that come meanwhile wait for it: a key that came after the
// end of a generation must not get into it, or it would be forgotten too soon.
func (w *Window) turn(start, oldest int64) {
	layers, starts := []*SyncFilter{<-w.clean}, []int64{start}
	var dropped []*SyncFilter
	c := w.chain.Load()
	c.lock()
	for i, layer := range c.layers {
		if c.starts[i] < oldest {
			dropped = append(dropped, layer)
			continue
		}
		if i == 0 {
			layer = layer.freeze()
		}
		layers, starts = append(layers, layer), append(starts, c.starts[i])
	}
	next := newChain(layers, unlimited)
	next.starts = starts
	w.chain.Store(next)
	w.next.Store(start + w.step)
	c.unlock()
	w.forget(dropped)
}

// inlineWords is how much is cleared by the call that dropped it: 128 KiB, some
// tens of microseconds.
const inlineWords = 128 << 10 / 8

// forget clears generations for their next turn, large ones beside the caller.
func (w *Window) forget(dropped []*SyncFilter) {
	words := 0
	for _, layer := range dropped {
		words += len(layer.bits.Words)
	}
	if words <= inlineWords {
		w.clear(dropped)
		return
	}
	w.cleaning.Go(func() { w.clear(dropped) })
}

func (w *Window) clear(dropped []*SyncFilter) {
	for _, layer := range dropped {
		w.clean <- layer.emptied()
	}
}

// Add puts key into the window and reports whether it is certainly new: not
// added in the last Span. Added again it is remembered from now on.
func (w *Window) Add(key []byte) bool { return w.AddHash(w.hash.bytes(key)) }

// AddString is Add for a string: the same bytes give the same bits.
func (w *Window) AddString(key string) bool { return w.AddHash(w.hash.string(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (w *Window) AddUint64(key uint64) bool { return w.AddHash(w.hash.integer(key)) }

// AddHash is Add for a key that is hashed already; see [Filter.AddHash].
func (w *Window) AddHash(h uint64) bool {
	for c := w.now(); ; c = w.chain.Load() {
		newest := c.layers[0]
		if newest.ContainsHash(h) {
			return false
		}
		seen := anyContains(c.layers[1:], h)
		g := c.gate(h)
		g.Lock()
		if w.chain.Load() != c {
			g.Unlock()
			continue
		}
		isNew := newest.AddHash(h)
		g.Unlock()
		return isNew && !seen
	}
}

// AddMany adds the keys one after the other, between those of other goroutines,
// and returns how many were certainly new; see [Filter.AddMany].
func (w *Window) AddMany(keys [][]byte, isNew []bool) int {
	return w.hash.hashMany(keys, isNew, w.addBatch)
}

// AddStrings is AddMany for strings.
func (w *Window) AddStrings(keys []string, isNew []bool) int {
	return w.hash.hashStrings(keys, isNew, w.addBatch)
}

// AddHashes is AddMany for keys that are hashed already; see [Filter.AddHash].
func (w *Window) AddHashes(hashes []uint64, isNew []bool) int {
	return inParts(hashes, isNew, w.addBatch)
}

func (w *Window) addBatch(hashes []uint64, isNew []bool) (added int) {
	s := newSieve(hashes)
	clear(isNew)
	for c := w.now(); ; c = w.chain.Load() {
		if s.drop(0, c.layers[0], nil); s.n == 0 {
			break
		}
		s.look(c.layers[1:])
		g := c.gate(s.hashes[0])
		g.Lock()
		if w.chain.Load() == c {
			added = s.addUnseen(c.layers[0], isNew)
			g.Unlock()
			break
		}
		g.Unlock()
	}
	sieves.Put(s)
	return added
}

// look notes which keys in the sieve any of the layers has.
func (s *sieve) look(layers []*SyncFilter) {
	clear(s.seen[:s.n])
	for i, layer := range layers {
		if layer.bits.ContainsBatchSync(s.hashes[:s.n], s.answers[:s.n], &s.recent[i+1]) == 0 {
			continue
		}
		for j, has := range s.answers[:s.n] {
			s.seen[j] = s.seen[j] || has
		}
	}
}

// addUnseen adds all keys in the sieve to the layer. isNew, of the whole chunk,
// becomes true for those that were new to it and not seen by look.
func (s *sieve) addUnseen(layer *SyncFilter, isNew []bool) (added int) {
	layer.addBatch(s.hashes[:s.n], s.answers[:s.n])
	for j, is := range s.answers[:s.n] {
		if is && !s.seen[j] {
			isNew[s.at[j]] = true
			added++
		}
	}
	s.n = 0
	return added
}

// Contains reports whether key was probably added in the last Span(1+1/G). False
// is certain: it was not added in the last Span.
func (w *Window) Contains(key []byte) bool { return w.ContainsHash(w.hash.bytes(key)) }

// ContainsString is Contains for a string.
func (w *Window) ContainsString(key string) bool { return w.ContainsHash(w.hash.string(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (w *Window) ContainsUint64(key uint64) bool { return w.ContainsHash(w.hash.integer(key)) }

// ContainsHash is Contains for a key that is hashed already; see [Filter.AddHash].
func (w *Window) ContainsHash(h uint64) bool { return w.now().containsHash(h) }

// ContainsMany returns how many of the keys Contains would find; see
// [Filter.ContainsMany].
func (w *Window) ContainsMany(keys [][]byte, found []bool) int {
	return w.hash.hashMany(keys, found, w.containsBatch)
}

// ContainsStrings is ContainsMany for strings.
func (w *Window) ContainsStrings(keys []string, found []bool) int {
	return w.hash.hashStrings(keys, found, w.containsBatch)
}

// ContainsHashes is ContainsMany for keys that are hashed already; see
// [Filter.AddHash].
func (w *Window) ContainsHashes(hashes []uint64, found []bool) int {
	return inParts(hashes, found, w.containsBatch)
}

func (w *Window) containsBatch(hashes []uint64, found []bool) int {
	return w.now().containsBatch(hashes, found)
}

// Hash returns the hash of key that AddHash and ContainsHash take.
func (w *Window) Hash(key []byte) uint64 { return w.hash.bytes(key) }

// HashString is Hash for a string.
func (w *Window) HashString(key string) uint64 { return w.hash.string(key) }

// HashIdentity says which hash fills the window.
func (w *Window) HashIdentity() HashIdentity { return w.hash.id }

// Plan returns the sizing of all G+1 generations together: their keys, bits and
// blocks, the sum of their rates, which is at most p, and a generation's Probes.
// RateAt is of no use: it takes the bits for one filter's.
func (w *Window) Plan() Plan {
	plan, generations := w.chain.Load().layers[0].plan, uint64(w.config.Generations+1)
	plan.Keys *= generations
	plan.Rate *= float64(generations)
	plan.Bits *= generations
	plan.Blocks *= generations
	return plan
}

// Report reads the bits of all generations and says how full they are and what
// the rate is now. A key counts once in each generation that it was added in.
// One generation may be over-full though all together are not; see
// [Window.Generations].
func (w *Window) Report() Report {
	c := w.now()
	r := c.report()
	r.Fill *= float64(len(c.layers)) / float64(w.config.Generations+1) // the others are empty
	r.Plan = w.Plan()
	r.Remaining = 0
	if left := float64(r.Plan.Keys) - r.Keys; left > 0 {
		r.Remaining = uint64(left)
	}
	return r
}

// Generations returns the report of each generation that keys were added in,
// oldest first; the last is the newest.
func (w *Window) Generations() []Report { return w.now().reports() }

// Span is the time for which a key is found at least.
func (w *Window) Span() time.Duration { return w.config.Span }

// Clear forgets all keys while nobody can add any. A lookup that runs beside it
// may answer either way.
func (w *Window) Clear() {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.turn(w.chain.Load().starts[0], math.MaxInt64)
}

// Close releases the memory at once. It must not run beside any other method; a
// window may also be dropped, see [Filter.Close].
func (w *Window) Close() error {
	w.cleaning.Wait()
	first := w.chain.Load().close()
	for len(w.clean) > 0 {
		if err := (<-w.clean).Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (w *Window) String() string {
	plan := w.chain.Load().layers[0].plan
	return fmt.Sprintf("window of %v: %d generations of %v; %v", w.config.Span, w.config.Generations+1, plan, w.hash.id)
}

// NeedsSecret reports whether the window was read from a file and is keyed: then
// hashing keys panics until SetSecret.
func (w *Window) NeedsSecret() bool { return w.hash.locked }

// SetSecret gives a keyed window that was read from a file its secret; see
// [Filter.SetSecret]. It must run before the window is shared.
func (w *Window) SetSecret(secret []byte) error {
	if err := w.hash.unlock(secret); err != nil {
		return err
	}
	for _, layer := range w.chain.Load().layers {
		layer.hash = w.hash
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
func (w *Window) stored() (*stored, error) {
	c := w.chain.Load()
	c.mustBeOpen()
	sections, words := c.sections()
	added := uint64(0)
	for i := range sections {
		sections[i].start = w.origin.UnixNano() + c.starts[len(sections)-1-i]
		added += sections[i].added
	}
	s := newStored(header{
		kind:       kindWindow,
		scheme:     schemePaired,
		hash:       w.hash.id,
		keys:       w.config.Keys,
		rate:       w.config.Rate,
		parameters: [2]uint64{uint64(w.config.Generations), uint64(w.config.Span)},
	}, added, sections, words)
	s.live = c
	return s, nil
}

// windowFrom makes the window that a file holds, with a clock.
func windowFrom(s *stored, now func() time.Time) (*Window, error) {
	if err := s.mustHold(kindWindow); err != nil {
		return nil, err
	}
	if err := s.refuseMeta(); err != nil {
		return nil, err
	}
	c := WindowConfig{Keys: s.keys, Rate: s.rate, Now: now}
	if g := s.parameters[0]; g >= 1 && g <= maxGenerations {
		c.Generations = int(g)
	}
	if span := s.parameters[1]; span <= maxSpan {
		c.Span = time.Duration(span)
	}
	if _, err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if len(s.sections) > c.Generations+1 {
		return nil, fmt.Errorf("%w: %d generations of %d", ErrFormat, len(s.sections), c.Generations)
	}
	if s.hash.Algorithm == XXH3 {
		c.Seed = s.hash.Key
	}
	step := c.step()
	like := s.sections[0]
	for i, e := range s.sections {
		if e.blocks != like.blocks || e.probes != like.probes || e.keys != like.keys || e.rate != like.rate {
			return nil, fmt.Errorf("%w: generation %d is not like the others", ErrFormat, i)
		}
		// turn counts on generations not being closer than this: then one is
		// always dropped before the clean ones run out.
		if e.start < -maxTime || e.start > maxTime || i > 0 && e.start-s.sections[i-1].start < step {
			return nil, fmt.Errorf("%w: generation %d begins at %d, less than a step after the one before", ErrFormat, i, e.start)
		}
	}
	w, err := c.empty(pairedPlan(like.keys, like.rate, &like), storedHasher(s.hash), c.Generations+2-len(s.sections))
	if err != nil {
		return nil, err
	}
	loaded := newChain(layersFrom(s, w.hash), unlimited)
	for _, e := range slices.Backward(s.sections) {
		loaded.starts = append(loaded.starts, e.start-w.origin.UnixNano())
	}
	w.chain.Store(loaded)
	w.next.Store(loaded.starts[0] + w.step)
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
	return s.writeTo(to)
}

// Save writes the window to a file at path; see [Filter.Save].
func (w *Window) Save(path string) error { return save(path, w.WriteTo) }

// ReadWindow reads a window that [Window.WriteTo] wrote; see [Read]. now is its
// clock from then on, nil for the system's; time goes on while a window lies in
// a file. It takes memory for all generations, also for those that the file, of
// a window that has just begun, has none of.
func ReadWindow(r io.Reader, limitBytes int64, now func() time.Time) (*Window, error) {
	return read(r, limitBytes, func(s *stored) (*Window, error) { return windowFrom(s, now) })
}

// LoadWindow reads the file at path; see [Load] and [ReadWindow].
func LoadWindow(path string, now func() time.Time) (*Window, error) {
	return load(path, func(s *stored) (*Window, error) { return windowFrom(s, now) })
}
