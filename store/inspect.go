package store

import (
	"math/bits"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/redisbloom"
)

// sampledBytes is how much of a layer Population reads at most: a few milliseconds.
const sampledBytes = 16 << 20

// look pins the bits and passes them to one of two functions, by the kind of filter.
func (v *value) look(chained func(c chain), layered func(f hashed)) error {
	pinned, err := v.hold()
	if err != nil {
		return err
	}
	defer v.local.unpin(pinned)
	switch body := v.body.(type) {
	case chain:
		chained(body)
	case *paired:
		if body.spec.Kind == Counting {
			return errUnsupported
		}
		layered(pinned.(hashed))
	default:
		return errUnsupported
	}
	return nil
}

// Spans returns the times of the layers of a window.
func (v *value) Spans() (spans []Span, err error) {
	err = v.look(func(chain) {}, func(f hashed) {
		if _, ok := f.(*bloom.Window); !ok {
			return
		}
		for _, layer := range bloom.Inside.ShownLayers(f) {
			spans = append(spans, Span{layer.Starts, layer.Expires})
		}
	})
	return spans, err
}

// Population counts the bits of a layer's parts that are set.
func (v *value) Population(layer, parts int) (set, read []uint64, err error) {
	parts = max(parts, 1)
	err = v.look(func(c chain) {
		set, read = c.Population(layer, parts, sampledBytes)
	}, func(f hashed) {
		if layers := bloom.Inside.ShownLayers(f); layer >= 0 && layer < len(layers) {
			set, read = bloom.Inside.Population(layers[layer].Bits, parts, sampledBytes)
		}
	})
	return set, read, err
}

// Place hashes a key as the filter does.
func (v *value) Place(key []byte) (p Place, err error) {
	err = v.look(func(c chain) {
		a, b := redisbloom.Hash(key)
		p.Hash = []uint64{a, b}
		for i := range c.Layers() {
			at, set := c.Positions(i, redisbloom.Pair{a, b})
			layer := LayerPlace{Bits: make([]BitPlace, len(at))}
			for j := range at {
				layer.Bits[j] = BitPlace{at[j], set[j]}
			}
			p.Layers = append(p.Layers, layer)
		}
	}, func(f hashed) {
		h := f.Hash(key)
		p.Hash = []uint64{h}
		for _, layer := range bloom.Inside.ShownLayers(f) {
			p.Layers = append(p.Layers, placeIn(layer.Bits, h))
		}
	})
	return p, err
}

// placeIn returns where the bits of a key lie in a layer of paired lines.
func placeIn(f *bloom.Shared, h uint64) LayerPlace {
	place, set := bloom.Inside.Place(f, h)
	p := LayerPlace{Block: place.Block, Lines: place.Lines[:]}
	for i, line := range place.Lines {
		for lane, mask := range place.Masks[i] {
			first := place.Block*kernel.BlockBits + uint64(line*kernel.LanesPerLine+lane)*64
			for ; mask != 0; mask &= mask - 1 {
				bit := bits.TrailingZeros64(mask)
				p.Bits = append(p.Bits, BitPlace{first + uint64(bit), set[i][lane]>>bit&1 == 1})
			}
		}
	}
	return p
}
