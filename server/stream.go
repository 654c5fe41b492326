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

// A stream serves one connection by a goroutine of its own, where there are no
// event loops, and under TLS. What comes with one read is a batch.
type stream struct {
	client *Client
	conn   net.Conn

	mu       sync.Mutex  // held while what was read is executed and answered
	waking   atomic.Bool // a goroutine waits for mu, to send what was pushed
	stopping chan struct{}
	once     sync.Once
	last     time.Time // when it ends in any case; set before stopping is closed

	deadlineMu sync.Mutex // held while a read deadline is worked out and set
	waits      time.Time  // guarded by deadlineMu: since when for more; zero: not yet
}

// Times of a stream.
const (
	handshakeTime = 10 * time.Second      // for TLS
	writeTime     = time.Minute           // to take a reply, where Limits.Idle does not say
	drainTime     = 20 * time.Millisecond // how long nothing may come, at the end of the server
	drainLimit    = time.Second           // how long one may go on sending then
	lingerTime    = 3 * time.Second       // how long one may go on that was refused
)

func newStream(c *Client, conn net.Conn) *stream {
	if config := c.server.config.TLS; config != nil {
		conn = tls.Server(conn, config)
	}
	return &stream{client: c, conn: conn, stopping: make(chan struct{})}
}

func (t *stream) start()   { go t.run() }
func (t *stream) discard() { t.conn.Close() }

// wake sends what was pushed from a goroutine of its own: the caller may be
// executing a command of this very client. One that waits is enough.
func (t *stream) wake() {
	if !t.waking.Swap(true) {
		go func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.waking.Store(false) // what is pushed from now on may be too late for flush
			if !t.flush() {
				t.conn.Close()
			}
		}()
	}
	if t.client.isKilled() {
		t.conn.Close() // also if it hangs in a write
	}
}

func (t *stream) stop() {
	t.once.Do(func() {
		t.last = time.Now().Add(drainLimit)
		close(t.stopping)
	})
	t.retime()
}

// retime sets until when something has to come. Whoever changes what that depends
// on calls it afterwards: so the last one to set it knows all.
func (t *stream) retime() {
	t.deadlineMu.Lock()
	defer t.deadlineMu.Unlock()
	idle := t.client.server.limits.Load().Idle
	switch {
	case t.isStopping():
		t.conn.SetReadDeadline(time.Now().Add(drainTime))
	case t.waits.IsZero(): // a handshake has its own
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

// run reads and answers until the connection ends.
func (t *stream) run() {
	c, s := t.client, t.client.server
	defer s.forget(c)
	defer t.conn.Close()
	if conn, ok := t.conn.(*tls.Conn); ok {
		conn.SetDeadline(time.Now().Add(handshakeTime))
		if err := conn.Handshake(); err != nil {
			s.log.Info("no TLS with a client", "client", c.addr, "error", err)
			return
		}
		conn.SetDeadline(time.Time{})
	}
	defer t.linger()
	quiet := false // nothing had come when it was looked last, at the end of the server
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
		// The deadline may have passed while this goroutine, or this whole process, got no
		// turn, and then nobody has looked what has come: look once more.
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if err != nil && !(late && (n > 0 || t.isStopping() && !quiet)) {
			return
		}
		quiet = late && n == 0
	}
}

// linger lets a client that was refused read why, which is busy sending and would
// see its connection reset: see lingerTime.
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

// readStream is how much room there is at least for what is read at once.
const readStream = 16 << 10

// promptBytes is how much in replies is sent before a long command: of more, as of a
// dump, the client may be slow to read, and Limits.OutputBytes says how much it may
// leave.
const promptBytes = 64 << 10

// received executes n bytes more, and answers. It is false if the connection has
// to end at once.
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

// execute executes what has come and returns how many bytes that was. A long command
// is executed after the replies to those before it were sent. It is false if the
// connection has to end at once.
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

// flush sends the replies and what was pushed. It is called with mu held, and
// false if the connection has to end.
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
