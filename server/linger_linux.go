package server

import (
	"time"

	"golang.org/x/sys/unix"
)

// A client that is refused in the middle of a long command is busy sending, and would
// see its connection reset before it reads why. So the close is delayed: the reply is
// sent, our side of the connection is shut, and further input is discarded until the
// client closes, for at most lingerTime.

// linger delays the close of a socket whose client has its reply, and reports whether
// it is still delayed.
func (l *loop) linger(k *socket) bool {
	c := k.client
	if !c.lingers || k.stopped.Load() {
		return false
	}
	if !k.lingerEnd.IsZero() {
		return time.Now().Before(k.lingerEnd)
	}
	c.in = nil
	c.count(c.held())
	read := unix.EpollEvent{Fd: k.fd, Events: unix.EPOLLIN}
	if unix.Shutdown(int(k.fd), unix.SHUT_WR) != nil || unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, int(k.fd), &read) != nil {
		return false
	}
	k.lingerEnd = time.Now().Add(lingerTime)
	l.lingering = append(l.lingering, k)
	return true
}

// lingers reports whether the socket's close is delayed.
func (k *socket) lingers(c *Client) bool { return !k.lingerEnd.IsZero() && !k.broken && !k.closed }

// swallow discards input.
func (l *loop) swallow(k *socket) bool {
	waste := l.room[l.used:]
	if len(waste) == 0 { // there will be room in the next turn
		return false
	}
	n, err := unix.Read(int(k.fd), waste)
	if n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR {
		k.broken = true
		l.dirty = append(l.dirty, k)
	}
	return n > 0
}

// endLingering closes the sockets whose time is over.
func (l *loop) endLingering() {
	kept := l.lingering[:0]
	for _, k := range l.lingering {
		switch {
		case k.closed:
		case k.broken || !l.linger(k):
			k.broken = true
			l.dirty = append(l.dirty, k)
		default:
			kept = append(kept, k)
		}
	}
	clear(l.lingering[len(kept):])
	l.lingering = kept
}

// stopLoops ends the loops, which have no connections left.
func (s *Server) stopLoops() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.loops.all {
		l.over.Store(true)
		l.interrupt()
	}
	s.loops.all = nil
}
