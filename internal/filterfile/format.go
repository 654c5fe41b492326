package filterfile

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
	"github.com/bloomery/bloom/internal/sizing"
)

const (
	Magic   = "bloomery"
	Version = 1 // frozen: the files in testdata/golden must always load

	PageBytes  = 4096
	BodyOffset = 3 * PageBytes

	// SpanBytes is how much of the body one checksum covers.
	SpanBytes = 1 << 20

	stateTableOffset = 64
	sectionBytes     = 64

	// MaxSections is the number of sections that a state page has room for.
	MaxSections = (PageBytes - 4 - stateTableOffset) / sectionBytes
)

// The metadata follow the header's fields: a count, and two lengths for each pair.
// MaxMetaBytes is their maximum size, including the count and the lengths.
const (
	headerMetaOffset = 64
	MaxMetaBytes     = PageBytes - 4 - headerMetaOffset
)

// Limits on the fields of a header or a section.
const (
	MaxKeys = sizing.MaxKeys // n

	MaxPairedProbes = 16 // k of paired lines
	SplitProbes     = 8  // k of split blocks, always

	MaxBuckets = 1 << 34 // of fingerprints

	MaxListed      = 1 << 20  // keys in a list of keys
	MaxListedBytes = 64 << 20 // bytes of these keys
)

const stateClean = 1 // flag: the checksums are those of the body

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is page 0: what the filter is.
type Header struct {
	Kind   Kind
	Scheme uint32
	Hash   Hash
	Keys   uint64  // n planned
	Rate   float64 // p planned
	Meta   map[string]string

	// Parameters depend on the kind: growth and limit of a Scalable, a ScalableCounting
	// or a Cuckoo, generations and span of a Window, otherwise zero.
	Parameters [2]uint64
}

// Hash names the function that filled the filter.
type Hash struct {
	Algorithm uint32
	Key       uint64 // its seed, or the fingerprint of its secret
}

// Section is one entry of the table in a state page.
type Section struct {
	Kind   uint32
	Probes uint32 // k
	Offset uint64 // from the file's start, a multiple of 4,096
	Length uint64 // bytes
	Blocks uint64

	// For the layers of a Scalable, a ScalableCounting or a Cuckoo and the generations of a
	// Window; zero for other kinds. n and p planned, adds that were new, and when a
	// generation began, in nanoseconds since 1970. For a ScalableCounting the adds are all,
	// less removals. For a Cuckoo n is the number of slots, and p zero.
	Keys  uint64
	Rate  float64
	Added uint64
	Start int64
}

// State is page 1 or 2: where the sections lie, and how many adds were new.
type State struct {
	Page       int    // 1 or 2: the page that holds it
	Generation uint64 // the page with the higher number is in force
	Clean      bool   // the checksums are those of the body
	Added      uint64
	Checksums  uint64 // offset of the checksums, right after the body
	FileBytes  uint64
	Removed    uint64 // of a Cuckoo: removals since it was compacted; of a ScalableCounting: all
	Dropped    uint64 // of a ScalableCounting: the layers it no longer has
	Sections   []Section
}

func (h *Header) encode() ([]byte, error) {
	page := make([]byte, headerMetaOffset, PageBytes)
	copy(page, Magic)
	le := binary.LittleEndian
	le.PutUint16(page[8:], Version)
	le.PutUint16(page[10:], uint16(h.Kind))
	le.PutUint32(page[12:], h.Scheme)
	le.PutUint32(page[16:], h.Hash.Algorithm)
	le.PutUint64(page[24:], h.Hash.Key)
	le.PutUint64(page[32:], h.Keys)
	le.PutUint64(page[40:], math.Float64bits(h.Rate))
	le.PutUint64(page[48:], h.Parameters[0])
	le.PutUint64(page[56:], h.Parameters[1])
	page, err := appendMeta(page, h.Meta)
	if err != nil {
		return nil, err
	}
	return sealPage(page), nil
}

// sealPage pads a page with zeros and stores its checksum in the last four bytes.
func sealPage(page []byte) []byte {
	page = append(page, make([]byte, PageBytes-len(page))...)
	sum := crc32.Checksum(page[:PageBytes-4], castagnoli)
	binary.LittleEndian.PutUint32(page[PageBytes-4:], sum)
	return page
}

