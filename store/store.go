// Package store keeps filters by name, for servers: [Store] is what a server
// needs to know, [Local] is one in this process's memory, with its files in a
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

	// RedisBloom is the filter of RedisBloom's BF commands, bit for bit: a chain
	// of classic filters; see redisbloom.Filter.
	RedisBloom

	// Paired is our own layout: a bloom.Shared, or a bloom.Scalable where it
	// may grow. Fewer bits, one or two cache misses, and beyond 2^30 keys.
	Paired

	// Window is a bloom.Window: it forgets.
	Window

	// String is a plain value, so that clients can be told of a wrong type.
	String
)

// String is the word for a kind that flags, replies and messages use.
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
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Spec says what filter to create.
type Spec struct {
	Kind     Kind
	Capacity uint64  // n; of a Window, in one span
	Rate     float64 // p

	// Growth is how many times larger each further layer is; zero for a filter
	// that refuses keys beyond its capacity with ErrFull. A window keeps Rate in
	// whatever pattern Capacity keys come in a span. Beyond, with any Growth it
	// doubles the generation they come in; with none it refuses keys when its newest
	// generation holds Capacity.
	Growth uint32

	Span time.Duration // of a Window

	// Public: hashed by XXH3, for which anybody can craft keys that look seen; false:
	// by SipHash with the store's secret. A RedisBloom filter is always public.
	Public bool

	Expires time.Time // zero: never
	Level   Level     // zero: the store's
}

// Level says when an add is safe from the machine's power failing. From the end of
// this process alone, whichever way it comes about, an add that was committed is
// safe at any level but Unlogged.
type Level uint8

const (
	StoreLevel  Level = iota // whatever the store's configuration says
	Always                   // when Commit has returned
	EverySecond              // a second later
	Unlogged                 // when a snapshot was taken, or the store closed: adds are not logged
)

// String is the word that flags and messages use.
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

// Info is what a filter says about itself.
type Info struct {
	Spec
	Bytes  uint64 // of memory, all included, as RedisBloom's BF.INFO counts them
	Items  uint64 // adds that were new; of a Window, also those it has forgotten since
	Room   uint64 // keys that fit in all layers; of a Window, the Capacity of a span
	Layers []Layer
}

// Layer is one of a filter's layers, or of those of a Window's generations: the
// oldest first.
type Layer struct {
	Bytes    uint64 // of bits
	Bits     uint64
	Probes   int
	Capacity uint64
	Items    uint64
	Rate     float64 // planned
}

// UnfinishedPrefix begins the names, with a number behind, under which a server fills
// filters that it has not finished, as for RESTORE. Those that a crash has left are
// dropped when the store is opened again.
const UnfinishedPrefix = "\x00restore:"

// Errors of all stores. What a filter cannot do wraps [errors.ErrUnsupported].
var (
	ErrNotFound  = errors.New("store: not found")
	ErrExists    = errors.New("store: exists already")
	ErrWrongKind = errors.New("store: the name stands for another kind of value")

	// ErrFull: a filter without growth has as many keys as it was planned for, or
	// one with growth as many as its rate can be kept for.
	ErrFull = errors.New("store: the filter is full")

	// ErrMemory: the store's limit would be exceeded; the message names the bytes
	// needed, in use and allowed.
	ErrMemory = errors.New("store: out of memory")

	// ErrChunk: a chunk of a dump that does not fit, or is none.
	ErrChunk = errors.New("store: bad chunk")

	// ErrStopped: the store can no longer make anything durable, and has stopped
	// acknowledging; what it was is in the message.
	ErrStopped = errors.New("store: stopped")
)

