package redisbloom

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/filterfile"
)

// Errors of [Config.LoadCuckooHeader] and [Cuckoo.LoadChunk]. Their texts are RedisBloom's;
// the errors that they wrap say more.
var (
	ErrCuckooHeader = errors.New("Invalid header") // of the wrong length
	ErrCuckooCreate = errors.New("Couldn't create filter!")
	ErrCuckooChunk  = errors.New("Couldn't load chunk!")
)

// Cuckoo is a [bloom.Cuckoo] with the dumps of RedisBloom's CF commands. One goroutine may
// change it, or any number may read it.
type Cuckoo struct{ *bloom.Cuckoo }

// The header of a cuckoo filter's dump, packed and little-endian; RedisBloom calls the
// layers sub-filters:
//
//	offset  type  what
//	     0  u64   items
//	     8  u64   buckets of the first sub-filter
//	    16  u64   deletes since the last compaction
//	    24  u64   sub-filters
//	    32  u16   slots of a bucket
//	    34  u16   the most iterations
//	    36  u16   expansion, or 0
const cuckooHeaderBytes = 38

// cuckooHead has a header's fields.
type cuckooHead struct {
	items, buckets, removed, layers uint64
	size, iterations, growth        uint16
}

func parseCuckooHead(b []byte) cuckooHead {
	order := binary.LittleEndian
	return cuckooHead{
		order.Uint64(b), order.Uint64(b[8:]), order.Uint64(b[16:]), order.Uint64(b[24:]),
		order.Uint16(b[32:]), order.Uint16(b[34:]), order.Uint16(b[36:]),
	}
}

func (h cuckooHead) append(b []byte) []byte {
	order := binary.LittleEndian
	for _, field := range []uint64{h.items, h.buckets, h.removed, h.layers} {
		b = order.AppendUint64(b, field)
	}
	for _, field := range []uint16{h.size, h.iterations, h.growth} {
		b = order.AppendUint16(b, field)
	}
	return b
}

// check refuses heads that RedisBloom refuses, and those that it would accept but never
// writes; for those with more than 32 sub-filters it keeps only 16 bits of their number. It
// returns how many slots there are. The error wraps [bloom.ErrFormat] or [bloom.ErrLimit].
func (h cuckooHead) check() (slots uint64, err error) {
	switch {
	case h.buckets == 0 || h.buckets&(h.buckets-1) != 0:
		return 0, fmt.Errorf("%w: %d buckets, not a power of two", bloom.ErrFormat, h.buckets)
	case h.size == 0 || h.size > 255:
		return 0, fmt.Errorf("%w: buckets of %d slots", bloom.ErrFormat, h.size)
	case h.iterations == 0:
		return 0, fmt.Errorf("%w: no iterations", bloom.ErrFormat)
	case h.growth&(h.growth-1) != 0:
		return 0, fmt.Errorf("%w: an expansion of %d, not a power of two", bloom.ErrFormat, h.growth)
	case h.layers == 0 || h.layers > 1 && h.growth == 0:
		return 0, fmt.Errorf("%w: %d sub-filters with an expansion of %d", bloom.ErrFormat, h.layers, h.growth)
	case h.layers > bloom.MaxCuckooLayers:
		return 0, fmt.Errorf("%w: %d sub-filters, of at most %d", bloom.ErrLimit, h.layers, bloom.MaxCuckooLayers)
	}
	buckets := h.buckets
	for i := range h.layers {
		if i > 0 {
			buckets *= uint64(h.growth) // below 2^50
		}
		if buckets > filterfile.MaxBuckets {
			return 0, fmt.Errorf("%w: sub-filter %d has %d buckets, of at most %d", bloom.ErrLimit, i+1, buckets, uint64(filterfile.MaxBuckets))
		}
		slots += buckets * uint64(h.size)
	}
	return slots, nil
}

// make makes the filter, of slots that are empty, or those that r has.
func (h cuckooHead) make(config Config, r io.Reader) (Cuckoo, error) {
	f, err := bloom.Inside.CuckooOf(bloom.CuckooConfig{
		Keys: h.buckets * uint64(h.size), BucketSize: int(h.size), Iterations: int(h.iterations),
		Growth: int(h.growth), NonScaling: h.growth == 0, Grant: config.Grant, Release: config.Release,
	}, int(h.layers), h.items, h.removed, r)
	return Cuckoo{f}, err
}

// Compatible returns an error that wraps [bloom.ErrUnlike] if RedisBloom's hash is not that
// of the filter, so that dumps of it would be worthless.
func (c Cuckoo) Compatible() error {
	if id := c.HashIdentity(); id != (bloom.HashIdentity{Algorithm: bloom.Murmur64A}) {
		return fmt.Errorf("%w: the filter's hash is %v, RedisBloom's is %v with seed 0", bloom.ErrUnlike, id, bloom.Murmur64A)
	}
	return nil
}

