package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// A backup is a directory with copies of a snapshot, the log that follows it and the
// secrets, and a manifest that names them. Files are added under the names they have
// in the store, and when all are there the manifest is replaced; only then are the
// files removed that it no longer names. So the directory holds one complete backup at
// every moment: the older or the newer. OpenLocal reads what the manifest names, and
// turns the directory into a store's.
//
// The server is not involved. Snapshots never change, nor do segments that another one
// follows; the last segment is only appended to, and everything acknowledged has been
// written to it; a removed file stays readable for a process that has it open. So it is
// enough to open all files that belong together before the first is copied.

// BackupReport describes what a backup did.
type BackupReport struct {
	Snapshot    string // the file it begins with
	Records     uint64 // of the log after it
	Copied      int    // files copied, and their bytes
	CopiedBytes uint64
	Kept        int // files that were already there
	KeptBytes   uint64
	Took        time.Duration
}

// errChanged: the set of files is no longer as it was when it was listed.
var errChanged = errors.New("the files change too quickly")

// Backup copies everything that the store in the directory from has on disk to the
// directory to, which it creates if necessary. A server may be using the store and is
// not disturbed. The backup has everything that was acknowledged before Backup was
// called; filters at the level [Unlogged] are as in the newest snapshot.
//
// If to holds an older backup of the same store, only files that are new or have grown
// are copied. Once the first backup is finished, the directory is a complete backup at
// every moment, even if the process or the machine crashes. Every record is checked
// while it is copied, and every file of the backup is read back. The error wraps
// [ErrDamaged] if a file is not as it was written, and bloom.ErrLocked if another
// process has locked to.
func Backup(from, to string) (BackupReport, error) {
	began := time.Now()
	target, err := openDirectory(to)
	if err != nil {
		return BackupReport{}, err
	}
	report, err := backup(directory(from), target)
	report.Took = time.Since(began)
	if err != nil {
		return report, fmt.Errorf("store: backup: %w", err)
	}
	return report, nil
}

