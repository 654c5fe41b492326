package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/bloomery/bloom/internal/kernel"
)

// The file, drawn in docs/format.md. Everything is little-endian.
//
//	page 0     header: what the filter is; never changes
//	page 1, 2  state: where its sections lie, how many adds; written in turn
//	body       sections, each on a page boundary: the bits
//	checksums  a CRC-32C per MiB of body, and one over these
//
// A reader knows everything from the first three pages: how long the file must
// be, and where what lies. The two state pages are written in turn, each whole,
// so that one of them always stands; docs/format.md has the protocol for who
// changes a file in place.
const (
	formatMagic   = "bloomery"
	formatVersion = 0 // not frozen yet

	pageBytes  = 4096
	bodyOffset = 3 * pageBytes

	// checksumSpan is how much of the body one checksum covers.
	checksumSpan = 1 << 20

	headerMetaOffset = 64
	stateTableOffset = 64
	sectionBytes     = 64
	maxSections      = (pageBytes - 4 - stateTableOffset) / sectionBytes
)

// The kinds of filter that a file can hold.
const (
	kindFilter = 1
)

// The kinds of section.
const (
	sectionPaired = 1 // words of a paired-line block array
)

// schemePaired is the paired-line layout: scheme number 1.
const schemePaired = 1

const stateClean = 1 // flag: the checksums are those of the body

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is page 0.
type header struct {
	kind   uint16
	scheme uint32
	hash   HashIdentity
	keys   uint64  // n planned
	rate   float64 // p planned
	meta   map[string]string
}

// section is one entry of the table in a state page.
type section struct {
	kind   uint32
	probes uint32 // k
	offset uint64 // from the file's start, a multiple of 4,096
	length uint64 // bytes
	blocks uint64
}

// state is page 1 or 2.
type state struct {
	generation uint64 // of the two pages, the one with the higher number holds
	clean      bool
	added      uint64
	checksums  uint64 // offset of the checksums, right behind the body
	fileBytes  uint64
	sections   []section
}

func (h *header) encode() ([]byte, error) {
	page := make([]byte, headerMetaOffset, pageBytes)
	copy(page, formatMagic)
	le := binary.LittleEndian
	le.PutUint16(page[8:], formatVersion)
	le.PutUint16(page[10:], h.kind)
	le.PutUint32(page[12:], h.scheme)
	le.PutUint32(page[16:], uint32(h.hash.Algorithm))
	le.PutUint64(page[24:], h.hash.Key)
	le.PutUint64(page[32:], h.keys)
	le.PutUint64(page[40:], math.Float64bits(h.rate))
	page, err := appendMeta(page, h.meta)
	if err != nil {
		return nil, err
	}
	return sealPage(page), nil
}

// sealPage fills a page with zeros and puts the checksum of all that into its
// last four bytes.
func sealPage(page []byte) []byte {
	page = append(page, make([]byte, pageBytes-len(page))...)
	sum := crc32.Checksum(page[:pageBytes-4], castagnoli)
	binary.LittleEndian.PutUint32(page[pageBytes-4:], sum)
	return page
}

func pageIntact(page []byte) bool {
	return crc32.Checksum(page[:pageBytes-4], castagnoli) == binary.LittleEndian.Uint32(page[pageBytes-4:])
}

// appendMeta appends the number of pairs and then each key and value, sorted by
// key, with a 16-bit length before each string.
func appendMeta(page []byte, meta map[string]string) ([]byte, error) {
	size := 2
	for key, value := range meta {
		size += 4 + len(key) + len(value)
	}
	if room := pageBytes - 4 - headerMetaOffset; size > room {
		return nil, fmt.Errorf("%w: the metadata take %d bytes, the header page has room for %d", ErrLimit, size, room)
	}
	le := binary.LittleEndian
	page = le.AppendUint16(page, uint16(len(meta)))
	keys := make([]string, 0, len(meta))
	for key := range meta {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		for _, s := range []string{key, meta[key]} {
			page = le.AppendUint16(page, uint16(len(s)))
			page = append(page, s...)
		}
	}
	return page, nil
}

