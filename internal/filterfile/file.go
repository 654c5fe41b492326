package filterfile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
)

// File stands between a filter of any kind and its file: what the pages say, and
// the words of each section.
type File struct {
	Header
	State
	Words   [][]uint64        // of each section
	Memory  []*memory.Mapping // of each section, nil if it is on Go's heap
	damaged error             // what is wrong with the state page that is not in force

	// Live is the filter that owns the words, if other goroutines may set bits in them
	// while they are written. The file then has every bit that was set before, and some
	// of those set meanwhile.
	Live any
}

// New lays out a filter as a file to be written. It fills in the lengths and offsets of
// the sections.
func New(h Header, added uint64, sections []Section, words [][]uint64) *File {
	for i := range sections {
		sections[i].Length = uint64(len(words[i])) * 8
	}
	f := NewEmpty(h, sections)
	f.Added, f.Words = added, words
	return f
}

// NewEmpty is New for an empty filter whose file and memory [Create] will make. The
// caller sets the lengths of the sections.
func NewEmpty(h Header, sections []Section) *File {
	f := &File{Header: h, State: State{Page: 1, Generation: 1, Clean: true, Sections: sections}}
	f.layOut()
	return f
}

// Close frees the memory of a file that no filter was made from.
func (s *File) Close() {
	for _, m := range s.Memory {
		m.Close()
	}
}

// MustHold returns an error if the file is of another kind; the error names the
// function that reads that kind.
func (s *File) MustHold(kind Kind) error {
	if s.Kind == kind {
		return nil
	}
	return fmt.Errorf("%w: the file holds %s: use %s", ErrVersion, kinds[s.Kind].article, kinds[s.Kind].loader)
}

// body computes the checksums of a file's body as it is read or written.
type body struct {
	sums []byte // of whole spans
	sum  uint32 // of the current span
	used int    // bytes of the current span so far
}

func (b *body) pass(part []byte) {
	for len(part) > 0 {
		n := min(len(part), SpanBytes-b.used)
		b.sum = crc32.Update(b.sum, castagnoli, part[:n])
		b.used += n
		part = part[n:]
		if b.used == SpanBytes {
			b.end()
		}
	}
}

// end ends a span, when it is full or the body ends.
func (b *body) end() {
	if b.used > 0 {
		b.sums = binary.LittleEndian.AppendUint32(b.sums, b.sum)
		b.sum, b.used = 0, 0
	}
}

// padding is zeros: at most this many lie between two sections.
var padding [PageBytes]byte

// gap returns the number of zeros before section i.
func (s *File) gap(i int) uint64 {
	if i == 0 {
		return 0
	}
	before := s.Sections[i-1]
	return s.Sections[i].Offset - (before.Offset + before.Length)
}

// gapUsed returns an error if bytes before section i are not zero.
func gapUsed(i int, gap []byte) error {
	if allZero(gap) {
		return nil
	}
	return fmt.Errorf("%w: bytes in use before section %d", ErrFormat, i)
}

// gaps yields the zeros before each section of a mapped file.
func (s *File) gaps(file []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		for i, e := range s.Sections {
			if !yield(i, file[e.Offset-s.gap(i):e.Offset]) {
				return
			}
		}
	}
}

// checkGaps checks that all gaps are zero.
func (s *File) checkGaps(file []byte) error {
	for i, gap := range s.gaps(file) {
		if err := gapUsed(i, gap); err != nil {
			return err
		}
	}
	return nil
}

// Head returns the three pages of a new file; see [DecodeHead].
func (s *File) Head() ([]byte, error) {
	head, err := s.Header.encode()
	if err != nil {
		return nil, err
	}
	head = append(head, s.State.Encode()...)
	return append(head, padding[:]...), nil // page 2: never written
}

// WriteTo writes the file, a MiB at a time.
func (s *File) WriteTo(w io.Writer) (written int64, err error) {
	write := func(b []byte, what string) {
		if err != nil {
			return
		}
		var n int
		n, err = w.Write(b)
		written += int64(n)
		if err != nil {
			err = fmt.Errorf("bloom: writing the %s: %w", what, err)
		}
	}
	head, err := s.Head()
	if err != nil {
		return 0, err
	}
	write(head, "header")
	var passed body
	if s.Live != nil {
		buffer := make([]uint64, SpanBytes/8)
		for at := uint64(BodyOffset); at < s.Checksums && err == nil; at += SpanBytes {
			part := s.copyBody(buffer, at)
			passed.pass(part)
			write(part, "bits")
		}
	}
	for i, words := range s.Words {
		if s.Live != nil {
			break
		}
		zeros := padding[:s.gap(i)]
		passed.pass(zeros)
		write(zeros, "bits")
		for part := range fileParts(words) {
			passed.pass(part)
			write(part, "bits")
			if err != nil {
				return written, err
			}
		}
	}
	passed.end()
	write(sealSums(passed.sums), "checksums")
	return written, err
}

// copyBody copies the span of the body that begins at byte at of the file to the
// buffer, each word atomically, and returns the copy as the file's bytes.
func (s *File) copyBody(buffer []uint64, at uint64) []byte {
	end := min(at+SpanBytes, s.Checksums)
	part := buffer[:(end-at)/8]
	clear(part) // the gaps between sections
	for i, e := range s.Sections {
		from, to := max(at, e.Offset), min(end, e.Offset+e.Length)
		if from < to {
			kernel.CopyShared(part[(from-at)/8:], s.Words[i][(from-e.Offset)/8:(to-e.Offset)/8])
		}
	}
	runtime.KeepAlive(s) // and thus the filter
	LittleEndian(part)
	return memory.Bytes(part)
}

// sealSums appends the checksum of the checksums.
func sealSums(sums []byte) []byte {
	return binary.LittleEndian.AppendUint32(sums, crc32.Checksum(sums, castagnoli))
}

// openSums returns the stored checksums without the checksum of the checksums.
func openSums(stored []byte) ([]byte, error) {
	list, own := stored[:len(stored)-4], stored[len(stored)-4:]
	if crc32.Checksum(list, castagnoli) != binary.LittleEndian.Uint32(own) {
		return nil, fmt.Errorf("%w: the list of checksums is damaged", ErrChecksum)
	}
	return list, nil
}

func compareSums(stored, sums []byte) error {
	list, err := openSums(stored)
	if err != nil {
		return err
	}
	for i := 0; i < len(list); i += 4 {
		if !slices.Equal(list[i:i+4], sums[i:i+4]) {
			from := BodyOffset + uint64(i/4)*SpanBytes
			return fmt.Errorf("%w: the file is damaged within the MiB at byte %d", ErrChecksum, from)
		}
	}
	return nil
}
