package server

import (
	"fmt"
	"math"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A loop serves many connections from one goroutine, by epoll: it reads all sockets
// that are ready, executes their commands as one batch, commits the batch once, sends
// the replies, and waits again. A batch ends early when the read buffer is full.
//
// Each connection is read once per turn, not until it is empty: epoll reports the rest
// again, after all others have had their turn.
type loop struct {
	server *Server
	batch  *batch
	epoll  int
	event  int // an eventfd by which other goroutines interrupt the wait

	sockets []*socket // by file descriptor, nil where there is none
	ready   []*socket // those in the batch
	dirty   []*socket // others to look at: woken, or with output to send
	leaving []*socket // those that stop was called on; see leave

	lingering []*socket // see linger
	events    []unix.EpollEvent

	// room is the read buffer; room[:used] is in the batch.
	room []byte
	used int

	buffers [][]byte // for replies, empty and unused

	now   int64 // seconds since 1970
	swept int64 // when idle clients were last closed

	bytesIn, bytesOut int64 // not yet added to the server's

	mu    sync.Mutex
	gone  bool        // the loop has ended; guarded by mu
	inbox []*socket   // guarded by mu: new sockets, and those to look at
	woken atomic.Bool // the eventfd is set
	over  atomic.Bool // end
}

// Sizes of a loop.
const (
	roomBytes = 1 << 20
	readBytes = 32 << 10  // from a connection, in one turn
	sendBytes = 256 << 10 // to a connection, in one turn

	// The loop reads at most this much of an argument: more would delay the other
	// connections.
	longReadBytes = 256 << 10
	bufferBytes   = 64 << 10 // larger reply buffers are not kept
	maxEvents     = 512
	maxBuffers    = 256
)

// A socket is a connection served by a loop.
type socket struct {
	client *Client
	loop   *loop
	fd     int32
	conn   net.Conn // until it is in the loop

	eaten   int  // bytes of client.in that have been executed
	heard   bool // there was input since leave looked
	reading bool // in loop.ready
	writing bool // epoll reports when more can be sent
	entered bool // in loop.sockets
	away    bool // its client is on a detour; see detour_linux.go
	broken  bool // the other side is gone: close
	filled  int  // bytes read by fill
	lost    bool // fill failed to read
	closed  bool

	lingerEnd   time.Time // in loop.lingering: the latest time to close
	quiet, last time.Time // in loop.leaving: when it has been quiet for long enough, and the latest time to close

	rest []byte // replies that could not be sent before the detour

	asked   atomic.Bool // in loop.inbox
	back    atomic.Bool // the detour has ended
	stopped atomic.Bool // stop was called
}

// loops are the loops of a server, and the one to take the next connection.
type loops struct {
	all  []*loop
	next int
}

// newSocket hands a connection to a loop, unless epoll cannot watch it.
func (s *Server) newSocket(c *Client, conn net.Conn) (transport, bool) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return nil, false
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return nil, false
	}
	fd := -1
	// We use a copy of the descriptor: when conn is closed, Go's own poller lets go of
	// it. The copy does not block, as that is a property of the connection.
	err = control.Control(func(original uintptr) {
		fd, err = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err != nil || fd < 0 {
		return nil, false
	}
	l, err := s.nextLoop()
	if err != nil {
		s.log.Warn("no event loop: each connection gets a goroutine", "error", err)
		unix.Close(fd)
		return nil, false
	}
	return &socket{client: c, loop: l, fd: int32(fd), conn: conn}, true
}

// nextLoop returns the loop for the next connection. The first call starts the loops.
func (s *Server) nextLoop() (*loop, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping { // nothing would stop them
		return nil, ErrStopped
	}
	if s.loops.all == nil {
		n := s.config.Loops
		if n <= 0 {
			n = max(runtime.GOMAXPROCS(0)/2, 1) // see Config.Loops
		}
		for range n {
			l, err := newLoop(s)
			if err != nil {
				return nil, err
			}
			s.loops.all = append(s.loops.all, l)
			go l.run()
		}
	}
	s.loops.next = (s.loops.next + 1) % len(s.loops.all)
	return s.loops.all[s.loops.next], nil
}

func newLoop(s *Server) (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("server: epoll: %w", err)
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, event, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(event)})
	}
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("server: eventfd: %w", err)
	}
	return &loop{
		server: s, batch: newBatch(s), epoll: epoll, event: event,
		events: make([]unix.EpollEvent, maxEvents), room: make([]byte, roomBytes),
		now: time.Now().Unix(),
	}, nil
}