// Store is filters by name. All methods may be called by many goroutines at
// once. A name is any bytes.
//
// What a call changed is acknowledged only when a later Commit has returned: a
// server executes what has come, commits once, and then answers.
type Store interface {
	// Create makes a filter. The error wraps ErrExists, ErrMemory or a sentinel of
	// package bloom.
	Create(ctx context.Context, name string, spec Spec) (Filter, error)

	// Open returns the filter of that name, or an error that wraps ErrNotFound or
	// ErrWrongKind. The filter may be dropped before it is used. Open is quick, and does not allocate: a server asks before every
	// run of commands.
	Open(name []byte) (Filter, error)

	// Load creates a filter of the first chunk of a dump, as Filter.Dump(0) gave it;
	// the others follow by Filter.Load.
	Load(ctx context.Context, name string, header []byte) (Filter, error)

	// Set and Get are for plain values. Get's error wraps ErrNotFound or
	// ErrWrongKind. Set replaces whatever had the name.
	Set(ctx context.Context, name string, value []byte) error
	Get(name []byte) ([]byte, error)

	// Kind is what the name stands for, None if nothing. Expires is when it will
	// end, zero if never.
	Kind(name []byte) (kind Kind, expires time.Time)

	// Rename gives a value another name, in place of what had it. Swap exchanges
	// two. Both are one step for everyone who looks. Expire sets when a name
	// ends, the zero time that it does not. They wrap ErrNotFound.
	Rename(ctx context.Context, from, to string) error
	Swap(ctx context.Context, a, b string) error
	Expire(ctx context.Context, name string, at time.Time) error

	// Drop forgets the names and returns how many there were. Clear forgets all.
	Drop(ctx context.Context, names ...string) (int, error)
	Clear(ctx context.Context) error

	// List returns some names, count of them or more, and where to go on: 0
	// begins, and 0 is the end. What is there from the beginning to the end is
	// listed at least once.
	List(cursor uint64, count int) (names []string, next uint64)

	// Len is how many names there are.
	Len() int

	// Usage is the memory of all filters and values, in bytes, and the limit to
	// it, zero if there is none.
	Usage() (bytes, limit uint64)

	// Commit returns when all that returned before it is as durable as was asked
	// for. The error wraps ErrStopped, or is ctx's if ctx ends first: then it is
	// unknown what is durable, and nothing may be acknowledged.
	Commit(ctx context.Context) error

	// OnEnd calls back, from a goroutine of its own, when a name has expired.
	OnEnd(func(name string))

	Close() error
}

// Filter is one filter of a store. It may be kept: it goes on under another name, and
// ends when its name is dropped or given to another filter. Its memory is then given
// back as soon as nobody is using it, and its methods return errors that wrap
// ErrNotFound, and zeros where they have none. All methods may be called by many
// goroutines at once, and of those that add one key at most one is told that it is
// new. None of them makes calls of another wait for long: what reads or writes many
// bits does so piece by piece.
type Filter interface {
	// Add adds keys one after the other. isNew is as long as keys. It returns how
	// many keys were taken, all unless there is an error, which is that of the
	// next key: ErrFull, ErrMemory, ErrNotFound.
	Add(ctx context.Context, keys [][]byte, isNew []bool) (int, error)

	// Contains looks keys up. found is as long as keys.
	Contains(ctx context.Context, keys [][]byte, found []bool) error

	// Info costs little; Report reads the bits, or a sample.
	Info() Info
	Report() bloom.Report

	// Dump returns a chunk of the filter, and the iterator of the next: 0 begins.
	// The end is next = 0 and an empty chunk. A chunk has at most 16 MiB. The dump has
	// all keys that were added before it began, and perhaps some that came meanwhile.
	// Of a RedisBloom filter the chunks are SCANDUMP's. Of others they are to be asked
	// for in their order, and there is one dump at a time: who begins another ends
	// the one before.
	Dump(iterator int64) (next int64, chunk []byte, err error)

	// Load takes such a chunk with the iterator that came with it. The error wraps
	// ErrChunk. A filter of another kind than RedisBloom takes its chunks in their
	// order, and no keys until all have come.
	Load(ctx context.Context, iterator int64, chunk []byte) error

	// Merge adds all that another filter of the store has, which must have a name.
	// Keys that are added to either meanwhile are answered as ever; some of the other
	// filter's may be found already. The error wraps bloom.ErrUnlike, and then nothing
	// has changed; or ErrNotFound: if the other one was dropped meanwhile, some of its
	// keys were added.
	Merge(ctx context.Context, from Filter) error

	// Fold makes the filter smaller by a factor, at a higher rate.
	Fold(ctx context.Context, by uint64) error
}
