package bloom

import (
	"fmt"
	"io"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
)

// Save writes the filter to a file at path, replacing one that is there. The new
// file is written next to it, synced to disk and then renamed, so whatever happens
// path holds either the whole old file or the whole new one. The new file has the
// permissions of the one it replaces, or those of any new file. A symbolic link
// at path is replaced, not followed; anything else that is not a file, such as a
// directory or a device, is left alone and an error.
func (f *Filter) Save(path string) error { return filterfile.Save(path, f.WriteTo) }

// Load reads the file at path into memory and verifies all of it, as [Read]
// does. Bytes after the filter's end are an error. It takes as much memory as the
// file is long, and a sparse file can be long and take no room on the disk: read a
// file from strangers by [os.Open] and Read, which has a limit. When to close it:
// [Filter.Close].
func Load(path string) (*Filter, error) {
	return load(path, filterFrom)
}

// load reads the file at path and makes a filter of it.
func load[F any](path string, from func(*filterfile.File) (F, error)) (made F, err error) {
	s, err := filterfile.Load(path)
	if err != nil {
		return made, err
	}
	f, err := from(s)
	if err != nil {
		s.Close()
		return made, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Open maps the file at path read-only: it is ready in microseconds whatever
// its size, and its pages are read when lookups need them. The header, the
// state and all lengths are checked at once, the bits only by [Filter.Verify].
// Changing an opened filter panics; [Filter.Clone] makes a writable copy. Close
// it when done.
//
// The error wraps [ErrFormat], [ErrVersion] or [ErrChecksum], or [ErrBudget] if the
// machine has no addresses for the whole file, as one of 32 bits from 2 GiB on.
//
// The file must not be truncated by others while it is open, and its disk must
// be readable: as with every mapped file, a page that cannot be read kills the
// process. Save and all Bloomery commands replace files by rename, which is safe.
//
// The file may be open for update, or its writer may have been killed; Verify
// says so. Bits are only ever set, so all keys added before are found, and each key
// that a writer adds meanwhile as soon as its add returns.
func Open(path string) (*Filter, error) {
	f, err := openMapped(path, filterFrom)
	if err == nil {
		f.readOnly = true
	}
	return f, err
}

// OpenScalable maps the file at path, which holds a Scalable, read-only: all that
// [Open] says of a Filter holds for it as well. Adding to it, Clear and Saturate
// panic.
//
// While another process writes, it finds the keys in the layers that existed when it
// was opened. To find those in a newer layer, open the file again.
func OpenScalable(path string) (*Scalable, error) {
	f, err := openMapped(path, scalableFrom)
	if err == nil {
		f.readOnly = true
	}
	return f, err
}

// openMapped maps the file at path and makes a filter of it.
func openMapped[F any](path string, from func(*filterfile.File) (*F, error)) (*F, error) {
	s, err := filterfile.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := from(s)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// read reads a file of limited length and makes a filter of it.
func read[F any](r io.Reader, limitBytes int64, from func(*filterfile.File) (F, error)) (made F, err error) {
	s, err := filterfile.Read(r, limitBytes)
	if err != nil {
		return made, err
	}
	f, err := from(s)
	if err != nil {
		s.Close()
	}
	return f, err
}

// pairedPlan is the plan of a filter that a section of paired lines holds.
func pairedPlan(keys uint64, rate float64, e *filterfile.Section) Plan {
	return Plan{Keys: keys, Rate: rate, Bits: e.Blocks * kernel.BlockBits, Probes: int(e.Probes), Blocks: e.Blocks, Layout: PairedLines}
}

// Verify checks the bits of a filter from [Open] or [OpenUpdate] against the
// checksums in its file. They are those of the last [Filter.Sync]: while the
// file holds later adds, the error wraps [ErrUnclean]. A filter that was loaded was
// verified then, and one that was made in memory has nothing to verify: both return
// nil.
func (f *Filter) Verify() error {
	f.mustBeOpen()
	if !f.readOnly {
		return nil
	}
	defer f.keepAlive()
	return filterfile.Verify(f.memory.Bytes())
}

// Verify checks the bits of a filter from [OpenScalable] or [OpenUpdateScalable]
// against the checksums in its file; see [Filter.Verify]. Adds wait meanwhile.
func (f *Scalable) Verify() error {
	l := f.lockedLayers()
	defer l.unlock()
	switch {
	case f.update != nil:
		return f.update.Verify()
	case f.readOnly:
		return filterfile.Verify(l.filters[0].memory.Bytes())
	}
	return nil
}
