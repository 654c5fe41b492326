package store

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"github.com/bloomery/bloom"
)

// The dump of a paired filter is a header, drawn in docs/format.md, followed by the
// filter's file as bloom writes it, in chunks. The iterator is the offset of the next
// chunk, counted from 1. A chunk is made when it is requested, so a dump takes no
// memory except for its checksums. The layers stay pinned until the dump has been read,
// nobody has asked for a chunk for a minute, or the filter is dropped. The dump has all
// keys that were added before it began, and perhaps some that were added meanwhile.
const (
	dumpMagic   = "bloomdmp"
	dumpVersion = 1 // version 0 differs only in this number
	dumpBytes   = 68
	maxChunk    = 16 << 20
	dumpIdle    = time.Minute
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// outgoing is a dump that is being read.
type outgoing struct {
	image interface {
		Piece(at uint64, most int) ([]byte, error)
		Size() uint64
		Overhead() uint64
	}
	bits io.Closer // pinned
	used time.Time
}

func (p *paired) dump(v *value, iterator int64) (next int64, chunk []byte, err error) {
	if iterator == 0 {
		header, err := p.beginDump(v)
		return 1, header, err
	}
	out := p.nextOfDump()
	if out.image == nil || iterator < 0 {
		return 0, nil, fmt.Errorf("%w: no dump is under way at %d: begin with 0, and go on within %v", ErrChunk, iterator, dumpIdle)
	}
	defer p.local.unpin(out.bits)
	if p.spec.Kind == Counting { // each piece must be of one time
		gate := v.gate()
		gate.RLock()
		chunk, err = out.image.Piece(uint64(iterator-1), imagePiece)
		gate.RUnlock()
	} else {
		chunk, err = out.image.Piece(uint64(iterator-1), maxChunk)
	}
	if err != nil {
		return 0, nil, chunkError(err)
	}
	if len(chunk) == 0 {
		p.endDump()
		return 0, chunk, nil
	}
	return iterator + int64(len(chunk)), chunk, nil
}

// beginDump begins a dump, replacing any other, and returns its header.
func (p *paired) beginDump(v *value) ([]byte, error) {
	gate := v.gate()
	gate.RLock()
	defer gate.RUnlock()
	if v.isDropped() {
		return nil, errDropped
	}
	if err := p.isLoading(); err != nil {
		return nil, err
	}
	items := p.items.Load() // before the image is taken, so that it has all of these keys
	image, err := bloom.Inside.Image(p.now())
	if err != nil {
		return nil, err
	}
	if err := p.local.grant(image.Overhead()); err != nil {
		return nil, err
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	p.endDumpLocked()
	p.local.pins.pin(p.now())
	p.outgoing = &outgoing{image: image, bits: p.now(), used: time.Now()}
	p.local.dumps.Store(p, nil)
	return p.header(items, image.Size()), nil
}

// nextOfDump returns the dump in progress, if any, with its bits pinned once more.
func (p *paired) nextOfDump() (out outgoing) {
	p.sending.Lock()
	defer p.sending.Unlock()
	if p.outgoing != nil {
		p.outgoing.used = time.Now()
		out = *p.outgoing
		p.local.pins.pin(out.bits)
	}
	return out
}

// endDump ends the dump, if any.
func (p *paired) endDump() {
	p.sending.Lock()
	defer p.sending.Unlock()
	p.endDumpLocked()
}

func (p *paired) endDumpLocked() {
	if p.outgoing != nil {
		p.local.release(p.outgoing.image.Overhead())
		p.local.unpin(p.outgoing.bits)
		p.outgoing = nil
		p.local.dumps.Delete(p)
	}
}

// endIdleDumps ends the dumps of which nobody has read a chunk for dumpIdle.
func (l *Local) endIdleDumps() {
	l.dumps.Range(func(key, _ any) bool {
		p := key.(*paired)
		p.sending.Lock()
		if p.outgoing != nil && time.Since(p.outgoing.used) > dumpIdle {
			p.endDumpLocked()
		}
		p.sending.Unlock()
		return true
	})
}

func (p *paired) header(items, size uint64) []byte {
	return DumpHeader{Spec: p.spec, Key: p.now().HashIdentity().Key, Items: items, Bytes: size}.Encode()
}

// DumpHeader is the first chunk of the dump of a filter in our own layout: of kind Paired,
// Window or Counting.
type DumpHeader struct {
	Spec  Spec   // its Kind, Public, Growth, Capacity, Rate and Span
	Key   uint64 // of the hash identity
	Items uint64 // adds that were new
	Bytes uint64 // of the file that follows
}

// Encode returns the header, encoded as docs/format.md draws it.
func (h DumpHeader) Encode() []byte {
	b := append(make([]byte, 0, dumpBytes), dumpMagic...)
	b = order.AppendUint16(b, dumpVersion)
	b = append(b, byte(h.Spec.Kind), boolByte(h.Spec.Public))
	b = order.AppendUint32(b, h.Spec.Growth)
	b = order.AppendUint64(b, h.Spec.Capacity)
	b = order.AppendUint64(b, math.Float64bits(h.Spec.Rate))
	b = order.AppendUint64(b, uint64(h.Spec.Span))
	b = order.AppendUint64(b, h.Key)
	b = order.AppendUint64(b, h.Items)
	b = order.AppendUint64(b, h.Bytes)
	return order.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// IsDumpHeader reports whether a chunk begins the dump of a filter in our own layout,
// rather than one of RedisBloom's.
func IsDumpHeader(chunk []byte) bool { return bytes.HasPrefix(chunk, []byte(dumpMagic)) }

// ParseDumpHeader is the inverse of Encode. The error wraps [bloom.ErrChecksum] or
// [bloom.ErrVersion]. The fields are not checked any further.
func ParseDumpHeader(chunk []byte) (h DumpHeader, err error) {
	if len(chunk) != dumpBytes || !IsDumpHeader(chunk) || crc32.Checksum(chunk[:dumpBytes-4], castagnoli) != order.Uint32(chunk[dumpBytes-4:]) {
		return h, fmt.Errorf("a damaged header: %w", bloom.ErrChecksum)
	}
	if version := order.Uint16(chunk[8:]); version > dumpVersion {
		return h, fmt.Errorf("%w: a dump of version %d, this release reads %d", bloom.ErrVersion, version, dumpVersion)
	}
	h.Spec = Spec{
		Kind:     Kind(chunk[10]),
		Public:   chunk[11] == 1,
		Growth:   order.Uint32(chunk[12:]),
		Capacity: order.Uint64(chunk[16:]),
		Rate:     math.Float64frombits(order.Uint64(chunk[24:])),
		Span:     time.Duration(order.Uint64(chunk[32:])),
	}
	h.Key, h.Items, h.Bytes = order.Uint64(chunk[40:]), order.Uint64(chunk[48:]), order.Uint64(chunk[56:])
	if h.Spec.Kind != Paired && h.Spec.Kind != Window && h.Spec.Kind != Counting || chunk[11] > 1 {
		return h, fmt.Errorf("%w: a dump of kind %d", bloom.ErrVersion, chunk[10])
	}
	return h, nil
}

// memoryOf returns the bytes of memory that the bits take.
func memoryOf(bits hashed) (total uint64) {
	switch bits := bits.(type) {
	case *bloom.Shared:
		return lockedBytes(bits.Plan())
	case *bloom.Scalable:
		for _, layer := range bloom.Inside.Sizes(bits) {
			total += lockedBytes(layer.Plan)
		}
	case *bloom.Window:
		return windowMemory(bits)
	case counted:
		_, layers := bloom.Inside.CountingLayers(bits)
		for _, layer := range layers {
			total += countersBytes(layer.Plan())
		}
	}
	return total
}

// read reads the bits from a filter's file of at most limit bytes.
func (l *Local) read(spec Spec, from io.Reader, limit int64) (bits hashed, err error) {
	needsSecret := false
	switch {
	case spec.Kind == Window:
		var w *bloom.Window
		if w, err = bloom.ReadWindow(from, limit, l.windowNow); err == nil {
			bits, needsSecret = w, w.NeedsSecret()
		}
	case spec.Kind == Counting && spec.Growth != 0:
		var f *bloom.ScalableCounting
		if f, err = bloom.ReadScalableCounting(from, limit); err == nil {
			bits, needsSecret = f, f.NeedsSecret()
		}
	case spec.Kind == Counting:
		var f *bloom.Counting
		if f, err = bloom.ReadCounting(from, limit); err == nil {
			bits, needsSecret = f, f.NeedsSecret()
		}
	case spec.Growth != 0:
		var f *bloom.Scalable
		if f, err = bloom.ReadScalable(from, limit); err == nil {
			bits, needsSecret = f, f.NeedsSecret()
		}
	default:
		var f *bloom.Filter
		if f, err = bloom.Read(from, limit); err == nil {
			if needsSecret = f.NeedsSecret(); needsSecret {
				err = f.SetSecret(l.secret)
			}
			if err == nil {
				bits = f.Share()
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if needsSecret == spec.Public {
		return nil, fmt.Errorf("%w: the hash is not the one that the header says", bloom.ErrFormat)
	}
	if needsSecret {
		err = bits.SetSecret(l.secret)
	}
	return bits, err
}
