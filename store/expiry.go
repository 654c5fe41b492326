package store

import (
	"container/heap"
	"slices"
	"sync"
	"time"
	"weak"
)

// endings is the queue of values that will expire, the next one first. An entry is
// skipped if its value's time has changed since, or its name is gone.
type endings struct {
	sync.Mutex
	queue endingHeap
	kept  int      // entries left after the last cleanup
	ended []string // names to pass to the callback
	do    func(name string)
}

type ending struct {
	at int64               // milliseconds since 1970
	v  weak.Pointer[value] // weak, so that a dropped value is not kept until its time
}

type endingHeap []ending

func (h endingHeap) Len() int           { return len(h) }
func (h endingHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h endingHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endingHeap) Push(x any)        { *h = append(*h, x.(ending)) }
func (h *endingHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = ending{}
	*h = (*h)[:last]
	return e
}

// endingBytes is the additional memory of a value that will expire: an entry in the
// queue, up to half of which may be stale, and a weak pointer.
const endingBytes = 80

// endingTakes is endingBytes if the value will expire, otherwise 0.
func (v *value) endingTakes() uint64 {
	if v.expires.Load() == 0 {
		return 0
	}
	return endingBytes
}

// expireAt sets when a value's name expires; 0 is never. Local.changing is held.
func (l *Local) expireAt(v *value, at int64) {
	switch before := v.expires.Swap(at); {
	case before == 0 && at != 0:
		l.used.Add(endingBytes) // charged without asking: it is little
	case before != 0 && at == 0:
		l.release(endingBytes)
	}
	if at != 0 {
		l.ends.Lock()
		heap.Push(&l.ends.queue, ending{at, weak.Make(v)})
		l.ends.tidy()
		l.ends.Unlock()
	}
}

// tidy removes stale entries when they may be half of the queue: a name whose expiry is
// postponed again and again leaves an entry each time.
func (e *endings) tidy() {
	if len(e.queue) < 2*e.kept+1024 {
		return
	}
	e.queue = slices.DeleteFunc(e.queue, func(old ending) bool {
		v := old.v.Value()
		return v == nil || v.isDropped() || v.expires.Load() != old.at
	})
	heap.Init(&e.queue)
	e.kept = len(e.queue)
}

// sweep drops what has expired, and calls back.
func (l *Local) sweep() {
	for _, v := range l.due(l.now()) {
		l.changing.Lock()
		if !v.isDropped() && v.expired() {
			l.drop(v)
		}
		l.changing.Unlock()
	}
	l.ends.Lock()
	ended, do := l.ends.ended, l.ends.do
	l.ends.ended = nil
	l.ends.Unlock()
	if do == nil || len(ended) == 0 {
		return
	}
	go func() { // the callback may take its time, or close the store
		for _, name := range ended {
			do(name)
		}
	}()
}

// due removes from the queue what may have expired by now.
func (l *Local) due(now time.Time) (due []*value) {
	l.ends.Lock()
	defer l.ends.Unlock()
	for len(l.ends.queue) > 0 && l.ends.queue[0].at <= now.UnixMilli() {
		if v := heap.Pop(&l.ends.queue).(ending).v.Value(); v != nil {
			due = append(due, v)
		}
	}
	return due
}

// hasEnded notes that a name has expired, for the callback.
func (l *Local) hasEnded(name string) {
	l.ends.Lock()
	l.ends.ended = append(l.ends.ended, name)
	l.ends.Unlock()
}
