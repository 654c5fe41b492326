package redisbloom

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"io"
	"math"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/filterfile"
)

// A payload is what Redis returns for DUMP of a RedisBloom filter, and accepts for
// RESTORE: a value as in an RDB file, and a trailer.
//
//	07                     a value of a module
//	81 MBbloom-- v4        the module's name, 54 bits, and version, 10, as a 64-bit length
//	02 items  02 links  02 options  02 growth
//	and of each link
//	02 keys it is for  04 rate  02 probes  04 bits per key  02 bits  02 log2 of the bits, or 0
//	05 the bits' bytes  02 items
//	00                     the end
//	u16 the RDB version, u64 CRC-64 of all before it, little-endian
//
// 02 precedes an integer, 04 an f64, 05 a string. Lengths and integers have 1 to 9
// bytes, big-endian; strings can be compressed by LZF.
const (
	rdbModule = 7

	// bloomModule is MBbloom-- in six bits a character, and version 4.
	bloomModule  = 0x3016e5a289bef804
	moduleName   = ^uint64(1<<10 - 1)
	rdbVersion   = 10 // of Redis 7.0; later releases accept it, too
	rdbEnd       = 0
	rdbInteger   = 2
	rdbDouble    = 4
	rdbString    = 5
	rdbLen64     = 0x81
	rdbLen32     = 0x80
	rdbLZF       = 0xc3
	mostFieldLen = 9
)

// rdbTable is the table of the polynomial "Jones". Redis uses it without a start value
// and without a final inversion; package crc64 has both.
var rdbTable = crc64.MakeTable(0x95ac9329ac4bc9b5)

const rdbCRCStart = ^uint64(0)

// RecognisePayload reports whether head, at least 10 bytes, can begin a payload of
// Redis's DUMP that holds a RedisBloom filter.
func RecognisePayload(head []byte) bool {
	return len(head) >= 10 && head[0] == rdbModule && head[1] == rdbLen64 && binary.BigEndian.Uint64(head[2:])&moduleName == bloomModule&moduleName
}

// rdbReader reads fields, and keeps the checksum and the first error.
type rdbReader struct {
	from *bufio.Reader
	crc  uint64
	err  error
}

// Read reads the bytes of a string.
func (r *rdbReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.crc = crc64.Update(r.crc, rdbTable, b[:n])
	return n, err
}

func (r *rdbReader) bytes(b []byte) []byte {
	if r.err == nil {
		r.err = filterfile.ReadFull(r, b)
	}
	return b
}

func (r *rdbReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{bloom.ErrFormat}, args...)...)
	}
}

// length reads a length, or the mark in its place that says that a compressed string
// follows: then isLZF is true.
func (r *rdbReader) length() (n uint64, isLZF bool) {
	var b [8]byte
	first := r.bytes(b[:1])[0]
	switch {
	case first>>6 == 0:
		return uint64(first), false
	case first>>6 == 1:
		return uint64(first&0x3f)<<8 | uint64(r.bytes(b[:1])[0]), false
	case first == rdbLen32:
		return uint64(binary.BigEndian.Uint32(r.bytes(b[:4]))), false
	case first == rdbLen64:
		return binary.BigEndian.Uint64(r.bytes(b[:])), false
	case first == rdbLZF:
		return 0, true
	}
	r.fail("no length begins with %#x", first)
	return 0, false
}

func (r *rdbReader) integer() uint64 {
	n, isLZF := r.length()
	if isLZF {
		r.fail("a string in the place of a number")
	}
	return n
}

// expect reads the type that precedes a field.
func (r *rdbReader) expect(kind uint64) {
	if got := r.integer(); got != kind {
		r.fail("a field of kind %d in the place of %d", got, kind)
	}
}

func (r *rdbReader) uint64() uint64 {
	r.expect(rdbInteger)
	return r.integer()
}

func (r *rdbReader) uint32() uint32 {
	n := r.uint64()
	if n > math.MaxUint32 {
		r.fail("the number %d is above 2^32", n)
	}
	return uint32(n)
}

func (r *rdbReader) float64() float64 {
	r.expect(rdbDouble)
	var b [8]byte
	return math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(b[:])))
}

