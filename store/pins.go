package store

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// The bits of large filters lie outside Go's heap, and are given back as soon as
// their last user is gone; only then do they no longer count as used. Bits lose their
// value when its name is dropped, or when others take their place.
//
// Who uses bits for a moment, to add or look up some keys, holds the value's gate for
// reading: bits are taken from a value with its gate held alone. Who needs them for
// longer, as a snapshot or a merge does, pins them, with the gate held until that is
// done, and then lets go of the gate.

// pins are the bits that somebody has pinned.
type pins struct {
	sync.Mutex
	of map[io.Closer]*pinned
}

type pinned struct {
	users int
	gone  *gone // nil: they still are a value's
}

// gone are bits that are no value's any more.
type gone struct {
	bits  io.Closer
	size  uint64 // bytes that closing them gives back to the system, about
	bytes uint64 // that were granted, unless Close itself releases them
}

// pin keeps bits from being closed until unpin. The value that they are of has its
// gate held, and was not dropped; nil, of a plain value, needs no pin.
func (p *pins) pin(bits io.Closer) {
	if bits == nil {
		return
	}
	p.Lock()
	defer p.Unlock()
	if p.of == nil {
		p.of = map[io.Closer]*pinned{}
	}
	if p.of[bits] == nil {
		p.of[bits] = new(pinned)
	}
	p.of[bits].users++
}

// unpin is the end of a pin.
func (l *Local) unpin(bits io.Closer) {
	if bits == nil {
		return
	}
	l.pins.Lock()
	at := l.pins.of[bits]
	at.users--
	last := at.users == 0 // looked at under the lock: two may let go at once
	if last {
		delete(l.pins.of, bits)
	}
	l.pins.Unlock()
	if last && at.gone != nil {
		l.unmap(*at.gone)
	}
}

// discard closes bits that are no value's any more, now or when their last pin is
// gone. The gate of the value that they were of is held alone, or nobody else ever
// had them.
func (l *Local) discard(g gone) {
	l.pins.Lock()
	at := l.pins.of[g.bits]
	if at != nil {
		at.gone = &g
	}
	l.pins.Unlock()
	if at == nil {
		l.unmap(g)
	}
}

// unmapper gives memory back, while callers go on: that of large filters to the system,
// which takes a tenth of a second for each GiB or so, and that of very many small ones.
type unmapper struct {
	sync.Mutex
	queue []func()
	step  chan struct{} // closed when one more is done; nil: there are none
}

const (
	// unmapInline is what the caller gives back itself.
	unmapInline = 4 << 20

	// grantPatience is how long who needs memory waits for what is being given back.
	grantPatience = 2 * time.Second
)

// unmap closes bits that nobody uses any more.
func (l *Local) unmap(g gone) {
	if g.size <= unmapInline {
		g.bits.Close()
		l.release(g.bytes)
		return
	}
	l.unmapper.add(func() {
		g.bits.Close()
		l.release(g.bytes)
	})
}

// add has something done that gives memory back.
func (u *unmapper) add(do func()) {
	u.Lock()
	defer u.Unlock()
	u.queue = append(u.queue, do)
	if u.step == nil {
		u.step = make(chan struct{})
		go u.run()
	}
}

// run does what is in the queue.
func (u *unmapper) run() {
	u.Lock()
	for len(u.queue) > 0 {
		do := u.queue[0]
		u.queue[0] = nil
		u.queue = u.queue[1:]
		u.Unlock()
		do()
		u.Lock()
		close(u.step)
		u.step = make(chan struct{})
	}
	close(u.step)
	u.queue, u.step = nil, nil
	u.Unlock()
}

// shortage is the error of a grant.
type shortage struct{ needed, used, limit uint64 }

func (s shortage) Error() string {
	return fmt.Sprintf("%v: %d bytes are needed, %d are in use, %d are allowed: drop a filter, or raise the limit", ErrMemory, s.needed, s.used, s.limit)
}

func (s shortage) Unwrap() error { return ErrMemory }

// patiently does something that takes memory. If there is too little, and some is being
// given back, it does it again after each step of that, for a moment. The caller holds
// no lock but checkpointing, as others would wait for it, too.
func (l *Local) patiently(do func() error) error {
	for until := time.Now().Add(l.config.patience); ; {
		freed := l.unmapper.next() // before the attempt, so that none is missed
		err := do()
		var short shortage
		if freed == nil || !errors.As(err, &short) || short.needed > short.limit {
			return err
		}
		select {
		case <-freed:
		case <-time.After(time.Until(until)):
			return err
		}
	}
}

// next returns a channel that is closed when more memory was given back, nil if none
// is about to be.
func (u *unmapper) next() <-chan struct{} {
	u.Lock()
	defer u.Unlock()
	return u.step
}

// between is called after each MiB or less of a pass over many bits.
func (l *Local) between() {
	if l.config.between != nil {
		l.config.between()
	}
	runtime.Gosched()
}
