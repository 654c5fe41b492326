package main

import (
	"fmt"
	"log"
	"strings"
)

// A library is somebody's filter: a name for the table, and how to make one for n
// keys at rate p the way its users would, with the hash they would take.
type library struct {
	name string
	make func(n uint64, p float64) *contender
}

var (
	filterLibrary = library{"Filter", newFilter} // the table's yardstick
	touchLibrary  = library{"bare touch", newTouch}
)

// libraries are those of the table, beside Filter. A rival's name is the end of its
// module path: the head of the table finds the version by it.
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

// Names that targets and charts ask for.
const (
	bnb  = "bits-and-blooms/bloom/v3"
	blob = "greatroar/blobloom"
	parq = "parquet-go/parquet-go"
)

// choose returns the libraries whose names contain one of the words, and the bare
// touch; all of them for no words.
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

// named returns the library of that name.
func named(name string) library {
	for _, l := range libraries {
		if l.name == name {
			return l
		}
	}
	panic("no library " + name)
}

// A contender is one filter as the harness sees it: loops over keys. They stand in
// the contender's own file, spelled out, so that the calls in them compile as a
// user's would: no interface, no closure per key.
type contender struct {
	bits      float64 // its memory; 0 if only the heap can tell
	keys      loops[[]byte]
	keyBatch  loops[[]byte]
	hashes    loops[uint64] // for APIs that take keys hashed already
	hashBatch loops[uint64]
	build     func() // of a static filter, once all keys were added
	close     func() // gives back what the collector does not; may be nil
}

// loops are one way to call a filter; the functions are nil where it has none.
type loops[K any] struct {
	add   func([]K)
	count func([]K) int // how many of the keys are found
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

// calls are all of them, in the table's order.
var calls = []call{
	{key16, false}, {key16, true},
	{key64, false}, {key64, true},
	{hashed, false}, {hashed, true},
}

// adder returns the contender's loop for the call, nil if it has none.
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

// counter is adder for queries.
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

// must is for the making of filters that the harness asks for: there is nobody to
// hand the error to.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
