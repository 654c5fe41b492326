package main

import (
	"math"

	parquet "github.com/parquet-go/parquet-go/bloom"
)

// newParquet is Parquet's split-block filter, 32 bytes and eight bits per key, in
// the library's own AVX2 assembly. Keys are hashed with XXH64, as in Parquet files.
func newParquet(n uint64, p float64) *contender {
	blocks := int(math.Ceil(float64(n) * splitBlockBits(p) / parquetBlockBits))
	f := make(parquet.SplitBlockFilter, blocks)
	var xxh64 parquet.XXH64
	return &contender{
		bits: parquetBlockBits * float64(blocks),
		keys: loops[[]byte]{
			add: func(keys [][]byte) {
				for _, key := range keys {
					f.Insert(xxh64.Sum64(key))
				}
			},
			count: func(keys [][]byte) (found int) {
				for _, key := range keys {
					if f.Check(xxh64.Sum64(key)) {
						found++
					}
				}
				return found
			},
		},
		hashes: loops[uint64]{
			add: func(hashes []uint64) {
				for _, h := range hashes {
					f.Insert(h)
				}
			},
			count: func(hashes []uint64) (found int) {
				for _, h := range hashes {
					if f.Check(h) {
						found++
					}
				}
				return found
			},
		},
		hashBatch: loops[uint64]{add: f.InsertBulk}, // there is no bulk check
	}
}

const parquetBlockBits = 8 * parquet.BlockSize

// splitBlockBits returns the fewest bits per key with a rate of at most p. The
// library's own NumSplitBlocksOf expects them from its caller, as a whole number.
func splitBlockBits(p float64) float64 {
	few, many := 1.0, 1000.0
	for range 60 {
		middle := (few + many) / 2
		if splitBlockRate(middle) > p {
			few = middle
		} else {
			many = middle
		}
	}
	return many
}

// splitBlockRate is the rate at the given bits per key: the number j of keys in a
// block follows a Poisson distribution, and each of the eight words of 32 bits has
// the bit in question with probability 1 - (31/32)^j.
func splitBlockRate(bitsPerKey float64) (rate float64) {
	mean := parquetBlockBits / bitsPerKey
	for j := range int(mean+12*math.Sqrt(mean)) + 20 {
		logFactorial, _ := math.Lgamma(float64(j + 1))
		share := math.Exp(float64(j)*math.Log(mean) - mean - logFactorial)
		rate += share * math.Pow(1-math.Pow(31.0/32, float64(j)), 8)
	}
	return rate
}
