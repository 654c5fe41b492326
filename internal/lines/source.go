package lines

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A Source is where lines come from: a file, or standard input.
type Source struct {
	path    string
	stdin   io.Reader // instead of a path
	Regular bool
	Bytes   int64       // left to read, of a regular file
	info    fs.FileInfo // nil if it is not a file
}

// Name returns the source's name for messages.
func (s *Source) Name() string {
	if s.stdin != nil {
		return "standard input"
	}
	return s.path
}

// Find looks at every file before any work begins, so that a mistyped name ends the
// command before anything is written. No name means standard input, as does "-". The
// error is that of the first file that cannot be read; the others are still returned.
//
// Regular files are opened briefly, others not at all: opening a named pipe waits
// for its writer, which may be waiting for us to read another one.
func Find(paths []string, stdin io.Reader) (found []*Source, err error) {
	if len(paths) == 0 {
		paths = []string{"-"}
	}
	for _, path := range paths {
		s, wrong := FindOne(path, stdin)
		if wrong == nil {
			found = append(found, s)
		} else if err == nil {
			err = wrong
		}
	}
	return found, err
}

func FindOne(path string, stdin io.Reader) (*Source, error) {
	if path == "-" {
		s := &Source{stdin: stdin}
		if file, ok := stdin.(*os.File); ok {
			s.info, _ = file.Stat()
			if s.info != nil && s.info.Mode().IsRegular() {
				at, _ := file.Seek(0, io.SeekCurrent)
				s.Regular, s.Bytes = true, max(s.info.Size()-at, 0)
			}
		}
		return s, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, FileError(path, err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory: name the files in it", path)
	}
	s := &Source{path: path, Regular: info.Mode().IsRegular(), info: info}
	if s.Regular {
		file, err := os.Open(path)
		if err != nil {
			return nil, FileError(path, err)
		}
		file.Close()
		s.Bytes = info.Size()
	}
	return s, nil
}

// FileError formats an error as grep does: first the file, then what is wrong with it.
func FileError(name string, err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// A stream is an opened source.
type stream struct {
	io.Reader // the source's contents, decompressed

	// ready reports whether the next Read is certain not to wait.
	ready func() bool
	close func()
}

// open opens the source, and decompresses it if its first bytes are those of gzip,
// zstd or bzip2. count is called with the number of bytes read, before decompression.
func (s *Source) open(count func(int)) (*stream, error) {
	raw := s.stdin
	closeFile := func() {}
	if raw == nil {
		file, err := os.Open(s.path)
		if err != nil {
			return nil, FileError(s.path, err)
		}
		raw, closeFile = file, func() { file.Close() }
	}
	pipe, _ := raw.(*os.File)
	if s.Regular {
		pipe = nil
	}
	if pipe != nil {
		widen(pipe)
	}
	unpacked, closePacking, err := unpack(countedReader{raw, count})
	if err != nil {
		closeFile()
		return nil, FileError(s.Name(), err)
	}
	ready := func() bool { return true }
	switch {
	case pipe != nil && closePacking != nil: // what has arrived may not suffice to decompress a line
		ready = func() bool { return false }
	case pipe != nil:
		ready = func() bool { return readable(pipe) }
	}
	return &stream{unpacked, ready, func() {
		if closePacking != nil {
			closePacking()
		}
		closeFile()
	}}, nil
}

// countedReader reports how far a file has been read.
type countedReader struct {
	io.Reader
	count func(int)
}

func (r countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.count(n)
	return n, err
}
