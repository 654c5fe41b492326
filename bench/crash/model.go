package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What the server must have. Each worker has names of its own and sends its commands
// over one connection, so they take effect in order. After a crash, its names are as
// some prefix of its commands leaves them, and that prefix includes all commands that
// were acknowledged (at everysec, after a power cut: all that were acknowledged some
// time earlier). In addition, all workers add to the same shared filters, which are
// never deleted, and add to and remove from the same removable filters.

// A span is a range of consecutive keys that one command adds.
type span struct {
	from, count int
	op          int       // index of the worker's command
	acked       time.Time // zero: not acknowledged, or not yet
	fresh       int       // how many were new, by the server's reply
	certain     bool      // found after a restart
}

// An object is a filter, whatever its current name.
type object struct {
	kind  string // as in filterKinds
	keys  int    // number of keys sent
	limit int
	folds int // how often it was folded to half its size
	spans []span
}

// An entry is the value of a name: a filter, a string, or nothing.
type entry struct {
	object  *object
	text    string
	expires int64 // milliseconds since 1970, 0: never
}

func (e entry) empty() bool { return e.object == nil && e.text == "" }

// names are a worker's entries. The first ones never expire, the others do, but for the
// last one, which is the mark that turnOver sets.
type names [markName + 1]entry

const (
	lastingNames  = 4
	expiringNames = 2
	markName      = lastingNames + expiringNames
)

// An op is a command that has been sent.
type op struct {
	before *names    // the names before it
	acked  time.Time // zero: not acknowledged
	object *object   // for an add: the filter and the index of its span
	span   int
	shared int // for an add to a shared filter: its number, from 1

	merged   *object // for a merge: the destination, and the range of its spans that are new
	from, to int

	removable int // for a change of a removable filter: its number, from 1
	steps     []step
	least     int // for wantCount: the least number that is right
}

// A worker is one connection's part of the load, with its expected results.
type worker struct {
	id     int
	plant  *plant
	now    *names
	first  int // number of the first op in ops
	ops    []op
	acked  int // number of acknowledged ops, counted from first
	shared [][]span
	next   int // number of the next key

	holdings []*holding // one for each of the removables

	adds     int       // acknowledged in total
	removals int       // acknowledged in total
	commands int       // acknowledged in total
	atDial   int       // value of commands when the connection was opened
	savedAt  time.Time // whatever was acknowledged earlier is in a snapshot
	failure  error     // a wrong reply
	stopped  error     // why the connection was closed
}

// removes reports whether keys can be removed from the filter. What is added to such a
// filter is logged at level none, too.
func (o *object) removes() bool { return strings.HasPrefix(o.kind, "counting") }

func (w *worker) name(slot int) string { return fmt.Sprintf("w%d:%d", w.id, slot) }

// key returns the text of a key. Different owners have different keys.
func key(owner, number int) string { return fmt.Sprintf("%d:%d", owner, number) }

// set changes the state of the worker's names, as of the op that is sent next.
func (w *worker) set(change func(next *names)) {
	next := *w.now
	change(&next)
	w.now = &next
}

// state returns the names after the first p ops.
func (w *worker) state(p int) *names {
	if p == len(w.ops) {
		return w.now
	}
	return w.ops[p].before
}

// settle makes the state after p ops the new initial state. found reports whether a
// span is there.
func (w *worker) settle(p int, found func(*object, span) bool) {
	state := *w.state(p)
	seen := map[*object]bool{}
	for slot := range state {
		o := state[slot].object
		if o == nil || seen[o] {
			continue
		}
		seen[o] = true
		o.spans = slices.DeleteFunc(o.spans, func(s span) bool { return !s.certain && (s.op >= w.first+p || !found(o, s)) })
		o.spans = joined(o.spans)
	}
	w.first += len(w.ops)
	w.ops, w.acked = w.ops[:0], 0
	w.now = &state
}

// joined merges adjacent spans, all of which are certain now.
func joined(spans []span) (out []span) {
	for _, s := range spans {
		s.certain = true
		if n := len(out); n > 0 && out[n-1].from+out[n-1].count == s.from {
			out[n-1].count += s.count
			out[n-1].fresh += s.fresh
			continue
		}
		out = append(out, s)
	}
	return out
}
