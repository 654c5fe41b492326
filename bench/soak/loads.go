//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// A load is what a client does repeatedly, so that the server's accounted memory
// stays near 90% of the ceiling. A round takes at most a few seconds.
type load struct {
	name, about string
	begin       func(l *run) error // nil: nothing
	round       func(l *run) error
}

// A run is a load in progress.
type run struct {
	*client
	ctx     context.Context
	ceiling uint64
	rng     *rand.Rand
	next    int      // the number of the next name
	names   []string // that exist, oldest first
	payload string
}

var loads = []load{
	{"rebuild", "a filter rebuilt while the old one is there, BF.SWAP, DEL", func(l *run) error { return l.build("current", l.share(0.44)) }, rebuild},
	{"delete", "filters of up to 60% of the ceiling made and deleted, in addition to one of 30%", func(l *run) error { return l.build("base", l.share(0.3)) }, makeAndDelete},
	{"small", "small filters of every kind made, filled and deleted", nil, churnSmall},
	{"mixed", "strings of up to 1 MiB and filters, which expire or are overwritten", nil, mixed},
}

// share is a fraction of the ceiling, in bytes.
func (l *run) share(of float64) uint64 { return uint64(of * float64(l.ceiling)) }

// name returns a name that has not been used before.
func (l *run) name() string {
	l.next++
	return "n" + strconv.Itoa(l.next)
}

// build creates a filter of the given size, in a random layout, and touches all of its
// pages.
func (l *run) build(name string, bytes uint64) error {
	layout := []string{"REDISBLOOM", "PAIRED"}[l.rng.IntN(2)]
	keys := bytes * 8 / 10 // about 9.6 bits per key, in either layout
	for {
		made, err := l.do("BF.RESERVE", name, "0.01", strconv.FormatUint(keys, 10), "NONSCALING", "LAYOUT", layout)
		if err != nil {
			return err
		}
		if made {
			return l.touch(name, bytes)
		}
		// Recently deleted memory may not have been returned to the system yet.
		select {
		case <-l.ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// touch adds at least one key for each of the filter's pages.
func (l *run) touch(name string, bytes uint64) error {
	const batch, pipeline = 1000, 16
	for left := int64(bytes/4096) + batch; left > 0; {
		for range pipeline {
			words := make([]string, 0, batch+2)
			words = append(words, "BF.MADD", name)
			for range batch {
				words = append(words, strconv.FormatUint(l.rng.Uint64(), 36))
			}
			l.command(words...)
			left -= batch
		}
		if _, err := l.flush(pipeline); err != nil {
			return err
		}
	}
	return nil
}

func rebuild(l *run) error {
	if err := l.build("next", l.share(0.44)); err != nil {
		return err
	}
	if _, err := l.do("BF.SWAP", "next", "current"); err != nil {
		return err
	}
	_, err := l.do("DEL", "next")
	return err
}

func makeAndDelete(l *run) error {
	if err := l.build("passing", l.share(0.05+0.55*l.rng.Float64())); err != nil {
		return err
	}
	_, err := l.do("DEL", "passing")
	return err
}

// churnSmall creates a hundred small filters, then deletes as many as necessary.
func churnSmall(l *run) error {
	const count, keys = 100, 50
	for range count {
		name := l.name()
		l.names = append(l.names, name)
		capacity := strconv.Itoa(1 + int(float64(100_000)*l.rng.Float64()*l.rng.Float64()*l.rng.Float64()))
		reserve := []string{"BF.RESERVE", name, "0.01", capacity}
		switch l.rng.IntN(5) {
		case 0:
			reserve = append(reserve, "NONSCALING")
		case 1:
			reserve = append(reserve, "LAYOUT", "PAIRED")
		case 2:
			reserve = append(reserve, "LAYOUT", "PAIRED", "NONSCALING")
		case 3:
			reserve = append(reserve, "WINDOW", "1h")
		}
		l.command(reserve...)
		for range 2 { // some grow
			words := []string{"BF.MADD", name}
			for range keys {
				words = append(words, strconv.FormatUint(l.rng.Uint64(), 36))
			}
			l.command(words...)
		}
	}
	if _, err := l.flush(3 * count); err != nil {
		return err
	}
	return l.deleteDown()
}

// deleteDown deletes random names until the accounted memory is at most 90% of the
// ceiling.
func (l *run) deleteDown() error {
	for {
		used, err := l.used()
		if err != nil || used <= l.share(0.9) || len(l.names) == 0 {
			return err
		}
		n := max(len(l.names)/100, 1)
		for range n {
			i := l.rng.IntN(len(l.names))
			l.command("DEL", l.names[i])
			l.names[i] = l.names[len(l.names)-1]
			l.names = l.names[:len(l.names)-1]
		}
		if _, err := l.flush(n); err != nil {
			return err
		}
	}
}

// mixed sets strings and creates filters, most of which expire.
func mixed(l *run) error {
	const count = 50
	if l.payload == "" {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = byte('a' + l.rng.IntN(26))
		}
		l.payload = string(b)
	}
	for range count {
		name := fmt.Sprint("k", l.rng.IntN(5000)) // overwritten now and then
		ends := strconv.Itoa(100 + l.rng.IntN(20_000))
		switch l.rng.IntN(4) {
		case 0, 1:
			size := 1 + int(float64(len(l.payload)-1)*l.rng.Float64()*l.rng.Float64())
			l.command("SET", name, l.payload[:size], "PX", ends)
			l.command("STRLEN", name)
		case 2:
			l.command("SET", name, l.payload[:100+l.rng.IntN(1000)])
			l.names = append(l.names, name)
			l.command("EXISTS", name)
		default:
			filter := l.name()
			l.command("BF.RESERVE", filter, "0.01", strconv.Itoa(100+l.rng.IntN(2_000_000)), "NONSCALING")
			l.command("PEXPIRE", filter, ends)
		}
	}
	if _, err := l.flush(2 * count); err != nil {
		return err
	}
	// When the server is full, wait for names to expire, instead of being refused
	// again and again.
	for range 100 {
		used, err := l.used()
		if err != nil || used <= l.share(0.95) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return l.deleteDown()
}
