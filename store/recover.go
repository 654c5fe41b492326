package store

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
)

// openFiles reads what is there, and makes sure that it is durable before anything is
// acknowledged.
func (l *Local) openFiles() (err error) {
	if l.config.Dir == "" && l.config.disk == nil {
		l.secret = newSecret()
		return nil
	}
	began := time.Now()
	if l.config.disk == nil {
		d, err := openDirectory(l.config.Dir)
		if err != nil {
			return err
		}
		l.config.disk = d
	}
	if l.unlock, err = l.config.disk.Lock(); err != nil {
		return fmt.Errorf("store: %w: stop the other server, or give this one another directory", err)
	}
	if err := l.begin(); err != nil {
		l.unlock()
		return err
	}
	l.recovered.Took = time.Since(began)
	return nil
}

func (l *Local) begin() error {
	r := &recovery{local: l}
	if err := r.run(); err != nil {
		return fmt.Errorf("store: opening: %w", err)
	}
	l.recovered = r.found
	if l.config.recovered != nil {
		l.config.recovered(r)
	}
	return l.serveFrom(r)
}

// serveFrom begins a new log after what was read. First it makes sure that the last
// file of the old one is on disk: after a failed write, what was read may be only in
// this machine's memory. Earlier files are on disk, since each was synced before
// anything followed it.
//
// If the log is longer than the filters are large, a snapshot of them replaces it, if
// there is room. A snapshot must be written if the directory is empty, if its files are
// of an older version, or if the log ends before the LSNs that the snapshot has seen.
// The last happens only on a disk that loses synced data. LSNs must not be used again,
// since records are skipped that a value's LSN says it already includes.
func (l *Local) serveFrom(r *recovery) (err error) {
	l.log = newLog(l, r.next)
	must := r.found.Fresh || r.old || r.next < r.seen
	switch {
	case must:
		err = l.rewrite(r)
	case r.found.LogBytes > l.used.Load():
		if err = l.rewrite(r); errors.Is(err, errNotWritten) { // all files are unchanged
			l.snapshotFailed(err)
			err = l.resume(r)
		}
	default:
		err = l.resume(r)
	}
	if err != nil {
		return fmt.Errorf("store: writing what was recovered: %w: check the disk, then start again: nothing is lost", err)
	}
	return nil
}

// rewrite begins a log after all existing LSNs, and writes everything to a snapshot of
// the same number. Then it removes the older files. The log comes before the snapshot.
// So a snapshot without its log is always damage, and a crash can leave only an empty
// log without its snapshot.
func (l *Local) rewrite(r *recovery) error {
	start := max(r.next, r.newest, r.seen) + 1
	l.log = newLog(l, start)
	if err := l.removeUnused(r); err != nil {
		return err
	}
	seg, err := l.writeBase(start, r.found.Fresh)
	if err != nil {
		return err
	}
	if err := l.removeOld(start); err != nil {
		return err
	}
	l.log.segment = seg
	l.log.file, err = l.config.disk.Append(segmentName(start))
	return err
}

// writeBase writes an empty segment, and then a snapshot of all values. first says that
// the directory was empty before.
func (l *Local) writeBase(start uint64, first bool) (segment, error) {
	head := fileHead{start: start, store: l.id, flags: segmentRewrite}
	if first {
		head.flags |= segmentFirst
	}
	seg, err := newSegment(l.config.disk, head)
	if err != nil {
		return seg, err
	}
	err = l.snapshot(start, l.nextID, l.allNamed())
	if errors.Is(err, errNotWritten) {
		l.config.disk.Remove(segmentName(start)) // otherwise the next start has to skip it
	}
	return seg, err
}

// removeUnused removes what a crash has left: unfinished files and unused segments, which
// take space. It makes a backup a store's directory before that.
func (l *Local) removeUnused(r *recovery) error {
	if err := r.adoptBackup(); err != nil {
		return err
	}
	for _, start := range r.unused {
		if err := l.config.disk.Remove(segmentName(start)); err != nil {
			return err
		}
	}
	r.unused = nil
	return l.removeOld(0)
}

// resume keeps the files, copies the last segment that was read, and continues the log in
// a new segment.
func (l *Local) resume(r *recovery) (err error) {
	l.log = newLog(l, r.next)
	g, d := l.log, l.config.disk
	if r.changes > 0 {
		g.saved = r.start
	}
	g.earlier = r.found.LogBytes
	l.leftovers.Store(r.older)
	l.last.Lock()
	l.last.at, l.last.bytes, l.last.known = r.taken, r.found.Bytes, time.Now()
	l.last.Unlock()
	if err := l.removeUnused(r); err != nil {
		return err
	}
	if last := r.last; last != nil && last.bytes > last.fileHead.bytes() {
		err = put(d, segmentName(last.start), func(file diskFile) error {
			return copySegment(d, *last, file)
		})
	}
	if err == nil {
		g.file, g.segment, err = g.create(r.next)
	}
	return err
}

