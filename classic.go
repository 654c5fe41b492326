package bloom

import (
	"fmt"
	"io"
	"maps"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/bloomery/bloom/internal/elementary"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/rate"
	"github.com/bloomery/bloom/internal/scheme"
)

// Classic is the Bloom filter of the textbooks and of other programs: m bits, any
// number of them, and k positions per key by a numbered [Scheme]. Its use is to
// read and write other programs' filters, and to show how a filter works. For all
// else take [Filter]: it needs one or two cache misses where Classic needs k, and
// only a few percent more space.
//
// Under [SchemeBloomery] it keeps all promises, the rate among them, at any m
// from 1 to 2^45 and any k from 1 to 255. Under another program's scheme it gives
// the answers of that program, whose hashes may be worse than the rate supposes.
//
// Contains and the other reading methods may run in any number of goroutines at
// once; a method that changes the filter must run alone. The zero Classic is not
// usable. After Close every method that needs the bits panics.
type Classic struct {
	Hasher // of the zero identity where the scheme does not hash by it
	Metadata

	words  []uint64 // bit i is word i/64, mask 1<<(i%64); those from m on stay clear
	scheme Scheme
	added  uint64 // adds that answered true
	plan   Plan   // m is plan.Bits, k is plan.Probes
	memory *memory.Mapping

	readOnly bool // from OpenBits
}

// NewClassic returns an empty filter for n keys at false-positive rate p under
// our own scheme, of the fewest bits that keep the rate.
func NewClassic(n uint64, p float64) (*Classic, error) {
	return ClassicConfig{Keys: n, Rate: p}.New()
}

// NewClassic returns an empty textbook filter of the planned size under our own
// scheme.
func (c Config) NewClassic() (*Classic, error) {
	classic, err := c.classic()
	if err != nil {
		return nil, err
	}
	return classic.New()
}

// New returns an empty filter of the planned size.
func (c ClassicConfig) New() (*Classic, error) {
	plan, hash, err := c.planned()
	if err != nil {
		return nil, err
	}
	return newClassic(plan, c.Scheme, hash)
}

func newClassic(plan Plan, s Scheme, hash Hasher) (*Classic, error) {
	words, mapping, err := memory.Words((plan.Bits + 63) / 64)
	if err != nil {
		return nil, err
	}
	return &Classic{words: words, scheme: Scheme{s.def()}, Hasher: hash, plan: plan, memory: mapping}, nil
}

// Add puts key into the filter and reports whether it is certainly new; see
// [Filter.Add].
func (f *Classic) Add(key []byte) bool {
	if f.scheme.TakesHashes() {
		return f.AddHash(f.Hasher.Hash(key))
	}
	f.mustBeWritable()
	p := f.locate(key)
	isNew := false
	for _, i := range p.at[:f.plan.Probes] {
		isNew = f.set(i) || isNew
	}
	p.release()
	f.keepAlive()
	if isNew {
		f.added++
	}
	return isNew
}

