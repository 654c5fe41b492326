package interop

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/memory"
)

// redisBloomFormat is a file with a dump in it: RedisBloom itself has no files, only the
// pairs that BF.SCANDUMP answers. Their data, one behind the other, is the file:
// the header, and the bytes of all links. Nothing in it is a magic number, but a
// header that agrees with itself and the file's size is not met by chance.
var redisBloomFormat = &Format{
	Name:    "redisbloom",
	About:   "RedisBloom: the data of all answers of BF.SCANDUMP, one behind the other",
	Matches: matchesRedisBloom,
	plans:   true,
	read:    readRedisBloom,
	write:   writeRedisBloom,
}

func matchesRedisBloom(start []byte, size int64) bool {
	if len(start) < headerBytes+linkBytes-9 { // but for what link.check does not need
		return false
	}
	padded := make([]byte, headerBytes+linkBytes)
	copy(padded, start)
	h, first := parseHead(padded), parseLink(padded[headerBytes:])
	first.n2 = 0
	if errors.Is(h.check(), bloom.ErrFormat) || errors.Is(first.check(), bloom.ErrFormat) || first.items > h.items {
		return false
	}
	least := uint64(headerBytes) + linkBytes*uint64(h.links) + first.bytes
	return size < 0 || uint64(size) == least || h.links > 1 && uint64(size) > least
}

func readRedisBloom(r io.Reader, o Options) (*File, error) {
	chain, err := ChainConfig{Grant: o.Grant, Release: o.Release}.Read(r)
	if err != nil {
		return nil, err
	}
	return &File{Filter: chain, Details: chain.details()}, nil
}

// ReadChain is [ChainConfig.Read] without a Grant, so memory grows as the bytes
// arrive, and keys that are added can make the chain grow without end: see
// [Chain.SetGrant].
func ReadChain(r io.Reader) (*Chain, error) { return ChainConfig{}.Read(r) }

// Read reads a dump that [Chain.WriteTo] wrote, or that was put together from the
// data of all answers of BF.SCANDUMP. Of the config only Grant and Release count.
// Grant is asked for each layer before its bits are read; without one, memory grows
// as the bytes arrive. The error wraps [bloom.ErrFormat], [bloom.ErrVersion] or
// [bloom.ErrLimit], or is Grant's or the reader's.
func (config ChainConfig) Read(r io.Reader) (*Chain, error) {
	header := make([]byte, headerBytes)
	if err := readFull(r, header); err != nil {
		return nil, err
	}
	h := parseHead(header)
	if err := h.check(); err != nil {
		return nil, err
	}
	header = append(header, make([]byte, linkBytes*int(h.links))...)
	if err := readFull(r, header[headerBytes:]); err != nil {
		return nil, err
	}
	c, links, err := parseHeader(header)
	if err != nil {
		return nil, err
	}
	c.grant, c.release = config.Grant, config.Release
	for i, l := range links {
		layer := l.layer()
		if err := c.readBits(r, layer, l); err != nil {
			c.Close()
			return nil, fmt.Errorf("link %d of %d: %w", i+1, len(links), err)
		}
		c.push(layer)
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n != 0 || err != io.EOF {
		c.Close()
		if n == 0 {
			return nil, readError(err)
		}
		return nil, fmt.Errorf("%w: there are bytes behind the last link", bloom.ErrFormat)
	}
	return c, nil
}

// SetGrant sets who is asked before the chain grows, and who then gets back what
// was granted; see [ChainConfig]. For the layers that are there it is not asked;
// what an earlier Grant gave for them is given back. Nothing else may run beside
// it.
func (c *Chain) SetGrant(grant func(bytes uint64) error, release func(bytes uint64)) {
	for l := c.open(); l != nil; l = l.older {
		if l.granted {
			c.giveBack(l.takes())
		}
		l.granted = false
	}
	c.grant, c.release = grant, release
}

// readBits reads the bytes of a link into a layer. If the chain has a Grant that
// allows them, it takes the room for all of them at once. Otherwise it doubles the
// room each time that is full, so that it never holds more than three times what has
// arrived.
func (c *Chain) readBits(r io.Reader, layer *layer, l link) (err error) {
	const piece = 64 << 10 / 8 // words
	var words []uint64
	var mapping *memory.Mapping
	total := (l.bits + 63) / 64
	first := min(total, piece)
	if c.grant != nil {
		if err := c.grant(layerTakes(l.bits)); err != nil {
			return err
		}
		layer.granted, first = true, total
	}
	defer func() {
		if err == nil {
			return
		}
		mapping.Close()
		if layer.granted {
			c.giveBack(layerTakes(l.bits))
		}
	}()
	for have := uint64(0); have < total; {
		if have == uint64(len(words)) {
			grown, mapped, err := room(min(total, max(2*have, first)))
			if err != nil {
				return err
			}
			copy(grown, words)
			mapping.Close()
			words, mapping = grown, mapped
		}
		part := words[have:min(have+piece, uint64(len(words)))]
		b := memory.Bytes(part)
		if err := readFull(r, b[:min(uint64(len(b)), l.bytes-8*have)]); err != nil {
			return err
		}
		toLittleEndian(part)
		have += uint64(len(part))
	}
	layer.fill(words, mapping, l.bits, l.probes)
	return nil
}

func writeRedisBloom(w io.Writer, f *File) error {
	chain, err := f.chain()
	if err != nil {
		return err
	}
	_, err = chain.WriteTo(w)
	return err
}

// chain returns the file's filter as a chain.
func (f *File) chain() (*Chain, error) {
	if chain, ok := f.Filter.(*Chain); ok {
		return chain, nil
	}
	classic, err := f.classicUnder(bloom.SchemeRedisBloom)
	if err != nil {
		return nil, err
	}
	return ChainOf(classic)
}

// WriteTo writes the chain as a dump: what BF.SCANDUMP answers, one behind the
// other. Keys that are added meanwhile tear it; see [Chain.ScanDump].
func (c *Chain) WriteTo(w io.Writer) (written int64, err error) {
	layers := c.layers()
	written, err = io.Copy(w, bytes.NewReader(c.header(layers)))
	for _, l := range layers {
		if err != nil {
			break
		}
		var n int64
		n, err = io.CopyBuffer(onlyWriter{w}, &layerBytes{layer: l}, make([]byte, min(l.bytes(), 1<<20)))
		written += n
	}
	if err != nil {
		return written, fmt.Errorf("writing a chain: %w", err)
	}
	return written, nil
}

// onlyWriter hides what else a writer can do, so that io.CopyBuffer uses the
// buffer.
type onlyWriter struct{ io.Writer }
