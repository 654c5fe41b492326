package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom/store"
)

// ErrProtected is the error of [Server.Serve] for a listener that other machines can
// reach, if no password is set.
var ErrProtected = errors.New("server: no password is set, so only loopback addresses are served: set a password, or listen on 127.0.0.1")

// ErrStopped is the error of [Server.Serve] after [Server.Shutdown].
var ErrStopped = errors.New("server: stopped")

// A Server serves clients. Its methods are safe for concurrent use.
type Server struct {
	store    store.Store
	config   Config // as given to New, with zeros filled in
	log      *slog.Logger
	commands table
	start    time.Time

	// filter is what BF.ADD creates. CONFIG SET replaces filter and limits, so read
	// them here, not in config.
	filter atomic.Pointer[store.Spec]
	limits atomic.Pointer[Limits]

	// alone is held for reading while a batch is executed, and for writing by
	// commands with the flag Alone.
	alone sync.RWMutex

	// observers counts the observers of written keys: tracking clients, and watched
	// keys.
	observers atomic.Int64

	// buffered is the size of all clients' buffers; see buffers.go.
	buffered atomic.Int64

	stats    stats
	wrong    wrongPasswords
	metrics  *metrics
	observed observed // tracking.go

	ctx  context.Context // for all calls of the store; ends after Shutdown
	stop context.CancelFunc

	batches sync.Pool     // of the batches that streams and detours use
	detours chan struct{} // holds an element for each running detour
	aside   atomic.Int64  // filters that long commands are making; see makeAside

	running sync.WaitGroup // clients, from enter to forget

	informed informed

	rates   rates                                 // apirates.go
	pulse   pulse                                 // apievents.go
	watched atomic.Pointer[map[string]*keyCounts] // the filters that event streams show; nil: none

	mu        sync.Mutex // guards the fields below
	clients   map[int64]*Client
	lastID    int64
	listeners map[net.Listener]struct{}
	loops     loops
	stopping  bool
	failure   error // why the server stops, if not by Shutdown
}

// stats are the counts for INFO.
type stats struct {
	commands    atomic.Int64 // executed
	connections atomic.Int64 // accepted
	rejected    atomic.Int64 // refused because of Limits.Clients
	bytesIn     atomic.Int64
	bytesOut    atomic.Int64
	hits        atomic.Int64 // keys that were found
	misses      atomic.Int64
	dropped     atomic.Int64 // closed because of Limits.OutputBytes
}

// New returns a server for the filters of a store. The caller closes the store after
// the server has stopped.
func New(st store.Store, config Config) (*Server, error) {
	_, memory := st.Usage()
	config.Limits = config.Limits.within(memory)
	config, err := config.filled()
	if err != nil {
		return nil, err
	}
	if most := mostClients(); config.Limits.Clients > most {
		config.Log.Warn("fewer clients than configured: each takes a file descriptor, and the process may not open more (ulimit -n)",
			"clients", most, "descriptors", maxFiles())
		config.Limits.Clients = most
	}
	s := &Server{
		store: st, config: config, log: config.Log, start: time.Now(),
		clients: map[int64]*Client{}, listeners: map[net.Listener]struct{}{},
		detours: make(chan struct{}, maxDetours),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.filter.Store(&config.Filter)
	s.limits.Store(&config.Limits)
	s.pulse.server = s
	s.commands = newTable()
	s.metrics = newMetrics(s.commands)
	s.groupNames()
	st.OnEnd(func(name string) {
		if s.observers.Load() > 0 {
			s.keyWritten(nil, []byte(name))
		}
	})
	if st, ok := st.(store.Stopper); ok {
		st.OnStop(s.fail) // also if no commit is under way
	}
	return s, nil
}

// Serve accepts and serves connections until Shutdown is called, and then returns
// ErrStopped. If the store can no longer make anything durable, Serve returns an error
// that wraps store.ErrStopped. It closes the listener. It may be called for several
// listeners.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if err := s.config.MayListen(l.Addr()); err != nil {
		return err
	}
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return s.whyStopped()
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	for wait := 5 * time.Millisecond; ; {
		conn, err := l.Accept()
		if err == nil {
			s.accept(conn)
			wait = 5 * time.Millisecond
			continue
		}
		if s.isStopping() || errors.Is(err, net.ErrClosed) {
			return s.whyStopped()
		}
		// Most likely there are too many open files, which passes.
		s.log.Warn("cannot accept a connection, trying again", "error", err, "after", wait)
		time.Sleep(wait)
		wait = min(2*wait, time.Second)
	}
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

func (s *Server) whyStopped() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return s.failure
	}
	return ErrStopped
}

// accept starts serving a connection, or refuses it.
func (s *Server) accept(conn net.Conn) {
	if s.isStopping() {
		conn.Close()
		return
	}
	s.stats.connections.Add(1)
	if !s.config.admits(conn.RemoteAddr()) {
		s.refuse(conn, textProtected)
		return
	}
	c := s.newClient(conn)
	ok := false
	if _, remote := s.store.(store.Remote); s.config.TLS == nil && !remote {
		c.transport, ok = s.newSocket(c, conn)
	}
	if !ok {
		c.transport = newStream(c, conn)
	}
	if !s.enter(c) {
		if s.isStopping() {
			conn.Close()
		} else {
			s.stats.rejected.Add(1)
			s.refuse(conn, "ERR max number of clients reached")
		}
		c.transport.discard()
		return
	}
	c.transport.start()
}

