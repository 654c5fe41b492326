// Package redisbloom is RedisBloom's filter, bit for bit: a chain of layers, each
// larger and stricter than the one before, that many goroutines may add to and
// read at once. It has the sizing, the hashes, the headers and the chunks of
// RedisBloom, so that BF.SCANDUMP, BF.LOADCHUNK, DUMP and RESTORE work in both
// directions.
//
// [New] makes a filter, [Read] and [Config.ReadPayload] read one, [LoadHeader] begins one
// from a header of BF.SCANDUMP. Everything that takes foreign bytes checks lengths
// against what is there, and takes memory only as bytes arrive or as the Grant
// allows.
//
// [Cuckoo] has the dumps of RedisBloom's cuckoo filter, which is [bloom.Cuckoo].
//
// For a filter of your own choose one of package bloom: it is faster and needs
// fewer bits. This one is for data that RedisBloom wrote or is to read.
package redisbloom

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/scheme"
)

// Errors of a [Filter]. Their texts are RedisBloom's, without the word ERR.
var (
	// ErrFull: the chain does not scale and has reached its capacity. The key was not
	// added.
	ErrFull = errors.New("non scaling filter is full")

	// ErrInsert: the key needs another layer, which cannot be made; the error also
	// wraps the Grant's. The key was not added.
	ErrInsert = errors.New("problem inserting into filter")
)

// Pair is the two hashes that RedisBloom makes of a key; see [Hash].
type Pair = [2]uint64

// Hash returns the two hashes of a key, which are all that a [Filter] needs to know
// about it. They are the same for every chain.
func Hash(key []byte) (a, b uint64) { return scheme.RedisBloomHashes(key) }

// HashMany sets pairs[i] to the hashes of keys[i]. pairs is as long as
// keys.
func HashMany(keys [][]byte, pairs []Pair) {
	pairs = pairs[:len(keys)]
	for i, key := range keys {
		pairs[i][0], pairs[i][1] = scheme.RedisBloomHashes(key)
	}
}

// Config says what [Filter] to make. The zero Config is what BF.ADD uses for a new
// name.
type Config struct {
	Keys uint64  // of the first layer, BF.RESERVE's capacity; zero means 100
	Rate float64 // BF.RESERVE's error rate, 0 < Rate < 1; zero means 0.01

	// Growth is by how much the capacity of each layer exceeds the one before,
	// BF.RESERVE's EXPANSION; zero means 2. NonScaling: there is only one layer.
	Growth     uint32
	NonScaling bool

	// Grant, if not nil, is asked before each layer is made, with the bytes it needs:
	// those of its bits and about 150 more; a large layer is made shortly before the
	// chain needs it. It refuses by returning an error. Release,
	// if not nil, gets back what was granted for layers that could not be made after
	// all and, when [Filter.Close] is called, for all layers. Both may be called with
	// the chain locked, so they must not use it. See [Budget].
	Grant   func(bytes uint64) error
	Release func(bytes uint64)
}

// Budget returns a Grant and a Release that share limitBytes among any number of
// chains. Grant's error wraps [bloom.ErrBudget] and names the bytes.
func Budget(limitBytes uint64) (grant func(bytes uint64) error, release func(bytes uint64)) {
	var used atomic.Uint64
	grant = func(bytes uint64) error {
		for {
			taken := used.Load()
			if bytes > limitBytes-taken {
				return fmt.Errorf("%w: %d bytes are needed, and of %d bytes %d are taken", bloom.ErrBudget, bytes, limitBytes, taken)
			}
			if used.CompareAndSwap(taken, taken+bytes) {
				return nil
			}
		}
	}
	return grant, func(bytes uint64) { used.Add(-bytes) }
}

