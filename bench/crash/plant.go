package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A plant is a data directory, the server that currently runs in it, and the data
// that the server must have.
type plant struct {
	binary, dir, level string
	judged             string // the level whose promises apply; normally level
	rng                *rand.Rand
	process            *process
	workers            []*worker
	counters           []atomic.Int64     // next new key of each shared filter
	certain            [][]span           // for each shared filter, spans found after a restart
	cards              []int64            // for each shared filter, its last known count
	doubts             []map[string]doubt // for each removable filter, keys that are left alone
	doubtful           []int              // how many keys it has of these
	shapes             map[string]shape   // by kind, as in filterKinds
	running            sync.WaitGroup
	saves              float64 // the fraction of the load's snapshots that are actually requested
}

const workersPerPlant = 4

func (o options) plant(dir, level string, rng *rand.Rand) *plant {
	p := &plant{binary: o.binary, dir: dir, level: level, judged: cmp.Or(o.judge, level), rng: rng, saves: 1}
	p.counters, p.certain, p.cards = make([]atomic.Int64, len(sharedFilters)), make([][]span, len(sharedFilters)), make([]int64, len(sharedFilters))
	p.doubtful = make([]int, len(removables))
	for range removables {
		p.doubts = append(p.doubts, map[string]doubt{})
	}
	for i := range workersPerPlant {
		w := &worker{id: i, plant: p, now: &names{}, shared: make([][]span, len(sharedFilters))}
		for range removables {
			w.holdings = append(w.holdings, newHolding())
		}
		p.workers = append(p.workers, w)
	}
	return p
}

// begin starts the server in an empty directory, learns the shapes of filters, and
// creates those that all workers use.
func (p *plant) begin() (err error) {
	if err := p.restart(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			p.process.kill()
		}
	}()
	c, err := dial(p.process.address)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	for i, words := range sharedFilters {
		if _, err := c.do(append([]string{"BF.RESERVE", sharedName(i)}, words...)...); err != nil {
			return err
		}
	}
	for _, f := range removables {
		command := "BF.RESERVE"
		if f.cuckoo {
			command = "CF.RESERVE"
		}
		if _, err := c.do(append([]string{command, f.name}, f.reserve...)...); err != nil {
			return err
		}
	}
	p.shapes = map[string]shape{}
	for _, kind := range kindNames {
		if _, err := c.do(append([]string{"BF.RESERVE", "shape"}, filterKinds[kind]...)...); err != nil {
			return err
		}
		r, err := c.do("BF.DEBUG", "shape")
		if err != nil {
			return err
		}
		p.shapes[kind] = shapeOf(r)
		for _, other := range kindNames {
			if other != kind && p.shapes[kind].is(p.shapes[other]) {
				return fmt.Errorf("filters of the kinds %s and %s cannot be told apart", kind, other)
			}
		}
		if _, err := c.do("DEL", "shape"); err != nil {
			return err
		}
	}
	_, err = c.do("SAVE")
	return err
}

// restart starts the server after it has exited.
func (p *plant) restart() error {
	next, err := start(p.binary, p.dir, p.level)
	if err == nil {
		p.process = next
	}
	return err
}

// load starts the load, which stops when the server exits.
func (p *plant) load() {
	for _, w := range p.workers {
		rng := rand.New(rand.NewPCG(p.rng.Uint64(), 1))
		p.running.Go(func() { w.run(p.process.address, rng) })
	}
}

// adds returns how many adds have been acknowledged so far.
func (p *plant) adds() (n int) {
	for _, w := range p.workers {
		n += w.adds
	}
	return n
}

// removals returns how many removals have been acknowledged so far.
func (p *plant) removals() (n int) {
	for _, w := range p.workers {
		n += w.removals
	}
	return n
}

// commandsDone returns how many commands have been acknowledged so far.
func (p *plant) commandsDone() (n int) {
	for _, w := range p.workers {
		n += w.commands
	}
	return n
}

// between returns a random duration of at least least and less than most.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}