func pageIntact(page []byte) bool {
	return crc32.Checksum(page[:PageBytes-4], castagnoli) == binary.LittleEndian.Uint32(page[PageBytes-4:])
}

// CheckMeta returns an error that wraps [ErrLimit] if a header page has no room for
// the metadata.
func CheckMeta(meta map[string]string) error {
	_, err := appendMeta(nil, meta)
	return err
}

// appendMeta appends the number of pairs and then each key and value, sorted by
// key, with a 16-bit length before each string.
func appendMeta(page []byte, meta map[string]string) ([]byte, error) {
	size := 2
	for key, value := range meta {
		size += 4 + len(key) + len(value)
	}
	if room := MaxMetaBytes; size > room {
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

func decodeHeader(page []byte) (*Header, error) {
	le := binary.LittleEndian
	if string(page[:8]) != Magic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrFormat, Magic)
	}
	if v := le.Uint16(page[8:]); v != Version {
		return nil, fmt.Errorf("%w: file version %d, this release reads %d", ErrVersion, v, Version)
	}
	if !pageIntact(page) {
		return nil, fmt.Errorf("%w: the header page is damaged", ErrChecksum)
	}
	h := &Header{
		Kind:   Kind(le.Uint16(page[10:])),
		Scheme: le.Uint32(page[12:]),
		Hash:   Hash{le.Uint32(page[16:]), le.Uint64(page[24:])},
		Keys:   le.Uint64(page[32:]),
		Rate:   math.Float64frombits(le.Uint64(page[40:])),

		Parameters: [2]uint64{le.Uint64(page[48:]), le.Uint64(page[56:])},
	}
	known, ok := kinds[h.Kind]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: kind %d", ErrVersion, uint16(h.Kind))
	case !h.Kind.schemeFits(h.Scheme):
		return nil, fmt.Errorf("%w: scheme %d in the file of %s", ErrVersion, h.Scheme, known.article)
	case !slices.Contains(known.hashes, h.Hash.Algorithm):
		return nil, fmt.Errorf("%w: hash %d", ErrVersion, h.Hash.Algorithm)
	case h.Keys == 0 || h.Keys > MaxKeys || !(h.Rate >= 0 && h.Rate <= 1):
		return nil, fmt.Errorf("%w: planned for %d keys at rate %g", ErrFormat, h.Keys, h.Rate)
	case h.Parameters != [2]uint64{} && !h.Kind.layered():
		return nil, fmt.Errorf("%w: the header page has bytes in use that mean nothing to %s", ErrFormat, known.article)
	}
	var err error
	if h.Meta, err = decodeMeta(page[headerMetaOffset : PageBytes-4]); err != nil {
		return nil, err
	}
	// Bytes outside the fields must be zero, and the metadata sorted: an accepted file
	// is exactly what WriteTo would write.
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

func (s *State) Encode() []byte {
	page := make([]byte, stateTableOffset, PageBytes)
	le := binary.LittleEndian
	le.PutUint64(page, s.Generation)
	if s.Clean {
		le.PutUint32(page[8:], stateClean)
	}
	le.PutUint32(page[12:], uint32(len(s.Sections)))
	le.PutUint64(page[16:], s.Added)
	le.PutUint64(page[24:], s.Checksums)
	le.PutUint64(page[32:], s.FileBytes)
	le.PutUint64(page[40:], s.Removed)
	le.PutUint64(page[48:], s.Dropped)
	for _, e := range s.Sections {
		page = le.AppendUint32(page, e.Kind)
		page = le.AppendUint32(page, e.Probes)
		page = le.AppendUint64(page, e.Offset)
		page = le.AppendUint64(page, e.Length)
		page = le.AppendUint64(page, e.Blocks)
		page = le.AppendUint64(page, e.Keys)
		page = le.AppendUint64(page, math.Float64bits(e.Rate))
		page = le.AppendUint64(page, e.Added)
		page = le.AppendUint64(page, uint64(e.Start))
	}
	return sealPage(page)
}