// copySegment copies the records of a segment to another file, and checks each one
// again.
func copySegment(d disk, of segment, to diskFile) error {
	in, err := openRecords(d, segmentName(of.start), fileMagicLog)
	if err != nil {
		return err
	}
	defer in.close()
	in.next = of.start
	data := of.encode(fileMagicLog)
	for in.at < of.bytes {
		if _, _, err := in.read(); err != nil {
			return in.failed(err, "")
		}
		data = order.AppendUint32(data, uint32(len(in.record)))
		data = order.AppendUint32(data, sum(in.seed, in.record))
		data = append(data, in.record...)
		if len(data) >= contentBytes {
			if err := writeAll(to, data); err != nil {
				return err
			}
			data = data[:0]
		}
	}
	return writeAll(to, data)
}

// recovery reads a snapshot and the log after it.
type recovery struct {
	local   *Local
	found   Recovery
	salvage *salvage // nil if damage is an error

	files      []string
	start      uint64 // of the snapshot
	size       int    // of its file
	taken      time.Time
	old        bool     // the files are of an older version
	mayBeAlone bool     // the snapshot may have no log; version 0 only
	older      bool     // there are files from before the snapshot
	newest     uint64   // start of the newest file
	unused     []uint64 // segments that were begun and never used

	backup bool     // the directory is a backup
	strays []string // files there that are not part of it

	seen uint64 // the highest LSN of a value in the snapshot
	next uint64 // LSN after the last record
	last *segment

	changes uint64 // records of the log, except marks

	values  map[uint64]*recovered
	workers workers
}

// recovered is a value, and what replaying the log needs to know of it.
type recovered struct {
	*value
	lsn    uint64   // the snapshot's value includes earlier records
	layers []uint64 // a chain's counts of items, with those of the log
	counts bool     // the chain's counts must be set to layers at the end
	held   []uint64 // of a cuckoo filter: slots of records that the next one continues

	// While it is read from a snapshot:
	content *content
}

func (r *recovery) run() (err error) {
	l, d := r.local, r.local.config.disk
	if r.files, err = d.List(); err != nil {
		return err
	}
	for _, start := range append(starts(r.files, snapPrefix), starts(r.files, segmentPrefix)...) {
		r.newest = max(r.newest, start)
	}
	if err := r.fromBackup(); err != nil {
		return err
	}
	snapshots, segments := starts(r.files, snapPrefix), starts(r.files, segmentPrefix)
	if segments, err = r.skipUnused(snapshots, segments); err != nil {
		return err
	}
	fresh := len(snapshots) == 0 && len(segments) == 0
	if l.secret, err = openSecret(d, fresh && !r.readOnly()); err != nil {
		return err
	}
	r.values = map[uint64]*recovered{}
	r.found.Fresh = fresh
	l.replay.Store(1)
	defer l.replay.Store(0)
	defer r.close()
	if fresh {
		r.next, l.id = 1, newStoreID()
		return nil
	}
	if len(snapshots) > 0 {
		r.start = snapshots[len(snapshots)-1]
		r.older = len(snapshots) > 1 || len(segments) > 0 && segments[0] < r.start
		err = r.readSnapshot(snapshotName(r.start))
	} else {
		r.start = segments[0]
		err = r.withoutSnapshot()
	}
	if err != nil {
		return err
	}
	r.next = r.start
	if err := r.readLog(segments); err != nil {
		return err
	}
	if l.id == (storeID{}) {
		l.id = newStoreID()
	}
	r.finish()
	return nil
}

// skipUnused returns the segments without those that an interrupted rewrite began and had
// no snapshot for. They are empty. If any other segment of a rewrite lacks its snapshot,
// that is an error, except in a repair.
func (r *recovery) skipUnused(snapshots, segments []uint64) (used []uint64, err error) {
	for _, start := range segments {
		if slices.Contains(snapshots, start) || len(snapshots) > 0 && start < snapshots[len(snapshots)-1] {
			used = append(used, start)
			continue
		}
		in, err := openRecords(r.local.config.disk, segmentName(start), fileMagicLog)
		if errors.Is(err, ErrDamaged) {
			used = append(used, start) // reported when it is read
			continue
		}
		if err != nil {
			return nil, err
		}
		in.close()
		empty := in.size == int(in.fileHead.bytes())
		switch {
		case in.flags&segmentRewrite == 0:
			used = append(used, start)
		case empty && (len(snapshots) > 0 || in.flags&segmentFirst != 0):
			r.unused = append(r.unused, start)
		case r.salvage == nil:
			return nil, fmt.Errorf("%w: %s, which the log %s follows, is not there: put it back from a backup, or repair the directory, which says before what becomes unknown", ErrDamaged, snapshotName(start), segmentName(start))
		default:
			used = append(used, start)
		}
	}
	return used, nil
}

