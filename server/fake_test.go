package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
)

// fakeStore is a store that tests control: it refuses memory, fails to commit, counts.
// Its filters are chains of RedisBloom's kind, and cuckoo filters.
type fakeStore struct {
	mu     sync.RWMutex
	values map[string]any // *fakeFilter, *fakeNest or []byte

	limit   uint64 // of a filter; zero: none; set before the store is served
	commits atomic.Int64
	failure atomic.Pointer[error] // of Commit
	calls   atomic.Int64          // of Add and Contains
	hold    atomic.Pointer[hold]  // for calls that take long
}

// A hold blocks calls that take long until it is released.
type hold struct {
	entered chan struct{} // yields for each call that has begun
	end     chan struct{}
}

// holdLong blocks calls that take long with large filters, until letGo is called or the
// test ends.
func (s *fakeStore) holdLong(t testing.TB) (h *hold, letGo func()) {
	h = &hold{make(chan struct{}, 100), make(chan struct{})}
	s.hold.Store(h)
	letGo = sync.OnceFunc(func() {
		s.hold.Store(nil)
		close(h.end)
	})
	t.Cleanup(letGo)
	return h, letGo
}

// long is called by methods that take long.
func (s *fakeStore) long() {
	if h := s.hold.Load(); h != nil {
		h.entered <- struct{}{}
		<-h.end
	}
}

type fakeFilter struct {
	store *fakeStore
	spec  store.Spec
	chain *redisbloom.Filter
}

func newFakeStore() *fakeStore { return &fakeStore{values: map[string]any{}} }

func (s *fakeStore) put(name string, value any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[name] != nil {
		return store.ErrExists
	}
	s.values[name] = value
	return nil
}

func (s *fakeStore) Create(_ context.Context, name string, spec store.Spec) (store.Filter, error) {
	if need := spec.Capacity; s.limit > 0 && need > s.limit { // a byte a key
		return nil, fmt.Errorf("%w: %d bytes needed, %d allowed", store.ErrMemory, need, s.limit)
	}
	chain, err := redisbloom.New(redisbloom.Config{Keys: spec.Capacity, Rate: spec.Rate, Growth: spec.Growth, NonScaling: spec.Growth == 0})
	if err != nil {
		return nil, err
	}
	f := &fakeFilter{s, spec, chain}
	return f, s.put(name, f)
}

func (s *fakeStore) Open(name []byte) (store.Filter, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch value := s.values[string(name)].(type) {
	case store.Filter:
		return value, nil
	case []byte:
		return nil, store.ErrWrongKind
	}
	return nil, store.ErrNotFound
}

func (s *fakeStore) Load(_ context.Context, name string, header []byte) (store.Filter, error) {
	s.long()
	chain, err := redisbloom.LoadHeader(header, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrChunk, err)
	}
	f := &fakeFilter{s, store.Spec{Kind: store.RedisBloom, Growth: chain.Info().Expansion}, chain}
	return f, s.put(name, f)
}

func (s *fakeStore) Set(_ context.Context, name string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[name] = slices.Clone(value)
	return nil
}

func (s *fakeStore) Get(name []byte) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch value := s.values[string(name)].(type) {
	case store.Filter:
		return nil, store.ErrWrongKind
	case []byte:
		return value, nil
	}
	return nil, store.ErrNotFound
}

func (s *fakeStore) Kind(name []byte) (store.Kind, time.Time, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch s.values[string(name)].(type) {
	case *fakeFilter:
		return store.RedisBloom, time.Time{}, nil
	case *fakeNest:
		return store.Cuckoo, time.Time{}, nil
	case []byte:
		return store.String, time.Time{}, nil
	}
	return store.None, time.Time{}, nil
}

func (s *fakeStore) Rename(_ context.Context, from, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[from] == nil {
		return store.ErrNotFound
	}
	s.values[to] = s.values[from]
	delete(s.values, from)
	return nil
}

func (s *fakeStore) Swap(_ context.Context, a, b string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[a] == nil || s.values[b] == nil {
		return store.ErrNotFound
	}
	s.values[a], s.values[b] = s.values[b], s.values[a]
	return nil
}

func (s *fakeStore) Expire(context.Context, string, time.Time) error { return errors.ErrUnsupported }

func (s *fakeStore) Drop(_ context.Context, names ...string) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.values[name] != nil {
			n++
		}
		delete(s.values, name)
	}
	return n, nil
}

func (s *fakeStore) Clear(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.values)
	return nil
}

func (s *fakeStore) List(uint64, int) (names []string, next uint64, err error) {
	s.long()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name := range s.values {
		names = append(names, name)
	}
	return names, 0, nil
}

func (s *fakeStore) Len() (int, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.values), nil
}

func (s *fakeStore) Usage() (bytes, limit uint64) { return 0, s.limit }

func (s *fakeStore) Commit(context.Context) error {
	s.commits.Add(1)
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *fakeStore) OnEnd(func(name string)) {}
func (s *fakeStore) Close() error            { return nil }

func (f *fakeFilter) Add(_ context.Context, keys [][]byte, isNew []bool) (int, error) {
	f.store.calls.Add(1)
	var room [maxRun]redisbloom.Pair
	for done := 0; done < len(keys); {
		pairs := room[:min(len(room), len(keys)-done)]
		redisbloom.HashMany(keys[done:done+len(pairs)], pairs)
		for len(pairs) > 0 {
			n, _, err := f.chain.AddPairs(pairs, isNew[done:done+len(pairs)])
			done += n
			pairs = pairs[n:]
			if errors.Is(err, redisbloom.ErrFull) {
				return done, store.ErrFull
			} else if err != nil {
				return done, err
			}
		}
	}
	return len(keys), nil
}

func (f *fakeFilter) Contains(_ context.Context, keys [][]byte, found []bool) error {
	f.store.calls.Add(1)
	f.chain.ContainsMany(keys, found)
	return nil
}

func (f *fakeFilter) Info() store.Info {
	info := f.chain.Info()
	out := store.Info{Spec: f.spec, Bytes: info.Size, Items: info.Items, Room: info.Capacity}
	for _, layer := range f.chain.Layers() {
		out.Layers = append(out.Layers, store.Layer(layer))
	}
	return out
}

func (f *fakeFilter) Report() bloom.Report { return f.chain.Report() }

func (f *fakeFilter) Dump(iterator int64) (int64, []byte, error) {
	f.store.long()
	next, chunk := f.chain.ScanDump(iterator)
	return next, chunk, nil
}

func (f *fakeFilter) Load(_ context.Context, iterator int64, chunk []byte) error {
	f.store.long()
	if err := f.chain.LoadChunk(iterator, chunk); err != nil {
		return fmt.Errorf("%w: %w", store.ErrChunk, err)
	}
	return nil
}

func (f *fakeFilter) Merge(context.Context, store.Filter) error {
	f.store.long()
	return errors.ErrUnsupported
}

func (f *fakeFilter) Fold(context.Context, uint64) error {
	f.store.long()
	return errors.ErrUnsupported
}

func nameCount(s store.Store) int {
	n, _ := s.Len()
	return n
}
