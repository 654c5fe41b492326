package kernel

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Cuckoo is a table of a cuckoo filter (Fan, Andersen, Kaminsky and Mitzenmacher 2014)
// in RedisBloom's arrangement. A bucket has Size slots, side by side; a slot is one byte:
// a fingerprint, or 0 if it is empty.
//
//	bucket 0 | bucket 1 | ... | bucket Mask       a power of two
//	slot 0 | slot 1 | ... | slot Size-1            a byte each
//
// Everything comes from the key's hash h:
//
//	fingerprint  f = h mod 255 + 1                 never 0
//	one bucket   h mod buckets
//	the other    (h ^ f * 0x5bd1e995) mod buckets
//
// The exclusive or leads back as well, and since the number of buckets is a power of two,
// it also leads from the number of a bucket to that of the other one. So a fingerprint can
// be moved to its other bucket without its key. In small tables both may be the same.
type Cuckoo struct {
	Slots []byte
	Mask  uint64 // the number of buckets, less one
	Size  uint64 // slots of a bucket, 1 to 255
}

const (
	// CuckooFingerprints is the number of different fingerprints.
	CuckooFingerprints = 255

	// MaxBucketSize is the most slots of a bucket.
	MaxBucketSize = 255

	apart = 0x5bd1e995
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// Nest says where a key may lie, in tables of all sizes.
type Nest struct {
	One, Other  uint64 // modulo the number of buckets
	Fingerprint byte
}

// NestOf returns the nest of the key with hash h.
func NestOf(h uint64) Nest { return NestIn(h, byte(h%CuckooFingerprints)+1) }

// NestIn returns the nest of a fingerprint that lies in a bucket.
func NestIn(bucket uint64, fingerprint byte) Nest {
	return Nest{bucket, bucket ^ uint64(fingerprint)*apart, fingerprint}
}

// Buckets returns the number of buckets.
func (t *Cuckoo) Buckets() uint64 { return t.Mask + 1 }

// Bucket returns the slots of a bucket, whose number is taken modulo that of all.
func (t *Cuckoo) Bucket(i uint64) []byte { return t.Slots[(i&t.Mask)*t.Size:][:t.Size] }

// both returns the slots of both buckets in one word, those of the other one above, and
// the bytes of the word that are slots. Only for up to four slots.
func (t *Cuckoo) both(n Nest) (slots, used uint64) {
	one, other := n.One&t.Mask, n.Other&t.Mask
	order := binary.LittleEndian
	switch t.Size {
	case 1:
		return uint64(t.Slots[one]) | uint64(t.Slots[other])<<8, 1<<16 - 1
	case 2:
		return uint64(order.Uint16(t.Slots[2*one:])) | uint64(order.Uint16(t.Slots[2*other:]))<<16, 1<<32 - 1
	case 3:
		a, b := t.Slots[3*one:][:3], t.Slots[3*other:][:3]
		return uint64(a[0]) | uint64(a[1])<<8 | uint64(a[2])<<16 | uint64(b[0])<<24 | uint64(b[1])<<32 | uint64(b[2])<<40, 1<<48 - 1
	}
	return uint64(order.Uint32(t.Slots[4*one:])) | uint64(order.Uint32(t.Slots[4*other:]))<<32, 1<<64 - 1
}

// inWord is the most slots of a bucket for which both buckets fit in a word. Searching
// both at once takes about half the time of searching one after the other, for a key that is
// there: which bucket has it is a coin toss, and the processor guesses wrong every other
// time.
const inWord = 4

// equal returns a word whose bytes are 0x80 where those of x are b, otherwise 0.
func equal(x uint64, b byte) uint64 {
	x ^= uint64(b) * ones
	return ^((x&^highs + ^uint64(highs)) | x | ^uint64(highs))
}

// Contains reports whether one of the buckets has the fingerprint.
func (t *Cuckoo) Contains(n Nest) bool {
	if t.Size <= inWord {
		slots, used := t.both(n)
		return equal(slots, n.Fingerprint)&used != 0
	}
	return bytes.IndexByte(t.Bucket(n.One), n.Fingerprint) >= 0 || bytes.IndexByte(t.Bucket(n.Other), n.Fingerprint) >= 0
}

// Count returns how many slots of both buckets have the fingerprint. If both are the same
// bucket, each is counted twice, as RedisBloom does.
func (t *Cuckoo) Count(n Nest) int {
	if t.Size <= inWord {
		slots, used := t.both(n)
		return bits.OnesCount64(equal(slots, n.Fingerprint) & used)
	}
	sought := []byte{n.Fingerprint}
	return bytes.Count(t.Bucket(n.One), sought) + bytes.Count(t.Bucket(n.Other), sought)
}

// Replace puts a byte into the first slot that has the byte old, in one bucket or else in
// the other, and returns the number of that slot, counted from the table's first, or -1 if
// there is none. It adds with old 0 and the fingerprint, and removes with the fingerprint and
// 0. Which bucket it is in must not be a branch: the processor would guess wrong, and wait
// for memory, every other time, which took half as long again outside the caches.
func (t *Cuckoo) Replace(n Nest, old, with byte) (slot int) {
	if t.Size <= inWord {
		slots, used := t.both(n)
		found := equal(slots, old) & used
		if found == 0 {
			return -1
		}
		slot := uint64(bits.TrailingZeros64(found) / 8)
		inOther := uint64(int64(t.Size-1-slot) >> 63) // all ones, or zero
		bucket := n.One ^ (n.One^n.Other)&inOther
		at := (bucket&t.Mask)*t.Size + slot - t.Size&inOther
		t.Slots[at] = with
		return int(at)
	}
	if slot = t.replace(n.One, old, with); slot < 0 {
		slot = t.replace(n.Other, old, with)
	}
	return slot
}

// replace is Replace in a single bucket.
func (t *Cuckoo) replace(bucket uint64, old, with byte) (slot int) {
	first := (bucket & t.Mask) * t.Size
	i := bytes.IndexByte(t.Slots[first:][:t.Size], old)
	if i < 0 {
		return -1
	}
	t.Slots[int(first)+i] = with
	return int(first) + i
}

// Kick makes room for a fingerprint whose buckets are both full: it takes the place of
// another one, which goes to its other bucket, where it takes the place of another one if
// that is full, too, and so on. If none finds an empty slot after that many iterations, all
// return to where they were, and the answer is false. Otherwise Kick appends the slots that
// have changed to path, unless that is nil.
func (t *Cuckoo) Kick(n Nest, iterations int, path *[]uint64) bool {
	bucket, slot, inHand := n.One&t.Mask, uint64(0), n.Fingerprint
	changed := 0
	if path != nil {
		changed = len(*path)
	}
	for range iterations {
		at := bucket*t.Size + slot
		inHand, t.Slots[at] = t.Slots[at], inHand
		bucket = (bucket ^ uint64(inHand)*apart) & t.Mask
		empty := t.replace(bucket, 0, inHand)
		if path != nil {
			*path = append(*path, at)
		}
		if empty >= 0 {
			if path != nil {
				*path = append(*path, uint64(empty))
			}
			return true
		}
		if slot++; slot == t.Size {
			slot = 0
		}
	}
	if path != nil {
		*path = (*path)[:changed]
	}
	for range iterations {
		if slot == 0 {
			slot = t.Size
		}
		slot--
		bucket = (bucket ^ uint64(inHand)*apart) & t.Mask
		at := &t.Slots[bucket*t.Size+slot]
		inHand, *at = *at, inHand
	}
	return false
}

// Next returns the first slot from that one on that has a fingerprint, or -1 if none has.
func (t *Cuckoo) Next(slot int) int {
	for rest := t.Slots[slot:]; len(rest) >= 8; rest = rest[8:] {
		if word := binary.LittleEndian.Uint64(rest); word != 0 {
			return slot + bits.TrailingZeros64(word)/8
		}
		slot += 8
	}
	for ; slot < len(t.Slots); slot++ {
		if t.Slots[slot] != 0 {
			return slot
		}
	}
	return -1
}

// Used counts the slots that have a fingerprint.
func (t *Cuckoo) Used() uint64 { return uint64(len(t.Slots) - bytes.Count(t.Slots, []byte{0})) }

// ContainsBatch sets found[i] where the table contains the key with hash hashes[i]. Up to
// four slots in a bucket it never branches, so the processor works on many keys at once
// and fetches their buckets side by side.
func (t *Cuckoo) ContainsBatch(hashes []uint64, found []bool) {
	found = found[:len(hashes)]
	for i, h := range hashes {
		if t.Contains(NestOf(h)) {
			found[i] = true
		}
	}
}
