package store

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bloomery/bloom/redisbloom"
)

// A snapshot is a copy of all values, in a file of its own: a head, each value with its
// bits, and an end. Keys are still added while it is written. Each value comes with the
// LSN at which it was read: log records from there on must be applied to it, earlier
// ones are included. Its bits are copied after that, so they may have some bits of
// later adds. That does no harm: adding the same keys again changes nothing, and counts
// do not come from bits. Of filters with removals, the log has what slots and counters are
// after each change, so replaying that on a copy whose parts are of different times ends
// with what they were last.

// named is a value, with the name it had when the snapshot began.
type named struct {
	*value
	name    string
	expires int64
}

// snapshotMayBeAlone, in the head of a snapshot of version 0: it was written by a store
// that was starting, before its log existed. In later versions the log comes first: see
// segmentRewrite.
const snapshotMayBeAlone = 1

// checkpoint writes a snapshot, and removes the files that it makes superfluous.
func (l *Local) checkpoint() error {
	l.checkpointing.Lock()
	defer l.checkpointing.Unlock()
	return l.checkpointAlone()
}

// checkpointAlone is checkpoint with the lock held.
func (l *Local) checkpointAlone() error {
	l.changing.Lock()
	unlogged := l.unlogged.Swap(false)
	start, err := l.log.rotate()
	values, nextID := l.allNamed(), l.nextID
	l.changing.Unlock()
	if err == nil {
		err = l.snapshot(start, nextID, values)
	}
	if err != nil {
		if unlogged {
			l.unlogged.Store(true)
		}
		return l.snapshotFailed(err)
	}
	l.clearLeaks()
	l.log.isSaved(start)
	err = l.removeOld(start)
	l.leftovers.Store(err != nil)
	if err != nil { // the next snapshot removes them
		return l.snapshotFailed(err)
	}
	l.last.Lock()
	l.last.pause = 0
	l.last.Unlock()
	return nil
}

// After a failed snapshot, the next automatic one is delayed, each time for twice as
// long.
const (
	firstPause = 5 * time.Second
	mostPause  = 5 * time.Minute
)

// snapshotFailed decides what a failure means. Nothing acknowledged depends on a
// snapshot, since the log has it, too: so the store continues without one, and retries.
// But if the log has failed, or if the snapshot was renamed and that may not be on disk,
// the state of the disk is unknown, and the store stops.
func (l *Local) snapshotFailed(err error) error {
	if stopped := l.log.stopped(); stopped != nil {
		return stopped
	}
	if errors.Is(err, errUnsynced) {
		l.log.Lock()
		defer l.log.Unlock()
		l.log.fail(fmt.Errorf("taking a snapshot: %w", err))
		return l.log.failure
	}
	err = fmt.Errorf("store: taking a snapshot: %w", err)
	l.last.Lock()
	defer l.last.Unlock()
	l.last.err = err
	l.last.failures++
	l.last.pause = min(max(2*l.last.pause, firstPause), mostPause)
	l.last.retry = time.Now().Add(l.last.pause)
	return err
}

// allNamed returns all values.
func (l *Local) allNamed() []named {
	values := make([]named, 0, l.len())
	l.names.all(func(v *value) { values = append(values, named{v, v.name, v.expires.Load()}) })
	return values
}

// snapshot writes the values to a file and renames it into place.
func (l *Local) snapshot(start, nextID uint64, values []named) error {
	began := time.Now()
	if err := l.hasRoom(); err != nil {
		return err
	}
	head := fileHead{start: start, salt: newSalt(), store: l.id}
	w := &snapshotWriter{local: l, seed: seed(head.salt), next: 1, bytes: headBytes}
	err := put(l.config.disk, snapshotName(start), func(file diskFile) error {
		w.file = file
		w.err = writeAll(file, head.encode(fileMagicSnap))
		w.head(nextID, len(values))
		for _, v := range values {
			w.value(v)
		}
		w.end()
		if w.err == nil && l.log != nil {
			w.err = l.log.reachAll()
		}
		return w.err
	})
	if err != nil {
		return err
	}
	l.last.Lock()
	l.last.at, l.last.took, l.last.bytes = time.Now(), time.Since(began), w.bytes
	l.last.known, l.last.err = l.last.at, nil
	l.last.count++
	l.last.Unlock()
	return nil
}

