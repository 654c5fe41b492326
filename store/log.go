package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"time"
)

// log is what happened since the newest snapshot: records, in segments, one after
// the other. A change appends a record to a buffer, under a lock that is held for
// as long as it takes to copy the record. To make records durable, callers call
// commit: one of them becomes the writer, and writes, and syncs if it must, all that
// has been appended until then; the others wait, and mostly find that it was done
// for them, too.
//
// # The rules
//
// Each was broken once, in a simulation, and lost what had been acknowledged:
//
//   - commit waits for all that anybody has appended, also when its caller's own
//     adds changed nothing: the bits that made them old may be of an add that is
//     not in the log yet. Local.underway says whether there may be such bits.
//   - For the same reason all keys that are added to a filter are logged, new or not,
//     while it has bits that no record accounts for yet: see merge.
//   - After the first error of a write or sync nothing is acknowledged any more,
//     and nothing is tried again: the system takes for written what it has thrown
//     away.
//   - A process that starts writes what it has read of the last segment to a new
//     file, and goes on in a new segment, before it serves: what it read may have
//     been in memory only. Snapshots, and the segments before the last, were
//     synced before anything followed them.
//   - A segment is synced before the next one is begun, and the directory after
//     that. So only the last segment can end in a torn record.
//   - A snapshot gets its name when the log is synced up to the newest record that
//     it has seen: it has adds of that moment, and must not have them without those
//     before.
//   - A value that is dropped while a snapshot is taken stays in it, if without bits:
//     the log behind the snapshot may have renamed it first.
//   - Segments are removed when the snapshot that makes them superfluous is on
//     the disk, its name included.
type log struct {
	local *Local
	disk  disk

	sync.Mutex
	turn   sync.Cond // of the writer: signalled when it is done
	busy   bool      // there is a writer
	buffer []byte
	spare  []byte

	reaching chan struct{} // closed when the goroutine of reachBefore ends; nil: there is none

	from int // where in the buffer the record under way begins

	// LSNs: all records below them are ...
	next    uint64 // appended
	written uint64 // written
	synced  uint64 // synced
	urgent  uint64 // to be synced before they are acknowledged
	marked  uint64 // said to be synced, by a record of the log
	changes uint64 // changes: behind them there are only marks
	saved   uint64 // in the newest snapshot

	failure error
	onFail  func(error)

	syncing sync.Mutex // held by syncNow, and while the file is replaced
	file    diskFile
	segment segment
	earlier uint64 // bytes of the segments before that no snapshot has made superfluous
	waiting uint64 // bytes that have been written since a sync began
	counts  LogStats
}

// segment is a file of the log: its head, and how long it is.
type segment struct {
	fileHead
	bytes uint64
}

const keepBuffer = 8 << 20 // larger buffers are given back

func newLog(l *Local, next uint64) *log {
	g := &log{local: l, disk: l.config.disk, next: next, written: next, synced: next, urgent: next, marked: next, changes: next, saved: next}
	g.turn.L = g
	return g
}

// begin appends the beginning of a record, and leaves the log locked until end
// gets it back with its fields behind.
func (g *log) begin(kind byte) []byte {
	g.Lock()
	g.from = len(g.buffer)
	b := append(g.buffer, make([]byte, frameBytes)...)
	b = order.AppendUint64(b, g.next)
	return append(b, kind)
}

func (g *log) end(b []byte, level Level) {
	defer g.Unlock()
	if g.failure != nil { // it will never be written
		return
	}
	g.seal(b)
	g.changes = g.next
	if level == Always {
		g.urgent = g.next
	}
}

// seal completes the record under way. Its checksum comes when it is written, as
// only then it is known in which segment.
func (g *log) seal(b []byte) {
	order.PutUint32(b[g.from:], uint32(len(b)-g.from-frameBytes))
	g.buffer = b
	g.next++
	g.counts.Records++
}

// commit returns when everything that anybody has appended is as durable as it must
// be to be acknowledged, or ctx has ended. Then the records are written all the same.
func (g *log) commit(ctx context.Context) error {
	// Who has set bits is through with logging them when underway is free.
	g.local.underway.Lock()
	g.Lock()
	g.local.underway.Unlock()
	defer g.Unlock()
	g.counts.Commits++
	if ctx.Done() == nil {
		return g.reach(g.next, g.urgent)
	}
	return g.reachBefore(ctx, g.next, g.urgent)
}