// Header returns the header of the filter's dump: what CF.SCANDUMP returns for iterator 0,
// unless the filter is empty.
func (c Cuckoo) Header() []byte {
	config, slots := c.Config(), bloom.Inside.CuckooSlots(c.Cuckoo)
	h := cuckooHead{
		items: c.Len(), removed: c.Removed(), layers: uint64(len(slots)),
		buckets: uint64(len(slots[0]) / config.BucketSize),
		size:    uint16(config.BucketSize), iterations: uint16(config.Iterations), growth: uint16(config.Growth),
	}
	if config.NonScaling {
		h.growth = 0
	}
	return h.append(make([]byte, 0, cuckooHeaderBytes))
}

// CuckooHeader returns the header of the dump of an empty filter: for
// [Config.LoadCuckooHeader] it is what CF.RESERVE makes. The hash is RedisBloom's. The error
// wraps [bloom.ErrConfig] or [bloom.ErrRate].
func CuckooHeader(c bloom.CuckooConfig) ([]byte, error) {
	c.Grant, c.Release, c.Seed, c.Secret = nil, nil, 0, nil
	plan, err := c.Plan()
	if err != nil {
		return nil, err
	}
	f, err := bloom.Inside.CuckooOf(c, 0, 0, 0, nil) // without layers it takes no memory
	if err != nil {
		return nil, err
	}
	c = f.Config()
	h := cuckooHead{buckets: plan.Blocks, layers: 1, size: uint16(c.BucketSize), iterations: uint16(c.Iterations), growth: uint16(c.Growth)}
	if c.NonScaling {
		h.growth = 0
	}
	return h.append(nil), nil
}

// CuckooDumpBytes returns how many bytes the dump with a header has, the header included; zero
// if [Config.LoadCuckooHeader] would refuse it.
func CuckooDumpBytes(header []byte) uint64 {
	if len(header) != cuckooHeaderBytes {
		return 0
	}
	slots, err := parseCuckooHead(header).check()
	if err != nil {
		return 0
	}
	return cuckooHeaderBytes + slots
}

// ScanDump is CF.SCANDUMP. For iterator 0 it returns the header and iterator 1. For n >= 1
// it returns the slots of a layer from offset n-1 on, and the iterator after them; offsets
// count through the slots of all layers, oldest first. A chunk ends with its layer, or
// after 16 MiB. Past the end, below zero, and always if the filter is empty, it returns 0
// and no bytes.
//
// An iterator that no chunk ended with, which points into one, gets all of that chunk, and
// the sum of the iterator and its length, as from RedisBloom.
func (c Cuckoo) ScanDump(iterator int64) (next int64, data []byte) {
	switch {
	case iterator < 0 || c.Len() == 0:
		return 0, nil
	case iterator == 0:
		return 1, c.Header()
	}
	slots, within, ok := c.at(uint64(iterator) - 1)
	if !ok {
		return 0, nil
	}
	slots = slots[within/maxChunk*maxChunk:]
	data = append([]byte(nil), slots[:min(len(slots), maxChunk)]...)
	runtime.KeepAlive(c.Cuckoo)
	return iterator + int64(len(data)), data
}

// at returns the slots of the layer at an offset into the slots of all layers, and the
// offset within them.
func (c Cuckoo) at(offset uint64) (slots []byte, within uint64, ok bool) {
	for _, slots := range bloom.Inside.CuckooSlots(c.Cuckoo) {
		if offset < uint64(len(slots)) {
			return slots, offset, true
		}
		offset -= uint64(len(slots))
	}
	return nil, 0, false
}

// LoadCuckooHeader makes the filter that a dump's header describes, as CF.LOADCHUNK does for
// iterator 1 and a new name. All slots are empty until [Cuckoo.LoadChunk] sets them. Only
// Grant and Release of the config are used: see [Config.LoadHeader]. A header of 38 bytes
// can ask for terabytes, so a caller that accepts headers from strangers should set a Grant.
//
// The error wraps [ErrCuckooHeader], or [ErrCuckooCreate] and what is wrong:
// [bloom.ErrFormat], [bloom.ErrLimit], [bloom.ErrBudget] or Grant's error.
func (config Config) LoadCuckooHeader(header []byte) (Cuckoo, error) {
	if len(header) != cuckooHeaderBytes {
		return Cuckoo{}, fmt.Errorf("%w: %w: it has %d bytes, not %d", ErrCuckooHeader, bloom.ErrFormat, len(header), cuckooHeaderBytes)
	}
	h := parseCuckooHead(header)
	if _, err := h.check(); err != nil {
		return Cuckoo{}, fmt.Errorf("%w: %w", ErrCuckooCreate, err)
	}
	c, err := h.make(config, nil)
	if err != nil {
		return Cuckoo{}, fmt.Errorf("%w: %w", ErrCuckooCreate, err)
	}
	return c, nil
}

