package bloom

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/replace"
)

// Save writes the filter to a file at path, replacing one that is there. The new
// file is written next to it, synced to disk and then renamed, so whatever happens
// path holds either the whole old file or the whole new one. The new file has the
// permissions of the one it replaces, or those of any new file. A symbolic link
// at path is replaced, not followed; anything else that is not a file, such as a
// directory or a device, is left alone and an error.
func (f *Filter) Save(path string) error { return save(path, f.WriteTo) }

// save replaces the file at path by one that write fills.
func save(path string, write func(io.Writer) (int64, error)) error {
	var writing error
	_, err := replace.Do(replace.At(path), func(file *os.File) error {
		_, writing = write(file)
		return writing
	})
	switch {
	case err == nil || writing != nil: // which has said what it was doing
		return writing
	case errors.Is(err, replace.ErrNotRegular):
		err = fmt.Errorf("%s is %w: use WriteTo for a stream", path, err)
	}
	return fmt.Errorf("bloom: saving: %w", err)
}

// Load reads the file at path into memory and verifies all of it, as [Read]
// does. Bytes behind the filter's end are an error. It takes as much memory as the
// file is long, and a sparse file can be long and take no room on the disk: a file
// from strangers goes through [os.Open] and Read, which has a limit. When to
// close it: [Filter.Close].
func Load(path string) (*Filter, error) {
	return load(path, filterFrom)
}

// sizedFile tells readWords that there is as much as the pages say.
type sizedFile struct {
	io.Reader
	size int64
}

func (f sizedFile) Len() int { return int(min(f.size, math.MaxInt)) }

// load reads the file at path and makes a filter of it.
func load[F any](path string, from func(*stored) (F, error)) (made F, err error) {
	file, size, err := openRegular(path)
	if err != nil {
		return made, err
	}
	defer file.Close()
	s, err := readStored(sizedFile{file, size}, func(s *state) error { return s.fits(size) })
	if err != nil {
		return made, fmt.Errorf("%s: %w", path, err)
	}
	f, err := from(s)
	if err != nil {
		s.close()
		return made, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Open maps the file at path read-only: it is ready in microseconds whatever
// its size, and its pages are read when they are looked at. The header, the
// state and all lengths are checked at once, the bits only by [Filter.Verify].
// Changing an opened filter panics; [Filter.Clone] makes a writable copy. Close
// it when done.
//
// The error wraps [ErrFormat], [ErrVersion] or [ErrChecksum], or [ErrBudget] where
// the machine has no addresses for the whole file, as one of 32 bits from 2 GiB on.
//
// The file must not be truncated by others while it is open, and its disk must
// be readable: a look at a page that cannot be had kills the process, as with
// every mapped file. Save and all Bloomery commands replace
// files by rename, which is safe.
//
// The file may be open for update, or its writer may have been killed; Verify
// says so. Bits are only ever set, so all keys that were added before are found,
// and of those that a writer adds meanwhile each as soon as its add returns.
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
// Beside a writer it finds the keys of the layers that there were when it was
// opened. To find those of a layer that was begun since, open the file again.
func OpenScalable(path string) (*Scalable, error) {
	f, err := openMapped(path, scalableFrom)
	if err == nil {
		f.readOnly = true
	}
	return f, err
}

// openMapped maps the file at path and makes a filter of it.
func openMapped[F any](path string, from func(*stored) (*F, error)) (*F, error) {
	file, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the mapping outlives it
	s, err := openStored(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := from(s)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// openRegular opens a file that is one, and tells its size. It looks before it
// opens, as opening a named pipe waits for a writer.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, fmt.Errorf("bloom: opening: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s: %w: not a regular file: use Read for a stream", path, ErrFormat)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("bloom: opening: %w", err)
	}
	if info, err = file.Stat(); err != nil { // of the file now opened
		file.Close()
		return nil, 0, fmt.Errorf("bloom: opening: %w", err)
	}
	return file, info.Size(), nil
}

// Verify checks the bits of a filter from [Open] or [OpenUpdate] against the
// checksums in its file. They are those of the last [Filter.Sync]: while the
// file holds later adds, the error wraps [ErrUnclean]. A filter that was loaded was verified then, and one that was made in
// memory has nothing to verify: both return nil.
func (f *Filter) Verify() error {
	f.mustBeOpen()
	if !f.readOnly {
		return nil
	}
	defer f.keepAlive()
	return verifyMapped(f.memory.Bytes())
}

// Verify checks the bits of a filter from [OpenScalable] or [OpenUpdateScalable]
// against the checksums in its file; see [Filter.Verify]. Adds wait meanwhile.
func (f *Scalable) Verify() error {
	c := f.lockedChain()
	defer c.unlock()
	switch {
	case f.update != nil:
		return verifyMapped(f.update.newest.Bytes())
	case f.readOnly:
		return verifyMapped(c.layers[0].memory.Bytes())
	}
	return nil
}

// Lock takes the lock that [OpenUpdate] takes of the file at path, for who is
// going to put another file in its place: held from before it is read until that
// is done, it keeps out who would change in between what is then lost. The file
// need not hold a filter. unlock gives the lock back.
//
// The error wraps [ErrLocked] if the file is open for update, or is the system's:
// no such file, no permission to write, no locks.
func Lock(path string) (unlock func(), err error) {
	file, err := openLocked(path)
	if err != nil {
		return nil, err
	}
	return func() {
		memory.UnlockFile(file) // at once; see updater.close
		file.Close()
	}, nil
}
