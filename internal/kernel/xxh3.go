package kernel

// XXH3-64 of many keys in one call. A call of a hash function for each key costs as
// much as hashing 20 bytes. This file uses unsafe to give the assembly the slices and
// strings; the twin is xxh3_generic.go.

import "unsafe"

// MaxXXH3 is the length of the longest key that XXH3 hashes here: longer ones have an
// algorithm of their own, in which a call no longer matters.
const MaxXXH3 = 240

// XXH3Bytes sets hashes[i] to XXH3(keys[i], seed) and returns how many keys are longer
// than MaxXXH3: their hashes are left as they are. hashes is as long as keys. Assembly
// cannot be preempted, so the caller passes some thousands at a time.
func XXH3Bytes(hashes []uint64, keys [][]byte, seed uint64) (longer int) {
	if useBMI2 && len(keys) > 0 {
		return xxh3Batch(hashes[:len(keys)], unsafe.Pointer(unsafe.SliceData(keys)), unsafe.Sizeof(keys[0]), seed)
	}
	for i, key := range keys {
		switch {
		case len(key) > MaxXXH3:
			longer++
		case len(key) >= 9 && len(key) <= 16:
			hashes[i] = XXH3Of9to16(key, seed)
		default:
			hashes[i] = XXH3(key, seed)
		}
	}
	return longer
}

// XXH3Strings is XXH3Bytes for strings.
func XXH3Strings(hashes []uint64, keys []string, seed uint64) (longer int) {
	if useBMI2 && len(keys) > 0 {
		return xxh3Batch(hashes[:len(keys)], unsafe.Pointer(unsafe.SliceData(keys)), unsafe.Sizeof(keys[0]), seed)
	}
	for i, key := range keys {
		switch {
		case len(key) > MaxXXH3:
			longer++
		case len(key) >= 9 && len(key) <= 16:
			hashes[i] = XXH3Of9to16(unsafe.Slice(unsafe.StringData(key), len(key)), seed)
		default:
			hashes[i] = XXH3(unsafe.Slice(unsafe.StringData(key), len(key)), seed)
		}
	}
	return longer
}
