package store

import (
	"container/heap"
	"slices"
	"sync"
	"time"
	"weak"
)

// expiryQueue has the values that will expire, the next one first. An entry is stale,
// and skipped, if its value's time has changed since, or its name is gone.
type expiryQueue struct {
	sync.Mutex
	queue   expiryHeap
	kept    int      // entries left after the last cleanup
	expired []string // names to pass to the callback
	do      func(name string)
}

type expiryEntry struct {
	at int64               // milliseconds since 1970
	v  weak.Pointer[value] // weak, so that a dropped value is not kept until its time
}

type expiryHeap []expiryEntry

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h expiryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *expiryHeap) Push(x any)        { *h = append(*h, x.(expiryEntry)) }
func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = expiryEntry{}
	*h = (*h)[:last]
	return e
}

// expiryBytes is the additional memory of a value that will expire: an entry in the
// queue, up to half of which may be stale, and a weak pointer.
const expiryBytes = 80

// expiryCharge returns expiryBytes if the value will expire, otherwise 0.
func (v *value) expiryCharge() uint64 {
	if v.expires.Load() == 0 {
		return 0
	}
	return expiryBytes
}

// expireAt sets when a value's name expires; 0 is never. Local.changing is held.
func (l *Local) expireAt(v *value, at int64) {
	switch before := v.expires.Swap(at); {
	case before == 0 && at != 0:
		l.used.Add(expiryBytes) // charged without asking: it is little
	case before != 0 && at == 0:
		l.release(expiryBytes)
	}
	if at != 0 {
		l.expiries.Lock()
		heap.Push(&l.expiries.queue, expiryEntry{at, weak.Make(v)})
		l.expiries.tidy()
		l.expiries.Unlock()
	}
}

// tidy removes stale entries when they may be half of the queue: a name whose expiry is
// postponed again and again leaves an entry each time.
func (e *expiryQueue) tidy() {
	if len(e.queue) < 2*e.kept+1024 {
		return
	}
	e.queue = slices.DeleteFunc(e.queue, func(old expiryEntry) bool {
		v := old.v.Value()
		return v == nil || v.isDropped() || v.expires.Load() != old.at
	})
	heap.Init(&e.queue)
	e.kept = len(e.queue)
}

// sweep drops the values that have expired, and calls the function of OnEnd.
func (l *Local) sweep() {
	for _, v := range l.due(l.now()) {
		l.changing.Lock()
		if !v.isDropped() && v.expired() {
			l.drop(v)
		}
		l.changing.Unlock()
	}
	l.expiries.Lock()
	expired, do := l.expiries.expired, l.expiries.do
	l.expiries.expired = nil
	l.expiries.Unlock()
	if do == nil || len(expired) == 0 {
		return
	}
	go func() { // the callback may take its time, or close the store
		for _, name := range expired {
			do(name)
		}
	}()
}

// due removes entries from the queue whose time has come, and returns their values. They
// may be stale.
func (l *Local) due(now time.Time) (due []*value) {
	l.expiries.Lock()
	defer l.expiries.Unlock()
	for len(l.expiries.queue) > 0 && l.expiries.queue[0].at <= now.UnixMilli() {
		if v := heap.Pop(&l.expiries.queue).(expiryEntry).v.Value(); v != nil {
			due = append(due, v)
		}
	}
	return due
}

// noteExpired notes that a name has expired, for the callback.
func (l *Local) noteExpired(name string) {
	l.expiries.Lock()
	l.expiries.expired = append(l.expiries.expired, name)
	l.expiries.Unlock()
}
