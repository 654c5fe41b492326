package main

import bitsandblooms "github.com/bits-and-blooms/bloom/v3"

// newBitsAndBlooms is the textbook filter that most Go programs use. It hashes the
// keys itself (MurmurHash3, 256 bits).
func newBitsAndBlooms(n uint64, p float64) *contender {
	f := bitsandblooms.NewWithEstimates(uint(n), p)
	return &contender{
		bits: float64(f.Cap()),
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
