package store

import (
	"context"
	"fmt"
	"sync"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
)

// A value is the Filter that Local hands out: small ones are a million to the
// store, and one more pointer for each would be seen.

// scratch is room for the hashes of a chunk of keys.
type scratch struct {
	pairs  [chunkKeys]interop.Pair
	hashes [chunkKeys]uint64
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Add adds keys one after the other.
func (v *value) Add(ctx context.Context, keys [][]byte, isNew []bool) (done int, err error) {
	if len(isNew) != len(keys) {
		panic(fmt.Sprintf("store: room for %d answers to %d keys: give as many", len(isNew), len(keys)))
	}
	for done < len(keys) && err == nil {
		if done > 0 && ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		end := min(done+chunkKeys, len(keys))
		var n int
		n, err = v.body.add(v, keys[done:end], isNew[done:end])
		done += n
	}
	if v.local.config.flaw == flawUnchangedEarly {
		v.local.unchanged.Store(countTrue(isNew) == 0)
	}
	return done, err
}

// Contains looks keys up.
func (v *value) Contains(ctx context.Context, keys [][]byte, found []bool) error {
	if len(found) != len(keys) {
		panic(fmt.Sprintf("store: room for %d answers to %d keys: give as many", len(found), len(keys)))
	}
	v.body.contains(keys, found)
	return nil
}

// Info costs little.
func (v *value) Info() Info {
	i := v.body.info()
	i.Expires, i.Level = v.expiry(), v.level
	return i
}

// Report reads the bits, or a sample.
func (v *value) Report() bloom.Report { return v.body.report() }

// Dump returns a chunk of the filter.
func (v *value) Dump(iterator int64) (next int64, chunk []byte, err error) {
	return v.body.dump(v, iterator)
}

// Load takes a chunk.
func (v *value) Load(ctx context.Context, iterator int64, chunk []byte) error {
	return v.body.load(v, iterator, chunk)
}

// Merge adds all that another filter has. Both stand still meanwhile, and no
// snapshot is taken: the log says of a merge only whose it was, and that filter
// must be the same when the log is read again.
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
	l.changing.Lock()
	defer l.changing.Unlock()
	if other.dropped.Load() {
		return fmt.Errorf("%w: the filter to merge was dropped meanwhile", ErrNotFound)
	}
	first, second := v.gate(), other.gate()
	if v.id%gateCount > other.id%gateCount {
		first, second = second, first
	}
	first.Lock()
	defer first.Unlock()
	if first != second {
		second.Lock()
		defer second.Unlock()
	}
	return v.body.merge(v, other)
}

// Fold makes the filter smaller by a factor.
func (v *value) Fold(ctx context.Context, by uint64) error {
	v.gate().Lock()
	defer v.gate().Unlock()
	return v.body.fold(v, by)
}
