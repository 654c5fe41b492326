package store

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/bloomery/bloom/redisbloom"
)

// Logs and snapshots consist of records; docs/format.md draws them. Type numbers are
// added, never changed.
const (
	recordPairs   = 1  // adds to a chain
	recordHashes  = 2  // adds to a filter of our own
	recordTimed   = 3  // adds to a window
	recordCreate  = 4  // a filter by its Spec
	recordLoad    = 5  // a filter of a dump's header
	recordSet     = 6  // a plain value
	recordDrop    = 7  // a value loses its name
	recordRename  = 8  // a value is renamed, replacing any value with the new name
	recordSwap    = 9  // two values exchange names
	recordExpire  = 10 // when a name expires
	recordClear   = 11 // all values lose their names
	recordChunk   = 12 // of a dump
	recordMerge   = 13
	recordFold    = 14
	recordMark    = 15 // how much of the log is on the disk
	recordHead    = 16 // of a snapshot
	recordValue   = 17 // of a snapshot: a name and what it stands for
	recordContent = 18 // of a snapshot: bytes of the value before
	recordEnd     = 19 // of a snapshot

	recordSlots      = 20 // what slots of a cuckoo filter have now
	recordLoadCuckoo = 21 // a cuckoo filter of a dump's header
	recordCounts     = 22 // what counters of a counting filter have now
	recordLast       = recordCounts
)

// inLog reports whether a type of record is of the log, not of snapshots.
func inLog(kind byte) bool { return kind < recordHead || kind > recordEnd }

const (
	// frameBytes precede each record: its length and its checksum.
	frameBytes  = 8
	recordBytes = 9 // the shortest record: its LSN and type

	maxName   = 1 << 20
	maxText   = 32 << 20
	maxLoad   = 32 << 20
	maxRecord = maxLoad + 4096 + maxName
)

var order = binary.LittleEndian

// appendAdds and the functions below append what a record has after its type.

func appendAdds(b []byte, id uint64, layer, count uint32) []byte {
	b = order.AppendUint64(b, id)
	b = order.AppendUint32(b, layer)
	return order.AppendUint32(b, count)
}

func appendSpec(b []byte, s Spec) []byte {
	b = append(b, byte(s.Kind), boolByte(s.Public), byte(s.Level), 0)
	b = order.AppendUint32(b, s.Growth)
	b = order.AppendUint64(b, s.Capacity)
	b = order.AppendUint64(b, math.Float64bits(s.Rate))
	b = order.AppendUint64(b, uint64(s.Span))
	return order.AppendUint64(b, uint64(toMillis(s.Expires)))
}

func appendName(b []byte, name string) []byte {
	b = order.AppendUint32(b, uint32(len(name)))
	return append(b, name...)
}

// logPairs logs the pairs that are new, all in one layer, or all pairs if v.logsAll.
func (v *value) logPairs(layer int, pairs []redisbloom.Pair, isNew []bool) {
	n, all := countTrue(isNew), v.logsAll()
	if n == 0 && (!all || len(pairs) == 0) || !v.logsAdds() {
		return
	}
	g := v.local.log
	b := g.begin(recordPairs)
	b = appendAdds(b, v.id, uint32(layer), uint32(n))
	// Write every pair, and overwrite those that are not new: branching on isNew would
	// mispredict.
	const pairBytes = 16
	at := len(b)
	b = slices.Grow(b, pairBytes*len(pairs))[:at+pairBytes*len(pairs)]
	for i, is := range isNew {
		to := b[at:][:pairBytes]
		order.PutUint64(to, pairs[i][0])
		order.PutUint64(to[8:], pairs[i][1])
		more := 0
		if is || all {
			more = pairBytes
		}
		at += more
	}
	g.end(b[:at], v.level)
}

// logHashes logs the n hashes that are new, all in one layer, or all hashes if v.logsAll.
// For a window, at is the time of the add; otherwise it is zero. A window's hashes are
// all logged: it remembers an old key that is added again for longer.
func (v *value) logHashes(at int64, layer uint32, n int, hashes []uint64, isNew []bool) {
	all := at != 0 || v.logsAll()
	if n == 0 && !all || !v.logsAdds() {
		return
	}
	g := v.local.log
	var b []byte
	if at != 0 {
		b = g.begin(recordTimed)
		b = appendAdds(b, v.id, 0, uint32(n))
		b = order.AppendUint64(b, uint64(at))
	} else {
		b = g.begin(recordHashes)
		b = appendAdds(b, v.id, layer, uint32(n))
	}
	for i, h := range hashes {
		if all || isNew[i] {
			b = order.AppendUint64(b, h)
		}
	}
	g.end(b, v.level)
}

