// Package classic is the Bloom filter of the textbooks and of other programs: any
// number m of bits, and k positions per key by a numbered [Scheme]. Use it to
// exchange filters with other programs, or to see how a Bloom filter works. For
// everything else use [bloom.Filter]: it needs one or two cache misses where this
// one needs k, and only a few percent more space.
//
// Under [SchemeBloomery] a [Filter] keeps all promises of package bloom, the rate
// among them, at any m from 1 to 2^45 and any k from 1 to 255. Under another
// program's scheme it gives the answers of that program, whose hashes may be worse
// than the formula of the rate assumes.
//
// Package interop reads and writes the files of other programs. [Config.ReadBits],
// [Config.OpenBits] and [Filter.WriteBits] handle bare bits, without a file format
// around them.
package classic

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/elementary"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/rate"
	"github.com/bloomery/bloom/internal/scheme"
)

// Filter is a Bloom filter of any number m of bits, in which a key sets k bits at
// the positions that a [Scheme] gives.
//
// Contains and the other reading methods may run in any number of goroutines at
// once; a method that changes the filter must run alone. The zero Filter is not
// usable. After Close every method that needs the bits panics.
type Filter struct {
	bloom.Hasher // of the zero identity where the scheme has a hash of its own
	bloom.Metadata

	words  []uint64 // bit i is word i/64, mask 1<<(i%64); those from m on stay clear
	scheme Scheme
	added  uint64     // adds that answered true
	plan   bloom.Plan // m is plan.Bits, k is plan.Probes
	memory *memory.Mapping

	readOnly bool // from OpenBits
}

// New returns an empty filter for n keys at false-positive rate p under our own
// scheme, with the fewest bits that keep the rate.
func New(n uint64, p float64) (*Filter, error) { return Config{Keys: n, Rate: p}.New() }

// New returns an empty filter of the planned size.
func (c Config) New() (*Filter, error) {
	plan, hash, err := c.planned()
	if err != nil {
		return nil, err
	}
	return newFilter(plan, c.Scheme, hash)
}

func newFilter(plan bloom.Plan, s Scheme, hash bloom.Hasher) (*Filter, error) {
	words, mapping, err := memory.Words((plan.Bits + 63) / 64)
	if err != nil {
		return nil, err
	}
	return &Filter{words: words, scheme: Scheme{s.def()}, Hasher: hash, plan: plan, memory: mapping}, nil
}

