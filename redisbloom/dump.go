package redisbloom

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
)

// Errors of [LoadHeader] and [Filter.LoadChunk]. Their texts are RedisBloom's, without
// the word ERR; the errors they wrap say more.
var (
	ErrChunkData   = errors.New("received bad data")
	ErrChunkOffset = errors.New("invalid offset - no link found")
	ErrChunkSize   = errors.New("invalid chunk - Too big for current filter")
)

// maxChunk is the most bytes that BF.SCANDUMP returns at once.
const maxChunk = 16 << 20

// The header of a dump, packed and little-endian; RedisBloom calls the layers
// links:
//
//	offset  type  what
//	     0  u64   items of all links
//	     8  u32   links
//	    12  u32   options
//	    16  u32   growth
//	and of each link, 53 bytes:
//	     0  u64   bytes
//	     8  u64   bits
//	    16  u64   items
//	    24  f64   rate
//	    32  f64   bits per key
//	    40  u32   probes
//	    44  u64   keys it is for
//	    52  u8    log2 of the bits in very old dumps, or 0
const (
	headerBytes = 20
	linkBytes   = 53
)

// head and link are a header's fields.
type head struct {
	items                  uint64
	links, options, growth uint32
}

type link struct {
	bytes, bits, items, entries uint64
	rate, perKey                float64
	probes                      uint32
	n2                          uint8
}

func (l *layer) link() link {
	return link{l.bytes(), l.bits.Bits, l.items(), l.entries, l.rate, l.perKey, uint32(l.bits.Probes), l.n2}
}

func parseHead(b []byte) head {
	order := binary.LittleEndian
	return head{order.Uint64(b), order.Uint32(b[8:]), order.Uint32(b[12:]), order.Uint32(b[16:])}
}

func parseLink(b []byte) link {
	order := binary.LittleEndian
	return link{
		bytes:   order.Uint64(b),
		bits:    order.Uint64(b[8:]),
		items:   order.Uint64(b[16:]),
		rate:    math.Float64frombits(order.Uint64(b[24:])),
		perKey:  math.Float64frombits(order.Uint64(b[32:])),
		probes:  order.Uint32(b[40:]),
		entries: order.Uint64(b[44:]),
		n2:      b[52],
	}
}

// LayerBytes returns the number of bytes that the layers take which a header describes:
// those of all chunks that follow it. It does not check the header.
func LayerBytes(header []byte) (sum uint64) {
	for at := headerBytes; at+linkBytes <= len(header); at += linkBytes {
		sum += parseLink(header[at:]).bytes
	}
	return sum
}

// Header returns the header of the chain's dump: what BF.SCANDUMP returns for
// iterator 0.
func (c *Filter) Header() []byte { return c.header(c.layers()) }

func (c *Filter) header(layers []*layer) []byte {
	links := make([]link, len(layers))
	for i, layer := range layers {
		links[i] = layer.link()
	}
	return head{options: c.options, growth: c.growth}.header(links)
}

// NonScalingHeader returns the header of the empty chain that New makes of a
// NonScaling config, with any growth, zero included. Growth has no effect there, but
// RedisBloom keeps what BF.RESERVE or BF.INSERT was given. The errors are New's.
func (config Config) NonScalingHeader(growth uint32) ([]byte, error) {
	config.NonScaling = true
	c, first, err := config.plan()
	if err != nil {
		return nil, err
	}
	return head{options: c.options, growth: growth}.header([]link{first}), nil
}

// EmptyHeader returns the header of an empty chain with the same layers. The error is
// [LoadHeader]'s.
func EmptyHeader(header []byte) ([]byte, error) {
	c, links, err := parseHeader(header)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChunkData, err)
	}
	for i := range links {
		links[i].items = 0
	}
	return head{options: c.options, growth: c.growth}.header(links), nil
}

