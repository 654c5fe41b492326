package server

import "golang.org/x/sys/unix"

// depart sends a client on its detour. Until welcome the loop uses nothing of the
// client, but for the bytes that are to be sent before it.
func (l *loop) depart(k *socket) {
	c := k.client
	k.away = true
	k.rest, c.out = c.out, nil
	l.watch(k)
	go func() {
		if c.detour.command == nil {
			c.growInput(trickleBytes)
		} else if err := l.server.takeDetour(c); err != nil {
			l.server.fail(err)
			c.kill()
		}
		k.back.Store(true)
		k.wake()
	}()
}

// welcome takes a client back: it goes on with what came behind the long command,
// and its replies are sent with the batch.
func (l *loop) welcome(k *socket) {
	c := k.client
	k.away, c.detour = false, nil
	k.back.Store(false)
	c.out, k.rest = k.rest, nil
	c.lastActive.Store(l.now)
	k.reading = true // c.w has an answer, or will have
	l.ready = append(l.ready, k)
	l.eat(k)
	l.watch(k)
	if !k.broken && !c.isKilled() {
		k.eaten = l.batch.execute(c, c.in)
	}
}

// sendRest sends what is left of the replies to commands before the long one.
func (l *loop) sendRest(k *socket) {
	if len(k.rest) == 0 {
		return
	}
	if k.rest = k.rest[l.send(k, k.rest):]; k.broken {
		k.rest = nil
	}
	l.watch(k)
}

// watch lets epoll tell what the loop waits for. Of a client that is away it waits
// for nothing: that the other side is gone it is told nevertheless, but once, and not
// again and again.
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

// eat takes off what is executed of what has come.
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
