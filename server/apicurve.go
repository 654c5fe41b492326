package server

import (
	"math"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/rate"
	"github.com/bloomery/bloom/store"
)

// curvePoints is how many steps the curve of a filter's rate has.
const curvePoints = 48

// curveOf returns the expected rate of a filter from no items to twice its capacity: by
// the formulas, as if all keys were different and came in this order. A filter that
// grows gets the layers that it would make. It is empty for a window, whose rate depends
// on when keys come, and for kinds from which keys can be removed.
func curveOf(info *store.Info) []pointJSON {
	points := []pointJSON{}
	if info.Kind != store.RedisBloom && info.Kind != store.Paired || len(info.Layers) == 0 || info.Room == 0 {
		return points
	}
	layers, room := info.Layers[:len(info.Layers):len(info.Layers)], info.Room
	most := info.Room
	if most <= math.MaxUint64/4 {
		most *= 2
	}
	for info.Growth > 0 && room < most && len(layers) < 2*len(info.Layers)+8 {
		next, ok := nextLayer(info, layers[len(layers)-1])
		if !ok {
			break
		}
		layers = append(layers, next)
		room += next.Capacity
	}
	for i := range curvePoints + 1 {
		n := uint64(float64(most) * float64(i) / curvePoints)
		points = append(points, pointJSON{n, rateOfLayers(info.Kind, layers, n)})
	}
	return points
}

// nextLayer is about the layer that a filter makes when the last one is full.
func nextLayer(info *store.Info, last store.Layer) (store.Layer, bool) {
	next := store.Layer{Capacity: last.Capacity * uint64(info.Growth), Rate: last.Rate / 2}
	if next.Capacity/uint64(info.Growth) != last.Capacity || next.Rate <= 0 {
		return next, false
	}
	if info.Kind == store.RedisBloom {
		next.Probes = int(math.Ceil(-math.Log2(next.Rate)))
		next.Bits = uint64(math.Ceil(float64(next.Capacity) * -math.Log(next.Rate) / (math.Ln2 * math.Ln2)))
		return next, next.Bits > 0
	}
	plan, err := bloom.Config{Keys: next.Capacity, Rate: next.Rate}.Plan()
	next.Bits, next.Probes = plan.Bits, plan.Probes
	return next, err == nil
}

// rateOfLayers is the expected rate of layers that are filled one after another.
func rateOfLayers(kind store.Kind, layers []store.Layer, n uint64) float64 {
	found := 0.
	for i, layer := range layers {
		in := min(n, layer.Capacity)
		if i == len(layers)-1 {
			in = n
		}
		n -= in
		found += (1 - found) * layerRate(kind, layer, in)
	}
	return found
}

// layerRate is the expected rate of a layer with n different keys.
func layerRate(kind store.Kind, layer store.Layer, n uint64) float64 {
	switch {
	case n == 0 || layer.Bits == 0 || layer.Probes == 0:
		return 0
	case kind == store.RedisBloom:
		return rate.Classic(n, layer.Bits, layer.Probes)
	}
	const blockBits = 512 * 8
	return rate.Paired(n, max(layer.Bits/blockBits, 1), layer.Probes/2)
}
