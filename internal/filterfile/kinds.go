package filterfile

import (
	"fmt"
	"math"
)

// Kind is the kind of filter that a file holds. Numbers are added, never changed.
type Kind uint16

const (
	KindFilter     Kind = 1
	KindSplitBlock Kind = 2
	KindClassic    Kind = 3
	KindCounting   Kind = 4
	KindScalable   Kind = 5
	KindWindow     Kind = 6
	KindExceptions Kind = 7
	KindCuckoo     Kind = 8

	KindScalableCounting Kind = 9
)

// The schemes of all kinds except Classic, whose schemes have their own numbers, up to
// 65,535.
const (
	SchemePaired = 1 // paired lines
	SchemeSplit  = 2 // Parquet's split blocks
	SchemeCuckoo = 3 // RedisBloom's cuckoo filter
)

// The kinds of section.
const (
	SectionPaired   = 1 // bits in blocks of paired lines
	SectionSplit    = 2 // bits in split blocks
	SectionBits     = 3 // bits, any number: a block is one bit
	SectionCounters = 4 // counters in blocks of paired lines
	SectionKeys     = 5 // a list of keys: a block is one key
	SectionBuckets  = 6 // fingerprints of a byte in buckets: a block is one bucket
)

// The hashes that a header can name. Package bloom has the functions.
const (
	hashOwn       = 0 // the hash of a Classic's scheme
	hashXXH3      = 1
	hashSip       = 2
	hashXXH64     = 3
	hashMurmur64A = 4
)

// A kind describes its files.
type kind struct {
	name     string
	article  string   // the name with its article, for messages
	loader   string   // the function that reads its files
	hashes   []uint32 // those that may fill it
	sections []uint32 // their kinds
	more     bool     // the last section may be repeated: one for each layer
}

var ours = []uint32{hashXXH3, hashSip}

var kinds = map[Kind]kind{
	KindFilter:     {"filter", "a Filter", "Load", ours, []uint32{SectionPaired}, false},
	KindSplitBlock: {"splitblock", "a SplitBlock", "LoadSplitBlock", []uint32{hashXXH64, hashSip}, []uint32{SectionSplit}, false},
	KindClassic:    {"classic", "a Classic", "classic.Load", []uint32{hashOwn, hashXXH3, hashSip, hashXXH64}, []uint32{SectionBits}, false},
	KindCounting:   {"counting", "a Counting", "LoadCounting", ours, []uint32{SectionCounters}, false},
	KindScalable:   {"scalable", "a Scalable", "LoadScalable", ours, []uint32{SectionPaired}, true},
	KindWindow:     {"window", "a Window", "LoadWindow", ours, []uint32{SectionPaired}, true},
	KindExceptions: {"exceptions", "a Filter with Exceptions", "LoadExceptions", ours, []uint32{SectionPaired, SectionKeys}, false},
	KindCuckoo:     {"cuckoo", "a Cuckoo", "LoadCuckoo", []uint32{hashMurmur64A, hashSip}, []uint32{SectionBuckets}, true},

	KindScalableCounting: {"scalablecounting", "a ScalableCounting", "LoadScalableCounting", ours, []uint32{SectionCounters}, true},
}

// String returns the kind's name in lower case, such as "splitblock".
func (k Kind) String() string {
	if known, ok := kinds[k]; ok {
		return known.name
	}
	return fmt.Sprintf("kind %d", uint16(k))
}

// schemeFits reports whether files of the kind may have the scheme.
func (k Kind) schemeFits(scheme uint32) bool {
	switch k {
	case KindClassic:
		return scheme <= math.MaxUint16 // package classic knows which of them exist
	case KindSplitBlock:
		return scheme == SchemeSplit
	case KindCuckoo:
		return scheme == SchemeCuckoo
	}
	return scheme == SchemePaired
}

// layered reports whether each section has n and a count of its own.
func (k Kind) layered() bool { return kinds[k].more }
