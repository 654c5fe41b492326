package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/bloomery/bloom/internal/resp"
)

// Filters from which keys can be removed. All workers add to all of them and remove from
// them, each worker its own keys, and only those that it has added. So a removal always
// answers 1, false positives or not.

// A removable is such a filter.
type removable struct {
	name    string
	cuckoo  bool // made by CF.RESERVE, or by BF.RESERVE
	reserve []string
	most    int // how many keys a worker has in it at most
}

// removables are the filters of the load. They are public, so that the checker can read
// their dumps without the server's secret.
var removables = []removable{
	{"cuckoo:small", true, []string{"64", "EXPANSION", "1"}, 200}, // grows and compacts all the time
	{"cuckoo", true, []string{"8192"}, 4000},
	{"counting", false, []string{"0.0001", "20000", "NONSCALING", "LAYOUT", "COUNTING", "PUBLIC"}, 4000},
	{"counting:growing", false, []string{"0.001", "100", "EXPANSION", "2", "LAYOUT", "COUNTING", "PUBLIC"}, 1000},
}

// mostGone is how many removed keys a worker may add again after a restart.
const mostGone = 200

// mostTimes is how often a key is added at most, before it is removed.
const mostTimes = 3

// A change is what a step does to the number of times that a key is in a filter.
type change int8

const (
	removes    change = -1
	addsUnless change = 0 // CF.ADDNX of a key that was found, by mistake or not
	adds       change = 1
	mayAdd     change = 2 // CF.ADDNX without an answer yet
)

// A step is a key of a command that changes a removable filter. After a crash the first
// few steps of a command without an answer may have happened.
type step struct {
	key    int
	change change
	there  bool // the key was there before
}

// A holding is what a worker has in a removable filter.
type holding struct {
	certain map[int]int // how often each key is there, before the first op
	times   map[int]int // the same after the last op that was sent
	keys    []int       // the same as a list, in which a key is as often as it is there
	gone    []int       // some keys that are not there any more
	filling bool        // more adds than removals, until there are goal keys
	goal    int
}

func newHolding() *holding { return &holding{certain: map[int]int{}, times: map[int]int{}} }

// add notes that a key was added.
func (h *holding) add(key int) {
	h.times[key]++
	h.keys = append(h.keys, key)
}

// remove picks a key at random and notes that it is removed.
func (h *holding) remove(rng *rand.Rand) (key int) {
	key = take(&h.keys, rng)
	if h.times[key]--; h.times[key] == 0 {
		delete(h.times, key)
		h.gone = append(h.gone, key)
	}
	return key
}

// take takes a random key out of a list.
func take(keys *[]int, rng *rand.Rand) (key int) {
	i, last := rng.IntN(len(*keys)), len(*keys)-1
	key = (*keys)[i]
	(*keys)[i] = (*keys)[last]
	*keys = (*keys)[:last]
	return key
}

// pick picks a key to add: one that is there, one that was removed, or a new one.
func (w *worker) pick(h *holding, rng *rand.Rand) int {
	switch roll := rng.IntN(8); {
	case roll == 0 && len(h.keys) > 0:
		if key := h.keys[rng.IntN(len(h.keys))]; h.times[key] < mostTimes {
			return key
		}
	case roll < 3 && len(h.gone) > 0:
		return take(&h.gone, rng)
	}
	w.next++
	return w.next - 1
}

