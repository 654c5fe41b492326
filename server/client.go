package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom/internal/resp"
)

// access is what a client may do.
type access uint8

const (
	accessNone access = iota // it has to send a password first
	accessRead
	accessFull
)

// replyMode is what CLIENT REPLY has set.
type replyMode uint8

const (
	replyAll  replyMode = iota
	replySkip           // not to the next command
	replyNone
)

// A Client is a connection and its state. It belongs to the goroutine that
// executes its commands; what others may use says so.
type Client struct {
	server *Server
	id     int64
	addr   string // of the client's side
	laddr  string // of ours
	since  time.Time

	// w is where handlers answer. Its protocol is changed by setProtocol.
	w resp.Writer

	// batch is what executes the client's commands.
	batch *batch

	access    access
	db        int       // by SELECT; databases.go
	replies   replyMode // see dispatch
	ending    bool      // close when what was answered is sent; no command is executed any more
	unchanged bool      // set by a command that writes and has changed nothing; see call
	lingers   bool      // and what comes yet is read and thrown away for a while: see lingerTime

	multi    *transaction // nil unless in MULTI; multi.go
	tracking tracking     // CLIENT TRACKING; tracking.go

	// slow is set when a command of this client cannot go into a run: refreshed by
	// settle.
	slow bool

	parser resp.Parser
	in     []byte // what has come and is not a whole command yet
	out    []byte // what could not be sent yet; see setOut
	outCap int    // of the buffer that out is a part of

	// detour is a long command that has to be executed, or is being executed, before
	// anything else of this client. away is set while it is; any goroutine may read it.
	detour *detour
	away   atomic.Bool

	transport transport

	mu    sync.Mutex
	about about // guarded by mu

	pushMu sync.Mutex
	pushed []byte // guarded by pushMu: messages of other goroutines, not sent yet
	killed bool   // guarded by pushMu

	// What the buffers were counted as, see buffers.go: the client's own, and pushed.
	buffered       atomic.Int64
	bufferedPushes atomic.Int64

	lastActive  atomic.Int64 // seconds since 1970, of what came last
	lastCommand atomic.Pointer[Command]
}

// about is what a client lets others know: CLIENT LIST. The zero value is that
// of a client that has said nothing.
type about struct {
	name       string // CLIENT SETNAME
	libName    string // CLIENT SETINFO
	libVersion string
	user       string
	protocol   int
	db         int
}

// transport is how a client's bytes go. All methods may be called by any
// goroutine.
type transport interface {
	start()   // begins to serve the client
	discard() // ends what has not been started
	wake()    // sends what was pushed, or ends a client that was killed
	stop()    // executes what has come, answers and closes
	retime()  // looks at Limits.Idle anew
}

// describe changes what others know of the client. Any goroutine may call it.
func (c *Client) describe(change func(*about)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.about)
}

// description returns what others know of the client. Any goroutine may call it.
func (c *Client) description() about {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.about
}

// setProtocol is HELLO's: 2 or 3.
func (c *Client) setProtocol(version int) {
	c.w.Protocol = version
	c.describe(func(a *about) { a.protocol = version })
}

// setDB is SELECT's.
func (c *Client) setDB(db int) {
	c.db = db
	c.describe(func(a *about) { a.db = db })
}

// settle has to be called when multi, replies, access, db or tracking have changed;
// dispatch does after every command that is not in a run.
func (c *Client) settle() {
	c.slow = c.multi != nil || c.replies != replyAll || c.access != accessFull || c.tracking.on || c.db != 0 || c.ending
}

// end closes the connection when all that was answered is sent.
func (c *Client) end() {
	c.ending = true
	c.slow = true
}

// push sends the client a message that write makes, behind the replies to what it
// is executing. Any goroutine may call it.
func (c *Client) push(protocol int, write func(w *resp.Writer)) {
	c.pushMu.Lock()
	w := resp.Writer{Buf: c.pushed, Protocol: protocol}
	write(&w)
	c.pushed = w.Buf
	unread := len(c.pushed)
	c.pushMu.Unlock()
	switch {
	case unread > c.server.limits.Load().OutputBytes:
		c.dropUnread(unread)
		return
	case !c.countPushed(unread):
		c.dropLargest()
		return
	}
	c.transport.wake()
}

// dropUnread closes a client that leaves so many bytes unread, and says so, once.
// Any goroutine may call it.
func (c *Client) dropUnread(unread int) {
	if c.drop() {
		c.server.stats.dropped.Add(1)
		c.server.log.Warn("closed a client that does not read its replies", "client", c.addr, "unread", unread, "limit", limitNames[limitOutput])
	}
}

// drop closes a client without sending what was pushed, and reports whether it was
// not closed already. Any goroutine may call it.
func (c *Client) drop() bool {
	c.pushMu.Lock()
	known := c.killed
	c.pushed, c.killed = nil, true
	c.pushMu.Unlock()
	c.transport.wake()
	return !known
}

// fits reports whether the client may be left n bytes more to read. If not, it is
// closed, and a command that is being executed should end. Commands that answer
// with many values ask before each; all others are asked for by the batch.
func (c *Client) fits(n int) bool {
	unread := len(c.w.Buf) + len(c.out) + n
	switch {
	case unread > c.server.limits.Load().OutputBytes:
		c.dropUnread(unread)
	case unread > countedBytes && !c.count(c.held()+n):
		c.dropLargest()
	default:
		return true
	}
	c.end()
	return false
}

// takePushed returns what was pushed, and whether the client was killed.
func (c *Client) takePushed() (pushed []byte, killed bool) {
	c.pushMu.Lock()
	defer c.pushMu.Unlock()
	pushed, c.pushed = c.pushed, nil
	c.countPushed(0)
	return pushed, c.killed
}

// isKilled reports whether the client is to be closed, whatever it was promised.
// Any goroutine may call it.
func (c *Client) isKilled() bool {
	c.pushMu.Lock()
	defer c.pushMu.Unlock()
	return c.killed
}

// kill closes the connection. Any goroutine may call it.
func (c *Client) kill() {
	c.pushMu.Lock()
	c.killed = true
	c.pushMu.Unlock()
	c.transport.wake()
}
