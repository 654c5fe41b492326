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

// log is what has happened since the newest snapshot: records, in consecutive
// segments. Every change appends a record to a buffer, under a lock that is held only
// while the record is copied. Callers that need durability call commit. One of them
// becomes the writer: it writes everything appended so far, and syncs if necessary. The
// others wait, and usually find that their records were written, too.
//
// # The rules
//
// Breaking any of them lost acknowledged data in a simulation:
//
//   - commit waits for everything that anybody has appended, even if its caller's own
//     adds changed nothing: the bits that made them "seen" may belong to an add that is
//     not logged yet. While Local.adding is held for writing, there are no such bits.
//   - For the same reason all keys that are added to a filter are logged, new or not,
//     while it has bits that no record accounts for yet: see merge.
//   - After the first error of a write or sync, nothing more is acknowledged and nothing
//     is retried: the system considers written what it has discarded.
//   - Before it serves, a process that starts copies what it has read of the last
//     segment to a new file, and continues in a new segment: what it read may have been
//     in memory only. Snapshots, and the segments before the last, were synced before
//     anything followed them.
//   - A segment is synced before the next one is begun, and the directory after
//     that. So only the last segment can end in a torn record.
//   - A snapshot is renamed into place only once the log is synced up to the newest
//     record that the snapshot has seen: it has adds of that moment, and must not have
//     them without the earlier ones.
//   - A value that is dropped while a snapshot is taken stays in it, without its bits:
//     the log after the snapshot may rename it before the drop.
//   - Segments are removed only once the snapshot that makes them superfluous is on
//     disk, and so is its name.
type log struct {
	local *Local
	disk  disk

	sync.Mutex
	turn   sync.Cond // for the writer's turn: signalled when the writer is done
	busy   bool      // there is a writer
	buffer []byte
	spare  []byte

	reaching chan struct{} // closed when the goroutine of reachBefore ends; nil: there is none

	from int // offset in the buffer of the record being appended

	// LSNs: all records below them are ...
	next    uint64 // appended
	written uint64 // written
	synced  uint64 // synced
	urgent  uint64 // to be synced before they are acknowledged
	marked  uint64 // reported as synced by a record of the log
	changes uint64 // that are changes or before one: from there on there are only marks
	saved   uint64 // in the newest snapshot

	failure error
	onFail  func(error)

	syncing sync.Mutex // held to sync the file, and to replace it
	file    diskFile
	segment segment
	earlier uint64 // bytes of earlier segments that no snapshot has made superfluous
	waiting uint64 // bytes written since the last sync began
	counts  LogStats
}

// segment is a file of the log: its head and its length.
type segment struct {
	fileHead
	bytes uint64
}

const keepBuffer = 8 << 20 // larger buffers are released

func newLog(l *Local, next uint64) *log {
	g := &log{local: l, disk: l.config.disk, next: next, written: next, synced: next, urgent: next, marked: next, changes: next, saved: next}
	g.turn.L = g
	return g
}

// begin appends the beginning of a record, and leaves the log locked until end is
// called with the buffer and the fields appended to it.
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

// seal completes the record being appended. Its checksum is computed when it is written,
// because only then is its segment known.
func (g *log) seal(b []byte) {
	order.PutUint32(b[g.from:], uint32(len(b)-g.from-frameBytes))
	g.buffer = b
	g.next++
	g.counts.Records++
}

// commit returns when everything that anybody has appended is durable enough to be
// acknowledged, or ctx has ended. The records are written even then.
func (g *log) commit(ctx context.Context) error {
	// While nobody else holds adding, all bits that are set belong to logged adds.
	g.local.adding.Lock()
	g.Lock()
	g.local.adding.Unlock()
	defer g.Unlock()
	g.counts.Commits++
	if ctx.Done() == nil {
		return g.reach(g.next, g.urgent)
	}
	return g.reachBefore(ctx, g.next, g.urgent)
}

// reachBefore is reach until ctx has ended. The caller does not write: one goroutine
// does it for all callers that have a ctx, so a hanging disk blocks only that one. The
// log is locked.
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

// reach returns when all records below these two LSNs are written and synced,
// respectively. The log is locked.
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

// reachAll returns when everything appended is written and synced.
func (g *log) reachAll() error {
	g.Lock()
	defer g.Unlock()
	return g.reach(g.next, g.next)
}

// unsyncedBytes is how much a long load leaves to the next sync. A much larger sync
// would keep the disk and the file busy for so long that everybody else's writes wait.
const unsyncedBytes = 8 << 20

// settle returns when everything appended is written, and synced if it is a lot. A
// caller that logs a lot calls it after each MiB. So it leaves at most that for
// anybody's commit to write, and about unsyncedBytes at most for the next sync.
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

