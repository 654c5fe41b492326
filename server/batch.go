package server

import (
	"bytes"
	"context"

	"github.com/bloomery/bloom/internal/resp"
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
	refused []refusedKeys

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
	if b.kind.isLookup() {
		b.lookUp()
	} else {
		b.change()
	}
	b.kind, b.name = runNone, nil
	b.keys, b.replies, b.refused = b.keys[:0], b.replies[:0], b.refused[:0]
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
