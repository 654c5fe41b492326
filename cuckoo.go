package bloom

import (
	"fmt"
	"math/bits"
	"runtime"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/rate"
	"github.com/bloomery/bloom/internal/scheme"
)

// Cuckoo is RedisBloom's cuckoo filter, bit for bit: the same slots, answers and counts as
// the module's CF commands. It keeps a byte of each key, its fingerprint, in one of two
// buckets that follow from the key's hash, so that keys can be removed again (Fan, Andersen,
// Kaminsky and Mitzenmacher 2014).
//
// Take it for data that RedisBloom wrote or is to read, or where keys leave again, memory
// matters more than the rate, and a key is found by mistake once in thirty or sixty times at
// no harm. It takes 0.3 to 0.7 of the memory of a [Counting] of the same rate, the least with
// a BucketSize of 4, 500 Iterations, and most slots in use. Its rate cannot be chosen: it is
// 1.6% for each layer with the default two slots in a bucket, when the layer is full, and 3.1%
// with four.
//
// Where the rate must be lower, or speed matters more than memory, take a Counting, which also
// never needs more memory than planned. In batches its adds are 1.5 to 6 times as fast, and
// its lookups up to 4 times; its deletes take twice as long as those of a Cuckoo with four
// slots. docs/benchmarks.md has the table.
//
// # Growing
//
// A key whose buckets are both full moves other fingerprints to make room. If that fails,
// the filter gets another layer, a table like the first or Growth times as large as the one
// before. A lookup searches all of them. RedisBloom's defaults make a filter of a million
// slots grow when less than half of them are in use: as soon as a few keys have one
// fingerprint and the same buckets. With a BucketSize of 4 and 500 Iterations it is more than
// nine tenths: docs/maths.md has the table.
//
// There are at most [MaxCuckooLayers]; then, or if the filter may not grow, adds fail:
// [Cuckoo.Add] answers false, and [Cuckoo.Err] returns the reason; [Cuckoo.Insert] returns
// it at once. A removal makes room again, and when many keys were removed, the filter moves
// what is left into the older layers and drops those that are empty.
//
// # Removing and counting
//
// Adding a key again stores it again, so that it is gone when it was removed as often.
// The filter stores at most twice BucketSize copies of a key in each layer, so many adds
// of one key make it grow: use [Cuckoo.InsertUnique] for keys that may be repeated.
//
// Removing what was never added: a key that is not found is refused. But a key that is
// found by mistake looks like one that was added: removing it takes the fingerprint of
// another key, which may then be missing: a FALSE NEGATIVE. So remove only what you know
// was added, as often as it was added. Then the filter never has false negatives.
// InsertUnique has the same weakness: a key that it found by mistake disappears with the
// key that it was taken for.
//
// Any number of goroutines may read a Cuckoo at once; a method that changes it must run
// alone. The zero Cuckoo is not usable: make one with [NewCuckoo], [CuckooConfig.New] or
// [LoadCuckoo]. After Close every method panics.
type Cuckoo struct {
	Hasher
	Metadata

	config CuckooConfig // without zeros
	first  Plan         // of the first layer

	layers []kernel.Cuckoo // oldest first
	rooms  []cuckooRoom    // where their slots are

	stored  uint64 // fingerprints
	removed uint64 // since the layers were last compacted
	err     error  // see Err

	journal *[]uint64 // gets what changes, unless it is nil; see inside.Journal
}

// cuckooRoom is what the slots of a layer lie in.
type cuckooRoom struct {
	words  []uint64
	memory *memory.Mapping // nil on Go's heap
}

