package server

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bloomery/bloom/store"
)

// A command whose time grows with the size of a filter, or with how many names there
// are, would let everybody else wait if a loop executed it. Its client is sent on a
// detour instead. The batch ends, is committed, and its replies are sent; then a
// goroutine executes the command, without [Server.alone], and commits. Until it is
// done, nothing more is read or executed of this client, so the order of its commands
// and of their replies is what it always was. Others go on.
//
// What such a command has to do in one step for everyone who looks, it does by
// [Client.inOneStep]. In a transaction it is executed as all others, and everybody
// waits.
type detour struct {
	command *Command // nil: there is none, but a long argument is to be read
	args    [][]byte // as dispatch had them, of what the client has sent
	silent  bool     // by CLIENT REPLY: not answered
}

// maxDetours is how many long commands are executed at a time. The others wait for
// their turn. Each may have a chunk of a dump in hand, and copies of it.
const maxDetours = 4

// manyArguments is how many a command has at most that a loop executes. What grows
// with its arguments is long with more of them: this many are a millisecond or so.
const manyArguments = 16 << 10

// isLong reports whether a command is for a detour. With the flag Alone it is not:
// everybody waits for such a command in any case.
func (cmd *Command) isLong(args [][]byte) bool {
	return cmd.Flags.Has(Long) || len(args) > manyArguments && !cmd.Flags.Has(Alone)
}

// keepArguments copies the arguments, for a transport that needs the memory of what
// was sent.
func (d *detour) keepArguments() {
	for i, arg := range d.args {
		d.args[i] = bytes.Clone(arg)
	}
}

// pieceBytes is how much is copied at a time, where much has to be: neither Go's
// scheduler nor its collector interrupts a copy, and others would wait for the end.
const pieceBytes = 1 << 20

// appendPieces appends what may be much.
func appendPieces(to, what []byte) []byte {
	to = slices.Grow(to, len(what))
	for len(what) > pieceBytes {
		to = append(to, what[:pieceBytes]...)
		what = what[pieceBytes:]
		runtime.Gosched()
	}
	return append(to, what...)
}

// bulk answers with what may be much.
func (c *Client) bulk(value []byte) {
	c.w.Buf = slices.Grow(c.w.Buf, len(value)+bulkOverhead)
	c.w.Buf = fmt.Appendf(c.w.Buf, "$%d\r\n", len(value))
	c.w.Buf = append(appendPieces(c.w.Buf, value), "\r\n"...)
}

// bulkOverhead is more than a bulk string takes beside its bytes.
const bulkOverhead = 32

// takeDetour executes the long command of a client that has one, and commits. If there
// is an error, the answer must not be sent. The caller is the only one that uses the
// client, and has no lock.
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

// inOneStep calls step while nobody else executes a command. It is for handlers of
// long commands: in a transaction nobody does anyway.
func (c *Client) inOneStep(step func() error) error {
	if c.batch.detours {
		c.server.alone.Lock()
		defer c.server.alone.Unlock()
	}
	return step()
}

// beginChange is called before a long command writes. It may show what it does bit by
// bit, so EXEC fails for all who watch its keys, or begin to before endChange.
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

// isAside reports whether a long command is making the filter of that name. Nobody is
// shown it.
func isAside(name string) bool { return strings.HasPrefix(name, store.UnfinishedPrefix) }

// errFlushed is makeAside's when somebody else has taken the name that nobody is shown
// away: only FLUSHALL and FLUSHDB take away all there are.
var errFlushed = errors.New("all keys were deleted while this one was being made: send the command again")

// makeAside lets make fill a filter under a name that nobody is shown, and then gives
// it the name that was asked for, in one step; unless replace is set, only if nothing
// has it, and else the error is ErrExists. When there is an error, nothing has changed.
func (c *Client) makeAside(name []byte, replace bool, ends time.Time, make func(aside string) error) error {
	s := c.server
	aside := store.UnfinishedPrefix + strconv.FormatInt(c.id, 10)
	s.store.Drop(s.ctx, aside) // of a server that has crashed
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
