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

// disk is a directory of files, as far as the store uses one: files are written from
// front to back, and never overwritten. Data are safe once the file is synced; the
// creation, renaming or removal of a file is safe once the directory is synced. Tests
// use a disk that simulates power cuts.
type disk interface {
	Create(name string) (diskFile, error) // for writing; name must not exist
	Append(name string) (diskFile, error) // to continue writing
	Open(name string) (diskSource, error)
	Rename(from, to string) error // replaces to if it exists
	Remove(name string) error
	List() (names []string, err error)
	SyncDir() error
	Lock() (unlock func() error, err error)
}

// diskFile is a file that is being written.
type diskFile interface {
	io.Writer
	Sync() error // syncs the data and the length
	Close() error
}

// diskSource is a file that is being read. It stays as it is if another file takes its
// name.
type diskSource interface {
	io.ReadSeekCloser
	io.ReaderAt
}

// directory is the disk of the operating system.
type directory string

// heldDirectory is a directory that is kept open, so that it can be synced even when
// the process has run out of descriptors.
type heldDirectory struct {
	directory
	self *os.File
}

// openDirectory creates the directory if necessary.
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

// Lock is directory's. If it fails, and after unlock, the directory is no longer open.
func (d *heldDirectory) Lock() (unlock func() error, err error) {
	release, err := d.directory.Lock()
	if err != nil {
		d.self.Close()
		return nil, err
	}
	return func() error { return errors.Join(release(), d.self.Close()) }, nil
}

// makeDurable creates a directory and its missing parents, and syncs the entry of each.
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
		return nil, err // not an interface that holds a nil *os.File
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

// Lock keeps other processes out until unlock, or until this process ends.
func (d directory) Lock() (unlock func() error, err error) {
	file, err := os.OpenFile(d.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// On systems without file locks the user must make sure that no two servers share a
	// directory.
	if err := memory.LockFile(file); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		file.Close()
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	return file.Close, nil
}

// dataFile is a file whose Sync skips access and modification times where the system
// can: see sync_linux.go.
type dataFile struct{ *os.File }
