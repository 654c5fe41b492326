package bloom

import (
	"fmt"
	"io"
	"runtime"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
)

// Filter is the default kind: a fixed number of keys at a fixed rate, in paired
// cache lines. A key sets k/2 bits in each of two 64-byte lines of one 512-byte
// block, so a lookup costs one or two cache misses whatever k is, and the space
// stays close to the textbook's; [Plan] has the exact rate.
//
// Contains and the other reading methods may run in any number of goroutines at
// once. A method that changes the filter must run alone; to add from many goroutines
// use [Shared]. The zero Filter is not usable: make one with [New], [Config.New],
// [Load], [Open] or [Read]. After Close every method that needs the bits panics.
type Filter struct {
	added uint64 // adds that answered true; first, where 32-bit machines align it for atomic adds

	Hasher
	Metadata

	bits     kernel.Paired
	plan     Plan
	asked    float64             // the rate in the Config that it was made by, else 0
	memory   *memory.Mapping     // that bits.Words lies in: a file, or room for many bits; nil for Go's heap
	readOnly bool                // memory is a file, and only update may change it
	update   *filterfile.Updater // of the file, nil if it is not open for update
}

// New returns an empty filter for n keys at false-positive rate p: with n different
// keys in it, Contains is true for any other key with probability at most p. It needs
// about 1.44*log2(1/p) bits per key and a few percent more; [Config.Plan] has the
// exact number.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget].
func New(n uint64, p float64) (*Filter, error) {
	return Config{Keys: n, Rate: p}.New()
}

// New returns an empty filter of the planned size.
func (c Config) New() (*Filter, error) {
	plan, err := c.Plan()
	if err != nil {
		return nil, err
	}
	hash, err := NewHasher(c.Seed, c.Secret)
	if err != nil {
		return nil, err
	}
	f, err := newFilter(plan, hash)
	if err == nil {
		f.asked = c.Rate
	}
	return f, err
}

func newFilter(plan Plan, hash Hasher) (*Filter, error) {
	words, mapping, err := memory.Words(plan.Blocks * kernel.WordsPerBlock)
	if err != nil {
		return nil, err
	}
	return &Filter{
		bits: kernel.Paired{
			Words:  words,
			Blocks: plan.Blocks,
			Rows:   kernel.RowsFor(plan.Probes / 2),
		},
		Hasher: hash,
		plan:   plan,
		memory: mapping,
	}, nil
}

// Add adds key and reports whether it is certainly new. It is always false for a key
// that was added before, and with probability p for one that was not.
func (f *Filter) Add(key []byte) bool {
	if f.readOnly {
		return f.addToFile(f.Hash(key))
	}
	var isNew bool
	switch { // not AddHash: one call less
	case f.isShort(key):
		isNew = f.bits.Add(kernel.XXH3Of9to16(key, f.id.Key))
	case f.inKernel(key):
		isNew = f.bits.AddKey(key, f.id.Key)
	default:
		isNew = f.bits.Add(f.Hash(key))
	}
	f.keepAlive()
	if isNew {
		f.added++
	}
	return isNew
}

