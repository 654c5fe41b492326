package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
)

// stored stands between a filter of any kind and its file: what the pages say,
// and the words of each section. A kind makes one of itself to be written, and
// is made from one that was read.
type stored struct {
	header
	state
	damaged error             // of the state page that is not in force
	words   [][]uint64        // of each section
	memory  []*memory.Mapping // that they lie in, nil for Go's heap

	// live is the filter whose words these are, if others may set bits in them while
	// they are written. The file then has every bit that was set before, and some of
	// those that are set meanwhile.
	live any
}

// newStored lays a filter out as one file. Of the sections, kind, probes and
// blocks are given.
func newStored(h header, added uint64, sections []section, words [][]uint64) *stored {
	for i := range sections {
		sections[i].length = uint64(len(words[i])) * 8
	}
	return &stored{header: h, state: newState(added, sections), words: words}
}

// newState is the first state of a file with these sections, whose lengths are
// given.
func newState(added uint64, sections []section) state {
	s := state{page: 1, generation: 1, clean: true, added: added, sections: sections}
	s.layOut()
	return s
}

// close gives back the memory of a filter that was not made after all.
func (s *stored) close() {
	for _, m := range s.memory {
		m.Close()
	}
}

// mustHold refuses a file of another kind, and says what reads it.
func (s *stored) mustHold(kind uint16) error {
	if s.kind == kind {
		return nil
	}
	return fmt.Errorf("%w: the file holds %s: use %s", ErrVersion, kinds[s.kind].name, kinds[s.kind].loader)
}

// body is the checksummed part of a file as it streams by, out or in.
type body struct {
	sums []byte // of whole spans
	sum  uint32 // of the span that is under way
	used int    // bytes of that
}

func (b *body) pass(part []byte) {
	for len(part) > 0 {
		n := min(len(part), checksumSpan-b.used)
		b.sum = crc32.Update(b.sum, castagnoli, part[:n])
		b.used += n
		part = part[n:]
		if b.used == checksumSpan {
			b.end()
		}
	}
}

// end ends a span, at its full length or with the body.
func (b *body) end() {
	if b.used > 0 {
		b.sums = binary.LittleEndian.AppendUint32(b.sums, b.sum)
		b.sum, b.used = 0, 0
	}
}

// padding is what lies between two sections at most.
var padding [pageBytes]byte

// gap is how many zeros lie before the section.
func (s *stored) gap(i int) uint64 {
	if i == 0 {
		return 0
	}
	before := s.sections[i-1]
	return s.sections[i].offset - (before.offset + before.length)
}

// gapUsed refuses bytes before section i that are not zero.
func gapUsed(i int, gap []byte) error {
	if allZero(gap) {
		return nil
	}
	return fmt.Errorf("%w: bytes in use before section %d", ErrFormat, i)
}

// gaps yields the zeros before each section of a mapped file.
func (s *stored) gaps(file []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		for i, e := range s.sections {
			if !yield(i, file[e.offset-s.gap(i):e.offset]) {
				return
			}
		}
	}
}

// checkGaps looks at all of them.
func (s *stored) checkGaps(file []byte) error {
	for i, gap := range s.gaps(file) {
		if err := gapUsed(i, gap); err != nil {
			return err
		}
	}
	return nil
}

// head is the three pages of a new file.
func (s *stored) head() ([]byte, error) {
	head, err := s.header.encode()
	if err != nil {
		return nil, err
	}
	head = append(head, s.state.encode()...)
	return append(head, padding[:]...), nil // page 2: never written
}

