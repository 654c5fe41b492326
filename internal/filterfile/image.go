package filterfile

import (
	"fmt"
	"sync"

	"github.com/bloomery/bloom/internal/memory"
)

// Image is the file of a filter to which other goroutines may be adding. Its pieces are
// made on demand and not stored, so that a filter of any size can be sent to a slow
// reader. It has every key whose Add returned before the Image was made, and perhaps
// some that are added before its last piece is read.
//
// All methods may be called by many goroutines at once.
type Image struct {
	file *File
	head []byte
	read func(b []byte, at uint64) error // of the file's body; nil: from its words

	mutex sync.Mutex
	sums  []byte // checksums of the spans, as they were last read
	known []bool // which spans were read
	left  int    // the number of spans that were not
}

// Image returns the file as an image.
func (s *File) Image() (*Image, error) {
	head, err := s.Head()
	if err != nil {
		return nil, err
	}
	spans := int((s.Checksums - BodyOffset + SpanBytes - 1) / SpanBytes)
	return &Image{file: s, head: head, sums: make([]byte, 4*spans), known: make([]bool, spans), left: spans}, nil
}

// ImageFrom is Image for a filter whose words are elsewhere. read reads part of the
// file's body: a MiB, or less at its end. An error of read becomes one of Piece.
func (s *File) ImageFrom(read func(b []byte, at uint64) error) (*Image, error) {
	i, err := s.Image()
	if err == nil {
		i.read = read
	}
	return i, err
}

// span returns the body from at on, as far as one checksum covers.
func (i *Image) span(buffer []uint64, at uint64) ([]byte, error) {
	if i.read == nil {
		return i.file.copyBody(buffer, at), nil
	}
	b := memory.Bytes(buffer)[:min(SpanBytes, i.file.Checksums-at)]
	return b, i.read(b, at)
}

// Size returns the length of the file in bytes.
func (i *Image) Size() uint64 { return i.file.FileBytes }

// Overhead returns roughly how many bytes of memory the image takes.
func (i *Image) Overhead() uint64 { return uint64(len(i.head) + len(i.sums) + len(i.known)) }

// Piece returns at most `most` bytes of the file, starting at byte `at`, and none at the
// end. most must be at least 2 MiB. A piece starts at 0 or where another one ended. The
// checksums at the file's end are those of the pieces as they were read, so all other
// pieces must be read before that with the checksums: a reader that has some of them from
// an earlier image does without, see [Sums]. A piece that is read again may have more
// keys, and replaces the one read before. The error wraps [ErrFormat].
func (i *Image) Piece(at uint64, most int) ([]byte, error) {
	s := i.file
	var piece []byte
	switch {
	case at == 0:
		piece = append(make([]byte, 0, min(s.FileBytes, uint64(most))), i.head...)
	case at == s.FileBytes:
		return []byte{}, nil
	case at != s.Checksums && (at > s.Checksums || at < BodyOffset || (at-BodyOffset)%SpanBytes != 0):
		return nil, fmt.Errorf("%w: no piece of the file begins at byte %d", ErrFormat, at)
	default:
		piece = make([]byte, 0, min(s.FileBytes-at, uint64(most)))
	}
	end := at + uint64(len(piece))
	buffer := make([]uint64, (min(SpanBytes, s.Checksums-min(end, s.Checksums))+7)/8)
	for end < s.Checksums && len(piece)+SpanBytes <= most {
		span, err := i.span(buffer, end)
		if err != nil {
			return nil, err
		}
		i.note(int((end-BodyOffset)/SpanBytes), span)
		piece = append(piece, span...)
		end += uint64(len(span))
	}
	if last := s.FileBytes - s.Checksums; end < s.Checksums || len(piece) > 0 && uint64(len(piece))+last > uint64(most) {
		return piece, nil
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.left > 0 && len(piece) > 0 {
		return piece, nil
	} else if i.left > 0 {
		return nil, fmt.Errorf("%w: of the bytes before byte %d some were not read", ErrFormat, s.Checksums)
	}
	return append(piece, sealSums(i.sums[:len(i.sums):len(i.sums)])...), nil
}

// Sums returns the checksums of a part of a body that begins with a span: four bytes for
// each. All of them, and [Seal], are the end of a file.
func Sums(part []byte) []byte {
	var passed body
	passed.pass(part)
	passed.end()
	return passed.sums
}

// Seal appends the checksum of the checksums.
func Seal(sums []byte) []byte { return sealSums(sums) }

// note records the checksum of a span that Piece returns.
func (i *Image) note(span int, bytes []byte) {
	sum := Sums(bytes)
	i.mutex.Lock()
	defer i.mutex.Unlock()
	copy(i.sums[4*span:], sum)
	if !i.known[span] {
		i.known[span] = true
		i.left--
	}
}

// Verify reads the whole body and compares it with the checksums at a file's end. The
// error wraps [ErrChecksum], or is read's.
func (i *Image) Verify(checksums []byte) error {
	s := i.file
	if uint64(len(checksums)) != s.FileBytes-s.Checksums {
		return fmt.Errorf("%w: %d bytes of checksums, not %d", ErrFormat, len(checksums), s.FileBytes-s.Checksums)
	}
	buffer := make([]uint64, SpanBytes/8)
	for at := uint64(BodyOffset); at < s.Checksums; at += SpanBytes {
		span, err := i.span(buffer, at)
		if err != nil {
			return err
		}
		i.note(int((at-BodyOffset)/SpanBytes), span)
	}
	return compareSums(checksums, i.sums)
}