// turnOver adds keys to a removable filter and removes others, by several commands. The
// last command sets a string, which tells after a crash how far the worker had come.
func (w *worker) turnOver(c *client, rng *rand.Rand, wants []want) []want {
	i := rng.IntN(len(removables))
	h := w.holdings[i]
	for left := 1 + rng.IntN(60); left > 0; {
		n := 1
		if rng.IntN(4) == 0 {
			n = 1 + rng.IntN(min(left, 12))
		}
		left -= n
		if h.filling && len(h.keys) >= h.goal || !h.filling && len(h.keys) <= h.goal {
			if h.filling = !h.filling; h.filling {
				h.goal = 1 + rng.IntN(removables[i].most)
			} else {
				h.goal = rng.IntN(len(h.keys) + 1)
			}
		}
		remove := rng.IntN(4) == 0
		if !h.filling {
			remove = !remove
		}
		switch roll := rng.IntN(50); {
		case roll == 0 && removables[i].cuckoo:
			wants = w.change(c, wants, wantOK, nil, "CF.COMPACT", removables[i].name)
		case roll < 3 && len(h.keys) > 0:
			wants = w.count(c, rng, i, wants)
		case remove:
			wants = w.removeSome(c, rng, i, n, wants)
		default:
			wants = w.addSome(c, rng, i, n, wants)
		}
	}
	text := strconv.Itoa(w.first + len(w.ops))
	return w.change(c, wants, wantOK, func(n *names) { n[markName] = entry{text: text} }, "SET", w.name(markName), text)
}

// sendSteps sends a command that changes a removable filter.
func (w *worker) sendSteps(c *client, i int, steps []step, words ...string) {
	op := w.note(w.now)
	op.removable, op.steps = i+1, steps
	c.begin(len(words) + len(steps))
	for _, word := range words {
		c.word(word)
	}
	for _, s := range steps {
		c.word(key(w.id, s.key))
	}
}

// removeSome removes n keys, or as many as there are.
func (w *worker) removeSome(c *client, rng *rand.Rand, i, n int, wants []want) []want {
	f, h := &removables[i], w.holdings[i]
	var steps []step
	for range min(n, len(h.keys)) {
		steps = append(steps, step{h.remove(rng), removes, true})
	}
	switch {
	case len(steps) == 0:
		return wants
	case f.cuckoo: // has no command for several keys
		for _, s := range steps {
			w.sendSteps(c, i, []step{s}, "CF.DEL", f.name)
			wants = append(wants, wantSteps)
		}
		return wants
	case len(steps) == 1:
		w.sendSteps(c, i, steps, "BF.DEL", f.name)
	default:
		w.sendSteps(c, i, steps, "BF.MDEL", f.name)
	}
	return append(wants, wantSteps)
}

// addSome adds n keys.
func (w *worker) addSome(c *client, rng *rand.Rand, i, n int, wants []want) []want {
	f, h := &removables[i], w.holdings[i]
	unless := f.cuckoo && rng.IntN(3) == 0
	var steps []step
	for range n {
		s := step{key: w.pick(h, rng), change: adds}
		s.there = h.times[s.key] > 0
		switch {
		case !unless:
			h.add(s.key)
		case s.there:
			s.change = addsUnless
		default:
			s.change = mayAdd // take adds it to the holding if it was added
		}
		steps = append(steps, s)
	}
	switch {
	case unless && n == 1:
		w.sendSteps(c, i, steps, "CF.ADDNX", f.name)
	case unless:
		w.sendSteps(c, i, steps, "CF.INSERTNX", f.name, "NOCREATE", "ITEMS")
	case f.cuckoo && n == 1:
		w.sendSteps(c, i, steps, "CF.ADD", f.name)
	case f.cuckoo:
		w.sendSteps(c, i, steps, "CF.INSERT", f.name, "NOCREATE", "ITEMS")
	case n == 1:
		w.sendSteps(c, i, steps, "BF.ADD", f.name)
	case rng.IntN(3) == 0:
		w.sendSteps(c, i, steps, "BF.INSERT", f.name, "NOCREATE", "ITEMS")
	default:
		w.sendSteps(c, i, steps, "BF.MADD", f.name)
	}
	return append(wants, wantSteps)
}

// count asks how often a key is there.
func (w *worker) count(c *client, rng *rand.Rand, i int, wants []want) []want {
	h, command := w.holdings[i], "BF.COUNT"
	if removables[i].cuckoo {
		command = "CF.COUNT"
	}
	number := h.keys[rng.IntN(len(h.keys))]
	w.note(w.now).least = h.times[number]
	c.command(command, removables[i].name, key(w.id, number))
	return append(wants, wantCount)
}

