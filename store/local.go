package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom"
)

// LocalConfig configures a [Local]. The zero LocalConfig is a store that exists only in
// memory.
type LocalConfig struct {
	// Dir is the directory for the store's files; it is created if necessary. If it is
	// empty, everything is in memory only.
	Dir string

	// Memory limits the memory of all filters and values together, in bytes. Zero means
	// no limit.
	Memory uint64

	// Level is that of all filters whose Spec does not name one. Zero means
	// EverySecond.
	Level Level

	// A snapshot is taken, so that the log before it can be removed, when the log has
	// Checkpoint bytes for each byte of filters, and at least CheckpointBytes. Zero
	// means 2, and 256 MiB, which takes seconds to replay.
	Checkpoint      float64
	CheckpointBytes uint64

	// SnapshotEvery is how often filters at the level Unlogged are saved if they have
	// changed. Zero means 5 minutes.
	SnapshotEvery time.Duration

	// Warn is called with errors of automatic snapshots that do not stop the store. The
	// snapshots are retried. Warn may be nil.
	Warn func(err error)

	// Generations is the number that new windows have, see bloom.WindowConfig. Zero
	// means 4.
	Generations int

	seams
}

// seams are what tests replace.
type seams struct {
	disk disk             // for Dir
	now  func() time.Time // the time of day

	// elapsed is the time since the store was opened, by a clock that nobody sets.
	elapsed func() time.Duration
	idle    bool // no background work: tests call sweep and eachSecond

	recovered func(r *recovery) // called when everything has been read, before the store writes
	between   func()            // called between the pieces of a merge and of a fold
	patience  time.Duration     // instead of grantPatience

	checkOnly bool // nothing is written: see Verify
	strict    bool // the memory limit applies to recovered values, too
}

// Local is a [Store] in this process's memory, with its log and snapshots in a
// directory: see docs/format.md.
//
// Three kinds of locks order what happens:
//
//   - changing is held to create, drop or rename values, so that the log has these
//     changes in order.
//   - A filter's gate is held for reading to add or look up keys, and for writing to drop
//     the filter, replace its bits or make room.
//   - adding is held for reading from before an add sets its first bit until the add has
//     been appended to the log. It is held for writing to make sure that all visible
//     bits belong to adds in the log: see log.commit.
//
// The order of locking is: checkpointing, changing, gate, adding, and last the log's
// own lock; moving, of a filter that is being loaded, comes before the gate.
//
// Only checkpointing and moving are held for long; a gate is held at most for chunkKeys
// keys or a MiB. Snapshots, merges and folds hold checkpointing, so they run one after
// another; otherwise only Close waits for it.
type Local struct {
	config LocalConfig
	secret []byte
	id     storeID // in all files of the directory
	names  *names
	count  atomic.Int64 // names

	pins     pins
	unmapper unmapper
	cleared  atomic.Uint64 // values with lower ids have been dropped; see Local.clear
	leaked   []*value      // they have bits of failed merges: see merge; guarded by checkpointing

	used         atomic.Uint64            // bytes
	grantLayer   func(bytes uint64) error // grant and release, stored once for a million chains
	releaseLayer func(bytes uint64)

	changing      sync.Mutex
	nextID        uint64 // guarded by changing
	checkpointing sync.Mutex
	adding        sync.RWMutex
	gates         [gateCount]gate

	log       *log         // nil: in memory only
	unlock    func() error // the directory
	unlogged  atomic.Bool  // filters at that level have changed since the last snapshot
	leftovers atomic.Bool  // there are files from before the newest snapshot
	recovered Recovery
	opened    time.Time    // the time of day when the store was opened
	replay    atomic.Int64 // the time that windows see during recovery, otherwise 0

	dumps    sync.Map // the *paired that are being dumped
	expiries expiryQueue
	stop     chan struct{}
	done     sync.WaitGroup

	closing      sync.Once
	snapshotting sync.Mutex // held while an automatic snapshot is taken

	last struct { // the newest snapshot
		sync.Mutex
		at    time.Time
		known time.Time // to this process: at may be off, if the clock was wrong
		took  time.Duration
		bytes uint64
		count uint64

		err      error         // of the last attempt
		failures uint64        // since the store was opened
		pause    time.Duration // before the next automatic attempt
		retry    time.Time     // earliest time of that attempt
	}
}

// gate is one of the locks that filters share, padded to the size of a cache line.
type gate struct {
	sync.RWMutex
	_ [40]byte
}

const (
	gateCount            = 256
	defaultCheckpoint    = 2
	defaultLogBytes      = 256 << 20
	defaultSnapshotEvery = 5 * time.Minute
	defaultGenerations   = 4
	tickEvery            = 100 * time.Millisecond
)