// ReadPayload reads a payload of Redis's DUMP. Only Grant and Release of the config
// are used. Grant is asked before memory is allocated for the bits of each layer, with
// their uncompressed size. The error wraps [bloom.ErrFormat], [bloom.ErrVersion],
// [bloom.ErrChecksum] or [bloom.ErrLimit], or is Grant's or the reader's.
func (config Config) ReadPayload(from io.Reader) (*Filter, error) {
	r := &rdbReader{from: bufio.NewReaderSize(from, 64<<10), crc: rdbCRCStart}
	c, err := r.chain(config)
	if err != nil {
		return nil, err
	}
	if err := r.trailer(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (r *rdbReader) chain(config Config) (*Filter, error) {
	if kind := r.bytes(make([]byte, 1))[0]; r.err == nil && kind != rdbModule {
		r.fail("a value of kind %d, not of a module", kind)
	}
	switch module := r.integer(); {
	case r.err != nil:
	case module&moduleName != bloomModule&moduleName:
		r.fail("a value of another module than RedisBloom's filters")
	case module != bloomModule:
		r.err = fmt.Errorf("%w: version %d of RedisBloom's values: this reads version %d", bloom.ErrVersion, module&^moduleName, bloomModule&^moduleName)
	}
	h := head{items: r.uint64(), links: r.uint32(), options: r.uint32(), growth: r.uint32()}
	if r.err == nil {
		r.err = h.check()
	}
	if r.err != nil {
		return nil, r.err
	}
	c := h.chain()
	c.grant, c.release = config.Grant, config.Release
	links := make([]link, 0, h.links)
	for range h.links {
		l, layer := r.link(c)
		if r.err != nil {
			break
		}
		c.push(layer)
		links = append(links, l)
	}
	r.expect(rdbEnd)
	if r.err == nil {
		r.err = h.checkItems(links)
	}
	if r.err != nil {
		c.Close()
		return nil, r.err
	}
	return c, nil
}

// link reads a link and its bits, which c must grant.
func (r *rdbReader) link(c *Filter) (l link, layer *layer) {
	l.entries, l.rate, l.probes, l.perKey = r.uint64(), r.float64(), r.uint32(), r.float64()
	l.bits = r.uint64()
	l.bytes = l.bits / 8
	n2 := r.uint64()
	l.n2 = uint8(min(n2, math.MaxUint8))
	if r.err == nil {
		r.err = l.check()
	}
	r.expect(rdbString)
	if layer = l.layer(); r.err == nil {
		r.err = r.bits(c, l, layer)
	}
	if r.err != nil {
		return l, layer
	}
	l.items = r.uint64()
	layer.size = l.items
	if r.err != nil {
		c.discard(layer)
	}
	return l, layer
}

func (r *rdbReader) bits(c *Filter, l link, layer *layer) error {
	length, isLZF := r.length()
	packed := uint64(0)
	if isLZF {
		packed, length = r.integer(), r.integer()
	}
	switch {
	case r.err != nil:
		return r.err
	case length != l.bytes:
		return fmt.Errorf("%w: %d bytes for a link that has %d", bloom.ErrFormat, length, l.bytes)
	case isLZF:
		unpacked := newLZF(io.LimitReader(r, int64(min(packed, math.MaxInt64))))
		if err := c.readBits(unpacked, layer, l); err != nil {
			return err
		}
		if !unpacked.ended() {
			c.discard(layer)
			return fmt.Errorf("%w: a compressed string is longer than it says", bloom.ErrFormat)
		}
		return nil
	}
	return c.readBits(io.LimitReader(r, int64(length)), layer, l)
}

// PayloadIntact reports whether a payload of Redis's DUMP ends with the right checksum.
// If not, it is damaged, and nothing in it can be relied on.
func PayloadIntact(payload []byte) bool {
	const trailer = 2 + 8
	if len(payload) < trailer {
		return false
	}
	at := len(payload) - 8
	return ^crc64.Update(rdbCRCStart, rdbTable, payload[:at]) == binary.LittleEndian.Uint64(payload[at:])
}

func (r *rdbReader) trailer() error {
	var version [2]byte
	r.bytes(version[:])
	want := ^r.crc
	var sum [8]byte
	r.bytes(sum[:])
	if r.err != nil {
		return r.err
	}
	if got := binary.LittleEndian.Uint64(sum[:]); got != want {
		return fmt.Errorf("%w: %016x, but the bytes have %016x", bloom.ErrChecksum, got, want)
	}
	if _, err := r.from.ReadByte(); err == nil {
		return fmt.Errorf("%w: there are bytes behind the checksum", bloom.ErrFormat)
	} else if err != io.EOF {
		return filterfile.ReadError(err)
	}
	return nil
}

// rdbWriter writes fields and keeps the checksum; Flush returns its errors.
type rdbWriter struct {
	to  *bufio.Writer
	crc uint64
}

func (w *rdbWriter) Write(b []byte) (int, error) {
	w.crc = crc64.Update(w.crc, rdbTable, b)
	return w.to.Write(b)
}

func (w *rdbWriter) length(n uint64) {
	b := make([]byte, 0, mostFieldLen)
	switch {
	case n < 1<<6:
		b = append(b, byte(n))
	case n < 1<<14:
		b = append(b, 0x40|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		b = binary.BigEndian.AppendUint32(append(b, rdbLen32), uint32(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, rdbLen64), n)
	}
	w.Write(b)
}

func (w *rdbWriter) uint64(n uint64) {
	w.length(rdbInteger)
	w.length(n)
}

func (w *rdbWriter) float64(x float64) {
	w.length(rdbDouble)
	w.Write(binary.LittleEndian.AppendUint64(make([]byte, 0, 8), math.Float64bits(x)))
}

// WritePayload writes what Redis returns for DUMP of this chain, for RESTORE, without
// compression. Keys that are added meanwhile tear it, as in [Filter.ScanDump].
func (c *Filter) WritePayload(to io.Writer) error {
	w := &rdbWriter{to: bufio.NewWriter(to), crc: rdbCRCStart}
	layers := c.layers()
	links, items := make([]link, len(layers)), uint64(0)
	for i, layer := range layers {
		links[i] = layer.link()
		items += links[i].items
	}
	w.Write(binary.BigEndian.AppendUint64([]byte{rdbModule, rdbLen64}, bloomModule))
	w.uint64(items)
	w.uint64(uint64(len(layers)))
	w.uint64(uint64(c.options))
	w.uint64(uint64(c.growth))
	for i, l := range links {
		w.uint64(l.entries)
		w.float64(l.rate)
		w.uint64(uint64(l.probes))
		w.float64(l.perKey)
		w.uint64(l.bits)
		w.uint64(uint64(l.n2))
		w.length(rdbString)
		w.length(l.bytes)
		if _, err := io.Copy(w, &layerBytes{layer: layers[i]}); err != nil {
			return fmt.Errorf("writing a chain: %w", err)
		}
		w.uint64(l.items)
	}
	w.length(rdbEnd)
	w.Write(binary.LittleEndian.AppendUint16(nil, rdbVersion))
	binary.Write(w.to, binary.LittleEndian, ^w.crc)
	if err := w.to.Flush(); err != nil {
		return fmt.Errorf("writing a chain: %w", err)
	}
	return nil
}