// header encodes a header. It ignores the items and links of h.
func (h head) header(links []link) []byte {
	order := binary.LittleEndian
	b := make([]byte, 0, headerBytes+linkBytes*len(links))
	b = order.AppendUint64(b, 0) // the sum over the links, below
	b = order.AppendUint32(b, uint32(len(links)))
	b = order.AppendUint32(b, h.options)
	b = order.AppendUint32(b, h.growth)
	sum := uint64(0)
	for _, l := range links {
		sum += l.items
		b = order.AppendUint64(b, l.bytes)
		b = order.AppendUint64(b, l.bits)
		b = order.AppendUint64(b, l.items)
		b = order.AppendUint64(b, math.Float64bits(l.rate))
		b = order.AppendUint64(b, math.Float64bits(l.perKey))
		b = order.AppendUint32(b, l.probes)
		b = order.AppendUint64(b, l.entries)
		b = append(b, l.n2)
	}
	order.PutUint64(b, sum)
	return b
}

// check refuses heads that RedisBloom refuses, and those that it would accept but
// never writes. The error wraps [bloom.ErrFormat], [bloom.ErrVersion] or
// [bloom.ErrLimit].
func (h head) check() error {
	switch {
	case h.links == 0:
		return fmt.Errorf("%w: a chain of no links", bloom.ErrFormat)
	case h.options&^optKnown != 0:
		return fmt.Errorf("%w: unknown options %#x", bloom.ErrFormat, h.options)
	case h.options&optForce64 == 0:
		return fmt.Errorf("%w: a filter from before RedisBloom 2.0, with a hash of 32 bits: build it again from its keys", bloom.ErrVersion)
	case h.links > maxChain:
		return fmt.Errorf("%w: %d links are more than the %d that a rate can be halved for", bloom.ErrLimit, h.links, maxChain)
	}
	return nil
}

func (l link) check() error {
	probes := math.Ceil(0.693147180559945 * l.perKey)
	switch {
	case !(l.rate > 0 && l.rate < 1):
		return fmt.Errorf("%w: a link with rate %v", bloom.ErrFormat, l.rate)
	case l.bits == 0 || l.bits%8 != 0 || l.bits/8 != l.bytes:
		return fmt.Errorf("%w: a link of %d bits in %d bytes", bloom.ErrFormat, l.bits, l.bytes)
	case l.probes == 0 || float64(l.probes) != probes:
		return fmt.Errorf("%w: a link with %d probes for %v bits per key", bloom.ErrFormat, l.probes, l.perKey)
	case l.n2 > 63:
		return fmt.Errorf("%w: a link of 2^%d bits", bloom.ErrFormat, l.n2)
	case l.n2 != 0 && l.bits != 1<<l.n2:
		return fmt.Errorf("%w: a link that uses 2^%d of its %d bits, which no release since RedisBloom 2.0 makes", bloom.ErrVersion, l.n2, l.bits)
	case l.bits > kernel.MaxModularBits:
		return fmt.Errorf("%w: a link of %d bits, of at most %d", bloom.ErrLimit, l.bits, uint64(kernel.MaxModularBits))
	case l.probes > kernel.MaxModularProbes:
		return fmt.Errorf("%w: a link with %d probes, of at most %d", bloom.ErrLimit, l.probes, kernel.MaxModularProbes)
	}
	return nil
}

// checkItems refuses counts that do not agree.
func (h head) checkItems(links []link) error {
	sum := uint64(0)
	for _, l := range links {
		var carry uint64
		if sum, carry = bits.Add64(sum, l.items, 0); carry != 0 {
			return fmt.Errorf("%w: the links' items are more than 64 bits can count", bloom.ErrFormat)
		}
	}
	if sum != h.items {
		return fmt.Errorf("%w: %d items, but those of the links are %d", bloom.ErrFormat, h.items, sum)
	}
	return nil
}

// LoadHeader is [Config.LoadHeader] with a Grant alone, which may be nil.
func LoadHeader(header []byte, grant func(bytes uint64) error) (*Filter, error) {
	return Config{Grant: grant}.LoadHeader(header)
}