func (k *socket) start() {
	k.conn.Close() // ours is a copy
	k.conn = nil
	k.wake()
}

func (k *socket) discard() { unix.Close(int(k.fd)) }

// wake puts the socket into the loop's inbox, once.
func (k *socket) wake() {
	if k.asked.Swap(true) {
		return
	}
	l := k.loop
	l.mu.Lock()
	l.inbox = append(l.inbox, k)
	l.mu.Unlock()
	l.interrupt()
}

func (k *socket) stop() {
	k.stopped.Store(true)
	k.wake()
}

// retime makes the loop start or stop looking for idle clients.
func (k *socket) retime() { k.loop.interrupt() }

// interrupt ends the loop's wait.
func (l *loop) interrupt() {
	if !l.woken.Swap(true) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.gone { // the descriptor may be somebody else's by now
			return
		}
		one := [8]byte{0: 1, 7: 1} // not zero in either byte order
		unix.Write(l.event, one[:])
	}
}

// run is the loop.
func (l *loop) run() {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gone = true
		unix.Close(l.epoll)
		unix.Close(l.event)
	}()
	for !l.over.Load() {
		n, err := l.wait()
		if err != nil {
			l.server.fail(fmt.Errorf("server: epoll: %w", err))
			return
		}
		l.batch.begin()
		interrupted := false
		for i := range l.events[:n] {
			event := &l.events[i]
			if event.Fd == int32(l.event) {
				interrupted = true
				continue
			}
			k := l.sockets[event.Fd]
			if k == nil {
				continue
			}
			if event.Events&unix.EPOLLOUT != 0 {
				l.dirty = append(l.dirty, k)
			}
			if event.Events&^unix.EPOLLOUT != 0 {
				l.read(k)
			}
		}
		if interrupted {
			l.open()
		}
		l.leave()
		l.endLingering()
		l.finish()
		l.sweep()
	}
}

// wait returns the number of events. It polls without blocking first, which costs less
// than being descheduled and woken.
func (l *loop) wait() (int, error) {
	n, err := unix.EpollWait(l.epoll, l.events, 0)
	for n == 0 && err == nil || err == unix.EINTR {
		n, err = unix.EpollWait(l.epoll, l.events, l.patience())
		if n == 0 && err == nil {
			break
		}
	}
	l.now = time.Now().Unix()
	return max(n, 0), err
}

// patience is how long to wait for events, in milliseconds; -1 means forever.
func (l *loop) patience() int {
	if len(l.leaving) > 0 || len(l.lingering) > 0 {
		return int(drainTime.Milliseconds())
	}
	if l.server.limits.Load().Idle > 0 {
		return 1000
	}
	return -1
}

// open handles the sockets in the inbox.
func (l *loop) open() {
	// In this order nothing is missed: an interruption before the flag is cleared has
	// its socket in the inbox already, and one after it sets the eventfd again.
	var count [8]byte
	unix.Read(l.event, count[:])
	l.woken.Store(false)
	l.mu.Lock()
	inbox := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	for _, k := range inbox {
		k.asked.Store(false)
		if k.closed {
			continue
		}
		if !k.entered {
			l.enter(k)
		}
		if k.away && k.back.Load() {
			l.welcome(k)
		}
		if k.stopped.Load() && k.last.IsZero() {
			now := time.Now()
			k.quiet, k.last = now.Add(drainTime), now.Add(drainLimit)
			l.leaving = append(l.leaving, k)
		}
		l.dirty = append(l.dirty, k)
	}
}

