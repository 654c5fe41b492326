package main

import (
	"fmt"
	"log"
	"strings"
)

// A library is one implementation of a filter: its name in the table, and how to
// make a filter for n keys at rate p as its users would, with the usual hash.
type library struct {
	name string
	make func(n uint64, p float64) *contender
}

var (
	filterLibrary = library{"Filter", newFilter} // the baseline of the table
	touchLibrary  = library{"bare touch", newTouch}
)

// libraries are the ones in the table, apart from Filter. A rival's name is the end
// of its module path, by which the table's head finds its version.
var libraries = []library{
	touchLibrary,
	{bnb, newBitsAndBlooms},
	{blob, newBlobloom},
	{parq, newParquet},
	{"holiman/bloomfilter/v2", newHoliman},
	{"tylertreat/BoomFilters", newBoomFilters},
	{"FastFilter/xorfilter", newXorFilter},
	{"map[uint64]struct{}", newIntegerMap},
	{"map[string]struct{}", newStringMap},
}

// Names that targets and charts refer to.
const (
	bnb  = "bits-and-blooms/bloom/v3"
	blob = "greatroar/blobloom"
	parq = "parquet-go/parquet-go"
)

// choose returns the libraries whose names contain one of the words, plus the bare
// touch. Without words it returns all.
func choose(words string) (chosen []library) {
	for _, l := range libraries {
		for word := range strings.SplitSeq(words, ",") {
			if l.name == touchLibrary.name || strings.Contains(l.name, word) {
				chosen = append(chosen, l)
				break
			}
		}
	}
	return chosen
}

// named returns the library called name.
func named(name string) library {
	for _, l := range libraries {
		if l.name == name {
			return l
		}
	}
	panic("no library " + name)
}

// A contender is one filter as the harness sees it: loops over keys. Each contender
// spells them out in its own file, so that the calls compile as a user's would: no
// interface, no closure per key.
type contender struct {
	bits      float64 // its memory; 0 if only the heap can tell
	keys      loops[[]byte]
	keyBatch  loops[[]byte]
	hashes    loops[uint64] // for APIs that take hashed keys
	hashBatch loops[uint64]
	build     func() // for a static filter, after all keys have been added
	close     func() // frees what the garbage collector does not; may be nil
}

// loops are one way to call a filter. A function is nil if the filter lacks it.
type loops[K any] struct {
	add   func([]K)
	count func([]K) int // the number of keys found
}

// A call is one way to call a filter on one kind of keys.
type call struct {
	kind  kind
	batch bool
}

func (c call) String() string {
	if c.batch {
		return "batch of " + c.kind.plural()
	}
	return fmt.Sprintf("%v, one by one", c.kind)
}

// calls lists every call, in the order of the table.
var calls = []call{
	{key16, false}, {key16, true},
	{key64, false}, {key64, true},
	{hashed, false}, {hashed, true},
}

// adder returns the contender's loop for adds by the given call, or nil.
func (c *contender) adder(call call) func(material) {
	if call.kind == hashed {
		if l := pick(call, c.hashes, c.hashBatch); l.add != nil {
			return func(m material) { l.add(m.hashes) }
		}
		return nil
	}
	if l := pick(call, c.keys, c.keyBatch); l.add != nil {
		return func(m material) { l.add(m.keys) }
	}
	return nil
}

// counter is like adder, for queries.
func (c *contender) counter(call call) func(material) int {
	if call.kind == hashed {
		if l := pick(call, c.hashes, c.hashBatch); l.count != nil {
			return func(m material) int { return l.count(m.hashes) }
		}
		return nil
	}
	if l := pick(call, c.keys, c.keyBatch); l.count != nil {
		return func(m material) int { return l.count(m.keys) }
	}
	return nil
}

func pick[K any](call call, single, batch loops[K]) loops[K] {
	if call.batch {
		return batch
	}
	return single
}

// must exits on an error. The filters that the harness makes have valid parameters.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
