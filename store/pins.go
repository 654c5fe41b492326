package store

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// The bits of large filters lie outside Go's heap. They are released as soon as their
// last user is done, and count as used until then. Bits become unneeded when their
// filter's name is dropped, or when other bits replace them.
//
// A caller that uses bits briefly, to add or look up some keys, holds the value's gate
// for reading: a value loses its bits only while its gate is held for writing. A caller
// that needs them for longer, such as a snapshot or a merge, pins them while holding
// the gate, and then releases the gate.

// pins is the set of pinned bits.
type pins struct {
	sync.Mutex
	of map[io.Closer]*pinned
}

type pinned struct {
	users int
	gone  *gone // nil: they still belong to a value
}

// gone is bits that no longer belong to a value.
type gone struct {
	bits  io.Closer
	size  uint64 // approximate bytes returned to the system by closing them
	bytes uint64 // granted bytes, unless Close itself releases them
}

// pin keeps bits from being closed until unpin. The gate of their value is held, and
// the value has not been dropped. nil, for a plain value, needs no pin.
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

// unpin removes a pin.
func (l *Local) unpin(bits io.Closer) {
	if bits == nil {
		return
	}
	l.pins.Lock()
	at := l.pins.of[bits]
	at.users--
	last := at.users == 0 // checked under the lock: two callers may unpin at once
	if last {
		delete(l.pins.of, bits)
	}
	l.pins.Unlock()
	if last && at.gone != nil {
		l.unmap(*at.gone)
	}
}

// discard closes bits that no longer belong to a value, now or when their last pin is
// gone. The gate of that value is held for writing, or nobody else ever had the bits.
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

// unmapper releases memory in the background: large filters, which take about a tenth
// of a second for each GiB, and large numbers of small ones.
type unmapper struct {
	sync.Mutex
	queue []func()
	step  chan struct{} // closed when another item is done; nil if nothing is being released
}

const (
	// unmapInline is the most bytes that the caller releases itself.
	unmapInline = 4 << 20

	// grantPatience is how long a caller that needs memory waits for memory being
	// released.
	grantPatience = 2 * time.Second
)

// unmap closes bits that are no longer used: large ones in the background.
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

// add queues a function that releases memory.
func (u *unmapper) add(do func()) {
	u.Lock()
	defer u.Unlock()
	u.queue = append(u.queue, do)
	if u.step == nil {
		u.step = make(chan struct{})
		go u.run()
	}
}

// run runs the queue.
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

// shortage is the error of a grant that exceeds the limit.
type shortage struct{ needed, used, limit uint64 }

func (s shortage) Error() string {
	return fmt.Sprintf("%v: %d bytes are needed, %d are in use, %d are allowed: drop a filter, or raise the limit", ErrMemory, s.needed, s.used, s.limit)
}

func (s shortage) Unwrap() error { return ErrMemory }

// patiently calls do, which reserves memory. If there is too little, but some is being
// released, it retries do after each release, for up to grantPatience. The caller holds
// no lock except checkpointing, as others would have to wait for it, too.
func (l *Local) patiently(do func() error) error {
	for until := time.Now().Add(l.config.patience); ; {
		freed := l.unmapper.next() // taken before the attempt, so that no release is missed
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

// next returns a channel that is closed when more memory has been released, nil if none
// is about to be.
func (u *unmapper) next() <-chan struct{} {
	u.Lock()
	defer u.Unlock()
	return u.step
}

// between is called by loops over many bits, after each MiB or less.
func (l *Local) between() {
	if l.config.between != nil {
		l.config.between()
	}
	runtime.Gosched()
}
