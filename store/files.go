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

// The files of a store. The names of snapshots and segments contain the LSN that they
// begin with, in 16 hexadecimal digits. For a snapshot, that is the first record which
// it may not contain.
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

// starts returns the LSNs of the files with a prefix, in ascending order.
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

// The states that a failed put can leave.
var (
	// errNotWritten: nothing has changed. The name still refers to the old file.
	errNotWritten = errors.New("the file was not written")

	// errUnnamed: the new file is complete, but it is unknown whether the rename
	// happened.
	errUnnamed = errors.New("the file was not renamed")

	// errUnsynced: the file was renamed, but it is unknown whether that is on disk.
	errUnsynced = errors.New("the directory was not synced")
)

var stages = map[replace.Stage]error{
	replace.Unwritten: errNotWritten,
	replace.Unnamed:   errUnnamed,
	replace.Unsynced:  errUnsynced,
}

// put writes a temporary file, syncs it and renames it over name, so a named file is
// always complete. When put returns nil, the rename is on disk, too.
func put(d disk, name string, write func(file diskFile) error) error {
	stage, err := replace.Do(diskPlace{d, name}, write)
	if err != nil {
		return fmt.Errorf("%w: %w", stages[stage], err)
	}
	return nil
}

// diskPlace is a name on a disk, where replace.Do puts a file.
type diskPlace struct {
	disk disk
	name string
}

// Create creates the temporary file. It first removes one that a crash may have left.
func (p diskPlace) Create() (diskFile, error) {
	if err := p.Remove(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return p.disk.Create(p.name + tempSuffix)
}

func (p diskPlace) Rename() error  { return p.disk.Rename(p.name+tempSuffix, p.name) }
func (p diskPlace) Remove() error  { return p.disk.Remove(p.name + tempSuffix) }
func (p diskPlace) SyncDir() error { return p.disk.SyncDir() }
