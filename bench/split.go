package main

import "github.com/bloomery/bloom"

// newSplitBlock adds batches without asking which keys were new, as parquet-go's bulk insert
// does.
func newSplitBlock(n uint64, p float64) *contender {
	return splitBlockContender(n, p, nil)
}

// newAnsweringSplitBlock asks.
func newAnsweringSplitBlock(n uint64, p float64) *contender {
	return splitBlockContender(n, p, make([]bool, maxKeys))
}

func splitBlockContender(n uint64, p float64, isNew []bool) *contender {
	f := must(bloom.NewSplitBlock(n, p))
	answers := make([]bool, maxKeys)
	asked := func(n int) []bool { return isNew[:min(n, len(isNew))] } // nil stays nil
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
			add:   func(keys [][]byte) { f.AddMany(keys, asked(len(keys))) },
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
			add:   func(hashes []uint64) { f.AddHashes(hashes, asked(len(hashes))) },
			count: func(hashes []uint64) int { return f.ContainsHashes(hashes, answers[:len(hashes)]) },
		},
	}
}
