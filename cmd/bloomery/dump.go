package main

import (
	"bytes"
	little "encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
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
	if _, ok := f.Filter.(countingFilter); ok {
		return nil, fmt.Errorf("%s: is a counting filter, and %s: make a filter of it with 'bloomery convert --to bloomery'", f.path, servers)
	}
	return nil, fmt.Errorf("%s: is a %s, and %s: build one from its keys", f.path, f.kind, servers)
}

// chainIn is the filter as RedisBloom has it, if its bits are of that kind.
func chainIn(f *filterFile) (chain *interop.Chain, ok bool, err error) {
	switch filter := f.Filter.(type) {
	case *chainFilter:
		return filter.Chain, true, nil
	case *bloom.Classic:
		if filter.Scheme() == bloom.SchemeRedisBloom {
			chain, err = interop.ChainOf(filter)
			return chain, true, err
		}
	}
	return nil, false, nil
}

func dumpOfChain(chain *interop.Chain) *dump {
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

// The header of our own dumps, little-endian:
//
//	offset  type  what
//	     0  8     bloomdmp
//	     8  u16   version, 0
//	    10  u8    kind, of package store
//	    11  u8    1 if it is hashed by XXH3, else 0
//	    12  u32   growth
//	    16  u64   capacity
//	    24  f64   rate
//	    32  u64   span, in nanoseconds
//	    40  u64   hash key
//	    48  u64   items
//	    56  u64   bytes of the file
//	    64  u32   CRC-32C of all before
//
// The header of RedisBloom's is 20 bytes and 53 for each layer, which begin with
// the layer's bytes; see package interop.
const (
	dumpMagic       = "bloomdmp"
	dumpHeaderBytes = 68
	chainHeadBytes  = 20
	chainLayerBytes = 53
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// What the header says stands in the head of the file, its first three pages.
const (
	fileHeadBytes = 3 * 4096
	fileKindAt    = 10
	fileHashAt    = 16 // a u32
	fileHashKeyAt = 24 // and behind it n and p
	fileGrowthAt  = 48
	fileSpanAt    = 56
	fileAddedAt   = 4096 + 16
	fileBytesAt   = 4096 + 32
)

func dumpHeaderOf(head []byte) dumpHeader {
	kind, growth, span := store.Paired, uint32(0), uint64(0)
	switch bloom.Kind(little.LittleEndian.Uint16(head[fileKindAt:])) {
	case bloom.KindScalable:
		growth = little.LittleEndian.Uint32(head[fileGrowthAt:])
	case bloom.KindWindow:
		kind, span = store.Window, little.LittleEndian.Uint64(head[fileSpanAt:])
	}
	public := byte(0)
	if bloom.HashAlgorithm(little.LittleEndian.Uint32(head[fileHashAt:])) == bloom.XXH3 {
		public = 1
	}
	h := append(make([]byte, 0, dumpHeaderBytes), dumpMagic...)
	h = append(h, 0, 0, byte(kind), public)
	h = little.LittleEndian.AppendUint32(h, growth)
	h = append(h, head[fileHashKeyAt+8:fileHashKeyAt+24]...) // n and p
	h = little.LittleEndian.AppendUint64(h, span)
	h = append(h, head[fileHashKeyAt:fileHashKeyAt+8]...)
	h = append(h, head[fileAddedAt:fileAddedAt+8]...)
	h = append(h, head[fileBytesAt:fileBytesAt+8]...)
	return little.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
}

func (h dumpHeader) ours() bool {
	return len(h) == dumpHeaderBytes && bytes.HasPrefix(h, []byte(dumpMagic)) && h[8] == 0 && h[9] == 0
}

func (h dumpHeader) redisBloom() bool {
	return len(h) >= chainHeadBytes+chainLayerBytes &&
		uint64(len(h)) == chainHeadBytes+chainLayerBytes*uint64(little.LittleEndian.Uint32(h[8:]))
}

// check refuses a header that nobody can have made. The error wraps
// [bloom.ErrFormat], [bloom.ErrVersion], [bloom.ErrLimit] or [bloom.ErrChecksum].
func (h dumpHeader) check() error {
	if bytes.HasPrefix(h, []byte(dumpMagic)) {
		switch size := h.fileBytes(); {
		case !h.ours():
			return fmt.Errorf("%w: a header of ours, of %d bytes", bloom.ErrVersion, len(h))
		case crc32.Checksum(h[:dumpHeaderBytes-4], castagnoli) != little.LittleEndian.Uint32(h[dumpHeaderBytes-4:]):
			return fmt.Errorf("%w: the header is damaged", bloom.ErrChecksum)
		case size < fileHeadBytes:
			return fmt.Errorf("%w: a file of %d bytes", bloom.ErrFormat, size)
		}
		return nil
	}
	// Whoever asks for room has been checked.
	room := errors.New("asked for room")
	_, err := interop.LoadHeader(h, func(uint64) error { return room })
	if errors.Is(err, room) {
		return nil
	}
	return err
}

// fileBytes is how many bytes the file has, by what the header says.
func (h dumpHeader) fileBytes() int64 {
	if h.ours() {
		return int64(little.LittleEndian.Uint64(h[56:]))
	}
	if !h.redisBloom() {
		return 0
	}
	sum := uint64(len(h))
	for layer := h[chainHeadBytes:]; len(layer) > 0; layer = layer[chainLayerBytes:] {
		sum += little.LittleEndian.Uint64(layer)
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
