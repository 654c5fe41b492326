package kernel

// SipHash-2-4 of many keys. One round needs the result of the one before, so a single
// key leaves most of the processor idle. In AVX2 eight keys that consist of as many words
// are hashed side by side; keys of mixed lengths are grouped for that. This file uses
// unsafe to read slices and strings as the assembly does; the twin is siphash_generic.go.

import "unsafe"

const (
	sipLanes   = 8
	sipWindow  = 256 // keys among which groups are formed: few enough that their bytes stay near
	sipClasses = 32  // class c has the keys of 8c to 8c+7 bytes
)

// SipHashBytes sets hashes[i] to SipHash(keys[i], k0, k1). hashes is as long as keys.
func SipHashBytes(hashes []uint64, keys [][]byte, k0, k1 uint64) {
	hashes = hashes[:len(keys)]
	if !useAVX2 {
		for i, key := range keys {
			hashes[i] = SipHash(key, k0, k1)
		}
		return
	}
	sipHashes(hashes, unsafe.Pointer(unsafe.SliceData(keys)), unsafe.Sizeof([]byte(nil)), k0, k1)
}

// SipHashStrings is SipHashBytes for strings.
func SipHashStrings(hashes []uint64, keys []string, k0, k1 uint64) {
	hashes = hashes[:len(keys)]
	if !useAVX2 {
		for i, key := range keys {
			hashes[i] = SipHash(unsafe.Slice(unsafe.StringData(key), len(key)), k0, k1)
		}
		return
	}
	sipHashes(hashes, unsafe.Pointer(unsafe.SliceData(keys)), unsafe.Sizeof(""), k0, k1)
}

// text is how a slice and a string begin in memory.
type text struct {
	bytes *byte
	size  int
}

// sipHashes hashes len(hashes) keys, whose slices or strings are step bytes apart from
// first on. It fetches the keys of a window while it hashes those of the one before:
// groups are not in the order of memory, which the processor would notice by itself.
func sipHashes(hashes []uint64, first unsafe.Pointer, step uintptr, k0, k1 uint64) {
	n := min(len(hashes), sipWindow)
	prefetchKeys(first, step, n)
	for n > 0 {
		rest := hashes[n:]
		next, ahead := first, min(len(rest), sipWindow)
		if ahead > 0 { // else there is nothing to point to
			next = unsafe.Add(first, uintptr(n)*step)
			prefetchKeys(next, step, ahead)
		}
		sipHashWindow(hashes[:n], first, step, k0, k1)
		hashes, first, n = rest, next, ahead
	}
}

// sipHashWindow hashes len(hashes) keys, at most sipWindow. Their slices or strings are
// step bytes apart from first on.
func sipHashWindow(hashes []uint64, first unsafe.Pointer, step uintptr, k0, k1 uint64) {
	at := func(i int) *text { return (*text)(unsafe.Add(first, uintptr(i)*step)) }
	classOf := func(i int) int {
		if c := at(i).size >> 3; c < sipClasses {
			return c
		}
		return 0
	}
	// Keys of class 0 lack a whole word, which the assembly counts on, so they are hashed
	// one by one, as are those that are too long to be in a class.
	one := func(i int) {
		t := at(i)
		hashes[i] = SipHash(unsafe.Slice(t.bytes, t.size), k0, k1)
	}
	if class := classOf(0); class > 0 {
		same := 1
		for same < len(hashes) && classOf(same) == class {
			same++
		}
		if same == len(hashes) {
			groups := same / sipLanes
			if groups > 0 {
				sipHashAVX2(&hashes[0], first, step, &inOrder[0], groups, k0, k1)
			}
			for i := groups * sipLanes; i < same; i++ {
				one(i)
			}
			return
		}
	}
	var count [sipClasses]int16
	for i := range hashes {
		count[classOf(i)]++
	}
	// The order of the keys by class. A group that is not full repeats its last key; one or
	// two keys are not worth a group.
	var order [sipWindow + sipClasses*(sipLanes-1)]uint16
	var next, end [sipClasses]int16
	groups := int16(0)
	for c := 1; c < sipClasses; c++ {
		next[c] = groups * sipLanes
		groups += count[c] / sipLanes
		end[c] = groups * sipLanes
		if count[c]%sipLanes >= 3 {
			groups++
			end[c] += count[c] % sipLanes
		}
	}
	for i := range hashes {
		c := classOf(i)
		if next[c] == end[c] { // always in class 0
			one(i)
			continue
		}
		order[next[c]] = uint16(i)
		next[c]++
	}
	for c := 1; c < sipClasses; c++ {
		for i := next[c]; i%sipLanes != 0; i++ {
			order[i] = order[i-1]
		}
	}
	if groups > 0 {
		sipHashAVX2(&hashes[0], first, step, &order[0], int(groups), k0, k1)
	}
}

// inOrder is the order of keys that are all of one class.
var inOrder = func() (order [sipWindow]uint16) {
	for i := range order {
		order[i] = uint16(i)
	}
	return order
}()