// OpenLocal opens a store. If there is a directory, it reads the newest snapshot and
// the log since, and makes sure that both are on disk. The error says what to do. It
// wraps bloom.ErrLocked if another process has the directory locked, and [ErrDamaged]
// if a file is not as it was written.
func OpenLocal(config LocalConfig) (*Local, error) {
	config, err := config.filled()
	if err != nil {
		return nil, err
	}
	l := newLocal(config)
	if err := l.openFiles(); err != nil {
		return nil, err
	}
	if !config.idle {
		l.done.Go(l.run)
	}
	return l, nil
}

// filled replaces zeros by the defaults.
func (c LocalConfig) filled() (LocalConfig, error) {
	if c.Level > Unlogged {
		return c, fmt.Errorf("%w: no level %d", bloom.ErrConfig, c.Level)
	}
	if c.Level == StoreLevel {
		c.Level = EverySecond
	}
	if c.Checkpoint <= 0 {
		c.Checkpoint = defaultCheckpoint
	}
	if c.CheckpointBytes == 0 {
		c.CheckpointBytes = defaultLogBytes
	}
	if c.SnapshotEvery <= 0 {
		c.SnapshotEvery = defaultSnapshotEvery
	}
	if c.Generations <= 0 {
		c.Generations = defaultGenerations
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.patience == 0 {
		c.patience = grantPatience
	}
	if opened := c.now(); c.elapsed == nil {
		c.elapsed = func() time.Duration { return c.now().Sub(opened) }
	}
	return c, nil
}

func newLocal(config LocalConfig) *Local {
	l := &Local{config: config, names: newNames(), nextID: 1, stop: make(chan struct{}), opened: config.now().Round(0)}
	l.grantLayer, l.releaseLayer = l.grant, l.release
	return l
}

// now is the time of day.
func (l *Local) now() time.Time { return l.config.now() }

// windowNow is the clock of windows, and of the log's records of adds to them: the time
// of day when the store was opened, plus the time since then by a clock that nobody
// sets. So when the time of day jumps, windows do not, and the log agrees with them:
// neither a jump nor its end makes a key expire too early, at once or after a restart.
// If the time of day stays ahead, windows follow it from the next start on.
func (l *Local) windowNow() time.Time {
	if at := l.replay.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return l.opened.Add(l.config.elapsed())
}

// Grant reserves memory, in bytes, for something other than filters and values that a
// server needs temporarily, until Release returns it. Grant waits briefly if memory is
// about to be released. The error wraps ErrMemory and names the bytes.
func (l *Local) Grant(bytes uint64) error {
	return l.patiently(func() error { return l.grant(bytes) })
}

// Release returns memory reserved by Grant.
func (l *Local) Release(bytes uint64) { l.release(bytes) }

// grant reserves bytes of memory, or returns an error. It does not wait, since most of
// its callers hold locks: see patiently.
func (l *Local) grant(bytes uint64) error {
	limit := l.config.Memory
	for {
		used := l.used.Load()
		if limit != 0 && (bytes > limit || used > limit-bytes) && (l.replay.Load() == 0 || l.config.strict) {
			return shortage{bytes, used, limit}
		}
		if l.used.CompareAndSwap(used, used+bytes) {
			return nil
		}
	}
}

// release returns bytes.
func (l *Local) release(bytes uint64) {
	for {
		used := l.used.Load()
		if l.used.CompareAndSwap(used, used-min(used, bytes)) {
			return
		}
	}
}

// Usage returns the bytes that filters and values take, and the limit.
func (l *Local) Usage() (bytes, limit uint64) { return l.used.Load(), l.config.Memory }

// Len returns the number of names, including those that expired in the last moments.
func (l *Local) Len() (int, error) { return l.len(), nil }

func (l *Local) len() int { return int(l.count.Load()) }

// Open returns the filter with that name.
func (l *Local) Open(name []byte) (Filter, error) {
	v := l.lookup(name)
	switch {
	case v == nil:
		return nil, ErrNotFound
	case v.kind() == String:
		return nil, ErrWrongKind
	}
	return v, nil
}

// lookup returns the value that has the name now, or nil.
func (l *Local) lookup(name []byte) *value {
	v := l.names.find(name)
	if v == nil || v.expired() {
		return nil
	}
	return v
}

// Get returns a plain value. The caller must not change it.
func (l *Local) Get(name []byte) ([]byte, error) {
	v := l.lookup(name)
	if v == nil {
		return nil, ErrNotFound
	}
	if text, ok := v.body.(text); ok {
		return text, nil
	}
	return nil, ErrWrongKind
}

// Kind returns what the name stands for, and when it expires.
func (l *Local) Kind(name []byte) (Kind, time.Time, error) {
	v := l.lookup(name)
	if v == nil {
		return None, time.Time{}, nil
	}
	return v.kind(), v.expiry(), nil
}

// List returns the names of as many shards as it takes to reach count.
func (l *Local) List(cursor uint64, count int) (found []string, next uint64, err error) {
	for ; cursor < shardCount; cursor++ {
		if len(found) >= max(count, 1) {
			return found, cursor, nil
		}
		s := &l.names.shards[cursor]
		s.RLock()
		for _, v := range s.slots {
			if v != nil && !v.expired() {
				found = append(found, v.name)
			}
		}
		s.RUnlock()
	}
	return found, 0, nil
}

// OnEnd sets the function that is called with each name that has expired, usually within
// a tenth of a second. Names that expire together are passed one at a time. Names that
// expire later do not wait for these calls. OnEnd replaces the previous function.
func (l *Local) OnEnd(do func(name string)) {
	l.expiries.Lock()
	l.expiries.do = do
	l.expiries.Unlock()
}

// OnStop sets the function that is called when the store has stopped, even if nobody is
// adding keys. The error wraps [ErrStopped]. It replaces the previous function.
func (l *Local) OnStop(do func(err error)) {
	if l.log == nil {
		return
	}
	l.log.Lock()
	defer l.log.Unlock()
	if l.log.onFail = do; l.log.failure != nil {
		go do(l.log.failure)
	}
}

// Commit returns when every call that returned before it is durable, each filter's adds
// as its level requires. If ctx ends first, Commit returns its error, and the commit
// continues for other callers. A context that cannot end costs nothing.
func (l *Local) Commit(ctx context.Context) error {
	if l.log == nil {
		return nil
	}
	return l.log.commit(ctx)
}

// run does the background work.
func (l *Local) run() {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for tick := 1; ; tick++ {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		l.sweep()
		if tick%10 == 0 {
			l.eachSecond()
		}
	}
}

// eachSecond syncs the log, and takes a snapshot when one is due.
func (l *Local) eachSecond() {
	l.endIdleDumps()
	if l.log == nil || l.log.syncNow() != nil || !l.wantsSnapshot() {
		return
	}
	if l.config.idle {
		l.checkpoint()
		return
	}
	if l.snapshotting.TryLock() { // it may still be running a second later
		l.done.Go(func() {
			defer l.snapshotting.Unlock()
			if err := l.checkpoint(); err != nil && l.config.Warn != nil && !errors.Is(err, ErrStopped) {
				l.config.Warn(err)
			}
		})
	}
}

// wantsSnapshot reports whether a snapshot is due: the log is long, there are unlogged
// adds and the newest snapshot is old, files from before it are left, or the pause after
// a failed attempt is over.
func (l *Local) wantsSnapshot() bool {
	l.last.Lock()
	known, retry, failed := l.last.known, l.last.retry, l.last.err != nil
	l.last.Unlock()
	if failed {
		return !time.Now().Before(retry)
	}
	if l.unlogged.Load() && time.Since(known) >= l.config.SnapshotEvery {
		return true
	}
	used := l.used.Load()
	return l.leftovers.Load() || l.log.bytes() > max(l.config.CheckpointBytes, uint64(l.config.Checkpoint*float64(used)))
}

// Snapshot takes a snapshot now, and returns when the log before it has been removed.
// If ctx ends before the snapshot is begun, nothing is done; once begun, it is
// completed.
func (l *Local) Snapshot(ctx context.Context) error {
	if l.log == nil {
		return fmt.Errorf("a store in memory has no snapshots: %w", errUnsupported)
	}
	l.checkpointing.Lock()
	defer l.checkpointing.Unlock()
	if err := ctx.Err(); err != nil { // ctx may have ended while waiting for another snapshot, or a merge
		return err
	}
	return l.checkpointAlone()
}

// Close makes all adds durable, at any level, and closes the store. If anything has
// changed since the last snapshot it takes another, so that the next start has nothing
// to replay. If the snapshot fails, as when the disk is full, the log still has
// everything except adds at the level Unlogged. So that is an error only if there were
// any; otherwise Stats reports it. Close may be called twice. Filters that callers still
// hold can be queried, but keys added to them are lost.
func (l *Local) Close() (err error) {
	l.closing.Do(func() {
		close(l.stop)
		l.done.Wait()
		if l.log == nil {
			return
		}
		// A snapshot in progress may have adds that are nowhere else.
		l.checkpointing.Lock()
		defer l.checkpointing.Unlock()
		if (l.unlogged.Load() || l.leftovers.Load() || l.log.unsaved()) && l.log.stopped() == nil {
			err = l.checkpointAlone()
			switch {
			case err == nil || l.log.stopped() != nil:
			case l.unlogged.Load():
				err = fmt.Errorf("%w: adds at the level %v since the last snapshot are lost", err, Unlogged)
			default:
				err = nil
			}
		}
		err = errors.Join(err, l.log.close(), l.unlock())
	})
	return err
}
