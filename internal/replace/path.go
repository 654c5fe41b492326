package replace

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrNotRegular: the path is neither a regular file nor a symbolic link, but a directory
// or a device, and is not replaced.
var ErrNotRegular = errors.New("not a regular file")

// maxNameBytes is the maximum length of a file's name on most systems.
const maxNameBytes = 255

// Path is a [Place] in the file system.
type Path struct {
	path      string
	temporary string // "" until it is created
}

// At returns the place at path. A symbolic link at path is replaced, not followed.
func At(path string) *Path { return &Path{path: path} }

// Temporary returns the path of the temporary file, "" if there is none.
func (p *Path) Temporary() string { return p.temporary }

// Create creates the temporary file. It does not use os.CreateTemp, which always sets
// mode 0600: here the mode is that of the file to be replaced or, if there is none, as
// the umask allows. At no time can users open the new file who cannot open the old one.
func (p *Path) Create() (*os.File, error) {
	mode := fs.FileMode(0o666)
	old, err := os.Lstat(p.path)
	replaces := err == nil && old.Mode().IsRegular()
	if replaces {
		mode = old.Mode().Perm()
	} else if err == nil && old.Mode().Type() != fs.ModeSymlink {
		return nil, ErrNotRegular
	}
	base := filepath.Base(p.path)
	if most := maxNameBytes - len("..01234567"); len(base) > most {
		base = strings.ToValidUTF8(base[:most], "") // some systems accept only valid UTF-8
	}
	for {
		name := filepath.Join(filepath.Dir(p.path), fmt.Sprintf(".%s.%08x", base, rand.Uint32()))
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if replaces { // the umask may have cleared bits of the mode
			if err := file.Chmod(mode); err != nil {
				file.Close()
				os.Remove(name)
				return nil, err
			}
		}
		p.temporary = name
		return file, nil
	}
}

// Rename renames the temporary file to the path.
func (p *Path) Rename() error {
	err := os.Rename(p.temporary, p.path)
	if err == nil {
		p.temporary = ""
	}
	return err
}

// Link is Rename if nothing exists at the path; otherwise the error wraps [fs.ErrExist].
func (p *Path) Link() error {
	err := os.Link(p.temporary, p.path)
	if err == nil {
		p.Remove() // the temporary one of its two names
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	// Not every file system has hard links. Without them it takes two steps.
	if _, err := os.Lstat(p.path); err == nil {
		return fs.ErrExist
	}
	return p.Rename()
}

// Remove deletes the temporary file, if there is one.
func (p *Path) Remove() error {
	if p.temporary == "" {
		return nil
	}
	err := os.Remove(p.temporary)
	p.temporary = ""
	return err
}

// SyncDir makes the names in the path's directory durable, as the function SyncDir does.
func (p *Path) SyncDir() error { return SyncDir(filepath.Dir(p.path)) }

// SyncDir makes the names in a directory durable. Windows has no such call, and needs
// none.
func SyncDir(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	defer directory.Close()
	if err := directory.Sync(); err != nil && runtime.GOOS != "windows" {
		return err
	}
	return nil
}