// AddString is Add for a string: the same bytes give the same bits.
func (f *Classic) AddString(key string) bool { return f.Add(memory.StringBytes(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (f *Classic) AddUint64(key uint64) bool {
	return f.Add(uint64Bytes(key))
}

// AddHash is Add for a key that is hashed already; see [Filter.AddHash]. It
// panics unless the scheme [Scheme.TakesHashes].
func (f *Classic) AddHash(h uint64) bool {
	f.mustTakeHashes()
	f.mustBeWritable()
	isNew := f.addStream(h)
	f.keepAlive()
	if isNew {
		f.added++
	}
	return isNew
}

func (f *Classic) addStream(h uint64) (isNew bool) {
	m := f.plan.Bits
	stream := scheme.NewStream(h)
	for range f.plan.Probes {
		isNew = f.set(stream.Next(m)) || isNew
	}
	return isNew
}

// set sets bit i and reports whether it was clear.
func (f *Classic) set(i uint64) bool {
	word, bit := &f.words[i/64], uint64(1)<<(i%64)
	wasClear := *word&bit == 0
	*word |= bit
	return wasClear
}

func (f *Classic) isSet(i uint64) bool { return f.words[i/64]>>(i%64)&1 != 0 }

// Contains reports whether key is probably in the filter; see [Filter.Contains].
func (f *Classic) Contains(key []byte) bool {
	if f.scheme.TakesHashes() {
		return f.ContainsHash(f.Hasher.Hash(key))
	}
	p := f.locate(key)
	found := true
	for _, i := range p.at[:f.plan.Probes] {
		found = found && f.isSet(i)
	}
	p.release()
	f.keepAlive()
	return found
}

// ContainsString is Contains for a string.
func (f *Classic) ContainsString(key string) bool { return f.Contains(memory.StringBytes(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (f *Classic) ContainsUint64(key uint64) bool {
	return f.Contains(uint64Bytes(key))
}

// ContainsHash is Contains for a key that is hashed already; see
// [Classic.AddHash].
func (f *Classic) ContainsHash(h uint64) bool {
	f.mustTakeHashes()
	found := f.containsStream(h)
	f.keepAlive()
	return found
}

func (f *Classic) containsStream(h uint64) bool {
	m := f.plan.Bits
	stream := scheme.NewStream(h)
	for range f.plan.Probes {
		if !f.isSet(stream.Next(m)) {
			return false
		}
	}
	return true
}

// AddMany adds the keys as if one after the other and returns how many were
// certainly new; see [Filter.AddMany].
func (f *Classic) AddMany(keys [][]byte, isNew []bool) int {
	if f.scheme.TakesHashes() {
		return f.hashMany(keys, isNew, f.addBatch)
	}
	return eachKey(keys, isNew, f.Add)
}

// AddStrings is AddMany for strings.
func (f *Classic) AddStrings(keys []string, isNew []bool) int {
	if f.scheme.TakesHashes() {
		return f.hashStrings(keys, isNew, f.addBatch)
	}
	return eachKey(keys, isNew, f.AddString)
}

// AddHashes is AddMany for keys that are hashed already; see [Classic.AddHash].
func (f *Classic) AddHashes(hashes []uint64, isNew []bool) int {
	f.mustTakeHashes()
	return inParts(hashes, isNew, f.addBatch)
}

func (f *Classic) addBatch(hashes []uint64, isNew []bool) int {
	f.mustBeWritable()
	count := 0
	for i, h := range hashes {
		isNew[i] = f.addStream(h)
		if isNew[i] {
			count++
		}
	}
	f.keepAlive()
	f.added += uint64(count)
	return count
}

// ContainsMany returns how many of the keys are probably in the filter; see
// [Filter.ContainsMany].
func (f *Classic) ContainsMany(keys [][]byte, found []bool) int {
	if f.scheme.TakesHashes() {
		return f.hashMany(keys, found, f.containsBatch)
	}
	return eachKey(keys, found, f.Contains)
}

// ContainsStrings is ContainsMany for strings.
func (f *Classic) ContainsStrings(keys []string, found []bool) int {
	if f.scheme.TakesHashes() {
		return f.hashStrings(keys, found, f.containsBatch)
	}
	return eachKey(keys, found, f.ContainsString)
}

// ContainsHashes is ContainsMany for keys that are hashed already; see
// [Classic.AddHash].
func (f *Classic) ContainsHashes(hashes []uint64, found []bool) int {
	f.mustTakeHashes()
	return inParts(hashes, found, f.containsBatch)
}

func (f *Classic) containsBatch(hashes []uint64, found []bool) int {
	count := 0
	for i, h := range hashes {
		found[i] = f.containsStream(h)
		if found[i] {
			count++
		}
	}
	f.keepAlive()
	return count
}

func eachKey[K []byte | string](keys []K, answers []bool, do func(K) bool) int {
	checkAnswers(len(keys), answers)
	count := 0
	for i, key := range keys {
		answer := do(key)
		if answer {
			count++
		}
		if answers != nil {
			answers[i] = answer
		}
	}
	return count
}

// located is a key and its positions under a foreign scheme. The key is copied,
// so that the caller's need not leave the stack for a function nobody knows.
type located struct {
	at  [scheme.MaxProbes]uint64
	key []byte
}

var locatedPool = sync.Pool{New: func() any { return new(located) }}

// longKey is what the pool does not keep.
const longKey = 64 << 10

func (f *Classic) locate(key []byte) *located {
	p := locatedPool.Get().(*located)
	p.key = append(p.key[:0], key...)
	at, m := p.at[:f.plan.Probes], f.plan.Bits
	f.scheme.rule.Fill(at, p.key, m, f.id.Key)
	if f.scheme.rule.Number == scheme.Custom {
		for _, i := range at {
			if i >= m {
				panic(fmt.Sprintf("bloom: the scheme %q gives position %d, but m is %d", f.scheme, i, m))
			}
		}
	}
	return p
}

func (p *located) release() {
	if cap(p.key) > longKey {
		p.key = nil
	}
	locatedPool.Put(p)
}

// Positions returns the k positions of key, in the scheme's order; some may be
// the same.
func (f *Classic) Positions(key []byte) []uint64 {
	at := make([]uint64, f.plan.Probes)
	if f.scheme.TakesHashes() {
		stream := scheme.NewStream(f.Hasher.Hash(key))
		for i := range at {
			at[i] = stream.Next(f.plan.Bits)
		}
		return at
	}
	p := f.locate(key)
	copy(at, p.at[:])
	p.release()
	return at
}

// Hash returns the hash of key that AddHash and ContainsHash take. It panics
// unless the scheme [Scheme.TakesHashes].
func (f *Classic) Hash(key []byte) uint64 {
	f.mustTakeHashes()
	return f.Hasher.Hash(key)
}

// HashString is Hash for a string.
func (f *Classic) HashString(key string) uint64 { return f.Hash(memory.StringBytes(key)) }

// Scheme is the rule that gives the positions.
func (f *Classic) Scheme() Scheme { return f.scheme }

// Plan returns the sizing in force: n, p, m and k.
func (f *Classic) Plan() Plan { return f.plan }

// BitString writes the filter as m characters 0 and 1, the last bit first and bit
// 0 at the end.
func (f *Classic) BitString() string {
	f.mustBeOpen()
	text := zeros(f.plan.Bits)
	for i := range f.plan.Bits {
		if f.isSet(i) {
			text[f.plan.Bits-1-i] = '1'
		}
	}
	f.keepAlive()
	return string(text)
}

// FormatHash writes, as BitString does, the filter that had key alone in it.
func (f *Classic) FormatHash(key []byte) string {
	text := zeros(f.plan.Bits)
	for _, i := range f.Positions(key) {
		text[f.plan.Bits-1-i] = '1'
	}
	return string(text)
}

func zeros(n uint64) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = '0'
	}
	return text
}

// EstimatedErrorRate is the share of bits that are set to the power of k: the
// chance that k positions taken at random are all set. It reads all bits.
func (f *Classic) EstimatedErrorRate() float64 {
	f.mustBeOpen()
	set := 0
	for _, word := range f.words {
		set += bits.OnesCount64(word)
	}
	f.keepAlive()
	return elementary.Power(float64(set)/float64(f.plan.Bits), uint64(f.plan.Probes))
}

// Report reads the filter's bits, or a sample above 64 MiB, and says how full it
// is and what its rate is now, for positions that are spread evenly.
func (f *Classic) Report() Report {
	f.mustBeOpen()
	const piece = kernel.WordsPerBlock
	stride := max((len(f.words)*8+sampleBytes-1)/sampleBytes, 1) * piece
	var sets rate.Moments
	set, seen := 0, uint64(0)
	for at := 0; at < len(f.words); at += stride {
		here := 0
		for _, word := range f.words[at:min(at+piece, len(f.words))] {
			here += bits.OnesCount64(word)
		}
		sets.Add(float64(here))
		set += here
		seen += min(piece*64, f.plan.Bits-uint64(at)*64)
	}
	f.keepAlive()
	m, k := float64(f.plan.Bits), float64(f.plan.Probes)
	r := Report{Plan: f.plan, Fill: float64(set) / float64(seen), Added: f.added}
	fillError := 0.
	if stride > piece {
		fillError = sets.StandardError() / (piece * 64)
	}
	r.Keys, r.KeysError = rate.KeysThrown(r.Fill, fillError, m, k)
	probes := uint64(f.plan.Probes)
	r.Rate = elementary.Power(r.Fill, probes)
	r.RateError = k * elementary.Power(r.Fill, probes-1) * fillError
	if f.scheme.TakesHashes() {
		r.Rate = min(r.Rate+float64(r.Keys/(1<<64)), 1) // as for a plan, a key may meet another's hash
	}
	if left := float64(f.plan.Keys) - r.Keys; left > 0 {
		r.Remaining = uint64(left)
	}
	return r
}

// Clear empties the filter; its plan, scheme and hash stay.
func (f *Classic) Clear() {
	f.mustBeWritable()
	clear(f.words)
	f.keepAlive()
	f.added = 0
}

// Clone returns a filter with the same bits in memory of its own. It panics when
// there is no memory for it. Close or drop it independently of f.
func (f *Classic) Clone() *Classic {
	f.mustBeOpen()
	g, err := newClassic(f.plan, f.scheme, f.Hasher)
	if err != nil {
		panic(err)
	}
	copy(g.words, f.words)
	g.added = f.added
	g.note(f.noted())
	f.keepAlive()
	return g
}

// Equal reports whether f and g have the same scheme, hash, m, k and bits. What
// was planned and counted does not matter.
func (f *Classic) Equal(g *Classic) bool {
	f.mustBeOpen()
	g.mustBeOpen()
	equal := f.alike(g) == nil && slices.Equal(f.words, g.words)
	f.keepAlive()
	g.keepAlive()
	return equal
}

// Close releases the memory at once, and may be called twice. A filter may also be
// dropped: see [Filter.Close].
func (f *Classic) Close() error {
	f.words = nil
	return f.memory.Close()
}

func (f *Classic) String() string {
	if f.id == (HashIdentity{}) {
		return fmt.Sprintf("classic: %v; scheme %v", f.plan, f.scheme)
	}
	return fmt.Sprintf("classic: %v; scheme %v, %v", f.plan, f.scheme, f.id)
}

func (f *Classic) keepAlive() { runtime.KeepAlive(f) }

func (f *Classic) mustBeOpen() {
	if f.words == nil {
		panic("bloom: the filter is closed, or was never made: use NewClassic or ClassicConfig.New")
	}
}

// mustBeWritable is for methods that change the filter.
func (f *Classic) mustBeWritable() {
	f.mustBeOpen()
	if f.readOnly {
		panicReadOnly()
	}
}

func (f *Classic) mustTakeHashes() {
	if !f.scheme.TakesHashes() {
		panic("bloom: the scheme " + f.scheme.Name() + " needs the key, and knows no hash of it")
	}
}

// schemeMeta is the metadata key under which a file names a caller's scheme.
const schemeMeta = "scheme"

// SetMeta replaces the metadata; see [Metadata.SetMeta]. Under a scheme of
// [NewScheme] the file names the scheme by the key "scheme": metadata with that key
// are an error that wraps [ErrConfig].
func (f *Classic) SetMeta(meta map[string]string) error {
	if _, taken := meta[schemeMeta]; taken && f.scheme.Number() == scheme.Custom {
		return fmt.Errorf("%w: the metadata of this filter name its scheme: take another key than %q", ErrConfig, schemeMeta)
	}
	if err := filterfile.CheckMeta(f.withScheme(meta)); err != nil {
		return err
	}
	return f.Metadata.SetMeta(meta)
}

// withScheme is what the file has in place of meta.
func (f *Classic) withScheme(meta map[string]string) map[string]string {
	if f.scheme.Number() != scheme.Custom {
		return meta
	}
	both := map[string]string{schemeMeta: f.scheme.Name()}
	maps.Copy(both, meta)
	return both
}

func (f *Classic) stored() *filterfile.File {
	f.mustBeOpen()
	h := filterfile.Header{
		Kind:   filterfile.KindClassic,
		Scheme: uint32(f.scheme.Number()),
		Hash:   f.id.stored(),
		Keys:   f.plan.Keys,
		Rate:   f.plan.Rate,
		Meta:   f.withScheme(f.noted()),
	}
	return filterfile.New(h, f.added,
		[]filterfile.Section{{Kind: filterfile.SectionBits, Probes: uint32(f.plan.Probes), Blocks: f.plan.Bits}},
		[][]uint64{f.words})
}

// classicFrom makes the filter that a file holds. A caller's scheme is one of
// known.
func classicFrom(s *filterfile.File, known []Scheme) (*Classic, error) {
	if err := s.MustHold(filterfile.KindClassic); err != nil {
		return nil, err
	}
	rule, ok := SchemeNumbered(uint16(s.Scheme))
	meta := s.Meta
	if s.Scheme == scheme.Custom {
		name := meta[schemeMeta]
		if name == "" {
			return nil, fmt.Errorf("%w: it does not name its scheme", ErrFormat)
		}
		for _, k := range known {
			if k.Number() == scheme.Custom && k.Name() == name {
				rule, ok = k, true
			}
		}
		if !ok {
			return nil, fmt.Errorf("%w: the file is of the scheme %q: load it with that scheme", ErrVersion, name)
		}
		meta = maps.Clone(meta)
		delete(meta, schemeMeta)
	}
	e := s.Sections[0]
	if err := rule.fits(e.Blocks, int(e.Probes)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if !rule.hashedBy(hashIdentity(s.Hash)) {
		return nil, fmt.Errorf("%w: the scheme %s with the hash %v", ErrFormat, rule, hashIdentity(s.Hash))
	}
	plan := Plan{Keys: s.Keys, Rate: s.Rate, Bits: e.Blocks, Probes: int(e.Probes), Blocks: e.Blocks, Layout: AnyBits}
	if err := noneBehind(s.Words[0], e.Blocks); err != nil {
		return nil, err
	}
	f := &Classic{words: s.Words[0], scheme: rule, added: s.Added, plan: plan, memory: s.Memory[0]}
	f.Hasher = storedHasher(s.Hash)
	f.note(meta)
	return f, nil
}

// WriteTo writes the filter as a file; see [Filter.WriteTo]. Of a scheme made by
// [NewScheme] it holds the name.
func (f *Classic) WriteTo(w io.Writer) (int64, error) {
	defer f.keepAlive()
	return f.stored().WriteTo(w)
}

// Save writes the filter to a file at path; see [Filter.Save].
func (f *Classic) Save(path string) error { return save(path, f.WriteTo) }

// ReadClassic reads a filter that [Classic.WriteTo] wrote; see [Read]. A caller's
// scheme must be among those given.
func ReadClassic(r io.Reader, limitBytes int64, schemes ...Scheme) (*Classic, error) {
	return read(r, limitBytes, func(s *filterfile.File) (*Classic, error) { return classicFrom(s, schemes) })
}

// LoadClassic reads the file at path; see [Load] and [ReadClassic].
func LoadClassic(path string, schemes ...Scheme) (*Classic, error) {
	return load(path, func(s *filterfile.File) (*Classic, error) { return classicFrom(s, schemes) })
}
