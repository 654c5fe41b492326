package classic

import (
	"fmt"
	"math/bits"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/rate"
)

// Union adds all keys of g to f: f then has the very bits of a filter to which the
// keys of both were added. The error wraps [bloom.ErrUnlike] if scheme, hash, m or k
// differ; f is then unchanged.
func (f *Filter) Union(g *Filter) error {
	f.mustBeWritable()
	if err := f.alike(g); err != nil {
		return err
	}
	for i, word := range g.words {
		f.words[i] |= word
	}
	f.added += g.added
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Intersect keeps the bits of f that g has too. All keys that were added to both are
// still found. So are some that were added to one or neither: f is not a filter of
// the common keys alone, and its rate is higher. Report.Added is then an upper bound.
// The error is as for Union.
func (f *Filter) Intersect(g *Filter) error {
	f.mustBeWritable()
	if err := f.alike(g); err != nil {
		return err
	}
	for i, word := range g.words {
		f.words[i] &= word
	}
	f.added = min(f.added, g.added)
	f.keepAlive()
	g.keepAlive()
	return nil
}

// alike refuses filters whose bits mean different things, and closed ones.
func (f *Filter) alike(g *Filter) error {
	f.mustBeOpen()
	g.mustBeOpen()
	switch {
	case !f.scheme.is(g.scheme):
		return fmt.Errorf("%w: one has the scheme %v, the other %v", bloom.ErrUnlike, f.scheme, g.scheme)
	case f.HashIdentity() != g.HashIdentity():
		return fmt.Errorf("%w: one is hashed by %v, the other by %v", bloom.ErrUnlike, f.HashIdentity(), g.HashIdentity())
	case f.plan.Bits != g.plan.Bits:
		return fmt.Errorf("%w: one has m %d, the other %d", bloom.ErrUnlike, f.plan.Bits, g.plan.Bits)
	case f.plan.Probes != g.plan.Probes:
		return fmt.Errorf("%w: one has k %d, the other %d", bloom.ErrUnlike, f.plan.Probes, g.plan.Probes)
	}
	return nil
}

// Difference clears the bits of f that g has, and is NOT SOUND; see
// [bloom.Filter.Difference].
func (f *Filter) Difference(g *Filter) error {
	f.mustBeWritable()
	if err := f.alike(g); err != nil {
		return err
	}
	for i, word := range g.words {
		f.words[i] &^= word
	}
	f.keepAlive()
	g.keepAlive()
	return nil
}

// Subset reports whether every bit of f is set in g; see [bloom.Filter.Subset].
func (f *Filter) Subset(g *Filter) (bool, error) {
	if err := f.alike(g); err != nil {
		return false, err
	}
	subset := true
	for i, word := range f.words {
		subset = subset && word&^g.words[i] == 0
	}
	f.keepAlive()
	g.keepAlive()
	return subset, nil
}

// Overlap estimates how many keys f and g have in common.
func (f *Filter) Overlap(g *Filter) (bloom.Overlap, error) {
	if err := f.alike(g); err != nil {
		return bloom.Overlap{}, err
	}
	var inF, inG, inEither int
	for i, word := range f.words {
		inF += bits.OnesCount64(word)
		inG += bits.OnesCount64(g.words[i])
		inEither += bits.OnesCount64(word | g.words[i])
	}
	f.keepAlive()
	g.keepAlive()
	return bloom.Overlap(rate.OverlapOf(inF, inG, inEither, f.plan.Bits, f.plan.Probes)), nil
}
