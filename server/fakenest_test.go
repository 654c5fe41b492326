package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
)

// A fakeNest is a cuckoo filter of a fakeStore.
type fakeNest struct {
	store *fakeStore
	mu    sync.Mutex
	nest  redisbloom.Cuckoo
}

func (s *fakeStore) LoadCuckoo(_ context.Context, name string, header []byte) (store.Filter, error) {
	c, err := redisbloom.LoadCuckooHeader(header, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrChunk, err)
	}
	f := &fakeNest{store: s, nest: c}
	return f, s.put(name, f)
}

func (f *fakeNest) Kind() store.Kind { return store.Cuckoo }

// use counts a call, and locks.
func (f *fakeNest) use() {
	f.store.calls.Add(1)
	f.mu.Lock()
}

func (f *fakeNest) Insert(_ context.Context, keys [][]byte, unique bool, inserted []bool) (int, error) {
	f.use()
	defer f.mu.Unlock()
	for i, key := range keys {
		var err error
		if unique {
			inserted[i], err = f.nest.InsertUnique(key)
		} else {
			err = f.nest.Insert(key)
			inserted[i] = err == nil
		}
		switch {
		case errors.Is(err, bloom.ErrLayers), errors.Is(err, bloom.ErrFull):
			return i, fmt.Errorf("%w: %w", store.ErrFull, err)
		case err != nil:
			return i, err
		}
	}
	return len(keys), nil
}

func (f *fakeNest) Remove(_ context.Context, keys [][]byte, removed []bool) (int, error) {
	f.use()
	defer f.mu.Unlock()
	for i, key := range keys {
		removed[i] = f.nest.Remove(key)
	}
	return len(keys), nil
}

func (f *fakeNest) Contains(_ context.Context, keys [][]byte, found []bool) error {
	f.use()
	defer f.mu.Unlock()
	f.nest.ContainsMany(keys, found)
	return nil
}

func (f *fakeNest) Count(_ context.Context, keys [][]byte, counts []int) error {
	f.use()
	defer f.mu.Unlock()
	for i, key := range keys {
		counts[i] = f.nest.Count(key)
	}
	return nil
}

func (f *fakeNest) Compact(context.Context) error {
	f.use()
	defer f.mu.Unlock()
	f.nest.Compact()
	return nil
}

func (f *fakeNest) Cuckoo() (redisbloom.CuckooInfo, error) {
	f.use()
	defer f.mu.Unlock()
	return f.nest.Info(), nil
}

func (f *fakeNest) Info() store.Info {
	f.use()
	defer f.mu.Unlock()
	info := f.nest.Info()
	return store.Info{Spec: store.Spec{Kind: store.Cuckoo, Public: true}, Bytes: info.Size, Items: info.Items, Removed: info.Removed}
}

func (f *fakeNest) Report() bloom.Report {
	f.use()
	defer f.mu.Unlock()
	return f.nest.Report()
}

func (f *fakeNest) Dump(iterator int64) (int64, []byte, error) {
	f.use()
	defer f.mu.Unlock()
	next, chunk := f.nest.ScanDump(iterator)
	return next, chunk, nil
}

func (f *fakeNest) Load(_ context.Context, iterator int64, chunk []byte) error {
	f.use()
	defer f.mu.Unlock()
	if err := f.nest.LoadChunk(iterator, chunk); err != nil {
		return fmt.Errorf("%w: %w", store.ErrChunk, err)
	}
	return nil
}

func (f *fakeNest) Add(context.Context, [][]byte, []bool) (int, error) {
	return 0, errors.ErrUnsupported
}
func (f *fakeNest) Merge(context.Context, store.Filter) error { return errors.ErrUnsupported }
func (f *fakeNest) Fold(context.Context, uint64) error        { return errors.ErrUnsupported }