// Add puts key into the filter and reports whether it is certainly new; see
// [bloom.Filter.Add].
func (f *Filter) Add(key []byte) bool {
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
func (f *Filter) AddString(key string) bool { return f.Add(memory.StringBytes(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (f *Filter) AddUint64(key uint64) bool {
	return f.Add(uint64Bytes(key))
}

// AddHash is Add for the hash of a key; see [bloom.Filter.AddHash]. It panics
// unless [Scheme.TakesHashes] reports true.
func (f *Filter) AddHash(h uint64) bool {
	f.mustTakeHashes()
	f.mustBeWritable()
	isNew := f.addStream(h)
	f.keepAlive()
	if isNew {
		f.added++
	}
	return isNew
}

func (f *Filter) addStream(h uint64) (isNew bool) {
	m := f.plan.Bits
	stream := scheme.NewStream(h)
	for range f.plan.Probes {
		isNew = f.set(stream.Next(m)) || isNew
	}
	return isNew
}

// set sets bit i and reports whether it was clear.
func (f *Filter) set(i uint64) bool {
	word, bit := &f.words[i/64], uint64(1)<<(i%64)
	wasClear := *word&bit == 0
	*word |= bit
	return wasClear
}

func (f *Filter) isSet(i uint64) bool { return f.words[i/64]>>(i%64)&1 != 0 }

// Contains reports whether key is probably in the filter; see [bloom.Filter.Contains].
func (f *Filter) Contains(key []byte) bool {
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
func (f *Filter) ContainsString(key string) bool { return f.Contains(memory.StringBytes(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (f *Filter) ContainsUint64(key uint64) bool {
	return f.Contains(uint64Bytes(key))
}

// ContainsHash is Contains for the hash of a key; see [Filter.AddHash].
func (f *Filter) ContainsHash(h uint64) bool {
	f.mustTakeHashes()
	found := f.containsStream(h)
	f.keepAlive()
	return found
}

func (f *Filter) containsStream(h uint64) bool {
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
// certainly new; see [bloom.Filter.AddMany].
func (f *Filter) AddMany(keys [][]byte, isNew []bool) int { return each(keys, isNew, f.Add) }

// AddStrings is AddMany for strings.
func (f *Filter) AddStrings(keys []string, isNew []bool) int { return each(keys, isNew, f.AddString) }

// AddHashes is AddMany for the hashes of keys; see [Filter.AddHash].
func (f *Filter) AddHashes(hashes []uint64, isNew []bool) int {
	f.mustTakeHashes()
	return each(hashes, isNew, f.AddHash)
}

// ContainsMany returns how many of the keys are probably in the filter; see
// [bloom.Filter.ContainsMany].
func (f *Filter) ContainsMany(keys [][]byte, found []bool) int { return each(keys, found, f.Contains) }

// ContainsStrings is ContainsMany for strings.
func (f *Filter) ContainsStrings(keys []string, found []bool) int {
	return each(keys, found, f.ContainsString)
}

// ContainsHashes is ContainsMany for the hashes of keys; see [Filter.AddHash].
func (f *Filter) ContainsHashes(hashes []uint64, found []bool) int {
	f.mustTakeHashes()
	return each(hashes, found, f.ContainsHash)
}

// each calls do for the keys in order and counts the answers that are true.
func each[K any](keys []K, answers []bool, do func(K) bool) int {
	if answers != nil && len(answers) != len(keys) {
		panic(fmt.Sprintf("bloom: %d keys but room for %d answers: give nil or a slice as long as the keys", len(keys), len(answers)))
	}
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

// uint64Bytes is small enough to be inlined, so that the bytes need not leave the
// caller's stack.
func uint64Bytes(key uint64) []byte { return binary.LittleEndian.AppendUint64(make([]byte, 0, 8), key) }

// located is a key and its positions under another program's scheme, or a caller's.
// The key is copied: passed to an unknown function, the caller's bytes would escape
// to the heap.
type located struct {
	at  [scheme.MaxProbes]uint64
	key []byte
}

var locatedPool = sync.Pool{New: func() any { return new(located) }}

// longKey is the length above which the pool does not keep a key's copy.
const longKey = 64 << 10

func (f *Filter) locate(key []byte) *located {
	p := locatedPool.Get().(*located)
	p.key = append(p.key[:0], key...)
	at, m := p.at[:f.plan.Probes], f.plan.Bits
	f.scheme.rule.Fill(at, p.key, m, f.HashIdentity().Key)
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

// Positions returns the k positions of key, in the scheme's order. Positions may
// repeat.
func (f *Filter) Positions(key []byte) []uint64 {
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
// unless [Scheme.TakesHashes] reports true.
func (f *Filter) Hash(key []byte) uint64 {
	f.mustTakeHashes()
	return f.Hasher.Hash(key)
}

// HashString is Hash for a string.
func (f *Filter) HashString(key string) uint64 { return f.Hash(memory.StringBytes(key)) }

// Scheme returns the rule that gives the positions.
func (f *Filter) Scheme() Scheme { return f.scheme }

// Plan returns the sizing in force: n, p, m and k.
func (f *Filter) Plan() bloom.Plan { return f.plan }

// BitString returns the bits as m characters 0 and 1, the last bit first and bit 0
// at the end.
func (f *Filter) BitString() string {
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

// FormatHash returns the BitString of a filter that holds key alone.
func (f *Filter) FormatHash(key []byte) string {
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

// EstimatedErrorRate returns the share of set bits to the power of k: the chance
// that k random positions are all set. It reads all bits.
func (f *Filter) EstimatedErrorRate() float64 {
	f.mustBeOpen()
	set := 0
	for _, word := range f.words {
		set += bits.OnesCount64(word)
	}
	f.keepAlive()
	return elementary.Power(float64(set)/float64(f.plan.Bits), uint64(f.plan.Probes))
}

// sampleBytes is the most that a report reads of a filter.
const sampleBytes = 64 << 20

// Report reads the filter's bits, or a sample above 64 MiB, and reports how full it
// is and what its rate is now, assuming that positions are spread evenly.
func (f *Filter) Report() bloom.Report {
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
	r := bloom.Report{Plan: f.plan, Fill: float64(set) / float64(seen), Added: f.added}
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
func (f *Filter) Clear() {
	f.mustBeWritable()
	clear(f.words)
	f.keepAlive()
	f.added = 0
}

// Clone returns a filter with the same bits in memory of its own. It panics if
// there is not enough memory. Close or drop it independently of f.
func (f *Filter) Clone() *Filter {
	f.mustBeOpen()
	g, err := newFilter(f.plan, f.scheme, f.Hasher)
	if err != nil {
		panic(err)
	}
	copy(g.words, f.words)
	g.added = f.added
	g.Metadata.SetMeta(f.Meta()) // cannot fail: f accepted it
	f.keepAlive()
	return g
}

// Equal reports whether f and g have the same scheme, hash, m, k and bits. Plans
// and counts are not compared.
func (f *Filter) Equal(g *Filter) bool {
	f.mustBeOpen()
	g.mustBeOpen()
	equal := f.alike(g) == nil && slices.Equal(f.words, g.words)
	f.keepAlive()
	g.keepAlive()
	return equal
}

// Close releases the memory at once, and may be called twice. A filter may also be
// dropped: see [bloom.Filter.Close].
func (f *Filter) Close() error {
	f.words = nil
	return f.memory.Close()
}

func (f *Filter) String() string {
	if f.HashIdentity() == (bloom.HashIdentity{}) {
		return fmt.Sprintf("classic: %v; scheme %v", f.plan, f.scheme)
	}
	return fmt.Sprintf("classic: %v; scheme %v, %v", f.plan, f.scheme, f.HashIdentity())
}

func (f *Filter) keepAlive() { runtime.KeepAlive(f) }

func (f *Filter) mustBeOpen() {
	if f.words == nil {
		panic("bloom: the filter is closed, or was never made: use New or Config.New of package classic")
	}
}

// mustBeWritable is for methods that change the filter.
func (f *Filter) mustBeWritable() {
	f.mustBeOpen()
	if f.readOnly {
		panic("bloom: the filter was opened read-only: Clone it, or Load the file instead")
	}
}

func (f *Filter) mustTakeHashes() {
	if !f.scheme.TakesHashes() {
		panic("bloom: the scheme " + f.scheme.Name() + " needs the key, and knows no hash of it")
	}
}