// CuckooConfig describes a Cuckoo. All fields may be zero, which makes the filter that
// CF.ADD makes for a new name.
type CuckooConfig struct {
	Keys uint64 // n, CF.RESERVE's capacity; zero means 1,024

	// Rate is the most that the false-positive rate may be with n keys. It does not change
	// the filter: it is an error if the filter cannot keep it. Zero means any.
	Rate float64

	BucketSize int // slots of a bucket, 1 to 255; zero means 2
	Iterations int // the most fingerprints that an add may move, 1 to 65,535; zero means 20

	// Growth is how many times more buckets each layer has than the one before, 1 to
	// 32,768, rounded up to a power of two; zero means 1. It is CF.RESERVE's EXPANSION.
	// NonScaling: there is only one layer, as with an EXPANSION of 0.
	Growth     int
	NonScaling bool

	Budget uint64 // the most bytes that the slots of all layers may take; zero means no limit

	// Grant, if not nil, is asked before each layer is made, with the bytes that it takes.
	// It refuses by returning an error. Release, if not nil, gets back what was granted,
	// when a layer is dropped or the filter is closed. A file does not have them.
	Grant   func(bytes uint64) error
	Release func(bytes uint64)

	Seed   uint64 // of MurmurHash64A; public. RedisBloom's is 0
	Secret []byte // SecretBytes bytes: SipHash-2-4 in place of MurmurHash64A
}

// MaxCuckooLayers is how many layers a [Cuckoo] grows to.
const MaxCuckooLayers = 32

const (
	defaultCuckooKeys = 1024
	defaultBucketSize = 2
	defaultIterations = 20

	maxIterations   = 1<<16 - 1
	maxCuckooGrowth = 1 << 15

	// compactAbove is how many keys may be removed, as a share of those that are left,
	// before the layers are compacted.
	compactAbove = 0.1
)

// NewCuckoo returns an empty filter of the size that CF.RESERVE gives it: it has about n
// slots, rounded up to a power of two, and grows; see [Cuckoo].
//
// The error wraps [ErrConfig] or [ErrBudget].
func NewCuckoo(n uint64) (*Cuckoo, error) { return CuckooConfig{Keys: n}.New() }

// New returns an empty filter with its first layer.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget], or is Grant's.
func (c CuckooConfig) New() (*Cuckoo, error) {
	f, err := c.planned()
	if err != nil {
		return nil, err
	}
	if err := f.grow(); err != nil {
		return nil, err
	}
	return f, nil
}

// Plan returns the sizing of the first layer. Plan.Rate is the expected rate with n keys,
// also if the filter has grown by then; with a Growth above 1 it is then lower.
func (c CuckooConfig) Plan() (Plan, error) {
	f, err := c.planned()
	if err != nil {
		return Plan{}, err
	}
	return f.first, nil
}

// planned returns the filter without its first layer.
func (c CuckooConfig) planned() (*Cuckoo, error) {
	for _, field := range []struct {
		name            string
		value           *int
		otherwise, most int
	}{
		{"BucketSize", &c.BucketSize, defaultBucketSize, kernel.MaxBucketSize},
		{"Iterations", &c.Iterations, defaultIterations, maxIterations},
		{"Growth", &c.Growth, 1, maxCuckooGrowth},
	} {
		if *field.value == 0 {
			*field.value = field.otherwise
		}
		if *field.value < 1 || *field.value > field.most {
			return nil, fmt.Errorf("%w: %s must be 1 to %d, not %d", ErrConfig, field.name, field.most, *field.value)
		}
	}
	if c.Keys == 0 {
		c.Keys = defaultCuckooKeys
	}
	if c.Keys > maxKeys || c.Rate != 0 && !(c.Rate > 0 && c.Rate < 1) {
		return nil, fmt.Errorf("%w: %d keys at rate %g: at most %d are possible, and a rate lies between 0 and 1", ErrConfig, c.Keys, c.Rate, uint64(maxKeys))
	}
	if c.Growth = 1 << bits.Len(uint(c.Growth-1)); c.NonScaling {
		c.Growth = 1
	}
	hash, err := NewHasher(c.Seed, c.Secret)
	if err != nil {
		return nil, err
	}
	if hash.id.Algorithm == XXH3 {
		hash.id.Algorithm = Murmur64A
	}
	c.Secret = nil // the Hasher has it
	buckets := uint64(1) << bits.Len64(max(c.Keys/uint64(c.BucketSize), 1)-1)
	if buckets > filterfile.MaxBuckets {
		return nil, fmt.Errorf("%w: %d keys need %d buckets, and %d are possible: take a larger BucketSize", ErrConfig, c.Keys, buckets, uint64(filterfile.MaxBuckets))
	}
	f := &Cuckoo{config: c, Hasher: hash, first: cuckooPlan(c.Keys, buckets, c.BucketSize)}
	if c.Rate != 0 && f.first.Rate > c.Rate {
		return nil, fmt.Errorf("%w: %d keys in %d buckets have a rate of %.3g: plan for more keys, or take a Counting", ErrRate, c.Keys, buckets, f.first.Rate)
	}
	return f, nil
}

