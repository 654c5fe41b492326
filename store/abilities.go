package store

import (
	"context"
	"time"

	"github.com/bloomery/bloom/redisbloom"
)

// Optional abilities of a [Store], or of its filters. A server asks for them by type
// assertion, and manages without those that are lacking. [Local] has all of them but
// Remote.

// A Statistician counts the work it does to make adds durable.
type Statistician interface {
	Stats() Stats
}

// A Snapshotter can write all its values to a snapshot, which replaces the log before it.
type Snapshotter interface {
	Statistician
	Snapshot(ctx context.Context) error
}

// A Stopper reports, at once, that it can no longer make anything durable; see
// [Local.OnStop].
type Stopper interface {
	OnStop(do func(err error))
}

// A Grantor charges memory that the server needs temporarily to the store's limit; see
// [Local.Grant]. The error of Grant wraps [ErrMemory].
type Grantor interface {
	Grant(bytes uint64) error
	Release(bytes uint64)
}

// A Grouper counts names by group; see [Local.GroupNames].
type Grouper interface {
	GroupNames(of func(name string) (group int))
	LenOf(group int) int
}

// A Remote store keeps its filters elsewhere, and its calls wait for a network. A server
// gives each connection a goroutine of its own, so that they wait at the same time.
type Remote interface {
	Remote()
}

// A Randomizer picks a name, each with the same probability, and returns false if there
// are no names.
type Randomizer interface {
	Random() (name string, ok bool)
}

// A Kinded is a [Filter] that says of which kind it is, at once: its Info is more work.
type Kinded interface {
	Kind() Kind
}

// A Remover is a [Filter] of which keys can be removed. The errors of its methods are those
// of Add, or wrap [errors.ErrUnsupported] if the filter's kind has no removals.
type Remover interface {
	// Remove removes keys in order, each once. removed is as long as keys. A key that is
	// certainly not there is refused, and nothing changes. One that is found by mistake is
	// removed, and another key may then be missing: only keys that were added may be removed.
	// Remove returns how many keys it has dealt with: all, unless there is an error.
	Remove(ctx context.Context, keys [][]byte, removed []bool) (int, error)

	// Count returns how many times each key is in the filter, or more. counts is as long as
	// keys.
	Count(ctx context.Context, keys [][]byte, counts []int) error
}

// A Nest is a [Filter] of kind Cuckoo. Add stores a key always, and its answers are those of
// Contains before it, negated.
type Nest interface {
	Remover

	// Insert adds keys in order, with unique only those that are not found. inserted is as
	// long as keys. It returns how many keys it has dealt with, and the error of the next
	// one: it wraps ErrFull if there is no room, and bloom.ErrLayers, too, if the filter has
	// as many layers as it may, or ErrMemory.
	Insert(ctx context.Context, keys [][]byte, unique bool, inserted []bool) (int, error)

	// Compact moves keys to older layers, and drops the layers that are empty then.
	Compact(ctx context.Context) error

	// Cuckoo returns what CF.INFO reports.
	Cuckoo() (redisbloom.CuckooInfo, error)
}

// A Nester is a [Store] that can keep filters of kind Cuckoo.
type Nester interface {
	// LoadCuckoo creates a filter from the first chunk of a dump, which is RedisBloom's
	// header, as Filter.Dump(0) returned it; the other chunks follow by Filter.Load. With
	// the header of an empty filter, see [redisbloom.CuckooHeader], there are none. The
	// error wraps ErrExists, ErrMemory or ErrChunk.
	LoadCuckoo(ctx context.Context, name string, header []byte) (Filter, error)
}

// An Inspector is a [Filter] that shows its bits to people. Its methods return
// ErrNotFound if the filter was dropped.
type Inspector interface {
	// Spans returns when each layer's generation began, and when its keys have
	// expired, oldest first; nil if the filter has no generations.
	Spans() ([]Span, error)

	// Population divides a layer, counted from the oldest, 0, into equal parts, as many
	// as asked for or fewer, and returns how many bits of each are set, and how many
	// were read: all, or of a large layer a sample. They are empty if there is no such
	// layer.
	Population(layer, parts int) (set, read []uint64, err error)

	// Place returns the hash of a key and where its bits lie.
	Place(key []byte) (Place, error)
}

// A Span is the time of a layer of a window.
type Span struct{ Starts, Expires time.Time }

// A Place is where the bits of a key lie.
type Place struct {
	// Hash is one number, or of a RedisBloom filter two.
	Hash []uint64

	Layers []LayerPlace // oldest first
}

// A LayerPlace is where the bits of a key lie in a layer.
type LayerPlace struct {
	Block uint64     // of 512 bytes; in a RedisBloom filter, which has none, 0
	Lines []int      // of the block's 64-byte lines, those two that have the bits
	Bits  []BitPlace // counted from the layer's first
}

// A BitPlace is a bit of a key, and whether it is set.
type BitPlace struct {
	At  uint64
	Set bool
}

var _ interface {
	Inspector
	Kinded
	Nest
} = (*value)(nil)

var _ interface {
	Store
	Snapshotter
	Stopper
	Grantor
	Grouper
	Randomizer
	Nester
} = (*Local)(nil)