// close ends the background work of the recovery.
func (r *recovery) close() {
	r.workers.stop()
	for _, v := range r.values {
		v.content.drop()
	}
}

// readOnly reports whether the directory must not be changed.
func (r *recovery) readOnly() bool { return r.local.config.checkOnly }

// readSnapshot reads all values of the snapshot.
func (r *recovery) readSnapshot(name string) error {
	in, err := openRecords(r.local.config.disk, name, fileMagicSnap)
	if err != nil && r.salvage != nil {
		in, err = r.salvage.withoutHead(r, name, err)
	}
	if err != nil {
		return err
	}
	defer in.close()
	in.next, r.size = 1, in.size
	r.found.Snapshot = name
	r.old, r.local.id = in.version < fileVersion, in.store
	if err := r.beginSnapshot(in); err != nil {
		return err
	}
	values := uint64(0)
	var current *recovered
	for {
		kind, f, err := in.read()
		switch {
		case err != nil:
			if err = r.skipDamage(in, err, current); errors.Is(err, errNoMore) {
				return r.finishContents(in)
			} else if err != nil {
				return err
			}
			continue
		case kind == recordValue:
			if current, err = r.readValue(&f); err == nil {
				values++
			}
		case kind == recordContent:
			err = r.readContent(current, &f)
		case kind == recordEnd:
			if n := f.uint64(); n != values && r.salvage == nil {
				return in.failed(nil, fmt.Sprintf("the snapshot has %d values of %d", values, n))
			}
			r.found.Bytes = in.at
			if _, err := in.from.ReadByte(); err != io.EOF {
				return in.failed(nil, "there are bytes behind the snapshot's end")
			}
			return r.finishContents(in)
		default:
			err = fmt.Errorf("a record of type %d in a snapshot", kind)
		}
		if err != nil {
			if r.salvage == nil {
				return in.failed(nil, err.Error())
			}
			r.salvage.lostBits(current, err.Error())
		}
	}
}

// beginSnapshot reads the head record.
func (r *recovery) beginSnapshot(in *recordReader) error {
	if in.guessed { // there is no head record, or its place is unknown
		return nil
	}
	kind, f, err := in.read()
	if err == nil && kind == recordHead {
		err = r.readHead(&f, in)
		return err
	}
	if r.salvage == nil || err != nil && err != io.EOF && !errors.Is(err, errTorn) {
		return in.failed(err, "the snapshot does not begin with its head")
	}
	r.salvage.note("%s, byte %d: its first record is damaged: whether %q is the right file can no longer be told", in.name, in.at, secretsName)
	r.headless()
	return nil
}

// skipDamage continues after damage in a repair. Otherwise it returns an error.
func (r *recovery) skipDamage(in *recordReader, err error, current *recovered) error {
	if r.salvage == nil || err != io.EOF && !errors.Is(err, errTorn) {
		return in.failed(err, "")
	}
	return r.salvage.skip(r, in, err, current)
}

func (r *recovery) readHead(f *fields, in *recordReader) error {
	flags := f.byte()
	r.local.nextID = f.uint64()
	f.uint64() // values: the end record has their number, too
	print, taken := f.uint64(), f.uint64()
	if f.bad {
		return in.failed(nil, "the head is too short")
	}
	r.mayBeAlone = in.version == 0 && flags&snapshotMayBeAlone != 0
	r.taken = time.Unix(0, int64(taken))
	r.local.replay.Store(int64(max(taken, 1)))
	if own := fingerprint(r.local.secret); own != print {
		return fmt.Errorf("%s: %w: the filters were made with fingerprint %016x, but the file %q has %016x: restore the right file", in.name, bloom.ErrSecret, print, secretsName, own)
	}
	return nil
}

// content collects the bytes of a value as they arrive.
type content struct {
	at    uint64 // next byte
	size  uint64 // of a chain's bits
	bytes []byte
	pipe  *io.PipeWriter
	made  chan error // the result of the reading end
	bits  hashed
}

// drop ends the reading of a file that pipe began.
func (c *content) drop() {
	if c != nil && c.pipe != nil {
		c.pipe.CloseWithError(errTorn)
	}
}

