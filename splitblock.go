package bloom

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"runtime"
	"slices"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
)

// SplitBlock is the filter of Apache Parquet: blocks of 256 bits, and a key sets
// one bit in each of the eight 32-bit lanes of one block. A lookup costs one
// cache miss and very little work, so it is the fastest kind where p is 0.3% or
// more; below that it takes much more space than [Filter]. k is always 8.
//
// The hash is XXH64 with the seed of the Config, by default 0 as in Parquet; with a
// secret it is SipHash-2-4. Any number of goroutines may read it at once; a method that
// changes it must run alone. The zero SplitBlock is not usable: make one with
// [NewSplitBlock], [Config.NewSplitBlock] or [LoadSplitBlock]. After Close every
// method panics.
type SplitBlock struct {
	Hasher
	Metadata

	bits   kernel.Split
	plan   Plan
	memory *memory.Mapping
}

// NewSplitBlock returns an empty filter for n keys at false-positive rate p, sized by
// the true rate of its blocks: the formula in Parquet's specification assumes that all
// blocks are equally full, and gives 1.46% for 1%.
func NewSplitBlock(n uint64, p float64) (*SplitBlock, error) {
	return Config{Keys: n, Rate: p}.NewSplitBlock()
}

// NewSplitBlock returns an empty [SplitBlock] of the planned size.
func (c Config) NewSplitBlock() (*SplitBlock, error) {
	plan, err := c.PlanSplitBlock()
	if err != nil {
		return nil, err
	}
	hash, err := NewHasher(c.Seed, c.Secret)
	if err != nil {
		return nil, err
	}
	if hash.id.Algorithm == XXH3 {
		hash.id.Algorithm = XXH64
	}
	words, mapping, err := memory.Words(plan.Blocks * kernel.SplitBlockWords)
	if err != nil {
		return nil, err
	}
	return (&SplitBlock{
		bits:   kernel.Split{Words: words, Blocks: plan.Blocks},
		Hasher: hash,
		plan:   plan,
		memory: mapping,
	}).bound(), nil
}

// PlanSplitBlock is [Config.Plan] for a [SplitBlock].
func (c Config) PlanSplitBlock() (Plan, error) { return c.plan(&splitBlocks) }

// Add adds key and reports whether it is certainly new; see [Filter.Add].
func (f *SplitBlock) Add(key []byte) bool {
	isNew := f.bits.AddKey(key) // one call, so that Go inlines this one
	f.keepAlive()
	return isNew
}

