package store

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
)

// flaw is a broken rule of the log, or of snapshots, that the tests must notice. The
// store's code has none of them. Most are in the disk, which reorders the store's calls,
// or returns what is not true; the others change the store's state at a seam.
type flaw uint8

const (
	flawNone             flaw = iota
	flawSnapshotUnsynced      // a snapshot is renamed before it is synced
	flawLogRemovedEarly       // segments are removed before the snapshot is in place
	flawNoDirSync             // the directory is never synced
	flawAnswerEarly           // commit returns before the sync
	flawSyncAgain             // a sync that failed is tried again, and believed
	flawSameSegment           // a store that starts continues in the segment that it read
	flawUnchangedEarly        // commit returns at once if the caller's adds changed nothing
	flawDamageIsEnd           // a damaged record ends the log, wherever it is
	flawLogKept               // a store that starts does not write the last segment again
	flawSnapshotAhead         // a snapshot is renamed before the log that it has seen is written
	flawNumbersAgain          // as flawSnapshotAhead, and a store that starts reuses the LSNs
	flawMergeLogsNew          // while a merge runs, only new keys are logged
	flawMergeLeaks            // a merge that fails leaves bits, and only new keys are logged
	flawDroppedLeftOut        // a snapshot omits a value that is dropped while it is taken
	flawRemovedFirst          // a removal is logged before the add that it follows
	flawCount
)

// over returns the disk that the store sees.
func (f flaw) over(d *crashDisk) disk {
	if f == flawNone {
		return d
	}
	return &flawedDisk{crashDisk: d, flaw: f}
}

