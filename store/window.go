package store

import (
	"errors"
	"fmt"

	"github.com/bloomery/bloom"
)

// A window rotates by the clock, and its newest generation grows by layers. So only the
// window knows how many more keys fit, and it decides key by key. The store pays for
// the layers and sets the limit of a generation.

// limit applies the Spec and the store's memory limit to the window.
func (p *paired) limit(w *bloom.Window) {
	grant := func(layer bloom.Plan) error {
		bytes := lockedBytes(layer)
		if err := p.local.grant(bytes); err != nil {
			return err
		}
		p.charged.Add(bytes)
		return nil
	}
	release := func(layer bloom.Plan) {
		bytes := lockedBytes(layer)
		p.charged.Add(-bytes)
		p.local.release(bytes)
	}
	bloom.Inside.LimitWindow(w, p.mostKeys(), grant, release)
}

// mostKeys is how many keys a window's generation may hold, zero if any number. As a
// span's keys may all arrive at once, it is the number planned for a span.
func (p *paired) mostKeys() uint64 {
	if p.spec.Growth != 0 {
		return 0
	}
	return p.spec.Capacity
}

// unlimit undoes limit, before the filter loses the bits: what was granted for them is
// then released all at once.
func (p *paired) unlimit(bits hashed) {
	if w, ok := bits.(*bloom.Window); ok {
		bloom.Inside.LimitWindow(w, p.mostKeys(), nil, nil)
	}
}

// addToWindow is add, with the gate held for reading. It stops at the first key for which
// there is no room. That may be an old key, which then is not remembered for longer.
func (p *paired) addToWindow(v *value, hashes []uint64, isNew []bool) (done int, err error) {
	l := p.local
	if err := p.isLoading(); err != nil {
		return 0, err
	}
	w, ok := p.now().(*bloom.Window)
	if !ok {
		return 0, fmt.Errorf("%w: it is no window", ErrWrongKind)
	}
	l.adding.RLock()
	defer l.adding.RUnlock()
	at := l.windowNow().UnixNano() // before the window reads the clock: it may forget later, never too soon
	done, added, err := bloom.Inside.TryAddHashes(w, hashes, isNew)
	if done > 0 {
		p.items.Add(uint64(added))
		v.logHashes(at, 0, added, hashes[:done], isNew[:done])
	}
	switch {
	case err == nil || errors.Is(err, ErrMemory):
		return done, err
	case errors.Is(err, bloom.ErrBudget):
		return done, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	return done, fmt.Errorf("%w: %w: wait, or make one that is larger, or that grows", ErrFull, err)
}

// windowMemory is the memory that a window takes, in bytes: that of all its layers, the
// layers of generations yet to begin, and a spare one.
func windowMemory(w *bloom.Window) (total uint64) {
	sizes, blocks := bloom.Inside.Sizes(w), w.Plan().Blocks
	for _, s := range sizes {
		total += lockedBytes(s.Plan)
		blocks -= s.Plan.Blocks
	}
	first := sizes[0].Plan // all first layers have this size
	return total + (blocks/first.Blocks+1)*lockedBytes(first)
}
