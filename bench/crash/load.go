package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/bloomery/bloom/internal/resp"
)

// filterKinds are the filters of the load, as arguments of BF.RESERVE. The workers'
// own filters get up to objectKeys keys.
var filterKinds = map[string][]string{
	"fixed":          {"0.0001", "4000", "NONSCALING"},
	"growing":        {"0.0001", "100"},
	"paired":         {"0.0001", "4000", "NONSCALING", "LAYOUT", "PAIRED"},
	"paired growing": {"0.0001", "100", "LAYOUT", "PAIRED", "EXPANSION", "2"},
	"window":         {"0.0001", "4000", "WINDOW", "24h"},

	"counting":         {"0.0001", "7000", "NONSCALING", "LAYOUT", "COUNTING"},
	"counting growing": {"0.0001", "200", "LAYOUT", "COUNTING", "EXPANSION", "2"},
}

var kindNames = []string{"fixed", "growing", "paired", "paired growing", "window", "counting", "counting growing"}

const objectKeys = 3000

// sharedFilters are the filters that all workers add to.
var sharedFilters = [][]string{
	{"0.0001", "1000"},
	{"0.0001", "200000", "NONSCALING"},
	{"0.0001", "1000", "LAYOUT", "PAIRED", "EXPANSION", "2"},
	{"0.05", "1000", "LAYOUT", "PAIRED", "EXPANSION", "2"}, // many keys are false positives, which are not logged
	{"0.0001", "200000", "WINDOW", "24h"},
}

// sharedKeys is a little less than the capacity of the smallest fixed one.
const sharedKeys = 190_000

// run sends commands and records the replies until the connection is closed.
func (w *worker) run(address string, rng *rand.Rand) {
	c, err := dial(address)
	if err != nil {
		w.stopped = err
		return
	}
	defer c.conn.Close()
	w.atDial = w.commands
	for w.failure == nil {
		var wants []want
		for range 1 + rng.IntN(6) {
			wants = w.act(c, rng, wants)
		}
		began := time.Now()
		if err := c.flush(); err != nil {
			w.stopped = err
			return
		}
		for _, expect := range wants {
			r, err := c.reply()
			if err != nil {
				w.stopped = err
				return
			}
			if !w.take(r, expect, began) {
				return
			}
		}
	}
}

// want is the kind of reply that a command must get.
type want byte

const (
	wantOK     want = iota
	wantNumber      // an integer
	wantAdds        // an integer, or an array of them
	wantMerge       // OK, or the error that the filters are unlike
	wantSteps       // one answer for each of the op's steps
	wantCount       // an integer, at least the op's
	wantSave        // OK: everything acknowledged before is in a snapshot
	wantAny         // any reply
)

// take records the reply to the first command that has none yet.
func (w *worker) take(r resp.Reply, expect want, sent time.Time) bool {
	if w.commands == w.atDial && r.Kind == resp.SimpleError && strings.HasPrefix(r.Text, "ERR max number of clients") {
		w.stopped = errors.New(r.Text) // the server is stopping
		return false
	}
	op, now := &w.ops[w.acked], time.Now()
	bad := false
	if expect == wantSave && r.Kind == resp.SimpleError && strings.Contains(r.Text, "already in progress") {
		expect = wantAny // another worker started that snapshot
	}
	switch expect {
	case wantMerge:
		if bad = r.Text != "OK" && !strings.HasPrefix(r.Text, "ERR unlike filters"); r.Text != "OK" {
			op.merged = nil
		}
	case wantOK, wantSave:
		bad = r.Kind != resp.SimpleString || r.Text != "OK"
	case wantNumber:
		bad = r.Kind != resp.Integer
	case wantCount:
		if bad = r.Kind != resp.Integer; !bad && int(r.Integer) < op.least {
			w.failure = fmt.Errorf("worker %d: LOST: a key is there %d times, by its count %d", w.id, op.least, r.Integer)
			return false
		}
	case wantSteps:
		if err := w.takeSteps(op, r); err != nil {
			w.failure = fmt.Errorf("worker %d: %w", w.id, err)
			return false
		}
	case wantAdds:
		bad = r.Kind != resp.Integer && r.Kind != resp.Array
	}
	fresh := int(r.Integer)
	for _, item := range r.Items {
		bad = bad || item.Kind != resp.Integer
		fresh += int(item.Integer)
	}
	if bad {
		w.failure = fmt.Errorf("worker %d: unexpected reply %c %.200q", w.id, r.Kind, r.Text)
		return false
	}
	if expect == wantSave {
		w.savedAt = sent
	}
	if expect == wantAdds {
		s := w.spanOf(op)
		s.acked, s.fresh = now, fresh
		w.adds += s.count
	}
	if op.merged != nil {
		for i := op.from; i < op.to; i++ {
			op.merged.spans[i].acked = now
		}
	}
	op.acked = now
	w.acked++
	w.commands++
	return true
}