// commit is Local.Commit, as the flaw has it.
func (f flaw) commit(p *harness) error {
	if f == flawUnchangedEarly && p.unchanged {
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	return p.store.Commit(bg)
}

// flush writes what the disk holds back of the log.
func (p *harness) flush() error {
	if d, ok := p.store.config.disk.(*flawedDisk); ok && d.log != nil {
		return d.log.flush()
	}
	return nil
}

// recovered is called between the recovery and the first write.
func (p *harness) recovered(r *recovery) {
	p.last = nil
	switch p.flaw {
	case flawNumbersAgain:
		r.seen = 0
	case flawLogKept:
		r.last = nil
	case flawSameSegment:
		p.last, r.last = r.last, nil
	}
}

// opened is called when the store is open.
func (f flaw) opened(p *harness) {
	g := p.store.log
	if p.last == nil || g.earlier == 0 || g.segment.start == p.last.start {
		return // there was no log, or a snapshot replaced it, or it was empty
	}
	// Continue in the old segment, as if the new one had never been created.
	delete(p.disk.cached, segmentName(g.segment.start))
	delete(p.disk.synced, segmentName(g.segment.start))
	file := p.disk.cached[segmentName(p.last.start)]
	g.file, g.segment = &crashHandle{p.disk, file, nil, ""}, *p.last
	g.earlier -= p.last.bytes
}

// merging is called between the pieces of a merge.
func (f flaw) merging(p *harness) {
	if f == flawMergeLogsNew {
		p.store.names.all(func(v *value) { v.busy &^= mergedInto })
	}
}

// merged is called after a merge.
func (f flaw) merged(p *harness) {
	if f == flawMergeLeaks {
		p.store.clearLeaks()
	}
}

// flawedDisk is a disk that breaks a rule.
type flawedDisk struct {
	*crashDisk
	flaw   flaw
	taking bool // a snapshot is being taken
	log    *flawedFile
}

func (d *flawedDisk) Create(name string) (diskFile, error) {
	snapshot := strings.HasPrefix(name, snapPrefix)
	if snapshot && d.flaw == flawLogRemovedEarly {
		start := starts([]string{strings.TrimSuffix(name, tempSuffix)}, snapPrefix)[0]
		files, err := d.List()
		if err != nil {
			return nil, err
		}
		for _, segment := range starts(files, segmentPrefix) {
			if segment < start {
				if err := d.Remove(segmentName(segment)); err != nil {
					return nil, err
				}
			}
		}
	}
	d.taking = snapshot
	file, err := d.crashDisk.Create(name)
	if err == nil && snapshot && d.flaw == flawSnapshotUnsynced {
		file = unsyncedFile{file}
	}
	return file, err
}

func (d *flawedDisk) Append(name string) (diskFile, error) {
	file, err := d.crashDisk.Append(name)
	if err != nil {
		return nil, err
	}
	d.log = &flawedFile{diskFile: file, disk: d}
	if head, ok, _ := parseHead(d.cached[name].cache[:headBytes], fileMagicLog); ok {
		d.log.seed = seed(head.salt)
	}
	return d.log, nil
}

// Open shows a log without records to isEnd.
func (d *flawedDisk) Open(name string) (diskSource, error) {
	if d.flaw == flawDamageIsEnd && calledBy("(*recovery).isEnd") {
		return crashSource{bytes.NewReader(d.cached[name].cache[:headBytes])}, nil
	}
	return d.crashDisk.Open(name)
}

func (d *flawedDisk) Rename(from, to string) error {
	d.taking = false
	return d.crashDisk.Rename(from, to)
}

func (d *flawedDisk) SyncDir() error {
	if d.flaw == flawNoDirSync {
		return nil
	}
	return d.crashDisk.SyncDir()
}

// calledBy reports whether a function of the store is on the stack.
func calledBy(function string) bool {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// unsyncedFile is a file whose Sync does nothing.
type unsyncedFile struct{ diskFile }

func (unsyncedFile) Sync() error { return nil }

// flawedFile is a segment of the log on a disk with a flaw.
type flawedFile struct {
	diskFile
	disk *flawedDisk
	seed uint32 // of its checksums
	held []byte // written while a snapshot was taken, and held back
	late bool   // a sync is still to come
}

// Write holds records back while a snapshot is taken, as if they were still in the
// buffer of the log.
func (f *flawedFile) Write(b []byte) (int, error) {
	if f.disk.taking && (f.disk.flaw == flawSnapshotAhead || f.disk.flaw == flawNumbersAgain) {
		f.held = append(f.held, b...)
		return len(b), nil
	}
	if err := f.flush(); err != nil {
		return 0, err
	}
	if f.disk.flaw == flawRemovedFirst {
		exchange(b, f.seed)
	}
	return f.diskFile.Write(b)
}

// exchange exchanges records that follow each other and change the same filter with
// removals. Their numbers stay in order.
func exchange(records []byte, seed uint32) {
	const typeAt, idAt = frameBytes + recordBytes - 1, frameBytes + recordBytes
	length := func(at int) int { return frameBytes + int(order.Uint32(records[at:])) }
	for at := 0; at < len(records); {
		first := records[at:][:length(at)]
		next := at + len(first)
		if next == len(records) {
			return
		}
		second := records[next:][:length(next)]
		kind := first[typeAt]
		if kind != second[typeAt] || kind != recordSlots && kind != recordCounts || order.Uint64(first[idAt:]) != order.Uint64(second[idAt:]) {
			at = next
			continue
		}
		a, b := slices.Clone(first), slices.Clone(second)
		copy(a[frameBytes:], second[frameBytes:][:8])
		copy(b[frameBytes:], first[frameBytes:][:8])
		for _, r := range [][]byte{a, b} {
			order.PutUint32(r[4:], sum(seed, r[frameBytes:]))
		}
		at += copy(records[at:], append(b, a...))
	}
}

func (f *flawedFile) Sync() error {
	switch {
	case f.disk.flaw == flawAnswerEarly:
		f.late = true
		return nil
	case len(f.held) > 0 && f.disk.taking:
		return nil
	}
	err := f.flush()
	if err == nil {
		err = f.diskFile.Sync()
	}
	if err != nil && f.disk.flaw == flawSyncAgain {
		err = f.diskFile.Sync()
	}
	return err
}

func (f *flawedFile) Close() error {
	f.flush()
	return f.diskFile.Close()
}

// flush does the writes and syncs that the file has postponed.
func (f *flawedFile) flush() error {
	if len(f.held) > 0 {
		held := f.held
		f.held = nil
		if err := writeAll(f.diskFile, held); err != nil {
			return err
		}
		return f.diskFile.Sync()
	}
	if f.late {
		f.late = false
		return f.diskFile.Sync()
	}
	return nil
}

// leaveOutDropped rewrites the newest snapshot without the values that were dropped while
// it was taken: those without bits.
func leaveOutDropped(d *crashDisk) {
	names, _ := d.List()
	snapshots := starts(names, snapPrefix)
	name := snapshotName(snapshots[len(snapshots)-1])
	in, err := openRecords(d, name, fileMagicSnap)
	if err != nil {
		panic(err)
	}
	in.next = 1
	file := &crashFile{}
	w := &snapshotWriter{file: &crashHandle{d, file, nil, ""}, seed: in.seed, next: 1}
	w.err = writeAll(w.file, in.fileHead.encode(fileMagicSnap))
	values, omit := uint64(0), false
	for {
		kind, f, err := in.read()
		if err != nil {
			break
		}
		switch kind {
		case recordValue:
			if omit = Kind(f.b[16]) == String; !omit {
				values++
			}
		case recordEnd:
			omit, f.b = false, order.AppendUint64(nil, values)
		}
		if !omit {
			w.record(kind, func(b []byte) []byte { return append(b, f.b...) })
		}
	}
	w.flush()
	if w.err == nil {
		w.err = w.file.Sync()
	}
	if w.err != nil {
		panic(w.err)
	}
	d.cached[name], d.synced[name] = file, file
}
