package server

import (
	"slices"
	"sync/atomic"

	"github.com/bloomery/bloom/internal/resp"
)

// What all connections have in their buffers together has a limit: commands of
// which a part has come, what is queued after MULTI, and replies that were not
// taken. When it is exceeded, the connection that holds most is closed, as Redis
// does by maxmemory-clients.

// trickleBytes is the least room for more of a command that has begun.
const trickleBytes = 2 << 10

// countedBytes is how much a connection may have in its buffers without being
// counted. Most have less, and cost nothing.
const countedBytes = 64 << 10

// held is what the client's own buffers take now.
func (c *Client) held() int {
	n := cap(c.in) + c.outCap + cap(c.w.Buf)
	if c.multi != nil {
		n += c.multi.bytes
	}
	return n
}

// count tells the server that the client's buffers take n bytes. It reports false
// if that is too much for all together, and this client has the most: then it has
// to be closed. If another one has, that is closed.
func (c *Client) count(n int) bool {
	if n <= countedBytes {
		n = 0
	}
	if n == 0 && c.buffered.Load() == 0 {
		return true
	}
	return c.recount(&c.buffered, n)
}

// countPushed is count of what was pushed and is not sent yet. Any goroutine may
// call it.
func (c *Client) countPushed(n int) bool {
	if n <= countedBytes {
		n = 0
	}
	if n == 0 && c.bufferedPushes.Load() == 0 {
		return true
	}
	return c.recount(&c.bufferedPushes, n)
}

func (c *Client) recount(counted *atomic.Int64, n int) bool {
	if n > 0 && c.isKilled() { // it was counted out
		return true
	}
	return c.server.buffers(c, int64(n)-counted.Swap(int64(n)))
}

// allBuffered is what the client was counted for last. Any goroutine may call it.
func (c *Client) allBuffered() int64 { return c.buffered.Load() + c.bufferedPushes.Load() }

// buffers adds to what all connections have in their buffers.
func (s *Server) buffers(c *Client, more int64) bool {
	limit := int64(s.limits.Load().BufferBytes)
	if s.buffered.Add(more) <= limit || more <= 0 {
		return true
	}
	var largest *Client
	s.eachClient(func(other *Client) {
		if !other.isKilled() && (largest == nil || other.allBuffered() > largest.allBuffered()) {
			largest = other
		}
	})
	switch {
	case largest == nil || largest.allBuffered() == 0: // what was too much is on its way out
		return true
	case largest == c:
		return false
	}
	largest.dropLargest()
	return true
}

// dropLargest closes the client because its buffers are the largest, and those of
// all take too much. Any goroutine may call it.
func (c *Client) dropLargest() {
	if !c.drop() {
		return
	}
	s := c.server
	s.metrics.refuse(limitBuffers)
	s.log.Warn("closed the client with the largest buffers: all clients together hold too much", "client", c.addr,
		"bytes", c.allBuffered(), "limit", limitNames[limitBuffers])
	// It is gone as soon as it looks; nobody else is to be closed for it.
	s.buffered.Add(-c.buffered.Swap(0) - c.bufferedPushes.Swap(0))
}

// growInput makes room to read more of what the client sends, least bytes if it is
// not known how many will come: as much again as there is, so that a long command
// takes few reads; and where that is more than the argument needs which is coming,
// a quarter. So memory follows what has come, and not what a client claims. It is
// false if there is no room in the buffers of all, and then the client has been told.
func (c *Client) growInput(least int) bool {
	if !c.inputIsShort(least) {
		return true
	}
	need := c.inputNeed(least)
	more := min(max(least, len(c.in)), max(least, need, len(c.in)/4))
	if !c.count(c.held() - cap(c.in) + len(c.in) + more) {
		c.server.metrics.refuse(limitBuffers)
		c.refuseInput("ERR Protocol error: the buffers of all clients are full" + limitSuffix(limitBuffers, c.server.limits.Load().BufferBytes))
		return false
	}
	c.in = appendPieces(make([]byte, 0, len(c.in)+more), c.in)
	return true
}

// inputNeed is how many bytes are to come, least if that is not known.
func (c *Client) inputNeed(least int) int {
	if claimed := c.parser.Need() - len(c.in); claimed > 0 {
		return claimed
	}
	return least
}

// inputIsShort reports whether growInput has to make room.
func (c *Client) inputIsShort(least int) bool {
	return cap(c.in)-len(c.in) < min(c.inputNeed(least), least)
}

// keptInput is how much room a client keeps that sends one long command after the
// other.
const keptInput = 1 << 20

// eat takes n bytes off the front of what has come, and gives back the room that a
// long command has needed.
func (c *Client) eat(n int) {
	rest := c.in[n:]
	if cap(c.in) > keptInput && len(rest) < cap(c.in)/4 {
		c.in = slices.Clone(rest)
		return
	}
	c.in = c.in[:copy(c.in, rest)]
}

// setOut makes replies what could not be sent yet.
func (c *Client) setOut(replies []byte) { c.out, c.outCap = replies, cap(replies) }

// sentOut takes off what was sent. A buffer of which little is left is given back.
func (c *Client) sentOut(n int) {
	c.out = c.out[n:]
	if len(c.out) == 0 || c.outCap > countedBytes && len(c.out) < min(c.outCap/4, pieceBytes) {
		c.setOut(append([]byte(nil), c.out...))
	}
}

// refuseInput answers that what the client sends is no command, or too much, and
// closes the connection when the client has taken the answer.
func (c *Client) refuseInput(text string) {
	c.w.Error(text)
	c.lingers = true
	c.end()
}

// refuseProtocol is refuseInput for an error of the parser. If it is a limit that
// was in the way, the answer says which.
func (c *Client) refuseProtocol(err error) {
	text := "ERR " + err.Error()
	over, most := c.parser.Exceeded()
	if l := c.limitOf(over); l != limitCount {
		c.server.metrics.refuse(l)
		if l == limitUnauthenticated { // whatever a command had too much of
			most = c.server.limits.Load().UnauthenticatedBytes
		}
		text += limitSuffix(l, most)
	}
	c.refuseInput(text)
}

// limitOf is the limit behind one of the parser's, limitCount if there is none.
func (c *Client) limitOf(over resp.Limit) limit {
	if over != resp.NoLimit && c.access == accessNone {
		return limitUnauthenticated
	}
	switch over {
	case resp.LimitArgs:
		return limitArguments
	case resp.LimitBulkBytes:
		return limitItem
	case resp.LimitPayloadBytes:
		return limitPayload
	case resp.LimitInlineBytes:
		return limitInline
	case resp.LimitCommandBytes:
		return limitCommand
	}
	return limitCount
}
