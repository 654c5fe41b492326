package bloom

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/scheme"
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
// changes a file in place, and update_file.go is the one who does.
const (
	formatMagic   = "bloomery"
	formatVersion = 1 // frozen: testdata/golden loads for ever

	pageBytes  = 4096
	bodyOffset = 3 * pageBytes

	// checksumSpan is how much of the body one checksum covers.
	checksumSpan = 1 << 20

	headerMetaOffset = 64
	stateTableOffset = 64
	sectionBytes     = 64
	maxSections      = (pageBytes - 4 - stateTableOffset) / sectionBytes
)

// The kinds of filter that a file can hold. Numbers are added, never changed.
const (
	kindFilter     = 1
	kindSplitBlock = 2
	kindClassic    = 3
	kindCounting   = 4
	kindScalable   = 5
	kindWindow     = 6
	kindExceptions = 7
)

// A kind says what its files look like.
type kind struct {
	name     string
	loader   string          // that reads them
	hashes   []HashAlgorithm // that it may be filled with
	sections []uint32        // their kinds
	more     bool            // there may be more of the last one
}

var ours = []HashAlgorithm{XXH3, SipHash}

var kinds = map[uint16]kind{
	kindFilter:     {"a Filter", "Load", ours, []uint32{sectionPaired}, false},
	kindSplitBlock: {"a SplitBlock", "LoadSplitBlock", []HashAlgorithm{XXH64, SipHash}, []uint32{sectionSplit}, false},
	kindClassic:    {"a Classic", "LoadClassic", []HashAlgorithm{0, XXH3, SipHash, XXH64}, []uint32{sectionBits}, false},
	kindCounting:   {"a Counting", "LoadCounting", ours, []uint32{sectionCounters}, false},
	kindScalable:   {"a Scalable", "LoadScalable", ours, []uint32{sectionPaired}, true},
	kindWindow:     {"a Window", "LoadWindow", ours, []uint32{sectionPaired}, true},
	kindExceptions: {"a Filter with Exceptions", "LoadExceptions", ours, []uint32{sectionPaired, sectionKeys}, false},
}

// The schemes of all kinds but a Classic, whose schemes have numbers of their
// own.
const (
	schemePaired = 1 // paired lines
	schemeSplit  = 2 // Parquet's split blocks
)

// schemeFits reports whether a kind knows the scheme.
func schemeFits(kind uint16, scheme uint32) bool {
	switch kind {
	case kindClassic:
		return scheme <= math.MaxUint16 // classicFrom looks closer
	case kindSplitBlock:
		return scheme == schemeSplit
	}
	return scheme == schemePaired
}

// The kinds of section.
const (
	sectionPaired   = 1 // bits in blocks of paired lines
	sectionSplit    = 2 // bits in split blocks
	sectionBits     = 3 // bits, any number: the blocks are single bits
	sectionCounters = 4 // counters in blocks of paired lines
	sectionKeys     = 5 // keys: the blocks are keys
)

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

	// parameters are the kind's own: of a Scalable its growth and limit, of a
	// Window its generations and span, of others zero.
	parameters [2]uint64
}

// section is one entry of the table in a state page.
type section struct {
	kind   uint32
	probes uint32 // k
	offset uint64 // from the file's start, a multiple of 4,096
	length uint64 // bytes
	blocks uint64

	// Of the layers of a Scalable and the generations of a Window, zero for
	// others: n and p planned, adds that were new, and when a generation began,
	// in nanoseconds since 1970.
	keys  uint64
	rate  float64
	added uint64
	start int64
}

// state is page 1 or 2.
type state struct {
	page       int    // 1 or 2, where it stands
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
	le.PutUint64(page[48:], h.parameters[0])
	le.PutUint64(page[56:], h.parameters[1])
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

		parameters: [2]uint64{le.Uint64(page[48:]), le.Uint64(page[56:])},
	}
	known, ok := kinds[h.kind]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: kind %d", ErrVersion, h.kind)
	case !schemeFits(h.kind, h.scheme):
		return nil, fmt.Errorf("%w: scheme %d in the file of %s", ErrVersion, h.scheme, known.name)
	case le.Uint32(page[16:]) > math.MaxUint8 || !slices.Contains(known.hashes, h.hash.Algorithm):
		return nil, fmt.Errorf("%w: hash %d", ErrVersion, le.Uint32(page[16:]))
	case h.keys == 0 || h.keys > maxKeys || !(h.rate >= 0 && h.rate <= 1):
		return nil, fmt.Errorf("%w: planned for %d keys at rate %g", ErrFormat, h.keys, h.rate)
	case h.parameters != [2]uint64{} && h.kind != kindScalable && h.kind != kindWindow:
		return nil, fmt.Errorf("%w: the header page has bytes in use that mean nothing to %s", ErrFormat, known.name)
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
		page = le.AppendUint64(page, e.keys)
		page = le.AppendUint64(page, math.Float64bits(e.rate))
		page = le.AppendUint64(page, e.added)
		page = le.AppendUint64(page, uint64(e.start))
	}
	return sealPage(page)
}