// writeTo writes the file, a MiB at a time.
func (s *stored) writeTo(w io.Writer) (written int64, err error) {
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
	head, err := s.head()
	if err != nil {
		return 0, err
	}
	write(head, "header")
	var passed body
	if s.live != nil {
		buffer := make([]uint64, checksumSpan/8)
		for at := uint64(bodyOffset); at < s.checksums && err == nil; at += checksumSpan {
			part := s.copyBody(buffer, at)
			passed.pass(part)
			write(part, "bits")
		}
	}
	for i, words := range s.words {
		if s.live != nil {
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

// copyBody copies the span of the body that begins at a byte of the file, each word
// whole, into the buffer, and returns the copy as the file's bytes.
func (s *stored) copyBody(buffer []uint64, at uint64) []byte {
	end := min(at+checksumSpan, s.checksums)
	part := buffer[:(end-at)/8]
	clear(part) // what lies between sections
	for i, e := range s.sections {
		from, to := max(at, e.offset), min(end, e.offset+e.length)
		if from < to {
			kernel.CopyShared(part[(from-at)/8:], s.words[i][(from-e.offset)/8:(to-e.offset)/8])
		}
	}
	runtime.KeepAlive(s) // and with it the filter
	if !memory.LittleEndian {
		LittleEndianWords.toFile(part)
	}
	return memory.Bytes(part)
}

// fileParts yields the words as the bytes of the file, a checksum span at a
// time: a view of memory where the byte order allows it.
func fileParts(words []uint64) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		var buffer []byte
		for len(words) > 0 {
			n := min(len(words), checksumSpan/8)
			var part []byte
			if memory.LittleEndian {
				part = memory.Bytes(words[:n])
			} else {
				buffer = buffer[:0]
				for _, word := range words[:n] {
					buffer = binary.LittleEndian.AppendUint64(buffer, word)
				}
				part = buffer
			}
			if !yield(part) {
				return
			}
			words = words[n:]
		}
	}
}

// readStored reads a file whose length passes the check accept, and verifies all
// of it. Its memory grows only as bytes arrive.
func readStored(r io.Reader, accept func(*state) error) (*stored, error) {
	head := make([]byte, bodyOffset)
	if err := readFull(r, head); err != nil {
		return nil, err
	}
	s, err := decodeHead(head)
	if err != nil {
		return nil, err
	}
	if err := accept(&s.state); err != nil {
		return nil, err
	}
	if err := s.mustBeWhole(); err != nil {
		return nil, err
	}
	if err := s.readBody(r); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// read reads a file of limited length and makes a filter of it.
func read[F any](r io.Reader, limitBytes int64, from func(*stored) (F, error)) (made F, err error) {
	s, err := readStored(r, within(limitBytes))
	if err != nil {
		return made, err
	}
	f, err := from(s)
	if err != nil {
		s.close()
	}
	return f, err
}

// pairedPlan is the plan of a filter that a section of paired lines holds.
func pairedPlan(keys uint64, rate float64, e *section) Plan {
	return Plan{Keys: keys, Rate: rate, Bits: e.blocks * kernel.BlockBits, Probes: int(e.probes), Blocks: e.blocks, Layout: PairedLines}
}

// within accepts files up to a limit that a caller gave.
func within(limitBytes int64) func(*state) error {
	return func(s *state) error {
		if limitBytes < 0 || s.fileBytes > uint64(limitBytes) {
			return fmt.Errorf("%w: the file has %d bytes, the limit is %d", ErrLimit, s.fileBytes, limitBytes)
		}
		return nil
	}
}

// decodeHead checks the first three pages.
func decodeHead(head []byte) (*stored, error) {
	h, err := decodeHeader(head[:pageBytes])
	if err != nil {
		return nil, err
	}
	st, damaged, err := decodeState(head[pageBytes:])
	if err != nil {
		return nil, err
	}
	s := &stored{header: *h, state: *st, damaged: damaged}
	if err := s.checkKind(h.kind); err != nil {
		return nil, err
	}
	return s, nil
}

// mustBeWhole refuses a file whose checksums are not those of its body, or may
// not be.
func (s *stored) mustBeWhole() error {
	const advice = "to mend it open it for update, or else make it again from its keys, or use a saved copy"
	if s.damaged != nil {
		return fmt.Errorf("%w: %w: %s", s.damaged, ErrUnclean, advice)
	}
	if !s.clean {
		return fmt.Errorf("%w: %w, so its checksums are old: %s", ErrChecksum, ErrUnclean, advice)
	}
	return nil
}

// readBody reads the sections and the checksums behind them.
func (s *stored) readBody(r io.Reader) error {
	var passed body
	for i := range s.sections {
		zeros := make([]byte, s.gap(i))
		if err := readFull(r, zeros); err != nil {
			return err
		}
		if err := gapUsed(i, zeros); err != nil {
			return err
		}
		passed.pass(zeros)
		words, mapping, err := readWords(r, s.sections[i].length, func(part []uint64) {
			passed.pass(memory.Bytes(part))
			if !memory.LittleEndian {
				LittleEndianWords.toFile(part)
			}
		})
		s.words, s.memory = append(s.words, words), append(s.memory, mapping)
		if err != nil {
			return err
		}
	}
	passed.end()
	list := make([]byte, len(passed.sums)+4)
	if err := readFull(r, list); err != nil {
		return err
	}
	return compareSums(list, passed.sums)
}

// firstGrowth is how many words readWords allocates before the first byte has
// come, and reads at a time.
const firstGrowth = checksumSpan / 8

// openStored maps a file. All its sections lie in the one mapping.
func openStored(file *os.File) (*stored, error) {
	s, size, err := readHead(file)
	if err != nil {
		return nil, err
	}
	if s.damaged != nil && uint64(size) != s.fileBytes { // a longer table is lost, not torn
		return nil, s.damaged
	}
	if err := s.mapTo(file, false); err != nil {
		return nil, fmt.Errorf("bloom: opening: %w", err)
	}
	return s, nil
}

// mapTo maps the file, with its sections.
func (s *stored) mapTo(file *os.File, writable bool) error {
	mapping, err := mapFile(file, s.fileBytes, writable)
	if err != nil {
		return err
	}
	for _, e := range s.sections {
		s.memory = append(s.memory, mapping)
		s.words = append(s.words, memory.FileWords(mapping.Bytes()[e.offset:][:e.length]))
	}
	return nil
}

// readHead reads the first three pages of a file, and its length now. Somebody
// may be changing the file: if anything is wrong it looks again, until it has
// seen the same twice.
func readHead(file *os.File) (s *stored, size int64, err error) {
	var before []byte
	for {
		head := make([]byte, bodyOffset)
		if err := readFull(io.NewSectionReader(file, 0, bodyOffset), head); err != nil {
			return nil, 0, err
		}
		info, err := file.Stat() // after the state: the file is as long as that says, or longer
		if err != nil {
			return nil, 0, fmt.Errorf("bloom: opening: %w", err)
		}
		s, err := decodeHead(head)
		if err == nil {
			err = s.fits(info.Size())
		}
		if err == nil && s.damaged == nil || bytes.Equal(head, before) {
			return s, info.Size(), err
		}
		before = head
	}
}

// verifyMapped checks the body of a mapped file against its checksums.
func verifyMapped(file []byte) error {
	s, err := decodeHead(file[:bodyOffset])
	if err != nil {
		return err
	}
	if s.fileBytes > uint64(len(file)) {
		return fmt.Errorf("%w: %w: it has grown since it was opened: open it again", ErrChecksum, ErrUnclean)
	}
	if err := s.fits(int64(len(file))); err != nil { // it fitted when it was opened
		return err
	}
	if err := s.mustBeWhole(); err != nil {
		return err
	}
	var passed body
	passed.pass(file[bodyOffset:s.checksums])
	passed.end()
	if err := compareSums(file[s.checksums:s.fileBytes], passed.sums); err != nil {
		return err
	}
	return s.checkGaps(file)
}

// sealSums puts the checksum of the checksums behind them.
func sealSums(sums []byte) []byte {
	return binary.LittleEndian.AppendUint32(sums, crc32.Checksum(sums, castagnoli))
}

// openSums returns the checksums as they are stored, without their own.
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
			from := bodyOffset + uint64(i/4)*checksumSpan
			return fmt.Errorf("%w: the file is damaged within the MiB at byte %d", ErrChecksum, from)
		}
	}
	return nil
}

// readFull is io.ReadFull with a file that ends too early told as such.
func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the file ends too early", ErrFormat)
	}
	if err != nil {
		return fmt.Errorf("bloom: reading a filter: %w", err)
	}
	return nil
}