func decodeHeader(page []byte) (*header, error) {
	le := binary.LittleEndian
	if string(page[:8]) != formatMagic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrFormat, formatMagic)
	}
	if v := le.Uint16(page[8:]); v != formatVersion {
		return nil, fmt.Errorf("%w: file version %d, this release reads %d", ErrVersion, v, formatVersion)
	}
	if !pageIntact(page) {
		return nil, fmt.Errorf("%w: the header page is damaged", ErrChecksum)
	}
	h := &header{
		kind:   le.Uint16(page[10:]),
		scheme: le.Uint32(page[12:]),
		hash:   HashIdentity{HashAlgorithm(le.Uint32(page[16:])), le.Uint64(page[24:])},
		keys:   le.Uint64(page[32:]),
		rate:   math.Float64frombits(le.Uint64(page[40:])),
	}
	switch {
	case h.kind != kindFilter:
		return nil, fmt.Errorf("%w: kind %d", ErrVersion, h.kind)
	case h.scheme != schemePaired:
		return nil, fmt.Errorf("%w: scheme %d", ErrVersion, h.scheme)
	case le.Uint32(page[16:]) != uint32(XXH3) && le.Uint32(page[16:]) != uint32(SipHash):
		return nil, fmt.Errorf("%w: hash %d", ErrVersion, le.Uint32(page[16:]))
	case h.keys == 0 || h.keys > maxKeys || !(h.rate >= 0 && h.rate <= 1):
		return nil, fmt.Errorf("%w: planned for %d keys at rate %g", ErrFormat, h.keys, h.rate)
	}
	var err error
	if h.meta, err = decodeMeta(page[headerMetaOffset : pageBytes-4]); err != nil {
		return nil, err
	}
	// What no field covers must be zero, and metadata in order: a file that is
	// accepted is the one that WriteTo would write.
	if again, err := h.encode(); err != nil || !bytes.Equal(again, page) {
		return nil, fmt.Errorf("%w: the header page has bytes in use that mean nothing, or metadata out of order", ErrFormat)
	}
	return h, nil
}

func decodeMeta(b []byte) (map[string]string, error) {
	bad := fmt.Errorf("%w: the metadata run over the header page", ErrFormat)
	next := func() (string, bool) {
		if len(b) < 2 {
			return "", false
		}
		n := int(binary.LittleEndian.Uint16(b))
		if len(b) < 2+n {
			return "", false
		}
		s := string(b[2 : 2+n])
		b = b[2+n:]
		return s, true
	}
	pairs := binary.LittleEndian.Uint16(b)
	b = b[2:]
	if pairs == 0 {
		return nil, nil
	}
	meta := make(map[string]string)
	for range pairs {
		key, ok := next()
		value, ok2 := next()
		if !ok || !ok2 {
			return nil, bad
		}
		meta[key] = value
	}
	return meta, nil
}

func (s *state) encode() []byte {
	page := make([]byte, stateTableOffset, pageBytes)
	le := binary.LittleEndian
	le.PutUint64(page, s.generation)
	if s.clean {
		le.PutUint32(page[8:], stateClean)
	}
	le.PutUint32(page[12:], uint32(len(s.sections)))
	le.PutUint64(page[16:], s.added)
	le.PutUint64(page[24:], s.checksums)
	le.PutUint64(page[32:], s.fileBytes)
	for _, e := range s.sections {
		page = le.AppendUint32(page, e.kind)
		page = le.AppendUint32(page, e.probes)
		page = le.AppendUint64(page, e.offset)
		page = le.AppendUint64(page, e.length)
		page = le.AppendUint64(page, e.blocks)
		page = append(page, make([]byte, sectionBytes-32)...)
	}
	return sealPage(page)
}

