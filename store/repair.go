package store

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/bloomery/bloom"
)

// Verify reads all files of a store's directory as OpenLocal would, and changes
// nothing. No server may be using the directory. Verify needs as much memory as the
// store. The error is as OpenLocal's.
func Verify(dir string) (Recovery, error) {
	r, unlock, err := inspect(LocalConfig{Dir: dir}, nil)
	if err != nil {
		return Recovery{}, err
	}
	return r.found, unlock()
}

// inspect reads a directory without changing it, and keeps it locked until the function
// that it returns is called.
func inspect(config LocalConfig, s *salvage) (*recovery, func() error, error) {
	config, err := config.filled()
	if err != nil {
		return nil, nil, err
	}
	config.checkOnly = true
	if config.disk == nil {
		config.disk = directory(config.Dir)
	}
	unlock, err := config.disk.Lock()
	if err != nil {
		return nil, nil, fmt.Errorf("store: %w: stop the server first", err)
	}
	r := &recovery{local: newLocal(config), salvage: s}
	if err := r.run(); err != nil {
		unlock()
		return nil, nil, fmt.Errorf("store: verifying: %w", err)
	}
	return r, unlock, nil
}

// Repair makes a damaged directory usable again. A filter that has lost some of its
// bits, or of its adds in the log, then answers "perhaps" to every key, as nothing else
// is certain; it should be built again. Repair first passes agree the list of what
// becomes unknown. If agree returns false, nothing is changed, and Repair returns
// [ErrDamaged]. Otherwise a new snapshot is written, and the original files are renamed to
// names that begin with "damaged-". If nothing becomes unknown, agree is not called, and
// the new snapshot replaces the original files.
func Repair(dir string, agree func(unknown []string) bool) error {
	return repair(LocalConfig{Dir: dir}, agree)
}

