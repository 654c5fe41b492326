package store

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
)

// chain is RedisBloom's filter. It is one pointer, so that it takes no memory of
// its own in a value.
type chain struct{ *interop.Chain }

func (c chain) kind() Kind { return RedisBloom }

func (l *Local) newChain(spec Spec) (body, error) {
	c, err := interop.NewChain(interop.ChainConfig{
		Keys:       spec.Capacity,
		Rate:       spec.Rate,
		Growth:     spec.Growth,
		NonScaling: spec.Growth == 0,
		Grant:      l.grantLayer,
		Release:    l.releaseLayer,
	})
	if err != nil {
		return nil, err
	}
	return chain{c}, nil
}

func (l *Local) loadChain(header []byte) (body, error) {
	c, err := interop.ChainConfig{Grant: l.grantLayer, Release: l.releaseLayer}.LoadHeader(header)
	if err != nil {
		return nil, chunkError(err)
	}
	return chain{c}, nil
}

// giveBack lets the chain itself return what was granted to it, and ask no more.
func (c chain) giveBack(*Local) { c.SetGrant(nil, nil) }

func (c chain) add(v *value, keys [][]byte, isNew []bool) (done int, err error) {
	s := scratches.Get().(*scratch)
	pairs := s.pairs[:len(keys)]
	interop.HashManyRedisBloom(keys, pairs)
	gate := v.gate()
	gate.RLock()
	v.local.underway.RLock()
	for done < len(pairs) && err == nil {
		var n, layer int
		n, layer, err = c.AddPairs(pairs[done:], isNew[done:])
		v.logPairs(layer, pairs[done:][:n], isNew[done:][:n])
		done += n
	}
	v.local.underway.RUnlock()
	gate.RUnlock()
	scratches.Put(s)
	if errors.Is(err, interop.ErrFull) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return done, err
}

func (c chain) contains(keys [][]byte, found []bool) { c.ContainsMany(keys, found) }

func (c chain) report() bloom.Report { return c.Report() }

func (c chain) info() Info {
	info, layers := c.Info(), c.Layers()
	i := Info{
		Spec: Spec{
			Kind:     RedisBloom,
			Capacity: layers[0].Capacity,
			Rate:     layers[0].Rate,
			Growth:   info.Expansion,
			Public:   true,
		},
		Bytes: info.Size,
		Items: info.Items,
		Room:  info.Capacity,
	}
	if info.Expansion != 0 {
		i.Rate *= 2 // RedisBloom halves it for the first layer
	}
	for _, layer := range layers {
		i.Layers = append(i.Layers, Layer(layer))
	}
	return i
}

func (c chain) dump(v *value, iterator int64) (next int64, chunk []byte, err error) {
	next, chunk = c.ScanDump(iterator)
	return next, chunk, nil
}

func (c chain) load(v *value, iterator int64, chunk []byte) error {
	if len(chunk) > maxLoad {
		return chunkError(fmt.Errorf("%w: %d bytes, of at most %d", bloom.ErrLimit, len(chunk), maxLoad))
	}
	gate := v.gate()
	gate.Lock()
	defer gate.Unlock()
	v.local.underway.RLock()
	defer v.local.underway.RUnlock()
	if err := c.LoadChunk(iterator, chunk); err != nil {
		return chunkError(err)
	}
	if v.keeps() { // else it may have grown without a record of that
		v.logChunk(iterator, chunk)
	}
	return nil
}

// merge takes the bits of a chain whose layers are of the same sizes. How many
// keys that makes is estimated by the bits, between the larger count and the sum
// of both; the log has the estimates.
func (c chain) merge(v, from *value) error {
	other, ok := from.body.(chain)
	if !ok {
		return fmt.Errorf("%w: one filter is RedisBloom's, the other our own", bloom.ErrUnlike)
	}
	ours, theirs := c.Layers(), other.Layers()
	if len(ours) != len(theirs) {
		return fmt.Errorf("%w: %d layers and %d", bloom.ErrUnlike, len(ours), len(theirs))
	}
	set := make([]uint64, len(ours))
	for i := range ours {
		if ours[i].Bits != theirs[i].Bits || ours[i].Probes != theirs[i].Probes {
			return fmt.Errorf("%w: layer %d has %d bits, k %d, and %d bits, k %d", bloom.ErrUnlike, i, ours[i].Bits, ours[i].Probes, theirs[i].Bits, theirs[i].Probes)
		}
	}
	c.joined(other, func(layer int, _ int64, piece []byte) {
		for _, b := range piece {
			set[layer] += uint64(bits.OnesCount8(b))
		}
	})
	items := make([]uint64, len(ours))
	for i, l := range ours {
		items[i] = estimate(set[i], l.Bits, l.Probes, max(l.Items, theirs[i].Items), l.Items+theirs[i].Items)
	}
	if v.keeps() {
		v.logMerge(from.id, items)
	}
	c.mergeWith(other, items)
	return nil
}

// estimate is how many keys set so many of m bits (Swamidass and Baldi 2007,
// equation 1), not below the least and not above the most there can be.
func estimate(set, m uint64, k int, least, most uint64) uint64 {
	if set >= m {
		return most
	}
	keys := -float64(m) / float64(k) * math.Log1p(-float64(set)/float64(m))
	return uint64(min(max(keys, float64(least)), float64(most)))
}

// mergeWith is merge, when it is decided.
func (c chain) mergeWith(other chain, items []uint64) {
	c.joined(other, func(_ int, iterator int64, piece []byte) { c.LoadChunk(iterator, piece) })
	for i, n := range items {
		c.SetItems(i, n)
	}
}

// joined calls back with the bits of both chains, piece by piece, and the iterator
// to load each piece with.
func (c chain) joined(other chain, do func(layer int, iterator int64, piece []byte)) {
	layer, left := -1, uint64(0)
	layers := c.Layers()
	for at := int64(1); ; {
		next, piece := c.ScanDump(at)
		_, more := other.ScanDump(at)
		if next == 0 {
			return
		}
		for i := range min(len(piece), len(more)) {
			piece[i] |= more[i]
		}
		if left == 0 {
			layer++
			left = layers[layer].Bytes
		}
		left -= uint64(len(piece))
		do(layer, next, piece)
		at = next
	}
}

func (c chain) fold(*value, uint64) error {
	return fmt.Errorf("RedisBloom's filters cannot be folded: %w", errUnsupported)
}