// textProtected begins with the word that clients check for.
const textProtected = "DENIED Bloomery is running in protected mode, because no password is set for the default user. " +
	"In this mode connections are accepted from the loopback interface only. To connect from elsewhere, set a password and start again."

// refuse sends a client the reason why it cannot be served, and closes the connection.
func (s *Server) refuse(conn net.Conn, text string) {
	if s.config.TLS == nil { // a handshake would delay others
		conn.SetWriteDeadline(time.Now().Add(time.Second))
		conn.Write([]byte("-" + text + "\r\n"))
	}
	conn.Close()
}

// newClient makes the state of a connection.
func (s *Server) newClient(conn net.Conn) *Client {
	c := &Client{server: s, addr: conn.RemoteAddr().String(), laddr: conn.LocalAddr().String(), since: time.Now()}
	c.lastActive.Store(c.since.Unix())
	c.setProtocol(2)
	c.deauthenticate()
	return c
}

// enter registers a client, unless there are too many or the server is stopping.
func (s *Server) enter(c *Client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) >= s.limits.Load().Clients || s.stopping {
		return false
	}
	s.lastID++
	c.id = s.lastID
	s.clients[c.id] = c
	s.running.Add(1) // until forget
	return true
}

// forget unregisters a closed client.
func (s *Server) forget(c *Client) {
	s.mu.Lock()
	delete(s.clients, c.id)
	s.mu.Unlock()
	c.count(0)
	c.countPushed(0)
	s.clientGone(c)
	s.running.Done()
}

// eachClient calls f with every client, in the order in which they came.
func (s *Server) eachClient(f func(*Client)) {
	s.mu.Lock()
	clients := slices.SortedFunc(maps.Values(s.clients), func(a, b *Client) int { return int(a.id - b.id) })
	s.mu.Unlock()
	for _, c := range clients {
		f(c)
	}
}

// clientCount returns the number of clients.
func (s *Server) clientCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// detourTime is how long Shutdown waits for long commands after its context has ended.
const detourTime = 5 * time.Second

// Shutdown stops accepting connections, executes the commands received so far, sends
// the replies and closes. If ctx ends before all replies were read, it closes anyway
// and returns ctx's error. A long command that does not finish within five seconds more
// may then still be running.
func (s *Server) Shutdown(ctx context.Context) error {
	s.beginStop(nil)
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		s.eachClient((*Client).kill)
		select {
		case <-done:
		case <-time.After(detourTime):
			s.log.Error("a long command is still running: no longer waiting for it", "waited", detourTime)
			s.stop()
			go func() {
				<-done
				s.stopLoops()
			}()
			return err
		}
	}
	s.stopLoops()
	s.stop()
	return err
}

// beginStop stops listeners and clients, for Shutdown or because of err. It reports
// whether this was the first call.
func (s *Server) beginStop(err error) (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.stopping, s.failure = true, err
	for l := range s.listeners {
		l.Close()
	}
	for _, c := range s.clients {
		c.transport.stop()
	}
	return true
}

// fail stops the server because a commit has failed. From now on nothing is
// acknowledged.
func (s *Server) fail(err error) {
	if s.beginStop(err) {
		s.log.Error("the store can no longer make anything durable: stopping", "error", err)
	}
	s.eachClient((*Client).kill)
}

// MayListen returns nil if a server of this configuration may listen on an address, for
// RESP or HTTP; otherwise an error that wraps [ErrProtected].
func (c *Config) MayListen(addr net.Addr) error {
	if c.admits(addr) {
		return nil
	}
	return fmt.Errorf("%w (asked for %v)", ErrProtected, addr)
}

// admits reports whether an address may be either end of a connection: without a
// password, only this machine's.
func (c *Config) admits(addr net.Addr) bool {
	return c.Password != "" || c.Unprotected || isLoopback(addr)
}

// isLoopback reports whether an address is reachable only from this machine.
func isLoopback(addr net.Addr) bool {
	switch addr := addr.(type) {
	case *net.TCPAddr:
		return addr.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// shutdownTime is how long clients may take to read their last replies after SHUTDOWN.
const shutdownTime = 10 * time.Second

// shutdown stops the server. It replies only if it refuses; otherwise the connection
// closes.
func (c *Client) shutdown(args [][]byte) {
	switch {
	case len(args) > 2 || len(args) == 2 && !is(args[1], "NOSAVE") && !is(args[1], "SAVE"):
		c.w.Error(textSyntax)
		return
	case c.multi != nil:
		c.w.Error("ERR Command not allowed inside a transaction")
		return
	}
	c.server.log.Info("shutting down, requested by a client", "client", c.addr)
	c.end()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		c.server.Shutdown(ctx)
	}()
}
