package store

import (
	"fmt"

	"github.com/bloomery/bloom"
)

// A fold makes a smaller twin of a filter while keys are added and looked up. The twin
// is empty at first. From then on keys are added to both, and lookups use the old bits.
// The old bits are ORed into the twin, piece by piece. Then the fold is logged, and the
// twin replaces the old bits.

// fold shrinks the filter.
func (p *paired) fold(v *value, by uint64) error {
	l := p.local
	bits, bytes, err := p.beginFold(v, by)
	if err != nil {
		return err
	}
	defer l.unpin(bits)
	err = p.twin.Union(bits, func() error {
		l.between()
		if v.isDropped() {
			return errDropped
		}
		return nil
	})
	gate := v.gate()
	gate.Lock()
	defer gate.Unlock()
	twin := p.twin
	p.twin = nil
	if v.isDropped() {
		err = errDropped
	}
	if err != nil {
		l.discard(gone{twin, bytes, bytes})
		return err
	}
	v.logFold(by)
	bloom.Inside.SetAdded(twin, p.items.Load())
	p.replace(twin, p.items.Load(), bytes)
	return nil
}

// beginFold creates the twin, after reserving its memory, and pins the bits to be
// folded.
func (p *paired) beginFold(v *value, by uint64) (bits *bloom.Shared, bytes uint64, err error) {
	held, err := v.hold()
	if err != nil {
		return bits, 0, err
	}
	defer func() {
		if err != nil {
			p.local.unpin(held)
		}
	}()
	bits, ok := held.(*bloom.Shared)
	if !ok {
		return bits, 0, fmt.Errorf("filters that grow or forget cannot be folded: %w", errUnsupported)
	}
	if plan := bits.Plan(); by > 0 && plan.Blocks%by == 0 { // otherwise Folded returns the error
		plan.Blocks /= by
		plan.Bits /= by
		bytes = lockedBytes(plan)
	}
	if err := p.local.Grant(bytes); err != nil {
		return bits, 0, err
	}
	twin, err := bloom.Inside.Folded(bits, by)
	if err != nil {
		p.local.release(bytes)
		return bits, 0, err
	}
	gate := v.gate()
	gate.Lock()
	defer gate.Unlock()
	if err = p.isLoading(); v.isDropped() {
		err = errDropped
	}
	if err != nil {
		p.local.discard(gone{twin, bytes, bytes})
		return bits, 0, err
	}
	p.twin = twin
	return bits, bytes, nil
}

func (c chain) fold(*value, uint64) error {
	return fmt.Errorf("RedisBloom's filters cannot be folded: %w", errUnsupported)
}