// reachBefore is reach until ctx has ended. The caller does not write: one goroutine
// does it for all callers that have a ctx, so a disk that hangs holds up no more than
// that. The log is locked.
func (g *log) reachBefore(ctx context.Context, written, synced uint64) error {
	for g.failure == nil && (g.written < written || g.synced < synced) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if g.reaching == nil {
			reached := make(chan struct{})
			g.reaching = reached
			go func(written, synced uint64) {
				g.Lock()
				defer g.Unlock()
				g.reach(written, synced)
				g.reaching = nil
				close(reached)
			}(g.next, g.urgent)
		}
		reached := g.reaching
		g.Unlock()
		select {
		case <-reached:
		case <-ctx.Done():
		}
		g.Lock()
	}
	return g.failure
}

// reach returns when all records below these two are written, and synced. The log
// is locked.
func (g *log) reach(written, synced uint64) error {
	for g.failure == nil {
		switch {
		case g.written >= written && g.synced >= synced:
			return nil
		case g.busy:
			g.turn.Wait()
		default:
			g.write(synced > g.synced || g.urgent > g.synced)
		}
	}
	return g.failure
}

// reachAll returns when all that has been appended is written, and synced.
func (g *log) reachAll() error {
	g.Lock()
	defer g.Unlock()
	return g.reach(g.next, g.next)
}

// unsyncedBytes is how much a long load leaves to the next sync. A sync of much more
// keeps the disk and the file busy for so long that everybody else's writes wait.
const unsyncedBytes = 8 << 20

// settle returns when everything that has been appended is written, and synced if it is
// much: a caller that logs a lot does it a MiB at a time, and leaves nobody's commit
// more than that to write, and no sync more than unsyncedBytes.
func (l *Local) settle() error {
	g := l.log
	if g == nil {
		return nil
	}
	g.Lock()
	err := g.reach(g.next, 0)
	much := g.waiting >= unsyncedBytes
	g.Unlock()
	if err == nil && much {
		err = g.syncNow()
	}
	return err
}

// write writes what is in the buffer. The log is locked, and unlocked meanwhile.
func (g *log) write(andSync bool) {
	if g.synced > g.marked && g.changes > g.marked {
		g.mark()
	}
	g.busy = true
	data, next, segment, file := g.buffer, g.next, g.segment, g.file
	g.buffer, g.spare = g.spare[:0], nil
	g.Unlock()

	seal(data, seed(segment.salt))
	err := writeAll(file, data)
	var took time.Duration
	if err == nil && andSync {
		took, err = g.syncAlone(func() diskFile { return file })
	}

	g.Lock()
	g.busy = false
	if cap(data) <= keepBuffer {
		g.spare = data[:0]
	}
	if err != nil {
		g.fail(fmt.Errorf("writing the log: %w", err))
	} else {
		g.written = next
		g.segment.bytes += uint64(len(data))
		g.waiting += uint64(len(data))
		g.counts.Bytes += uint64(len(data))
		if len(data) > 0 {
			g.counts.Writes++
		}
		if andSync {
			g.waiting = 0
			g.isSynced(next, took)
		}
	}
	g.turn.Broadcast()
}

// mark appends a record that says how much of the log is on the disk, so that
// damage there is not taken for a torn end.
func (g *log) mark() {
	g.from = len(g.buffer)
	b := append(g.buffer, make([]byte, frameBytes)...)
	b = append(order.AppendUint64(b, g.next), recordMark)
	g.seal(order.AppendUint64(b, g.synced))
	g.marked = g.synced
}

// seal gives the records their checksums.
func seal(records []byte, seed uint32) {
	for len(records) > 0 {
		end := frameBytes + int(order.Uint32(records))
		order.PutUint32(records[4:], sum(seed, records[frameBytes:end]))
		records = records[end:]
	}
}

func writeAll(file io.Writer, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	n, err := file.Write(data)
	if err == nil && n < len(data) {
		err = fmt.Errorf("%d of %d bytes were taken", n, len(data))
	}
	return err
}

// syncAlone syncs the file that file returns while the log is locked. Nothing else
// syncs meanwhile: the system reports an error only once, so after a failed sync
// later callers must learn of it from the log, and not from a sync that succeeds.
func (g *log) syncAlone(file func() diskFile) (time.Duration, error) {
	g.syncing.Lock()
	defer g.syncing.Unlock()
	g.Lock()
	to, failure := file(), g.failure
	g.Unlock()
	if failure != nil {
		return 0, failure
	}
	took, err := timedSync(to)
	if err != nil {
		g.Lock()
		g.fail(fmt.Errorf("syncing the log: %w", err))
		g.Unlock()
	}
	return took, err
}

func timedSync(file diskFile) (time.Duration, error) {
	start := time.Now()
	err := file.Sync()
	return time.Since(start), err
}

