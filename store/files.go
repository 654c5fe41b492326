package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomery/bloom/internal/replace"
)

// ErrDamaged: a file of the store is not as it was written. The message names the
// file, the byte and the remedy.
var ErrDamaged = errors.New("store: damaged")

// The files of a store. A snapshot and the segments of a log have the LSN in their
// names that they begin with, in 16 hexadecimal digits: of the snapshot, that of
// the first record which it may not contain.
const (
	lockName      = "lock"
	secretsName   = "secrets"
	snapPrefix    = "snapshot-"
	segmentPrefix = "log-"
	tempSuffix    = ".new" // a file that is being written
	asidePrefix   = "damaged-"
)

func snapshotName(start uint64) string { return fmt.Sprintf("%s%016x", snapPrefix, start) }
func segmentName(start uint64) string  { return fmt.Sprintf("%s%016x", segmentPrefix, start) }

// starts are the LSNs of the files with a prefix, in ascending order.
func starts(names []string, prefix string) (found []uint64) {
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, prefix)
		if start, err := strconv.ParseUint(digits, 16, 64); ok && err == nil && len(digits) == 16 {
			found = append(found, start)
		}
	}
	slices.Sort(found)
	return found
}

// What a failed put has left.
var (
	// errNotWritten: nothing has changed. The old file still has the name.
	errNotWritten = errors.New("the file was not written")

	// errUnnamed: the file is complete, but it is unknown whether it has its name.
	errUnnamed = errors.New("the file was not renamed")

	// errUnsynced: it has its name, but it is unknown whether the name is on the disk.
	errUnsynced = errors.New("the directory was not synced")
)

var stages = map[replace.Stage]error{
	replace.Unwritten: errNotWritten,
	replace.Unnamed:   errUnnamed,
	replace.Unsynced:  errUnsynced,
}

// put writes a temporary file, syncs it and renames it over name, so a named file
// is always complete. When put returns nil the name is on the disk, too.
func put(d disk, name string, write func(file diskFile) error) error {
	stage, err := replace.Do(diskPlace{d, name}, write)
	if err != nil {
		return fmt.Errorf("%w: %w", stages[stage], err)
	}
	return nil
}

// diskPlace is where a file of the store is to stand.
type diskPlace struct {
	disk disk
	name string
}

// Create removes the temporary file that a crash may have left.
func (p diskPlace) Create() (diskFile, error) {
	if err := p.Remove(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return p.disk.Create(p.name + tempSuffix)
}

func (p diskPlace) Rename() error  { return p.disk.Rename(p.name+tempSuffix, p.name) }
func (p diskPlace) Remove() error  { return p.disk.Remove(p.name + tempSuffix) }
func (p diskPlace) SyncDir() error { return p.disk.SyncDir() }
