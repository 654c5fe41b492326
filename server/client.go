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
	accessNone access = iota // a password is required first
	accessRead
	accessFull
)

// replyMode is what CLIENT REPLY has set.
type replyMode uint8

const (
	replyAll  replyMode = iota
	replySkip           // no reply to the next command
	replyNone
)

// A Client is a connection and its state. It belongs to the goroutine that executes its
// commands, except for what says otherwise.
type Client struct {
	server *Server
	id     int64
	addr   string // of the client's side
	laddr  string // of ours
	since  time.Time

	// w is where handlers write replies. setProtocol changes its protocol.
	w resp.Writer

	// batch is what executes the client's commands.
	batch *batch

	access    access
	db        int       // by SELECT; databases.go
	replies   replyMode // see dispatch
	ending    bool      // execute no more commands; close when the replies are sent
	unchanged bool      // set by a writing command that changed nothing; see call
	failed    error     // of the store, under a handler that cannot see it; see call
	lingers   bool      // when ending, read and discard further input for a while: see lingerTime

	multi    *transaction // nil unless in MULTI; multi.go
	tracking tracking     // CLIENT TRACKING; tracking.go

	// slow is set when commands of this client cannot go into a run. settle updates it.
	slow bool

	parser resp.Parser
	in     []byte // input that is not a complete command yet
	out    []byte // replies that could not be sent yet; see setOut
	outCap int    // capacity of the buffer that out is a slice of

	// detour is a long command that must be executed, or is being executed, before
	// anything else from this client. away is set while it runs; any goroutine may read
	// it.
	detour *detour
	away   atomic.Bool

	transport transport

	mu    sync.Mutex
	about about // guarded by mu

	pushMu sync.Mutex
	pushed []byte // guarded by pushMu: messages from other goroutines, not sent yet
	killed bool   // guarded by pushMu

	// The counted sizes of the buffers, see buffers.go: the client's own, and pushed.
	buffered       atomic.Int64
	bufferedPushes atomic.Int64

	lastActive  atomic.Int64 // seconds since 1970, of the last input
	lastCommand atomic.Pointer[Command]
}

// about is what other goroutines may see of a client, for CLIENT LIST. The zero value
// is that of a client that has set nothing.
type about struct {
	name       string // CLIENT SETNAME
	libName    string // CLIENT SETINFO
	libVersion string
	user       string
	protocol   int
	db         int
}

// transport carries a client's bytes. Any goroutine may call its methods.
type transport interface {
	start()   // starts serving the client
	discard() // releases a transport that was not started
	wake()    // sends what was pushed, or closes a killed client
	stop()    // executes what was received, replies and closes
	retime()  // applies a changed Limits.Idle
}

// describe changes what others see of the client. Any goroutine may call it.
func (c *Client) describe(change func(*about)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.about)
}

// description returns what others see of the client. Any goroutine may call it.
func (c *Client) description() about {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.about
}

// setProtocol sets the protocol, 2 or 3, for HELLO.
func (c *Client) setProtocol(version int) {
	c.w.Protocol = version
	c.describe(func(a *about) { a.protocol = version })
}

// setDB sets the database, for SELECT.
func (c *Client) setDB(db int) {
	c.db = db
	c.describe(func(a *about) { a.db = db })
}

// settle must be called when multi, replies, access, db or tracking have changed;
// dispatch calls it after every command that is not in a run.
func (c *Client) settle() {
	c.slow = c.multi != nil || c.replies != replyAll || c.access != accessFull || c.tracking.on || c.db != 0 || c.ending
}

// end closes the connection once all replies are sent.
func (c *Client) end() {
	c.ending = true
	c.slow = true
}

// push sends the client a message that write composes, after the replies to the
// commands being executed. Any goroutine may call it.
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

// dropUnread closes a client that leaves unread bytes unread, and logs it once. Any
// goroutine may call it.
func (c *Client) dropUnread(unread int) {
	if c.drop() {
		c.server.stats.dropped.Add(1)
		c.server.log.Warn("closed a client that does not read its replies", "client", c.addr, "unread", unread, "limit", limitNames[limitOutput])
	}
}

// drop closes a client without sending what was pushed, and reports whether it was
// still open. Any goroutine may call it.
func (c *Client) drop() bool {
	c.pushMu.Lock()
	known := c.killed
	c.pushed, c.killed = nil, true
	c.pushMu.Unlock()
	c.transport.wake()
	return !known
}

// fits reports whether the client may have n more bytes of unread replies. If not, the
// client is closed, and the current command should end. Commands that return many
// values call fits before each; for all others the batch calls it.
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

// isKilled reports whether the client is to be closed at once, with replies unsent. Any
// goroutine may call it.
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
