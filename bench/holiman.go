package main

import (
	holiman "github.com/holiman/bloomfilter/v2"
	"github.com/zeebo/xxh3"
)

// newHoliman is the textbook filter of go-ethereum, with a lock around each call.
// It takes hashes; keys are hashed with XXH3 first.
func newHoliman(n uint64, p float64) *contender {
	f := must(holiman.NewOptimal(n, p))
	return &contender{
		bits: float64(f.M()),
		keys: loops[[]byte]{
			add: func(keys [][]byte) {
				for _, key := range keys {
					f.AddHash(xxh3.Hash(key))
				}
			},
			count: func(keys [][]byte) (found int) {
				for _, key := range keys {
					if f.ContainsHash(xxh3.Hash(key)) {
						found++
					}
				}
				return found
			},
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
	}
}