// decodeState returns the state in force: of the two pages the intact one with
// the higher generation. A page never written is all zero; one that is neither
// intact nor empty is damage, as both are written whole.
func decodeState(pages []byte) (*state, error) {
	var best *state
	for i := range 2 {
		page := pages[i*pageBytes:][:pageBytes]
		if allZero(page) {
			continue
		}
		if !pageIntact(page) {
			return nil, fmt.Errorf("%w: state page %d is damaged", ErrChecksum, i+1)
		}
		s, err := decodeStatePage(page)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(s.encode(), page) {
			return nil, fmt.Errorf("%w: state page %d has bytes in use that mean nothing", ErrFormat, i+1)
		}
		switch {
		case best == nil || s.generation > best.generation:
			best = s
		case s.generation == best.generation:
			return nil, fmt.Errorf("%w: both state pages claim generation %d", ErrFormat, s.generation)
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: no state page was ever written", ErrFormat)
	}
	return best, best.check()
}

func allZero(page []byte) bool {
	for _, b := range page {
		if b != 0 {
			return false
		}
	}
	return true
}

func decodeStatePage(page []byte) (*state, error) {
	le := binary.LittleEndian
	s := &state{
		generation: le.Uint64(page),
		clean:      le.Uint32(page[8:])&stateClean != 0,
		added:      le.Uint64(page[16:]),
		checksums:  le.Uint64(page[24:]),
		fileBytes:  le.Uint64(page[32:]),
	}
	n := le.Uint32(page[12:])
	if n == 0 || n > maxSections {
		return nil, fmt.Errorf("%w: %d sections; 1 to %d are possible", ErrFormat, n, maxSections)
	}
	for i := range int(n) {
		e := page[stateTableOffset+i*sectionBytes:]
		s.sections = append(s.sections, section{
			kind:   le.Uint32(e),
			probes: le.Uint32(e[4:]),
			offset: le.Uint64(e[8:]),
			length: le.Uint64(e[16:]),
			blocks: le.Uint64(e[24:]),
		})
	}
	return s, nil
}

// check holds every number of a state against every other, so that later code
// may trust them: the sections follow each other, each on the next page
// boundary, the checksums follow the last, and the file ends there. Nothing has
// been allocated yet.
func (s *state) check() error {
	at := uint64(bodyOffset)
	for i, e := range s.sections {
		if e.kind != sectionPaired {
			return fmt.Errorf("%w: section %d has kind %d", ErrVersion, i, e.kind)
		}
		if e.probes < 2 || e.probes > maxProbes || e.probes%2 != 0 {
			return fmt.Errorf("%w: section %d has k %d", ErrFormat, i, e.probes)
		}
		if e.blocks == 0 || e.blocks > kernel.MaxBlocks {
			return fmt.Errorf("%w: section %d has %d blocks", ErrFormat, i, e.blocks)
		}
		if over, length := bits.Mul64(e.blocks, kernel.BlockBytes); over != 0 || length != e.length {
			return fmt.Errorf("%w: section %d has %d blocks in %d bytes", ErrFormat, i, e.blocks, e.length)
		}
		if e.offset != at {
			return fmt.Errorf("%w: section %d begins at byte %d, not %d", ErrFormat, i, e.offset, at)
		}
		at = e.offset + e.length // at most 3 pages + 63 sections of 2^42 bytes
		if i+1 < len(s.sections) {
			at = roundUp(at, pageBytes)
		}
	}
	if s.checksums != at || s.fileBytes != at+checksumBytes(at-bodyOffset) {
		return fmt.Errorf("%w: checksums at byte %d of %d, where the sections end at %d", ErrFormat, s.checksums, s.fileBytes, at)
	}
	return nil
}

// fits holds the length that the state tells against that of the file.
func (s *state) fits(size int64) error {
	if uint64(size) != s.fileBytes {
		return fmt.Errorf("%w: the file has %d bytes, its header says %d", ErrFormat, size, s.fileBytes)
	}
	return nil
}

func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }

// checksumBytes is the length of the checksums of so much body.
func checksumBytes(body uint64) uint64 {
	return (roundUp(body, checksumSpan)/checksumSpan + 1) * 4
}

// layOut builds the header and state of the filter as one file.
func (f *Filter) layOut() (*header, *state) {
	length := f.plan.Bytes()
	end := bodyOffset + length
	return &header{
			kind:   kindFilter,
			scheme: schemePaired,
			hash:   f.hash.id,
			keys:   f.plan.Keys,
			rate:   f.plan.Rate,
			meta:   f.meta,
		}, &state{
			generation: 1,
			clean:      true,
			added:      f.added,
			checksums:  end,
			fileBytes:  end + checksumBytes(length),
			sections: []section{{
				kind:   sectionPaired,
				probes: uint32(f.plan.Probes),
				offset: bodyOffset,
				length: length,
				blocks: f.plan.Blocks,
			}},
		}
}

// FileBytes is the length of the file that WriteTo writes, known beforehand.
func (f *Filter) FileBytes() int64 {
	_, s := f.layOut()
	return int64(s.fileBytes)
}

// WriteTo writes the filter as a file, in Bloomery's format (docs/format.md). It
// needs no buffered writer: it writes a MiB at a time. The same filter gives the
// same bytes on every machine. The secret of a keyed filter is not written.
func (f *Filter) WriteTo(w io.Writer) (int64, error) {
	f.mustBeOpen()
	h, s := f.layOut()
	head, err := h.encode()
	if err != nil {
		return 0, err
	}
	head = append(head, s.encode()...)
	head = append(head, make([]byte, pageBytes)...) // page 2: never written
	n, err := w.Write(head)
	written := int64(n)
	if err != nil {
		return written, fmt.Errorf("bloom: writing the header: %w", err)
	}
	sums := make([]byte, 0, checksumBytes(f.plan.Bytes()))
	for part := range fileParts(f.bits.Words) {
		sums = binary.LittleEndian.AppendUint32(sums, crc32.Checksum(part, castagnoli))
		n, err := w.Write(part)
		written += int64(n)
		if err != nil {
			return written, fmt.Errorf("bloom: writing the bits: %w", err)
		}
	}
	f.keepAlive()
	sums = binary.LittleEndian.AppendUint32(sums, crc32.Checksum(sums, castagnoli))
	n, err = w.Write(sums)
	written += int64(n)
	if err != nil {
		return written, fmt.Errorf("bloom: writing the checksums: %w", err)
	}
	return written, nil
}

