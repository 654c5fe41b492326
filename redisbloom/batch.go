package redisbloom

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/bloomery/bloom/internal/kernel"
)

// rest is what remains of a batch on its way through the layers: the keys that no
// layer has had so far.
type rest struct {
	kernel kernel.Sieve
	pairs  [kernel.SieveKeys]Pair
	at     [kernel.SieveKeys]uint16 // where the key stands in the batch
	n      int

	answers [kernel.SieveKeys]bool
	hashed  [kernel.SieveKeys]Pair
	unasked [kernel.SieveKeys]bool // answers for a caller who wants none

	// recent guesses from the batches before, for the newest layer, the second
	// newest and so on. A wrong guess costs time, so it does no harm that the
	// pool mixes chains up.
	recent [8]kernel.Recent
}

var rests = sync.Pool{New: func() any { return new(rest) }}

// all begins with a whole batch.
func (r *rest) all(pairs []Pair) {
	r.n = copy(r.pairs[:], pairs)
	for i := range r.n {
		r.at[i] = uint16(i)
	}
}

// drop looks the keys up in l and in all older layers, drops those that are found,
// and, unless found is nil, sets found at their places in the batch.
func (r *rest) drop(l *layer, found []bool) {
	for age := 0; l != nil && r.n > 0; l, age = l.older, age+1 {
		answers := r.answers[:r.n]
		if l.bits.ContainsBatch(r.pairs[:r.n], answers, &r.kernel, &r.recent[min(age, len(r.recent)-1)]) == 0 {
			continue
		}
		kept := 0
		for i, has := range answers {
			if has && found != nil {
				found[r.at[i]] = true
			}
			if !has {
				r.pairs[kept], r.at[kept] = r.pairs[i], r.at[i]
				kept++
			}
		}
		r.n = kept
	}
}

// ContainsMany sets found[i] to Contains(keys[i]) and returns how many are true.
// found is as long as keys, or nil.
func (c *Filter) ContainsMany(keys [][]byte, found []bool) (count int) {
	mustFit(len(keys), len(found), found == nil)
	r := rests.Get().(*rest)
	for from := 0; from < len(keys); from += kernel.SieveKeys {
		part := keys[from:min(from+kernel.SieveKeys, len(keys))]
		HashMany(part, r.hashed[:])
		count += c.containsPart(r.hashed[:len(part)], r.answersFor(found, from, len(part)), r)
	}
	rests.Put(r)
	return count
}

// ContainsPairs is ContainsMany for keys that are hashed already.
func (c *Filter) ContainsPairs(pairs []Pair, found []bool) (count int) {
	mustFit(len(pairs), len(found), found == nil)
	r := rests.Get().(*rest)
	for from := 0; from < len(pairs); from += kernel.SieveKeys {
		part := pairs[from:min(from+kernel.SieveKeys, len(pairs))]
		count += c.containsPart(part, r.answersFor(found, from, len(part)), r)
	}
	rests.Put(r)
	return count
}

func (r *rest) answersFor(answers []bool, from, n int) []bool {
	if answers == nil {
		return r.unasked[:n]
	}
	return answers[from:][:n]
}

func mustFit(keys, answers int, none bool) {
	if !none && answers != keys {
		panic(fmt.Sprintf("redisbloom: room for %d answers to %d keys: give as many, or nil", answers, keys))
	}
}

func (c *Filter) containsPart(pairs []Pair, found []bool, r *rest) int {
	l := c.open()
	defer runtime.KeepAlive(l)
	if l.older == nil {
		return l.bits.ContainsBatch(pairs, found, &r.kernel, &r.recent[0])
	}
	clear(found)
	r.all(pairs)
	r.drop(l, found)
	return len(pairs) - r.n
}

// AddMany adds the keys as if one after the other and returns how many were
// certainly new. isNew is as long as keys, or nil. Keys for which there is no
// room are answered false; see [Filter.AddPairs].
func (c *Filter) AddMany(keys [][]byte, isNew []bool) (count int) {
	mustFit(len(keys), len(isNew), isNew == nil)
	r := rests.Get().(*rest)
	for from := 0; from < len(keys); from += kernel.SieveKeys {
		part := keys[from:min(from+kernel.SieveKeys, len(keys))]
		pairs := r.hashed[:len(part)]
		HashMany(part, pairs)
		answers := r.answersFor(isNew, from, len(part))
		clear(answers)
		for len(pairs) > 0 {
			done, _, err := c.AddPairs(pairs, answers)
			count += countTrue(answers[:done])
			pairs, answers = pairs[done:], answers[done:]
			if err != nil { // there is no room for later keys, either
				if isNew != nil {
					clear(isNew[from+len(part)-len(pairs):])
				}
				rests.Put(r)
				return count
			}
		}
	}
	rests.Put(r)
	return count
}