func cuckooPlan(keys, buckets uint64, size int) Plan {
	return Plan{Keys: keys, Rate: rate.Cuckoo(keys, buckets), Bits: 8 * buckets * uint64(size), Probes: size, Blocks: buckets, Layout: Buckets}
}

// hashOf is [Hasher.Hash] with one call less for the default hash.
func (f *Cuckoo) hashOf(key []byte) uint64 {
	if f.id.Algorithm == Murmur64A {
		return scheme.Murmur64A(key, f.id.Key)
	}
	return f.Hash(key)
}

// newest is the layer that was made last.
func (f *Cuckoo) newest() *kernel.Cuckoo { return &f.layers[len(f.layers)-1] }

// Add stores the fingerprint of key, once more if it is there already, and reports whether
// the key is certainly new; see [Filter.Add]. If there is no room it answers false, and
// Contains need not find the key: see [Cuckoo.Err].
func (f *Cuckoo) Add(key []byte) bool { return f.AddHash(f.hashOf(key)) }

// AddString is Add for a string.
func (f *Cuckoo) AddString(key string) bool { return f.AddHash(f.HashString(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (f *Cuckoo) AddUint64(key uint64) bool { return f.AddHash(f.integer(key)) }

// AddHash is Add for a hashed key; see [Filter.AddHash].
func (f *Cuckoo) AddHash(h uint64) bool {
	nest := kernel.NestOf(h)
	isNew := !f.contains(nest)
	if err := f.insert(nest); err != nil {
		isNew = false
		if f.err == nil {
			f.err = err
		}
	}
	return isNew
}

// Err returns why an add failed, nil if none has since the filter was made, loaded or
// cleared: it remembers the first error. It is that of [Cuckoo.Insert].
func (f *Cuckoo) Err() error { return f.err }

// Insert stores the fingerprint of key, once more if it is there already. It is CF.ADD.
//
// The error wraps [ErrFull] if the filter is full and does not grow, [ErrLayers] if it has
// grown as often as it may, or [ErrBudget]; or it is Grant's. Then nothing has changed.
func (f *Cuckoo) Insert(key []byte) error { return f.InsertHash(f.hashOf(key)) }

// InsertHash is Insert for a hashed key; see [Filter.AddHash].
func (f *Cuckoo) InsertHash(h uint64) error { return f.insert(kernel.NestOf(h)) }

// InsertUnique stores the fingerprint of key unless the filter contains it, and reports
// whether it did. It is CF.ADDNX. The error is Insert's.
func (f *Cuckoo) InsertUnique(key []byte) (inserted bool, err error) {
	return f.InsertUniqueHash(f.hashOf(key))
}

// InsertUniqueHash is InsertUnique for a hashed key; see [Filter.AddHash].
func (f *Cuckoo) InsertUniqueHash(h uint64) (inserted bool, err error) {
	nest := kernel.NestOf(h)
	if f.contains(nest) {
		return false, nil
	}
	err = f.insert(nest)
	return err == nil, err
}

// insert stores a fingerprint in the newest layer that has room for it.
func (f *Cuckoo) insert(n kernel.Nest) error {
	if len(f.layers) >= MaxCuckooLayers {
		return fmt.Errorf("%w: %d", ErrLayers, len(f.layers))
	}
	for i := len(f.layers) - 1; i >= 0; i-- {
		if slot := f.layers[i].Replace(n, 0, n.Fingerprint); slot >= 0 {
			f.wrote(i, slot)
			f.stored++
			f.keepAlive()
			return nil
		}
	}
	return f.squeeze(n)
}

// squeeze stores a fingerprint whose buckets are full.
func (f *Cuckoo) squeeze(n kernel.Nest) error {
	defer f.keepAlive()
	for !f.kick(n) {
		if f.config.NonScaling {
			return fmt.Errorf("%w: there is no room for the key in %d slots, of which %d are in use", ErrFull, f.slots(), f.stored)
		}
		if err := f.grow(); err != nil {
			return err
		}
		if slot := f.newest().Replace(n, 0, n.Fingerprint); slot >= 0 {
			f.wrote(len(f.layers)-1, slot)
			break
		}
	}
	f.stored++
	return nil
}

// kick stores a fingerprint in the newest layer, where others move to make room.
func (f *Cuckoo) kick(n kernel.Nest) bool {
	newest := f.newest()
	if f.journal == nil {
		return newest.Kick(n, f.config.Iterations, nil)
	}
	before := len(*f.journal)
	done := newest.Kick(n, f.config.Iterations, f.journal)
	for i, slot := range (*f.journal)[before:] {
		(*f.journal)[before+i] = journalEntry(len(f.layers)-1, int(slot), newest.Slots[slot])
	}
	return done
}

// wrote notes that a slot has changed.
func (f *Cuckoo) wrote(layer, slot int) {
	if f.journal != nil {
		*f.journal = append(*f.journal, journalEntry(layer, slot, f.layers[layer].Slots[slot]))
	}
}

// Remove removes one copy of key and reports whether there was one. A key that the filter
// does not contain is refused: nothing changes. A key that was never added but is found by
// mistake is not refused, and removing it may lose another key: see [Cuckoo]. It is CF.DEL.
func (f *Cuckoo) Remove(key []byte) bool { return f.RemoveHash(f.hashOf(key)) }

// RemoveString is Remove for a string.
func (f *Cuckoo) RemoveString(key string) bool { return f.RemoveHash(f.HashString(key)) }

// RemoveUint64 is Remove of the eight little-endian bytes of key.
func (f *Cuckoo) RemoveUint64(key uint64) bool { return f.RemoveHash(f.integer(key)) }

// RemoveHash is Remove for a hashed key; see [Filter.AddHash].
func (f *Cuckoo) RemoveHash(h uint64) bool {
	nest := kernel.NestOf(h)
	for i := len(f.layers) - 1; ; i-- {
		if slot := f.layers[i].Replace(nest, nest.Fingerprint, 0); slot >= 0 {
			f.wrote(i, slot)
			break
		}
		if i == 0 {
			f.keepAlive()
			return false
		}
	}
	f.stored -= min(f.stored, 1) // a dump may have counted fewer
	f.removed++
	if len(f.layers) > 1 && float64(f.removed) > float64(f.stored)*compactAbove {
		f.compact(false)
	}
	f.keepAlive()
	return true
}

// Contains reports whether key is probably in the filter. False is certain if only keys
// that had been added were removed, and every add had room. It is CF.EXISTS.
func (f *Cuckoo) Contains(key []byte) bool { return f.ContainsHash(f.hashOf(key)) }

// ContainsString is Contains for a string.
func (f *Cuckoo) ContainsString(key string) bool { return f.ContainsHash(f.HashString(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (f *Cuckoo) ContainsUint64(key uint64) bool { return f.ContainsHash(f.integer(key)) }

// ContainsHash is Contains for a hashed key; see [Filter.AddHash].
func (f *Cuckoo) ContainsHash(h uint64) bool {
	found := f.contains(kernel.NestOf(h))
	f.keepAlive()
	return found
}

func (f *Cuckoo) contains(n kernel.Nest) bool {
	for i := len(f.layers) - 1; ; i-- {
		if f.layers[i].Contains(n) {
			return true
		}
		if i == 0 {
			return false
		}
	}
}

// Count returns how many times key is in the filter, or more, if it shares a fingerprint
// and buckets with others. Never less, but if both buckets of a key are the same one, its
// copies there count twice, as they do for CF.COUNT. That happens in layers of up to 128
// buckets.
func (f *Cuckoo) Count(key []byte) int { return f.CountHash(f.hashOf(key)) }

// CountString is Count for a string.
func (f *Cuckoo) CountString(key string) int { return f.CountHash(f.HashString(key)) }

// CountUint64 is Count of the eight little-endian bytes of key.
func (f *Cuckoo) CountUint64(key uint64) int { return f.CountHash(f.integer(key)) }

// CountHash is Count for a hashed key; see [Filter.AddHash].
func (f *Cuckoo) CountHash(h uint64) (count int) {
	f.mustBeOpen()
	nest := kernel.NestOf(h)
	for i := range f.layers {
		count += f.layers[i].Count(nest)
	}
	f.keepAlive()
	return count
}

// AddMany adds the keys in order; see [Filter.AddMany] and [Cuckoo.Add].
func (f *Cuckoo) AddMany(keys [][]byte, isNew []bool) int {
	return f.hashMany(keys, isNew, f.addBatch)
}

// AddStrings is AddMany for strings.
func (f *Cuckoo) AddStrings(keys []string, isNew []bool) int {
	return f.hashStrings(keys, isNew, f.addBatch)
}

// AddHashes is AddMany for hashed keys; see [Filter.AddHash].
func (f *Cuckoo) AddHashes(hashes []uint64, isNew []bool) int {
	return inParts(hashes, isNew, f.addBatch)
}

// ahead is how many keys a batch looks up before it changes anything, which fetches their
// buckets side by side.
const ahead = 32

func (f *Cuckoo) addBatch(hashes []uint64, isNew []bool) (added int) {
	for len(hashes) > 0 {
		n := min(len(hashes), ahead)
		f.newest().ContainsBatch(hashes[:n], isNew)
		for i, h := range hashes[:n] {
			if isNew[i] = f.AddHash(h); isNew[i] {
				added++
			}
		}
		hashes, isNew = hashes[n:], isNew[n:]
	}
	return added
}

// RemoveMany removes the keys in order, each once, and returns how many it removed; the
// others were refused. removed, if not nil, must be as long as keys and receives the answer
// of [Cuckoo.Remove] for each.
func (f *Cuckoo) RemoveMany(keys [][]byte, removed []bool) int {
	return f.hashMany(keys, removed, f.removeBatch)
}

// RemoveStrings is RemoveMany for strings.
func (f *Cuckoo) RemoveStrings(keys []string, removed []bool) int {
	return f.hashStrings(keys, removed, f.removeBatch)
}

// RemoveHashes is RemoveMany for hashed keys; see [Filter.AddHash].
func (f *Cuckoo) RemoveHashes(hashes []uint64, removed []bool) int {
	return inParts(hashes, removed, f.removeBatch)
}

// removeBatch looks keys up first, as addBatch does.
func (f *Cuckoo) removeBatch(hashes []uint64, removed []bool) (count int) {
	for len(hashes) > 0 {
		n := min(len(hashes), ahead)
		f.newest().ContainsBatch(hashes[:n], removed)
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
func (f *Cuckoo) ContainsMany(keys [][]byte, found []bool) int {
	return f.hashMany(keys, found, f.containsBatch)
}

// ContainsStrings is ContainsMany for strings.
func (f *Cuckoo) ContainsStrings(keys []string, found []bool) int {
	return f.hashStrings(keys, found, f.containsBatch)
}

// ContainsHashes is ContainsMany for hashed keys; see [Filter.AddHash].
func (f *Cuckoo) ContainsHashes(hashes []uint64, found []bool) int {
	return inParts(hashes, found, f.containsBatch)
}

func (f *Cuckoo) containsBatch(hashes []uint64, found []bool) (count int) {
	f.mustBeOpen()
	clear(found)
	for i := range f.layers {
		f.layers[i].ContainsBatch(hashes, found)
	}
	f.keepAlive()
	for _, is := range found {
		if is {
			count++
		}
	}
	return count
}

func (f *Cuckoo) keepAlive() { runtime.KeepAlive(f) }

// mustBeOpen is Filter's.
func (f *Cuckoo) mustBeOpen() {
	if len(f.layers) == 0 {
		panic("bloom: the filter is closed, or was never made: use NewCuckoo")
	}
}
