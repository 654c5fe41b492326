package bloom

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/rate"
)

// Filters with filters. Union is exact: the bits are those of a filter that got
// the keys of both. All else is not, since a bit does not say whose it is; each
// method's doc says what is left to rely on.

// Union adds everything that g holds to f: bit by bit OR, so that f answers as
// if all keys of both had been added to it. The plan stays f's.
//
// g may be larger by a whole factor; it is folded on the way. The error wraps
// [ErrUnlike] if the hash identities or k differ, or the sizes do not fold, and
// then nothing has changed.
func (f *Filter) Union(g *Filter) error {
	if f.readOnly {
		panicReadOnly()
	}
	f.mustBeOpen()
	g.mustBeOpen()
	if err := f.alike(g); err != nil {
		return err
	}
	if g.bits.Blocks%f.bits.Blocks != 0 {
		return fmt.Errorf("%w: %d blocks do not fold onto %d: the size of the added filter must be a multiple", ErrUnlike, g.bits.Blocks, f.bits.Blocks)
	}
	orFolded(f.bits.Words, g.bits.Words, kernel.WordsPerBlock)
	f.added += g.added
	g.keepAlive()
	return nil
}

// Fold returns a new filter of a by-th of the size that holds the same keys, at
// a higher rate: neighbouring blocks are ORed, by at a time. It is exact, since
// hi64(h * B/by) = hi64(h * B)/by: the result has the very bits of a smaller
// filter with the same keys. [Config.Folds] keeps the number of blocks
// divisible.
//
// The result is planned for f's planned rate, and for as many keys as the smaller
// size holds at that. If f has more, the result is over-full, and its Report says
// so. Where so small a filter cannot keep the rate for a single key, it is planned
// for a by-th of f's keys at the rate that they make.
//
// f stays as it is; close it if only the result is needed, see [Filter.Close].
//
// The error wraps [ErrConfig] if by does not divide the number of blocks.
func (f *Filter) Fold(by uint64) (*Filter, error) {
	f.mustBeOpen()
	if by == 0 || f.bits.Blocks%by != 0 {
		return nil, fmt.Errorf("%w: %d blocks cannot be folded by %d: make the filter with Config.Folds", ErrConfig, f.bits.Blocks, by)
	}
	g, err := newFilter(f.plan.folded(by), f.Hasher)
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
// stay as they are, and the planned number of keys becomes the one for which they
// keep p. It is for a filter that was folded to keep a higher rate than it was made
// for. It must run alone, as Add must.
//
// The error wraps [ErrConfig] or [ErrRate]: the plan is then as it was.
func (f *Filter) Replan(p float64) error {
	f.mustBeOpen()
	plan, err := f.plan.replanned(p)
	if err == nil {
		f.plan = plan
	}
	return err
}

func (p Plan) replanned(rate float64) (Plan, error) {
	plan, err := (Config{Bits: p.Bits, Probes: p.Probes, Rate: rate}).plan(p.Layout.geometry())
	if err != nil {
		return p, err
	}
	return plan, nil
}

// folded is the plan of a filter of a by-th of the size: see [Filter.Fold].
func (p Plan) folded(by uint64) Plan {
	g := p.Layout.geometry()
	small := p
	small.Blocks /= by
	small.Bits = small.Blocks * g.BlockBits
	if same, err := (Config{Bits: small.Bits, Probes: p.Probes, Rate: p.Rate}).plan(g); err == nil {
		return same
	}
	small.Keys = max(p.Keys/by, 1)
	small.Rate = small.RateAt(small.Keys)
	return small
}

// Equal reports whether f and g have the same hash, geometry and bits. What was
// planned, counted and noted does not matter.
func (f *Filter) Equal(g *Filter) bool {
	f.mustBeOpen()
	g.mustBeOpen()
	equal := f.alike(g) == nil && slices.Equal(f.bits.Words, g.bits.Words)
	f.keepAlive()
	g.keepAlive()
	return equal
}

// alike refuses filters whose bits mean different things.
func (f *Filter) alike(g *Filter) error {
	if f.id != g.id {
		return fmt.Errorf("%w: one is hashed by %v, the other by %v", ErrUnlike, f.id, g.id)
	}
	if f.plan.Probes != g.plan.Probes {
		return fmt.Errorf("%w: one has k %d, the other %d", ErrUnlike, f.plan.Probes, g.plan.Probes)
	}
	return nil
}

// Intersect leaves in f the bits that g has too. All keys that were added to both
// are still found. So are some that were added to one of them only, or to
// neither: the bits that two different keys have in common stay as well. The
// rate is at most that of either filter, and more than that of a filter of the
// common keys. Report's Added is then at most too high.
//
// The error wraps [ErrUnlike] if hash, k or size differ, and then nothing has
// changed.
func (f *Filter) Intersect(g *Filter) error {
	if err := f.sameShape(g); err != nil {
		return err
	}
	f.mustBeWritable()
	and(f.bits.Words, g.bits.Words)
	f.added = min(f.added, g.added)
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Difference takes the bits that g has out of f. This is NOT SOUND: a key that
// was added to f only is lost when one of its bits is also set in g, for other
// keys, and then Contains answers no for a key that was added. What is found
// afterwards was in f and is not in g, as far as either can tell; nothing may be
// concluded from what is not found. To subtract keys keep a [Counting], or make
// the filter again from its keys.
//
// The error is as for Intersect.
func (f *Filter) Difference(g *Filter) error {
	if err := f.sameShape(g); err != nil {
		return err
	}
	f.mustBeWritable()
	andNot(f.bits.Words, g.bits.Words)
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Subset reports whether every bit of f is set in g. False is certain: f has a
// key that g has not. True means that each key of f is found in g, by right or
// by mistake. The error is as for Intersect.
func (f *Filter) Subset(g *Filter) (bool, error) {
	if err := f.sameShape(g); err != nil {
		return false, err
	}
	subset := isSubset(f.bits.Words, g.bits.Words)
	f.keepAlive()
	g.keepAlive()
	return subset, nil
}

// Overlap estimates how many keys f and g have in common. The error is as for
// Intersect.
func (f *Filter) Overlap(g *Filter) (Overlap, error) {
	if err := f.sameShape(g); err != nil {
		return Overlap{}, err
	}
	o := overlapOf(f.bits.Words, g.bits.Words, f.plan)
	f.keepAlive()
	g.keepAlive()
	return o, nil
}

// sameShape is alike for methods that go bit by bit.
func (f *Filter) sameShape(g *Filter) error {
	f.mustBeOpen()
	g.mustBeOpen()
	if err := f.alike(g); err != nil {
		return err
	}
	return sameBlocks(f.bits.Blocks, g.bits.Blocks)
}

func sameBlocks(f, g uint64) error {
	if f != g {
		return fmt.Errorf("%w: one has %d blocks, the other %d: Fold the larger one first", ErrUnlike, f, g)
	}
	return nil
}

func (f *Filter) mustBeWritable() {
	if f.readOnly {
		panicReadOnly()
	}
}

// Union adds everything that g holds to f; see [Filter.Union].
func (f *SplitBlock) Union(g *SplitBlock) error {
	if err := f.alike(g); err != nil {
		return err
	}
	if g.bits.Blocks%f.bits.Blocks != 0 {
		return fmt.Errorf("%w: %d blocks do not fold onto %d: the size of the added filter must be a multiple", ErrUnlike, g.bits.Blocks, f.bits.Blocks)
	}
	orFolded(f.bits.Words, g.bits.Words, kernel.SplitBlockWords)
	f.added += g.added
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Fold returns a filter of a by-th of the size; see [Filter.Fold].
func (f *SplitBlock) Fold(by uint64) (*SplitBlock, error) {
	f.mustBeOpen()
	if by == 0 || f.bits.Blocks%by != 0 {
		return nil, fmt.Errorf("%w: %d blocks cannot be folded by %d: make the filter with Config.Folds", ErrConfig, f.bits.Blocks, by)
	}
	g := &SplitBlock{Hasher: f.Hasher, plan: f.plan.folded(by), added: f.added}
	g.note(f.noted())
	words, mapping, err := memory.Words(g.plan.Blocks * kernel.SplitBlockWords)
	if err != nil {
		return nil, err
	}
	g.bits, g.memory = kernel.Split{Words: words, Blocks: g.plan.Blocks}, mapping
	orFolded(words, f.bits.Words, kernel.SplitBlockWords)
	f.keepAlive()
	return g, nil
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

// Intersect keeps in f the bits that g has too; see [Filter.Intersect].
func (f *SplitBlock) Intersect(g *SplitBlock) error {
	if err := f.sameShape(g); err != nil {
		return err
	}
	and(f.bits.Words, g.bits.Words)
	f.added = min(f.added, g.added)
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Difference removes g's bits from f, and is NOT SOUND; see [Filter.Difference].
func (f *SplitBlock) Difference(g *SplitBlock) error {
	if err := f.sameShape(g); err != nil {
		return err
	}
	andNot(f.bits.Words, g.bits.Words)
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Subset reports whether every bit of f is set in g; see [Filter.Subset].
func (f *SplitBlock) Subset(g *SplitBlock) (bool, error) {
	if err := f.sameShape(g); err != nil {
		return false, err
	}
	subset := isSubset(f.bits.Words, g.bits.Words)
	f.keepAlive()
	g.keepAlive()
	return subset, nil
}

// Overlap estimates how many keys f and g share; see [Filter.Overlap].
func (f *SplitBlock) Overlap(g *SplitBlock) (Overlap, error) {
	if err := f.sameShape(g); err != nil {
		return Overlap{}, err
	}
	o := overlapOf(f.bits.Words, g.bits.Words, f.plan)
	f.keepAlive()
	g.keepAlive()
	return o, nil
}

func (f *SplitBlock) alike(g *SplitBlock) error {
	f.mustBeOpen()
	g.mustBeOpen()
	if f.id != g.id {
		return fmt.Errorf("%w: one is hashed by %v, the other by %v", ErrUnlike, f.id, g.id)
	}
	return nil
}

func (f *SplitBlock) sameShape(g *SplitBlock) error {
	if err := f.alike(g); err != nil {
		return err
	}
	return sameBlocks(f.bits.Blocks, g.bits.Blocks)
}

// Overlap is what two filters tell of the sets they hold, by their bits (Swamidass
// and Baldi 2007, section 2.4). All are estimates.
//
// A saturated filter does not tell how many keys it holds: its number is +Inf, and
// so are Union and IntersectionError. Intersection is then the most that it can be,
// the smaller of Keys and Others.
type Overlap struct {
	Keys, Others float64 // in the one filter, and in the other
	Union        float64 // keys in either
	Intersection float64 // keys in both: Keys + Others - Union, but not below zero

	// IntersectionError is the standard error of Intersection, or more: the three
	// estimates it is made of are taken for independent. A small intersection of
	// large sets cannot be told from none.
	IntersectionError float64
}

// Jaccard is the share of the keys in either filter that are in both, 0 to 1. Of two
// filters one of which is saturated it is 0, as a share of +Inf; of two that both
// are it is 1, as of equal ones.
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
