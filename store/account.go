package store

import (
	"math/bits"
	"reflect"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/redisbloom"
)

// The accounts: the memory that values take, rounded up as the allocator does. The
// limit is compared with them, so they include everything that a client can have many
// of; TestAccountsAreTrue compares them with the heap. RedisBloom's chains account for
// their layers themselves: see redisbloom.Config.

// allocated is the memory that an object of type T takes.
func allocated[T any]() uint64 { return memory.Allocated(uint64(reflect.TypeFor[T]().Size())) }

var (
	// A value, and its slot in the table of names, which is less than half full just
	// after it has grown.
	valueBytes = allocated[value]() + 28

	chainBytes  = allocated[redisbloom.Filter]()
	nestBytes   = allocated[nest]() + allocated[bloom.Cuckoo]()
	textBytes   = allocated[text]()
	pairedBytes = allocated[paired]() + allocated[hashed]()
	layerBytes  = allocated[bloom.Shared]()

	countingBytes = allocated[bloom.Counting]()

	// A Scalable or Window has a chain of layers, and slices as long as that chain.
	growingBytes = allocated[bloom.Scalable]() + 128
	windowBytes  = allocated[bloom.Window]() + 352

	growingCountingBytes = allocated[bloom.ScalableCounting]() + 128
)

// nameBytes is the memory that a name takes.
func nameBytes(name string) uint64 { return memory.Allocated(uint64(len(name))) }

// overheadBytes is the memory that a value takes in addition to its bits or text.
func overheadBytes(b body, name string) uint64 {
	bytes := valueBytes + nameBytes(name)
	switch b := b.(type) {
	case chain:
		bytes += chainBytes
	case *nest:
		bytes += nestBytes
	case text:
		bytes += textBytes
	case *paired:
		bytes += pairedBytes
		switch {
		case b.spec.Kind == Window:
			bytes += windowBytes
		case b.spec.Kind == Counting && b.spec.Growth != 0:
			bytes += growingCountingBytes
		case b.spec.Kind == Counting:
		case b.spec.Growth != 0:
			bytes += growingBytes
		}
	}
	return bytes
}

// lockedBytes is the memory of a filter of fixed size, or of one layer of a growing
// filter: its bits, the locks of their blocks, and the gates that a chain of layers has
// if this is its newest one.
func lockedBytes(plan bloom.Plan) uint64 {
	const (
		line        = 64 // each lock and each gate has a cache line of its own
		keysPerGate = 1024
		maxGates    = 64
	)
	gates := min(uint64(1)<<min(bits.Len64(plan.Keys/keysPerGate), 63), maxGates)
	return layerBytes + memory.Taken(plan.Blocks*kernel.WordsPerBlock) + memory.Allocated(kernel.Stripes(plan.Blocks)*line) + memory.Allocated(gates*line)
}