// fileParts yields the words as the bytes of the file, a checksum span at a
// time: a view of memory where the byte order allows it.
func fileParts(words []uint64) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		var buffer []byte
		for len(words) > 0 {
			n := min(len(words), checksumSpan/8)
			var part []byte
			if littleEndian {
				part = wordBytes(words[:n])
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

// Read reads a filter that WriteTo wrote and verifies all of it: every field,
// every length and every checksum. limitBytes bounds the file it accepts; the
// memory it takes grows only as bytes arrive, whatever the header claims. It
// reads nothing past the filter's end.
//
// The error wraps [ErrFormat], [ErrVersion], [ErrChecksum], [ErrLimit] or
// [ErrBudget] (no memory), or is the reader's own. A keyed filter comes back
// locked: see [Filter.SetSecret].
func Read(r io.Reader, limitBytes int64) (*Filter, error) {
	return readFilter(r, func(s *state) error {
		if limitBytes < 0 || s.fileBytes > uint64(limitBytes) {
			return fmt.Errorf("%w: the file has %d bytes, the limit is %d", ErrLimit, s.fileBytes, limitBytes)
		}
		return nil
	})
}

// readFilter reads a filter whose length passes the check accept.
func readFilter(r io.Reader, accept func(*state) error) (*Filter, error) {
	head := make([]byte, bodyOffset)
	if err := readFull(r, head); err != nil {
		return nil, err
	}
	f, s, err := decodeHead(head)
	if err != nil {
		return nil, err
	}
	if err := accept(s); err != nil {
		return nil, err
	}
	if !s.clean {
		return nil, fmt.Errorf("%w: the file was not closed cleanly, its checksums are old: make it again from its keys, or use a saved copy", ErrChecksum)
	}
	sums, err := f.readBody(r, s.sections[0].length)
	if err == nil {
		err = checkStoredSums(r, sums)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// decodeHead makes a filter without its words from the first three pages.
func decodeHead(head []byte) (*Filter, *state, error) {
	h, err := decodeHeader(head[:pageBytes])
	if err != nil {
		return nil, nil, err
	}
	s, err := decodeState(head[pageBytes:])
	if err != nil {
		return nil, nil, err
	}
	if len(s.sections) != 1 {
		return nil, nil, fmt.Errorf("%w: a filter has one section, not %d", ErrFormat, len(s.sections))
	}
	e := s.sections[0]
	plan := Plan{Keys: h.keys, Rate: h.rate, Bits: e.blocks * kernel.BlockBits, Probes: int(e.probes), Blocks: e.blocks, Layout: PairedLines}
	f := &Filter{
		bits:  kernel.Paired{Blocks: e.blocks, Rows: kernel.RowsFor(plan.Probes / 2)},
		hash:  hasher{id: h.hash, locked: h.hash.Algorithm == SipHash},
		added: s.added,
		plan:  plan,
		meta:  h.meta,
	}
	return f, s, nil
}

// firstGrowth is how many words readBody allocates before the first byte has
// come.
const firstGrowth = checksumSpan / 8

// readBody reads length bytes of words and returns their checksums. It doubles
// the room each time that is full, so it never holds more than twice what has
// really arrived; the last step is exact.
func (f *Filter) readBody(r io.Reader, length uint64) (sums []byte, err error) {
	total := length / 8
	have := uint64(0)
	for have < total {
		if have == uint64(len(f.bits.Words)) {
			words, memory, err := newWords(min(total, max(2*have, firstGrowth)))
			if err != nil {
				return nil, err
			}
			copy(words, f.bits.Words)
			f.memory.close()
			f.bits.Words, f.memory = words, memory
		}
		n := min(total-have, checksumSpan/8)
		words := f.bits.Words[have:][:n]
		part := wordBytes(words)
		if err := readFull(r, part); err != nil {
			return nil, err
		}
		sums = binary.LittleEndian.AppendUint32(sums, crc32.Checksum(part, castagnoli))
		if !littleEndian {
			for i, word := range words {
				words[i] = bits.ReverseBytes64(word)
			}
		}
		have += n
	}
	return sums, nil
}

// checkStoredSums reads the checksums at the end of the file and holds them
// against those computed from the body.
func checkStoredSums(r io.Reader, sums []byte) error {
	stored := make([]byte, len(sums)+4)
	if err := readFull(r, stored); err != nil {
		return err
	}
	return compareSums(stored, sums)
}

func compareSums(stored, sums []byte) error {
	list, own := stored[:len(stored)-4], stored[len(stored)-4:]
	if crc32.Checksum(list, castagnoli) != binary.LittleEndian.Uint32(own) {
		return fmt.Errorf("%w: the list of checksums is damaged", ErrChecksum)
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
