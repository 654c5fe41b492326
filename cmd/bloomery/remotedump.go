package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
	"github.com/zeebo/xxh3"
)

// A dump is a filter in the chunks that BF.LOADCHUNK or CF.LOADCHUNK takes.
type dump struct {
	kind     string
	cuckoo   bool
	bytes    int64                   // of all chunks, if known
	chunks   iter.Seq2[chunk, error] // once
	close    func() error            // before the filter is closed
	identity string                  // of its file, for push --resume; empty for RedisBloom's

	begun  bool  // an earlier push has loaded the header
	loaded int64 // and this much of the file
}

// chunk is a part of a dump, with the iterator for loading it.
type chunk struct {
	iterator int64
	data     []byte
}

// largestChunk is the size of the chunks in RedisBloom's own dumps.
const largestChunk = 16 << 20

// dumpOf returns the dump of a filter, if servers have its kind.
func dumpOf(f *anyfile.File) (*dump, error) {
	if chain, ok, err := chainIn(f); ok || err != nil {
		return dumpOfChain(chain), err
	}
	switch filter := f.Filter.(type) {
	case *bloom.Filter, *bloom.Scalable, *bloom.Window, *bloom.Counting, *bloom.ScalableCounting:
		return dumpOfOurs(f)
	case *bloom.Cuckoo:
		return dumpOfCuckoo(f, redisbloom.Cuckoo{Cuckoo: filter})
	}
	return nil, fmt.Errorf("%s: is a %s, and a server can take RedisBloom's filters and our kinds filter, scalable, window and counting: build one from its keys", f.Path, f.Kind())
}

// chainIn returns the filter as RedisBloom's, if its bits are of that kind.
func chainIn(f *anyfile.File) (chain *redisbloom.Filter, ok bool, err error) {
	switch filter := f.Filter.(type) {
	case *anyfile.Chain:
		return filter.Filter, true, nil
	case *classic.Filter:
		if filter.Scheme() == classic.SchemeRedisBloom {
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

// dumpOfCuckoo is the dump of a cuckoo filter, if its hash is RedisBloom's.
func dumpOfCuckoo(f *anyfile.File, c redisbloom.Cuckoo) (*dump, error) {
	if err := c.Compatible(); err != nil {
		return nil, fmt.Errorf("%s: %w: a server takes cuckoo filters of that hash only", f.Path, err)
	}
	header := c.Header()
	d := &dump{kind: f.Kind(), cuckoo: true, bytes: int64(redisbloom.CuckooDumpBytes(header)), close: func() error { return nil }}
	d.chunks = func(yield func(chunk, error) bool) {
		for next, data := int64(1), header; next != 0 && yield(chunk{next, data}, nil); {
			next, data = c.ScanDump(next)
		}
	}
	return d, nil
}

// dumpOfOurs is a header followed by the file that the filter would be saved as;
// docs/format.md draws both.
func dumpOfOurs(f *anyfile.File) (*dump, error) {
	r, w := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		w.CloseWithError(f.Encode(w))
	}()
	// The file may be mapped: it must not be closed while it is read.
	end := func() error {
		r.Close()
		<-written
		return nil
	}
	head := make([]byte, fileHeadBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		end()
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	header := dumpHeaderOf(head, f.Filter)
	d := &dump{kind: f.Kind(), bytes: int64(len(header)) + header.fileBytes(), close: end,
		identity: fmt.Sprintf("%016x", xxh3.Hash(slices.Concat(header, head)))}
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
				yield(chunk{}, fmt.Errorf("%s: %w", f.Path, err))
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

	cuckooHeadBytes = 38 // of RedisBloom's cuckoo filters
)

// What the header says is repeated in the head of the file, its first three pages.
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

func dumpHeaderOf(head []byte, filter any) dumpHeader {
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
	case bloom.KindScalableCounting:
		h.Spec.Kind, h.Spec.Growth = store.Counting, order.Uint32(head[fileGrowthAt:])
	case bloom.KindCounting:
		h.Spec.Kind = store.Counting
	}
	if counting, ok := filter.(interface{ Len() uint64 }); ok { // in a file it is the number of new ones
		h.Items = counting.Len()
	}
	return h.Encode()
}

// redisBloom reports whether it is of a dump of RedisBloom's, so that the file begins with it.
func (h dumpHeader) redisBloom() bool { return h.chain() || h.cuckoo() }

func (h dumpHeader) cuckoo() bool { return len(h) == cuckooHeadBytes }

func (h dumpHeader) chain() bool {
	return len(h) >= chainHeadBytes+chainLayerBytes &&
		uint64(len(h)) == chainHeadBytes+chainLayerBytes*uint64(binary.LittleEndian.Uint32(h[8:]))
}

// check refuses a header that no server can have made. The error wraps
// [bloom.ErrFormat], [bloom.ErrVersion], [bloom.ErrLimit] or [bloom.ErrChecksum].
func (h dumpHeader) check() error {
	if store.IsDumpHeader(h) {
		ours, err := store.ParseDumpHeader(h)
		if err == nil && (ours.Bytes < fileHeadBytes || ours.Bytes > math.MaxInt64) {
			err = fmt.Errorf("%w: a file of %d bytes", bloom.ErrFormat, ours.Bytes)
		}
		return err
	}
	// Room is asked for only after everything else has been checked.
	room := errors.New("asked for room")
	var err error
	if h.cuckoo() {
		_, err = redisbloom.LoadCuckooHeader(h, func(uint64) error { return room })
	} else {
		_, err = redisbloom.LoadHeader(h, func(uint64) error { return room })
	}
	if errors.Is(err, room) {
		return nil
	}
	return err
}

// fileBytes is the size of the file, according to the header.
func (h dumpHeader) fileBytes() int64 {
	if ours, err := store.ParseDumpHeader(h); err == nil {
		return int64(ours.Bytes)
	}
	if h.cuckoo() {
		return int64(redisbloom.CuckooDumpBytes(h))
	}
	if !h.chain() {
		return 0
	}
	sum := uint64(len(h))
	for layer := h[chainHeadBytes:]; len(layer) > 0; layer = layer[chainLayerBytes:] {
		sum += binary.LittleEndian.Uint64(layer)
	}
	return int64(sum)
}

// grewTo reports whether a later RedisBloom header can be of the same filter, which
// may have gained keys and layers since. A cuckoo filter must not have changed: it moves keys
// when others are added.
func (h dumpHeader) grewTo(later dumpHeader) bool {
	if h.cuckoo() {
		return bytes.Equal(h, later)
	}
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
