package redisbloom

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/memory"
)

// Recognise reports whether a file of size bytes (-1: unknown) that begins with
// start, at least 64 bytes unless the file is shorter, can be what
// [Filter.WriteTo] writes. Nothing in it is a magic number, but a header that
// agrees with itself and with the file's size does not occur by chance.
func Recognise(start []byte, size int64) bool {
	if len(start) < headerBytes+linkBytes-9 { // link.check does not need the last 9
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

// Read is [Config.Read] without a Grant: memory grows as the bytes arrive, and added
// keys can make the chain grow without bound. See [Filter.SetGrant].
func Read(r io.Reader) (*Filter, error) { return Config{}.Read(r) }

// Read reads a dump that [Filter.WriteTo] wrote, or that is the concatenated data of
// all replies of BF.SCANDUMP. Only Grant and Release of the config are used. Grant is
// asked for each layer before its bits are read; without one, memory grows as the
// bytes arrive. The error wraps [bloom.ErrFormat], [bloom.ErrVersion] or
// [bloom.ErrLimit], or is Grant's or the reader's.
func (config Config) Read(r io.Reader) (*Filter, error) {
	header := make([]byte, headerBytes)
	if err := filterfile.ReadFull(r, header); err != nil {
		return nil, err
	}
	h := parseHead(header)
	if err := h.check(); err != nil {
		return nil, err
	}
	header = append(header, make([]byte, linkBytes*int(h.links))...)
	if err := filterfile.ReadFull(r, header[headerBytes:]); err != nil {
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
			return nil, filterfile.ReadError(err)
		}
		return nil, fmt.Errorf("%w: there are bytes behind the last link", bloom.ErrFormat)
	}
	return c, nil
}

// SetGrant replaces the chain's Grant and Release; see [Config]. The new Grant is not
// asked for the layers that exist; what an earlier Grant gave for them is given back.
// No other method may run at the same time.
func (c *Filter) SetGrant(grant func(bytes uint64) error, release func(bytes uint64)) {
	c.endAhead()
	for l := c.open(); l != nil; l = l.older {
		if l.granted {
			c.giveBack(l.takes())
		}
		l.granted = false
	}
	c.grant, c.release = grant, release
}

// readBits reads the bytes of a link into a layer. With a Grant, it allocates all of
// them at once. Otherwise it doubles the room each time it is full, so that it never
// holds more than three times what has arrived.
func (c *Filter) readBits(r io.Reader, layer *layer, l link) (err error) {
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
		if err := filterfile.ReadFull(r, b[:min(uint64(len(b)), l.bytes-8*have)]); err != nil {
			return err
		}
		toLittleEndian(part)
		have += uint64(len(part))
	}
	layer.fill(words, mapping, l.bits, l.probes)
	return nil
}

// WriteTo writes the chain as a dump: the data of all replies of BF.SCANDUMP, one
// after the other. Keys that are added meanwhile tear it; see [Filter.ScanDump].
func (c *Filter) WriteTo(w io.Writer) (written int64, err error) {
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

// onlyWriter hides a writer's other methods, so that io.CopyBuffer uses the buffer.
type onlyWriter struct{ io.Writer }