// AddString is Add for a string: the same bytes give the same bits.
func (f *Filter) AddString(key string) bool { return f.Add(memory.StringBytes(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (f *Filter) AddUint64(key uint64) bool { return f.AddHash(f.integer(key)) }

// AddHash is Add for a key that is hashed already, by [Hasher.Hash] of this filter or
// one of the same [HashIdentity]. A hash from elsewhere must have 64 uniform bits, or
// the rate does not hold; the filter cannot check that.
func (f *Filter) AddHash(h uint64) bool {
	if f.readOnly {
		return f.addToFile(h)
	}
	isNew := f.bits.Add(h)
	f.keepAlive()
	if isNew {
		f.added++
	}
	return isNew
}

// Contains reports whether key is probably in the filter. False is certain:
// the key was never added.
func (f *Filter) Contains(key []byte) bool {
	switch {
	case f.isShort(key):
		return f.ContainsHash(kernel.XXH3Of9to16(key, f.id.Key))
	case f.inKernel(key):
		found := f.bits.ContainsKey(key, f.id.Key)
		f.keepAlive()
		return found
	}
	return f.ContainsHash(f.Hash(key))
}

// ContainsString is Contains for a string.
func (f *Filter) ContainsString(key string) bool { return f.Contains(memory.StringBytes(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (f *Filter) ContainsUint64(key uint64) bool { return f.ContainsHash(f.integer(key)) }

// ContainsHash is Contains for a hashed key; see [Filter.AddHash].
func (f *Filter) ContainsHash(h uint64) bool {
	found := f.bits.Contains(h)
	f.keepAlive()
	return found
}

// AddMany adds the keys in order and returns how many were certainly new. isNew, if not
// nil, must be as long as keys and receives Add's answer for each.
func (f *Filter) AddMany(keys [][]byte, isNew []bool) int {
	return f.hashMany(keys, isNew, f.AddHashes)
}

// AddStrings is AddMany for strings.
func (f *Filter) AddStrings(keys []string, isNew []bool) int {
	return f.hashStrings(keys, isNew, f.AddHashes)
}

// AddHashes is AddMany for hashed keys; see [Filter.AddHash].
func (f *Filter) AddHashes(hashes []uint64, isNew []bool) int {
	if f.readOnly {
		return f.addManyToFile(hashes, isNew)
	}
	added := inParts(hashes, isNew, f.bits.AddBatch)
	f.keepAlive()
	f.added += uint64(added)
	return added
}

// ContainsMany returns how many of the keys are probably in the filter. found, if not
// nil, must be as long as keys and receives Contains' answer for each.
func (f *Filter) ContainsMany(keys [][]byte, found []bool) int {
	var recent kernel.Recent
	return f.hashMany(keys, found, func(hashes []uint64, found []bool) int {
		return f.containsBatch(hashes, found, &recent)
	})
}

// ContainsStrings is ContainsMany for strings.
func (f *Filter) ContainsStrings(keys []string, found []bool) int {
	var recent kernel.Recent
	return f.hashStrings(keys, found, func(hashes []uint64, found []bool) int {
		return f.containsBatch(hashes, found, &recent)
	})
}

// ContainsHashes is ContainsMany for hashed keys; see [Filter.AddHash].
func (f *Filter) ContainsHashes(hashes []uint64, found []bool) int {
	var recent kernel.Recent
	return inParts(hashes, found, func(hashes []uint64, found []bool) int {
		return f.containsBatch(hashes, found, &recent)
	})
}

func (f *Filter) containsBatch(hashes []uint64, found []bool, recent *kernel.Recent) int {
	n := f.bits.ContainsBatch(hashes, found, recent)
	f.keepAlive()
	return n
}

// Plan returns the sizing in force: n, p, m and k.
func (f *Filter) Plan() Plan { return f.plan }

// Clear empties the filter; its plan, hash and metadata stay.
func (f *Filter) Clear() {
	if f.readOnly {
		panicReadOnly()
	}
	f.mustBeOpen()
	clear(f.bits.Words)
	f.keepAlive()
	f.added = 0
}

// Clone returns a copy in memory of its own, writable even if f is a read-only file. It
// panics if there is no memory for it. Close or drop the copy independently of f; see
// [Filter.Close].
func (f *Filter) Clone() *Filter {
	f.mustBeOpen()
	g, err := newFilter(f.plan, f.Hasher)
	if err != nil {
		panic(err)
	}
	copy(g.bits.Words, f.bits.Words)
	g.added, g.asked = f.added, f.asked
	g.note(f.noted())
	f.keepAlive()
	return g
}

// Growing turns f into the first layer of a [Scalable], without copying its bits, for
// when n turns out larger than planned. It consumes f unless it returns an error: do
// not use f again.
//
// Each further layer is planned for growth times as many keys as the one before, 2 to
// 16; zero means 2. Since f has a planned rate of its own, the whole gets a higher one:
// five times f's, the ratio of p to the first layer's rate in every Scalable. If f was
// made for a higher rate than that, as with so few keys that its only block has room
// for many more, the whole gets the rate f was made for, and f takes the keys that it
// has room for at a fifth of it. A filter from a file does not know what it was made
// for.
//
// The Scalable has f's metadata. Growing panics if f was opened read-only. The error
// wraps [ErrConfig] or [ErrRate]; f is then unchanged.
func (f *Filter) Growing(growth int) (*Scalable, error) {
	f.mustBeOpen()
	f.mustBeWritable()
	if growth == 0 {
		growth = defaultGrowth
	}
	plan, rate := f.plan, f.plan.Rate/(1-tightening)
	if f.asked > rate {
		rate = f.asked
		roomier, err := Config{Bits: plan.Bits, Probes: plan.Probes, Rate: rate * (1 - tightening)}.Plan()
		if err == nil && roomier.Keys > plan.Keys {
			plan = roomier
		}
	}
	switch {
	case growth < 2 || growth > maxGrowth:
		return nil, fmt.Errorf("%w: growth must be 2 to %d, not %d", ErrConfig, maxGrowth, growth)
	case rate >= 1:
		return nil, fmt.Errorf("%w: a filter planned for a rate of %.3g would grow to one of %.3g: build it again", ErrRate, f.plan.Rate, rate)
	}
	s := &Scalable{config: ScalableConfig{First: plan.Keys, Rate: rate, Growth: growth}, Hasher: f.Hasher}
	s.note(f.noted())
	f.note(nil) // the layer needs none
	if f.id.Algorithm == XXH3 {
		s.config.Seed = f.id.Key
	}
	// It may hold more keys than were answered "new", as after a Union.
	held := max(float64(f.added), f.Report().Keys)
	f.plan = plan
	room := float64(layerRoom(plan)) - held
	s.layers.Store(newLayers([]*Shared{f.Share()}, int64(max(room, 0))))
	return s, nil
}

// Close releases the memory or the file mapping at once, and may be called twice. It
// must not run concurrently with any other method. It saves nothing, but syncs a
// filter from [OpenUpdate] or [Config.Create].
//
// A filter in memory need not be closed: if it is dropped, the collector releases its
// memory, also that of large filters, which lies outside Go's heap. It runs before
// dropped filters take more memory than those in use, or than 64 MiB or Go's heap if
// these are more. So drop a filter that other goroutines may still be reading, and
// close one that nobody else uses.
func (f *Filter) Close() error {
	if f.update != nil {
		return f.closeUpdate()
	}
	f.bits = kernel.Paired{}
	return f.memory.Close()
}

func (f *Filter) String() string {
	return fmt.Sprintf("filter: %v; %v", f.plan, f.id)
}

// keepAlive ends every method that looked at the bits: the collector must not
// unmap them when the look is the filter's last use.
func (f *Filter) keepAlive() { runtime.KeepAlive(f) }

// mustBeOpen guards the methods that read all words: after Close there are none, and
// they would take the filter for an empty one, and save it. A lookup panics by itself.
func (f *Filter) mustBeOpen() {
	if f.bits.Blocks == 0 {
		panic("bloom: the filter is closed, or was never made: use New, Load or Open")
	}
}

func panicReadOnly() {
	panic("bloom: the filter was opened read-only: Clone it, or Load the file instead")
}

// stored lays the filter out as a file.
func (f *Filter) stored() *filterfile.File {
	f.mustBeOpen()
	return filterfile.New(
		filterfile.Header{Kind: filterfile.KindFilter, Scheme: filterfile.SchemePaired, Hash: f.id.stored(), Keys: f.plan.Keys, Rate: f.plan.Rate, Meta: f.noted()},
		f.added,
		[]filterfile.Section{{Kind: filterfile.SectionPaired, Probes: uint32(f.plan.Probes), Blocks: f.plan.Blocks}},
		[][]uint64{f.bits.Words},
	)
}

// filterFrom makes the filter that a file holds.
func filterFrom(s *filterfile.File) (*Filter, error) {
	if err := s.MustHold(filterfile.KindFilter); err != nil {
		return nil, err
	}
	e := s.Sections[0]
	plan := pairedPlan(s.Keys, s.Rate, &e)
	f := &Filter{
		bits:   kernel.Paired{Words: s.Words[0], Blocks: e.Blocks, Rows: kernel.RowsFor(plan.Probes / 2)},
		Hasher: hashIdentity(s.Hash).Hasher(),
		added:  s.Added,
		plan:   plan,
		memory: s.Memory[0],
	}
	f.note(s.Meta)
	return f, nil
}

// Prefault touches all of the filter's memory now, on all CPUs, so that the first adds
// need not wait for the system to provide each page, which on virtual machines is
// slower than adding. It takes the memory of the whole filter, whatever is added later,
// and is useful from some hundreds of megabytes on.
func (f *Filter) Prefault() {
	if f.readOnly {
		panicReadOnly()
	}
	f.mustBeOpen()
	memory.Prefault(f.bits.Words)
	f.keepAlive()
}

// WriteTo writes the filter as a file, in Bloomery's format (docs/format.md), a MiB at a
// time, so w needs no buffer. The same filter gives the same bytes on every machine. The
// secret of a keyed filter is not written.
func (f *Filter) WriteTo(w io.Writer) (int64, error) {
	defer f.keepAlive()
	return f.stored().WriteTo(w)
}

// Read reads a filter that WriteTo wrote and verifies every field, length and checksum.
// limitBytes is the longest file that it accepts; its memory grows only as bytes
// arrive, whatever the header claims. It reads nothing past the filter's end.
//
// The error wraps [ErrFormat], [ErrVersion], [ErrChecksum], [ErrLimit] or
// [ErrBudget] (no memory), or is the reader's own. A keyed filter comes back
// locked: see [Hasher.SetSecret]. [Filter.Close] says when to close it.
func Read(r io.Reader, limitBytes int64) (*Filter, error) {
	return read(r, limitBytes, filterFrom)
}
