package bloom

import (
	"fmt"
	"io"
	"runtime"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
)

// Shared is a [Filter] that any number of goroutines may add to and read at
// once: the same bits, the same rate, the same file.
//
// Adding has one winner. When goroutines race to add one key, at most one is told
// that it is new (none if the key is a false positive), and the key is contained as
// soon as any of these calls has returned. Lookups take no lock and never wait.
//
// Each 64-bit word of bits is read and written whole, and bits are only ever set. So a
// lookup concurrent with an Add of the same key may answer either way, and finds every
// key whose Add returned before it began: before in the sense of the Go memory model,
// in the same goroutine, or through a channel, a mutex or other synchronisation.
//
// Adding takes one of 4,096 locks, chosen by the key's block, and only if a bit is
// missing.
//
// The zero Shared is not usable: make one with [NewShared], [Config.NewShared] or
// [Filter.Share]. After Close every method that needs the bits panics.
type Shared struct {
	Hasher
	Metadata

	bits    kernel.Paired
	stripes []kernel.Stripe
	plan    Plan
	memory  *memory.Mapping
}

// NewShared returns an empty filter for n keys at false-positive rate p; see [New].
func NewShared(n uint64, p float64) (*Shared, error) {
	return Config{Keys: n, Rate: p}.NewShared()
}

// NewShared returns an empty [Shared] of the planned size.
func (c Config) NewShared() (*Shared, error) {
	f, err := c.New()
	if err != nil {
		return nil, err
	}
	return f.Share(), nil
}

// Share turns f into a [Shared], without copying its bits. It consumes f, which is then
// closed: do not use it again. It panics if f was opened read-only.
func (f *Filter) Share() *Shared {
	if f.readOnly {
		panicReadOnly()
	}
	s := &Shared{
		bits:    f.bits,
		stripes: kernel.NewStripes(f.bits.Blocks),
		Hasher:  f.Hasher,
		plan:    f.plan,
		memory:  f.memory,
	}
	s.note(f.noted())
	s.stripes[0].Count(f.added)
	*f = Filter{}
	return s
}

// Snapshot returns a copy of the filter as it is now, in memory of its own: with every
// key whose Add returned before the call, and perhaps some that are being added. Close
// or drop it; see [Filter.Close]. The error wraps [ErrBudget] if there is no memory.
func (f *Shared) Snapshot() (*Filter, error) {
	f.mustBeOpen()
	g, err := newFilter(f.plan, f.Hasher)
	if err != nil {
		return nil, err
	}
	g.added = f.added() // before the bits, so that it never counts a key that is not there
	kernel.CopyShared(g.bits.Words, f.bits.Words)
	f.keepAlive()
	g.note(f.noted())
	return g, nil
}

// Add adds key and reports whether it is certainly new; see [Filter.Add].
func (f *Shared) Add(key []byte) bool { return f.AddHash(f.Hash(key)) }