// spanOf returns the span that an op adds.
func (w *worker) spanOf(o *op) *span {
	if o.shared > 0 {
		return &w.shared[o.shared-1][o.span]
	}
	return &o.object.spans[o.span]
}

// note appends an op, for the command that is sent next.
func (w *worker) note(before *names) *op {
	w.ops = append(w.ops, op{before: before})
	return &w.ops[len(w.ops)-1]
}

// act performs one action, which takes one or several commands.
func (w *worker) act(c *client, rng *rand.Rand, wants []want) []want {
	if rng.IntN(3) == 0 {
		return w.turnOver(c, rng, wants)
	}
	roll := rng.IntN(100)
	switch slot := rng.IntN(lastingNames); {
	case roll < 30:
		return w.addShared(c, rng, wants)
	case roll < 75:
		return w.addOwn(c, rng, slot, wants)
	case roll < 79:
		return w.change(c, wants, wantNumber, func(n *names) { n[slot] = entry{} }, "DEL", w.name(slot))
	case roll < 81:
		to := rng.IntN(lastingNames)
		if into, from := w.now[to].object, w.now[slot].object; into.takes(from) {
			return w.merge(c, wants, into, from, w.name(to), w.name(slot))
		}
		return wants
	case roll < 82:
		if o := w.now[slot].object; o != nil && o.kind == "paired" && o.folds < mostFolds {
			o.folds++
			return w.change(c, wants, wantAny, nil, "BF.FOLD", w.name(slot), "2")
		}
		return wants
	case roll < 85:
		to := rng.IntN(lastingNames)
		if w.now[slot].empty() || slot == to {
			return wants
		}
		return w.change(c, wants, wantOK, func(n *names) { n[to], n[slot] = n[slot], entry{} }, "RENAME", w.name(slot), w.name(to))
	case roll < 89:
		to := rng.IntN(lastingNames)
		if w.now[slot].object == nil || w.now[to].object == nil {
			return wants
		}
		return w.change(c, wants, wantOK, func(n *names) { n[to], n[slot] = n[slot], n[to] }, "BF.SWAP", w.name(slot), w.name(to))
	case roll < 92:
		text := strconv.Itoa(rng.Int())
		return w.change(c, wants, wantOK, func(n *names) { n[slot] = entry{text: text} }, "SET", w.name(slot), text)
	case roll < 98:
		return w.expiring(c, rng, lastingNames+rng.IntN(expiringNames), wants)
	case rng.Float64() > w.plant.saves:
		return wants
	case roll == 98:
		return w.change(c, wants, wantAny, nil, "BGSAVE")
	}
	return w.change(c, wants, wantSave, nil, "SAVE")
}

// change sends a command that changes names.
func (w *worker) change(c *client, wants []want, expect want, next func(*names), words ...string) []want {
	w.note(w.now)
	if next != nil {
		w.set(next)
	}
	c.command(words...)
	return append(wants, expect)
}

// mostFolds is how often the paired filter of the load can be folded by two.
const mostFolds = 2

// takes reports whether from can be merged into o.
func (o *object) takes(from *object) bool {
	if o == nil || from == nil || o == from || o.kind != from.kind || o.folds != from.folds {
		return false
	}
	return (o.kind == "fixed" || o.kind == "paired") && o.keys+from.keys <= o.limit
}

// merge merges one filter into another, and records the keys as keys of both. The
// server refuses if one of them has lost a fold in a crash.
func (w *worker) merge(c *client, wants []want, into, from *object, name, other string) []want {
	op := w.note(w.now)
	op.merged, op.from = into, len(into.spans)
	for _, s := range from.spans {
		if s.acked.IsZero() && !s.certain {
			continue // the add may have been refused
		}
		into.spans = append(into.spans, span{from: s.from, count: s.count, op: w.first + len(w.ops) - 1})
	}
	op.to = len(into.spans)
	into.keys += from.keys
	c.command("BF.MERGE", name, other)
	return append(wants, wantMerge)
}

