package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/memory"
)

// loadPaired creates an empty filter from a dump's header. Its bits are as small as
// possible until the whole dump has arrived.
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
		p.free(l)
		return nil, chunkError(fmt.Errorf("%w: the filter was made with the secret of another store, of fingerprint %016x: give this store that one", bloom.ErrSecret, h.Key))
	}
	// The file's bytes, and then the filter that is made of them.
	loading := p.loadingBytes(h.Bytes)
	if err := l.grant(loading); err != nil {
		p.free(l)
		return nil, err
	}
	p.charged.Add(loading)
	p.spec = h.Spec
	p.items.Store(h.Items)
	p.incoming = &incoming{size: h.Bytes}
	return p, nil
}

// loadingBytes bounds the memory that a dump takes until it is loaded: its bytes, and
// the bits with their locks. All generations of a window might be full.
func (p *paired) loadingBytes(size uint64) uint64 {
	eighths := uint64(17)
	if p.spec.Kind == Window {
		eighths = 8 + 9*uint64(p.local.config.Generations+2)
	}
	if size > math.MaxUint64/2/eighths {
		return math.MaxUint64 / 2
	}
	return (size*eighths + 7) / 8
}

// load loads a chunk a piece at a time, so that nobody waits long for the gate, or for a
// commit that has to write all of it. moving keeps other loads out meanwhile. A chunk of
// which only the first pieces were loaded, as when the store was reopened in between, may
// be sent again. Recovery calls load, too: there is no log then, so nothing is logged.
func (p *paired) load(v *value, iterator int64, chunk []byte) error {
	p.moving.Lock()
	defer p.moving.Unlock()
	if len(chunk) > maxLoad {
		return chunkError(fmt.Errorf("%w: %d bytes, of at most %d", bloom.ErrLimit, len(chunk), maxLoad))
	}
	in, held, err := p.loadingNow(v)
	if err != nil {
		return err
	}
	defer p.local.unpin(held)
	at := iterator - 1 - int64(len(chunk))
	if skip := int64(in.have) - at; at >= 0 && skip > 0 && skip < int64(len(chunk)) {
		chunk, at = chunk[skip:], int64(in.have)
	}
	if at != int64(in.have) || uint64(len(chunk)) > in.size-in.have {
		return chunkError(fmt.Errorf("%d bytes that end at %d, but %d have come of %d: load the chunks in their order", len(chunk), iterator, in.have, in.size))
	}
	var bits hashed
	var items uint64
	if in.have+uint64(len(chunk)) == in.size { // before it is logged: the log must not contain what is not a filter
		if bits, err = p.parse(in, chunk); err != nil {
			return chunkError(err)
		}
		items = itemsOf(bits)
		setLive(bits, p.items.Load())
	}
	for len(chunk) > loadPiece {
		at += loadPiece
		err := p.appendPiece(v, at+1, chunk[:loadPiece], nil, 0)
		if err == nil {
			err = p.local.settle()
		}
		if err != nil {
			closeIf(bits)
			return err
		}
		chunk = chunk[loadPiece:]
	}
	return p.appendPiece(v, iterator, chunk, bits, items)
}

// itemsOf returns a lower bound of the number of keys in a dumped filter, estimated from
// its bits: keys may have been added after the header was written. It returns 0 for a
// growing filter and for a window, whose files have counts of their own.
func itemsOf(bits hashed) uint64 {
	filter, ok := bits.(*bloom.Shared)
	if !ok {
		return 0
	}
	r := filter.Report()
	if math.IsInf(r.Keys, 1) {
		return 0
	}
	return uint64(max(r.Keys-4*r.KeysError, 0))
}

// loadPiece is how much of a chunk is loaded, and logged, at a time.
const loadPiece = 1 << 20

