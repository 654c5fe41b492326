package bloom

import (
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/rate"
)

// Filters combined with filters. Union is exact: the bits are those of a filter with
// the keys of both. Nothing else is, because a bit does not say which key set it; each
// method says what can still be relied on.

// Union adds everything in g to f by bitwise OR: f then answers as if all keys of both
// had been added to it. f keeps its plan.
//
// g may be larger by a whole factor; it is folded on the way. The error wraps
// [ErrUnlike] if the hash identities or k differ, or the sizes do not fold, and
// then nothing has changed.
func (f *Filter) Union(g *Filter) error {
	f.mustBeWritable()
	if err := folds(f, g); err != nil {
		return err
	}
	orFolded(f.bits.Words, g.bits.Words, kernel.WordsPerBlock)
	f.added += g.added
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Fold returns a new filter of a by-th of the size that holds the same keys, at
// a higher rate: neighbouring blocks are ORed, by at a time. It is exact, since
// hi64(h * B/by) = hi64(h * B)/by: the result has the very bits of a smaller
// filter with the same keys. [Config.Folds] keeps the number of blocks
// divisible.
//
// The result is planned for f's planned rate, and for as many keys as the smaller size
// holds at that rate. If f has more keys, the result is over-full, as its Report says.
// If so small a filter cannot keep the rate for a single key, it is planned for a by-th
// of f's keys at the rate that they make.
//
// f stays as it is; close it if you need only the result, see [Filter.Close].
//
// The error wraps [ErrConfig] if by does not divide the number of blocks.
func (f *Filter) Fold(by uint64) (*Filter, error) {
	f.mustBeOpen()
	plan, err := f.plan.folded(by)
	if err != nil {
		return nil, err
	}
	g, err := newFilter(plan, f.Hasher)
	if err != nil {
		return nil, err
	}
	orFolded(g.bits.Words, f.bits.Words, kernel.WordsPerBlock)
	g.added = f.added
	g.note(f.noted())
	f.keepAlive()
	return g, nil
}

// Replan plans the filter for the false-positive rate p, between 0 and 1. Its bits
// stay as they are; the planned number of keys becomes the one at which they keep p.
// Use it on a filter that was folded to keep a higher rate than it was made for. It
// must run alone, as Add must.
//
// The error wraps [ErrConfig] or [ErrRate]; the plan is then unchanged.
func (f *Filter) Replan(p float64) error {
	f.mustBeOpen()
	plan, err := f.plan.replanned(p)
	if err == nil {
		f.plan = plan
	}
	return err
}

func (p Plan) replanned(rate float64) (Plan, error) {
	return Config{Bits: p.Bits, Probes: p.Probes, Rate: rate}.plan(p.Layout.geometry())
}

// folded is the plan of a filter of a by-th of the size: see [Filter.Fold].
func (p Plan) folded(by uint64) (Plan, error) {
	if by == 0 || p.Blocks%by != 0 {
		return Plan{}, fmt.Errorf("%w: %d blocks cannot be folded by %d: make the filter with Config.Folds", ErrConfig, p.Blocks, by)
	}
	small := p
	small.Blocks /= by
	small.Bits = small.Blocks * p.Layout.geometry().BlockBits
	if same, err := small.replanned(p.Rate); err == nil {
		return same, nil
	}
	small.Keys = max(p.Keys/by, 1)
	small.Rate = small.RateAt(small.Keys)
	return small, nil
}

// Equal reports whether f and g have the same hash, geometry and bits. Their plans,
// counts and metadata do not matter.
func (f *Filter) Equal(g *Filter) bool {
	equal := alike(f, g) == nil && slices.Equal(f.bits.Words, g.bits.Words)
	f.keepAlive()
	g.keepAlive()
	return equal
}

// Intersect keeps in f only the bits that g has too. All keys that were added to both
// are still found. So are some that were added to one of them only, or to neither:
// bits that two different keys have in common stay as well. The rate is at most that
// of either filter, and higher than that of a filter of the common keys. Report's
// Added is then an upper bound.
//
// The error wraps [ErrUnlike] if hash, k or size differ, and then nothing has
// changed.
func (f *Filter) Intersect(g *Filter) error {
	f.mustBeWritable()
	err := combine(f, g, and)
	if err == nil {
		f.added = min(f.added, g.added)
	}
	return err
}

// Difference removes g's bits from f. This is NOT SOUND: a key that was added to f only
// is lost if one of its bits is also set in g, by other keys, and then Contains answers
// no for a key that was added. A key found afterwards was in f and is not in g, as far
// as either can tell; that a key is not found means nothing. To subtract keys use a
// [Counting], or build the filter again from its keys.
//
// The error is as for Intersect.
func (f *Filter) Difference(g *Filter) error {
	f.mustBeWritable()
	return combine(f, g, andNot)
}

// Subset reports whether every bit of f is set in g. False is certain: f has a key
// that g lacks. True means that each key of f is found in g, rightly or by mistake.
// The error is as for Intersect.
func (f *Filter) Subset(g *Filter) (bool, error) {
	subset := false
	err := combine(f, g, func(f, g []uint64) { subset = isSubset(f, g) })
	return subset, err
}

// Overlap estimates how many keys f and g have in common. The error is as for
// Intersect.
func (f *Filter) Overlap(g *Filter) (Overlap, error) {
	var o Overlap
	err := combine(f, g, func(words, others []uint64) { o = overlapOf(words, others, f.plan) })
	return o, err
}

func (f *Filter) words() []uint64 { return f.bits.Words }

func (f *Filter) mustBeWritable() {
	if f.readOnly {
		panicReadOnly()
	}
}

// Union adds everything in g to f; see [Filter.Union].
func (f *SplitBlock) Union(g *SplitBlock) error {
	if err := folds(f, g); err != nil {
		return err
	}
	orFolded(f.bits.Words, g.bits.Words, kernel.SplitBlockWords)
	f.bits.Added += g.bits.Added
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Fold returns a filter of a by-th of the size; see [Filter.Fold].
func (f *SplitBlock) Fold(by uint64) (*SplitBlock, error) {
	f.mustBeOpen()
	plan, err := f.plan.folded(by)
	if err != nil {
		return nil, err
	}
	words, mapping, err := memory.Words(plan.Blocks * kernel.SplitBlockWords)
	if err != nil {
		return nil, err
	}
	g := &SplitBlock{Hasher: f.Hasher, plan: plan, memory: mapping}
	g.bits = kernel.Split{Words: words, Blocks: plan.Blocks, Added: f.bits.Added}
	g.note(f.noted())
	orFolded(words, f.bits.Words, kernel.SplitBlockWords)
	f.keepAlive()
	return g.bound(), nil
}

// Replan plans the filter for another rate; see [Filter.Replan].
func (f *SplitBlock) Replan(p float64) error {
	f.mustBeOpen()
	plan, err := f.plan.replanned(p)
	if err == nil {
		f.plan = plan
	}
	return err
}

// Intersect keeps in f only the bits that g has too; see [Filter.Intersect].
func (f *SplitBlock) Intersect(g *SplitBlock) error {
	err := combine(f, g, and)
	if err == nil {
		f.bits.Added = min(f.bits.Added, g.bits.Added)
	}
	return err
}

// Difference removes g's bits from f, and is NOT SOUND; see [Filter.Difference].
func (f *SplitBlock) Difference(g *SplitBlock) error { return combine(f, g, andNot) }

// Subset reports whether every bit of f is set in g; see [Filter.Subset].
func (f *SplitBlock) Subset(g *SplitBlock) (bool, error) {
	subset := false
	err := combine(f, g, func(f, g []uint64) { subset = isSubset(f, g) })
	return subset, err
}

// Overlap estimates how many keys f and g have in common; see [Filter.Overlap].
func (f *SplitBlock) Overlap(g *SplitBlock) (Overlap, error) {
	var o Overlap
	err := combine(f, g, func(words, others []uint64) { o = overlapOf(words, others, f.plan) })
	return o, err
}

func (f *SplitBlock) words() []uint64 { return f.bits.Words }

// likened is what decides whether the bits of two filters mean the same.
type likened interface {
	HashIdentity() HashIdentity
	Plan() Plan
	mustBeOpen()
}

// alike refuses two filters whose bits mean different things.
func alike(f, g likened) error {
	f.mustBeOpen()
	g.mustBeOpen()
	if f.HashIdentity() != g.HashIdentity() {
		return fmt.Errorf("%w: one is hashed by %v, the other by %v", ErrUnlike, f.HashIdentity(), g.HashIdentity())
	}
	if f.Plan().Probes != g.Plan().Probes {
		return fmt.Errorf("%w: one has k %d, the other %d", ErrUnlike, f.Plan().Probes, g.Plan().Probes)
	}
	return nil
}

// folds refuses two filters unless they are alike and g is as large as f or folds onto
// it.
func folds(f, g likened) error {
	if err := alike(f, g); err != nil {
		return err
	}
	if f, g := f.Plan().Blocks, g.Plan().Blocks; g%f != 0 {
		return fmt.Errorf("%w: %d blocks do not fold onto %d: the size of the added filter must be a multiple", ErrUnlike, g, f)
	}
	return nil
}

// combine calls do with the words of two filters, which must be alike and of one size.
func combine[F interface {
	likened
	words() []uint64
}](f, g F, do func(f, g []uint64)) error {
	if err := alike(f, g); err != nil {
		return err
	}
	if f, g := f.Plan().Blocks, g.Plan().Blocks; f != g {
		return fmt.Errorf("%w: one has %d blocks, the other %d: Fold the larger one first", ErrUnlike, f, g)
	}
	do(f.words(), g.words())
	runtime.KeepAlive(f)
	runtime.KeepAlive(g)
	return nil
}

// Overlap is what the bits of two filters say about the sets they hold (Swamidass and
// Baldi 2007, section 2.4). All numbers are estimates.
//
// A saturated filter does not show how many keys it holds: its number is +Inf, and so
// are Union and IntersectionError. Intersection is then the most that it can be,
// the smaller of Keys and Others.
type Overlap struct {
	Keys, Others float64 // in the one filter, and in the other
	Union        float64 // keys in either
	Intersection float64 // keys in both: Keys + Others - Union, but not below zero

	// IntersectionError is the standard error of Intersection, or more: the three
	// estimates behind it are assumed to be independent. A small intersection of
	// large sets cannot be told from none.
	IntersectionError float64
}

// Jaccard is the share of the keys in either filter that are in both, 0 to 1. If one
// filter is saturated it is 0, as a share of +Inf; if both are, it is 1, as for equal
// ones.
func (o Overlap) Jaccard() float64 {
	if o.Union == 0 || math.IsInf(o.Intersection, 1) {
		return 1 // two empty sets are equal
	}
	return min(o.Intersection/o.Union, 1)
}

// overlapOf counts the bits of two filters of one plan's m and k.
func overlapOf(f, g []uint64, plan Plan) Overlap {
	var inF, inG, inEither int
	for i, word := range f {
		inF += bits.OnesCount64(word)
		inG += bits.OnesCount64(g[i])
		inEither += bits.OnesCount64(word | g[i])
	}
	return Overlap(rate.OverlapOf(inF, inG, inEither, plan.Bits, plan.Probes))
}

func and(dst, src []uint64) {
	for i, word := range src {
		dst[i] &= word
	}
}

func andNot(dst, src []uint64) {
	for i, word := range src {
		dst[i] &^= word
	}
}

func isSubset(f, g []uint64) bool {
	for i, word := range f {
		if word&^g[i] != 0 {
			return false
		}
	}
	return true
}

// orFolded ORs src onto dst, len(src)/len(dst) blocks of src onto each block of
// dst.
func orFolded(dst, src []uint64, block int) {
	by := len(src) / len(dst)
	for d := 0; d < len(dst); d += block {
		for s := d * by; s < (d+block)*by; s += block {
			for i, word := range src[s:][:block] {
				dst[d+i] |= word
			}
		}
	}
}