// AddString is Add for a string.
func (f *SplitBlock) AddString(key string) bool { return f.Add(memory.StringBytes(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (f *SplitBlock) AddUint64(key uint64) bool { return f.AddHash(f.integer(key)) }

// AddHash is Add for a hashed key; see [Filter.AddHash].
func (f *SplitBlock) AddHash(h uint64) bool {
	isNew := f.bits.Add(h)
	f.keepAlive()
	return isNew
}

// Contains reports whether key is probably in the filter; see [Filter.Contains].
func (f *SplitBlock) Contains(key []byte) bool {
	found := f.bits.ContainsKey(key)
	f.keepAlive()
	return found
}

// ContainsString is Contains for a string.
func (f *SplitBlock) ContainsString(key string) bool { return f.Contains(memory.StringBytes(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (f *SplitBlock) ContainsUint64(key uint64) bool { return f.ContainsHash(f.integer(key)) }

// ContainsHash is Contains for a hashed key; see [Filter.AddHash].
func (f *SplitBlock) ContainsHash(h uint64) bool {
	found := f.bits.Contains(h)
	f.keepAlive()
	return found
}

// AddMany adds the keys in order; see [Filter.AddMany]. It takes less time
// if isNew is nil.
func (f *SplitBlock) AddMany(keys [][]byte, isNew []bool) int {
	if isNew == nil {
		return f.hashMany(keys, nil, f.addAll)
	}
	return f.hashMany(keys, isNew, f.addBatch)
}

// AddStrings is AddMany for strings.
func (f *SplitBlock) AddStrings(keys []string, isNew []bool) int {
	if isNew == nil {
		return f.hashStrings(keys, nil, f.addAll)
	}
	return f.hashStrings(keys, isNew, f.addBatch)
}

// AddHashes is AddMany for hashed keys; see [Filter.AddHash].
func (f *SplitBlock) AddHashes(hashes []uint64, isNew []bool) int {
	if isNew == nil {
		return inParts(hashes, nil, f.addAll)
	}
	return inParts(hashes, isNew, f.addBatch)
}

func (f *SplitBlock) addBatch(hashes []uint64, isNew []bool) int {
	n := f.bits.AddBatch(hashes, isNew)
	f.keepAlive()
	return n
}

// addAll is addBatch when nobody wants the answers: it leaves the scratch memory for them
// alone.
func (f *SplitBlock) addAll(hashes []uint64, _ []bool) int {
	n := f.bits.AddAll(hashes)
	f.keepAlive()
	return n
}

// ContainsMany is Contains for many keys; see [Filter.ContainsMany].
func (f *SplitBlock) ContainsMany(keys [][]byte, found []bool) int {
	return f.hashMany(keys, found, f.containsBatch)
}

// ContainsStrings is ContainsMany for strings.
func (f *SplitBlock) ContainsStrings(keys []string, found []bool) int {
	return f.hashStrings(keys, found, f.containsBatch)
}

// ContainsHashes is ContainsMany for hashed keys; see [Filter.AddHash].
func (f *SplitBlock) ContainsHashes(hashes []uint64, found []bool) int {
	return inParts(hashes, found, f.containsBatch)
}

func (f *SplitBlock) containsBatch(hashes []uint64, found []bool) int {
	n := f.bits.ContainsBatch(hashes, found)
	f.keepAlive()
	return n
}

// bound tells the kernel how keys are hashed, and returns f. Parquet's hash the kernel
// computes in the call that probes. Every function that makes a filter ends with bound.
func (f *SplitBlock) bound() *SplitBlock {
	f.bits.Parquets = f.id == (HashIdentity{XXH64, 0})
	f.bits.Hash = f.Hasher.Hash // of f's own Hasher, to which SetSecret may yet give a secret
	return f
}

// Plan returns the sizing in force: n, p, m and k.
func (f *SplitBlock) Plan() Plan { return f.plan }

// Report measures the filter by its bits; see [Filter.Report].
func (f *SplitBlock) Report() Report {
	f.mustBeOpen()
	r := sampled(f.plan, func(block uint64) (float64, int) {
		return measureSplitBlock(f.bits.Words[block*kernel.SplitBlockWords:][:kernel.SplitBlockWords])
	})
	r.Added = f.bits.Added
	f.keepAlive()
	return r
}

// measureSplitBlock returns the exact rate of a block, the product of its lanes'
// fills, and how many of its bits are set.
func measureSplitBlock(words []uint64) (rate float64, set int) {
	rate = 1
	for _, word := range words {
		low, high := bits.OnesCount32(uint32(word)), bits.OnesCount32(uint32(word>>32))
		rate *= float64(low) / 32 * float64(high) / 32
		set += low + high
	}
	return rate, set
}

// Clone returns a copy in memory of its own; see [Filter.Clone].
func (f *SplitBlock) Clone() *SplitBlock {
	f.mustBeOpen()
	words, mapping, err := memory.Words(uint64(len(f.bits.Words)))
	if err != nil {
		panic(err)
	}
	copy(words, f.bits.Words)
	f.keepAlive()
	g := &SplitBlock{
		Hasher: f.Hasher,
		bits:   kernel.Split{Words: words, Blocks: f.bits.Blocks, Added: f.bits.Added},
		plan:   f.plan,
		memory: mapping,
	}
	g.note(f.noted())
	return g.bound()
}

// Equal reports whether f and g have the same hash, size and bits.
func (f *SplitBlock) Equal(g *SplitBlock) bool {
	equal := alike(f, g) == nil && slices.Equal(f.bits.Words, g.bits.Words)
	f.keepAlive()
	g.keepAlive()
	return equal
}

// mustBeOpen is as for a Filter; see [Filter.mustBeOpen].
func (f *SplitBlock) mustBeOpen() {
	if f.bits.Blocks == 0 {
		panic("bloom: the filter is closed, or was never made: use NewSplitBlock or LoadSplitBlock")
	}
}

// Clear empties the filter; its plan, hash and metadata stay.
func (f *SplitBlock) Clear() {
	f.mustBeOpen()
	clear(f.bits.Words)
	f.keepAlive()
	f.bits.Added = 0
}

// Close releases the memory at once; see [Filter.Close].
func (f *SplitBlock) Close() error {
	f.bits = kernel.Split{}
	return f.memory.Close()
}

func (f *SplitBlock) String() string { return fmt.Sprintf("split blocks: %v; %v", f.plan, f.id) }

func (f *SplitBlock) keepAlive() { runtime.KeepAlive(f) }

// stored lays the filter out as a file.
func (f *SplitBlock) stored() *filterfile.File {
	f.mustBeOpen()
	return filterfile.New(
		filterfile.Header{Kind: filterfile.KindSplitBlock, Scheme: filterfile.SchemeSplit, Hash: f.id.stored(), Keys: f.plan.Keys, Rate: f.plan.Rate, Meta: f.noted()},
		f.bits.Added,
		[]filterfile.Section{{Kind: filterfile.SectionSplit, Probes: splitProbes, Blocks: f.plan.Blocks}},
		[][]uint64{f.bits.Words},
	)
}

// splitBlockFrom makes the filter that a file holds.
func splitBlockFrom(s *filterfile.File) (*SplitBlock, error) {
	if err := s.MustHold(filterfile.KindSplitBlock); err != nil {
		return nil, err
	}
	e := s.Sections[0]
	f := &SplitBlock{
		bits:   kernel.Split{Words: s.Words[0], Blocks: e.Blocks, Added: s.Added},
		Hasher: hashIdentity(s.Hash).Hasher(),
		plan:   Plan{Keys: s.Keys, Rate: s.Rate, Bits: e.Blocks * kernel.SplitBlockBits, Probes: splitProbes, Blocks: e.Blocks, Layout: SplitBlocks},
		memory: s.Memory[0],
	}
	f.note(s.Meta)
	return f.bound(), nil
}

// WriteTo writes the filter as a file; see [Filter.WriteTo].
func (f *SplitBlock) WriteTo(w io.Writer) (int64, error) {
	defer f.keepAlive()
	return f.stored().WriteTo(w)
}

// Save writes the filter to a file at path; see [Filter.Save].
func (f *SplitBlock) Save(path string) error { return filterfile.Save(path, f.WriteTo) }

// ReadSplitBlock reads a filter that [SplitBlock.WriteTo] wrote; see [Read].
func ReadSplitBlock(r io.Reader, limitBytes int64) (*SplitBlock, error) {
	return read(r, limitBytes, splitBlockFrom)
}

// LoadSplitBlock reads the file at path; see [Load].
func LoadSplitBlock(path string) (*SplitBlock, error) { return load(path, splitBlockFrom) }

// ReadSplitBlockBits reads split blocks as Parquet stores them: 32 bytes each, of
// eight little-endian 32-bit lanes. Memory grows as the bytes arrive. The hash is
// XXH64 with seed 0; the plan has the number of keys that fills half of the bits. The
// error wraps [ErrFormat] if the bytes end too early; otherwise it is
// the plan's or the reader's.
func ReadSplitBlockBits(r io.Reader, blocks uint64) (*SplitBlock, error) {
	if blocks == 0 || blocks > splitBlocks.MaxBlocks {
		return nil, fmt.Errorf("%w: from 1 to %d split blocks, not %d", ErrConfig, splitBlocks.MaxBlocks, blocks)
	}
	m := blocks * kernel.SplitBlockBits
	keys := max(uint64(float64(m)*math.Ln2/splitProbes), 1)
	plan, err := Config{Keys: keys, Bits: m}.PlanSplitBlock()
	if err != nil {
		return nil, err
	}
	words, mapping, err := filterfile.ReadWords(r, m/8, filterfile.LittleEndian)
	if err != nil {
		mapping.Close()
		return nil, err
	}
	return (&SplitBlock{
		bits:   kernel.Split{Words: words, Blocks: blocks},
		Hasher: HashIdentity{XXH64, 0}.Hasher(),
		plan:   plan,
		memory: mapping,
	}).bound(), nil
}

// WriteBits writes the blocks, and nothing else, as Parquet stores them; see
// [ReadSplitBlockBits]. Parquet's readers understand them only if the hash is
// XXH64 with seed 0.
func (f *SplitBlock) WriteBits(w io.Writer) (int64, error) {
	f.mustBeOpen()
	defer f.keepAlive()
	reorder := filterfile.LittleEndian
	if memory.LittleEndian {
		reorder = nil
	}
	return filterfile.WriteWords(w, f.bits.Words, uint64(len(f.bits.Words))*8, reorder)
}
