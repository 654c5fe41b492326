package store

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/memory"
)

// value is what a name stands for. It is small, as there may be millions of them:
// rarely needed fields are elsewhere.
type value struct {
	local   *Local
	name    string // guarded by its shard, and changes under changing
	id      uint64 // never used again
	expires atomic.Int64
	body    body
	level   Level
	busy    uint8       // mergedInto and the others below; guarded by the gate
	dropped atomic.Bool // its name and its bits are gone; set with the gate held for writing
}

// What merges are doing with a value, or have left in it.
const (
	mergedInto = 1 << iota // another value is being merged into it
	mergedFrom             // it is being merged into another value
	leaked                 // it has bits of a failed merge, which the log will never have
)

// logsAll reports whether all added keys are logged, even those that are not new: the
// bits that made them "seen" may not be logged. The gate is held.
func (v *value) logsAll() bool {
	return v.busy&(mergedInto|leaked) != 0
}

// errDropped is returned to a caller that still has a filter whose name is gone.
var errDropped = fmt.Errorf("%w: the filter was dropped, or another took its place: look its name up again", ErrNotFound)

// body is the contents of a value: the bits of a filter and the means to add keys to
// them, or a text.
type body interface {
	kind() Kind

	// free releases the memory that the store has granted, except for overheadBytes, and
	// closes the bits as soon as nobody has them pinned. The gate is held for
	// writing, or nobody else has the body yet. The body must not be used afterwards.
	free(l *Local)

	// bits returns what must be pinned, nil if nothing. The gate is held.
	bits() io.Closer

	// The remaining methods are for filters. add is called with at most chunkKeys keys,
	// and logs those that it must. contains and info are called with the gate held for
	// reading, on a value that was not dropped; report is called with its bits pinned.
	// The others are called without the gate.
	add(v *value, keys [][]byte, isNew []bool) (int, error)
	contains(keys [][]byte, found []bool)
	info() Info
	report(v *value, bits io.Closer) bloom.Report
	dump(v *value, iterator int64) (next int64, chunk []byte, err error)
	load(v *value, iterator int64, chunk []byte) error
	fold(v *value, by uint64) error
}

// remover is a body whose keys may be removed: if it removes, remove is as add is, and count
// as contains.
type remover interface {
	removes() bool
	remove(v *value, keys [][]byte, removed []bool) (int, error)
	count(keys [][]byte, counts []int)
}

// chunkKeys is how many keys are added or looked up at a time.
const chunkKeys = 512

func (v *value) kind() Kind { return v.body.kind() }

// expired reports whether the name has expired.
func (v *value) expired() bool {
	at := v.expires.Load()
	return at != 0 && v.local.now().UnixMilli() >= at
}

// expiry returns when the name expires, zero if never.
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

// gate returns the filter's lock, which it shares with others.
func (v *value) gate() *gate { return &v.local.gates[v.id%gateCount] }

// isDropped reports whether the value has lost its name. If it has not and the gate is
// held, its bits stay until the gate is released.
func (v *value) isDropped() bool { return v.dropped.Load() || v.id < v.local.cleared.Load() }

// logged reports whether changes of the value are logged.
func (v *value) logged() bool { return v.local.log != nil && !v.isDropped() }

// text is a plain value.
type text []byte

func (t text) kind() Kind      { return String }
func (t text) bytes() uint64   { return memory.Allocated(uint64(len(t))) }
func (t text) free(l *Local)   { l.release(t.bytes()) }
func (t text) bits() io.Closer { return nil }

func (t text) add(*value, [][]byte, []bool) (int, error) { return 0, ErrWrongKind }
func (t text) contains([][]byte, []bool)                 {}
func (t text) info() Info                                { return Info{Spec: Spec{Kind: String}, Bytes: t.bytes()} }
func (t text) report(*value, io.Closer) bloom.Report     { return bloom.Report{} }
func (t text) dump(*value, int64) (int64, []byte, error) { return 0, nil, ErrWrongKind }
func (t text) load(*value, int64, []byte) error          { return ErrWrongKind }
func (t text) fold(*value, uint64) error                 { return ErrWrongKind }
