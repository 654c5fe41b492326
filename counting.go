package bloom

import (
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
)

// Counting is a [Filter] from which keys can be removed: each bit is a counter of four
// bits, so it takes four times the memory (Fan, Cao, Almeida and Broder 2000). Adding a
// key increments its k counters, removing it decrements them, and a key is found if
// none of them is zero. A [Cuckoo] takes less memory, at a rate that cannot be chosen; its
// comment says when to take which.
//
// Two things can go wrong with such a filter.
//
// Overflow: a counter that reaches [MaxCount] stays there, whatever is removed, since
// it no longer shows how many keys it stands for. So an overflow never loses a key; but
// a key that was added too often can no longer be removed completely, which raises the
// rate. Without repeated keys one counter in 1e15 gets that far. [Counting.Saturated]
// counts them.
//
// Removing what was never added: a key that is not found is refused. But a key that is
// found by mistake, with probability p, looks like one that was added: removing it
// decrements counters of other keys, and some of those may then be missing: FALSE
// NEGATIVES. The same happens if a key is removed more often than it was added. So
// remove only what you know was added, from a list of your own, and not because
// Contains says so. Then the filter never has false negatives.
//
// Adding a key again counts it again; it is gone when it has been removed as often. Do
// not skip keys that Contains finds: one that was found by mistake would disappear
// together with the keys that made it look present.
//
// Any number of goroutines may read a Counting at once; a method that changes it must
// run alone. The zero Counting is not usable: make one with [NewCounting],
// [Config.NewCounting] or [LoadCounting]. After Close every method panics.
type Counting struct {
	Hasher
	Metadata

	counters kernel.Counters
	plan     Plan
	added    uint64 // adds that answered true
	live     uint64 // adds of any kind less removals
	memory   *memory.Mapping
}

// MaxCount is the value at which a counter of a [Counting] stays.
const MaxCount = kernel.MaxCount

// NewCounting returns an empty counting filter for n keys at false-positive rate
// p; see [New]. n is the number of different keys in it at any one time.
func NewCounting(n uint64, p float64) (*Counting, error) {
	return Config{Keys: n, Rate: p}.NewCounting()
}

// NewCounting returns an empty [Counting] of the planned size.
func (c Config) NewCounting() (*Counting, error) {
	plan, err := c.PlanCounting()
	if err != nil {
		return nil, err
	}
	hash, err := NewHasher(c.Seed, c.Secret)
	if err != nil {
		return nil, err
	}
	return newCounting(plan, hash)
}

// PlanCounting is [Config.Plan] for a [Counting]: the same plan, in which Bits (m) is
// the number of counters. Only Budget differs: it must allow four times [Plan.Bytes].
func (c Config) PlanCounting() (Plan, error) {
	budget := c.Budget
	c.Budget = 0
	plan, err := c.Plan()
	if err != nil {
		return Plan{}, err
	}
	if bytes := countingBytes(plan); budget != 0 && bytes > budget {
		return Plan{}, fmt.Errorf("%w: counters for %d keys at rate %.3g need %d bytes, the budget is %d: raise the budget or the rate, or plan for fewer keys",
			ErrBudget, plan.Keys, plan.Rate, bytes, budget)
	}
	return plan, nil
}

func countingBytes(p Plan) uint64 { return p.Bytes() * kernel.CounterDigits }

func newCounting(plan Plan, hash Hasher) (*Counting, error) {
	words, mapping, err := memory.Words(plan.Blocks * kernel.CounterWordsPerBlock)
	if err != nil {
		return nil, err
	}
	return &Counting{
		counters: kernel.Counters{
			Words:  words,
			Blocks: plan.Blocks,
			Rows:   kernel.RowsFor(plan.Probes / 2),
		},
		Hasher: hash,
		plan:   plan,
		memory: mapping,
	}, nil
}

// Add adds key, once more if it is there already; see [Filter.Add].
func (f *Counting) Add(key []byte) bool { return f.AddHash(f.Hash(key)) }

