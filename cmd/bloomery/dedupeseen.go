package main

import (
	"fmt"
	"math"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
)

// The filters that dedupe remembers lines in: kinds that many goroutines may add to,
// and a file for a single goroutine.

// fixedSeen has room for as many keys as planned.
type fixedSeen struct {
	*bloom.Filter
	gauge *gauge
	limit *limit
}

func (s fixedSeen) AddHashes(hashes []uint64, isNew []bool) int {
	return bloom.Inside.AddDisjoint(s.Filter, hashes, isNew)
}
func (s fixedSeen) Blocks() uint64       { return s.Plan().Blocks }
func (s fixedSeen) Room() (int64, error) { return s.limit.room(s.gauge, s.Added()) }
func (s fixedSeen) Grows() bool          { return false }
func (s fixedSeen) Sync() error          { return nil }
func (s fixedSeen) advice() string       { return s.limit.way }

// fileSeen is fixedSeen in a file, which one goroutine may add to.
type fileSeen struct{ fixedSeen }

func (s fileSeen) AddHashes(hashes []uint64, isNew []bool) int {
	return s.Filter.AddHashes(hashes, isNew)
}
func (s fileSeen) Blocks() uint64 { return 0 }
func (s fileSeen) Sync() error    { return s.Filter.Sync() }

// growingSeen adds layers as it needs them, in memory or in a file.
type growingSeen struct {
	*bloom.Scalable
	limit *limit
}

func (s growingSeen) Grows() bool    { return true }
func (s growingSeen) advice() string { return s.limit.way }

func (s growingSeen) Blocks() uint64 {
	newest, _ := bloom.Inside.NewestLayer(s.Scalable)
	return newest.Blocks
}

func (s growingSeen) Room() (int64, error) {
	if err := s.Err(); err != nil {
		return math.MaxInt64, s.limit.over(err.Error())
	}
	_, room := bloom.Inside.NewestLayer(s.Scalable)
	return int64(min(room, math.MaxInt64)), nil
}

// windowSeen forgets. When there are more lines than planned it grows; when it
// cannot, the rate rises until they are forgotten.
type windowSeen struct {
	*bloom.Window
	limit *limit
}

func (s windowSeen) Blocks() uint64 { return s.Plan().Blocks }
func (s windowSeen) Grows() bool    { return true }
func (s windowSeen) Sync() error    { return nil }
func (s windowSeen) advice() string { return s.limit.way }

// windowLook is how many new lines are added between two checks whether a window
// keeps its rate: some milliseconds' worth.
const windowLook = 1 << 16

func (s windowSeen) Room() (int64, error) {
	err := s.Err()
	if err == nil {
		s.limit.told = false
		return windowLook, nil
	}
	return windowLook, s.limit.over(err.Error())
}

// limit is what happens when a filter is full. It is never silent.
type limit struct {
	tell *lines.Reporter
	goOn bool // at a higher rate
	told bool
	way  string // how to get more room
}

// of is the limit of a filter that gets more room in the given way.
func (l *limit) of(way string) *limit {
	l.way = way
	return l
}

// fixedAdvice is for a state made for a fixed number of keys.
func fixedAdvice(state string) string {
	return fmt.Sprintf("'bloomery add --grow %s </dev/null' turns it into one that grows, at up to five times its rate", anyfile.Quoted(state))
}

// stateGrowthAdvice is for a state that grows: its limit is kept in the file.
const stateGrowthAdvice = "free some disk space, or start another file, with a larger --budget if it has one"

// growthAdvice is for a filter that grows, up to the budget if there is one.
func growthAdvice(budget human.SizeFlag, without string) string {
	if budget != 0 {
		return "give a larger --budget"
	}
	return without
}

// fullError ends a run whose filter is full.
type fullError string

func (e fullError) Error() string { return string(e) }

// after adds to the error how far the run came, and the way to more room.
func (e fullError) after(lines uint64, way string) error {
	return fmt.Errorf("%w, after %s: the rest was not read; %s; or give --allow-overfull to lose new lines at that rate", e, human.Count(lines, "line"), way)
}

// over handles a filter that is past its rate, for the reason given.
func (l *limit) over(why string) error {
	if !l.goOn {
		return fullError(why)
	}
	if !l.told {
		l.tell.Warn("%s: new lines are lost at that rate; %s", why, l.way)
	}
	l.told = true
	return nil
}

// room is how many more keys may be new before the gauge must look again.
func (l *limit) room(g *gauge, added uint64) (int64, error) {
	level, report := g.add(int(added - g.added))
	if level >= 1 {
		l.told = false // warn at each doubling
		if err := l.over(human.Overfull(report)); err != nil {
			return 0, err
		}
	} else if level > 0 {
		l.tell.Warn("%s", human.NearlyFull(report))
	}
	return g.left(), nil
}
