package server

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/bloomery/bloom/store"
)

// A command whose time grows with the size of a filter, or with the number of names,
// would make every other client wait if a loop executed it. Its client takes a detour
// instead. The batch ends, is committed, and its replies are sent; then a goroutine
// executes the command, without [Server.alone], and commits. Until it is done, nothing
// more from this client is read or executed, so the order of its commands and replies
// is kept. Other clients continue.
//
// Changes that must appear atomic are made in [Client.inOneStep]. In a transaction,
// such a command is executed like any other, and everybody waits.
type detour struct {
	command *Command // nil: no command yet, a long argument is to be read
	args    [][]byte // as in dispatch, slices of what the client has sent
	silent  bool     // no reply, by CLIENT REPLY
}

// maxDetours is how many long commands are executed at a time. The others wait. Each
// may hold a chunk of a dump, and copies of it.
const maxDetours = 4

// manyArguments is the most arguments of a command that a loop executes, about a
// millisecond's worth. A command with more takes a detour.
const manyArguments = 16 << 10

// isLong reports whether a command takes a detour. Commands with the flag Alone do not:
// everybody waits for those in any case.
func (cmd *Command) isLong(args [][]byte) bool {
	return cmd.Flags.Has(Long) || len(args) > manyArguments && !cmd.Flags.Has(Alone)
}

// keepArguments copies the arguments, for a transport that reuses its input buffer.
func (d *detour) keepArguments() {
	for i, arg := range d.args {
		d.args[i] = bytes.Clone(arg)
	}
}

// pieceBytes is how much of a large copy is done at a time: neither Go's scheduler nor
// its collector interrupts a copy, and others would wait for its end.
const pieceBytes = 1 << 20

// grow makes room for n more bytes; if it must reallocate, for at least a quarter of
// what is there. slices.Grow would clear the room at once, which takes tens of
// milliseconds if it is large and the system has to find the memory; make clears it in
// pieces.
func grow(to []byte, n int) []byte {
	if cap(to)-len(to) >= n {
		return to
	}
	return appendPieces(make([]byte, 0, len(to)+max(n, len(to)/4)), to)
}

// appendPieces appends data that may be large, and for which there is room.
func appendPieces(to, what []byte) []byte {
	for len(what) > pieceBytes {
		to = append(to, what[:pieceBytes]...)
		what = what[pieceBytes:]
		runtime.Gosched()
	}
	return append(to, what...)
}

// bulk replies with a value that may be large.
func (c *Client) bulk(value []byte) {
	c.w.Buf = grow(c.w.Buf, len(value)+bulkOverhead)
	c.w.Buf = fmt.Appendf(c.w.Buf, "$%d\r\n", len(value))
	c.w.Buf = append(appendPieces(c.w.Buf, value), "\r\n"...)
}

// bulkOverhead is more than a bulk string takes in addition to its bytes.
const bulkOverhead = 32

// takeDetour executes the client's long command, if it has one, and commits. If it
// returns an error, the reply must not be sent. The caller has the client to itself,
// and holds no lock.
func (s *Server) takeDetour(c *Client) error {
	c.away.Store(true)
	defer c.away.Store(false)
	s.detours <- struct{}{}
	defer func() { <-s.detours }()
	if c.isKilled() {
		return nil
	}
	b := s.takeBatch()
	defer s.batches.Put(b)
	b.detours = true
	b.tally.begin()
	c.batch = b
	start := len(c.w.Buf)
	c.call(c.detour.command, c.detour.args)
	if c.detour.silent {
		c.w.Buf = c.w.Buf[:start]
	}
	c.settle()
	err := b.end()
	b.detours = false
	return err
}

// inOneStep calls step while no other command is executed. It is for handlers of long
// commands; in a transaction no other command is executed anyway.
func (c *Client) inOneStep(step func() error) error {
	if c.batch.detours {
		c.server.alone.Lock()
		defer c.server.alone.Unlock()
	}
	return step()
}

// beginChange is called before a long command writes. Its changes may become visible
// one by one, so EXEC fails for every client that watches its keys now or begins to
// before endChange.
func (s *Server) beginChange(cmd *Command, args [][]byte) {
	o := &s.observed
	o.mu.Lock()
	defer o.mu.Unlock()
	cmd.keys(args, func(key []byte) {
		if o.changing == nil {
			o.changing = map[string]int{}
		}
		o.changing[string(key)]++
		for watcher := range o.watchers[string(key)] {
			watcher.tracking.broken.Store(true)
		}
	})
}

func (s *Server) endChange(cmd *Command, args [][]byte) {
	o := &s.observed
	o.mu.Lock()
	defer o.mu.Unlock()
	cmd.keys(args, func(key []byte) {
		if o.changing[string(key)]--; o.changing[string(key)] == 0 {
			delete(o.changing, string(key))
		}
	})
}

// isAside reports whether the name is that of a filter that a long command is making.
// Such names are never shown.
func isAside(name string) bool { return strings.HasPrefix(name, store.UnfinishedPrefix) }

// errFlushed is makeAside's error when the hidden name was deleted, which only FLUSHALL
// and FLUSHDB do.
var errFlushed = errors.New("all keys were deleted while this one was being made: send the command again")

// makeAside calls make to fill a filter under a hidden name, and then renames it to
// name in one step. Unless replace is set, the error is ErrExists if the name is taken.
// If there is an error, nothing has changed.
func (c *Client) makeAside(name []byte, replace bool, ends time.Time, make func(aside string) error) error {
	s := c.server
	aside := store.UnfinishedPrefix + strconv.FormatInt(c.id, 10)
	s.store.Drop(s.ctx, aside) // left by a server that crashed
	s.aside.Add(1)
	err := make(aside)
	return c.inOneStep(func() error {
		s.aside.Add(-1)
		if err == nil && !replace && c.kind(name) != store.None {
			err = store.ErrExists
		}
		if err == nil {
			err = s.store.Rename(s.ctx, aside, string(name))
		}
		if errors.Is(err, store.ErrNotFound) && c.kind([]byte(aside)) == store.None {
			err = errFlushed
		}
		if err != nil {
			s.store.Drop(s.ctx, aside)
			return err
		}
		if !ends.IsZero() {
			return s.store.Expire(s.ctx, string(name), ends)
		}
		return nil
	})
}
