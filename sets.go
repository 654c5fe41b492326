package bloom

import (
	"fmt"
	"slices"

	"github.com/bloomery/bloom/internal/kernel"
)

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
	orFolded(f.bits.Words, g.bits.Words)
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
// The error wraps [ErrConfig] if by does not divide the number of blocks.
func (f *Filter) Fold(by uint64) (*Filter, error) {
	f.mustBeOpen()
	if by == 0 || f.bits.Blocks%by != 0 {
		return nil, fmt.Errorf("%w: %d blocks cannot be folded by %d: make the filter with Config.Folds", ErrConfig, f.bits.Blocks, by)
	}
	plan := f.plan
	plan.Blocks /= by
	plan.Bits = plan.Blocks * kernel.BlockBits
	plan.Rate = plan.RateAt(plan.Keys)
	g, err := newFilter(plan, f.hash)
	if err != nil {
		return nil, err
	}
	orFolded(g.bits.Words, f.bits.Words)
	g.added = f.added
	g.meta = f.Meta()
	f.keepAlive()
	return g, nil
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
	if f.hash.id != g.hash.id {
		return fmt.Errorf("%w: one is hashed by %v, the other by %v", ErrUnlike, f.hash.id, g.hash.id)
	}
	if f.plan.Probes != g.plan.Probes {
		return fmt.Errorf("%w: one has k %d, the other %d", ErrUnlike, f.plan.Probes, g.plan.Probes)
	}
	return nil
}

// orFolded ORs src onto dst, len(src)/len(dst) blocks of src onto each block of
// dst.
func orFolded(dst, src []uint64) {
	const block = kernel.WordsPerBlock
	by := len(src) / len(dst)
	for d := 0; d < len(dst); d += block {
		for s := d * by; s < (d+block)*by; s += block {
			for i, word := range src[s:][:block] {
				dst[d+i] |= word
			}
		}
	}
}