// write writes the buffer, and syncs if andSync. The log is locked, but unlocked
// meanwhile.
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

// mark appends a record that says how much of the log is on disk, so that damage there
// is not taken for a torn end.
func (g *log) mark() {
	g.from = len(g.buffer)
	b := append(g.buffer, make([]byte, frameBytes)...)
	b = append(order.AppendUint64(b, g.next), recordMark)
	g.seal(order.AppendUint64(b, g.synced))
	g.marked = g.synced
}

// seal computes the checksums of the records.
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

// syncAlone syncs the file that the function returns while the log is locked. Nobody
// else syncs meanwhile: the system reports an error only once, so a caller that comes
// after a failed sync must learn of it from the log, rather than find that all is well.
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

// isSynced notes that all records below next are synced. The log is locked.
func (g *log) isSynced(next uint64, took time.Duration) {
	g.synced = max(g.synced, next)
	g.counts.Syncs++
	g.counts.SyncTime += took
	bucket := min(bits.Len64(uint64(took)/uint64(SyncBucket)), len(g.counts.SyncBuckets)-1)
	g.counts.SyncBuckets[bucket]++
}

// fail stops the store permanently. The log is locked.
func (g *log) fail(err error) {
	if g.failure == nil {
		g.failure = fmt.Errorf("%w: nothing more is acknowledged, since the last writes may be lost: check the disk, then start again: %w", ErrStopped, err)
		if g.onFail != nil {
			go g.onFail(g.failure)
		}
	}
	g.turn.Broadcast()
}

// stopped returns the failure, if any.
func (g *log) stopped() error {
	g.Lock()
	defer g.Unlock()
	return g.failure
}

// syncNow writes and syncs everything appended, while others may continue to write.
// eachSecond calls it, for the level EverySecond.
func (g *log) syncNow() error {
	g.Lock()
	defer g.Unlock()
	if err := g.reach(g.next, 0); err != nil {
		return err
	}
	if g.synced >= g.written && !(g.synced > g.marked && g.changes > g.marked) {
		return nil
	}
	if g.synced >= g.written { // there is only a mark to write
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
	took, err := g.syncAlone(func() diskFile { // under syncing, as rotate closes the file that it replaces
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

// rotate ends the segment and begins the next one. It returns the LSN of the first
// record in that one. Only adds may be appended meanwhile.
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
		return g.written, nil // nothing was logged since: the segment of that name exists
	}
	// Adds that arrived meanwhile are in the buffer: they go into the new segment.
	start = g.written
	g.busy = true
	g.Unlock()
	g.syncing.Lock()
	old := g.file
	file, seg, err := g.create(start)
	if err == nil && old != nil {
		old.Close() // it has been synced
	}
	g.Lock()
	g.syncing.Unlock() // syncNow sees the new file: the log stays locked until it is there
	g.busy = false
	g.turn.Broadcast()
	if errors.Is(err, errNotWritten) { // the old segment is unchanged
		return 0, err
	}
	if err != nil {
		g.fail(fmt.Errorf("beginning a segment of the log: %w", err))
		return 0, g.failure
	}
	g.earlier += g.segment.bytes
	g.marked = start // damage in a segment that another one follows is not a torn end
	g.file, g.segment = file, seg
	return start, nil
}

// create creates a segment whose first record will be start.
func (g *log) create(start uint64) (diskFile, segment, error) {
	seg, err := newSegment(g.disk, fileHead{start: start, store: g.local.id})
	if err != nil {
		return nil, seg, err
	}
	file, err := g.disk.Append(segmentName(start))
	return file, seg, err
}

// newSegment writes the file of an empty segment. It sets the head's version and salt.
func newSegment(d disk, head fileHead) (segment, error) {
	head.version, head.salt = fileVersion, newSalt()
	err := put(d, segmentName(head.start), func(file diskFile) error {
		return writeAll(file, head.encode(fileMagicLog))
	})
	return segment{head, headBytes}, err
}

// isSaved notes that a snapshot has all records before start, so that the earlier
// segments are superfluous.
func (g *log) isSaved(start uint64) {
	g.Lock()
	defer g.Unlock()
	g.saved, g.earlier = start, 0
}

// unsaved reports whether the log has changes that are in no snapshot.
func (g *log) unsaved() bool {
	g.Lock()
	defer g.Unlock()
	return g.changes > g.saved
}

// bytes returns the length of the log.
func (g *log) bytes() uint64 {
	g.Lock()
	defer g.Unlock()
	return g.earlier + g.segment.bytes
}

// close syncs and closes the log.
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
