package main

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
)

// A trace is what removable filters tell of how far a worker's commands took effect: they
// cannot have stopped where a key would be there that is absent now.
type trace struct {
	w        *worker
	starts   []int   // number of the first step of each op, and of all steps
	possible []bool  // whether they can have stopped after a number of steps
	why      []error // for each op: why they cannot have stopped there
}

// span returns the range of steps after which they stopped, if they stopped after p ops: the
// next command may have happened in part.
func (t *trace) span(p int) (least, most int) {
	if least = t.starts[p]; p == len(t.w.ops) {
		return least, least
	}
	return least, max(least, t.starts[p+1]-1)
}

// first and last return the first and last possible number of steps after p ops.
func (t *trace) first(p int) int {
	at, most := t.span(p)
	for at < most && !t.possible[at] {
		at++
	}
	return at
}

func (t *trace) last(p int) int {
	least, at := t.span(p)
	for at > least && !t.possible[at] {
		at--
	}
	return at
}

// fits returns nil if they can have stopped after p ops.
func (t *trace) fits(p int) error {
	if t.possible[t.first(p)] {
		return nil
	}
	return t.why[p]
}

// trace looks for a worker's keys in the removable filters.
func (k *checker) trace(w *worker) (*trace, error) {
	t := &trace{w: w}
	steps, counts := 0, make([]map[int]int, len(removables))
	for i := range removables {
		counts[i] = map[int]int{}
		for number := range w.holdings[i].certain {
			counts[i][number] = 0
		}
	}
	for i := range w.ops {
		t.starts = append(t.starts, steps)
		for _, s := range w.ops[i].steps {
			counts[w.ops[i].removable-1][s.key] = 0
			steps++
		}
	}
	t.starts = append(t.starts, steps)
	for i := range removables {
		if err := k.count(i, w.id, counts[i]); err != nil {
			return nil, err
		}
	}
	// lacking are the keys that were there more often than they are now.
	type place struct{ filter, key int }
	now, lacking := map[place]int{}, map[place]bool{}
	note := func(at place, times int) {
		if now[at] = times; times > counts[at.filter][at.key] {
			lacking[at] = true
		} else {
			delete(lacking, at)
		}
	}
	for i, h := range w.holdings {
		for number, times := range h.certain {
			note(place{i, number}, times)
		}
	}
	t.possible = append(t.possible, len(lacking) == 0)
	for p := 0; p <= len(w.ops); p++ {
		var why error
		for at := range lacking {
			why = fmt.Errorf("LOST: %s lacks %d keys, among them %s, which was there %d times, and is there %d times", removables[at.filter].name, len(lacking), key(w.id, at.key), now[at], counts[at.filter][at.key])
			break
		}
		if t.why = append(t.why, why); p == len(w.ops) {
			return t, nil
		}
		for _, s := range w.ops[p].steps {
			at := place{w.ops[p].removable - 1, s.key}
			note(at, doubt{least: now[at]}.do(s.change).least)
			t.possible = append(t.possible, len(lacking) == 0)
		}
	}
	return t, nil
}

// count asks how often a filter has keys. It may have them more often by mistake.
func (k *checker) count(i, owner int, counts map[int]int) error {
	exists, count := "BF.MEXISTS", "BF.COUNT"
	if removables[i].cuckoo {
		exists, count = "CF.MEXISTS", "CF.COUNT"
	}
	numbers := make([]int, 0, len(counts))
	for number := range counts {
		numbers = append(numbers, number)
	}
	for at := 0; at < len(numbers); at += queryKeys {
		part := numbers[at:min(at+queryKeys, len(numbers))]
		k.begin(2 + len(part))
		k.word(exists)
		k.word(removables[i].name)
		for _, number := range part {
			k.word(key(owner, number))
		}
		if err := k.flush(); err != nil {
			return err
		}
		r, err := k.reply()
		if err != nil {
			return err
		}
		if len(r.Items) != len(part) {
			return fmt.Errorf("%s: %d answers of %d: %c %.200q", removables[i].name, len(r.Items), len(part), r.Kind, r.Text)
		}
		var found []int
		for j, item := range r.Items {
			if item.Integer != 0 {
				k.command(count, removables[i].name, key(owner, part[j]))
				found = append(found, part[j])
			}
		}
		if err := k.flush(); err != nil {
			return err
		}
		for _, number := range found {
			r, err := k.reply()
			if err != nil {
				return err
			}
			if r.Integer == 0 {
				return fmt.Errorf("%s: %s is there, but its count is 0: %c %.200q", removables[i].name, key(owner, number), r.Kind, r.Text)
			}
			counts[number] = int(r.Integer)
		}
	}
	return nil
}

