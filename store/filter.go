package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
)

// Local hands out *value itself as Filter: a store may have a million small filters,
// and one more pointer for each would matter.

// scratch is space for the hashes of a chunk of keys.
type scratch struct {
	pairs  [chunkKeys]redisbloom.Pair
	hashes [chunkKeys]uint64
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Add adds keys in order.
func (v *value) Add(ctx context.Context, keys [][]byte, isNew []bool) (done int, err error) {
	return v.inChunks(ctx, keys, isNew, func(keys [][]byte, isNew []bool) (int, error) { return v.body.add(v, keys, isNew) })
}

// inChunks calls do with some of the keys after the others, and retries if there was no
// memory.
func (v *value) inChunks(ctx context.Context, keys [][]byte, answers []bool, do func(keys [][]byte, answers []bool) (int, error)) (done int, err error) {
	mustFit(len(answers), len(keys))
	for done < len(keys) && err == nil {
		if done > 0 && ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		end := min(done+chunkKeys, len(keys))
		var n int
		n, err = do(keys[done:end], answers[done:end])
		if done += n; errors.Is(err, ErrMemory) {
			err = v.local.patiently(func() error {
				n, err := do(keys[done:end], answers[done:end])
				done += n
				return err
			})
		}
	}
	return done, err
}

// mustFit panics unless there is room for as many answers as keys.
func mustFit(answers, keys int) {
	if answers != keys {
		panic(fmt.Sprintf("store: room for %d answers to %d keys: give as many", answers, keys))
	}
}

// Remove removes keys in order; see [Remover].
func (v *value) Remove(ctx context.Context, keys [][]byte, removed []bool) (int, error) {
	b, ok := v.body.(remover)
	if !ok || !b.removes() {
		return 0, errNoRemovals
	}
	return v.inChunks(ctx, keys, removed, func(keys [][]byte, removed []bool) (int, error) { return b.remove(v, keys, removed) })
}

// Count counts keys; see [Remover].
func (v *value) Count(ctx context.Context, keys [][]byte, counts []int) error {
	b, ok := v.body.(remover)
	if !ok || !b.removes() {
		return errNoRemovals
	}
	mustFit(len(counts), len(keys))
	gate := v.gate()
	for len(keys) > 0 {
		n := min(len(keys), chunkKeys)
		gate.RLock()
		if v.isDropped() {
			gate.RUnlock()
			return errDropped
		}
		b.count(keys[:n], counts[:n])
		gate.RUnlock()
		keys, counts = keys[n:], counts[n:]
	}
	return nil
}

var errNoRemovals = fmt.Errorf("store: keys of this filter cannot be removed or counted: %w", errUnsupported)

// Contains looks keys up.
func (v *value) Contains(ctx context.Context, keys [][]byte, found []bool) error {
	mustFit(len(found), len(keys))
	gate := v.gate()
	for len(keys) > 0 {
		n := min(len(keys), chunkKeys)
		gate.RLock()
		if v.isDropped() {
			gate.RUnlock()
			return errDropped
		}
		v.body.contains(keys[:n], found[:n])
		gate.RUnlock()
		keys, found = keys[n:], found[n:]
	}
	return nil
}

// Kind returns the filter's kind, also after its name was dropped.
func (v *value) Kind() Kind { return v.kind() }

// Info describes the filter. It is cheap.
func (v *value) Info() (i Info) {
	gate := v.gate()
	gate.RLock()
	defer gate.RUnlock()
	if v.isDropped() {
		return Info{}
	}
	i = v.body.info()
	i.Expires, i.Level = v.expiry(), v.level
	return i
}

// Report reads the bits, or a sample of them.
func (v *value) Report() bloom.Report {
	bits, err := v.hold()
	if err != nil {
		return bloom.Report{}
	}
	defer v.local.unpin(bits)
	return v.body.report(v, bits)
}

// hold pins the bits and returns them.
func (v *value) hold() (io.Closer, error) {
	gate := v.gate()
	gate.RLock()
	defer gate.RUnlock()
	if v.isDropped() {
		return nil, errDropped
	}
	bits := v.body.bits()
	v.local.pins.pin(bits)
	return bits, nil
}

// Dump returns a chunk of the filter.
func (v *value) Dump(iterator int64) (next int64, chunk []byte, err error) {
	return v.body.dump(v, iterator)
}

// Load loads a chunk of a dump.
func (v *value) Load(ctx context.Context, iterator int64, chunk []byte) error {
	return v.body.load(v, iterator, chunk)
}

// Fold shrinks the filter by a factor. It waits for a snapshot, merge or other fold in
// progress, and they wait for it. Adds and lookups do not.
func (v *value) Fold(ctx context.Context, by uint64) error {
	l := v.local
	l.checkpointing.Lock()
	defer l.checkpointing.Unlock()
	return v.body.fold(v, by)
}
