package main

import (
	"fmt"
	"math"

	"github.com/bloomery/bloom"
)

// What dedupe remembers lines in: the kinds of filter that many goroutines may
// add to, and a file of one for a single goroutine.

// fixedSeen has room for as many keys as planned.
type fixedSeen struct {
	*bloom.Filter
	gauge *gauge
	limit limit
}

func (s fixedSeen) hash(key []byte) uint64                { return s.Hash(key) }
func (s fixedSeen) add(hashes []uint64, isNew []bool) int { return s.AddDisjoint(hashes, isNew) }
func (s fixedSeen) blocks() uint64                        { return s.Plan().Blocks }
func (s fixedSeen) room() (int64, error)                  { return s.limit.room(s.gauge, s.Added()) }
func (s fixedSeen) sync() error                           { return nil }

// fileSeen is fixedSeen in a file, which one goroutine may add to.
type fileSeen struct {
	*bloom.Filter
	gauge *gauge
	limit limit
}

func (s fileSeen) hash(key []byte) uint64                { return s.Hash(key) }
func (s fileSeen) add(hashes []uint64, isNew []bool) int { return s.AddHashes(hashes, isNew) }
func (s fileSeen) blocks() uint64                        { return 0 }
func (s fileSeen) room() (int64, error)                  { return s.limit.room(s.gauge, s.Added()) }
func (s fileSeen) sync() error                           { return s.Sync() }

// growingSeen adds layers as it needs them.
type growingSeen struct {
	*bloom.Scalable
	limit *limit
}

func (s growingSeen) hash(key []byte) uint64                { return s.Hash(key) }
func (s growingSeen) add(hashes []uint64, isNew []bool) int { return s.AddHashes(hashes, isNew) }
func (s growingSeen) sync() error                           { return s.Sync() }

func (s growingSeen) blocks() uint64 {
	newest, _ := s.Newest()
	return newest.Blocks
}

func (s growingSeen) room() (int64, error) {
	if err := s.Err(); err != nil && !s.limit.told {
		s.limit.told = true
		s.limit.tell.warn("%v: new lines get lost at a higher rate from here on", err)
	}
	_, room := s.Newest()
	return int64(min(room, math.MaxInt64)), nil
}

// windowSeen forgets.
type windowSeen struct{ *bloom.Window }

func (s windowSeen) hash(key []byte) uint64                { return s.Hash(key) }
func (s windowSeen) add(hashes []uint64, isNew []bool) int { return s.AddHashes(hashes, isNew) }
func (s windowSeen) blocks() uint64                        { return s.Plan().Blocks }
func (s windowSeen) room() (int64, error)                  { return math.MaxInt64, nil }
func (s windowSeen) sync() error                           { return nil }

// limit says what to do about a filter that is full: it is never silent.
type limit struct {
	tell *teller
	goOn bool // at a higher rate
	told bool
}

// fullError ends a run whose filter is full.
type fullError struct{ bloom.Report }

func (e fullError) Error() string { return overfull(e.Report) }

// room is how many more keys may be new before somebody has to look again.
func (l limit) room(g *gauge, added uint64) (int64, error) {
	switch level, report := g.add(int(added - g.added)); {
	case level >= 1 && !l.goOn:
		return 0, fullError{report}
	case level >= 1:
		l.tell.warn("%s: new lines get lost at that rate; give a larger -n", overfull(report))
	case level > 0:
		l.tell.warn("%s", nearlyFull(report))
	}
	return g.left(), nil
}

// after says how far a run came whose filter is full.
func (e fullError) after(lines uint64) error {
	return fmt.Errorf("%w, after %s lines: the rest was not read; give a larger -n, --grow to take more memory, or --allow-overfull to lose new lines at that rate", e, commas(lines))
}
