package store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/rate"
)

// A merge ORs the bits of one filter into another, piece by piece, while keys are
// added to both and looked up in both. The log gets a record of it at the end, which
// names the source and has none of its bits. When the log is replayed, the source is as
// it was at that record, which includes everything that was copied. Therefore, until the
// merge ends:
//
//   - Keys that are added to the target are logged even if they are not new: the bits
//     that made them "seen" may come from the merge, which is in the log only at its
//     end.
//   - No snapshot is taken: it would have some of the bits, and belong to a moment at
//     which the source differs from what it is at the record.
//   - Neither filter is folded, and no chunks of a dump are loaded into them.
//
// If the merge cannot be finished, as when its source was dropped, there is no record,
// and the target has bits that the log will never have: it is leaky. Then everything
// added to it is still logged until a snapshot has its bits. One is taken at once; if it
// fails, automatic ones follow.
type merge struct {
	local        *Local
	into, from   *value
	ours, theirs io.Closer
	layers       int // of chains: how many the source had at the beginning
}

// Merge adds the keys of another filter. It waits for a snapshot, fold or other merge in
// progress, and they wait for it. Adds and lookups do not.
func (v *value) Merge(ctx context.Context, from Filter) error {
	other, ok := from.(*value)
	l := v.local
	switch {
	case !ok || other.local != l:
		return fmt.Errorf("%w: the filter to merge is another store's", bloom.ErrUnlike)
	case other.id == v.id:
		return nil
	case other.level == Unlogged && v.level != Unlogged:
		return fmt.Errorf("merging a filter whose adds are not logged into one whose are: %w", errUnsupported)
	}
	l.checkpointing.Lock()
	defer l.checkpointing.Unlock()
	m := &merge{local: l, into: v, from: other}
	if err := m.begin(); err != nil {
		return err
	}
	estimates, err := m.copy()
	err = m.end(estimates, err)
	if err == nil || !l.leaky() { // a snapshot owed by an earlier merge is taken automatically
		return err
	}
	if failure := l.checkpointAlone(); failure != nil {
		return fmt.Errorf("%w; and the snapshot that must follow: %w", err, failure)
	}
	return err
}

// lockGates locks both gates for writing.
func (m *merge) lockGates() (unlock func()) {
	first, second := m.into.gate(), m.from.gate()
	if m.into.id%gateCount > m.from.id%gateCount {
		first, second = second, first
	}
	first.Lock()
	if first == second {
		return first.Unlock
	}
	second.Lock()
	return func() {
		second.Unlock()
		first.Unlock()
	}
}

// begin pins the bits of both filters. It refuses filters that cannot be merged, before
// anything has changed.
func (m *merge) begin() error {
	unlock := m.lockGates()
	defer unlock()
	switch {
	case m.into.isDropped():
		return errDropped
	case m.from.isDropped():
		return fmt.Errorf("%w: the filter to merge was dropped meanwhile", ErrNotFound)
	case m.from.busy&leaked != 0:
		return errors.New("store: the filter to merge has keys of a merge that was not finished, and no snapshot has them: take a snapshot, then merge again")
	}
	if err := m.fits(); err != nil {
		return err
	}
	m.into.busy |= mergedInto
	m.from.busy |= mergedFrom
	m.ours, m.theirs = m.into.body.bits(), m.from.body.bits()
	m.local.pins.pin(m.ours)
	m.local.pins.pin(m.theirs)
	return nil
}

// fits returns an error if the filters differ in kind or shape.
func (m *merge) fits() error {
	switch ours := m.into.body.(type) {
	case chain:
		theirs, ok := m.from.body.(chain)
		if !ok {
			return fmt.Errorf("%w: one filter is RedisBloom's, the other our own", bloom.ErrUnlike)
		}
		layers, err := ours.FitsUnion(theirs.Filter)
		m.layers = layers
		return err
	case *paired:
		theirs, ok := m.from.body.(*paired)
		if !ok {
			return fmt.Errorf("%w: one filter is our own, the other RedisBloom's", bloom.ErrUnlike)
		}
		if err := errors.Join(ours.isLoading(), theirs.isLoading()); err != nil {
			return err
		}
		_, ok = ours.now().(*bloom.Shared)
		_, ok2 := theirs.now().(*bloom.Shared)
		if !ok || !ok2 {
			return fmt.Errorf("filters that grow or forget cannot be merged: %w", errUnsupported)
		}
	default:
		return fmt.Errorf("filters whose keys can be removed cannot be merged: %w", errUnsupported)
	}
	return nil
}

