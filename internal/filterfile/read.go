package filterfile

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/bloomery/bloom/internal/memory"
)

// Read reads a file of at most limitBytes and verifies all of it: every field, every
// length and every checksum. Its memory grows only as bytes arrive, and it reads
// nothing past the file's end.
func Read(r io.Reader, limitBytes int64) (*File, error) {
	return read(r, func(s *State) error {
		if limitBytes < 0 || s.FileBytes > uint64(limitBytes) {
			return fmt.Errorf("%w: the file has %d bytes, the limit is %d", ErrLimit, s.FileBytes, limitBytes)
		}
		return nil
	})
}

// sizedFile lets ReadWords rely on the length that the pages give.
type sizedFile struct {
	io.Reader
	size int64
}

func (f sizedFile) Len() int { return int(min(f.size, math.MaxInt)) }

// Load is [Read] of the file at path, which must end where the filter does.
func Load(path string) (*File, error) {
	file, size, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s, err := read(sizedFile{file, size}, func(s *State) error { return s.fits(size) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Open maps the file at path read-only. The first three pages and all lengths are
// checked at once, the body only by [Verify].
func Open(path string) (*File, error) {
	file, _, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the mapping outlives it
	s, err := mapWhole(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// OpenRegular opens a regular file, and returns its size. It looks before it opens,
// because opening a named pipe waits for a writer.
func OpenRegular(path string) (*os.File, int64, error) {
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
	if info, err = file.Stat(); err != nil { // of the opened file, perhaps another one
		file.Close()
		return nil, 0, fmt.Errorf("bloom: opening: %w", err)
	}
	return file, info.Size(), nil
}

// KindOf returns the kind of filter that the file at path holds, by its first page.
// The rest of the file is not read.
func KindOf(path string) (Kind, error) {
	file, _, err := OpenRegular(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	head := make([]byte, PageBytes)
	n, err := io.ReadFull(file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return 0, fmt.Errorf("%s: bloom: reading: %w", path, err)
	}
	kind, err := KindOfHead(head[:n])
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return kind, nil
}

// KindOfHead is [KindOf] for a file that begins with head, which must be a page or more.
func KindOfHead(head []byte) (Kind, error) {
	if len(head) < PageBytes {
		return 0, fmt.Errorf("%w: it has only %d bytes", ErrFormat, len(head))
	}
	h, err := decodeHeader(head[:PageBytes])
	if err != nil {
		return 0, err
	}
	return h.Kind, nil
}

// read reads a file whose state passes the check accept.
func read(r io.Reader, accept func(*State) error) (*File, error) {
	head := make([]byte, BodyOffset)
	if err := ReadFull(r, head); err != nil {
		return nil, err
	}
	s, err := DecodeHead(head)
	if err != nil {
		return nil, err
	}
	if err := accept(&s.State); err != nil {
		return nil, err
	}
	if err := s.mustBeWhole(); err != nil {
		return nil, err
	}
	if err := s.readBody(r); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// DecodeHead checks the first three pages.
func DecodeHead(head []byte) (*File, error) {
	h, err := decodeHeader(head[:PageBytes])
	if err != nil {
		return nil, err
	}
	st, damaged, err := decodeState(head[PageBytes:])
	if err != nil {
		return nil, err
	}
	s := &File{Header: *h, State: *st, damaged: damaged}
	if err := s.checkKind(h.Kind); err != nil {
		return nil, err
	}
	return s, nil
}

// mustBeWhole returns an error if the checksums are not, or may not be, those of the
// body.
func (s *File) mustBeWhole() error {
	const advice = "to mend it open it for update, or else make it again from its keys, or use a saved copy"
	if s.damaged != nil {
		return fmt.Errorf("%w: %w: %s", s.damaged, ErrUnclean, advice)
	}
	if !s.Clean {
		return fmt.Errorf("%w: %w, so its checksums are old: %s", ErrChecksum, ErrUnclean, advice)
	}
	return nil
}

// readBody reads the sections and the checksums after them.
func (s *File) readBody(r io.Reader) error {
	var passed body
	for i := range s.Sections {
		zeros := make([]byte, s.gap(i))
		if err := ReadFull(r, zeros); err != nil {
			return err
		}
		if err := gapUsed(i, zeros); err != nil {
			return err
		}
		passed.pass(zeros)
		words, mapping, err := ReadWords(r, s.Sections[i].Length, func(part []uint64) {
			passed.pass(memory.Bytes(part))
			LittleEndian(part)
		})
		s.Words, s.Memory = append(s.Words, words), append(s.Memory, mapping)
		if err != nil {
			return err
		}
	}
	passed.end()
	list := make([]byte, len(passed.sums)+4)
	if err := ReadFull(r, list); err != nil {
		return err
	}
	return compareSums(list, passed.sums)
}

// mapWhole maps a file. All its sections lie in one mapping.
func mapWhole(file *os.File) (*File, error) {
	s, size, err := readHead(file)
	if err != nil {
		return nil, err
	}
	if s.damaged != nil && uint64(size) != s.FileBytes { // a longer table is lost, not torn
		return nil, s.damaged
	}
	if err := s.mapTo(file, false); err != nil {
		return nil, fmt.Errorf("bloom: opening: %w", err)
	}
	return s, nil
}

// mapTo maps the file, with its sections.
func (s *File) mapTo(file *os.File, writable bool) error {
	mapping, err := memory.MapFile(file, int64(s.FileBytes), writable)
	if err != nil {
		return err
	}
	for _, e := range s.Sections {
		s.Memory = append(s.Memory, mapping)
		s.Words = append(s.Words, memory.FileWords(mapping.Bytes()[e.Offset:][:e.Length]))
	}
	return nil
}

// readHead reads the first three pages of a file, and its current length. Another
// process may be changing the file: if anything is wrong, readHead reads again, until
// it has seen the same bytes twice.
func readHead(file *os.File) (s *File, size int64, err error) {
	var before []byte
	for {
		head := make([]byte, BodyOffset)
		if err := ReadFull(io.NewSectionReader(file, 0, BodyOffset), head); err != nil {
			return nil, 0, err
		}
		info, err := file.Stat() // after the state was read: the file is at least as long as that says
		if err != nil {
			return nil, 0, fmt.Errorf("bloom: opening: %w", err)
		}
		s, err := DecodeHead(head)
		if err == nil {
			err = s.fits(info.Size())
		}
		if err == nil && s.damaged == nil || bytes.Equal(head, before) {
			return s, info.Size(), err
		}
		before = head
	}
}

// Verify checks the body of a mapped file against its checksums.
func Verify(file []byte) error {
	s, err := DecodeHead(file[:BodyOffset])
	if err != nil {
		return err
	}
	if s.FileBytes > uint64(len(file)) {
		return fmt.Errorf("%w: %w: it has grown since it was opened: open it again", ErrChecksum, ErrUnclean)
	}
	if err := s.fits(int64(len(file))); err != nil { // it did when it was opened
		return err
	}
	if err := s.mustBeWhole(); err != nil {
		return err
	}
	var passed body
	passed.pass(file[BodyOffset:s.Checksums])
	passed.end()
	if err := compareSums(file[s.Checksums:s.FileBytes], passed.sums); err != nil {
		return err
	}
	return s.checkGaps(file)
}