// decodeState returns the state in force: of the two pages the intact one with
// the higher generation. A page never written is all zero. One that is neither
// intact nor empty was torn when the power failed, or is damage; then damaged
// says so, and the state is that of the other page. Who reads all of a file
// refuses that; who maps it needs the state's sections only, and they are right.
func decodeState(pages []byte) (best *state, damaged, err error) {
	for i := range 2 {
		page := pages[i*pageBytes:][:pageBytes]
		if allZero(page) {
			continue
		}
		if !pageIntact(page) {
			damaged = fmt.Errorf("%w: state page %d is damaged", ErrChecksum, i+1)
			continue
		}
		s, err := decodeStatePage(page)
		if err != nil {
			return nil, nil, err
		}
		if !bytes.Equal(s.encode(), page) {
			return nil, nil, fmt.Errorf("%w: state page %d has bytes in use that mean nothing", ErrFormat, i+1)
		}
		s.page = i + 1
		switch {
		case best == nil || s.generation > best.generation:
			best = s
		case s.generation == best.generation:
			return nil, nil, fmt.Errorf("%w: both state pages claim generation %d", ErrFormat, s.generation)
		}
	}
	switch {
	case best != nil:
		return best, damaged, best.check()
	case damaged != nil:
		return nil, nil, damaged
	}
	return nil, nil, fmt.Errorf("%w: no state page was ever written", ErrFormat)
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
			keys:   le.Uint64(e[32:]),
			rate:   math.Float64frombits(le.Uint64(e[40:])),
			added:  le.Uint64(e[48:]),
			start:  int64(le.Uint64(e[56:])),
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
		if err := e.check(i); err != nil {
			return err
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

// check holds the numbers of section i against each other.
func (e *section) check(i int) error {
	bad := func(what string, value any) error {
		return fmt.Errorf("%w: section %d has %s %v", ErrFormat, i, what, value)
	}
	var probesFit bool
	var most, length uint64
	over := uint64(0)
	switch e.kind {
	case sectionPaired, sectionCounters:
		probesFit = e.probes >= 2 && e.probes <= maxProbes && e.probes%2 == 0
		most = kernel.MaxBlocks
		over, length = bits.Mul64(e.blocks, kernel.BlockBytes)
		if e.kind == sectionCounters {
			length *= kernel.CounterDigits // blocks are held to most first
		}
	case sectionSplit:
		probesFit = e.probes == splitProbes
		most = kernel.MaxSplitBlocks
		over, length = bits.Mul64(e.blocks, kernel.SplitBlockBytes)
	case sectionBits:
		probesFit = e.probes >= 1 && e.probes <= scheme.MaxProbes
		most = scheme.MaxBits
		length = (e.blocks/64 + (e.blocks%64+63)/64) * 8
	case sectionKeys:
		probesFit = e.probes == 0
		most = MaxExceptions
		length = min(e.length/8*8, 4*MaxExceptions+MaxExceptionBytes+8)
	default:
		return fmt.Errorf("%w: section %d has kind %d", ErrVersion, i, e.kind)
	}
	switch {
	case !probesFit:
		return bad("k", e.probes)
	case e.blocks > most || e.blocks == 0 && e.kind != sectionKeys:
		return fmt.Errorf("%w: section %d has %d blocks", ErrFormat, i, e.blocks)
	case over != 0 || length != e.length:
		return fmt.Errorf("%w: section %d has %d blocks in %d bytes", ErrFormat, i, e.blocks, e.length)
	case e.keys > maxKeys:
		return bad("keys", e.keys)
	case !(e.rate >= 0 && e.rate <= 1):
		return bad("rate", e.rate)
	}
	return nil
}

// checkKind holds the sections against the kind of filter.
func (s *state) checkKind(number uint16) error {
	k := kinds[number]
	if n := len(s.sections); n < len(k.sections) || n > len(k.sections) && !k.more {
		return fmt.Errorf("%w: %s has %d sections", ErrFormat, k.name, n)
	}
	layers := number == kindScalable || number == kindWindow
	added := uint64(0)
	for i, e := range s.sections {
		if want := k.sections[min(i, len(k.sections)-1)]; e.kind != want {
			return fmt.Errorf("%w: section %d of %s has kind %d, not %d", ErrFormat, i, k.name, e.kind, want)
		}
		unused := e.keys == 0 && math.Float64bits(e.rate) == 0 && e.added == 0 && e.start == 0
		if layers && e.keys == 0 || !layers && !unused || e.start != 0 && number != kindWindow {
			return fmt.Errorf("%w: section %d has bytes in use that mean nothing to %s, or none that must be", ErrFormat, i, k.name)
		}
		added += e.added
	}
	if layers && added != s.added {
		return fmt.Errorf("%w: %d keys added, in the sections %d", ErrFormat, s.added, added)
	}
	return nil
}

// layOut gives the sections, whose lengths are known, their places.
func (s *state) layOut() {
	at := uint64(bodyOffset)
	for i := range s.sections {
		e := &s.sections[i]
		e.offset = roundUp(at, pageBytes)
		at = e.offset + e.length
	}
	s.checksums = at
	s.fileBytes = at + checksumBytes(at-bodyOffset)
}

// fits holds the length that the state tells against that of the file. While a
// file is being changed it may be longer: it grows before its state says so.
func (s *state) fits(size int64) error {
	if uint64(size) != s.fileBytes && (s.clean || uint64(size) < s.fileBytes) {
		return fmt.Errorf("%w: the file has %d bytes, its header says %d", ErrFormat, size, s.fileBytes)
	}
	return nil
}

func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }

// checksumBytes is the length of the checksums of so much body.
func checksumBytes(body uint64) uint64 {
	return (roundUp(body, checksumSpan)/checksumSpan + 1) * 4
}
