package server

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// httpLimit bounds the connections of HTTP, which come without a password. When
// there is no room, one that waits for its next request, or has not sent any, is
// closed in favour of a new one. Some are for this machine alone, whatever others
// do: a health check must not fail because strangers are connected.
type httpLimit struct {
	most, strangers int // of them, those from other machines

	mu      sync.Mutex
	open    map[net.Conn]*httpConnection
	strange int
}

type httpConnection struct {
	strange bool
	busy    bool      // with a request
	since   time.Time // busy or not
}

// ownHTTP is how many connections of HTTP are for this machine alone.
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

// closeIdle closes the connection that has been idle for longest, of other machines
// if there is one or only those count, and is false if there is none.
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
	// It is counted out here, as the next one may come before its goroutine says so.
	if l.open[oldest].strange {
		l.strange--
	}
	delete(l.open, oldest)
	return true
}