// takeSteps records the reply to a command that changes a removable filter.
func (w *worker) takeSteps(o *op, r resp.Reply) error {
	answers := r.Items
	if r.Kind != resp.Array {
		answers = []resp.Reply{r}
	}
	if len(answers) != len(o.steps) {
		return fmt.Errorf("%d answers for %d keys: %c %.200q", len(answers), len(o.steps), r.Kind, r.Text)
	}
	f, h := &removables[o.removable-1], w.holdings[o.removable-1]
	for i, a := range answers {
		s := &o.steps[i]
		if a.Kind != resp.Integer || a.Integer != 0 && a.Integer != 1 {
			return fmt.Errorf("%s: unexpected answer %c %d %.200q", f.name, a.Kind, a.Integer, a.Text)
		}
		want := "" // either
		switch {
		case s.change == removes || s.change == adds && f.cuckoo:
			want = "1"
		case s.there:
			want = "0"
		}
		if got := strconv.FormatInt(a.Integer, 10); want != "" && got != want {
			return fmt.Errorf("LOST: %s answers %s for key %s, want %s (%d is what the step does, was it there: %v)", f.name, got, key(w.id, s.key), want, s.change, s.there)
		}
		if s.change == mayAdd {
			if s.change = change(a.Integer); s.change == adds {
				h.add(s.key)
			}
		}
		switch s.change {
		case adds:
			w.adds++
		case removes:
			w.removals++
		}
	}
	return nil
}

// A doubt is a key of commands without an answer, of which it is unknown how many took
// effect. Such keys are left alone from then on.
type doubt struct{ least, most int }

// do returns what a step makes of the number of times that a key is there.
func (d doubt) do(c change) doubt {
	switch c {
	case removes:
		return doubt{d.least - 1, d.most - 1}
	case adds:
		return doubt{d.least + 1, d.most + 1}
	case mayAdd:
		return doubt{d.least, d.most + 1}
	}
	return d
}

// or is what is known if it is d or e.
func (d doubt) or(e doubt) doubt { return doubt{min(d.least, e.least), max(d.most, e.most)} }

// settleSteps makes the state after at least from and at most to steps the new initial one.
// It returns, for each removable filter, the keys that are in doubt.
func (w *worker) settleSteps(from, to int) []map[int]doubt {
	type touched struct{ now, any doubt }
	all, doubts := make([]map[int]touched, len(removables)), make([]map[int]doubt, len(removables))
	for i := range removables {
		all[i], doubts[i] = map[int]touched{}, map[int]doubt{}
	}
	at := 0
	for i := range w.ops {
		o := &w.ops[i]
		for _, s := range o.steps {
			if at == to {
				break
			}
			filter := o.removable - 1
			k, ok := all[filter][s.key]
			if !ok {
				n := w.holdings[filter].certain[s.key]
				k.now = doubt{n, n}
				k.any = k.now
			}
			k.now = k.now.do(s.change)
			if k.any = k.any.or(k.now); at < from {
				k.any = k.now
			}
			all[filter][s.key] = k
			at++
		}
	}
	for i, h := range w.holdings {
		h.gone, h.keys = h.gone[:0], h.keys[:0]
		for key, k := range all[i] {
			delete(h.certain, key)
			switch n := k.any.least; {
			case k.any.most > n:
				doubts[i][key] = k.any
			case n > 0:
				h.certain[key] = n
			default:
				h.gone = append(h.gone, key)
			}
		}
		h.times = maps.Clone(h.certain)
		for key, n := range h.certain {
			h.keys = append(h.keys, slices.Repeat([]int{key}, n)...)
		}
		slices.Sort(h.keys) // maps are in no order, and the load should depend on its seed
		slices.Sort(h.gone)
		h.gone = h.gone[:min(len(h.gone), mostGone)]
	}
	return doubts
}
