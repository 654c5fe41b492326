package main

import boom "github.com/tylertreat/BoomFilters"

// newBoomFilters is a textbook filter that hashes the keys itself (FNV-1, 64 bits).
func newBoomFilters(n uint64, p float64) *contender {
	f := boom.NewBloomFilter(uint(n), p)
	return &contender{
		bits: float64(f.Capacity()),
		keys: loops[[]byte]{
			add: func(keys [][]byte) {
				for _, key := range keys {
					f.Add(key)
				}
			},
			count: func(keys [][]byte) (found int) {
				for _, key := range keys {
					if f.Test(key) {
						found++
					}
				}
				return found
			},
		},
	}
}