func backup(from, to disk) (report BackupReport, err error) {
	unlock, err := to.Lock()
	if err != nil {
		return report, fmt.Errorf("%w: another backup, or a server, is using it", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	old, err := readManifest(to)
	if err != nil {
		return report, err
	}
	source, err := openSource(from)
	if err != nil {
		return report, err
	}
	defer source.close()
	if err := source.fits(old, to); err != nil {
		return report, err
	}
	if old == nil {
		if err := put(to, backupName, (&manifest{unfinished: true}).write); err != nil {
			return report, err
		}
	}
	next := &manifest{store: source.id}
	for _, f := range source.files {
		e, err := f.bring(old, to, &report)
		if err != nil {
			return report, err
		}
		next.entries = append(next.entries, e)
	}
	if err := put(to, backupName, next.write); err != nil {
		return report, err
	}
	report.Snapshot = source.files[0].name
	return report, removeOthers(to, next)
}

// removeOthers removes the files that the manifest does not name.
func removeOthers(d disk, m *manifest) error {
	names, err := d.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if isStoreFile(strings.TrimSuffix(name, tempSuffix)) && m.find(name) == nil {
			if err := d.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// isStoreFile reports whether name is that of a snapshot or segment.
func isStoreFile(name string) bool {
	return len(starts([]string{name}, snapPrefix))+len(starts([]string{name}, segmentPrefix)) == 1
}

// sourceFile is a file of the store to be copied.
type sourceFile struct {
	*recordReader // nil for the secrets
	name          string
	data          []byte // of the secrets
	last          bool   // the log's last segment: it may still be written to
}

// backupSource is a set of files that belong together, all open.
type backupSource struct {
	id    storeID
	files []*sourceFile // the snapshot, the log, the secrets
}

func (s *backupSource) close() {
	for _, f := range s.files {
		if f.recordReader != nil {
			f.recordReader.close()
		}
	}
}

// openSource opens the files of a store that may change meanwhile.
func openSource(d disk) (s *backupSource, err error) {
	const tries = 50
	for range tries {
		if s, err = tryOpenSource(d); !errors.Is(err, errChanged) {
			return s, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, fmt.Errorf("%w: try again", err)
}

func tryOpenSource(d disk) (s *backupSource, err error) {
	names, err := d.List()
	if err != nil {
		return nil, err
	}
	if slices.Contains(names, backupName) {
		return nil, errors.New("the directory to copy is a backup itself, and no server's: copy it with any program")
	}
	s = &backupSource{}
	defer func() {
		if err != nil {
			s.close()
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", errChanged, err)
		}
	}()
	if err := s.open(d, names); err != nil {
		return s, err
	}
	again, err := d.List()
	if err != nil {
		return s, err
	}
	theirs := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isStoreFile(name) })
	}
	before, after := theirs(names), theirs(again)
	slices.Sort(before)
	slices.Sort(after)
	if !slices.Equal(before, after) {
		return s, errChanged
	}
	return s, nil
}

// open opens the newest snapshot, the log after it, and the secrets.
func (s *backupSource) open(d disk, names []string) error {
	r := &recovery{local: &Local{config: LocalConfig{seams: seams{disk: d}}}}
	snapshots, segments := starts(names, snapPrefix), starts(names, segmentPrefix)
	segments, err := r.skipUnused(snapshots, segments)
	if err != nil {
		return err
	}
	if len(snapshots) == 0 {
		return fmt.Errorf("there is no store: %w: name the directory that the server has as --data", fs.ErrInvalid)
	}
	start := snapshots[len(snapshots)-1]
	in, err := openRecords(d, snapshotName(start), fileMagicSnap)
	if err != nil {
		return err
	}
	in.next = 1
	s.id = in.store
	s.files = append(s.files, &sourceFile{recordReader: in, name: in.name})
	for _, at := range segments {
		if at < start {
			continue
		}
		if in, err = openRecords(d, segmentName(at), fileMagicLog); err != nil {
			return err
		}
		in.next = at
		s.files = append(s.files, &sourceFile{recordReader: in, name: in.name})
		if in.store != s.id || in.start != at {
			return fmt.Errorf("%w: %s is of another directory", ErrDamaged, in.name)
		}
	}
	if len(s.files) == 1 {
		return fmt.Errorf("%w: %s has no log", errChanged, in.name)
	}
	s.files[len(s.files)-1].last = true
	if _, err := openSecret(d, false); err != nil {
		return err
	}
	file, err := d.Open(secretsName)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, 4096))
	s.files = append(s.files, &sourceFile{name: secretsName, data: data})
	return err
}

// fits checks that these files can be added to the directory without harm to the backup
// already there.
func (s *backupSource) fits(old *manifest, to disk) error {
	if old == nil || old.unfinished {
		return nil
	}
	if old.store != s.id {
		return errors.New("the directory holds a backup of another store: use a separate directory for this one")
	}
	for _, f := range s.files {
		if f.recordReader == nil || !f.isLog() {
			continue
		}
		had := old.find(f.name)
		if had == nil || had.size <= headBytes { // a start replaces a segment that is empty
			continue
		}
		if same, err := f.sameHead(to); err != nil {
			return err
		} else if !same { // or damaged
			return fmt.Errorf("%s differs from the backup's file of that name: the store was restored from a backup since, or the backup is damaged: use a new directory for the backup", f.name)
		}
	}
	return nil
}

// sameHead reports whether the file of that name on d begins as this one does. Heads of
// different files differ in their salt.
func (f *sourceFile) sameHead(d disk) (bool, error) {
	theirs, err := d.Open(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer theirs.Close()
	a, b := make([]byte, f.fileHead.bytes()), make([]byte, f.fileHead.bytes())
	if _, err := f.file.ReadAt(a, 0); err != nil && err != io.EOF {
		return false, err
	}
	if _, err := theirs.ReadAt(b, 0); err != nil && err != io.EOF {
		return false, err
	}
	return bytes.Equal(a, b), nil
}

// bring copies the file unless the backup already has it, and reads it back.
func (f *sourceFile) bring(old *manifest, to disk, report *BackupReport) (e entry, err error) {
	if had := old.find(f.name); had != nil {
		if same, err := f.isKept(had, to); err != nil {
			return e, err
		} else if same {
			report.Kept++
			report.KeptBytes += had.size
			return *had, nil
		}
	}
	out := &summed{}
	err = put(to, f.name, func(file diskFile) error {
		out.to = file
		if f.recordReader == nil {
			return writeAll(out, f.data)
		}
		n, err := f.copyTo(out)
		if f.isLog() {
			report.Records += n
		}
		return err
	})
	if err != nil {
		return e, err
	}
	e = entry{f.name, out.size, out.sum}
	report.Copied++
	report.CopiedBytes += e.size
	if same, err := e.isAsWritten(to); err != nil {
		return e, err
	} else if !same {
		return e, fmt.Errorf("%w: %s of the backup reads back differently: check its disk", ErrDamaged, e.name)
	}
	return e, nil
}

// isKept reports whether the backup already has the complete file.
func (f *sourceFile) isKept(had *entry, to disk) (bool, error) {
	if f.recordReader == nil {
		if had.sum != sum(0, f.data) {
			return false, nil
		}
	} else if had.size != uint64(f.size) {
		return false, nil
	} else if same, err := f.sameHead(to); err != nil || !same {
		return false, err
	}
	return had.isAsWritten(to)
}

// copyTo copies the head and all records, and checks each record.
func (f *sourceFile) copyTo(to io.Writer) (records uint64, err error) {
	in := f.recordReader
	data := make([]byte, in.fileHead.bytes())
	if _, err := in.file.ReadAt(data, 0); err != nil && err != io.EOF {
		return 0, err
	}
	kind := byte(0)
	for err == nil && !(f.last && in.at >= uint64(in.size)) { // stop at the size seen: a fast writer could keep us here forever
		var k byte
		if k, _, err = in.read(); err == nil {
			kind = k
			records++
			data = order.AppendUint32(data, uint32(len(in.record)))
			data = order.AppendUint32(data, sum(in.seed, in.record))
			data = append(data, in.record...)
		}
		if len(data) >= contentBytes {
			if err := writeAll(to, data); err != nil {
				return records, err
			}
			data = data[:0]
		}
	}
	if err := writeAll(to, data); err != nil {
		return records, err
	}
	switch {
	case err == nil: // end of the last segment
		return records, nil
	case errors.Is(err, errTorn) && f.last: // still being written
		c, err := in.search(in.at, in.next)
		if err == nil && c.at >= 0 {
			err = in.failed(nil, "the record is damaged, and others follow")
		}
		return records, err
	case err != io.EOF:
		return records, in.failed(err, "")
	case !f.isLog() && kind != recordEnd:
		return records, in.failed(nil, "the snapshot has no end")
	}
	return records, nil
}

// summed counts the bytes written and computes their checksum.
type summed struct {
	to   io.Writer
	size uint64
	sum  uint32
}

func (s *summed) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	s.size += uint64(n)
	s.sum = sum(s.sum, b[:n])
	return n, err
}

// isAsWritten reads a file back and compares it.
func (e *entry) isAsWritten(d disk) (bool, error) {
	file, err := d.Open(e.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	hash := crc32.New(castagnoli)
	n, err := io.Copy(hash, file)
	return hash.Sum32() == e.sum && uint64(n) == e.size, err
}