// hasRoom refuses a snapshot that cannot fit: it would take the last bytes of the disk
// from the log, and a failure of the log stops the store.
func (l *Local) hasRoom() error {
	d, ok := l.config.disk.(interface{ room() (uint64, bool) })
	if !ok {
		return nil
	}
	free, ok := d.room()
	if need := l.used.Load(); ok && free < need {
		return fmt.Errorf("%w: the filters take %d bytes, but only %d bytes are free on the disk: free some space", errNotWritten, need, free)
	}
	return nil
}

// removeOld removes the files from before the snapshot start, which is on disk, and files
// that were never finished.
func (l *Local) removeOld(start uint64) error {
	d := l.config.disk
	files, err := d.List()
	if err != nil {
		return err
	}
	for _, name := range files {
		var old bool
		for _, prefix := range []string{snapPrefix, segmentPrefix} {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				of := starts([]string{strings.TrimSuffix(name, tempSuffix)}, prefix)
				old = len(of) == 1 && (of[0] < start || strings.HasSuffix(rest, tempSuffix))
			}
		}
		if old {
			if err := d.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// snapshotWriter writes records, and keeps the first error.
type snapshotWriter struct {
	local  *Local
	file   diskFile
	seed   uint32 // of its checksums
	next   uint64 // number of the next record
	values uint64 // written so far
	buffer []byte
	bytes  uint64
	synced uint64 // bytes synced so far
	err    error
}

const (
	contentBytes = 1 << 20  // of a value, in one record
	syncBytes    = 16 << 20 // written between two syncs
)

// record appends a record with these fields to the buffer, and flushes that when it is
// large.
func (w *snapshotWriter) record(kind byte, fields func(b []byte) []byte) {
	if w.err != nil {
		return
	}
	from := len(w.buffer)
	b := append(w.buffer, make([]byte, frameBytes)...)
	b = append(order.AppendUint64(b, w.next), kind)
	w.next++
	b = fields(b)
	order.PutUint32(b[from:], uint32(len(b)-from-frameBytes))
	order.PutUint32(b[from+4:], sum(w.seed, b[from+frameBytes:]))
	if w.buffer = b; len(b) >= contentBytes {
		w.flush()
	}
}

// flush writes the buffer, and syncs the file each syncBytes.
func (w *snapshotWriter) flush() {
	if w.err == nil {
		w.err = writeAll(w.file, w.buffer)
	}
	w.bytes += uint64(len(w.buffer))
	w.buffer = w.buffer[:0]
	// Otherwise the system would have gigabytes to write when a commit syncs the log.
	if w.bytes >= w.synced+syncBytes && w.err == nil {
		w.synced = w.bytes
		w.err = w.file.Sync()
	}
}

func (w *snapshotWriter) head(nextID uint64, values int) {
	l := w.local
	w.record(recordHead, func(b []byte) []byte {
		b = append(b, 0) // flags
		b = order.AppendUint64(b, nextID)
		b = order.AppendUint64(b, uint64(values))
		b = order.AppendUint64(b, fingerprint(l.secret))
		return order.AppendUint64(b, uint64(l.windowNow().UnixNano())) // as in the log after it
	})
}

func (w *snapshotWriter) end() {
	w.record(recordEnd, func(b []byte) []byte { return order.AppendUint64(b, w.values) })
	w.flush()
}

// value writes a value: its name, its header and its bits.
func (w *snapshotWriter) value(v named) {
	state, kind := v.state(), v.kind()
	if state.dropped {
		kind = String
	}
	w.values++
	w.record(recordValue, func(b []byte) []byte {
		b = order.AppendUint64(b, v.id)
		b = order.AppendUint64(b, state.lsn)
		b = append(b, byte(kind), byte(v.level))
		b = order.AppendUint64(b, uint64(v.expires))
		b = appendName(b, v.name)
		return append(b, state.header...)
	})
	content := &contentWriter{w: w, id: v.id}
	if state.writeBits != nil {
		if err := state.writeBits(content); w.err == nil {
			w.err = err
		}
	}
	w.local.unpin(state.bits)
	content.done()
}

// valueState is the state of a value at one LSN: the header that its dump would have,
// and its bits.
type valueState struct {
	lsn       uint64
	header    []byte
	bits      io.Closer // pinned
	writeBits func(to io.Writer) error

	// dropped: its bits are gone, and a log record before lsn removed its name. It is
	// written as a plain value without bytes, as earlier records since the snapshot
	// began may rename it.
	dropped bool
}

// state returns the value's state. It holds the gate and adding, so that nobody adds or
// replaces bits, and counts and LSN agree. The bits are copied later, while keys are
// added.
func (v *value) state() (s valueState) {
	l, gate := v.local, v.gate()
	gate.RLock()
	defer gate.RUnlock()
	l.adding.Lock()
	defer l.adding.Unlock()
	if l.log != nil {
		l.log.Lock()
		s.lsn = l.log.next
		l.log.Unlock()
	}
	if s.dropped = v.isDropped(); s.dropped {
		return s
	}
	s.bits = v.body.bits()
	l.pins.pin(s.bits)
	switch b := v.body.(type) {
	case text:
		s.writeBits = func(to io.Writer) error { _, err := to.Write(b); return err }
	case chain:
		s.header = b.Header()
		s.writeBits = func(to io.Writer) error { return b.writeBits(to, s.header) }
	case *nest:
		s.header = b.Header()
		sizes := b.layerSizes()
		s.writeBits = func(to io.Writer) error { return b.writeSlots(v, to, sizes) }
	case *paired:
		bits, size := b.now(), uint64(0)
		s.writeBits = func(to io.Writer) error { _, err := bits.WriteTo(to); return err }
		if b.spec.Kind == Counting {
			s.writeBits = func(to io.Writer) error { return b.writeImage(v, bits, to) }
		}
		if in := b.incoming; in != nil {
			size = in.size
			pieces := slices.Clone(in.pieces)
			s.writeBits = func(to io.Writer) (err error) {
				for _, piece := range pieces {
					if _, err = to.Write(piece); err != nil {
						break
					}
				}
				return err
			}
		}
		s.header = b.header(b.items.Load(), size)
	}
	return s
}

// writeBits writes the bits of the layers that the header describes.
func (c chain) writeBits(to io.Writer, header []byte) error {
	size := int64(redisbloom.LayerBytes(header))
	buffer := make([]uint64, min(size/8+2, contentBytes/8))
	for at := int64(0); at < size; {
		next, piece := c.ScanPiece(at+1, buffer)
		if _, err := to.Write(piece); err != nil {
			return err
		}
		at = next - 1
	}
	return nil
}

// contentWriter turns what is written to it into records.
type contentWriter struct {
	w  *snapshotWriter
	id uint64
	at uint64 // bytes so far
}

func (c *contentWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && c.w.err == nil; {
		n := min(len(rest), contentBytes)
		c.w.record(recordContent, func(b []byte) []byte {
			b = order.AppendUint64(b, c.id)
			b = order.AppendUint64(b, c.at)
			return append(b, rest[:n]...)
		})
		c.at += uint64(n)
		rest = rest[n:]
		runtime.Gosched() // serving clients comes first
	}
	return len(p), c.w.err
}

// done ends the value: an empty record has the total size.
func (c *contentWriter) done() {
	c.w.record(recordContent, func(b []byte) []byte {
		return order.AppendUint64(order.AppendUint64(b, c.id), c.at)
	})
}
