package main

import (
	"github.com/greatroar/blobloom"
	"github.com/zeebo/xxh3"
)

// newBlobloom is a blocked filter, one cache line per key. It takes hashes; keys are
// hashed with XXH3 first.
func newBlobloom(n uint64, p float64) *contender {
	f := blobloom.NewOptimized(blobloom.Config{Capacity: n, FPRate: p})
	return &contender{
		bits: float64(f.NumBits()),
		keys: loops[[]byte]{
			add: func(keys [][]byte) {
				for _, key := range keys {
					f.Add(xxh3.Hash(key))
				}
			},
			count: func(keys [][]byte) (found int) {
				for _, key := range keys {
					if f.Has(xxh3.Hash(key)) {
						found++
					}
				}
				return found
			},
		},
		hashes: loops[uint64]{
			add: func(hashes []uint64) {
				for _, h := range hashes {
					f.Add(h)
				}
			},
			count: func(hashes []uint64) (found int) {
				for _, h := range hashes {
					if f.Has(h) {
						found++
					}
				}
				return found
			},
		},
	}
}
