package kernel

// Split is an array of 256-bit blocks as Apache Parquet defines them (the split
// block Bloom filter, SBBF). A key sets one bit in each of the eight 32-bit
// lanes of one block:
//
//	block  = hi32(h) * Blocks >> 32
//	bit i  = lo32(h) * salt[i] >> 27        of lane i
//
// Words has Blocks*4 elements; lane 2i is the low half of word i.
type Split struct {
	Words  []uint64
	Blocks uint64
	Added  uint64 // how many adds were new; here, so that Add is one call

	// AddKey and ContainsKey hash keys with XXH64 if Parquets is set, and with Hash if not.
	Parquets bool
	Hash     func(key []byte) uint64
}

const (
	SplitBlockBytes = 32
	SplitBlockBits  = 256
	SplitBlockWords = 4

	// MaxSplitBlocks is half of what a 32-bit block number can address, 64 GiB, because
	// other readers treat the number as signed.
	MaxSplitBlocks = 1<<31 - 1
)

// splitSalts are Parquet's: eight odd constants.
var splitSalts = [8]uint32{
	0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
	0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
}

// ContainsBatch sets found[i] to Contains(hashes[i]) and returns how many are
// true. found is as long as hashes.
func (f *Split) ContainsBatch(hashes []uint64, found []bool) int {
	if len(hashes) == 0 {
		return 0
	}
	if useAVX2 {
		if first := &found[:len(hashes)][0]; len(f.Words) <= nearWords {
			splitContainsNearAVX2(f, hashes, first)
		} else {
			splitContainsBatchAVX2(f, hashes, first)
		}
		return countTrue(found)
	}
	n := 0
	for i, h := range hashes {
		found[i] = f.containsGeneric(h)
		if found[i] {
			n++
		}
	}
	return n
}

// AddBatch sets isNew[i] to Add(hashes[i]), as if called one by one, and returns how
// many are true. isNew is as long as hashes.
func (f *Split) AddBatch(hashes []uint64, isNew []bool) int {
	if len(hashes) == 0 {
		return 0
	}
	if useAVX2 {
		if first := &isNew[:len(hashes)][0]; len(f.Words) <= nearWords {
			splitAddNearAVX2(f, hashes, first)
		} else {
			splitAddBatchAVX2(f, hashes, first)
		}
		n := countTrue(isNew)
		f.Added += uint64(n)
		return n
	}
	n := 0
	for i, h := range hashes {
		isNew[i] = f.addGeneric(h)
		if isNew[i] {
			n++
		}
	}
	return n
}

// AddAll is AddBatch for a caller who wants no answers but their number.
func (f *Split) AddAll(hashes []uint64) (n int) {
	switch {
	case len(hashes) == 0:
		return 0
	case useAVX2 && len(f.Words) <= nearWords:
		n = splitAddAllNearAVX2(f, hashes)
	case useAVX2:
		n = splitAddAllAVX2(f, hashes)
	default:
		for _, h := range hashes {
			if f.addGeneric(h) {
				n++
			}
		}
		return n
	}
	f.Added += uint64(n)
	return n
}

// hash returns the hash of a key for AddKey and ContainsKey.
func (f *Split) hash(key []byte) uint64 {
	if f.Parquets {
		return XXH64(key)
	}
	return f.Hash(key)
}