// removable checks that a filter has exactly the keys that were added and not removed: by
// what it counts, and by removing all of them from a copy, after which nothing must be left.
func (k *checker) removable(i int) error {
	items, err := k.items(i)
	if err != nil {
		return err
	}
	certain, least, most := 0, 0, 0
	for _, w := range k.plant.workers {
		for _, times := range w.holdings[i].certain {
			certain += times
		}
	}
	for key, d := range k.doubts[i] {
		k.plant.doubts[i][key] = d
		least, most = least+d.least, most+d.most
	}
	known := certain + k.plant.doubtful[i]
	if items < known+least || items > known+most {
		return fmt.Errorf("LOST: it has %d items, want %d to %d: an add is missing, or a removed key is there", items, known+least, known+most)
	}
	k.plant.doubtful[i] = items - certain
	copied, err := k.copyOf(i)
	if err != nil || copied == nil {
		if err == nil && items != 0 {
			err = fmt.Errorf("it has %d items, but its dump is empty", items)
		}
		return err
	}
	defer copied.Close()
	if n := int(copied.Len()); n != items {
		return fmt.Errorf("its dump has %d items, want %d", n, items)
	}
	remove := func(text string, times int) error {
		for n := range times {
			if !copied.RemoveString(text) {
				return fmt.Errorf("LOST: key %s is there %d times, want %d", text, n, times)
			}
		}
		return nil
	}
	for _, w := range k.plant.workers {
		for number, times := range w.holdings[i].certain {
			if err := remove(key(w.id, number), times); err != nil {
				return err
			}
		}
	}
	for key, d := range k.plant.doubts[i] {
		if err := remove(key, d.least); err != nil {
			return err
		}
	}
	// The rest are keys in doubt. Some may take the place of others.
	for before := uint64(math.MaxUint64); copied.Len() < before; {
		before = copied.Len()
		for key := range k.plant.doubts[i] {
			for copied.RemoveString(key) {
			}
		}
	}
	if r := copied.Report(); copied.Len() > 0 || r.Fill > 0 || r.Rate > 0 {
		return fmt.Errorf("LOST: it has %d keys that were removed, or parts of them: with all others removed %v", copied.Len(), r)
	}
	return nil
}

// items is how many keys a filter counts, each as often as it was added.
func (k *checker) items(i int) (int, error) {
	f := &removables[i]
	if f.cuckoo {
		r, err := k.do("CF.INFO", f.name)
		for j := 0; err == nil && j+1 < len(r.Items); j += 2 {
			if r.Items[j].Text == "Number of items inserted" {
				return int(r.Items[j+1].Integer), nil
			}
		}
		return 0, fmt.Errorf("CF.INFO: %c %.200q, %v", r.Kind, r.Text, err)
	}
	r, err := k.do("BF.INFO", f.name, "ITEMS")
	if err != nil || len(r.Items) != 1 {
		return 0, fmt.Errorf("BF.INFO: %c %.200q, %v", r.Kind, r.Text, err)
	}
	card, err := k.do("BF.CARD", f.name)
	if err == nil && card.Integer != r.Items[0].Integer {
		err = fmt.Errorf("BF.CARD is %d, and BF.INFO has %d", card.Integer, r.Items[0].Integer)
	}
	return int(card.Integer), err
}

// A copied filter is in this process.
type copied interface {
	RemoveString(key string) bool
	Len() uint64
	Report() bloom.Report
	Close() error
}

// copyOf returns a copy of a filter, by its dump, or nil if that is empty.
func (k *checker) copyOf(i int) (copied, error) {
	f := &removables[i]
	command := "BF.SCANDUMP"
	if f.cuckoo {
		command = "CF.SCANDUMP"
	}
	var nest redisbloom.Cuckoo
	var file bytes.Buffer
	for at := int64(0); ; {
		r, err := k.do(command, f.name, strconv.FormatInt(at, 10))
		if err != nil || len(r.Items) != 2 {
			return nil, fmt.Errorf("%s: %c %.200q, %v", command, r.Kind, r.Text, err)
		}
		next, chunk := r.Items[0].Integer, r.Items[1].Text
		if next == 0 {
			break
		}
		switch {
		case f.cuckoo && at == 0:
			nest, err = redisbloom.LoadCuckooHeader([]byte(chunk), nil)
		case f.cuckoo:
			err = nest.LoadChunk(next, []byte(chunk))
		case at > 0: // before that comes a header
			file.WriteString(chunk)
		}
		if err != nil {
			return nil, fmt.Errorf("its dump: %w", err)
		}
		at = next
	}
	if f.cuckoo {
		if nest.Cuckoo == nil {
			return nil, nil
		}
		return nest, nil
	}
	filter, err := bloom.ReadAny(&file, math.MaxInt32)
	if err != nil {
		return nil, fmt.Errorf("its dump: %w", err)
	}
	return filter.(copied), nil
}
