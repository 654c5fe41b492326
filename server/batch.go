package server

import (
	"bytes"
	"context"
	"errors"

	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
)

// runKind says which commands can be in one run: those that call the same method of the
// filter.
type runKind uint8

const (
	runNone   runKind = iota
	runAdd            // BF.ADD, BF.MADD
	runExists         // BF.EXISTS, BF.MEXISTS
)

// maxRun is how many keys a run collects before it is executed. More gain nothing: the
// filter prefetches a few dozen keys ahead, and the keys should still be in the cache.
const maxRun = 1024

// A batch executes what several clients have sent, and is committed once. A run of like
// commands on one filter, from one client or several, becomes one call of the filter.
// Each client's commands are answered in order; between clients there is no order.
//
// A batch is reused by one goroutine:
//
//	b.begin()
//	used := b.execute(c, bytes) // of each client; the bytes must stay till end
//	err := b.end()              // now the replies in c.w may be sent
//
// In between, nothing is allocated per command except what replies need.
type batch struct {
	server *Server

	args [][]byte // of the current command

	// The run that is not executed yet: keys of commands of one kind on one name. The
	// name and the keys are slices of what clients have sent.
	kind    runKind
	name    []byte
	keys    [][]byte
	answers []bool // room for one for each of the keys
	replies []runReply

	touched bool // the store was used: commit before answering
	detours bool // it executes the command of a detour and does not hold Server.alone

	// The row found last, and its name as it was sent: nearly always the next one too.
	lastName [longestName]byte
	lastSize int
	last     *Command

	tally tally // counts for /metrics

	// Counted here, and added to the server's at the end.
	commands, hits, misses int64
}

// A runReply is a command of a run.
type runReply struct {
	client *Client
	keys   int32
	list   bool // reply with an array, even of one
}

func newBatch(s *Server) *batch { return &batch{server: s, tally: newTally(s.metrics)} }

// begin starts a batch.
func (b *batch) begin() {
	b.tally.begin()
	b.server.alone.RLock()
}

// execute executes the commands at the front of sent and returns how many bytes they
// took. The rest is the beginning of a command, or what followed the last command of a
// client that is to be closed (c.ending is set), or what followed a long command
// (c.detour is set, and its arguments are slices of sent).
func (b *batch) execute(c *Client, sent []byte) (used int) {
	c.batch = b
	limits := b.server.limits.Load()
	var joined *Command
	for !c.ending {
		args, n, err := c.parser.Next(sent[used:], b.args[:0])
		if err != nil {
			if err != resp.ErrIncomplete {
				b.flush()
				c.refuseProtocol(err)
			}
			break
		}
		b.args = args
		used += n
		if len(args) == 0 {
			continue
		}
		b.commands++
		cmd := b.find(args[0])
		if cmd != nil && cmd.run != runNone && !c.slow && cmd.takes(len(args)) && len(args[1]) <= limits.KeyBytes && len(args) <= manyArguments {
			b.join(c, cmd, args)
			b.tally.count(cmd, false)
			joined = cmd
			continue
		}
		b.flush()
		b.dispatch(c, cmd, args)
		if c.detour != nil {
			break
		}
		c.fits(0)
	}
	if joined != nil {
		c.lastCommand.Store(joined)
	}
	return used
}

// find is [find] with a cache of the last command's name.
func (b *batch) find(name []byte) *Command {
	if b.last != nil && string(name) == string(b.lastName[:b.lastSize]) {
		return b.last
	}
	cmd := b.server.commands.find(name)
	if cmd != nil {
		b.last, b.lastSize = cmd, copy(b.lastName[:], name)
	}
	return cmd
}

// join adds a command to the run. If the command does not fit the current run, that is
// executed first.
func (b *batch) join(c *Client, cmd *Command, args [][]byte) {
	b.joinItems(c, cmd.run, args[1], args[2:], cmd.Arity < 0)
}

func (b *batch) joinItems(c *Client, kind runKind, name []byte, items [][]byte, list bool) {
	if b.kind != kind || len(b.keys) >= maxRun || !bytes.Equal(b.name, name) {
		b.flush()
		b.kind, b.name = kind, name
	}
	b.keys = append(b.keys, items...)
	b.replies = append(b.replies, runReply{c, int32(len(items)), list})
}

// flush executes the run and answers its commands.
func (b *batch) flush() {
	if b.kind == runNone {
		return
	}
	if cap(b.answers) < len(b.keys) {
		b.answers = make([]bool, max(len(b.keys), 2*maxRun))
	}
	b.answers = b.answers[:len(b.keys)]
	b.touched = true
	if b.kind == runAdd {
		b.flushAdd()
	} else {
		b.flushExists()
	}
	b.kind, b.name = runNone, nil
	b.keys, b.replies = b.keys[:0], b.replies[:0]
}

