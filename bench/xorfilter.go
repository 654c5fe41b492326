package main

import (
	"github.com/FastFilter/xorfilter"
	"github.com/zeebo/xxh3"
)

// newXorFilter is a binary fuse filter, for reference: it is static, built once
// from all keys, and its rate is 1/256 whatever p is. It takes hashes; keys
// are hashed with XXH3 first.
func newXorFilter(n uint64, _ float64) *contender {
	pending := make([]uint64, 0, n)
	var f *xorfilter.BinaryFuse8
	c := &contender{}
	c.build = func() {
		f = must(xorfilter.PopulateBinaryFuse8(pending))
		c.bits = 8 * float64(len(f.Fingerprints))
		pending = nil
	}
	c.keys = loops[[]byte]{
		add: func(keys [][]byte) {
			for _, key := range keys {
				pending = append(pending, xxh3.Hash(key))
			}
		},
		count: func(keys [][]byte) (found int) {
			for _, key := range keys {
				if f.Contains(xxh3.Hash(key)) {
					found++
				}
			}
			return found
		},
	}
	c.hashes = loops[uint64]{
		add: func(hashes []uint64) { pending = append(pending, hashes...) },
		count: func(hashes []uint64) (found int) {
			for _, h := range hashes {
				if f.Contains(h) {
					found++
				}
			}
			return found
		},
	}
	return c
}
