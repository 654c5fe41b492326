package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"github.com/bloomery/bloom"
)

// The dump of a filter of our own is a header, drawn in docs/format.md, and then
// its file, as bloom writes it, in chunks: the iterator is where the next one
// begins, counted from 1. The file is made when the dump begins and kept until it
// was read, or nobody has asked for a minute; so unlike RedisBloom's the dump is
// of one moment, and has checksums.
const (
	dumpMagic   = "bloomdmp"
	dumpVersion = 0
	dumpBytes   = 68
	maxChunk    = 16 << 20
	dumpIdle    = time.Minute
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// outgoing is a dump that is being read.
type outgoing struct {
	file []byte
	used time.Time
}

// incoming is a dump that is being loaded: the bytes that have come, of so many.
type incoming struct {
	file []byte
	size uint64
}

func (p *paired) dump(v *value, iterator int64) (next int64, chunk []byte, err error) {
	p.moving.Lock()
	defer p.moving.Unlock()
	if iterator == 0 {
		gate := v.gate()
		gate.RLock()
		err := p.isLoading()
		gate.RUnlock()
		if err != nil {
			return 0, nil, err
		}
		header, err := p.beginDump()
		return 1, header, err
	}
	out := p.outgoing
	if out == nil || iterator < 0 || uint64(iterator-1) > uint64(len(out.file)) {
		return 0, nil, fmt.Errorf("%w: no dump is under way at %d: begin with 0, and go on within %v", ErrChunk, iterator, dumpIdle)
	}
	out.used = time.Now()
	chunk = out.file[iterator-1:]
	chunk = chunk[:min(len(chunk), maxChunk)]
	if len(chunk) == 0 {
		p.endDump()
		return 0, []byte{}, nil
	}
	return iterator + int64(len(chunk)), chunk, nil
}

// beginDump keeps a file of the filter, and returns the header. p.moving is held.
func (p *paired) beginDump() ([]byte, error) {
	p.endDump()
	items := p.items.Load() // before the bits
	var file bytes.Buffer
	size := p.charged.Load()
	if err := p.local.grant(size); err != nil {
		return nil, err
	}
	_, err := p.now().WriteTo(&file)
	p.local.release(size)
	if err == nil {
		err = p.local.grant(uint64(file.Len()))
	}
	if err != nil {
		return nil, err
	}
	p.outgoing = &outgoing{file: file.Bytes(), used: time.Now()}
	p.local.dumps.Store(p, nil)
	return p.header(items, uint64(file.Len())), nil
}

// endDump forgets the file, if there is one. p.moving is held.
func (p *paired) endDump() {
	if p.outgoing != nil {
		p.local.release(uint64(len(p.outgoing.file)))
		p.outgoing = nil
		p.local.dumps.Delete(p)
	}
}

// endIdleDumps forgets what nobody goes on reading.
func (l *Local) endIdleDumps() {
	l.dumps.Range(func(key, _ any) bool {
		p := key.(*paired)
		p.moving.Lock()
		if p.outgoing != nil && time.Since(p.outgoing.used) > dumpIdle {
			p.endDump()
		}
		p.moving.Unlock()
		return true
	})
}

func (p *paired) header(items, size uint64) []byte {
	return DumpHeader{Spec: p.spec, Key: p.now().HashIdentity().Key, Items: items, Bytes: size}.Encode()
}

// DumpHeader is the first chunk of a dump of a filter of our own.
type DumpHeader struct {
	Spec  Spec   // its Kind, Public, Growth, Capacity, Rate and Span
	Key   uint64 // of the hash identity
	Items uint64 // adds that were new
	Bytes uint64 // of the file that follows
}

// Encode returns the header as docs/format.md draws it.
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

// IsDumpHeader reports whether a chunk begins a dump of a filter of our own, and not
// one of RedisBloom's.
func IsDumpHeader(chunk []byte) bool { return bytes.HasPrefix(chunk, []byte(dumpMagic)) }

// ParseDumpHeader is the inverse of Encode. The error wraps [bloom.ErrChecksum] or
// [bloom.ErrVersion]. What the header claims is not checked beyond that.
func ParseDumpHeader(chunk []byte) (h DumpHeader, err error) {
	if len(chunk) != dumpBytes || !IsDumpHeader(chunk) || crc32.Checksum(chunk[:dumpBytes-4], castagnoli) != order.Uint32(chunk[dumpBytes-4:]) {
		return h, fmt.Errorf("a damaged header: %w", bloom.ErrChecksum)
	}
	if version := order.Uint16(chunk[8:]); version != dumpVersion {
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
	if h.Spec.Kind != Paired && h.Spec.Kind != Window || chunk[11] > 1 {
		return h, fmt.Errorf("%w: a dump of kind %d", bloom.ErrVersion, chunk[10])
	}
	return h, nil
}

// loadPaired makes an empty filter of a dump's header. Its bits are as small as can
// be, until the dump's have all come.
func (l *Local) loadPaired(header []byte) (*paired, error) {
	h, err := ParseDumpHeader(header)
	if err != nil {
		return nil, chunkError(err)
	}
	if h.Bytes == 0 || h.Spec.Capacity == 0 || !(h.Spec.Rate > 0 && h.Spec.Rate < 1) {
		return nil, chunkError(fmt.Errorf("%w: a dump of %d bytes, for %d keys at the rate %g", bloom.ErrFormat, h.Bytes, h.Spec.Capacity, h.Spec.Rate))
	}
	small := h.Spec
	small.Capacity, small.Rate = 1, 0.5
	b, err := l.newPaired(small)
	if err != nil {
		return nil, chunkError(err)
	}
	p := b.(*paired)
	if p.now().HashIdentity().Key != h.Key {
		p.giveBack(l)
		return nil, chunkError(fmt.Errorf("%w: the filter was made with the secret of another store, of fingerprint %016x: give this store that one", bloom.ErrSecret, h.Key))
	}
	// The file's bytes, and then the filter that is made of them.
	if err := l.grant(p.loadingBytes(h.Bytes)); err != nil {
		p.giveBack(l)
		return nil, err
	}
	p.charged.Add(p.loadingBytes(h.Bytes))
	p.spec = h.Spec
	p.items.Store(h.Items)
	p.incoming = &incoming{size: h.Bytes}
	return p, nil
}

// loadingBytes bounds the memory that a dump takes until it is loaded. Of a window
// all generations might be full.
func (p *paired) loadingBytes(size uint64) uint64 {
	times := uint64(3)
	if p.spec.Kind == Window {
		times = uint64(p.local.config.Generations) + 4
	}
	if size > math.MaxUint64/2/times {
		return math.MaxUint64 / 2
	}
	return size * times
}

func (p *paired) load(v *value, iterator int64, chunk []byte) error {
	gate := v.gate()
	gate.Lock()
	defer gate.Unlock()
	return p.take(v, iterator, chunk)
}

// take is load with the gate held. The bits are put in place when the chunk is in
// the log.
func (p *paired) take(v *value, iterator int64, chunk []byte) error {
	in := p.incoming
	if in == nil {
		return chunkError(errors.New("the filter is not being loaded: drop it, and begin with the dump's header"))
	}
	if len(chunk) > maxLoad {
		return chunkError(fmt.Errorf("%w: %d bytes, of at most %d", bloom.ErrLimit, len(chunk), maxLoad))
	}
	have := int64(len(in.file))
	if iterator-1-int64(len(chunk)) != have || uint64(len(chunk)) > in.size-uint64(have) {
		return chunkError(fmt.Errorf("%d bytes that end at %d, but %d have come of %d: load the chunks in their order", len(chunk), iterator, have, in.size))
	}
	file := append(in.file, chunk...)
	if uint64(len(file)) < in.size {
		v.logChunk(iterator, chunk)
		in.file = file
		return nil
	}
	const generationsAt = 48 // in the file's header
	if most := uint64(p.local.config.Generations); p.spec.Kind == Window && p.local.replay.Load() == 0 && (len(file) < generationsAt+8 || binary.LittleEndian.Uint64(file[generationsAt:]) > most) {
		return chunkError(fmt.Errorf("%w: a window of more generations than the store's %d", bloom.ErrLimit, most))
	}
	bits, err := p.local.read(p.spec, bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return chunkError(err)
	}
	v.logChunk(iterator, chunk)
	p.incoming = nil
	p.charge(v, takes(bits)) // before a window can grow
	p.replace(bits, p.items.Load())
	return nil
}

// isLoading is the error of who wants to use the filter while it is being loaded:
// what is added now would be replaced. The gate is held.
func (p *paired) isLoading() error {
	if in := p.incoming; in != nil {
		return chunkError(fmt.Errorf("the filter is being loaded, and %d of %d bytes have come: load the others, or drop it", len(in.file), in.size))
	}
	return nil
}

// takes is how many bytes of memory the bits take.
func takes(bits hashed) (total uint64) {
	var sizes []bloom.LayerSize
	switch bits := bits.(type) {
	case shared:
		return lockedBytes(bits.Plan())
	case *bloom.Scalable:
		sizes = bits.Sizes()
	case *bloom.Window:
		return windowTakes(bits)
	}
	for _, s := range sizes {
		total += lockedBytes(s.Plan)
	}
	return total
}

// read makes the bits that a file of at most so many bytes holds.
func (l *Local) read(spec Spec, from io.Reader, limit int64) (bits hashed, err error) {
	needsSecret := false
	switch {
	case spec.Kind == Window:
		var w *bloom.Window
		if w, err = bloom.ReadWindow(from, limit, l.windowNow); err == nil {
			bits, needsSecret = w, w.NeedsSecret()
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
				bits = shared{f.Share()}
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
