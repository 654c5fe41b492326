package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/bloomery/bloom"
)

// backupName is the file that makes a directory a backup.
const backupName = "backup"

// manifest is the contents of that file, a line each:
//
//	bloomery backup 1
//	store 8f5e7f3375446b8aa74ea468b8add8c2
//	snapshot-0000000000000c4e 84264 5cc49f55
//	log-0000000000000c4e 4096 2d068005
//	secrets 45 4dc5b0cc
//	checksum 726fdb47
//
// Each file has its size and CRC-32C; the last line is the CRC-32C of the lines before.
// A backup that was begun and never finished has a line that says so instead.
type manifest struct {
	unfinished bool
	store      storeID
	entries    []entry
}

type entry struct {
	name string
	size uint64
	sum  uint32
}

const (
	manifestFirst = "bloomery backup "
	manifestOne   = manifestFirst + "1\n"
	manifestBytes = 1 << 20 // at most
)

// find returns the entry for a name, or nil.
func (m *manifest) find(name string) *entry {
	if m == nil {
		return nil
	}
	for i := range m.entries {
		if m.entries[i].name == name {
			return &m.entries[i]
		}
	}
	return nil
}

func (m *manifest) write(file diskFile) error {
	var b []byte
	b = append(b, manifestOne...)
	if m.unfinished {
		b = append(b, "unfinished\n"...)
	} else {
		b = fmt.Appendf(b, "store %x\n", m.store)
	}
	for _, e := range m.entries {
		b = fmt.Appendf(b, "%s %d %08x\n", e.name, e.size, e.sum)
	}
	return writeAll(file, fmt.Appendf(b, "checksum %08x\n", sum(0, b)))
}

// readManifest reads the manifest of a backup, nil if the directory is empty. It is an
// error if the directory is something else.
func readManifest(d disk) (*manifest, error) {
	names, err := d.List()
	if err != nil {
		return nil, err
	}
	m, err := manifestOf(d)
	if m != nil || err != nil {
		return m, err
	}
	for _, name := range names {
		if name != lockName && name != backupName+tempSuffix {
			return nil, fmt.Errorf("the directory to copy to has the file %q, and is no backup: give the backup a directory of its own", name)
		}
	}
	return nil, nil
}

// manifestOf reads the manifest, if there is one.
func manifestOf(d disk) (*manifest, error) {
	file, err := d.Open(backupName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, manifestBytes))
	if err != nil {
		return nil, err
	}
	return parseManifest(string(text))
}

func parseManifest(text string) (*manifest, error) {
	damaged := fmt.Errorf("%w: %s, the manifest of the backup: use another backup", ErrDamaged, backupName)
	at := strings.LastIndex(text, "checksum ")
	var want uint32
	if n, err := fmt.Sscanf(text[max(at, 0):], "checksum %08x\n", &want); at < 0 || n != 1 || err != nil || sum(0, []byte(text[:at])) != want {
		return nil, damaged
	}
	if !strings.HasPrefix(text, manifestFirst) {
		return nil, damaged
	}
	if !strings.HasPrefix(text, manifestOne) {
		return nil, fmt.Errorf("%s: %w: this backup was written by a later release: use that release", backupName, bloom.ErrVersion)
	}
	m := &manifest{}
	for line := range strings.Lines(text[len(manifestOne):at]) {
		var e entry
		var id []byte
		if line == "unfinished\n" {
			m.unfinished = true
		} else if n, _ := fmt.Sscanf(line, "store %x\n", &id); n == 1 && len(id) == len(m.store) {
			copy(m.store[:], id)
		} else if n, _ := fmt.Sscanf(line, "%s %d %08x\n", &e.name, &e.size, &e.sum); n == 3 {
			m.entries = append(m.entries, e)
		} else {
			return nil, damaged
		}
	}
	return m, nil
}

// fromBackup restricts a recovery to the files that the manifest names, if there is
// one.
func (r *recovery) fromBackup() error {
	d := r.local.config.disk
	m, err := manifestOf(d)
	if m == nil || err != nil {
		return err
	}
	if m.unfinished {
		return fmt.Errorf("this backup was never finished: run bloomery backup again, or use another backup")
	}
	r.backup = true
	var named []string
	for _, name := range r.files {
		e := m.find(name)
		if e == nil {
			if isStoreFile(name) {
				r.strays = append(r.strays, name)
			}
			continue
		}
		named = append(named, name)
	}
	for _, e := range m.entries {
		if err := e.isThere(d); err != nil && r.salvage == nil {
			return err
		} else if err != nil {
			r.salvage.lostRecords("%v", err)
		}
	}
	r.files = named
	return nil
}

// isThere checks that a file exists and, for a segment of the log, that it is not
// shorter than the manifest says: a later backup that was not finished may have made it
// longer.
func (e entry) isThere(d disk) error {
	file, err := d.Open(e.name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s, which is part of the backup, is not there: use another backup", ErrDamaged, e.name)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil && strings.HasPrefix(e.name, segmentPrefix) && uint64(size) < e.size {
		err = fmt.Errorf("%w: %s has %d bytes instead of %d: use another backup", ErrDamaged, e.name, size, e.size)
	}
	return err
}

// adoptBackup turns a backup into a store's directory: it removes files that are not part
// of the backup, and then the manifest.
func (r *recovery) adoptBackup() error {
	d := r.local.config.disk
	if !r.backup {
		return nil
	}
	for _, name := range r.strays {
		if err := d.Remove(name); err != nil {
			return err
		}
	}
	if err := d.SyncDir(); err != nil {
		return err
	}
	if err := d.Remove(backupName); err != nil {
		return err
	}
	r.backup, r.strays = false, nil
	return d.SyncDir()
}
