package store

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/memory"
)

// value is what a name stands for. It is small, as there may be millions: what
// only some need is elsewhere.
type value struct {
	local   *Local
	name    string // guarded by its shard, and changes under changing
	id      uint64 // never used again
	expires atomic.Int64
	body    body
	level   Level
	busy    uint8       // what is being done to it; guarded by the gate
	dropped atomic.Bool // it has no name any more, and its bits are gone; set with the gate held
}

// What may be done to a value for a while.
const (
	mergedInto = 1 << iota // another one is merged into it
	mergedFrom             // it is merged into another one
	leaked                 // it has bits of a merge that failed, which only a snapshot can save
)

// logsAll reports whether all keys that are added go into the log, also those that
// are not new: what made them old may not be in the log. The gate is held.
func (v *value) logsAll() bool {
	return v.busy&(mergedInto|leaked) != 0
}

// errDropped is returned to a caller that still has a filter whose name is gone.
var errDropped = fmt.Errorf("%w: the filter was dropped, or another took its place: look its name up again", ErrNotFound)

// body is what the value is: the bits of a filter, and how keys come to them, or
// a text.
type body interface {
	kind() Kind

	// giveBack returns the memory that the store has granted, without the
	// besideBytes, and that of the bits as soon as nobody has them pinned. The gate is
	// held alone, or nobody else has the body yet; it is used no more.
	giveBack(l *Local)

	// bits are what is to be pinned, nil if there is nothing. The gate is held.
	bits() io.Closer

	// The rest is for filters. add takes at most chunkKeys keys, of which it logs
	// those that it must. contains and info are called with the gate held for reading,
	// of a value that was not dropped; report with its bits pinned.
	add(v *value, keys [][]byte, isNew []bool) (int, error)
	contains(keys [][]byte, found []bool)
	info() Info
	report(bits io.Closer) bloom.Report
	dump(v *value, iterator int64) (next int64, chunk []byte, err error)
	load(v *value, iterator int64, chunk []byte) error
	fold(v *value, by uint64) error
}

// chunkKeys is how many keys are added or looked up at a time.
const chunkKeys = 512

func (v *value) kind() Kind { return v.body.kind() }

// expired reports whether the name's time is over.
func (v *value) expired() bool {
	at := v.expires.Load()
	return at != 0 && v.local.now().UnixMilli() >= at
}

// expiry is when the name ends, zero if never.
func (v *value) expiry() time.Time { return fromMillis(v.expires.Load()) }

// Times of expiry are kept, and logged, in milliseconds since 1970; 0 is never.

func toMillis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return max(at.UnixMilli(), 1)
}

func fromMillis(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMilli(at)
}

// gate is the filter's lock, which it shares with others.
func (v *value) gate() *gate { return &v.local.gates[v.id%gateCount] }

// isDropped reports whether the value has lost its name. With the gate held, its bits
// are there until the gate is let go if it has not.
func (v *value) isDropped() bool { return v.dropped.Load() || v.id < v.local.cleared.Load() }

// logged reports whether what happens to the value goes into the log.
func (v *value) logged() bool { return v.local.log != nil && !v.isDropped() }

// text is a plain value.
type text []byte

func (t text) kind() Kind        { return String }
func (t text) bytes() uint64     { return memory.Allocated(uint64(len(t))) }
func (t text) giveBack(l *Local) { l.release(t.bytes()) }
func (t text) bits() io.Closer   { return nil }

func (t text) add(*value, [][]byte, []bool) (int, error) { return 0, ErrWrongKind }
func (t text) contains([][]byte, []bool)                 {}
func (t text) info() Info                                { return Info{Spec: Spec{Kind: String}, Bytes: t.bytes()} }
func (t text) report(io.Closer) bloom.Report             { return bloom.Report{} }
func (t text) dump(*value, int64) (int64, []byte, error) { return 0, nil, ErrWrongKind }
func (t text) load(*value, int64, []byte) error          { return ErrWrongKind }
func (t text) fold(*value, uint64) error                 { return ErrWrongKind }
