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

// LocalConfig says what [Local] to open. The zero LocalConfig is a store in memory
// that nothing is left of.
type LocalConfig struct {
	// Dir is the directory for the store's files; it is made if it is not there.
	// Empty: everything is in memory only.
	Dir string

	// Memory is the most bytes that all filters and values may take together; zero
	// means no limit.
	Memory uint64

	// Level is that of all filters whose Spec does not say another. Zero means
	// EverySecond.
	Level Level

	// Checkpoint is how many bytes of log for each byte of filters there may be
	// before a snapshot makes the log superfluous, but never less than
	// CheckpointBytes. Zero means 2, and 256 MiB, which is read again in some seconds.
	Checkpoint      float64
	CheckpointBytes uint64

	// SnapshotEvery is how often filters at the level Unlogged are saved if they
	// have changed. Zero means 5 minutes.
	SnapshotEvery time.Duration

	// Warn is called with errors that stop nothing: of snapshots that were not asked
	// for. They are tried again. It may be nil.
	Warn func(err error)

	// Generations is that of new windows, see bloom.WindowConfig. Zero means 4.
	Generations int

	seams
}

// seams are what tests replace.
type seams struct {
	disk disk             // for Dir
	now  func() time.Time // the time of day

	// elapsed is the time since the store was opened, by a clock that nobody sets.
	elapsed func() time.Duration
	idle    bool // nothing happens by itself: tests call sweep and eachSecond

	recovered func(r *recovery) // called when everything is read, before the store writes
	between   func()            // called between the pieces of a merge and of a fold
	patience  time.Duration     // in place of grantPatience

	checkOnly bool // nothing is written: see Verify
	strict    bool // the memory limit holds for what is recovered, too
}

// Local is a [Store] in this process's memory, with its log and snapshots in a
// directory: see docs/format.md.
//
// Three kinds of locks order what happens. changing is held while values
// are made, dropped or renamed, so that the log has these changes in order. A
// filter's gate is held for reading while keys are added or looked up, and for
// writing while the filter is dropped, its bits are replaced or room is made.
// underway is held for reading from before the first bit of an add is set until the
// add is in the log, and for writing to make sure that all visible bits are in the log: see log.commit. They are taken in this
// order: checkpointing, changing, gate, underway, and last the log's own; moving, of
// a filter that is being loaded, before the gate.
//
// None of them but checkpointing is held for long: gates stand still for a thousand
// keys or a MiB at most. checkpointing is held by snapshots, merges and folds, which
// so come one after the other; nobody else waits for it but Close.
type Local struct {
	config LocalConfig
	secret []byte
	id     storeID // in all files of the directory
	names  *names
	count  atomic.Int64 // names

	pins     pins
	unmapper unmapper
	cleared  atomic.Uint64 // the values with lower ids have been dropped; see Local.clear
	leaked   []*value      // see merge.end; guarded by checkpointing

	used         atomic.Uint64            // bytes
	grantLayer   func(bytes uint64) error // grant and release, for a million chains
	releaseLayer func(bytes uint64)

	changing      sync.Mutex
	nextID        uint64 // guarded by changing
	checkpointing sync.Mutex
	underway      sync.RWMutex
	gates         [gateCount]gate

	log       *log         // nil: in memory only
	unlock    func() error // the directory
	unlogged  atomic.Bool  // there were adds to filters at that level since the last snapshot
	leftovers atomic.Bool  // there are files from before the newest snapshot
	recovered Recovery
	opened    time.Time    // the time of day when the store was opened
	replay    atomic.Int64 // the time that windows see while the log is read again, 0 otherwise

	dumps sync.Map // the *paired that are being dumped
	ends  endings
	stop  chan struct{}
	done  sync.WaitGroup

	closing      sync.Once
	snapshotting sync.Mutex // held while the one that came by itself is taken

	last struct { // the newest snapshot
		sync.Mutex
		at    time.Time
		known time.Time // to this process: at may be off, if the clock was
		took  time.Duration
		bytes uint64
		count uint64

		err      error         // of the last attempt
		failures uint64        // since the store was opened
		pause    time.Duration // before the next attempt that comes by itself
		retry    time.Time     // when that may come
	}
}

// gate is one of the locks that filters share, on a cache line of its own.
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

// OpenLocal opens a store. With a directory it reads what is there, the newest
// snapshot and the log since, and makes sure that the disk has it. The error says
// what to do: it wraps bloom.ErrLocked if another process has the directory, and
// [ErrDamaged] if a file is not as it was written.
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

// filled puts the defaults in the place of zeros.
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

// windowNow is the clock of windows, and of the log's records of adds to them: the
// time of day when the store was opened, and what has passed since by a clock that
// nobody sets. So when the time of day jumps, windows do not, and what the log says
// agrees with what they did: a jump and its end make no key be forgotten too early,
// neither at once nor after a restart. A clock that stays put forward is followed from
// the next start on.
func (l *Local) windowNow() time.Time {
	if at := l.replay.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return l.opened.Add(l.config.elapsed())
}

