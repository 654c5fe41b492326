package main

import (
	"fmt"
	"slices"
	"time"
)

// What the server must have. Each worker has names of its own, and sends its
// commands over one connection, so they take effect in their order: after a crash
// its names are as some first part of its commands leaves them, and that part has
// all commands that were acknowledged (or, at everysec and after a power cut, all
// that were acknowledged some time before). Besides, all workers add to the same
// shared filters, which nobody drops.

// A span is keys with consecutive numbers that one command adds.
type span struct {
	from, count int
	op          int       // which command of the worker
	acked       time.Time // zero: not acknowledged, or not yet
	fresh       int       // of how many the server said that they were new
	certain     bool      // found after a restart
}

// An object is a filter, whatever its name is at the time.
type object struct {
	kind  string // as in filterKinds
	keys  int    // that were sent
	limit int
	folds int // how often it was made half as large
	spans []span
}

// An entry is what a name stands for: a filter, or a text, or nothing.
type entry struct {
	object  *object
	text    string
	expires int64 // milliseconds since 1970, 0: never
}

func (e entry) empty() bool { return e.object == nil && e.text == "" }

// names are a worker's: the first ones never expire, the others do.
type names [lastingNames + expiringNames]entry

const (
	lastingNames  = 4
	expiringNames = 2
)

// An op is a command that was sent.
type op struct {
	before *names    // what the names were before it
	acked  time.Time // zero: not
	object *object   // of an add: to which filter, and which of its spans
	span   int
	shared int // of an add to a shared filter: which, from 1

	merged   *object // of a merge: into which filter, and which of its spans came
	from, to int
}

// A worker is one connection's part of the load, and what must come of it.
type worker struct {
	id     int
	plant  *plant
	now    *names
	first  int // number of the first op in ops
	ops    []op
	acked  int // number of ops that were acknowledged, counted from first
	shared [][]span
	next   int // number of the next key

	adds     int       // acknowledged, in all
	commands int       // the same
	atDial   int       // commands, when the connection began
	savedAt  time.Time // what was acknowledged before is in a snapshot
	failure  error     // an answer that should not have been
	stopped  error     // how the connection ended
}

func (w *worker) name(slot int) string { return fmt.Sprintf("w%d:%d", w.id, slot) }

// key is the text of a key; those of workers differ.
func key(owner, number int) string { return fmt.Sprintf("%d:%d", owner, number) }

// set gives the worker's names another state, from the op that is sent next.
func (w *worker) set(change func(next *names)) {
	next := *w.now
	change(&next)
	w.now = &next
}

// state is what the names are when p of the ops have happened.
func (w *worker) state(p int) *names {
	if p == len(w.ops) {
		return w.now
	}
	return w.ops[p].before
}

// settle makes the state after p ops the one from which all begins. found tells
// which spans are there.
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

// joined makes one of neighbours, all of which are certain now.
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
