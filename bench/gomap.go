package main

// Go's maps are what a filter replaces: exact, and many times as large. They are
// made with room for n keys, so that growth is not measured.

func newIntegerMap(n uint64, _ float64) *contender {
	m := make(map[uint64]struct{}, n)
	return &contender{
		hashes: loops[uint64]{
			add: func(hashes []uint64) {
				for _, h := range hashes {
					m[h] = struct{}{}
				}
			},
			count: func(hashes []uint64) (found int) {
				for _, h := range hashes {
					if _, ok := m[h]; ok {
						found++
					}
				}
				return found
			},
		},
	}
}

// newStringMap copies the keys, as a program must if it reads them from a buffer.
func newStringMap(n uint64, _ float64) *contender {
	m := make(map[string]struct{}, n)
	return &contender{
		keys: loops[[]byte]{
			add: func(keys [][]byte) {
				for _, key := range keys {
					m[string(key)] = struct{}{}
				}
			},
			count: func(keys [][]byte) (found int) {
				for _, key := range keys {
					if _, ok := m[string(key)]; ok {
						found++
					}
				}
				return found
			},
		},
	}
}