// reserve replaces what a name has by a filter of a random kind.
func (w *worker) reserve(c *client, rng *rand.Rand, slot int, wants []want) []want {
	wants = w.change(c, wants, wantNumber, func(n *names) { n[slot] = entry{} }, "DEL", w.name(slot))
	o := &object{kind: kindNames[rng.IntN(len(kindNames))], limit: objectKeys}
	words := append([]string{"BF.RESERVE", w.name(slot)}, filterKinds[o.kind]...)
	return w.change(c, wants, wantOK, func(n *names) { n[slot].object = o }, words...)
}

func (w *worker) addOwn(c *client, rng *rand.Rand, slot int, wants []want) []want {
	o := w.now[slot].object
	if o == nil || o.keys >= o.limit {
		wants = w.reserve(c, rng, slot, wants)
		o = w.now[slot].object
	}
	add := func(words int) {
		op := w.note(w.now)
		op.object, op.span = o, len(o.spans)
		o.spans = append(o.spans, span{from: w.next, count: words, op: w.first + len(w.ops) - 1})
		w.sendAdd(c, w.name(slot), w.id, w.next, words)
		w.next += words
		o.keys += words
		wants = append(wants, wantAdds)
	}
	if n := 1 + rng.IntN(60); rng.IntN(2) == 0 {
		add(n)
	} else {
		for range n {
			add(1)
		}
	}
	return wants
}

// sendAdd sends a BF.ADD, or a BF.MADD for more than one key.
func (w *worker) sendAdd(c *client, name string, owner, from, count int) {
	command := "BF.MADD"
	if count == 1 {
		command = "BF.ADD"
	}
	c.begin(2 + count)
	c.word(command)
	c.word(name)
	for i := range count {
		c.word(key(owner, from+i))
	}
}

// addShared adds keys to a shared filter: new ones, or ones that another worker may
// be adding at the same time.
func (w *worker) addShared(c *client, rng *rand.Rand, wants []want) []want {
	n, shared := 1+rng.IntN(120), rng.IntN(len(sharedFilters))
	counter := &w.plant.counters[shared]
	from := int(counter.Load())
	switch {
	case from > sharedKeys:
		from = rng.IntN(sharedKeys)
	case from < 200 || rng.IntN(3) > 0:
		from = int(counter.Add(int64(n))) - n
	default:
		from -= 1 + rng.IntN(200)
	}
	op := w.note(w.now)
	op.shared, op.span = shared+1, len(w.shared[shared])
	w.shared[shared] = append(w.shared[shared], span{from: from, count: n})
	w.sendAdd(c, sharedName(shared), sharedOwner, from, n)
	return append(wants, wantAdds)
}

const sharedOwner = -1

func sharedName(i int) string { return fmt.Sprintf("shared:%d", i) }

// expiring changes a name that expires.
func (w *worker) expiring(c *client, rng *rand.Rand, slot int, wants []want) []want {
	e := w.now[slot]
	soon := e.expires != 0 && e.expires < time.Now().Add(time.Minute).UnixMilli()
	switch {
	case e.empty() || soon: // it may have expired
		if rng.IntN(2) == 0 {
			text := strconv.Itoa(rng.Int())
			return w.change(c, wants, wantOK, func(n *names) { n[slot] = entry{text: text} }, "SET", w.name(slot), text)
		}
		return w.reserve(c, rng, slot, wants)
	case rng.IntN(3) == 0:
		return w.change(c, wants, wantNumber, func(n *names) { n[slot].expires = 0 }, "PERSIST", w.name(slot))
	case rng.IntN(2) == 0 && e.object != nil && e.object.keys < e.object.limit:
		return w.addOwn(c, rng, slot, wants)
	}
	at := time.Now().Add(time.Hour).UnixMilli()
	if rng.IntN(2) == 0 {
		at = time.Now().UnixMilli() + 20 + rng.Int64N(150)
	}
	return w.change(c, wants, wantNumber, func(n *names) { n[slot].expires = at }, "PEXPIREAT", w.name(slot), strconv.FormatInt(at, 10))
}
