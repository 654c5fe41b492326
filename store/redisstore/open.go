package redisstore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/store"
	"github.com/redis/rueidis"
)

// Filter is a filter with a name, for a program that uses it without a gateway. When the
// name is given to another filter, as by BF.SWAP, it is that filter from then on. All
// methods are safe for concurrent use, by any number of processes: of those that add the
// same key, at most one is told that it is new.
//
// Errors wrap [store.ErrNotFound] if the name has no filter any more, [store.ErrFull],
// [ErrUnreachable] or [ErrDamaged]. After an error the answers are not valid.
type Filter struct {
	store *Store
	name  string
	now   atomic.Pointer[filter]
}

// Open returns the filter with that name, under [DefaultPrefix]. The caller closes the
// client when done. Errors are those of [New] and of [Filter].
func Open(ctx context.Context, client rueidis.Client, name string) (*Filter, error) {
	s, err := New(ctx, client, Config{})
	if err != nil {
		return nil, err
	}
	return s.Filter(ctx, name)
}

// Create makes a filter for n keys at false-positive rate p, under [DefaultPrefix]. The
// error wraps [store.ErrExists], [store.ErrMemory] or a sentinel of package bloom, or is
// one of [New].
func Create(ctx context.Context, client rueidis.Client, name string, n uint64, p float64) (*Filter, error) {
	s, err := New(ctx, client, Config{})
	if err != nil {
		return nil, err
	}
	if _, err := s.Create(ctx, name, store.Spec{Kind: store.Paired, Capacity: n, Rate: p}); err != nil {
		return nil, err
	}
	return s.Filter(ctx, name)
}

// Filter returns the filter with that name.
func (s *Store) Filter(ctx context.Context, name string) (*Filter, error) {
	f := &Filter{store: s, name: name}
	return f, f.find(ctx)
}

func (f *Filter) find(ctx context.Context) error {
	now, err := f.store.find(ctx, f.name)
	if err == nil {
		f.now.Store(now)
	}
	return err
}

// do calls op with the filter that has the name.
func (f *Filter) do(ctx context.Context, op func(*filter) error) error {
	err := op(f.now.Load())
	if errors.Is(err, store.ErrNotFound) { // or the name has another filter by now
		if err = f.find(ctx); err == nil {
			err = op(f.now.Load())
		}
	}
	return err
}

// Add adds key and reports whether it is certainly new.
func (f *Filter) Add(ctx context.Context, key []byte) (isNew bool, err error) {
	var answer [1]bool
	_, err = f.AddMany(ctx, [][]byte{key}, answer[:])
	return answer[0], err
}

// Contains reports whether key is probably in the filter. False is certain.
func (f *Filter) Contains(ctx context.Context, key []byte) (found bool, err error) {
	var answer [1]bool
	_, err = f.ContainsMany(ctx, [][]byte{key}, answer[:])
	return answer[0], err
}

// AddMany adds keys, with one round trip per node, and returns how many were new. isNew
// is nil or as long as keys.
func (f *Filter) AddMany(ctx context.Context, keys [][]byte, isNew []bool) (added int, err error) {
	if isNew == nil {
		isNew = make([]bool, len(keys))
	}
	err = f.do(ctx, func(now *filter) error {
		_, err := now.Add(ctx, keys, isNew[:len(keys)])
		return err
	})
	return countTrue(isNew, err), err
}

// ContainsMany looks keys up, with one round trip per node, and returns how many were
// found. found is nil or as long as keys.
func (f *Filter) ContainsMany(ctx context.Context, keys [][]byte, found []bool) (n int, err error) {
	if found == nil {
		found = make([]bool, len(keys))
	}
	err = f.do(ctx, func(now *filter) error { return now.Contains(ctx, keys, found[:len(keys)]) })
	return countTrue(found, err), err
}

func countTrue(answers []bool, err error) (n int) {
	for _, yes := range answers {
		if yes && err == nil {
			n++
		}
	}
	return n
}

// Report describes the filter by some of its bits.
func (f *Filter) Report(ctx context.Context) (r bloom.Report, err error) {
	err = f.do(ctx, func(now *filter) error {
		r, err = now.report(ctx)
		return err
	})
	return r, err
}
