package redisstore

import (
	"context"
	"sync"
)

// A joiner makes one call of those that come while others are under way: many
// connections that send a key each then cost the servers little more than one that sends
// them all, and nobody waits for a call that could have begun.
type joiner struct {
	mu      sync.Mutex
	running int // calls under way
	waiting []*joined
}

// mostRunning is how many calls of a filter are under way at a time before others wait to
// be joined.
const mostRunning = 2

// mostJoined is the number of keys of a call that may be joined with others.
const mostJoined = 256

// joined is a call that waits for its turn.
type joined struct {
	spans   []span
	answers []bool
	n       int
	err     error
	done    chan struct{}
}

// An operation asks or changes the servers, and returns how many spans were done, in order.
type operation func(ctx context.Context, spans []span, answers []bool) (int, error)

// do calls op with the spans, perhaps together with those of others; then all of them
// wait as long as the store's context allows.
func (j *joiner) do(ctx, all context.Context, spans []span, answers []bool, op operation) (int, error) {
	if len(spans) > mostJoined {
		return op(ctx, spans, answers)
	}
	j.mu.Lock()
	if j.running == mostRunning {
		w := &joined{spans: spans, answers: answers, done: make(chan struct{})}
		j.waiting = append(j.waiting, w)
		j.mu.Unlock()
		<-w.done
		return w.n, w.err
	}
	j.running++
	j.mu.Unlock()
	n, err := op(ctx, spans, answers)
	j.mu.Lock()
	if len(j.waiting) == 0 {
		j.running--
	} else {
		go j.run(all, op)
	}
	j.mu.Unlock()
	return n, err
}

// run does what is waiting, until nothing is.
func (j *joiner) run(ctx context.Context, op operation) {
	for {
		j.mu.Lock()
		group := j.waiting
		if len(group) == 0 {
			j.running--
			j.mu.Unlock()
			return
		}
		keys, n := 0, 0
		for n < len(group) && keys+len(group[n].spans) <= mostKeys {
			keys += len(group[n].spans)
			n++
		}
		group, j.waiting = group[:n:n], group[n:]
		j.mu.Unlock()

		spans := make([]span, 0, keys)
		for _, w := range group {
			spans = append(spans, w.spans...)
		}
		answers := make([]bool, keys)
		done, err := op(ctx, spans, answers)
		at := 0
		for _, w := range group {
			w.n = min(max(done-at, 0), len(w.spans))
			if copy(w.answers, answers[at:]); w.n < len(w.spans) {
				w.err = err
			}
			at += len(w.spans)
			close(w.done)
		}
	}
}