// isSynced notes that all records below next are. The log is locked.
func (g *log) isSynced(next uint64, took time.Duration) {
	g.synced = max(g.synced, next)
	g.counts.Syncs++
	g.counts.SyncTime += took
	bucket := min(bits.Len64(uint64(took)/uint64(SyncBucket)), len(g.counts.SyncBuckets)-1)
	g.counts.SyncBuckets[bucket]++
}

// fail stops the store, for good. The log is locked.
func (g *log) fail(err error) {
	if g.failure == nil {
		g.failure = fmt.Errorf("%w: nothing more is acknowledged, as what was written last may be lost: see to the disk, then start again: %w", ErrStopped, err)
		if g.onFail != nil {
			go g.onFail(g.failure)
		}
	}
	g.turn.Broadcast()
}

// stopped is the failure there was, if any.
func (g *log) stopped() error {
	g.Lock()
	defer g.Unlock()
	return g.failure
}

// syncNow writes and syncs all that has been appended, while others may write on:
// the work of each second at the level EverySecond.
func (g *log) syncNow() error {
	g.Lock()
	defer g.Unlock()
	if err := g.reach(g.next, 0); err != nil {
		return err
	}
	if g.synced >= g.written && !(g.synced > g.marked && g.changes > g.marked) {
		return nil
	}
	if g.synced >= g.written { // only a mark to write
		for g.busy && g.failure == nil {
			g.turn.Wait()
		}
		if g.failure == nil {
			g.write(false)
		}
		return g.failure
	}
	g.Unlock()
	var next uint64
	took, err := g.syncAlone(func() diskFile { // not before, as rotate closes the file that it replaces
		next, g.waiting = g.written, 0
		return g.file
	})
	g.Lock()
	if err != nil {
		g.fail(fmt.Errorf("syncing the log: %w", err))
		return g.failure
	}
	g.isSynced(next, took)
	return nil
}

// rotate ends the segment and begins the next one. It returns the LSN of that
// one's first record. Nobody may append meanwhile but adds.
func (g *log) rotate() (start uint64, err error) {
	g.Lock()
	defer g.Unlock()
	for g.busy && g.failure == nil {
		g.turn.Wait()
	}
	if g.failure == nil {
		g.write(true)
	}
	if g.failure != nil {
		return 0, g.failure
	}
	if g.written == g.segment.start {
		return g.written, nil // nothing was logged since: a segment of that name is there
	}
	// Adds that came meanwhile are in the buffer: they go into the new segment.
	start = g.written
	g.busy = true
	g.Unlock()
	g.syncing.Lock()
	old := g.file
	file, seg, err := g.create(start)
	if err == nil && old != nil {
		old.Close() // it is synced
	}
	g.Lock()
	g.syncing.Unlock() // not before the file is the new one, for syncNow
	g.busy = false
	g.turn.Broadcast()
	if errors.Is(err, errNotWritten) { // the old one is as it was
		return 0, err
	}
	if err != nil {
		g.fail(fmt.Errorf("beginning a segment of the log: %w", err))
		return 0, g.failure
	}
	g.earlier += g.segment.bytes
	g.marked = start // damage in a segment that another one follows is no torn end
	g.file, g.segment = file, seg
	return start, nil
}

// create makes a segment whose first record will be start.
func (g *log) create(start uint64) (diskFile, segment, error) {
	seg, err := newSegment(g.disk, fileHead{start: start, store: g.local.id})
	if err != nil {
		return nil, seg, err
	}
	file, err := g.disk.Append(segmentName(start))
	return file, seg, err
}

// newSegment writes the file of an empty segment. The head needs no salt.
func newSegment(d disk, head fileHead) (segment, error) {
	head.version, head.salt = fileVersion, newSalt()
	err := put(d, segmentName(head.start), func(file diskFile) error {
		return writeAll(file, head.encode(fileMagicLog))
	})
	return segment{head, headBytes}, err
}

// isSaved notes that a snapshot has all before start, and that the segments from
// before are gone.
func (g *log) isSaved(start uint64) {
	g.Lock()
	defer g.Unlock()
	g.saved, g.earlier = start, 0
}

// unsaved reports whether there are changes that are in no snapshot.
func (g *log) unsaved() bool {
	g.Lock()
	defer g.Unlock()
	return g.changes > g.saved
}

// bytes is how long the log is.
func (g *log) bytes() uint64 {
	g.Lock()
	defer g.Unlock()
	return g.earlier + g.segment.bytes
}

// close ends the log: all is synced.
func (g *log) close() error {
	err := g.syncNow()
	g.Lock()
	defer g.Unlock()
	if g.failure == nil {
		g.failure = fmt.Errorf("%w: it was closed", ErrStopped)
	}
	g.file.Close()
	return err
}
