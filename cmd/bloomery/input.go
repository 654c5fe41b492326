package main

import (
	"bufio"
	"bytes"
	"compress/bzip2"
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
// input, as does "-". The error is of the first that cannot be read; the others are
// returned all the same.
//
// Regular files are opened for a moment, and others not at all: opening a named
// pipe waits for its writer, who may be waiting for us to read another.
func findSources(paths []string, stdin io.Reader) (found []*source, err error) {
	if len(paths) == 0 {
		paths = []string{"-"}
	}
	for _, path := range paths {
		s, wrong := findSource(path, stdin)
		if wrong == nil {
			found = append(found, s)
		} else if err == nil {
			err = wrong
		}
	}
	return found, err
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

// open opens the source, and unpacks it if its first bytes say gzip, zstd or bzip2.
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
// as those of pzstd do; the low four bits of their first byte are free. The fourth
// byte of a bzip2 file is a digit.
var (
	gzipMagic  = []byte{0x1f, 0x8b, 8}
	zstdMagic  = []byte{0x28, 0xb5, 0x2f, 0xfd}
	skipMagic  = []byte{0x50, 0x2a, 0x4d, 0x18}
	xzMagic    = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
	bzip2Magic = []byte("BZh91AY&SY")
)

const magicBytes = 10

func isGzip(head []byte) bool { return bytes.HasPrefix(head, gzipMagic) }

func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, zstdMagic) || len(head) >= len(skipMagic) && beginsSkip(head)
}

// beginsSkip reports whether a frame to skip may begin so.
func beginsSkip(head []byte) bool {
	n := min(len(head), len(skipMagic))
	return n > 0 && head[0]&0xf0 == skipMagic[0] && bytes.Equal(head[1:n], skipMagic[1:n])
}

func isXz(head []byte) bool { return bytes.HasPrefix(head, xzMagic) }

func isBzip2(head []byte) bool { return len(head) >= len(bzip2Magic) && beginsBzip2(head) }

func beginsBzip2(head []byte) bool {
	n := min(len(head), len(bzip2Magic))
	for i, c := range head[:n] {
		if c != bzip2Magic[i] && (i != 3 || c < '1' || c > '9') {
			return false
		}
	}
	return true
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
		r, err := newGzipReader(whole)
		return r, func() {}, err
	case isZstd(head):
		r, err := zstd.NewReader(whole)
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	case isBzip2(head):
		return bzip2.NewReader(whole), func() {}, nil
	case isXz(head):
		return nil, nil, errors.New("is packed by xz, which bloomery does not read: unpack it first, as by 'xz -dc FILE | bloomery ...'")
	}
	return whole, nil, nil
}

// readHead reads as many bytes as tell the format. It stops early where the format
// is known, or no packed file goes on like this, so as not to wait on a slow pipe
// for a second line while holding back the first.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, 0, magicBytes)
	for len(head) < magicBytes && !isGzip(head) && !isZstd(head) && !isXz(head) {
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
	for _, magic := range [][]byte{gzipMagic, zstdMagic, xzMagic} {
		if n := min(len(head), len(magic)); bytes.Equal(head[:n], magic[:n]) {
			return true
		}
	}
	return len(head) == 0 || beginsSkip(head) || beginsBzip2(head)
}

// gzipReader unpacks a gzip file, whose members follow each other. What stands
// behind the last and begins no other is left out, as by gzip(1): tapes and some
// web servers put zeros there.
type gzipReader struct {
	from   *bufio.Reader
	member *gzip.Reader
}

func newGzipReader(r io.Reader) (*gzipReader, error) {
	from := bufio.NewReaderSize(r, 64<<10)
	member, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	member.Multistream(false)
	return &gzipReader{from, member}, nil
}

func (g *gzipReader) Read(b []byte) (int, error) {
	n, err := g.member.Read(b)
	if n > 0 && err == io.EOF {
		err = nil // it comes again
	}
	if err != io.EOF {
		return n, err
	}
	next, err := g.from.Peek(len(gzipMagic))
	if err != nil && err != io.EOF {
		return 0, err
	}
	if !isGzip(next) {
		return 0, io.EOF
	}
	if err := g.member.Reset(g.from); err != nil {
		return 0, err
	}
	g.member.Multistream(false)
	return 0, nil
}
