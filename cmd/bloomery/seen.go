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
	limit *limit
}

func (s fixedSeen) hash(key []byte) uint64                { return s.Hash(key) }
func (s fixedSeen) look(hashes []uint64, found []bool)    { s.ContainsHashes(hashes, found) }
func (s fixedSeen) add(hashes []uint64, isNew []bool) int { return s.AddDisjoint(hashes, isNew) }
func (s fixedSeen) blocks() uint64                        { return s.Plan().Blocks }
func (s fixedSeen) room() (int64, error)                  { return s.limit.room(s.gauge, s.Added()) }
func (s fixedSeen) grows() bool                           { return false }
func (s fixedSeen) sync() error                           { return nil }

// fileSeen is fixedSeen in a file, which one goroutine may add to.
type fileSeen struct{ fixedSeen }

func (s fileSeen) add(hashes []uint64, isNew []bool) int { return s.AddHashes(hashes, isNew) }
func (s fileSeen) blocks() uint64                        { return 0 }
func (s fileSeen) sync() error                           { return s.Sync() }

// growingSeen adds layers as it needs them, in memory or in a file.
type growingSeen struct {
	*bloom.Scalable
	limit *limit
}

func (s growingSeen) hash(key []byte) uint64                { return s.Hash(key) }
func (s growingSeen) look(hashes []uint64, found []bool)    { s.ContainsHashes(hashes, found) }
func (s growingSeen) add(hashes []uint64, isNew []bool) int { return s.AddHashes(hashes, isNew) }
func (s growingSeen) grows() bool                           { return true }
func (s growingSeen) sync() error                           { return s.Sync() }

func (s growingSeen) blocks() uint64 {
	newest, _ := s.Newest()
	return newest.Blocks
}

func (s growingSeen) room() (int64, error) {
	if err := s.Err(); err != nil {
		return math.MaxInt64, s.limit.over(err.Error())
	}
	_, room := s.Newest()
	return int64(min(room, math.MaxInt64)), nil
}

// windowSeen forgets. When more lines come than planned it grows; when it cannot, the
// rate rises until they are forgotten.
type windowSeen struct {
	*bloom.Window
	limit *limit
}

func (s windowSeen) hash(key []byte) uint64                { return s.Hash(key) }
func (s windowSeen) look(hashes []uint64, found []bool)    { s.ContainsHashes(hashes, found) }
func (s windowSeen) add(hashes []uint64, isNew []bool) int { return s.AddHashes(hashes, isNew) }
func (s windowSeen) blocks() uint64                        { return s.Plan().Blocks }
func (s windowSeen) grows() bool                           { return true }
func (s windowSeen) sync() error                           { return nil }

// windowLook is how many lines may be new before a window is asked again whether it
// keeps its rate: some milliseconds' worth.
const windowLook = 1 << 16

func (s windowSeen) room() (int64, error) {
	err := s.Err()
	if err == nil {
		s.limit.told = false
		return windowLook, nil
	}
	return windowLook, s.limit.over(err.Error())
}

// limit says what to do about a filter that is full: it is never silent.
type limit struct {
	tell *teller
	goOn bool // at a higher rate
	told bool
}

// fullError ends a run whose filter is full.
type fullError string

func (e fullError) Error() string { return string(e) }

// after says how far a run came whose filter is full.
func (e fullError) after(lines uint64) error {
	return fmt.Errorf("%w, after %s lines: the rest was not read; give a larger -n, --grow to take more memory, or --allow-overfull to lose new lines at that rate", e, commas(lines))
}

// over is for a filter that is past its rate, for the reason given.
func (l *limit) over(why string) error {
	if !l.goOn {
		return fullError(why)
	}
	if !l.told {
		l.tell.warn("%s: new lines get lost at that rate; give a larger -n", why)
	}
	l.told = true
	return nil
}

// room is how many more keys may be new before somebody has to look again.
func (l *limit) room(g *gauge, added uint64) (int64, error) {
	level, report := g.add(int(added - g.added))
	if level >= 1 {
		l.told = false // each doubling is worth a word
		if err := l.over(overfull(report)); err != nil {
			return 0, err
		}
	} else if level > 0 {
		l.tell.warn("%s", nearlyFull(report))
	}
	return g.left(), nil
}