// LoadHeader makes the chain that a dump's header describes, as BF.LOADCHUNK does for
// iterator 1 and a new name. All layers exist, with all bits clear until
// [Filter.LoadChunk] sets them. Only Grant and Release of the config are used. Grant
// is asked once for all layers of the header, and later before each layer that is
// appended. A header of 73 bytes can ask for terabytes, so a caller that accepts
// headers from strangers should set a Grant: see [Budget].
//
// The error wraps [ErrChunkData] and what is wrong: [bloom.ErrFormat],
// [bloom.ErrVersion], [bloom.ErrLimit] or Grant's error.
func (config Config) LoadHeader(header []byte) (*Filter, error) {
	c, links, err := parseHeader(header)
	if err == nil {
		c.grant, c.release = config.Grant, config.Release
		err = c.provideAll(links)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChunkData, err)
	}
	return c, nil
}

// provideAll appends the layers that the links describe, or none.
func (c *Filter) provideAll(links []link) error {
	total := uint64(0)
	for _, l := range links {
		total += layerTakes(l.bits) // by their checks, all together are below 2^54
	}
	if c.grant != nil {
		if err := c.grant(total); err != nil {
			return fmt.Errorf("%d links: %w", len(links), err)
		}
	}
	for i, l := range links {
		layer := l.layer()
		if err := layer.makeBits(l.bits, l.probes); err != nil {
			c.Close()
			if c.grant != nil {
				c.giveBack(total)
			}
			return fmt.Errorf("link %d of %d: %w", i+1, len(links), err)
		}
		c.push(layer)
	}
	for l := c.newest.Load(); l != nil; l = l.older {
		l.granted = c.grant != nil
	}
	return nil
}

// parseHeader returns a chain without layers, and the links.
func parseHeader(header []byte) (*Filter, []link, error) {
	if len(header) < headerBytes {
		return nil, nil, fmt.Errorf("%w: a header of %d bytes", bloom.ErrFormat, len(header))
	}
	h := parseHead(header)
	if err := h.check(); err != nil {
		return nil, nil, err
	}
	if want := headerBytes + linkBytes*int(h.links); len(header) != want {
		return nil, nil, fmt.Errorf("%w: a header of %d bytes for %d links, which need %d", bloom.ErrFormat, len(header), h.links, want)
	}
	links := make([]link, h.links)
	for i := range links {
		links[i] = parseLink(header[headerBytes+linkBytes*i:])
		if err := links[i].check(); err != nil {
			return nil, nil, err
		}
	}
	return h.chain(), links, h.checkItems(links)
}

func (h head) chain() *Filter { return &Filter{growth: h.growth, options: h.options} }

func (l link) layer() *layer {
	return &layer{size: l.items, entries: l.entries, rate: l.rate, perKey: l.perKey, n2: l.n2}
}

// push appends a layer to a chain that is not shared yet.
func (c *Filter) push(l *layer) {
	if l.older = c.newest.Load(); l.older != nil {
		l.index = l.older.index + 1
	}
	c.newest.Store(l)
}

// ScanDump is BF.SCANDUMP. For iterator 0 it returns the header and iterator 1. For
// n >= 1 it returns the bytes of a layer from offset n-1 on, and the iterator after
// them; offsets count through the bytes of all layers, oldest first. A chunk ends with
// its layer, or after 16 MiB. Past the end, and below zero, it returns 0 and no bytes.
//
// Keys that are added between two calls tear the dump: it may contain some of their
// bits.
func (c *Filter) ScanDump(iterator int64) (next int64, data []byte) {
	switch {
	case iterator == 0:
		return 1, c.Header()
	case iterator < 0:
		return 0, []byte{}
	}
	l, offset, ok := c.at(uint64(iterator) - 1)
	if !ok {
		return 0, []byte{}
	}
	data = l.read(offset, min(l.bytes()-offset, maxChunk))
	return iterator + int64(len(data)), data
}

// at returns the layer at an offset into the bytes of all layers, and the offset
// within it.
func (c *Filter) at(offset uint64) (l *layer, within uint64, ok bool) {
	for _, l := range c.layers() {
		if offset < l.bytes() {
			return l, offset, true
		}
		offset -= l.bytes()
	}
	return nil, 0, false
}