// AddString is Add for a string.
func (f *Counting) AddString(key string) bool { return f.AddHash(f.HashString(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (f *Counting) AddUint64(key uint64) bool { return f.AddHash(f.integer(key)) }

// AddHash is Add for a hashed key; see [Filter.AddHash].
func (f *Counting) AddHash(h uint64) bool {
	isNew := f.counters.Add(h)
	f.keepAlive()
	f.live++
	if isNew {
		f.added++
	}
	return isNew
}

// Remove removes key once and reports whether it did. A key that the filter does not
// contain is refused: nothing changes. A key that was never added but is found by
// mistake is not refused, and removing it may lose other keys: see [Counting].
func (f *Counting) Remove(key []byte) bool { return f.RemoveHash(f.Hash(key)) }

// RemoveString is Remove for a string.
func (f *Counting) RemoveString(key string) bool { return f.RemoveHash(f.HashString(key)) }

// RemoveUint64 is Remove of the eight little-endian bytes of key.
func (f *Counting) RemoveUint64(key uint64) bool { return f.RemoveHash(f.integer(key)) }

// RemoveHash is Remove for a hashed key; see [Filter.AddHash].
func (f *Counting) RemoveHash(h uint64) bool {
	removed := f.counters.Remove(h)
	f.keepAlive()
	if removed && f.live > 0 { // it may be 0 if saturated counters were read from a file
		f.live--
	}
	return removed
}

// Contains reports whether key is probably in the filter. False is certain if only
// keys that had been added were removed.
func (f *Counting) Contains(key []byte) bool { return f.ContainsHash(f.Hash(key)) }

// ContainsString is Contains for a string.
func (f *Counting) ContainsString(key string) bool { return f.ContainsHash(f.HashString(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (f *Counting) ContainsUint64(key uint64) bool { return f.ContainsHash(f.integer(key)) }

// ContainsHash is Contains for a hashed key; see [Filter.AddHash].
func (f *Counting) ContainsHash(h uint64) bool {
	found := f.counters.Contains(h)
	f.keepAlive()
	return found
}

// Count estimates how many times key is in the filter, 0 to MaxCount: the least of its
// counters. It is never too low, but MaxCount means that many or more. It is too high
// if other keys share each of these counters, as rarely as Contains is wrong, or if
// they are saturated.
func (f *Counting) Count(key []byte) int { return f.CountHash(f.Hash(key)) }

// CountString is Count for a string.
func (f *Counting) CountString(key string) int { return f.CountHash(f.HashString(key)) }

// CountUint64 is Count of the eight little-endian bytes of key.
func (f *Counting) CountUint64(key uint64) int { return f.CountHash(f.integer(key)) }

// CountHash is Count for a hashed key; see [Filter.AddHash].
func (f *Counting) CountHash(h uint64) int {
	count := f.counters.Count(h)
	f.keepAlive()
	return count
}

// AddMany adds the keys in order; see [Filter.AddMany].
func (f *Counting) AddMany(keys [][]byte, isNew []bool) int {
	return f.hashMany(keys, isNew, f.addBatch)
}

// AddStrings is AddMany for strings.
func (f *Counting) AddStrings(keys []string, isNew []bool) int {
	return f.hashStrings(keys, isNew, f.addBatch)
}

// AddHashes is AddMany for hashed keys; see [Filter.AddHash].
func (f *Counting) AddHashes(hashes []uint64, isNew []bool) int {
	return inParts(hashes, isNew, f.addBatch)
}

func (f *Counting) addBatch(hashes []uint64, isNew []bool) int {
	n := f.counters.AddBatch(hashes, isNew)
	f.keepAlive()
	f.added += uint64(n)
	f.live += uint64(len(hashes))
	return n
}

// RemoveMany removes the keys in order, each once, and returns how many it removed; the
// others were refused. removed, if not nil, must be as long as keys and receives the answer
// of [Counting.Remove] for each.
func (f *Counting) RemoveMany(keys [][]byte, removed []bool) int {
	return f.hashMany(keys, removed, f.removeBatch)
}

// RemoveStrings is RemoveMany for strings.
func (f *Counting) RemoveStrings(keys []string, removed []bool) int {
	return f.hashStrings(keys, removed, f.removeBatch)
}

// RemoveHashes is RemoveMany for hashed keys; see [Filter.AddHash].
func (f *Counting) RemoveHashes(hashes []uint64, removed []bool) int {
	return inParts(hashes, removed, f.removeBatch)
}

func (f *Counting) removeBatch(hashes []uint64, removed []bool) int {
	n := f.counters.RemoveBatch(hashes, removed)
	f.keepAlive()
	f.live -= min(f.live, uint64(n)) // see RemoveHash
	return n
}

// ContainsMany is Contains for many keys; see [Filter.ContainsMany].
func (f *Counting) ContainsMany(keys [][]byte, found []bool) int {
	var recent kernel.Recent
	return f.hashMany(keys, found, func(hashes []uint64, found []bool) int {
		return f.containsBatch(hashes, found, &recent)
	})
}

// ContainsStrings is ContainsMany for strings.
func (f *Counting) ContainsStrings(keys []string, found []bool) int {
	var recent kernel.Recent
	return f.hashStrings(keys, found, func(hashes []uint64, found []bool) int {
		return f.containsBatch(hashes, found, &recent)
	})
}

// ContainsHashes is ContainsMany for hashed keys; see [Filter.AddHash].
func (f *Counting) ContainsHashes(hashes []uint64, found []bool) int {
	var recent kernel.Recent
	return inParts(hashes, found, func(hashes []uint64, found []bool) int {
		return f.containsBatch(hashes, found, &recent)
	})
}

func (f *Counting) containsBatch(hashes []uint64, found []bool, recent *kernel.Recent) int {
	n := f.counters.ContainsBatch(hashes, found, recent)
	f.keepAlive()
	return n
}

// Plan returns the sizing in force, that of [Counting.Filter]; m counts counters.
func (f *Counting) Plan() Plan { return f.plan }

// Bytes is the memory of the counters. [Plan.Bytes] is a quarter of it: that of the
// bits of [Counting.Filter].
func (f *Counting) Bytes() uint64 { return countingBytes(f.plan) }

// Len is the number of adds, new or not, less that of removals: how many keys there are, each
// as often as it was added. A file does not have it, but its counters show it, exactly unless
// some of them are saturated: then it is an estimate.
func (f *Counting) Len() uint64 { return f.live }

// Saturated is the exact number of counters that stay at [MaxCount]. It reads none.
func (f *Counting) Saturated() uint64 { return f.counters.Stuck }

// Report measures the counters that are not zero as bits; see [Filter.Report]. Removals
// do not lower Added; Keys is the number of keys now.
func (f *Counting) Report() Report {
	f.mustBeOpen()
	var words [kernel.WordsPerBlock]uint64
	r := sampled(f.plan, func(block uint64) (float64, int) {
		kernel.NonZero(words[:], f.counters.Words[block*kernel.CounterWordsPerBlock:][:kernel.CounterWordsPerBlock])
		return measureBlock(words[:], f.plan.Probes/2)
	})
	r.Added = f.added
	f.keepAlive()
	return r
}

// Filter returns a new Filter with a bit for each counter that is not zero: the very
// bits of a Filter of the keys in f now, and a few more if counters are saturated. It
// is a quarter of the size; send it to programs that only look keys up.
//
// The error wraps [ErrBudget] if there is no memory for it. Close the new filter or
// drop it; see [Filter.Close].
func (f *Counting) Filter() (*Filter, error) {
	f.mustBeOpen()
	g, err := newFilter(f.plan, f.Hasher)
	if err != nil {
		return nil, err
	}
	kernel.NonZero(g.bits.Words, f.counters.Words)
	g.added = f.added
	g.note(f.noted())
	f.keepAlive()
	return g, nil
}

// Union adds everything in g to f, counter by counter, as if the keys in g had been
// added to f: each key can be removed as often as it is in both. A counter whose sum
// exceeds MaxCount stays at MaxCount. g may be larger by a whole factor, and the error
// is as for [Filter.Union].
func (f *Counting) Union(g *Counting) error {
	if err := folds(f, g); err != nil {
		return err
	}
	f.counters.Merge(&g.counters)
	f.added += g.added
	f.live += g.live
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Equal reports whether f and g have the same counters; see [Filter.Equal].
func (f *Counting) Equal(g *Counting) bool {
	equal := alike(f, g) == nil && slices.Equal(f.counters.Words, g.counters.Words)
	f.keepAlive()
	g.keepAlive()
	return equal
}

// Clear empties the filter, saturated counters too; its plan and hash stay.
func (f *Counting) Clear() {
	f.mustBeOpen()
	clear(f.counters.Words)
	f.counters.Stuck = 0
	f.added, f.live = 0, 0
	f.keepAlive()
}

// Clone returns a copy in memory of its own; see [Filter.Clone].
func (f *Counting) Clone() *Counting {
	f.mustBeOpen()
	g, err := newCounting(f.plan, f.Hasher)
	if err != nil {
		panic(err)
	}
	copy(g.counters.Words, f.counters.Words)
	g.counters.Stuck = f.counters.Stuck
	g.added, g.live = f.added, f.live
	g.note(f.noted())
	f.keepAlive()
	return g
}

// Close releases the memory at once; see [Filter.Close].
func (f *Counting) Close() error {
	f.counters = kernel.Counters{}
	return f.memory.Close()
}

func (f *Counting) String() string {
	return fmt.Sprintf("counting filter: %v, %d bytes; %v", f.plan, f.Bytes(), f.id)
}

func (f *Counting) keepAlive() { runtime.KeepAlive(f) }

// mustBeOpen is Filter's.
func (f *Counting) mustBeOpen() {
	if f.counters.Blocks == 0 {
		panic("bloom: the filter is closed, or was never made: use NewCounting")
	}
}

// stored never fails: it has an error for [Inside].Image.
func (f *Counting) stored() (*filterfile.File, error) {
	f.mustBeOpen()
	return filterfile.New(
		filterfile.Header{Kind: filterfile.KindCounting, Scheme: filterfile.SchemePaired, Hash: f.id.stored(), Keys: f.plan.Keys, Rate: f.plan.Rate, Meta: f.noted()},
		f.added,
		[]filterfile.Section{{Kind: filterfile.SectionCounters, Probes: uint32(f.plan.Probes), Blocks: f.plan.Blocks}},
		[][]uint64{f.counters.Words},
	), nil
}

func countingFrom(s *filterfile.File) (*Counting, error) {
	if err := s.MustHold(filterfile.KindCounting); err != nil {
		return nil, err
	}
	f := countersIn(s, 0, pairedPlan(s.Keys, s.Rate, &s.Sections[0]))
	f.added = s.Added
	f.note(s.Meta)
	return f, nil
}

// countersIn makes a filter of section i of a file.
func countersIn(s *filterfile.File, i int, plan Plan) *Counting {
	f := &Counting{
		counters: kernel.Counters{Words: s.Words[i], Blocks: plan.Blocks, Rows: kernel.RowsFor(plan.Probes / 2)},
		Hasher:   hashIdentity(s.Hash).Hasher(),
		plan:     plan,
		memory:   s.Memory[i],
	}
	k := uint64(plan.Probes)
	f.live = (f.counters.Recount() + k - 1) / k
	return f
}

// WriteTo writes the filter as a file; see [Filter.WriteTo].
func (f *Counting) WriteTo(w io.Writer) (int64, error) {
	defer f.keepAlive()
	s, _ := f.stored()
	return s.WriteTo(w)
}

// Save writes the filter to a file at path; see [Filter.Save].
func (f *Counting) Save(path string) error { return filterfile.Save(path, f.WriteTo) }

// ReadCounting reads a filter that [Counting.WriteTo] wrote; see [Read].
func ReadCounting(r io.Reader, limitBytes int64) (*Counting, error) {
	return read(r, limitBytes, countingFrom)
}

// LoadCounting reads the file at path; see [Load].
func LoadCounting(path string) (*Counting, error) { return load(path, countingFrom) }