// logsAdds reports whether adds to the value go into the log. If they do not because of
// the level Unlogged, it notes that there were some, for the next snapshot.
func (v *value) logsAdds() bool {
	if !v.logged() {
		return false
	}
	if v.level == Unlogged {
		v.local.unlogged.Store(true)
		return false
	}
	return true
}

func countTrue(answers []bool) (n int) {
	for _, is := range answers {
		if is {
			n++
		}
	}
	return n
}

// logChange logs a change of the names, or of one value. The stricter of the store's
// level and the value's applies.
func (l *Local) logChange(kind byte, level Level, fields func(b []byte) []byte) {
	if l.log == nil {
		return
	}
	l.log.end(fields(l.log.begin(kind)), max(Always, min(level, l.config.Level)))
}

func (l *Local) logCreate(id uint64, name string, spec Spec) {
	l.logChange(recordCreate, spec.Level, func(b []byte) []byte {
		return appendName(appendSpec(order.AppendUint64(b, id), spec), name)
	})
}

func (l *Local) logLoad(kind byte, id uint64, name string, level Level, header []byte) {
	l.logChange(kind, level, func(b []byte) []byte {
		b = append(order.AppendUint64(b, id), byte(level))
		return append(appendName(b, name), header...)
	})
}

func (l *Local) logSet(id uint64, name string, data []byte) {
	l.logChange(recordSet, l.config.Level, func(b []byte) []byte {
		return append(appendName(order.AppendUint64(b, id), name), data...)
	})
}

func (l *Local) logDrop(id uint64) {
	l.logChange(recordDrop, l.config.Level, func(b []byte) []byte { return order.AppendUint64(b, id) })
}

func (l *Local) logRename(id uint64, to string) {
	l.logChange(recordRename, l.config.Level, func(b []byte) []byte {
		return appendName(order.AppendUint64(b, id), to)
	})
}

func (l *Local) logSwap(a, b uint64) {
	l.logChange(recordSwap, l.config.Level, func(r []byte) []byte {
		return order.AppendUint64(order.AppendUint64(r, a), b)
	})
}

func (l *Local) logExpire(id uint64, at int64) {
	l.logChange(recordExpire, l.config.Level, func(b []byte) []byte {
		return order.AppendUint64(order.AppendUint64(b, id), uint64(at))
	})
}

func (l *Local) logClear() {
	l.logChange(recordClear, l.config.Level, func(b []byte) []byte { return b })
}

func (v *value) logChunk(iterator int64, chunk []byte) {
	if v.logged() {
		v.local.logChange(recordChunk, v.level, func(b []byte) []byte {
			b = order.AppendUint64(order.AppendUint64(b, v.id), uint64(iterator))
			return append(b, chunk...)
		})
	}
}

func (v *value) logMerge(from uint64, items []uint64) {
	if v.logged() {
		v.local.logChange(recordMerge, v.level, func(b []byte) []byte {
			b = order.AppendUint64(order.AppendUint64(b, v.id), from)
			return appendItems(b, items)
		})
	}
}

func (v *value) logFold(by uint64) {
	if v.logged() {
		v.local.logChange(recordFold, v.level, func(b []byte) []byte {
			return order.AppendUint64(order.AppendUint64(b, v.id), by)
		})
	}
}

func appendItems(b []byte, items []uint64) []byte {
	b = order.AppendUint32(b, uint32(len(items)))
	for _, n := range items {
		b = order.AppendUint64(b, n)
	}
	return b
}

// fields reads what a record has after its type. A missing field reads as zero, and
// sets bad.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if n < 0 || n > len(f.b) {
		f.bad, f.b = true, nil
		return make([]byte, min(max(n, 0), 8))
	}
	taken := f.b[:n]
	f.b = f.b[n:]
	return taken
}

func (f *fields) byte() byte     { return f.take(1)[0] }
func (f *fields) uint32() uint32 { return order.Uint32(f.take(4)) }
func (f *fields) uint64() uint64 { return order.Uint64(f.take(8)) }

func (f *fields) name() string {
	n := f.uint32()
	if n > maxName {
		f.bad = true
		return ""
	}
	return string(f.take(int(n)))
}

func (f *fields) spec() (s Spec) {
	s.Kind, s.Public, s.Level = Kind(f.byte()), f.byte() == 1, Level(f.byte())
	f.byte()
	s.Growth = f.uint32()
	s.Capacity = f.uint64()
	s.Rate = math.Float64frombits(f.uint64())
	s.Span = time.Duration(f.uint64())
	s.Expires = fromMillis(int64(f.uint64()))
	return s
}

func (f *fields) items() (items []uint64) {
	n := f.uint32()
	for range n {
		items = append(items, f.uint64())
		if f.bad {
			return nil
		}
	}
	return items
}

// rest returns everything left. The bytes are valid until the next record is read.
func (f *fields) rest() []byte { return f.take(len(f.b)) }