func countTrue(answers []bool) (n int) {
	for _, is := range answers {
		if is {
			n++
		}
	}
	return n
}

// AddPairs adds keys that are hashed already, as if one after the other. It stops
// where the chain must grow between two new keys, so all new keys of one call are in
// one layer. It returns how many keys it has processed, and the index of that layer,
// 0 being the oldest. isNew, as long as pairs, holds their answers; what follows
// them in isNew is undefined. Call it again for the remaining keys.
//
// An error, which wraps [ErrFull] or [ErrInsert], concerns the first key that was
// not processed: it is new, and there is no room for it.
func (c *Filter) AddPairs(pairs []Pair, isNew []bool) (done, layerIndex int, err error) {
	mustFit(len(pairs), len(isNew), false)
	r := rests.Get().(*rest)
	var wrote *layer // where this call's new keys are
	for done < len(pairs) {
		l := c.open()
		if wrote != nil && wrote != l {
			break
		}
		n := min(len(pairs)-done, kernel.SieveKeys)
		n, added, full := c.addPart(l, pairs[done:][:n], isNew[done:][:n], r)
		done += n
		if added {
			wrote = l
		}
		if !full {
			continue
		}
		if wrote != nil {
			break
		}
		if err = c.grow(l); err != nil {
			break
		}
	}
	rests.Put(r)
	if wrote == nil {
		wrote = c.open()
	}
	if c.isNearlyFull(wrote) {
		c.prepare(wrote)
	}
	return done, int(wrote.index), err
}

// addPart adds keys to l as long as there is room, or none at all if l is no longer
// the newest layer.
func (c *Filter) addPart(l *layer, pairs []Pair, isNew []bool, r *rest) (done int, added, full bool) {
	defer runtime.KeepAlive(l)
	clear(isNew)
	adding, answers := pairs, isNew
	if l.older != nil {
		r.all(pairs)
		r.drop(l.older, nil)
		adding, answers = r.pairs[:r.n], r.answers[:r.n]
	}
	alone := c.enter(l)
	if c.newest.Load() != l {
		c.leave(alone)
		return 0, false, false
	}
	if alone {
		done, full = l.bits.AddBatch(&l.size, l.entries, adding, answers, &r.kernel)
	} else {
		done, full = l.bits.AddBatchSync(l.stripes, &l.size, l.entries, adding, answers, &r.kernel)
	}
	c.leave(alone)
	for i, is := range answers[:done] {
		added = added || is
		if l.older != nil {
			isNew[r.at[i]] = is
		}
	}
	switch {
	case l.older == nil:
	case full:
		done = int(r.at[done])
	default:
		done = len(pairs)
	}
	return done, added, full
}

// Replay sets the bits of keys in one layer, whether they are new or not, and counts
// nothing. Layer 0 is the oldest. It is for replaying a log that names the layer of
// each key; [Filter.SetItems] sets the counts. It panics if there is no such layer.
func (c *Filter) Replay(layerIndex int, pairs []Pair) {
	l := c.layer(layerIndex)
	r := rests.Get().(*rest)
	for len(pairs) > 0 {
		part := pairs[:min(len(pairs), kernel.SieveKeys)]
		var uncounted uint64
		if l.stripes != nil { // for other replays of the chain at the same time
			c.gate.RLock()
			l.bits.AddBatchSync(l.stripes, &uncounted, math.MaxUint64, part, r.unasked[:len(part)], &r.kernel)
			c.gate.RUnlock()
		} else {
			c.gate.Lock()
			l.bits.AddBatch(&uncounted, math.MaxUint64, part, r.unasked[:len(part)], &r.kernel)
			c.gate.Unlock()
		}
		pairs = pairs[len(part):]
	}
	rests.Put(r)
	runtime.KeepAlive(l)
}

func (c *Filter) layer(index int) *layer {
	for l := c.open(); l != nil; l = l.older {
		if int(l.index) == index {
			return l
		}
	}
	panic(fmt.Sprintf("redisbloom: the chain has no layer %d", index))
}
