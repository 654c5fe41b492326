package main

import "github.com/bloomery/bloom"

func newFilter(n uint64, p float64) *contender {
	f := must(bloom.New(n, p))
	answers := make([]bool, maxKeys)
	return &contender{
		bits:  float64(f.Plan().Bits),
		close: func() { f.Close() },
		keys:  newFilterCalls(f),
		keyBatch: loops[[]byte]{
			add:   func(keys [][]byte) { f.AddMany(keys, answers[:len(keys)]) },
			count: func(keys [][]byte) int { return f.ContainsMany(keys, answers[:len(keys)]) },
		},
		hashes: loops[uint64]{
			add: func(hashes []uint64) {
				for _, h := range hashes {
					f.AddHash(h)
				}
			},
			count: func(hashes []uint64) (found int) {
				for _, h := range hashes {
					if f.ContainsHash(h) {
						found++
					}
				}
				return found
			},
		},
		hashBatch: loops[uint64]{
			add:   func(hashes []uint64) { f.AddHashes(hashes, answers[:len(hashes)]) },
			count: func(hashes []uint64) int { return f.ContainsHashes(hashes, answers[:len(hashes)]) },
		},
	}
}

// newFilterCalls calls f for one key at a time.
func newFilterCalls(f *bloom.Filter) loops[[]byte] {
	return loops[[]byte]{
		add: func(keys [][]byte) {
			for _, key := range keys {
				f.Add(key)
			}
		},
		count: func(keys [][]byte) (found int) {
			for _, key := range keys {
				if f.Contains(key) {
					found++
				}
			}
			return found
		},
	}
}