// Filter is RedisBloom's filter: the same bits, answers and dumps as the module's BF
// commands. It is a chain of layers, each a classic Bloom filter for more keys and half
// the rate of the one before. A key is contained if any layer has it. New keys go to
// the newest layer; when that is at capacity, the next new key appends another layer.
// The model is RedisBloom 2.8.20. Later releases differ only in the largest rate they
// accept, 0.25, which the caller has to enforce.
//
// If a layer has few bits, its rate is far above the planned one, in RedisBloom and so
// here: the positions of some keys coincide, and if m is a power of two, one key in m
// has all of them in one place. 16 keys at 1e-6 get 512 bits and a rate of 2e-3. From
// some thousands of keys at 1e-4, or a million at 1e-6, this no longer matters.
// [Filter.Report] gives the true rate.
//
// Any number of goroutines may use a chain at once, except for Close. Adding has one
// winner, as in [bloom.Shared]: when goroutines race to add one key, at most one is told
// that it is new, and the key is contained as soon as any of these calls has returned.
// Lookups take no lock. An add takes the chain's gate exclusively, and then sets bits
// with plain stores. If another goroutine holds the gate and the newest layer is large,
// adds share the gate, each under the lock of its key's stripe, and set bits
// atomically. Growing takes the gate exclusively. So "is it in any layer, and if not,
// add it to the newest" is one step.
//
// Measured with ready hashes at 1e7 keys, exclusive adds took less than half the time of
// adds under stripes; hence both ways.
type Filter struct {
	newest  atomic.Pointer[layer] // nil after Close
	gate    sync.RWMutex
	ahead   atomic.Pointer[ahead]    // nil until prepare; changed with the gate held exclusively
	grant   func(bytes uint64) error // these two may be nil
	release func(bytes uint64)
	growth  uint32
	options uint32
}

// layer is one filter of a chain. Only its bits and its size change, and only while it
// is the newest layer, or by [Filter.Replay] and [Filter.LoadChunk].
type layer struct {
	size    uint64 // keys that were new; atomic, and first, where 32-bit machines align it
	bits    kernel.Modular
	stripes []kernel.Stripe // nil: adds must hold the gate exclusively
	older   *layer
	entries uint64 // keys it is planned for
	rate    float64
	perKey  float64 // bits per key, before rounding
	memory  *memory.Mapping
	index   uint32 // from the oldest, 0
	n2      uint8  // of very old dumps: log2 of the bits; else zero
	granted bool   // the chain's Grant was asked for its bytes
}

// ahead is a layer that was made ahead of time.
type ahead struct {
	after  *layer // prepare was called for the layer after this one
	next   *layer // nil if it has become the newest, or there was no memory for it
	settle func() // ends the work on its memory
}

// RedisBloom's option bits, as headers have them.
const (
	optNoRound   = 1
	optBitsGiven = 2
	optForce64   = 4 // MurmurHash64A; RedisBloom before 2.0 had a hash of 32 bits
	optNoScaling = 8
	optKnown     = optNoRound | optBitsGiven | optForce64 | optNoScaling
)

const (
	stripedBytes = 1 << 20 // layers of at least this size have stripes, which take less than 2% more
	layerStripes = 256
	mappedBytes  = 2 << 20 // the same for pages of their own

	// maxChain is above what halving the rate reaches before it is zero.
	maxChain = 1100
)

// New makes an empty chain of one layer. The error wraps [bloom.ErrConfig],
// or [bloom.ErrLimit] if the layer would be larger than 2^45 bits, or is Grant's.
func New(config Config) (*Filter, error) {
	c, first, err := config.plan()
	if err != nil {
		return nil, err
	}
	l, err := c.makeLayer(first)
	if err != nil {
		return nil, err
	}
	c.newest.Store(l)
	return c, nil
}

// plan returns a chain without layers, and the plan of the first one.
func (config Config) plan() (*Filter, link, error) {
	if config.Keys == 0 {
		config.Keys = 100
	}
	if config.Rate == 0 {
		config.Rate = 0.01
	}
	if config.Growth == 0 {
		config.Growth = 2
	}
	if !(config.Rate > 0 && config.Rate < 1) {
		return nil, link{}, fmt.Errorf("%w: a rate lies between 0 and 1, not at %v", bloom.ErrConfig, config.Rate)
	}
	c := &Filter{grant: config.Grant, release: config.Release, growth: config.Growth, options: optNoRound | optForce64}
	rate := config.Rate
	if config.NonScaling {
		c.options |= optNoScaling
	} else {
		rate *= 0.5
	}
	first, err := planLayer(config.Keys, rate)
	return c, first, err
}

// planLayer plans a layer with the module's arithmetic.
func planLayer(entries uint64, rate float64) (link, error) {
	if !(rate > 0) {
		return link{}, fmt.Errorf("%w: half of the last rate is zero", bloom.ErrLimit)
	}
	perKey := math.Abs(logNearest(rate) / 0.480453013918201)
	m := float64(entries) * perKey
	if !(m <= kernel.MaxModularBits) {
		return link{}, fmt.Errorf("%w: %d keys at rate %v need more than the %d bits that a layer may have", bloom.ErrLimit, entries, rate, uint64(kernel.MaxModularBits))
	}
	bits := (max(uint64(m), 1) + 63) / 64 * 64
	return link{bytes: bits / 8, bits: bits, entries: entries, rate: rate, perKey: perKey, probes: probesOf(perKey)}, nil
}