func (r *recovery) readValue(f *fields) (*recovered, error) {
	l := r.local
	id, lsn := f.uint64(), f.uint64()
	kind, level := Kind(f.byte()), Level(f.byte())
	expires := int64(f.uint64())
	name := f.name()
	if f.bad || id == 0 || level < Always || level > Unlogged || r.values[id] != nil {
		return nil, fmt.Errorf("a value of impossible kind %d and level %d", kind, level)
	}
	header := f.rest()
	c := &content{}
	var b body
	var err error
	switch kind {
	case String:
		b = text{}
	case RedisBloom:
		b, err = l.loadChain(header)
		c.size = redisbloom.LayerBytes(header)
	case Cuckoo:
		if b, err = l.loadNest(header); err == nil {
			c.size = b.(*nest).Bytes()
		}
	case Paired, Window, Counting:
		var h DumpHeader
		h, err = ParseDumpHeader(header)
		switch p := (&paired{local: l, spec: h.Spec}); {
		case err != nil:
		case h.Bytes != 0: // it was being loaded
			b, err = l.loadBody(header)
		default:
			p.items.Store(h.Items)
			r.pipe(c, p)
			b = p
		}
	default:
		err = fmt.Errorf("a value of unknown kind %d", kind)
	}
	if err != nil {
		return nil, err
	}
	v := &value{local: l, name: name, id: id, body: b, level: level}
	l.grant(overheadBytes(b, name))
	l.publish(v, expires)
	r.found.Values++
	r.seen = max(r.seen, lsn)
	value := &recovered{value: v, lsn: lsn, content: c}
	r.values[id] = value
	l.nextID = max(l.nextID, id+1) // where the head is damaged
	return value, nil
}

// sizedReader has a Len, which lets its user allocate everything at once.
type sizedReader struct {
	io.Reader
	most int
}

func (r sizedReader) Len() int { return r.most }

// pipe begins to read a filter's file, whose bytes will arrive in the pipe.
func (r *recovery) pipe(c *content, p *paired) {
	from, to := io.Pipe()
	c.pipe, c.made = to, make(chan error, 1)
	go func() {
		bits, err := r.local.read(p.spec, sizedReader{from, r.size}, math.MaxInt64)
		from.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		c.bits = bits
		c.made <- err
	}()
}

func (r *recovery) readContent(v *recovered, f *fields) error {
	id, at := f.uint64(), f.uint64()
	if v == nil || f.bad || id != v.id || v.content == nil {
		return fmt.Errorf("bytes of value %d, which does not exist", id)
	}
	c, data := v.content, f.rest()
	if at != c.at {
		return fmt.Errorf("byte %d of value %d instead of byte %d", at, id, c.at)
	}
	if len(data) == 0 {
		return r.endContent(v)
	}
	c.at += uint64(len(data))
	switch b := v.body.(type) {
	case chain:
		if c.at > c.size {
			return fmt.Errorf("%d bytes of value %d, which has %d", c.at, id, c.size)
		}
		r.workers.restore(b, int64(c.at)+1, data)
		return nil
	case *nest:
		return b.restore(c.at-uint64(len(data)), data)
	case *paired:
		if c.pipe != nil {
			if _, err := c.pipe.Write(data); err != nil {
				return err
			}
			return nil
		}
		return b.load(v.value, int64(c.at)+1, data)
	}
	c.bytes = append(c.bytes, data...)
	return nil
}

// endContent completes a value: all of its bytes have arrived.
func (r *recovery) endContent(v *recovered) error {
	c := v.content
	v.content = nil
	switch b := v.body.(type) {
	case text:
		whole := text(slices.Clip(c.bytes))
		r.local.grant(whole.bytes())
		v.body = whole
	case chain, *nest:
		if c.at != c.size {
			return fmt.Errorf("%d bytes of value %d, which has %d", c.at, v.id, c.size)
		}
	case *paired:
		if c.pipe == nil {
			return nil
		}
		c.pipe.Close()
		if err := <-c.made; err != nil {
			return fmt.Errorf("value %d: %w", v.id, err)
		}
		bytes := memoryOf(c.bits) // computed once: a window may drop expired layers meanwhile
		r.local.grant(bytes)
		setLive(c.bits, b.items.Load())
		b.replace(c.bits, b.items.Load(), bytes)
	}
	return nil
}

// finishContents looks for values whose bytes are incomplete.
func (r *recovery) finishContents(in *recordReader) error {
	if err := r.workers.wait(); err != nil {
		return in.failed(nil, err.Error())
	}
	for id, v := range r.values {
		if v.content == nil {
			continue
		}
		if r.salvage == nil {
			return in.failed(nil, fmt.Sprintf("value %d is not complete", id))
		}
		r.salvage.lostBits(v, "its bits are not complete")
	}
	return nil
}