// enter starts serving a socket.
func (l *loop) enter(k *socket) {
	k.entered = true
	for int(k.fd) >= len(l.sockets) {
		l.sockets = append(l.sockets, nil)
	}
	l.sockets[k.fd] = k
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, int(k.fd), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: k.fd}); err != nil {
		l.server.log.Warn("cannot watch a connection", "client", k.client.addr, "error", err)
		k.broken = true
	}
}

// leave closes the sockets that have been stopped, once they are quiet: what a client
// has sent may still be in transit, as the kernel delivers only what there is room for.
func (l *loop) leave() {
	if len(l.leaving) == 0 {
		return
	}
	now := time.Now()
	l.leaving = slices.DeleteFunc(l.leaving, func(k *socket) bool {
		if k.closed || k.broken || !k.away && k.client.ending { // deliver does the rest
			return true
		}
		if k.heard || k.client.detour != nil {
			k.heard, k.quiet = false, now.Add(drainTime)
		}
		if now.Before(k.quiet) && now.Before(k.last) {
			return false
		}
		// The turn may have taken longer than drainTime: look again.
		if l.read(k) && now.Before(k.last) || k.client.detour != nil {
			return false
		}
		k.client.end()
		l.dirty = append(l.dirty, k)
		return true
	})
}

// turn ends the batch and begins the next.
func (l *loop) turn() {
	l.finish()
	l.batch.begin()
}

// read reads from a socket once and executes the input. It reports whether there was
// any.
func (l *loop) read(k *socket) bool {
	c := k.client
	if k.away { // the other side is gone: noticed later
		return false
	}
	if k.lingers(c) {
		return l.swallow(k)
	}
	if c.ending || k.broken || k.closed {
		k.broken = true // the last replies had no reader
		l.dirty = append(l.dirty, k)
		return false
	}
	// The executed part of c.in is removed at the end of the batch.
	if k.reading || len(c.in) == 0 && len(l.room)-l.used < readBytes {
		l.turn()
		if k.away || c.ending || k.broken || k.closed { // its descriptor may have been reused
			return false
		}
	}
	long := len(c.in) > 0
	into := l.room[l.used:min(l.used+readBytes, len(l.room))]
	if long {
		if c.inputNeed(0) > longReadBytes || len(c.in) > pieceBytes && c.inputIsShort(trickleBytes) {
			c.detour = &detour{} // reading and copying it here would delay others
			l.dirty = append(l.dirty, k)
			return false
		}
		if !c.growInput(trickleBytes) {
			k.reading = true
			l.ready = append(l.ready, k)
			return false
		}
		into = c.in[len(c.in):cap(c.in)]
	}
	n, err := unix.Read(int(k.fd), into)
	if err == unix.EAGAIN || err == unix.EINTR {
		return false
	}
	if !k.reading {
		k.reading = true
		l.ready = append(l.ready, k)
		c.w.Buf = l.buffer()
	}
	if err != nil {
		k.broken = true
		return false
	}
	if n == 0 { // it sends no more, but may still read its replies
		c.end()
		return false
	}
	k.heard = true
	l.bytesIn += int64(n)
	c.lastActive.Store(l.now)
	if long {
		c.in = c.in[:len(c.in)+n]
		k.eaten = l.batch.execute(c, c.in)
		return true
	}
	l.used += n
	eaten := l.batch.execute(c, into[:n])
	if c.detour != nil {
		c.detour.keepArguments() // room is reused for the next read
	}
	if eaten < n && !c.ending {
		c.in = append(l.buffer(), into[eaten:n]...)
	}
	return true
}

// finish ends the batch and sends the replies.
func (l *loop) finish() {
	if err := l.batch.end(); err != nil {
		for _, k := range l.ready {
			k.broken = true // so nobody sees an answer
		}
		l.server.fail(err)
	}
	for _, k := range l.ready {
		l.deliver(k)
	}
	for _, k := range l.dirty {
		l.deliver(k)
	}
	l.ready, l.dirty, l.used = l.ready[:0], l.dirty[:0], 0
	l.server.stats.bytesIn.Add(l.bytesIn)
	l.server.stats.bytesOut.Add(l.bytesOut)
	l.bytesIn, l.bytesOut = 0, 0
}