func repair(config LocalConfig, agree func(unknown []string) bool) (err error) {
	m := &salvage{lost: map[uint64]*recovered{}}
	r, unlock, err := inspect(config, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	m.lostAdds(r)
	if len(m.unknown) > 0 && !agree(m.unknown) {
		return fmt.Errorf("%w: nothing was changed", ErrDamaged)
	}
	m.saturate(r)
	l, d := r.local, r.local.config.disk
	if _, err := l.writeBase(max(r.next, r.newest)+1, false); err != nil {
		return fmt.Errorf("store: repairing: %w", err)
	}
	if err := r.adoptBackup(); err != nil {
		return fmt.Errorf("store: repairing: %w", err)
	}
	for _, name := range r.files {
		if len(starts([]string{name}, snapPrefix))+len(starts([]string{name}, segmentPrefix)) == 0 {
			continue
		}
		to := name
		if len(m.unknown) > 0 {
			to = asidePrefix + name
		}
		if to == name {
			err = d.Remove(name)
		} else {
			err = d.Rename(name, to)
		}
		if err != nil {
			return fmt.Errorf("store: repairing: %w", err)
		}
	}
	return d.SyncDir()
}

// salvage continues after damage, and notes what is lost.
type salvage struct {
	unknown []string
	adds    bool                  // some of the log's adds are lost
	lost    map[uint64]*recovered // values with bits missing
}

// errNoMore: there are no more records after the damage.
var errNoMore = errors.New("no more records")

func (m *salvage) note(format string, args ...any) {
	m.unknown = append(m.unknown, fmt.Sprintf(format, args...))
}

// lostBits notes that a value has lost bits. A filter in our own layout, which may have
// none at all, gets empty ones, which saturate fills.
func (m *salvage) lostBits(v *recovered, why string) {
	if v == nil || m.lost[v.id] != nil {
		return
	}
	m.lost[v.id] = v
	m.note("value %q has lost bits, and is dropped if it is no filter, or a cuckoo filter: %s", v.name, why)
	v.content.drop()
	v.content = nil
	b, ok := v.body.(*paired)
	if !ok {
		return
	}
	fresh, err := v.local.newPaired(b.spec)
	if err != nil {
		m.note("value %q is lost altogether: %v", v.name, err)
		v.body = text{} // which saturate drops
		return
	}
	b.incoming = nil
	b.replace(fresh.(*paired).now(), b.items.Load(), fresh.(*paired).charged.Load())
}

// lostRecords notes that records of the log are lost.
func (m *salvage) lostRecords(format string, args ...any) {
	m.note(format, args...)
	m.adds = true
}

// skip continues with the next whole record, if there is one.
func (m *salvage) skip(r *recovery, in *recordReader, _ error, current *recovered) error {
	at, from := in.at, in.next
	found, err := in.resync()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s, byte %d: damaged", in.name, at)
	if current != nil && current.content != nil {
		m.lostBits(current, what)
	}
	switch {
	case in.isLog() && found && in.next == from:
		m.note("%s: the file's head is damaged, and all of its records are there", in.name)
	case in.isLog() && !found:
		m.lostRecords("%s: records %d and all later ones of the file are lost: what was made, renamed or dropped in them is not", what, from)
	case in.isLog():
		m.lostRecords("%s: records %d to %d of the log are lost: what was made, renamed or dropped in them is not", what, from, in.next-1)
	case !found:
		m.note("%s: the values from there on are lost", what)
	case in.next > from:
		m.note("%s: %d records are lost, and with them the values that began in them", what, in.next-from)
	}
	if !found {
		return errNoMore
	}
	return nil
}

// withoutHead opens a snapshot whose file begins with damage. Its records are recognized
// by their numbers and by the records that follow them, and values have headers of their
// own.
func (m *salvage) withoutHead(r *recovery, name string, why error) (*recordReader, error) {
	if !errors.Is(why, ErrDamaged) {
		return nil, why
	}
	m.note("%s: its head is damaged: whether %q is the right file can no longer be told", name, secretsName)
	r.headless()
	return openAnyRecords(r.local.config.disk, name)
}

// withoutSnapshot begins with the log alone in a repair. Otherwise it returns an error.
func (r *recovery) withoutSnapshot() error {
	name, segment := snapshotName(r.start), segmentName(r.start)
	if r.salvage == nil {
		return fmt.Errorf("%w: there is a log, %s, but no snapshot: restore the directory from a backup, or repair it, which first shows what becomes unknown", ErrDamaged, segment)
	}
	in, err := openRecords(r.local.config.disk, segment, fileMagicLog)
	if err == nil {
		defer in.close()
	}
	if err == nil && in.flags&segmentFirst != 0 {
		r.salvage.note("%s is not there, which was empty: all values are in the log", name)
	} else {
		r.salvage.note("%s is not there: all values that were in it are lost, and those that were made since are not", name)
	}
	r.headless()
	return nil
}

// headless continues without the head record of a snapshot.
func (r *recovery) headless() {
	r.taken = r.local.now()
	r.local.replay.Store(r.taken.UnixNano())
}

// lostAdds notes all filters that may have had adds in the lost records of the log.
func (m *salvage) lostAdds(r *recovery) {
	if !m.adds {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(r.values)) {
		if v := r.values[id]; v.kind() != String && v.level != Unlogged && m.lost[id] == nil {
			m.lost[id] = v
			m.note("value %q may have lost adds%s", v.name, map[bool]string{true: ", and a cuckoo filter that lacks some is of no use: it is dropped"}[v.kind() == Cuckoo])
		}
	}
}

// saturate makes damaged filters answer "perhaps" to every key, and drops damaged cuckoo
// filters and plain values.
func (m *salvage) saturate(r *recovery) {
	for _, v := range m.lost {
		switch b := v.body.(type) {
		case chain:
			b.saturate()
		case *paired:
			b.incoming = nil
			bloom.Inside.Saturate(b.now())
		case text, *nest: // a cuckoo filter cannot have all fingerprints
			r.local.drop(v.value)
		}
	}
}

// saturate sets all bits.
func (c chain) saturate() {
	for at := int64(1); ; {
		next, piece := c.ScanDump(at)
		if next == 0 {
			return
		}
		for i := range piece {
			piece[i] = 0xff
		}
		c.LoadChunk(next, piece)
		at = next
	}
}

// ended reports whether err is how reading ends: at the end of the file, or in a repair
// where no more records can be found.
func ended(err error) bool { return err == io.EOF || errors.Is(err, errNoMore) }
