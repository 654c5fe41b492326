package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/bloomery/bloom/internal/resp"
)

// A promise determines what must be there after a crash.
type promise struct {
	level string
	cut   time.Time // when the power was cut; zero: the process was killed
}

// lossy reports whether the most recent commands, names included, may be lost.
func (p promise) lossy() bool { return !p.cut.IsZero() && p.level == "everysec" }

// losses are acknowledged adds that are gone, and acknowledged removals of keys that are
// there again, as the promise allows.
type losses struct {
	adds     int
	removals int
	oldest   time.Duration // how long before the cut the first one was acknowledged
}

func (l *losses) add(adds int, age time.Duration) { l.join(losses{adds: adds, oldest: age}) }

func (l *losses) join(m losses) {
	l.adds += m.adds
	l.removals += m.removals
	l.oldest = max(l.oldest, m.oldest)
}

// A checker compares what a server has with what it must have.
type checker struct {
	*client
	plant   *plant
	promise promise
	savedAt time.Time // at level none: whatever was acknowledged earlier is in a snapshot
	all     bool      // also look for keys that were found before
	lost    losses
	doubts  []map[string]doubt // for each removable filter, the keys in doubt since this crash
}

// needed reports whether an acknowledged span must be there.
func (k *checker) needed(s span) bool {
	return s.certain || !s.acked.IsZero() && (k.promise.level != "none" || s.acked.Before(k.savedAt))
}

// keeps is needed for a span of a worker's own filter.
func (k *checker) keeps(o *object, s span) bool {
	return k.needed(s) || o.removes() && !s.acked.IsZero()
}

