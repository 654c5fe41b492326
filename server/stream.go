package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A stream serves one connection with a goroutine of its own, where there are no event
// loops, under TLS, and if the store is on other machines. The commands of one read are a batch.
type stream struct {
	client *Client
	conn   net.Conn

	mu       sync.Mutex  // held while input is executed and answered
	waking   atomic.Bool // a goroutine waits for mu to send what was pushed
	stopping chan struct{}
	once     sync.Once
	last     time.Time // the latest time to close; set before stopping is closed

	deadlineMu sync.Mutex // held while a read deadline is computed and set
	waits      time.Time  // guarded by deadlineMu: waiting for input since; zero: not yet
}

// Times of a stream.
const (
	handshakeTime = 10 * time.Second      // for TLS
	writeTime     = time.Minute           // to accept a reply, if Limits.Idle is zero
	drainTime     = 20 * time.Millisecond // how long a client must be quiet, when the server stops
	drainLimit    = time.Second           // how long a client may keep sending then
	lingerTime    = 3 * time.Second       // how long a refused client may keep sending
)

func newStream(c *Client, conn net.Conn) *stream {
	if config := c.server.config.TLS; config != nil {
		conn = tls.Server(conn, config)
	}
	return &stream{client: c, conn: conn, stopping: make(chan struct{})}
}

func (t *stream) start()   { go t.run() }
func (t *stream) discard() { t.conn.Close() }

// wake sends what was pushed, from a new goroutine: the caller may be executing a
// command of this very client. One waiting goroutine is enough.
func (t *stream) wake() {
	if !t.waking.Swap(true) {
		go func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.waking.Store(false) // what is pushed from now on may miss this flush
			if !t.flush() {
				t.conn.Close()
			}
		}()
	}
	if t.client.isKilled() {
		t.conn.Close() // also if a write is blocked
	}
}

func (t *stream) stop() {
	t.once.Do(func() {
		t.last = time.Now().Add(drainLimit)
		close(t.stopping)
	})
	t.retime()
}

// retime sets the read deadline. It is called after each change of what the deadline
// depends on, so the last call sees all changes.
func (t *stream) retime() {
	t.deadlineMu.Lock()
	defer t.deadlineMu.Unlock()
	idle := t.client.server.limits.Load().Idle
	switch {
	case t.isStopping():
		t.conn.SetReadDeadline(time.Now().Add(drainTime))
	case t.waits.IsZero(): // a handshake has its own deadline
	case idle > 0:
		t.conn.SetReadDeadline(t.waits.Add(idle))
	default:
		t.conn.SetReadDeadline(time.Time{})
	}
}

func (t *stream) isStopping() bool {
	select {
	case <-t.stopping:
		return true
	default:
		return false
	}
}

// run serves the connection until it ends.
func (t *stream) run() {
	c, s := t.client, t.client.server
	defer s.forget(c)
	defer t.conn.Close()
	if conn, ok := t.conn.(*tls.Conn); ok {
		conn.SetDeadline(time.Now().Add(handshakeTime))
		if err := conn.Handshake(); err != nil {
			s.log.Info("TLS handshake failed", "client", c.addr, "error", err)
			return
		}
		conn.SetDeadline(time.Time{})
	}
	defer t.linger()
	quiet := false // no input at the last look, while the server stops
	for !c.ending {
		t.deadlineMu.Lock()
		t.waits = time.Now()
		t.deadlineMu.Unlock()
		t.retime()
		if t.isStopping() && time.Now().After(t.last) {
			return
		}
		if !c.growInput(readStream) {
			t.mu.Lock()
			t.flush()
			t.mu.Unlock()
			return
		}
		n, err := t.conn.Read(c.in[len(c.in):cap(c.in)])
		if n > 0 && !t.received(n) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && n == 0 && !t.isStopping() {
			s.metrics.refuse(limitIdle)
		}
		// The deadline may have passed while this goroutine, or the whole process, was
		// not scheduled. Then the input was not looked at: look once more.
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if err != nil && !(late && (n > 0 || t.isStopping() && !quiet)) {
			return
		}
		quiet = late && n == 0
	}
}

// linger lets a refused client, which is still sending, read the reason before its
// connection is reset: see lingerTime.
func (t *stream) linger() {
	half, ok := t.conn.(interface{ CloseWrite() error })
	if !t.client.lingers || !ok || half.CloseWrite() != nil {
		return
	}
	t.deadlineMu.Lock()
	if !t.isStopping() {
		t.conn.SetReadDeadline(time.Now().Add(lingerTime))
	}
	t.deadlineMu.Unlock()
	io.Copy(io.Discard, t.conn)
}

// readStream is the least room for one read.
const readStream = 16 << 10

// promptBytes is the most bytes of replies that are sent before a long command. More,
// such as a dump, may take the client long to read, and is left to Limits.OutputBytes.
const promptBytes = 64 << 10

// received executes n more bytes of input and replies. It returns false if the
// connection must be closed at once.
func (t *stream) received(n int) bool {
	c, s := t.client, t.client.server
	t.mu.Lock()
	defer t.mu.Unlock()
	s.stats.bytesIn.Add(int64(n))
	c.lastActive.Store(time.Now().Unix())
	c.in = c.in[:len(c.in)+n]
	used, ok := t.execute(c.in)
	if !ok {
		return false
	}
	c.eat(used)
	if len(c.in) == 0 && cap(c.in) > 4*readStream {
		c.in = nil
	}
	if !c.count(c.held()) {
		c.dropLargest()
		return false
	}
	sent := t.flush()
	c.count(c.held())
	return sent
}

// execute executes the complete commands in sent and returns how many bytes they took.
// A long command is executed after the replies to the ones before it are sent. ok is
// false if the connection must be closed at once.
func (t *stream) execute(sent []byte) (used int, ok bool) {
	c, s := t.client, t.client.server
	b := s.takeBatch()
	defer s.batches.Put(b)
	for {
		b.begin()
		used += b.execute(c, sent[used:])
		err := b.end()
		if err == nil && c.detour != nil {
			if len(c.w.Buf) <= promptBytes && !t.flush() {
				return used, false
			}
			err = s.takeDetour(c)
			c.detour = nil
			if err == nil {
				if c.isKilled() {
					return used, false
				}
				c.fits(0)
				continue
			}
		}
		if err != nil {
			s.fail(err)
		}
		return used, err == nil
	}
}

// flush sends the replies and what was pushed. It returns false if the connection must
// be closed. The caller holds mu.
func (t *stream) flush() bool {
	c, s := t.client, t.client.server
	pushed, killed := c.takePushed()
	if killed {
		return false
	}
	c.w.Buf = append(c.w.Buf, pushed...)
	if len(c.w.Buf) == 0 {
		return true
	}
	patience := s.limits.Load().Idle
	if patience <= 0 {
		patience = writeTime
	}
	t.conn.SetWriteDeadline(time.Now().Add(patience))
	n, err := t.conn.Write(c.w.Buf)
	s.stats.bytesOut.Add(int64(n))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.dropUnread(len(c.w.Buf) - n)
	}
	if c.w.Buf = c.w.Buf[:0]; cap(c.w.Buf) > 4*readStream {
		c.w.Buf = nil
	}
	return err == nil
}

func (s *Server) takeBatch() *batch {
	if b, ok := s.batches.Get().(*batch); ok {
		return b
	}
	return newBatch(s)
}
