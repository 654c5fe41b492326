package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A source is where lines come from: a file, or standard input.
type source struct {
	path    string
	stdin   io.Reader // in place of a path
	regular bool
	bytes   int64       // of a regular file, what is left of it
	info    fs.FileInfo // nil if it is no file at all
}

// name is the source in messages.
func (s *source) name() string {
	if s.stdin != nil {
		return "standard input"
	}
	return s.path
}

// findSources looks at every file before any work begins, so that a mistyped
// name ends the command while nothing has been written. No name means standard
// input, as does "-".
//
// Regular files are opened for a moment, and others not at all: opening a named
// pipe waits for its writer, who may be waiting for us to read another.
func findSources(paths []string, stdin io.Reader) ([]*source, error) {
	if len(paths) == 0 {
		paths = []string{"-"}
	}
	var found []*source
	for _, path := range paths {
		s, err := findSource(path, stdin)
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

func findSource(path string, stdin io.Reader) (*source, error) {
	if path == "-" {
		s := &source{stdin: stdin}
		if file, ok := stdin.(*os.File); ok {
			s.info, _ = file.Stat()
			if s.info != nil && s.info.Mode().IsRegular() {
				at, _ := file.Seek(0, io.SeekCurrent)
				s.regular, s.bytes = true, max(s.info.Size()-at, 0)
			}
		}
		return s, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, inputError(path, err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory: name the files in it", path)
	}
	s := &source{path: path, regular: info.Mode().IsRegular(), info: info}
	if s.regular {
		file, err := os.Open(path)
		if err != nil {
			return nil, inputError(path, err)
		}
		file.Close()
		s.bytes = info.Size()
	}
	return s, nil
}

// inputError puts the file first and what is wrong with it after, as grep does.
func inputError(name string, err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// A stream is an opened source.
type stream struct {
	io.Reader // what the source holds, unpacked

	// ready reports whether the next Read surely does not wait.
	ready func() bool
	close func()
}

// open opens the source, and unpacks it if its first bytes say gzip or zstd.
// count is told of the bytes that are read, before unpacking.
func (s *source) open(count func(int)) (*stream, error) {
	raw := s.stdin
	closeFile := func() {}
	if raw == nil {
		file, err := os.Open(s.path)
		if err != nil {
			return nil, inputError(s.path, err)
		}
		raw, closeFile = file, func() { file.Close() }
	}
	pipe, _ := raw.(*os.File)
	if s.regular {
		pipe = nil
	}
	if pipe != nil {
		widen(pipe)
	}
	unpacked, closePacking, err := unpack(countedReader{raw, count})
	if err != nil {
		closeFile()
		return nil, inputError(s.name(), err)
	}
	ready := func() bool { return true }
	switch {
	case pipe != nil && closePacking != nil: // what has come need not be enough to unpack a line
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

// countedReader tells how far a file is read.
type countedReader struct {
	io.Reader
	count func(int)
}

func (r countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.count(n)
	return n, err
}

// The first bytes of packed files. A zstd file may begin with frames to skip,
// as those of pzstd do; the low four bits of their first byte are free.
var (
	gzipMagic = []byte{0x1f, 0x8b, 8}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	skipMagic = []byte{0x50, 0x2a, 0x4d, 0x18}
)

const magicBytes = 4

func isGzip(head []byte) bool { return bytes.HasPrefix(head, gzipMagic) }

func isZstd(head []byte) bool {
	if bytes.HasPrefix(head, zstdMagic) {
		return true
	}
	return len(head) == magicBytes && head[0]&0xf0 == skipMagic[0] && bytes.Equal(head[1:], skipMagic[1:])
}

// unpack puts the reader of the right format before raw. closePacking is nil if
// there is none.
func unpack(raw io.Reader) (unpacked io.Reader, closePacking func(), err error) {
	head, err := readHead(raw)
	if err != nil {
		return nil, nil, err
	}
	whole := io.MultiReader(bytes.NewReader(head), raw)
	switch {
	case isGzip(head):
		r, err := gzip.NewReader(whole)
		return r, func() {}, err
	case isZstd(head):
		r, err := zstd.NewReader(whole)
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	}
	return whole, nil, nil
}

// readHead reads as many bytes as tell the format. It stops early where no
// packed file goes on like this, so as not to wait on a slow pipe for a second
// line while holding back the first.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, 0, magicBytes)
	for len(head) < magicBytes {
		n, err := r.Read(head[len(head):magicBytes])
		head = head[:len(head)+n]
		if err == io.EOF || err == nil && !magicBegins(head) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return head, nil
}

func magicBegins(head []byte) bool {
	n := min(len(head), len(gzipMagic))
	return bytes.Equal(head[:n], gzipMagic[:n]) || bytes.HasPrefix(zstdMagic, head) ||
		len(head) == 0 || head[0]&0xf0 == skipMagic[0] && bytes.HasPrefix(skipMagic[1:], head[1:])
}