// copy copies the bits. It returns the estimated number of keys in each layer.
func (m *merge) copy() (estimates []float64, err error) {
	switch ours := m.into.body.(type) {
	case chain:
		set, err := ours.Union(m.from.body.(chain).Filter, m.layers, m.between)
		for i, layer := range ours.Layers() {
			if i < len(set) {
				m := float64(layer.Bits)
				keys, _ := rate.KeysThrown(float64(set[i])/m, 0, m, float64(layer.Probes))
				estimates = append(estimates, keys)
			}
		}
		return estimates, err
	case *paired:
		bits := m.ours.(*bloom.Shared)
		if err := bits.Union(m.theirs.(*bloom.Shared), m.between); err != nil {
			return nil, err
		}
		return []float64{bits.Report().Keys}, nil
	}
	return nil, nil
}

// between is called between pieces. Its error ends a merge that can no longer be
// completed.
func (m *merge) between() error {
	m.local.between()
	if m.into.isDropped() || m.from.isDropped() {
		return errDropped
	}
	return nil
}

// unionCount is the key count of the union of two filters: the estimate, but at least the
// larger of their counts and at most the sum.
func unionCount(estimate float64, n, m uint64) uint64 {
	return uint64(min(max(estimate, float64(max(n, m))), float64(n+m)))
}

// end logs the merge and sets the counts. It holds changing, so that a drop of the
// source comes after the merge in the log, or is known.
func (m *merge) end(estimates []float64, err error) error {
	l, v := m.local, m.into
	defer l.unpin(m.ours)
	defer l.unpin(m.theirs)
	l.changing.Lock()
	defer l.changing.Unlock()
	unlock := m.lockGates()
	defer unlock()
	v.busy &^= mergedInto
	m.from.busy &^= mergedFrom
	switch {
	case v.isDropped():
		return errDropped
	case m.from.isDropped():
		err = fmt.Errorf("%w: the filter to merge was dropped before all of it was: some of its keys are in the other", ErrNotFound)
	case errors.Is(err, bloom.ErrUnlike):
		return err // nothing was copied
	}
	if err != nil {
		if v.logsAdds() {
			v.busy |= leaked
			l.leaked = append(l.leaked, v)
		}
		return err
	}
	switch ours := v.body.(type) {
	case chain:
		items, theirs := []uint64{}, m.from.body.(chain).Layers()
		for i, layer := range ours.Layers() {
			n := layer.Items
			if i < len(estimates) {
				n = unionCount(estimates[i], n, theirs[i].Items)
			}
			items = append(items, n)
		}
		if v.logsAdds() {
			v.logMerge(m.from.id, items)
		}
		ours.setItems(items)
	case *paired:
		items := unionCount(estimates[0], ours.items.Load(), m.from.body.(*paired).items.Load())
		v.logMerge(m.from.id, []uint64{items})
		ours.setItems(items)
	}
	return nil
}

func (c chain) setItems(items []uint64) {
	for i, n := range items {
		c.SetItems(i, n)
	}
}

// setItems sets the count of keys. The gate is held for writing.
func (p *paired) setItems(items uint64) {
	bloom.Inside.SetAdded(p.now().(*bloom.Shared), items)
	p.items.Store(items)
	p.left.Store(0)
}

// leaky reports whether any filter has bits of a failed merge. checkpointing is held.
func (l *Local) leaky() bool { return len(l.leaked) > 0 }

// clearLeaks notes that a snapshot has the bits of all failed merges. checkpointing is
// held.
func (l *Local) clearLeaks() {
	for _, v := range l.leaked {
		gate := v.gate()
		gate.Lock()
		v.busy &^= leaked
		gate.Unlock()
	}
	l.leaked = nil
}

// replayMerge replays a merge from the log. Both filters may have grown layers since
// the merge began, which it did not copy. Layers that are unlike are skipped; the others
// only set more bits.
func (v *value) replayMerge(from *value, items []uint64) error {
	if v.kind() != from.kind() {
		return errors.New("the filters to merge are of different kinds")
	}
	switch ours := v.body.(type) {
	case chain:
		if len(items) != ours.Info().Filters {
			return fmt.Errorf("it has counts for %d layers, but the filter has %d", len(items), ours.Info().Filters)
		}
		theirs := from.body.(chain).Filter
		alike := ours.AlikeLayers(theirs)
		if alike == 0 {
			return fmt.Errorf("%w: the filters to merge have no layer in common", bloom.ErrUnlike)
		}
		if _, err := ours.Union(theirs, alike, nil); err != nil {
			return err
		}
		ours.setItems(items)
	case *paired:
		into, ok := ours.now().(*bloom.Shared)
		other, ok2 := from.body.(*paired).now().(*bloom.Shared)
		if !ok || !ok2 || len(items) != 1 {
			return errors.New("the filters to merge cannot be merged")
		}
		if err := into.Union(other, nil); err != nil {
			return err
		}
		ours.setItems(items[0])
	}
	return nil
}
