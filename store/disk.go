package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/replace"
)

// disk is a directory with files, as far as the store uses it: new files that are
// written from front to end, and read from front to end. What was written is safe
// when the file was synced; that a file has its name, or has it no more, when the
// directory was. Tests have one that the power leaves.
type disk interface {
	Create(name string) (diskFile, error) // for writing; there must not be one
	Append(name string) (diskFile, error) // for writing on
	Open(name string) (diskSource, error)
	Rename(from, to string) error // in place of what has the name
	Remove(name string) error
	List() (names []string, err error)
	SyncDir() error
	Lock() (unlock func() error, err error)
}

// diskFile is a file that is being written.
type diskFile interface {
	io.Writer
	Sync() error // the data, and how many they are
	Close() error
}

// diskSource is a file that is being read. It stays as it is if another one gets its
// name.
type diskSource interface {
	io.ReadSeekCloser
	io.ReaderAt
}

// directory is the disk of the operating system.
type directory string

// heldDirectory is one that is kept open: so it can be synced also when the process
// has no descriptor left.
type heldDirectory struct {
	directory
	self *os.File
}

// openDirectory makes the directory, if there is none.
func openDirectory(path string) (*heldDirectory, error) {
	if err := makeDurable(filepath.Clean(path)); err != nil {
		return nil, fmt.Errorf("store: making the data directory: %w", err)
	}
	self, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("store: the data directory: %w", err)
	}
	return &heldDirectory{directory(path), self}, nil
}

func (d *heldDirectory) SyncDir() error { return d.self.Sync() }

// Lock is directory's. Without it, or after unlock, the directory is no longer open.
func (d *heldDirectory) Lock() (unlock func() error, err error) {
	release, err := d.directory.Lock()
	if err != nil {
		d.self.Close()
		return nil, err
	}
	return func() error { return errors.Join(release(), d.self.Close()) }, nil
}

// makeDurable makes a directory and those above it that are missing, each with
// its entry on the disk.
func makeDurable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := makeDurable(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return directory(filepath.Dir(path)).SyncDir()
}

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

func (d directory) Create(name string) (diskFile, error) {
	return d.write(name, os.O_CREATE|os.O_EXCL)
}

func (d directory) Append(name string) (diskFile, error) { return d.write(name, os.O_APPEND) }

func (d directory) write(name string, flag int) (diskFile, error) {
	file, err := os.OpenFile(d.path(name), os.O_WRONLY|flag, 0o600)
	if err != nil {
		return nil, err
	}
	return &dataFile{file}, nil
}

func (d directory) Open(name string) (diskSource, error) {
	file, err := os.Open(d.path(name))
	if err != nil {
		return nil, err // and no *os.File that is nil
	}
	return file, nil
}

func (d directory) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }
func (d directory) Remove(name string) error     { return os.Remove(d.path(name)) }

func (d directory) List() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

func (d directory) SyncDir() error { return replace.SyncDir(string(d)) }

// Lock keeps other processes out until unlock, or the end of this one.
func (d directory) Lock() (unlock func() error, err error) {
	file, err := os.OpenFile(d.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// Where there are no locks it is for the user to see to it that no two servers
	// have one directory.
	if err := memory.LockFile(file); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		file.Close()
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	return file.Close, nil
}

// dataFile syncs without the times of access and change, which nobody needs.
type dataFile struct{ *os.File }
