package redisbloom

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync/atomic"

	"github.com/bloomery/bloom"
)

// FitsUnion returns how many layers [Filter.Union] can add: all that the other chain
// has. They must have the bits and the probes of c's first layers; otherwise the error
// wraps [bloom.ErrUnlike].
func (c *Filter) FitsUnion(other *Filter) (layers int, err error) {
	ours, theirs := c.layers(), other.layers()
	if len(ours) < len(theirs) {
		return 0, fmt.Errorf("%w: %d layers and %d", bloom.ErrUnlike, len(ours), len(theirs))
	}
	return len(theirs), alike(ours, theirs)
}

// AlikeLayers returns how many of the first layers of both chains are alike.
func (c *Filter) AlikeLayers(other *Filter) (n int) {
	ours, theirs := c.layers(), other.layers()
	for n < min(len(ours), len(theirs)) && alike(ours[n:], theirs[n:n+1]) == nil {
		n++
	}
	return n
}

// alike refuses layers that are unlike.
func alike(ours, theirs []*layer) error {
	for i, l := range theirs {
		if a, b := ours[i].bits, l.bits; a.Bits != b.Bits || a.Probes != b.Probes {
			return fmt.Errorf("%w: layer %d has %d bits, k %d, and %d bits, k %d", bloom.ErrUnlike, i, a.Bits, a.Probes, b.Bits, b.Probes)
		}
	}
	return nil
}

// Union adds all bits of the first layers of another chain, layer by layer, while keys
// are added to and looked up in both. How many layers, FitsUnion or AlikeLayers have
// said: both chains may have appended further ones since, which need not be alike. The
// items of c's layers stay as they are; [Filter.SetItems] sets them. It returns the
// number of set bits of each layer. between, if not nil, is called after each 64 KiB,
// and ends the union by returning an error: c then has some of the bits. An error that
// wraps [bloom.ErrUnlike] means that the layers are unlike, and then nothing has changed.
func (c *Filter) Union(other *Filter, layers int, between func() error) (set []uint64, err error) {
	ours, theirs := c.layers(), other.layers()
	if layers > min(len(ours), len(theirs)) {
		return nil, fmt.Errorf("%w: %d layers and %d, of which %d are to be merged", bloom.ErrUnlike, len(ours), len(theirs), layers)
	}
	theirs = theirs[:layers]
	if err := alike(ours, theirs); err != nil {
		return nil, err
	}
	const step = 64 << 10 / 8
	for i, from := range theirs {
		into, count := ours[i], uint64(0)
		words := into.bits.Words
		for at := 0; at < len(words); at += step {
			end := min(at+step, len(words))
			c.gate.Lock() // adds to c; a lookup in between finds some bits of a key, or all
			count += orWords(words[at:end], from.bits.Words[at:end])
			c.gate.Unlock()
			if between == nil {
				continue
			}
			if err := between(); err != nil {
				return nil, err
			}
		}
		set = append(set, count)
		runtime.KeepAlive(into)
		runtime.KeepAlive(from)
	}
	return set, nil
}

// orWords ORs one slice of words into another, and returns how many bits are set there.
// Others may be setting bits in the one and reading the other.
func orWords(into, from []uint64) (set uint64) {
	for i := range into {
		old := into[i]
		sum := old | atomic.LoadUint64(&from[i])
		if sum != old {
			atomic.StoreUint64(&into[i], sum)
		}
		set += uint64(bits.OnesCount64(sum))
	}
	return set
}

// ScanPiece is [Filter.ScanDump] into a buffer: data is a part of it. It is for
// iterators of at least 1.
func (c *Filter) ScanPiece(iterator int64, buffer []uint64) (next int64, data []byte) {
	l, offset, ok := c.at(uint64(iterator) - 1)
	if iterator < 1 || !ok {
		return 0, nil
	}
	n := min(l.bytes()-offset, uint64(len(buffer))*8-offset%8)
	data = l.readInto(buffer, offset, n)
	return iterator + int64(n), data
}

// FitsChunk returns the error that [Filter.LoadChunk] would.
func (c *Filter) FitsChunk(iterator int64, data []byte) error {
	_, _, err := c.place(iterator, data)
	return err
}