// makeLayer makes an empty layer if Grant allows it.
func (c *Filter) makeLayer(plan link) (*layer, error) {
	l := plan.layer()
	return l, c.provide(l, plan.bits, plan.probes)
}

func probesOf(perKey float64) uint32 { return uint32(math.Ceil(0.693147180559945 * perKey)) }

// provide allocates a layer's bits if Grant allows it.
func (c *Filter) provide(l *layer, m uint64, probes uint32) error {
	if c.grant == nil {
		return l.makeBits(m, probes)
	}
	if err := c.grant(layerTakes(m)); err != nil {
		return err
	}
	err := l.makeBits(m, probes)
	if err != nil {
		c.giveBack(layerTakes(m))
	}
	l.granted = err == nil
	return err
}

// layerTakes returns the bytes of memory that a layer of m bits needs. For a small one
// the structure is larger than its bits.
func layerTakes(m uint64) uint64 {
	total := besideBits
	if words := (m + 63) / 64; words < mappedBytes/8 {
		total += memory.Allocated(8 * words)
	} else {
		total += memory.Taken(words)
	}
	if m >= 8*stripedBytes {
		total += stripesBytes
	}
	return total
}

var (
	besideBits   = memory.Allocated(uint64(reflect.TypeFor[layer]().Size()))
	stripesBytes = memory.Allocated(layerStripes * uint64(reflect.TypeFor[kernel.Stripe]().Size()))
)

// giveBack returns what was granted.
func (c *Filter) giveBack(bytes uint64) {
	if c.release != nil {
		c.release(bytes)
	}
}

// makeBits allocates a layer's bits, all clear.
func (l *layer) makeBits(m uint64, probes uint32) error {
	words, mapping, err := room((m + 63) / 64)
	if err == nil {
		l.fill(words, mapping, m, probes)
	}
	return err
}

// fill sets a layer's bits.
func (l *layer) fill(words []uint64, mapping *memory.Mapping, m uint64, probes uint32) {
	l.bits, l.memory = kernel.NewModular(words, m, int(probes)), mapping
	if m >= 8*stripedBytes {
		l.stripes = kernel.NewStripes(layerStripes)
	}
}

// room returns zeroed words. They need no alignment, since a key's positions are spread
// over all of them, and it would double the size of small filters.
func room(words uint64) ([]uint64, *memory.Mapping, error) {
	if words < mappedBytes/8 {
		return make([]uint64, words), nil, nil
	}
	return memory.Words(words)
}

func (l *layer) items() uint64 { return atomic.LoadUint64(&l.size) }
func (l *layer) bytes() uint64 { return l.bits.Bits / 8 } // of the bits alone
func (l *layer) takes() uint64 { return layerTakes(l.bits.Bits) }

// open returns the newest layer.
func (c *Filter) open() *layer {
	l := c.newest.Load()
	if l == nil {
		panic("redisbloom: the chain is closed, or was never made: use New or LoadHeader")
	}
	return l
}

// Add adds a key and reports whether it is certainly new; see [bloom.Filter.Add].
// A key for which there is no room is not added, and the answer is false;
// [Filter.AddPair] and [Filter.AddPairs] return the error.
func (c *Filter) Add(key []byte) (isNew bool) {
	isNew, _ = c.AddPair(Hash(key))
	return isNew
}

// AddPair is Add for a key that is hashed already. The error wraps [ErrFull] or
// [ErrInsert].
func (c *Filter) AddPair(a, b uint64) (isNew bool, err error) {
	for {
		l := c.open()
		if l.anyContains(a, b) {
			return false, nil
		}
		isNew, full, again := c.addTo(l, a, b)
		switch {
		case full:
			if err := c.grow(l); err != nil {
				return false, err
			}
		case !again:
			return isNew, nil
		}
	}
}

// addTo adds a key that no layer older than l has. If l is no longer the newest, again
// is true, and the caller has to look the key up again.
func (c *Filter) addTo(l *layer, a, b uint64) (isNew, full, again bool) {
	alone := c.enter(l)
	switch {
	case c.newest.Load() != l:
		again = true
	case alone:
		isNew, full = l.bits.Add(&l.size, l.entries, a, b)
	default:
		isNew, full = l.bits.AddSync(l.stripes, &l.size, l.entries, a, b)
	}
	c.leave(alone)
	runtime.KeepAlive(l)
	return isNew, full, again
}

// enter takes the gate to add to l: exclusively or, together with others, shared, when
// each key also takes its stripe.
func (c *Filter) enter(l *layer) (alone bool) {
	if c.gate.TryLock() {
		return true
	}
	if l.stripes == nil {
		c.gate.Lock()
		return true
	}
	c.gate.RLock()
	return false
}