// deliver sends a socket's pending output, and closes the socket if it is time.
func (l *loop) deliver(k *socket) {
	if k.closed {
		return
	}
	c := k.client
	if k.away {
		l.sendRest(k)
		return
	}
	if c.detour == nil { // the detour's arguments are in c.in
		l.eat(k)
	}
	pushed, killed := c.takePushed()
	if killed || k.broken {
		l.close(k)
		return
	}
	replies := c.w.Buf
	if k.reading {
		k.reading = false
		c.w.Buf = nil
	}
	replies = append(replies, pushed...)
	switch {
	case len(c.out) > 0:
		c.setOut(append(c.out, replies...))
		l.keep(replies)
		c.sentOut(l.send(k, c.out))
	default:
		n := l.send(k, replies)
		if n < len(replies) && cap(replies) > bufferBytes {
			c.setOut(replies)
			c.sentOut(n)
			break
		}
		c.setOut(append([]byte(nil), replies[n:]...)) // many may read slowly
		l.keep(replies)
	}
	if len(c.out) > l.server.limits.Load().OutputBytes {
		c.dropUnread(len(c.w.Buf) + len(c.out))
		c.end()
		k.broken = true
	}
	if !c.count(c.held()) {
		c.dropLargest()
		k.broken = true
	}
	if k.broken || c.ending && len(c.out) == 0 && !l.linger(k) {
		l.close(k)
		return
	}
	if k.lingers(c) {
		return
	}
	if c.detour != nil {
		l.depart(k)
		return
	}
	if waiting := len(c.out) > 0; waiting != k.writing || c.ending {
		k.writing = waiting
		want := unix.EpollEvent{Fd: k.fd}
		if waiting {
			want.Events |= unix.EPOLLOUT
		}
		if !c.ending {
			want.Events |= unix.EPOLLIN
		}
		if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, int(k.fd), &want); err != nil {
			l.close(k)
		}
	}
}

// send writes what the kernel accepts, at most sendBytes, and returns how much that
// was: a client that reads as fast as we write would keep the loop from the others.
func (l *loop) send(k *socket, data []byte) (sent int) {
	for sent < min(len(data), sendBytes) {
		n, err := unix.Write(int(k.fd), data[sent:min(len(data), sendBytes)])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			k.broken = k.broken || err != unix.EAGAIN
			break
		}
		sent += n
	}
	if sent > 0 {
		l.bytesOut += int64(sent)
		k.client.lastActive.Store(l.now)
	}
	return sent
}

// close closes a connection. Unsent output is lost.
func (l *loop) close(k *socket) {
	k.closed = true
	if k.entered {
		l.sockets[k.fd] = nil
	}
	unix.Close(int(k.fd)) // epoll forgets it
	c := k.client
	l.keep(c.w.Buf)
	c.in, c.out, c.w.Buf = nil, nil, nil
	l.server.forget(c)
}

// sweep closes idle clients, at most once a second.
func (l *loop) sweep() {
	idle := int64(math.Ceil(l.server.limits.Load().Idle.Seconds()))
	if idle <= 0 || l.now == l.swept {
		return
	}
	l.swept = l.now
	for _, k := range l.sockets {
		if k != nil && !k.away && l.now-k.client.lastActive.Load() > idle {
			l.server.metrics.refuse(limitIdle)
			l.close(k)
		}
	}
}

// buffer returns an empty buffer, one that was kept if there is any.
func (l *loop) buffer() []byte {
	if n := len(l.buffers); n > 0 {
		buffer := l.buffers[n-1]
		l.buffers = l.buffers[:n-1]
		return buffer
	}
	return make([]byte, 0, 4<<10)
}

// keep keeps a buffer for reuse.
func (l *loop) keep(buffer []byte) {
	if cap(buffer) > 0 && cap(buffer) <= bufferBytes && len(l.buffers) < maxBuffers {
		l.buffers = append(l.buffers, buffer[:0])
	}
}