// Grant takes this number of bytes from what the memory limit leaves, for something beside
// filters and values that a server needs for a while, until Release gives them back.
// It waits for a moment if memory is about to be given back. The error wraps ErrMemory
// and names the bytes.
func (l *Local) Grant(bytes uint64) error {
	return l.patiently(func() error { return l.grant(bytes) })
}

// Release gives back what Grant took.
func (l *Local) Release(bytes uint64) { l.release(bytes) }

// grant takes this number of bytes of memory, or says why not. It does not wait, as most of
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

// release gives bytes back.
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

// Len is how many names there are; those that expired in the last moments count.
func (l *Local) Len() int { return int(l.count.Load()) }

// Open returns the filter of that name.
func (l *Local) Open(name []byte) (Filter, error) {
	v := l.look(name)
	switch {
	case v == nil:
		return nil, ErrNotFound
	case v.kind() == String:
		return nil, ErrWrongKind
	}
	return v, nil
}

// look returns what has the name now; nil if nothing.
func (l *Local) look(name []byte) *value {
	v := l.names.find(name)
	if v == nil || v.expired() {
		return nil
	}
	return v
}

// Get returns a plain value, which is not to be changed.
func (l *Local) Get(name []byte) ([]byte, error) {
	v := l.look(name)
	if v == nil {
		return nil, ErrNotFound
	}
	if text, ok := v.body.(text); ok {
		return text, nil
	}
	return nil, ErrWrongKind
}

// Kind is what the name stands for, and until when.
func (l *Local) Kind(name []byte) (Kind, time.Time) {
	v := l.look(name)
	if v == nil {
		return None, time.Time{}
	}
	return v.kind(), v.expiry()
}

// List returns the names of as many shards as it takes to have count of them.
func (l *Local) List(cursor uint64, count int) (found []string, next uint64) {
	for ; cursor < shardCount; cursor++ {
		if len(found) >= max(count, 1) {
			return found, cursor
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
	return found, 0
}

// OnEnd calls back when a name has expired: within a tenth of a second, one name
// after the other. It replaces the function that was given before.
func (l *Local) OnEnd(do func(name string)) {
	l.ends.Lock()
	l.ends.do = do
	l.ends.Unlock()
}

// OnStop calls back when the store has stopped, with the error that wraps
// [ErrStopped], also if nobody is adding anything. It replaces the function that was
// given before.
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

// Commit returns when all that returned before it is durable, each filter's adds
// as its level asks. If ctx ends first Commit returns its error, and the commit
// continues for other callers. A context that cannot end costs nothing.
func (l *Local) Commit(ctx context.Context) error {
	if l.log == nil {
		return nil
	}
	return l.log.commit(ctx)
}

// run is what happens by itself.
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

// eachSecond syncs the log, and takes a snapshot when it is time for one.
func (l *Local) eachSecond() {
	l.endIdleDumps()
	if l.log == nil || l.log.syncNow() != nil || !l.wantsSnapshot() {
		return
	}
	if l.config.idle {
		l.checkpoint()
		return
	}
	if l.snapshotting.TryLock() { // the next second may come first
		l.done.Go(func() {
			defer l.snapshotting.Unlock()
			if err := l.checkpoint(); err != nil && l.config.Warn != nil && !errors.Is(err, ErrStopped) {
				l.config.Warn(err)
			}
		})
	}
}

// wantsSnapshot reports whether the log is long enough, or what is not logged has
// waited long enough.
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

// Snapshot takes a snapshot now, and returns when the log before it is removed. If
// ctx ends before the snapshot is begun nothing is done; once begun it is completed.
func (l *Local) Snapshot(ctx context.Context) error {
	if l.log == nil {
		return fmt.Errorf("a store in memory has no snapshots: %w", errUnsupported)
	}
	l.checkpointing.Lock()
	defer l.checkpointing.Unlock()
	if err := ctx.Err(); err != nil { // it may have waited for another snapshot, or a merge
		return err
	}
	return l.checkpointAlone()
}

// Close makes all adds durable, at any level, and ends the store. It takes a
// snapshot if anything has changed since the last, so that nothing is left to be
// done again at the next start. If that fails, as when the disk is full, the log has
// everything all the same, and it is an error only if there were adds at the level
// Unlogged: Stats tells of it. Close may be called twice. Filters that are still in
// hand can be asked, but what is added is lost.
func (l *Local) Close() (err error) {
	l.closing.Do(func() {
		close(l.stop)
		l.done.Wait()
		if l.log == nil {
			return
		}
		// A snapshot that is under way has adds that are nowhere else.
		l.checkpointing.Lock()
		defer l.checkpointing.Unlock()
		if (l.unlogged.Load() || l.leftovers.Load() || l.log.unsaved()) && l.log.stopped() == nil {
			err = l.checkpointAlone()
			switch {
			case err == nil || l.log.stopped() != nil:
			case l.unlogged.Load():
				err = fmt.Errorf("%w: what was added at the level %v since the last snapshot is lost", err, Unlogged)
			default:
				err = nil
			}
		}
		err = errors.Join(err, l.log.close(), l.unlock())
	})
	return err
}