func (c *Filter) leave(alone bool) {
	if alone {
		c.gate.Unlock()
	} else {
		c.gate.RUnlock()
	}
}

// grow appends a layer if l is still the newest, and full.
func (c *Filter) grow(l *layer) error {
	c.gate.Lock()
	defer c.gate.Unlock()
	if c.newest.Load() != l || l.items() < l.entries {
		return nil
	}
	return c.appendLayer(l)
}

// Grow appends the next layer, whether or not the last one is full. It is for replaying
// a log that says when a chain grew. The error wraps [ErrFull] or [ErrInsert].
func (c *Filter) Grow() error {
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.appendLayer(c.open())
}

func (c *Filter) appendLayer(last *layer) error {
	if c.options&optNoScaling != 0 {
		return ErrFull
	}
	var next *layer
	if a := c.ahead.Load(); a != nil && a.next != nil {
		next, a.next = a.next, nil
	} else {
		var err error
		if next, err = c.makeNext(last); err != nil {
			return err
		}
	}
	c.newest.Store(next)
	return nil
}

// makeNext makes the layer after last.
func (c *Filter) makeNext(last *layer) (*layer, error) {
	growth := uint64(c.growth)
	if growth == 0 || last.entries == 0 || last.entries > math.MaxUint64/growth || last.index+1 >= maxChain {
		return nil, fmt.Errorf("%w: no layer is %d times as large as one for %d keys", ErrInsert, growth, last.entries)
	}
	plan, err := planLayer(last.entries*growth, last.rate*0.5)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInsert, err)
	}
	next, err := c.makeLayer(plan)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInsert, err)
	}
	next.older, next.index = last, last.index+1
	return next, nil
}

// prepareBytes is the size from which the next layer of a chain with a Grant is made
// ahead of time: when the newest one is full but for a sixteenth of its keys.
//
// The system clears a page when it is first used. The keys that follow growth use a new
// page with each probe, so that a thousand of them used up to a thousand times 2 MiB:
// the first adds to a layer of 4 GiB took 15 s.
const prepareBytes = 64 << 20

// isNearlyFull reports whether it is time to call prepare.
func (c *Filter) isNearlyFull(l *layer) bool {
	if c.grant == nil || c.options&optNoScaling != 0 || l.items() < l.entries-l.entries/16 ||
		l.bytes() < prepareBytes/max(uint64(c.growth), 1) {
		return false
	}
	a := c.ahead.Load()
	return a == nil || a.after != l
}

// prepare makes the layer after l, and begins to touch its memory in the background. If
// there is no memory for it, growing will say so.
func (c *Filter) prepare(l *layer) {
	c.gate.Lock()
	defer c.gate.Unlock()
	if c.newest.Load() != l || !c.isNearlyFull(l) {
		return
	}
	c.endAhead()
	a := &ahead{after: l, settle: func() {}}
	if next, err := c.makeNext(l); err == nil {
		a.next, a.settle = next, memory.PrefaultAhead(next.bits.Words, next.memory)
	}
	c.ahead.Store(a)
}

// endAhead discards a layer that was made ahead of time and is not in use.
func (c *Filter) endAhead() (err error) {
	a := c.ahead.Swap(nil)
	if a == nil {
		return nil
	}
	a.settle()
	if a.next != nil {
		err = c.discard(a.next)
	}
	return err
}

// Contains reports whether key is probably in the chain; see
// [bloom.Filter.Contains].
func (c *Filter) Contains(key []byte) bool { return c.ContainsPair(Hash(key)) }

// ContainsPair is Contains for a key that is hashed already.
func (c *Filter) ContainsPair(a, b uint64) bool {
	return c.open().anyContains(a, b)
}

// anyContains looks a key up in l and in all older layers.
func (l *layer) anyContains(a, b uint64) (found bool) {
	for at := l; at != nil && !found; at = at.older {
		found = at.bits.Contains(a, b)
	}
	runtime.KeepAlive(l)
	return found
}

// Close releases the memory at once, and gives back what Grant has granted. It need not
// be called unless that matters, and may be called twice. No other method may run at
// the same time.
func (c *Filter) Close() (err error) {
	err = c.endAhead()
	for l := c.newest.Swap(nil); l != nil; l = l.older {
		err = errors.Join(err, c.discard(l))
	}
	return err
}

// discard releases a layer's memory.
func (c *Filter) discard(l *layer) error {
	err := l.memory.Close()
	if l.granted {
		c.giveBack(l.takes())
	}
	return err
}
