// Package store keeps filters by name, for servers. [Store] is the interface that a
// server needs. [Local] implements it in this process's memory, with its files in a
// directory.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bloomery/bloom"
)

// Kind is what a name stands for.
type Kind uint8

const (
	// None: nothing has that name.
	None Kind = iota

	// RedisBloom is the filter of RedisBloom's BF commands, bit for bit: a chain of
	// classic filters; see redisbloom.Filter.
	RedisBloom

	// Paired is our own layout: a bloom.Shared, or a bloom.Scalable if it may grow. A
	// lookup in a layer costs one or two cache misses, and a filter may hold more than
	// 2^30 keys.
	Paired

	// Window is a bloom.Window: its keys expire.
	Window

	// String is a plain value, so that clients get an error about the wrong type.
	String

	// Counting is a bloom.Counting, or a bloom.ScalableCounting if it may grow: keys can be
	// removed. It is a Remover.
	Counting

	// Cuckoo is the filter of RedisBloom's CF commands, bit for bit: a bloom.Cuckoo. It is a
	// Nest, and a Nester makes it.
	Cuckoo
)

// String returns the word for a kind in flags, replies and messages.
func (k Kind) String() string {
	switch k {
	case None:
		return "none"
	case RedisBloom:
		return "redisbloom"
	case Paired:
		return "paired"
	case Window:
		return "window"
	case String:
		return "string"
	case Counting:
		return "counting"
	case Cuckoo:
		return "cuckoo"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Spec describes a filter to be created.
type Spec struct {
	Kind     Kind
	Capacity uint64  // n; of a Window, in one span
	Rate     float64 // p

	// Growth is the factor by which each further layer is larger. With zero, a filter
	// refuses keys beyond its capacity with ErrFull. A window keeps its Rate for any
	// pattern in which Capacity keys arrive in a span. For keys beyond that, a window
	// with any Growth doubles the current generation; without it, it refuses keys when
	// its newest generation holds Capacity.
	Growth uint32

	Span time.Duration // of a Window

	// Public: hashed by XXH3, for which anybody can craft keys that look seen; false:
	// by SipHash with the store's secret. A RedisBloom filter is always public.
	Public bool

	Expires time.Time // zero: never
	Level   Level     // zero: the store's
}

// Level says when an add is safe from a power failure. A committed add survives a crash
// of the process at every level but Unlogged.
type Level uint8

const (
	StoreLevel  Level = iota // whatever the store's configuration says
	Always                   // when Commit has returned
	EverySecond              // a second later
	Unlogged                 // when a snapshot was taken, or the store closed: adds are not logged; for filters with removals, EverySecond
)

// String returns the word for a level in flags and messages.
func (l Level) String() string {
	switch l {
	case StoreLevel:
		return "default"
	case Always:
		return "always"
	case EverySecond:
		return "everysec"
	case Unlogged:
		return "none"
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// Info describes a filter.
type Info struct {
	Spec
	Bytes  uint64 // of memory, all included, as RedisBloom's BF.INFO counts them
	Items  uint64 // adds that were new; of a Window, including keys that have expired since; of filters with removals, all adds less all removals
	Room   uint64 // keys that fit in all layers; of a Window, the Capacity of a span
	Layers []Layer

	// Of filters with removals. Refused are removals of keys that were certainly not there,
	// since the store was opened. Stuck are counters that stay at bloom.MaxCount.
	Removed, Refused, Stuck uint64

	// Of a filter that is being loaded: how many bytes of its file have come, and of how
	// many. Otherwise, and for the kind RedisBloom, zero.
	Loaded, ToLoad uint64
}

// Layer is one layer of a filter, or of a generation of a Window. The oldest comes
// first.
type Layer struct {
	Bytes    uint64 // of bits
	Bits     uint64
	Probes   int
	Capacity uint64
	Items    uint64
	Rate     float64 // planned
}

// UnfinishedPrefix, followed by a number, begins the names under which a server fills
// filters that it has not finished, as for RESTORE. Those left by a crash are dropped
// when the store is reopened.
const UnfinishedPrefix = "\x00restore:"

// Errors of all stores. The error for what a filter cannot do wraps
// [errors.ErrUnsupported].
var (
	ErrNotFound  = errors.New("store: not found")
	ErrExists    = errors.New("store: exists already")
	ErrWrongKind = errors.New("store: the name stands for another kind of value")

	// ErrFull: a filter without growth has as many keys as it was planned for, or one
	// with growth as many as its rate allows.
	ErrFull = errors.New("store: the filter is full")

	// ErrMemory: the store's limit would be exceeded; the message names the bytes
	// needed, in use and allowed.
	ErrMemory = errors.New("store: out of memory")

	// ErrChunk: a chunk of a dump does not fit, or is invalid.
	ErrChunk = errors.New("store: bad chunk")

	// ErrStopped: the store can no longer make anything durable, and no longer
	// acknowledges anything; the message has the cause.
	ErrStopped = errors.New("store: stopped")
)

// Store maps names to filters. All methods are safe for concurrent use. A name may be
// any bytes.
//
// A change is durable, as its level requires, only when a later Commit has returned: a
// server executes the commands received, commits once, and then replies.
type Store interface {
	// Create creates a filter. The error wraps ErrExists, ErrMemory or a sentinel of
	// package bloom.
	Create(ctx context.Context, name string, spec Spec) (Filter, error)

	// Open returns the filter with that name, or an error that wraps ErrNotFound or
	// ErrWrongKind. The filter may be dropped before it is used. Open is fast for a name
	// that was opened before: a server calls it before every run of commands.
	Open(name []byte) (Filter, error)

	// Load creates a filter from the first chunk of a dump, as Filter.Dump(0) returned
	// it. The other chunks follow by Filter.Load.
	Load(ctx context.Context, name string, header []byte) (Filter, error)

	// Set and Get are for plain values. The error of Get wraps ErrNotFound or
	// ErrWrongKind. Set replaces any value with the name.
	Set(ctx context.Context, name string, value []byte) error
	Get(name []byte) ([]byte, error)

	// Kind returns what the name stands for, None if nothing, and when it expires, zero
	// if never. Like List and Len, it has an error only where the names are elsewhere.
	Kind(name []byte) (kind Kind, expires time.Time, err error)

	// Rename renames a value, replacing any value with the new name. Swap exchanges two
	// values. Both are atomic for all callers. Expire sets when a name expires; the
	// zero time means never. Their errors wrap ErrNotFound if there is no such name.
	Rename(ctx context.Context, from, to string) error
	Swap(ctx context.Context, a, b string) error
	Expire(ctx context.Context, name string, at time.Time) error

	// Drop deletes the names and returns how many there were. Clear deletes all names.
	Drop(ctx context.Context, names ...string) (int, error)
	Clear(ctx context.Context) error

	// List returns some names, count of them or more, and the next cursor. The cursor 0
	// starts a listing, and next is 0 at its end. Names that are there from start to
	// end are listed at least once.
	List(cursor uint64, count int) (names []string, next uint64, err error)

	// Len returns the number of names.
	Len() (int, error)

	// Usage returns the memory of all filters and values, in bytes, and its limit, zero
	// if there is none.
	Usage() (bytes, limit uint64)

	// Commit returns when every call that returned before it is as durable as its level
	// requires. The error wraps ErrStopped, or is ctx's if ctx ends first: then it is
	// unknown what is durable, and nothing may be acknowledged.
	Commit(ctx context.Context) error

	// OnEnd sets the function that is called, on another goroutine, with each name that
	// has expired.
	OnEnd(func(name string))

	Close() error
}

// Filter is one filter of a store. A caller may keep it: it survives a rename, and ends
// when its name is dropped or given to another filter. Its memory is released as soon
// as nobody uses it, and its methods then return errors that wrap ErrNotFound, or zeros
// if they have no error. All methods are safe for concurrent use, and of several
// goroutines that add the same key, at most one is told that it is new. No method makes
// other calls wait for long: many bits are read or written piece by piece.
type Filter interface {
	// Add adds keys in order. isNew is as long as keys. Add returns how many keys were
	// added: all, unless there is an error, which is that of the next key. It wraps
	// ErrFull, ErrMemory, ErrNotFound, or ErrChunk while the filter is being loaded, or is
	// that of ctx.
	Add(ctx context.Context, keys [][]byte, isNew []bool) (int, error)

	// Contains looks keys up. found is as long as keys.
	Contains(ctx context.Context, keys [][]byte, found []bool) error

	// Info is cheap; Report reads the bits, or a sample of them.
	Info() Info
	Report() bloom.Report

	// Dump returns a chunk of the filter, and the iterator of the next chunk. The
	// iterator 0 begins a dump; next is 0 and the chunk empty at its end. A chunk has
	// at most 16 MiB. The dump has all keys that were added before it began, and
	// perhaps some added meanwhile. The chunks of a RedisBloom filter are those of
	// SCANDUMP. Those of other kinds must be requested in order, one dump at a time:
	// beginning another ends the previous one.
	Dump(iterator int64) (next int64, chunk []byte, err error)

	// Load loads such a chunk, given the iterator that Dump returned with it. The error
	// wraps ErrChunk. A filter of any kind except RedisBloom accepts its chunks only in
	// order, and no keys until all have arrived.
	Load(ctx context.Context, iterator int64, chunk []byte) error

	// Merge adds the keys of another filter of the store, which must have a name.
	// Lookups and adds work on both meanwhile, and may already find some of the other
	// filter's keys. If the error wraps bloom.ErrUnlike, nothing has changed. If it
	// wraps ErrNotFound, the other filter was dropped meanwhile, and some of its keys
	// were added.
	Merge(ctx context.Context, from Filter) error

	// Fold shrinks the filter by a factor, at a higher false-positive rate.
	Fold(ctx context.Context, by uint64) error
}
