package server

import (
	"slices"
	"sync/atomic"

	"github.com/bloomery/bloom/internal/resp"
)

// The buffers of all connections together have a limit: incomplete commands, commands
// queued after MULTI, and unread replies. When it is exceeded, the connection that
// holds the most is closed, as Redis does by maxmemory-clients.

// trickleBytes is the least room made for the rest of an incomplete command.
const trickleBytes = 2 << 10

// countedBytes is how much a connection may buffer without being counted. Most
// connections buffer less and cost nothing.
const countedBytes = 64 << 10

// held returns the current size of the client's own buffers.
func (c *Client) held() int {
	n := cap(c.in) + c.outCap + cap(c.w.Buf)
	if c.multi != nil {
		n += c.multi.bytes
	}
	return n
}

// count records that the client's buffers take n bytes. If all buffers together then
// take too much, the client that holds the most is closed; if that is this one, count
// returns false and the caller has to close it.
func (c *Client) count(n int) bool {
	if n <= countedBytes {
		n = 0
	}
	if n == 0 && c.buffered.Load() == 0 {
		return true
	}
	return c.recount(&c.buffered, n)
}

// countPushed is count for messages that were pushed and are not sent yet. Any
// goroutine may call it.
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
	if n > 0 && c.isKilled() { // it is no longer counted
		return true
	}
	return c.server.buffers(c, int64(n)-counted.Swap(int64(n)))
}

// allBuffered returns the bytes that the client was last counted with. Any goroutine
// may call it.
func (c *Client) allBuffered() int64 { return c.buffered.Load() + c.bufferedPushes.Load() }

// buffers adds to the total of all connections' buffers.
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
	case largest == nil || largest.allBuffered() == 0: // the excess is being released already
		return true
	case largest == c:
		return false
	}
	largest.dropLargest()
	return true
}

// dropLargest closes the client, whose buffers are the largest, because all buffers
// together take too much. Any goroutine may call it.
func (c *Client) dropLargest() {
	if !c.drop() {
		return
	}
	s := c.server
	s.metrics.refuse(limitBuffers)
	s.log.Warn("closed the client with the largest buffers: all clients together hold too much", "client", c.addr,
		"bytes", c.allBuffered(), "limit", limitNames[limitBuffers])
	// It closes at its next turn; do not close another client in the meantime.
	s.buffered.Add(-c.buffered.Swap(0) - c.bufferedPushes.Swap(0))
}

// growInput makes room to read more of what the client sends, least bytes if the length
// of the rest is unknown. It doubles the buffer, so that a long command takes few
// reads; if the current argument needs less, it grows by what is needed or a quarter,
// whichever is more. So memory follows what was received, not what a client claims. It
// returns false, after answering the client, if the buffers of all clients are full.
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
	c.in = grow(c.in, more)
	return true
}

// inputNeed returns how many bytes are missing, least if that is unknown.
func (c *Client) inputNeed(least int) int {
	if claimed := c.parser.Need() - len(c.in); claimed > 0 {
		return claimed
	}
	return least
}

// inputIsShort reports whether growInput must make room.
func (c *Client) inputIsShort(least int) bool {
	return cap(c.in)-len(c.in) < min(c.inputNeed(least), least)
}

// keptInput is how much room is kept for a client that sends one long command after
// another.
const keptInput = 1 << 20

// eat removes n bytes from the front of the input, and frees the room that a long
// command needed.
func (c *Client) eat(n int) {
	rest := c.in[n:]
	if cap(c.in) > keptInput && len(rest) < cap(c.in)/4 {
		c.in = slices.Clone(rest)
		return
	}
	c.in = c.in[:copy(c.in, rest)]
}

// setOut sets the replies that could not be sent yet.
func (c *Client) setOut(replies []byte) { c.out, c.outCap = replies, cap(replies) }

// sentOut removes n bytes that were sent. A buffer that is nearly empty is freed.
func (c *Client) sentOut(n int) {
	c.out = c.out[n:]
	if len(c.out) == 0 || c.outCap > countedBytes && len(c.out) < min(c.outCap/4, pieceBytes) {
		c.setOut(append([]byte(nil), c.out...))
	}
}

// refuseInput replies that the input is not a command, or too long, and closes the
// connection once the client has read the reply.
func (c *Client) refuseInput(text string) {
	c.w.Error(text)
	c.lingers = true
	c.end()
}

// refuseProtocol is refuseInput for an error of the parser. If a limit was exceeded,
// the reply names it.
func (c *Client) refuseProtocol(err error) {
	text := "ERR " + err.Error()
	over, most := c.parser.Exceeded()
	if l := c.limitOf(over); l != limitCount {
		c.server.metrics.refuse(l)
		if l == limitUnauthenticated { // whichever part of the command was too long
			most = c.server.limits.Load().UnauthenticatedBytes
		}
		text += limitSuffix(l, most)
	}
	c.refuseInput(text)
}

// limitOf returns the server's limit for one of the parser's, limitCount if there is
// none.
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
