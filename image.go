package bloom

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// Image is the file of a filter that others may be adding to, made piece by piece as
// it is asked for and kept nowhere: what only stores need, to send a filter of any
// size to a slow reader. It has every key whose Add returned before it was made, and
// perhaps some that are added until its last piece is read.
//
// All methods may be called by many goroutines at once. The filter must not be closed
// before the last piece was read.
type Image struct {
	stored *stored
	head   []byte

	mutex sync.Mutex
	sums  []byte // of the spans, as the pieces had them that were read last
	known []bool // those that were read
	left  int    // how many were not
}

// Image returns the file that WriteTo would write.
func (f *Shared) Image() (*Image, error) {
	s, err := f.stored()
	return newImage(s, err)
}

// Image returns the file that WriteTo would write.
func (f *Scalable) Image() (*Image, error) {
	s, err := f.stored()
	return newImage(s, err)
}

// Image returns the file that WriteTo would write.
func (w *Window) Image() (*Image, error) {
	s, err := w.stored()
	return newImage(s, err)
}

func newImage(s *stored, err error) (*Image, error) {
	if err != nil {
		return nil, err
	}
	head, err := s.head()
	if err != nil {
		return nil, err
	}
	spans := int((s.checksums - bodyOffset + checksumSpan - 1) / checksumSpan)
	return &Image{stored: s, head: head, sums: make([]byte, 4*spans), known: make([]bool, spans), left: spans}, nil
}

// Size is the length of the file in bytes.
func (i *Image) Size() uint64 { return i.stored.fileBytes }

// Overhead is how many bytes of memory the image takes, about.
func (i *Image) Overhead() uint64 { return uint64(len(i.head) + len(i.sums) + len(i.known)) }

// Piece returns the bytes of the file from one on, at most so many of them, which
// must be 2 MiB or more; none at the end. A piece begins at 0 or where another one
// ended: the checksums at the file's end are those of the pieces that were read, so
// each must have been read before its last one is. A piece that is read again may
// have more keys, and takes the place of what was read before. The error wraps
// [ErrFormat].
func (i *Image) Piece(at uint64, most int) ([]byte, error) {
	s := i.stored
	var piece []byte
	switch {
	case at == 0:
		piece = append(make([]byte, 0, min(s.fileBytes, uint64(most))), i.head...)
	case at == s.fileBytes:
		return []byte{}, nil
	case at != s.checksums && (at > s.checksums || at < bodyOffset || (at-bodyOffset)%checksumSpan != 0):
		return nil, fmt.Errorf("%w: no piece of the file begins at byte %d", ErrFormat, at)
	default:
		piece = make([]byte, 0, min(s.fileBytes-at, uint64(most)))
	}
	end := at + uint64(len(piece))
	buffer := make([]uint64, checksumSpan/8)
	for end < s.checksums && len(piece)+checksumSpan <= most {
		span := s.copyBody(buffer, end)
		i.note(int((end-bodyOffset)/checksumSpan), span)
		piece = append(piece, span...)
		end += uint64(len(span))
	}
	if last := s.fileBytes - s.checksums; end < s.checksums || len(piece) > 0 && uint64(len(piece))+last > uint64(most) {
		return piece, nil
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.left > 0 {
		return nil, fmt.Errorf("%w: of the bytes before byte %d some were not read", ErrFormat, s.checksums)
	}
	return append(piece, sealSums(i.sums[:len(i.sums):len(i.sums)])...), nil
}

// note keeps the checksum of a span that is handed out.
func (i *Image) note(span int, bytes []byte) {
	var passed body
	passed.pass(bytes)
	passed.end()
	i.mutex.Lock()
	defer i.mutex.Unlock()
	binary.LittleEndian.PutUint32(i.sums[4*span:], binary.LittleEndian.Uint32(passed.sums))
	if !i.known[span] {
		i.known[span] = true
		i.left--
	}
}