// AddString is Add for a string.
func (f *Shared) AddString(key string) bool { return f.AddHash(f.HashString(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (f *Shared) AddUint64(key uint64) bool { return f.AddHash(f.integer(key)) }

// AddHash is Add for a hashed key; see [Filter.AddHash].
func (f *Shared) AddHash(h uint64) bool {
	isNew := f.bits.AddSync(f.stripes, h)
	f.keepAlive()
	return isNew
}

// Contains reports whether key is probably in the filter; see [Filter.Contains].
func (f *Shared) Contains(key []byte) bool {
	if f.inKernel(key) && !f.isShort(key) {
		found := f.bits.ContainsKeySync(key, f.id.Key)
		f.keepAlive()
		return found
	}
	return f.ContainsHash(f.Hash(key))
}

// ContainsString is Contains for a string.
func (f *Shared) ContainsString(key string) bool { return f.Contains(memory.StringBytes(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (f *Shared) ContainsUint64(key uint64) bool { return f.ContainsHash(f.integer(key)) }

// ContainsHash is Contains for a hashed key; see [Filter.AddHash].
func (f *Shared) ContainsHash(h uint64) bool {
	found := f.bits.ContainsSync(h)
	f.keepAlive()
	return found
}

// AddMany adds the keys in order, among other goroutines'; see [Filter.AddMany].
func (f *Shared) AddMany(keys [][]byte, isNew []bool) int {
	return f.hashMany(keys, isNew, f.addBatch)
}

// AddStrings is AddMany for strings.
func (f *Shared) AddStrings(keys []string, isNew []bool) int {
	return f.hashStrings(keys, isNew, f.addBatch)
}

// AddHashes is AddMany for hashed keys; see [Filter.AddHash].
func (f *Shared) AddHashes(hashes []uint64, isNew []bool) int {
	return inParts(hashes, isNew, f.addBatch)
}

func (f *Shared) addBatch(hashes []uint64, isNew []bool) int {
	n := f.bits.AddBatchSync(f.stripes, hashes, isNew)
	f.keepAlive()
	return n
}

// ContainsMany is Contains for many keys; see [Filter.ContainsMany].
func (f *Shared) ContainsMany(keys [][]byte, found []bool) int {
	var recent kernel.Recent
	return f.hashMany(keys, found, func(hashes []uint64, found []bool) int {
		return f.containsBatch(hashes, found, &recent)
	})
}

// ContainsStrings is ContainsMany for strings.
func (f *Shared) ContainsStrings(keys []string, found []bool) int {
	var recent kernel.Recent
	return f.hashStrings(keys, found, func(hashes []uint64, found []bool) int {
		return f.containsBatch(hashes, found, &recent)
	})
}

// ContainsHashes is ContainsMany for hashed keys; see [Filter.AddHash].
func (f *Shared) ContainsHashes(hashes []uint64, found []bool) int {
	var recent kernel.Recent
	return inParts(hashes, found, func(hashes []uint64, found []bool) int {
		return f.containsBatch(hashes, found, &recent)
	})
}

func (f *Shared) containsBatch(hashes []uint64, found []bool, recent *kernel.Recent) int {
	n := f.bits.ContainsBatchSync(hashes, found, recent)
	f.keepAlive()
	return n
}

// Plan returns the sizing in force: n, p, m and k.
func (f *Shared) Plan() Plan { return f.plan }

// Report measures the filter by its bits; see [Filter.Report].
func (f *Shared) Report() Report {
	f.mustBeOpen()
	var words [kernel.WordsPerBlock]uint64
	r := sampled(f.plan, func(block uint64) (float64, int) {
		kernel.CopyShared(words[:], f.bits.Words[block*kernel.WordsPerBlock:][:kernel.WordsPerBlock])
		return measureBlock(words[:], f.plan.Probes/2)
	})
	r.Added = f.added()
	f.keepAlive()
	return r
}

func (f *Shared) added() uint64 { return kernel.Added(f.stripes) }

// WriteTo writes the filter as a file, which [Read] and [Load] read as a Filter;
// [Filter.Share] makes it a Shared again. Others may add meanwhile, and do not wait: it
// copies a MiB at a time, and the file has every key whose Add returned before the call,
// and perhaps some that are added later. [Shared.Snapshot] is a copy of one moment.
func (f *Shared) WriteTo(w io.Writer) (int64, error) {
	s, err := f.stored()
	if err != nil {
		return 0, err
	}
	return s.WriteTo(w)
}

// stored lays the filter out as a file while others may add to it.
func (f *Shared) stored() (*filterfile.File, error) {
	f.mustBeOpen()
	added := f.added() // before the bits, so that it never counts a key that is not there
	s := filterfile.New(
		filterfile.Header{Kind: filterfile.KindFilter, Scheme: filterfile.SchemePaired, Hash: f.id.stored(), Keys: f.plan.Keys, Rate: f.plan.Rate, Meta: f.noted()},
		added,
		[]filterfile.Section{{Kind: filterfile.SectionPaired, Probes: uint32(f.plan.Probes), Blocks: f.plan.Blocks}},
		[][]uint64{f.bits.Words},
	)
	s.Live = f
	return s, nil
}

// Save writes the filter to a file at path; see [Filter.Save].
func (f *Shared) Save(path string) error { return filterfile.Save(path, f.WriteTo) }

// Union adds everything in g to f, while others may add to both and look keys up; see
// [Filter.Union]. It may miss keys that are added to g meanwhile. between, if not nil,
// is called after each MiB; its error stops the union, and f then has some of g's bits.
func (f *Shared) Union(g *Shared, between func() error) error {
	if err := folds(f, g); err != nil {
		return err
	}
	const step = 1 << 20 / kernel.BlockBytes
	by, added := g.bits.Blocks/f.bits.Blocks, g.added()
	for from := uint64(0); from < f.bits.Blocks; {
		to := min(from+max(step/by, 1), f.bits.Blocks)
		f.bits.UnionSync(f.stripes, g.bits.Words, by, from, to)
		if from = to; between == nil {
			continue
		}
		if err := between(); err != nil {
			return err
		}
	}
	f.stripes[0].Lock()
	f.stripes[0].Count(added)
	f.stripes[0].Unlock()
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Clear empties the filter. Adds wait for it, and a concurrent lookup may answer either
// way.
func (f *Shared) Clear() {
	f.mustBeOpen()
	for i := range f.stripes {
		f.stripes[i].Lock()
	}
	kernel.ClearShared(f.bits.Words)
	for i := range f.stripes {
		f.stripes[i].Reset()
		f.stripes[i].Unlock()
	}
	f.keepAlive()
}

// Close releases the memory at once; see [Filter.Close]. Drop a filter that other
// goroutines may still be using instead, as in the package's example "Swap".
func (f *Shared) Close() error {
	f.bits = kernel.Paired{}
	return f.memory.Close()
}

func (f *Shared) String() string {
	return fmt.Sprintf("shared filter: %v; %v", f.plan, f.id)
}

// mustBeOpen is as for a Filter; see [Filter.mustBeOpen].
func (f *Shared) mustBeOpen() {
	if f.bits.Blocks == 0 {
		panic("bloom: the filter is closed, or was never made")
	}
}

func (f *Shared) keepAlive() { runtime.KeepAlive(f) }
