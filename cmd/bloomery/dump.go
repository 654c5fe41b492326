package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
)

// A dump is a filter in the chunks that BF.LOADCHUNK takes.
type dump struct {
	kind   string
	bytes  int64                   // of all chunks, if they are known
	chunks iter.Seq2[chunk, error] // once
	close  func() error            // before the filter is closed
}

// chunk is a part of a dump and the iterator that it is loaded with.
type chunk struct {
	iterator int64
	data     []byte
}

// largestChunk is what RedisBloom's own dumps are cut into.
const largestChunk = 16 << 20

// dumpOf is the dump of a filter that servers have.
func dumpOf(f *filterFile) (*dump, error) {
	if chain, ok, err := chainIn(f); ok || err != nil {
		return dumpOfChain(chain), err
	}
	switch f.Filter.(type) {
	case *bloom.Filter, *bloom.Scalable, *bloom.Window:
		return dumpOfOurs(f)
	}
	const servers = "servers have filters of RedisBloom's kind, and of ours a filter, a scalable and a window"
	if _, ok := f.Filter.(*bloom.Counting); ok {
		return nil, fmt.Errorf("%s: is a counting filter, and %s: make a filter of it with 'bloomery convert --to bloomery'", f.path, servers)
	}
	return nil, fmt.Errorf("%s: is a %s, and %s: build one from its keys", f.path, f.kind, servers)
}

// chainIn is the filter as RedisBloom has it, if its bits are of that kind.
func chainIn(f *filterFile) (chain *redisbloom.Filter, ok bool, err error) {
	switch filter := f.Filter.(type) {
	case *chainFilter:
		return filter.Filter, true, nil
	case *bloom.Classic:
		if filter.Scheme() == bloom.SchemeRedisBloom {
			chain, err = redisbloom.From(filter)
			return chain, true, err
		}
	}
	return nil, false, nil
}

func dumpOfChain(chain *redisbloom.Filter) *dump {
	if chain == nil {
		return nil
	}
	d := &dump{kind: "redisbloom", bytes: int64(len(chain.Header())), close: func() error { return nil }}
	for _, l := range chain.Layers() {
		d.bytes += int64(l.Bytes)
	}
	d.chunks = func(yield func(chunk, error) bool) {
		for next, data := chain.ScanDump(0); next != 0 && yield(chunk{next, data}, nil); {
			next, data = chain.ScanDump(next)
		}
	}
	return d
}

// dumpOfOurs is a header and the file that the filter would be saved as;
// docs/format.md draws both.
func dumpOfOurs(f *filterFile) (*dump, error) {
	r, w := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		w.CloseWithError(f.writeTo(w))
	}()
	// The file may be mapped: whoever closes it has to know that nobody reads it.
	end := func() error {
		r.Close()
		<-written
		return nil
	}
	head := make([]byte, fileHeadBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		end()
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	header := dumpHeaderOf(head)
	d := &dump{kind: f.kind, bytes: int64(len(header)) + header.fileBytes(), close: end}
	d.chunks = func(yield func(chunk, error) bool) {
		if !yield(chunk{1, header}, nil) {
			return
		}
		file, at := io.MultiReader(bytes.NewReader(head), r), int64(1)
		for {
			data := make([]byte, largestChunk)
			n, err := io.ReadFull(file, data)
			if err == io.EOF {
				return
			}
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				yield(chunk{}, fmt.Errorf("%s: %w", f.path, err))
				return
			}
			at += int64(n)
			if !yield(chunk{at, data[:n]}, nil) {
				return
			}
		}
	}
	return d, nil
}

// dumpHeader is the first chunk of a dump.
type dumpHeader []byte

// The header of RedisBloom's dumps is 20 bytes and 53 for each layer, which begin
// with the layer's bytes; see package interop. For our own see store.DumpHeader.
const (
	chainHeadBytes  = 20
	chainLayerBytes = 53
)

// What the header says stands in the head of the file, its first three pages.
const (
	fileHeadBytes = 3 * 4096
	fileKindAt    = 10
	fileHashAt    = 16 // a u32
	fileHashKeyAt = 24
	fileKeysAt    = 32
	fileRateAt    = 40
	fileGrowthAt  = 48
	fileSpanAt    = 56
	fileAddedAt   = 4096 + 16
	fileBytesAt   = 4096 + 32
)

func dumpHeaderOf(head []byte) dumpHeader {
	order := binary.LittleEndian
	h := store.DumpHeader{
		Spec: store.Spec{
			Kind:     store.Paired,
			Public:   bloom.HashAlgorithm(order.Uint32(head[fileHashAt:])) == bloom.XXH3,
			Capacity: order.Uint64(head[fileKeysAt:]),
			Rate:     math.Float64frombits(order.Uint64(head[fileRateAt:])),
		},
		Key:   order.Uint64(head[fileHashKeyAt:]),
		Items: order.Uint64(head[fileAddedAt:]),
		Bytes: order.Uint64(head[fileBytesAt:]),
	}
	switch bloom.Kind(order.Uint16(head[fileKindAt:])) {
	case bloom.KindScalable:
		h.Spec.Growth = order.Uint32(head[fileGrowthAt:])
	case bloom.KindWindow:
		h.Spec.Kind, h.Spec.Span = store.Window, time.Duration(order.Uint64(head[fileSpanAt:]))
		h.Spec.Growth = 2 // in a file it always grows
	}
	return h.Encode()
}

func (h dumpHeader) redisBloom() bool {
	return len(h) >= chainHeadBytes+chainLayerBytes &&
		uint64(len(h)) == chainHeadBytes+chainLayerBytes*uint64(binary.LittleEndian.Uint32(h[8:]))
}

// check refuses a header that nobody can have made. The error wraps
// [bloom.ErrFormat], [bloom.ErrVersion], [bloom.ErrLimit] or [bloom.ErrChecksum].
func (h dumpHeader) check() error {
	if store.IsDumpHeader(h) {
		ours, err := store.ParseDumpHeader(h)
		if err == nil && (ours.Bytes < fileHeadBytes || ours.Bytes > math.MaxInt64) {
			err = fmt.Errorf("%w: a file of %d bytes", bloom.ErrFormat, ours.Bytes)
		}
		return err
	}
	// Whoever asks for room has been checked.
	room := errors.New("asked for room")
	_, err := redisbloom.LoadHeader(h, func(uint64) error { return room })
	if errors.Is(err, room) {
		return nil
	}
	return err
}

// fileBytes is how many bytes the file has, by what the header says.
func (h dumpHeader) fileBytes() int64 {
	if ours, err := store.ParseDumpHeader(h); err == nil {
		return int64(ours.Bytes)
	}
	if !h.redisBloom() {
		return 0
	}
	sum := uint64(len(h))
	for layer := h[chainHeadBytes:]; len(layer) > 0; layer = layer[chainLayerBytes:] {
		sum += binary.LittleEndian.Uint64(layer)
	}
	return int64(sum)
}

// grewTo reports whether a later header of RedisBloom's can be of the same filter,
// which may have got keys and layers since.
func (h dumpHeader) grewTo(later dumpHeader) bool {
	if len(later) < len(h) || !bytes.Equal(h[12:chainHeadBytes], later[12:chainHeadBytes]) {
		return false
	}
	for at := chainHeadBytes; at < len(h); at += chainLayerBytes {
		was, is := h[at:at+chainLayerBytes], later[at:at+chainLayerBytes]
		if !bytes.Equal(was[:16], is[:16]) || !bytes.Equal(was[24:], is[24:]) { // all but the items
			return false
		}
	}
	return true
}