// LoadChunk is BF.LOADCHUNK for an existing chain: data replaces the bytes that end at
// offset iterator-1, as [Filter.ScanDump] returns them with that iterator. The error
// is [ErrChunkData], [ErrChunkOffset] or [ErrChunkSize], and then nothing has changed.
func (c *Filter) LoadChunk(iterator int64, data []byte) error {
	l, offset, err := c.place(iterator, data)
	if err == nil {
		c.gate.Lock()
		l.write(offset, data)
		c.gate.Unlock()
	}
	return err
}

// RestoreChunk is [Filter.LoadChunk] for a chain that is not in use yet, and several
// times as fast. Chunks that do not overlap may be restored concurrently.
func (c *Filter) RestoreChunk(iterator int64, data []byte) error {
	if !memory.LittleEndian {
		return c.LoadChunk(iterator, data)
	}
	l, offset, err := c.place(iterator, data)
	if err == nil {
		copy(memory.Bytes(l.bits.Words)[offset:], data)
		runtime.KeepAlive(l)
	}
	return err
}

// TouchChunk makes the system allocate the memory that a chunk will be written to, if
// it fits. It changes nothing, and keys may be added meanwhile; the chain must not be
// closed.
func (c *Filter) TouchChunk(iterator int64, data []byte) {
	if l, offset, err := c.place(iterator, data); err == nil {
		memory.Touch(l.bits.Words[offset/8 : (offset+uint64(len(data))+7)/8])
		runtime.KeepAlive(l)
	}
}

// place returns the layer that a chunk belongs to, and the offset within it.
func (c *Filter) place(iterator int64, data []byte) (l *layer, offset uint64, err error) {
	switch { // in RedisBloom's words
	case iterator <= 0 || int64(len(data)) > iterator:
		return nil, 0, fmt.Errorf("%w: %d bytes cannot end at iterator %d", ErrChunkData, len(data), iterator)
	case int64(len(data)) == iterator:
		return nil, 0, ErrChunkOffset
	}
	l, offset, ok := c.at(uint64(iterator) - 1 - uint64(len(data)))
	if !ok {
		return nil, 0, ErrChunkOffset
	}
	if uint64(len(data)) > l.bytes()-offset {
		return nil, 0, ErrChunkSize
	}
	return l, offset, nil
}

// read copies n of the layer's bytes. Others may be setting bits meanwhile.
func (l *layer) read(offset, n uint64) []byte {
	buffer := make([]uint64, n/8+2)
	memory.Touch(buffer)
	return l.readInto(buffer, offset, n)
}

// readInto is read into a buffer that is large enough.
func (l *layer) readInto(buffer []uint64, offset, n uint64) []byte {
	from := offset / 8
	words := buffer[:(offset+n+7)/8-from]
	kernel.CopyShared(words, l.bits.Words[from:][:len(words)])
	runtime.KeepAlive(l)
	toLittleEndian(words)
	return memory.Bytes(words)[offset%8:][:n]
}

// write replaces some of the layer's bytes, word by word: others may be reading.
func (l *layer) write(offset uint64, data []byte) {
	for len(data) > 0 {
		word := &l.bits.Words[offset/8]
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], atomic.LoadUint64(word))
		n := copy(b[offset%8:], data)
		atomic.StoreUint64(word, binary.LittleEndian.Uint64(b[:]))
		data = data[n:]
		offset += uint64(n)
	}
	runtime.KeepAlive(l)
}

// toLittleEndian converts words between the machine's byte order and a file's.
func toLittleEndian(words []uint64) {
	if memory.LittleEndian {
		return
	}
	for i, word := range words {
		words[i] = bits.ReverseBytes64(word)
	}
}

// layerBytes reads or writes the layer's bytes, one after the other.
type layerBytes struct {
	layer  *layer
	offset uint64
}

func (b *layerBytes) Read(p []byte) (int, error) {
	n := min(b.layer.bytes()-b.offset, uint64(len(p)), 1<<20)
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	copy(p, b.layer.read(b.offset, n))
	b.offset += n
	return int(n), nil
}

func (b *layerBytes) Write(p []byte) (int, error) {
	b.layer.write(b.offset, p)
	b.offset += uint64(len(p))
	return len(p), nil
}
