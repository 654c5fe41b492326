package main

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// A kind is the form in which a key is passed.
type kind uint64

const (
	key16  kind = iota // 16 bytes
	key64              // 64 bytes
	hashed             // a 64-bit hash, computed beforehand
	kinds              // the number of kinds
)

func (k kind) String() string { return [...]string{"16-byte key", "64-byte key", "hash"}[k] }

func (k kind) plural() string { return [...]string{"16-byte keys", "64-byte keys", "hashes"}[k] }

// Every key is derived from a number, its id. These ranges of ids are disjoint.
const (
	prefillIDs = uint64(0)
	freshIDs   = uint64(1) << 40 // added while the clock runs
	topUpIDs   = uint64(1) << 41
	missIDs    = uint64(1) << 42 // never added
	rateIDs    = uint64(1) << 43 // never added
)

// kindOf is the kind in which a prefill id is added, so that each kind has keys all
// over the filter. Few keys are long: the memory of map[string] is reported for
// 16-byte keys.
func kindOf(id uint64) kind {
	return [8]kind{key16, key16, key16, key16, key64, hashed, hashed, hashed}[id%8]
}

// material is a list of keys, or of hashes for kind hashed, laid out before the
// clock starts.
type material struct {
	keys   [][]byte
	hashes []uint64
	arena  []byte
}

func (m material) len() int { return len(m.keys) + len(m.hashes) }

// first returns the first n keys, or all if there are fewer.
func (m material) first(n int) material {
	return material{keys: m.keys[:min(n, len(m.keys))], hashes: m.hashes[:min(n, len(m.hashes))]}
}

// set fills m with the keys of the ids, and reuses its memory if that is enough.
func (m *material) set(kind kind, ids []uint64) {
	m.keys, m.hashes, m.arena = m.keys[:0], m.hashes[:0], m.arena[:0]
	if kind == hashed {
		for _, id := range ids {
			m.hashes = append(m.hashes, hashOf(id))
		}
		return
	}
	for _, id := range ids {
		m.arena = binary.LittleEndian.AppendUint64(m.arena, mix(id))
		if kind == key64 {
			for word := range uint64(6) {
				m.arena = binary.LittleEndian.AppendUint64(m.arena, mix(id+word<<56))
			}
		}
		m.arena = binary.LittleEndian.AppendUint64(m.arena, id)
	}
	size := 16
	if kind == key64 {
		size = 64
	}
	for i := range ids { // only now: append may have moved the arena
		m.keys = append(m.keys, m.arena[i*size:(i+1)*size:(i+1)*size])
	}
}

func newMaterial(kind kind, ids []uint64) (m material) {
	m.set(kind, ids)
	return m
}

// hashOf returns different hashes for different ids.
func hashOf(id uint64) uint64 { return mix(^id) }

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014), a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// span returns the n ids that start at first.
func span(first, n uint64) []uint64 { return appendSpan(nil, first, n) }

func appendSpan(ids []uint64, first, n uint64) []uint64 {
	ids = slices.Grow(ids, int(n))
	for i := range n {
		ids = append(ids, first+i)
	}
	return ids
}

// present returns n random ids of the kind among the first prefilled ones.
func present(kind kind, prefilled, n uint64) []uint64 {
	random := rand.New(rand.NewPCG(prefilled, uint64(kind)))
	var ids []uint64
	for uint64(len(ids)) < n {
		if id := prefillIDs + random.Uint64N(prefilled); kindOf(id) == kind {
			ids = append(ids, id)
		}
	}
	return ids
}
