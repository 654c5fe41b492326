package main

import "github.com/bloomery/bloom"

func newShared(n uint64, p float64) *contender {
	f := must(bloom.NewShared(n, p))
	answers := make([]bool, maxKeys)
	return &contender{
		bits:  float64(f.Plan().Bits),
		close: func() { f.Close() },
		keys: loops[[]byte]{
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
		},
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