// LoadChunk is CF.LOADCHUNK for an existing filter: data replaces the slots that end at
// offset iterator-1, as [Cuckoo.ScanDump] returns them with that iterator. They must lie in
// one layer. The error is [ErrCuckooChunk], and then nothing has changed.
func (c Cuckoo) LoadChunk(iterator int64, data []byte) error {
	if err := c.FitsChunk(iterator, len(data)); err != nil {
		return err
	}
	slots, within, _ := c.at(uint64(iterator) - 1 - uint64(len(data)))
	copy(slots[within:], data)
	runtime.KeepAlive(c.Cuckoo)
	return nil
}

// FitsChunk returns the error that [Cuckoo.LoadChunk] would return for data of that size.
func (c Cuckoo) FitsChunk(iterator int64, size int) error {
	if size <= 0 || iterator <= int64(size) {
		return ErrCuckooChunk
	}
	slots, within, ok := c.at(uint64(iterator) - 1 - uint64(size))
	if !ok || uint64(len(slots))-within < uint64(size) {
		return ErrCuckooChunk
	}
	return nil
}

// WriteDump writes the filter as a dump: the data of all replies of CF.SCANDUMP, one after
// the other; of an empty filter also, for which CF.SCANDUMP has none. The error wraps
// [bloom.ErrUnlike] if it would not be RedisBloom's; see [Cuckoo.Compatible].
func (c Cuckoo) WriteDump(w io.Writer) error {
	if err := c.Compatible(); err != nil {
		return err
	}
	_, err := w.Write(c.Header())
	for _, slots := range bloom.Inside.CuckooSlots(c.Cuckoo) {
		for len(slots) > 0 && err == nil {
			n := min(len(slots), 1<<20)
			_, err = w.Write(slots[:n])
			slots = slots[n:]
		}
	}
	runtime.KeepAlive(c.Cuckoo)
	if err != nil {
		return fmt.Errorf("writing a cuckoo filter: %w", err)
	}
	return nil
}

// ReadCuckoo reads a dump that [Cuckoo.WriteDump] wrote, or that is the concatenated data of
// all replies of CF.SCANDUMP. Only Grant and Release of the config are used. Grant is
// asked for each layer before its slots are read; without one, memory grows as the bytes
// arrive. The error wraps [bloom.ErrFormat] or [bloom.ErrLimit], or is Grant's or the
// reader's.
func (config Config) ReadCuckoo(r io.Reader) (Cuckoo, error) {
	header := make([]byte, cuckooHeaderBytes)
	if err := filterfile.ReadFull(r, header); err != nil {
		return Cuckoo{}, err
	}
	h := parseCuckooHead(header)
	slots, err := h.check()
	if err == nil && h.items > slots {
		err = fmt.Errorf("%w: %d items in %d slots", bloom.ErrFormat, h.items, slots)
	}
	if err != nil {
		return Cuckoo{}, err
	}
	c, err := h.make(config, r)
	if err != nil {
		return Cuckoo{}, err
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n != 0 || err != io.EOF {
		c.Close()
		if n == 0 {
			return Cuckoo{}, filterfile.ReadError(err)
		}
		return Cuckoo{}, fmt.Errorf("%w: there are bytes behind the last sub-filter", bloom.ErrFormat)
	}
	return c, nil
}

// RecogniseCuckoo reports whether a file of size bytes (-1: unknown) that begins with
// start, at least 64 bytes unless the file is shorter, can be what [Cuckoo.WriteDump]
// writes. Nothing in it is a magic number, but a header that agrees with itself and with
// the file's size does not occur by chance.
func RecogniseCuckoo(start []byte, size int64) bool {
	if len(start) < cuckooHeaderBytes {
		return false
	}
	h := parseCuckooHead(start)
	slots, err := h.check()
	return err == nil && h.items <= slots && (size < 0 || uint64(size) == cuckooHeaderBytes+slots)
}

// CuckooInfo is what CF.INFO reports.
type CuckooInfo struct {
	Size                            uint64 // bytes: of the slots, and what RedisBloom's structures take
	Buckets                         uint64 // of the first layer
	Filters                         int    // layers
	Items, Removed                  uint64
	BucketSize, Expansion, MaxMoves int
}

// The sizes of RedisBloom's structures, as the module itself counts them.
const (
	redisCuckooBytes      = 40
	redisCuckooLayerBytes = 16
)

// Info returns what CF.INFO reports.
func (c Cuckoo) Info() CuckooInfo {
	h := parseCuckooHead(c.Header())
	return CuckooInfo{
		Size:    redisCuckooBytes + redisCuckooLayerBytes*h.layers + c.Bytes(),
		Buckets: h.buckets, Filters: int(h.layers), Items: h.items, Removed: h.removed,
		BucketSize: int(h.size), Expansion: int(h.growth), MaxMoves: int(h.iterations),
	}
}

// LoadCuckooHeader is [Config.LoadCuckooHeader] with a Grant alone, which may be nil.
func LoadCuckooHeader(header []byte, grant func(bytes uint64) error) (Cuckoo, error) {
	return Config{Grant: grant}.LoadCuckooHeader(header)
}