// check looks for everything. What it finds becomes the model's new initial state.
func (p *plant) check(address string, made promise, all bool) (losses, error) {
	c, err := dial(address)
	if err != nil {
		return losses{}, err
	}
	defer c.conn.Close()
	k := &checker{client: c, plant: p, promise: made, all: all}
	for range removables {
		k.doubts = append(k.doubts, map[string]doubt{})
	}
	for _, w := range p.workers {
		if w.failure != nil {
			return losses{}, w.failure
		}
		if w.savedAt.After(k.savedAt) {
			k.savedAt = w.savedAt
		}
	}
	for _, w := range p.workers {
		if err := k.worker(w); err != nil {
			return k.lost, fmt.Errorf("worker %d: %w", w.id, err)
		}
	}
	for i := range sharedFilters {
		if err := k.shared(i); err != nil {
			return k.lost, fmt.Errorf("%s: %w", sharedName(i), err)
		}
	}
	for i, f := range removables {
		if err := k.removable(i); err != nil {
			return k.lost, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return k.lost, nil
}

// seen is what the server holds under a worker's names.
type seen struct {
	from, to time.Time // when the server was asked
	slots    [markName + 1]struct {
		kind    string
		text    string
		expires int64
		card    int
		shape   shape
		objects map[*object]found
	}
}

// filterType is the TYPE of a filter.
const filterType = "MBbloom--"

// A shape is what BF.DEBUG says of a filter's first layer. It tells the kinds of the
// load apart also while they are empty.
type shape struct{ bits, hashes int }

// shapeOf reads a reply of BF.DEBUG.
func shapeOf(r resp.Reply) (s shape) {
	if len(r.Items) > 1 {
		var bytes int
		fmt.Sscanf(r.Items[1].Text, "bytes:%d bits:%d hashes:%d", &bytes, &s.bits, &s.hashes)
	}
	return s
}

// is reports whether a filter of this shape was made with the other one. It may have
// been folded since.
func (s shape) is(made shape) bool {
	folded := false
	for folds := range mostFolds + 1 {
		folded = folded || s.bits<<folds == made.bits
	}
	return s.hashes == made.hashes && folded
}

// found describes which of an object's keys a name has.
type found struct {
	missing []int // the number of missing keys of each span
	first   int   // the first op that lacks a needed key
}

// worker finds out how many of the worker's commands took effect.
func (k *checker) worker(w *worker) error {
	s, err := k.look(w)
	if err != nil {
		return err
	}
	t, err := k.trace(w)
	if err != nil {
		return err
	}
	fits := func(p int) error {
		if err := k.matches(w, s, p); err != nil {
			return err
		}
		return t.fits(p)
	}
	var why error
	for p := w.acked; p <= len(w.ops); p++ {
		err := fits(p)
		if err == nil {
			k.settle(w, s, t, p)
			return nil
		}
		if why == nil {
			why = err
		}
	}
	if !k.promise.lossy() {
		return why
	}
	for p := w.acked - 1; p >= 0; p-- {
		if fits(p) != nil {
			continue
		}
		lost := losses{oldest: k.promise.cut.Sub(w.ops[p].acked)}
		for i := p; i < w.acked; i++ {
			o := &w.ops[i]
			if o.object != nil {
				lost.adds += w.spanOf(o).count
			}
			for _, s := range o.steps {
				switch s.change {
				case adds:
					lost.adds++
				case removes:
					lost.removals++
				}
			}
		}
		k.lost.join(lost)
		k.settle(w, s, t, p)
		return nil
	}
	return fmt.Errorf("no earlier state matches either: %w", why)
}

// settle makes the state after p ops the new initial state. As the names and filters may
// not distinguish it from those before and after it, some keys of removable filters are in
// doubt.
func (k *checker) settle(w *worker, s *seen, t *trace, p int) {
	least := w.acked
	if k.promise.lossy() {
		least = 0
	}
	from, to := p, p
	for i := p - 1; i >= least && k.matches(w, s, i) == nil; i-- {
		if t.fits(i) == nil {
			from = i
		}
	}
	for i := p + 1; i <= len(w.ops) && k.matches(w, s, i) == nil; i++ {
		if t.fits(i) == nil {
			to = i
		}
	}
	for i, doubts := range w.settleSteps(t.first(from), t.last(to)) {
		for number, d := range doubts {
			k.doubts[i][key(w.id, number)] = d
		}
	}
	w.settle(p, s.has)
}

// look queries all names of a worker.
func (k *checker) look(w *worker) (*seen, error) {
	s := &seen{from: time.Now()}
	for slot := range s.slots {
		k.command("TYPE", w.name(slot))
		k.command("PEXPIRETIME", w.name(slot))
		k.command("GET", w.name(slot))
		k.command("BF.CARD", w.name(slot))
		k.command("BF.DEBUG", w.name(slot))
	}
	if err := k.flush(); err != nil {
		return nil, err
	}
	for slot := range s.slots {
		var replies [5]resp.Reply
		for i := range replies {
			var err error
			if replies[i], err = k.reply(); err != nil {
				return nil, err
			}
		}
		at := &s.slots[slot]
		at.kind, at.expires, at.card = replies[0].Text, replies[1].Integer, int(replies[3].Integer)
		if at.kind == "string" {
			at.text = replies[2].Text
		}
		if at.kind == filterType {
			at.shape = shapeOf(replies[4])
		}
		at.objects = map[*object]found{}
	}
	s.to = time.Now()
	return s, nil
}

// matches returns nil if the names are as the first p of the worker's commands leave
// them, and hold all keys that these commands added.
func (k *checker) matches(w *worker, s *seen, p int) error {
	state := w.state(p)
	for slot, e := range state {
		at, absent := &s.slots[slot], s.slots[slot].kind == "none"
		if e.expires != 0 && (absent && s.to.UnixMilli() >= e.expires) {
			continue // it has expired
		}
		switch {
		case e.empty():
			if !absent {
				return fmt.Errorf("%s is a %s, want nothing", w.name(slot), at.kind)
			}
			continue
		case e.expires != 0 && s.from.UnixMilli() > e.expires:
			return fmt.Errorf("%s should have expired %d ms ago", w.name(slot), s.from.UnixMilli()-e.expires)
		case absent:
			return fmt.Errorf("%s is gone", w.name(slot))
		case e.expires == 0 && at.expires != -1 || e.expires != 0 && at.expires != e.expires:
			return fmt.Errorf("%s expires at %d, want %d", w.name(slot), at.expires, e.expires)
		case e.object == nil && at.text != e.text:
			return fmt.Errorf("%s is %q, want %q", w.name(slot), at.text, e.text)
		case e.object != nil && at.kind != filterType:
			return fmt.Errorf("%s is a %s, want a %s filter", w.name(slot), at.kind, e.object.kind)
		case e.object != nil && !at.shape.is(k.plant.shapes[e.object.kind]):
			return fmt.Errorf("%s is a filter of shape %+v, want a %s one", w.name(slot), at.shape, e.object.kind)
		}
		if e.object != nil {
			if err := k.hasKeys(w, s, slot, e.object, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasKeys returns nil if the name has the keys that the first p commands added to
// the object, and counts them correctly.
func (k *checker) hasKeys(w *worker, s *seen, slot int, o *object, p int) error {
	at := &s.slots[slot]
	have, ok := at.objects[o]
	if !ok {
		missing, err := k.missing(w.name(slot), w.id, o.spans)
		if err != nil {
			return err
		}
		have = found{missing: missing, first: math.MaxInt}
		for i, n := range missing {
			if n > 0 && k.keeps(o, o.spans[i]) {
				if o.spans[i].certain {
					have.first = -1
				}
				have.first = min(have.first, o.spans[i].op)
			}
		}
		at.objects[o] = have
	}
	if e := w.state(p)[slot]; e.expires != 0 && time.Now().UnixMilli() >= e.expires {
		return nil // it has expired since its kind was queried
	}
	if have.first < w.first+p {
		lost, of, first := 0, 0, time.Time{}
		for i, n := range have.missing {
			if x := o.spans[i]; k.keeps(o, x) && (x.certain || x.op < w.first+p) {
				of += x.count
				if lost += n; n > 0 && first.IsZero() {
					first = x.acked
				}
			}
		}
		return fmt.Errorf("LOST: %s, a %s filter, has lost %d of %d acknowledged keys, the first acknowledged at %v; it counts %d", w.name(slot), o.kind, lost, of, first.Format(time.StampMicro), at.card)
	}
	fresh := 0
	for _, x := range o.spans {
		if k.keeps(o, x) && (x.certain || x.op < w.first+p) {
			fresh += x.fresh
		}
	}
	if at.card < fresh && (k.promise.level != "none" || o.removes()) { // at none, a snapshot may have bits of adds that it does not count
		return fmt.Errorf("%s, a %s filter, counts %d keys, but %d were new", w.name(slot), o.kind, at.card, fresh)
	}
	return nil
}

// has reports whether all keys of the span are there.
func (s *seen) has(o *object, x span) bool {
	for slot := range s.slots {
		have, ok := s.slots[slot].objects[o]
		if !ok {
			continue
		}
		for i := range have.missing {
			if o.spans[i].from == x.from {
				return have.missing[i] == 0
			}
		}
	}
	return false
}

// Queries are sent as commands of queryKeys keys, up to queries of them at once.
const (
	queryKeys = 500
	queries   = 20
)

// missing counts the keys of each span that a filter does not have.
func (k *checker) missing(name string, owner int, spans []span) ([]int, error) {
	missing := make([]int, len(spans))
	type asked struct{ span, number int }
	var keys []asked
	ask := func() error {
		for at := 0; at < len(keys); at += queryKeys {
			part := keys[at:min(at+queryKeys, len(keys))]
			k.begin(2 + len(part))
			k.word("BF.MEXISTS")
			k.word(name)
			for _, a := range part {
				k.word(key(owner, a.number))
			}
		}
		if err := k.flush(); err != nil {
			return err
		}
		for at := 0; at < len(keys); at += queryKeys {
			r, err := k.reply()
			if err != nil {
				return err
			}
			if want := min(queryKeys, len(keys)-at); len(r.Items) != want {
				return fmt.Errorf("%s: %d answers of %d: %c %.200q", name, len(r.Items), want, r.Kind, r.Text)
			}
			for i, item := range r.Items {
				if item.Integer == 0 {
					missing[keys[at+i].span]++
				}
			}
		}
		keys = keys[:0]
		return nil
	}
	for i, s := range spans {
		for j := range s.count {
			if keys = append(keys, asked{i, s.from + j}); len(keys) == queryKeys*queries {
				if err := ask(); err != nil {
					return nil, err
				}
			}
		}
	}
	return missing, ask()
}

// shared looks for the keys of a shared filter.
func (k *checker) shared(i int) error {
	var spans []span
	if k.all {
		spans = append(spans, k.plant.certain[i]...)
	}
	for _, w := range k.plant.workers {
		spans = append(spans, w.shared[i]...)
		w.shared[i] = w.shared[i][:0]
	}
	missing, err := k.missing(sharedName(i), sharedOwner, spans)
	if err != nil {
		return err
	}
	fresh, gone := 0, 0
	var kept []span
	for j, s := range spans {
		switch n := missing[j]; {
		case n == 0:
			if !s.certain {
				fresh += s.fresh
			}
			s.certain = true
			kept = append(kept, s)
		case !k.needed(s):
			if !s.acked.IsZero() { // level none
				k.lost.add(n, 0)
				gone += n
			}
		case k.promise.lossy() && !s.certain:
			k.lost.add(n, k.promise.cut.Sub(s.acked))
			gone += n
		default:
			return fmt.Errorf("LOST: %d of %d keys that were acknowledged at %v", n, s.count, s.acked.Format(time.StampMicro))
		}
	}
	if !k.all {
		kept = append(k.plant.certain[i], kept...)
	}
	k.plant.certain[i] = kept
	r, err := k.do("BF.CARD", sharedName(i))
	if err != nil {
		return err
	}
	if want := k.plant.cards[i] + int64(fresh); gone == 0 && r.Integer < want && k.promise.level != "none" {
		return fmt.Errorf("it counts %d keys, but %s were new", r.Integer, strconv.FormatInt(want, 10))
	}
	k.plant.cards[i] = r.Integer
	return nil
}
