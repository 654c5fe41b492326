package server

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// httpLimit bounds the number of HTTP connections, which need no password. When all are
// taken, an idle one is closed in favour of a new one. Some are reserved for this
// machine: a health check must not fail because strangers are connected.
type httpLimit struct {
	most, strangers int // limit of all, and of those from other machines

	mu      sync.Mutex
	open    map[net.Conn]*httpConnection
	strange int
}

type httpConnection struct {
	strange bool
	busy    bool      // serving a request
	since   time.Time // in that state
}

// ownHTTP is how many HTTP connections are reserved for this machine.
const ownHTTP = 16

func newHTTPLimit(most int) *httpLimit {
	return &httpLimit{most: most, strangers: most - min(ownHTTP, most/2), open: map[net.Conn]*httpConnection{}}
}

// state is http.Server's ConnState.
func (l *httpLimit) state(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		c := &httpConnection{strange: !isLoopback(conn.RemoteAddr()), since: time.Now()}
		full := len(l.open) >= l.most || c.strange && l.strange >= l.strangers
		if full && !l.closeIdle(c.strange) {
			conn.Close()
		}
		l.open[conn] = c
		if c.strange {
			l.strange++
		}
	case http.StateActive, http.StateIdle:
		if c := l.open[conn]; c != nil {
			c.busy, c.since = state == http.StateActive, time.Now()
		}
	case http.StateClosed, http.StateHijacked:
		if c := l.open[conn]; c != nil {
			delete(l.open, conn)
			if c.strange {
				l.strange--
			}
		}
	}
}

// closeIdle closes the connection that has been idle the longest, preferably one from
// another machine, and only one of those if strange is set. It returns false if there
// is none.
func (l *httpLimit) closeIdle(strange bool) bool {
	var oldest net.Conn
	better := func(c, than *httpConnection) bool {
		return than == nil || c.strange && !than.strange || c.strange == than.strange && c.since.Before(than.since)
	}
	for conn, c := range l.open {
		if !c.busy && (c.strange || !strange) && better(c, l.open[oldest]) {
			oldest = conn
		}
	}
	if oldest == nil {
		return false
	}
	oldest.Close()
	// Uncount it here: the next one may come before its goroutine reports the end.
	if l.open[oldest].strange {
		l.strange--
	}
	delete(l.open, oldest)
	return true
}