// flushExists executes a run of BF.EXISTS. A name without a filter has no keys.
func (b *batch) flushExists() {
	err := store.ErrNotFound
	for range 2 { // dropped just now: the name may have a new filter
		var filter store.Filter
		if filter, err = b.server.store.Open(b.name); err != nil {
			break
		}
		if err = filter.Contains(b.server.ctx, b.keys, b.answers); !errors.Is(err, store.ErrNotFound) {
			break
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrWrongKind):
		clear(b.answers)
	case err != nil:
		for _, reply := range b.replies {
			b.tally.failRun(b.kind, reply.list)
			reply.client.storeError(err)
		}
		return
	}
	at := 0
	for _, reply := range b.replies {
		b.answer(reply, b.answers[at:at+int(reply.keys)])
		at += int(reply.keys)
	}
	found := int64(0)
	for _, yes := range b.answers {
		if yes {
			found++
		}
	}
	b.hits += found
	b.misses += int64(len(b.answers)) - found
	b.server.countKeys(b.name, b.answers, false)
}

// flushAdd executes a run of BF.ADD. When a filter without growth is full, the array of
// a command ends at the first key that was refused, as in RedisBloom, and the run
// continues.
func (b *batch) flushAdd() {
	s := b.server
	filter, err := s.openOrCreate(b.name)
	if err != nil {
		for _, reply := range b.replies {
			b.tally.failRun(b.kind, reply.list)
			reply.client.storeError(err)
		}
		return
	}
	from, next := 0, 0 // the keys and the replies that are done
	for again := false; from < len(b.keys); {
		n, err := filter.Add(s.ctx, b.keys[from:], b.answers[from:])
		if errors.Is(err, store.ErrNotFound) && !again { // dropped just now: the name may have a new filter
			again = true
			var other store.Filter
			if other, err = s.openOrCreate(b.name); err == nil {
				filter = other
				continue
			}
			n = 0
		}
		taken := from + n
		b.tally.added(b.answers[from:taken])
		s.countKeys(b.name, b.answers[from:taken], true)
		if err != nil && !errors.Is(err, store.ErrFull) {
			b.answerRest(filter, next, from, taken, err)
			break
		}
		for next < len(b.replies) && (err == nil || from+int(b.replies[next].keys) <= taken) {
			keys := int(b.replies[next].keys)
			b.answer(b.replies[next], b.answers[from:from+keys])
			from += keys
			next++
		}
		if err != nil {
			reply := b.replies[next]
			w := &reply.client.w
			if reply.list {
				w.Array(taken - from + 1)
				appendBools(w, b.answers[from:taken])
			} else {
				b.tally.failRun(b.kind, false)
			}
			reply.client.storeError(err)
			from += int(reply.keys)
			next++
		}
	}
	if s.observers.Load() > 0 {
		for _, reply := range b.replies {
			s.keyWritten(reply.client, b.name)
		}
	}
}

// answerRest writes the replies from the one whose keys begin at from, when the filter
// has accepted the keys before taken and can accept no new one. Each new key is
// answered with the error, without being tried one by one; a key that is already there
// is answered as such.
func (b *batch) answerRest(filter store.Filter, next, from, taken int, err error) {
	s := b.server
	if filter.Contains(s.ctx, b.keys[taken:], b.answers[taken:]) != nil {
		clear(b.answers[taken:])
	}
	text := storeErrorText(err)
	for _, reply := range b.replies[next:] {
		w, failed := &reply.client.w, false
		if reply.list {
			w.Array(int(reply.keys))
		}
		for at := from; at < from+int(reply.keys); at++ {
			switch {
			case at < taken:
				w.Bool(b.answers[at])
			case b.answers[at]:
				w.Bool(false)
				b.tally.seen++
			default:
				w.Error(text)
				failed = true
			}
		}
		if failed {
			s.metrics.refuseMemory(err)
		}
		if failed && !reply.list {
			b.tally.failRun(b.kind, false)
		}
		from += int(reply.keys)
	}
}

// answer writes the reply of a command of a run.
func (b *batch) answer(reply runReply, answers []bool) {
	w := &reply.client.w
	if reply.list {
		w.Array(len(answers))
	}
	appendBools(w, answers)
}

func appendBools(w *resp.Writer, answers []bool) {
	for _, yes := range answers {
		w.Bool(yes)
	}
}

// end executes what is left and commits. If it returns an error, none of the batch's
// replies may be sent.
func (b *batch) end() error {
	defer b.tally.end()
	b.flush()
	s := b.server
	if !b.detours {
		s.alone.RUnlock()
	}
	if b.commands > 0 {
		s.stats.commands.Add(b.commands)
	}
	if b.hits|b.misses != 0 {
		s.stats.hits.Add(b.hits)
		s.stats.misses.Add(b.misses)
	}
	b.commands, b.hits, b.misses = 0, 0, 0
	// Do not keep what one huge command needed.
	if cap(b.args) > 64<<10 {
		b.args = nil
	}
	if cap(b.keys) > 64<<10 {
		b.keys, b.answers = nil, nil
	}
	clear(b.keys[:cap(b.keys)]) // they keep alive the memory of what was sent
	if !b.touched {
		return nil
	}
	b.touched = false
	return s.store.Commit(context.Background()) // also while the server stops: what was executed is answered
}

// openOrCreate returns the filter with a name, creating it if there is none.
func (s *Server) openOrCreate(name []byte) (store.Filter, error) {
	filter, err := s.store.Open(name)
	if err == nil {
		return filter, nil
	}
	spec := *s.filter.Load()
	return s.openOrCreateAs(name, spec, spec.Growth, err)
}
