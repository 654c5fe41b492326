// Package interop reads and writes the Bloom filters of other programs, and
// answers exactly as they do.
//
// Each format has a file, with functions of its own that return a
// [bloom.Classic], a [bloom.SplitBlock] or a [Chain]; and a row in the table
// [Formats], for programs that take a file as it comes: [Recognise] tells the
// format by the first bytes, [Format.Read] reads it, [File.Write] writes it back
// or in another format whose bits mean the same.
//
// Bits cannot be translated. A filter is a pattern that one hash made; another
// program's hash makes another, and the keys, from which it could be made again,
// are gone. So a filter converts only between formats that share a
// [bloom.Scheme]; everything else is [ErrScheme].
//
// Every reader takes hostile bytes: it checks lengths against what is there,
// grows memory as bytes arrive, and returns an error that wraps
// [bloom.ErrFormat], [bloom.ErrVersion] or [bloom.ErrLimit].
package interop

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/bloomery/bloom"
)

// ErrScheme: a filter whose bits mean something else in the format that is to be
// written, so that it must be built again from its keys.
var ErrScheme = errors.New("interop: the bits cannot be converted")

// Filter is what the filters of all formats can do.
type Filter interface {
	Add(key []byte) (isNew bool)
	AddMany(keys [][]byte, isNew []bool) int
	Contains(key []byte) bool
	ContainsMany(keys [][]byte, found []bool) int
	Plan() bloom.Plan
	Report() bloom.Report
	Close() error
}

// File is a filter and what else its file says.
type File struct {
	Filter // a *bloom.Classic, a *bloom.SplitBlock or a *Chain

	Format *Format
	Data   []byte // free data behind the filter: DCSO files can carry some

	// Details are what the file says beyond the plan, in the words of its
	// program: names and values, for people.
	Details [][2]string

	// state is what the format must write again to be the same file, such as
	// DCSO's flags; only its own reader and writer know it.
	state any
}

// Options say what a file does not say of itself. The zero Options are right for
// formats that need none.
type Options struct {
	Limit int64 // the most bytes to read; zero means no limit

	// Of formats that are bare bits: the rule of the positions, m and k.
	Scheme bloom.Scheme
	Bits   uint64
	Probes int
}

// Format is one way in which a program writes filters.
type Format struct {
	Name  string // such as "guava"
	About string // the program, and its call that writes it

	// Matches reports whether a file of this size (-1: unknown) that begins so
	// can be of the format. head is at least 64 bytes long, unless the file is
	// shorter. Nil: nothing in the bytes tells the format.
	Matches func(head []byte, size int64) bool

	// Needs are the Options that Read cannot do without, for people; "" if it
	// needs none.
	Needs string

	read  func(r io.Reader, o Options) (*File, error)
	open  func(path string, o Options) (*File, error) // nil where files cannot be mapped
	write func(w io.Writer, f *File) error
}

// FormatNamed returns the format of that name.
func FormatNamed(name string) (*Format, bool) {
	for _, f := range Formats {
		if f.Name == name {
			return f, true
		}
	}
	return nil, false
}

// Recognise returns the format of a file that has size bytes (-1: unknown) and
// begins with head, at least 64 bytes unless the file is shorter. It is false
// when no format fits, or the fitting one carries no mark.
func Recognise(head []byte, size int64) (*Format, bool) {
	if size < 0 && len(head) < 64 {
		size = int64(len(head))
	}
	for _, f := range Formats {
		if f.Matches != nil && f.Matches(head, size) {
			return f, true
		}
	}
	return nil, false
}

// Read reads a filter of the format.
func (f *Format) Read(r io.Reader, o Options) (*File, error) {
	if o.Limit > 0 {
		r = &limited{r, o.Limit}
	}
	file, err := f.read(r, o)
	return f.named(file, err)
}

// Open maps the file at path and reads nothing but its head, if the format
// allows that; [OpenDCSO] says what then holds. Otherwise it is Read.
func (f *Format) Open(path string, o Options) (*File, error) {
	if f.open != nil {
		file, err := f.open(path, o)
		return f.named(file, err)
	}
	from, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("interop: opening: %w", err)
	}
	defer from.Close()
	return f.Read(from, o)
}

func (f *Format) named(file *File, err error) (*File, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	file.Format = f
	return file, nil
}

// Write writes the file in a format, its own or another whose bits mean the
// same. The error wraps [ErrScheme] where they do not.
func (f *File) Write(w io.Writer, to *Format) error {
	if err := to.write(w, f); err != nil {
		return fmt.Errorf("%s: %w", to.Name, err)
	}
	return nil
}

// limited reads up to a limit, and says so when there is more.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		if n, err := l.from.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("%w: there are more bytes than that", bloom.ErrLimit)
	}
	n, err := l.from.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}

// classicUnder returns the file's filter if its bits were made by one of the
// schemes.
func (f *File) classicUnder(schemes ...bloom.Scheme) (*bloom.Classic, error) {
	if chain, ok := f.Filter.(interface{ Single() (*bloom.Classic, bool) }); ok {
		if single, ok := chain.Single(); ok {
			f = &File{Filter: single}
		}
	}
	classic, ok := f.Filter.(*bloom.Classic)
	if !ok {
		return nil, fmt.Errorf("%w: %v has no bits of %v: build it again from its keys", ErrScheme, f.Filter, schemes[0])
	}
	for _, s := range schemes {
		if classic.Scheme() == s {
			return classic, nil
		}
	}
	return nil, fmt.Errorf("%w: they are of the scheme %v, and must be of %v: build the filter again from its keys", ErrScheme, classic.Scheme(), schemes[0])
}