// loadingNow returns what has arrived so far. The bits to be replaced are pinned, so
// that the memory of a load counts until it is over, even if the filter is dropped.
func (p *paired) loadingNow(v *value) (in *incoming, held io.Closer, err error) {
	if held, err = v.hold(); err != nil {
		return nil, nil, err
	}
	gate := v.gate()
	gate.RLock()
	defer gate.RUnlock()
	if in = p.incoming; in == nil {
		p.local.unpin(held)
		return nil, nil, chunkError(errors.New("the filter is not being loaded: drop it, and begin with the dump's header"))
	}
	return in, held, nil
}

// parse makes the bits from all previous chunks and the last one.
func (p *paired) parse(in *incoming, last []byte) (hashed, error) {
	file := &pieces{list: append(slices.Clip(in.pieces), last), left: in.size}
	if p.spec.Kind == Window {
		const generationsAt = 48 // in the file's header
		head := make([]byte, generationsAt+8)
		n, _ := io.ReadFull(file, head)
		if most := uint64(p.local.config.Generations); p.local.replay.Load() == 0 && (n < len(head) || binary.LittleEndian.Uint64(head[generationsAt:]) > most) {
			return nil, fmt.Errorf("%w: a window of more generations than the store's %d", bloom.ErrLimit, most)
		}
		file = &pieces{list: append(slices.Clip(in.pieces), last), left: in.size}
	}
	return p.local.read(p.spec, file, int64(in.size))
}

// appendPiece logs a piece, which ends before the iterator, and appends it to what has
// arrived. With the last piece come the bits, which replace the filter's, and the lower
// bound of their keys.
func (p *paired) appendPiece(v *value, iterator int64, piece []byte, bits hashed, items uint64) error {
	gate := v.gate()
	gate.Lock()
	defer gate.Unlock()
	if v.isDropped() {
		closeIf(bits)
		return errDropped
	}
	v.logChunk(iterator, piece)
	if bits == nil {
		p.incoming.append(piece)
		return nil
	}
	p.incoming = nil
	granted, bytes := p.charged.Load(), memoryOf(bits) // part of the load's memory becomes the filter's
	p.charged.Store(granted - min(granted, bytes))
	p.replace(bits, max(items, p.items.Load()), bytes)
	return nil
}

func closeIf(bits hashed) {
	if bits != nil {
		bits.Close()
	}
}

// isLoading returns an error if the filter is being loaded: keys added now would be
// lost when the bits are replaced. The gate is held.
func (p *paired) isLoading() error {
	if in := p.incoming; in != nil {
		return chunkError(fmt.Errorf("the filter is being loaded, and %d of %d bytes have come: load the others, or drop it", in.have, in.size))
	}
	return nil
}

// incoming is a dump that is being loaded: the pieces that have arrived, and the total
// size.
type incoming struct {
	pieces [][]byte
	have   uint64
	size   uint64
}

// append appends a copy of a piece. Small ones are put together.
func (in *incoming) append(piece []byte) {
	for len(piece) > 0 {
		last := len(in.pieces) - 1
		if last < 0 || len(in.pieces[last]) == cap(in.pieces[last]) {
			size := min(loadPiece, in.size-in.have)
			room := make([]uint64, (size+7)/8)
			memory.Touch(room)
			in.pieces = append(in.pieces, memory.Bytes(room)[:0:size])
			last++
		}
		n := min(len(piece), cap(in.pieces[last])-len(in.pieces[last]))
		in.pieces[last] = append(in.pieces[last], piece[:n]...)
		in.have += uint64(n)
		piece = piece[n:]
	}
}

// pieces reads the pieces in order. Its Len lets the reader allocate everything at
// once.
type pieces struct {
	list [][]byte
	left uint64
}

func (p *pieces) Len() int { return int(min(p.left, math.MaxInt)) }

func (p *pieces) Read(b []byte) (int, error) {
	for len(p.list) > 0 && len(p.list[0]) == 0 {
		p.list = p.list[1:]
	}
	if len(p.list) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.list[0])
	p.list[0] = p.list[0][n:]
	p.left -= uint64(n)
	return n, nil
}