// decodeState returns the state in force: that of the intact page with the higher
// generation. A page that was never written is all zeros. A page that is neither intact
// nor empty was torn in a power failure, or is damaged; then damaged says so, and the
// state is that of the other page. Reading a whole file refuses such a file; mapping it
// does not, because it needs only the state's sections, and they are right.
func decodeState(pages []byte) (best *State, damaged, err error) {
	for i := range 2 {
		page := pages[i*PageBytes:][:PageBytes]
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
		if !bytes.Equal(s.Encode(), page) {
			return nil, nil, fmt.Errorf("%w: state page %d has bytes in use that mean nothing", ErrFormat, i+1)
		}
		s.Page = i + 1
		switch {
		case best == nil || s.Generation > best.Generation:
			best = s
		case s.Generation == best.Generation:
			return nil, nil, fmt.Errorf("%w: both state pages claim generation %d", ErrFormat, s.Generation)
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

func decodeStatePage(page []byte) (*State, error) {
	le := binary.LittleEndian
	s := &State{
		Generation: le.Uint64(page),
		Clean:      le.Uint32(page[8:])&stateClean != 0,
		Added:      le.Uint64(page[16:]),
		Checksums:  le.Uint64(page[24:]),
		FileBytes:  le.Uint64(page[32:]),
		Removed:    le.Uint64(page[40:]),
		Dropped:    le.Uint64(page[48:]),
	}
	n := le.Uint32(page[12:])
	if n == 0 || n > MaxSections {
		return nil, fmt.Errorf("%w: %d sections; 1 to %d are possible", ErrFormat, n, MaxSections)
	}
	for i := range int(n) {
		e := page[stateTableOffset+i*sectionBytes:]
		s.Sections = append(s.Sections, Section{
			Kind:   le.Uint32(e),
			Probes: le.Uint32(e[4:]),
			Offset: le.Uint64(e[8:]),
			Length: le.Uint64(e[16:]),
			Blocks: le.Uint64(e[24:]),
			Keys:   le.Uint64(e[32:]),
			Rate:   math.Float64frombits(le.Uint64(e[40:])),
			Added:  le.Uint64(e[48:]),
			Start:  int64(le.Uint64(e[56:])),
		})
	}
	return s, nil
}

// check compares all numbers of a state with each other, so that later code can trust
// them: each section begins on the next page boundary after the one before, the
// checksums follow the last section, and the file ends after them. Nothing has been
// allocated yet.
func (s *State) check() error {
	at := uint64(BodyOffset)
	for i, e := range s.Sections {
		if err := e.check(i); err != nil {
			return err
		}
		if e.Offset != at {
			return fmt.Errorf("%w: section %d begins at byte %d, not %d", ErrFormat, i, e.Offset, at)
		}
		at = e.Offset + e.Length // at most 3 pages + 63 sections of 2^42 bytes
		if i+1 < len(s.Sections) {
			at = roundUp(at, PageBytes)
		}
	}
	if s.Checksums != at || s.FileBytes != at+checksumBytes(at-BodyOffset) {
		return fmt.Errorf("%w: checksums at byte %d of %d, where the sections end at %d", ErrFormat, s.Checksums, s.FileBytes, at)
	}
	return nil
}

// check compares the numbers of section i with each other.
func (e *Section) check(i int) error {
	bad := func(what string, value any) error {
		return fmt.Errorf("%w: section %d has %s %v", ErrFormat, i, what, value)
	}
	var probesFit bool
	var most, length uint64
	over := uint64(0)
	switch e.Kind {
	case SectionPaired, SectionCounters:
		probesFit = e.Probes >= 2 && e.Probes <= MaxPairedProbes && e.Probes%2 == 0
		most = kernel.MaxBlocks
		over, length = bits.Mul64(e.Blocks, kernel.BlockBytes)
		if e.Kind == SectionCounters {
			length *= kernel.CounterDigits // an overflow does no harm: Blocks is compared with most first
		}
	case SectionSplit:
		probesFit = e.Probes == SplitProbes
		most = kernel.MaxSplitBlocks
		over, length = bits.Mul64(e.Blocks, kernel.SplitBlockBytes)
	case SectionBits:
		probesFit = e.Probes >= 1 && e.Probes <= scheme.MaxProbes
		most = scheme.MaxBits
		length = (e.Blocks/64 + (e.Blocks%64+63)/64) * 8
	case SectionKeys:
		probesFit = e.Probes == 0
		most = MaxListed
		length = min(e.Length/8*8, 4*MaxListed+MaxListedBytes+8)
	case SectionBuckets:
		probesFit = e.Probes >= 1 && e.Probes <= kernel.MaxBucketSize && e.Blocks&(e.Blocks-1) == 0
		most = MaxBuckets
		over, length = bits.Mul64(e.Blocks, uint64(e.Probes))
		length = roundUp(length, 8)
	default:
		return fmt.Errorf("%w: section %d has kind %d", ErrVersion, i, e.Kind)
	}
	switch {
	case !probesFit:
		return bad("k", e.Probes)
	case e.Blocks > most || e.Blocks == 0 && e.Kind != SectionKeys:
		return fmt.Errorf("%w: section %d has %d blocks", ErrFormat, i, e.Blocks)
	case over != 0 || length != e.Length:
		return fmt.Errorf("%w: section %d has %d blocks in %d bytes", ErrFormat, i, e.Blocks, e.Length)
	case e.Keys > MaxKeys:
		return bad("keys", e.Keys)
	case !(e.Rate >= 0 && e.Rate <= 1):
		return bad("rate", e.Rate)
	}
	return nil
}

// checkKind compares the sections with the kind of filter.
func (s *State) checkKind(number Kind) error {
	k := kinds[number]
	if n := len(s.Sections); n < len(k.sections) || n > len(k.sections) && !k.more {
		return fmt.Errorf("%w: %s has %d sections", ErrFormat, k.article, n)
	}
	layers := number.layered()
	added := uint64(0)
	for i, e := range s.Sections {
		if want := k.sections[min(i, len(k.sections)-1)]; e.Kind != want {
			return fmt.Errorf("%w: section %d of %s has kind %d, not %d", ErrFormat, i, k.article, e.Kind, want)
		}
		unused := e.Keys == 0 && math.Float64bits(e.Rate) == 0 && e.Added == 0 && e.Start == 0
		if layers && e.Keys == 0 || !layers && !unused || e.Start != 0 && number != KindWindow {
			return fmt.Errorf("%w: section %d has bytes in use that mean nothing to %s, or none that must be", ErrFormat, i, k.article)
		}
		added += e.Added
	}
	if s.Removed != 0 && number != KindCuckoo && number != KindScalableCounting || s.Dropped != 0 && number != KindScalableCounting {
		return fmt.Errorf("%w: the state has bytes in use that mean nothing to %s", ErrFormat, k.article)
	}
	if layers && added != s.Added {
		return fmt.Errorf("%w: %d keys added, in the sections %d", ErrFormat, s.Added, added)
	}
	return nil
}

// layOut places the sections, whose lengths are known.
func (s *State) layOut() {
	at := uint64(BodyOffset)
	for i := range s.Sections {
		e := &s.Sections[i]
		e.Offset = roundUp(at, PageBytes)
		at = e.Offset + e.Length
	}
	s.Checksums = at
	s.FileBytes = at + checksumBytes(at-BodyOffset)
}

// fits compares the length in the state with that of the file. A file that is being
// changed may be longer: it grows before its state says so.
func (s *State) fits(size int64) error {
	if uint64(size) != s.FileBytes && (s.Clean || uint64(size) < s.FileBytes) {
		return fmt.Errorf("%w: the file has %d bytes, its header says %d", ErrFormat, size, s.FileBytes)
	}
	return nil
}

func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }

// FileBytes returns the length of a file with one section of this many bytes.
func FileBytes(section uint64) uint64 { return BodyOffset + section + checksumBytes(section) }

// checksumBytes returns the length of the checksums of a body.
func checksumBytes(body uint64) uint64 {
	return (roundUp(body, SpanBytes)/SpanBytes + 1) * 4
}
