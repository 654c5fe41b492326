// Package interop reads and writes the Bloom filters of other programs. Its filters
// answer exactly as theirs do.
//
// Each format has a file, with functions of its own that return a
// [classic.Filter], a [bloom.SplitBlock], a [redisbloom.Filter] or a [bloom.Cuckoo]; and a row in the table
// [Formats], for programs that take a file as it comes: [Recognise] finds the
// format by the first bytes, [Format.Read] reads it, [File.Write] writes it back
// or in another format whose bits mean the same.
//
// Bits cannot be translated. A filter is a pattern that one hash made; another
// program's hash makes another pattern, and the keys, from which the filter could be
// built again, are gone. So a filter converts only between formats that share a
// [classic.Scheme]; everything else is [ErrScheme].
//
// Every reader is safe with hostile bytes: it checks lengths against the bytes that
// are there, grows memory as they arrive, and returns an error that wraps
// [bloom.ErrFormat], [bloom.ErrVersion] or [bloom.ErrLimit].
package interop

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/redisbloom"
)

// ErrScheme: the bits of the filter mean something else in the format to be written,
// so the filter must be built again from its keys.
var ErrScheme = errors.New("interop: the bits cannot be converted")

// Filter is what the filters of all formats can do.
type Filter = bloom.Any

// File is a filter plus what else its file says.
type File struct {
	Filter // a *classic.Filter, a *bloom.SplitBlock, a *redisbloom.Filter or a *bloom.Cuckoo

	Format *Format
	Data   []byte // free data after the filter: DCSO files can carry some

	// Details are what the file says beyond the plan, in the terms of its
	// program: names and values, for people.
	Details [][2]string

	// Unplanned: the file says neither n nor p, or an impossible n. The plan of the
	// filter then describes it with half of its bits set, which nobody planned:
	// more keys than that are not a fault.
	Unplanned bool

	// state is what the format must write again to reproduce the file, such as
	// DCSO's flags; only its own reader and writer know it.
	state any
}

// Options supply what a file does not say itself. The zero Options are right for
// formats that need none.
type Options struct {
	// Limit is the most bytes to read; zero means no limit. It bounds neither what
	// the bytes unpack to, nor what keys that are added later take: a [redisbloom.Filter] grows.
	// See Grant.
	Limit int64

	// Grant and Release are those of the filter that a format of RedisBloom's reads
	// as: see [redisbloom.Config]. Grant is asked before memory is taken for the bits of
	// each layer, with what they unpack to. Read's error is then Grant's, and what
	// was granted is given back; what is read gives it back by Close. Nil means no
	// limit. Other formats do not ask: they take at most a few times the memory of what
	// they read, and for them Limit also bounds what gzip unpacks to.
	Grant   func(bytes uint64) error
	Release func(bytes uint64)

	// For formats that are bare bits: the scheme of the positions, m and k. Where m
	// follows from the length of the file, Bits may be zero, and otherwise must match.
	Scheme classic.Scheme
	Bits   uint64
	Probes int
}

// Format is one format in which a program writes filters.
type Format struct {
	Name  string // such as "guava"
	About string // the program, and its call that writes it

	Holds Holding // what Write takes

	// Schemes are those of the [classic.Filter] filters that Write accepts. The first
	// is the default, also of Read if neither the file nor Options says.
	Schemes []classic.Scheme

	// Matches reports whether a file of this size (-1: unknown) that begins with
	// head can be of the format. head is at least 64 bytes long, unless the file
	// is shorter. Nil: the format cannot be recognised by its bytes.
	Matches func(head []byte, size int64) bool

	// Needs names, for people, the Options that Read requires; "" if it requires
	// none.
	Needs string

	plans bool // files say n and p

	read  func(r io.Reader, o Options) (*File, error)
	open  func(path string, o Options) (*File, error) // nil if files cannot be mapped
	write func(w io.Writer, f *File) error
}

// Holding says which filters a format has room for.
type Holding int

const (
	Classics    Holding = iota // a [classic.Filter] of one of the format's Schemes
	SplitBlocks                // a [bloom.SplitBlock]
	Chains                     // a [redisbloom.Filter] with any number of layers
	Cuckoos                    // a [bloom.Cuckoo] of RedisBloom's hash
)

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
// begins with head, at least 64 bytes unless the file is shorter. It is false if no
// format that can be recognised by its bytes matches.
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

// Open maps the file at path and reads only its head, if the format and the file
// allow that; see [OpenDCSO] for what holds then. Otherwise it is Read.
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
	file.Unplanned = file.Unplanned || !f.plans
	return file, nil
}

// Write writes the file in a format, its own or another in which the bits mean the
// same. If they do not, the error wraps [ErrScheme].
func (f *File) Write(w io.Writer, to *Format) error {
	if err := to.write(w, f); err != nil {
		return fmt.Errorf("%s: %w", to.Name, err)
	}
	return nil
}

// limited reads up to a limit, and returns an error if there is more.
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
func (f *File) classicUnder(schemes ...classic.Scheme) (*classic.Filter, error) {
	switch filter := f.Filter.(type) {
	case *classic.Filter:
		if slices.Contains(schemes, filter.Scheme()) {
			return filter, nil
		}
		return nil, otherScheme(filter.Scheme(), schemes[0])
	case *redisbloom.Filter: // whose own formats take it as it is
		if layers := filter.Info().Filters; layers > 1 {
			return nil, fmt.Errorf("%w: the chain has several layers (%d), which only RedisBloom's formats can hold: build the filter again from its keys", ErrScheme, layers)
		}
		return nil, otherScheme(classic.SchemeRedisBloom, schemes[0])
	}
	return nil, fmt.Errorf("%w: %v has no bits of %v: build it again from its keys", ErrScheme, f.Filter, schemes[0])
}

func otherScheme(has, needed classic.Scheme) error {
	return fmt.Errorf("%w: their scheme is %v, and must be %v: build the filter again from its keys", ErrScheme, has, needed)
}
