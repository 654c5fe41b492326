package main

import "github.com/bloomery/bloom"

// An adder puts keys into a filter. add and finish return how many of the keys
// that are in by now were new.
type adder interface {
	add(keys [][]byte) (isNew int)
	finish() (isNew int, err error)
}

const (
	// bulkFrom is the size of filter, in bytes, from which on sorting the keys
	// by where they fall costs less than the cache misses it saves.
	bulkFrom = 256 << 20

	// bulkKeep is how many bytes of keys are kept back for that.
	bulkKeep = 512 << 20
)

func newAdder(f *bloom.Filter) (adder, error) {
	if f.Plan().Bytes() < bulkFrom {
		return directAdder{f}, nil
	}
	f.Prefault()
	bulk, err := f.Bulk(bulkKeep)
	if err != nil {
		return nil, err
	}
	feed, err := bulk.Feed()
	return &bulkAdder{bulk: bulk, feed: feed}, err
}

type directAdder struct{ filter *bloom.Filter }

func (a directAdder) add(keys [][]byte) int { return a.filter.AddMany(keys, nil) }
func (a directAdder) finish() (int, error)  { return 0, nil }

type bulkAdder struct {
	bulk  *bloom.Bulk
	feed  *bloom.Feed
	added uint64 // told so far
}

func (a *bulkAdder) add(keys [][]byte) int {
	a.feed.AddMany(keys)
	return a.tell()
}

func (a *bulkAdder) finish() (int, error) {
	err := a.feed.Close()
	return a.tell(), err
}

// tell returns what was added since it was asked last.
func (a *bulkAdder) tell() int {
	added := a.bulk.Added()
	isNew := int(added - a.added)
	a.added = added
	return isNew
}
