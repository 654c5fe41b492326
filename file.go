package bloom

import (
	"fmt"
	"io"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
)

// Save writes the filter to a file at path, replacing any file there. It writes the new
// file next to it, syncs it to disk and renames it, so whatever happens path holds
// either the whole old file or the whole new one. The new file gets the permissions of
// the old one, or those of any new file. A symbolic link at path is replaced, not
// followed; anything else that is not a file, such as a directory or a device, is an
// error and stays.
func (f *Filter) Save(path string) error { return filterfile.Save(path, f.WriteTo) }

// Load reads the file at path into memory and verifies all of it, as [Read] does. Bytes
// after the filter's end are an error. It takes as much memory as the file is long, and
// a sparse file can be long without taking disk space: read files from strangers with
// [os.Open] and Read, which has a limit. [Filter.Close] says when to close the filter.
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

// Open maps the file at path read-only: it is ready in microseconds whatever its size,
// and its pages are read when lookups need them. It checks the header, the state and
// all lengths; only [Filter.Verify] checks the bits. Changing an opened filter panics;
// [Filter.Clone] makes a writable copy. Close it when done.
//
// The error wraps [ErrFormat], [ErrVersion] or [ErrChecksum], or [ErrBudget] if the
// file is larger than the machine's address space, as from 2 GiB on with 32 bits.
//
// The file must not be truncated by others while it is open, and its disk must be
// readable: as with every mapped file, a page that cannot be read kills the process.
// Save and all Bloomery commands replace files by rename, which is safe.
//
// The file may be open for update, or its writer may have been killed; Verify reports
// that. Bits are only ever set, so all keys added before are found, and each key that a
// writer adds meanwhile as soon as its add returns.
func Open(path string) (*Filter, error) {
	f, err := openMapped(path, filterFrom)
	if err == nil {
		f.readOnly = true
	}
	return f, err
}

// OpenScalable maps the file at path, which holds a Scalable, read-only; see [Open].
// Methods that change it panic. While another process writes to the file, the filter
// finds the keys in the layers that existed when it was opened. To find those in newer
// layers, open the file again.
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

// Verify checks the bits of a filter from [Open] or [OpenUpdate] against the checksums in
// its file. They are those of the last [Filter.Sync]: while the file holds later adds,
// the error wraps [ErrUnclean]. It is nil for any other filter: Load and Read have
// verified theirs, and one that was made in memory has no checksums.
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

// Every kind is an [encoding.BinaryMarshaler], [encoding.BinaryAppender] and
// [encoding.BinaryUnmarshaler], for packages such as encoding/gob and for caches. The
// bytes are those of its file. For a large filter use WriteTo, which makes no copy.

// AppendBinary appends to b the file that WriteTo would write.
func (f *Filter) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Plan().Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *Filter) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f, which may be a zero Filter, by the filter whose file data
// is; it keeps no reference to data. The error is as for [Read], and f is then
// unchanged. It panics if f is an open file, and must run alone.
func (f *Filter) UnmarshalBinary(data []byte) error {
	if f.readOnly {
		panicReadOnly()
	}
	g, err := filterfile.UnmarshalBinary(data, Read)
	if err != nil {
		return err
	}
	f.Hasher, f.bits, f.added, f.plan, f.asked, f.memory = g.Hasher, g.bits, g.added, g.plan, g.asked, g.memory
	f.note(g.noted())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *Shared) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Plan().Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *Shared) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f; see [Filter.UnmarshalBinary].
func (f *Shared) UnmarshalBinary(data []byte) error {
	filter, err := filterfile.UnmarshalBinary(data, Read)
	if err != nil {
		return err
	}
	g := filter.Share()
	f.Hasher, f.bits, f.stripes, f.plan, f.memory = g.Hasher, g.bits, g.stripes, g.plan, g.memory
	f.note(g.noted())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *SplitBlock) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Plan().Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *SplitBlock) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f; see [Filter.UnmarshalBinary].
func (f *SplitBlock) UnmarshalBinary(data []byte) error {
	g, err := filterfile.UnmarshalBinary(data, ReadSplitBlock)
	if err != nil {
		return err
	}
	f.Hasher, f.bits, f.plan, f.memory = g.Hasher, g.bits, g.plan, g.memory
	f.bound().note(g.noted())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *Counting) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Plan().Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *Counting) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f; see [Filter.UnmarshalBinary].
func (f *Counting) UnmarshalBinary(data []byte) error {
	g, err := filterfile.UnmarshalBinary(data, ReadCounting)
	if err != nil {
		return err
	}
	f.Hasher, f.counters, f.plan, f.added, f.live, f.memory = g.Hasher, g.counters, g.plan, g.added, g.live, g.memory
	f.note(g.noted())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *Cuckoo) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *Cuckoo) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f, without its Grant; see [Filter.UnmarshalBinary].
func (f *Cuckoo) UnmarshalBinary(data []byte) error {
	g, err := filterfile.UnmarshalBinary(data, ReadCuckoo)
	if err != nil {
		return err
	}
	f.drop(0)
	f.Hasher, f.config, f.first, f.layers, f.rooms = g.Hasher, g.config, g.first, g.layers, g.rooms
	f.stored, f.removed, f.err = g.stored, g.removed, nil
	f.note(g.noted())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *Scalable) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Plan().Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *Scalable) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f; see [Filter.UnmarshalBinary].
func (f *Scalable) UnmarshalBinary(data []byte) error {
	if f.readOnly || f.update != nil {
		panicReadOnly()
	}
	g, err := filterfile.UnmarshalBinary(data, ReadScalable)
	if err != nil {
		return err
	}
	f.Hasher, f.config = g.Hasher, g.config
	f.note(g.noted())
	f.layers.Store(g.layers.Load())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (w *Window) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, w.Plan().Bytes(), w)
}

// MarshalBinary returns the file that WriteTo would write.
func (w *Window) MarshalBinary() ([]byte, error) { return w.AppendBinary(nil) }

// UnmarshalBinary replaces w; see [Filter.UnmarshalBinary]. The window keeps its clock:
// that of [WindowConfig], or the system's if w was a zero Window.
func (w *Window) UnmarshalBinary(data []byte) error {
	g, err := filterfile.UnmarshalBinary(data, func(r io.Reader, limitBytes int64) (*Window, error) {
		return ReadWindow(r, limitBytes, w.config.Now)
	})
	if err != nil {
		return err
	}
	w.cleaning.Wait()
	w.Hasher, w.config, w.first, w.origin, w.step = g.Hasher, g.config, g.first, g.origin, g.step
	w.clean, w.further, w.limits, w.closed = g.clean, g.further, g.limits, false
	w.note(g.noted())
	w.next.Store(g.next.Load())
	w.layers.Store(g.layers.Load())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (x *Exceptions) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, x.Plan().Bytes(), x)
}

// MarshalBinary returns the file that WriteTo would write.
func (x *Exceptions) MarshalBinary() ([]byte, error) { return x.AppendBinary(nil) }

// UnmarshalBinary replaces x and its filter; see [Filter.UnmarshalBinary].
func (x *Exceptions) UnmarshalBinary(data []byte) error {
	y, err := filterfile.UnmarshalBinary(data, ReadExceptions)
	if err == nil {
		*x = *y
	}
	return err
}
