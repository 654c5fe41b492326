package server

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// depart sends a client on its detour. Until welcome, the loop does not touch the
// client, except for the bytes that must be sent first.
func (l *loop) depart(k *socket) {
	c := k.client
	k.away = true
	k.rest, c.out = c.out, nil
	l.watch(k)
	go func() {
		if c.detour.command == nil {
			k.fill()
		} else if err := l.server.takeDetour(c); err != nil {
			l.server.fail(err)
			c.kill()
		}
		k.back.Store(true)
		k.wake()
	}()
}

// welcome takes a client back: execution continues with the input after the long
// command, and its replies are sent with the batch.
func (l *loop) welcome(k *socket) {
	c := k.client
	k.away, c.detour = false, nil
	k.back.Store(false)
	c.out, k.rest = k.rest, nil
	c.lastActive.Store(l.now)
	k.heard = k.heard || k.filled > 0
	l.bytesIn += int64(k.filled)
	k.broken = k.broken || k.lost
	k.filled = 0
	k.reading = true // c.w has a reply, or will have
	l.ready = append(l.ready, k)
	l.eat(k)
	l.watch(k)
	if !k.broken && !c.isKilled() {
		k.eaten = l.batch.execute(c, c.in)
	}
}

// fill reads the available part of a long argument and returns. The loop waits for the
// rest, so that a slow client does not occupy a goroutine.
func (k *socket) fill() {
	c := k.client
	for first := true; first || c.inputNeed(0) > longReadBytes; first = false {
		if c.isKilled() || !c.growInput(trickleBytes) {
			return
		}
		into := c.in[len(c.in):cap(c.in)]
		n, err := unix.Read(int(k.fd), into[:min(len(into), longReadBytes)])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return
		case err != nil:
			k.lost = true
			return
		case n == 0: // it sends no more, but may still read its replies
			c.end()
			return
		}
		c.in = c.in[:len(c.in)+n]
		k.filled += n
		runtime.Gosched()
	}
}

// sendRest sends the remaining replies to the commands before the long one.
func (l *loop) sendRest(k *socket) {
	if len(k.rest) == 0 {
		return
	}
	if k.rest = k.rest[l.send(k, k.rest):]; k.broken {
		k.rest = nil
	}
	l.watch(k)
}

// watch tells epoll which events the loop waits for. For a client that is away these
// are none: epoll still reports that the other side is gone, but only once.
func (l *loop) watch(k *socket) {
	want := unix.EpollEvent{Fd: k.fd, Events: unix.EPOLLIN}
	switch {
	case k.away && len(k.rest) > 0:
		want.Events = unix.EPOLLOUT
	case k.away:
		want.Events = unix.EPOLLET
	case len(k.client.out) > 0:
		want.Events |= unix.EPOLLOUT
	}
	k.writing = want.Events&unix.EPOLLOUT != 0
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, int(k.fd), &want); err != nil {
		k.broken = true
	}
}

// eat removes the executed part of the input.
func (l *loop) eat(k *socket) {
	c := k.client
	if k.eaten == 0 {
		return
	}
	c.eat(k.eaten)
	k.eaten = 0
	if len(c.in) == 0 {
		l.keep(c.in)
		c.in = nil
	}
}
