package store

import (
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
	dropped atomic.Bool // it has no name any more; set with the gate held
}

// body is what the value is: the bits of a filter, and how keys come to them, or
// a text.
type body interface {
	kind() Kind

	// giveBack returns the memory that the store has granted, without the
	// besideBytes. Whoever still has the body in hand goes on at nobody's expense.
	// The gate is held alone, or nobody else has the body yet.
	giveBack(l *Local)

	// The rest is for filters. add takes at most chunkKeys keys, of which it logs
	// those that it must.
	add(v *value, keys [][]byte, isNew []bool) (int, error)
	contains(keys [][]byte, found []bool)
	info() Info
	report() bloom.Report
	dump(v *value, iterator int64) (next int64, chunk []byte, err error)
	load(v *value, iterator int64, chunk []byte) error
	merge(v, from *value) error
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

// logged reports whether what happens to the value goes into the log.
func (v *value) logged() bool { return v.local.log != nil && !v.dropped.Load() }

// text is a plain value.
type text []byte

func (t text) kind() Kind        { return String }
func (t text) bytes() uint64     { return memory.Allocated(uint64(len(t))) }
func (t text) giveBack(l *Local) { l.release(t.bytes()) }

func (t text) add(*value, [][]byte, []bool) (int, error) { return 0, ErrWrongKind }
func (t text) contains([][]byte, []bool)                 {}
func (t text) info() Info                                { return Info{Spec: Spec{Kind: String}, Bytes: t.bytes()} }
func (t text) report() bloom.Report                      { return bloom.Report{} }
func (t text) dump(*value, int64) (int64, []byte, error) { return 0, nil, ErrWrongKind }
func (t text) load(*value, int64, []byte) error          { return ErrWrongKind }
func (t text) merge(_, _ *value) error                   { return ErrWrongKind }
func (t text) fold(*value, uint64) error                 { return ErrWrongKind }
