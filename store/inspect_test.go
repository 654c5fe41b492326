package store_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/bloomery/bloom/store"
)

// inspected are filters of every kind and shape.
var inspected = []store.Spec{
	{Kind: store.RedisBloom, Capacity: 1000, Rate: 0.01, Public: true},
	{Kind: store.RedisBloom, Capacity: 300, Rate: 0.01, Growth: 2, Public: true},
	{Kind: store.Paired, Capacity: 1000, Rate: 0.01, Public: true},
	{Kind: store.Paired, Capacity: 300, Rate: 0.01, Growth: 2},
	{Kind: store.Window, Capacity: 300, Rate: 0.01, Growth: 2, Span: time.Hour},
}

// TestInspector compares what people are shown with what lookups and reports say.
func TestInspector(t *testing.T) {
	st := open(t, store.LocalConfig{})
	for _, spec := range inspected {
		name := fmt.Sprintf("%v, growth %d", spec.Kind, spec.Growth)
		f, err := st.Create(t.Context(), name, spec)
		if err != nil {
			t.Fatal(err)
		}
		keys := make([][]byte, 1000)
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "key %d", i)
		}
		if _, err := f.Add(t.Context(), keys, make([]bool, len(keys))); err != nil {
			t.Fatal(err)
		}
		info, shown := f.Info(), f.(store.Inspector)
		checkPopulation(t, name, f, info)
		for i := range 2000 { // the first half was added
			checkPlace(t, name, f, info, fmt.Appendf(nil, "key %d", i))
		}
		spans, err := shown.Spans()
		if err != nil || (spec.Kind == store.Window) != (len(spans) == len(info.Layers)) {
			t.Errorf("%s: %d spans, %v, of %d layers", name, len(spans), err, len(info.Layers))
		}
		for _, span := range spans {
			if lasts := span.Expires.Sub(span.Starts); lasts != spec.Span*5/4 || time.Since(span.Starts) > time.Minute || time.Since(span.Starts) < 0 {
				t.Errorf("%s: a generation from %v for %v, want from now for %v", name, span.Starts, lasts, spec.Span*5/4)
			}
		}
		st.Drop(t.Context(), name)
		_, _, populationErr := shown.Population(0, 8)
		_, placeErr := shown.Place(keys[0])
		_, spansErr := shown.Spans()
		for _, err := range []error{populationErr, placeErr, spansErr} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s, dropped: %v, want ErrNotFound", name, err)
			}
		}
	}
}

// checkPopulation compares the parts' bits with the report's fill.
func checkPopulation(t *testing.T, name string, f store.Filter, info store.Info) {
	t.Helper()
	for _, parts := range []int{1, 3, 64, 1 << 20} {
		all, bits := uint64(0), uint64(0)
		for i, layer := range info.Layers {
			set, read, err := f.(store.Inspector).Population(i, parts)
			if err != nil || len(set) != len(read) || len(set) == 0 || len(set) > parts {
				t.Fatalf("%s: %d parts of layer %d: %d and %d numbers, %v", name, parts, i, len(set), len(read), err)
			}
			seen := uint64(0)
			for j := range set {
				if all += set[j]; set[j] > read[j] {
					t.Errorf("%s: %d of %d bits set", name, set[j], read[j])
				}
				seen += read[j]
			}
			if seen != layer.Bits {
				t.Errorf("%s: %d bits read of layer %d, want all %d", name, seen, i, layer.Bits)
			}
			bits += layer.Bits
		}
		// The report of a window counts the bits of generations to come.
		if fill := f.Report().Fill; info.Kind != store.Window && math.Abs(float64(all)/float64(bits)-fill) > 1e-9 {
			t.Errorf("%s: %d of %d bits set, want a fill of %v", name, all, bits, fill)
		}
	}
	for _, layer := range []int{-1, len(info.Layers)} {
		if set, _, err := f.(store.Inspector).Population(layer, 8); len(set) > 0 || err != nil {
			t.Errorf("%s: layer %d: %v, %v, want nothing", name, layer, set, err)
		}
	}
}

// checkPlace checks that a key is found if all its bits are set in one of the layers.
func checkPlace(t *testing.T, name string, f store.Filter, info store.Info, key []byte) {
	t.Helper()
	p, err := f.(store.Inspector).Place(key)
	if err != nil || len(p.Layers) != len(info.Layers) {
		t.Fatalf("%s: %d layers, %v, want %d", name, len(p.Layers), err, len(info.Layers))
	}
	somewhere := false
	for i, layer := range p.Layers {
		if len(layer.Bits) != info.Layers[i].Probes {
			t.Fatalf("%s: %d bits in layer %d, want %d", name, len(layer.Bits), i, info.Layers[i].Probes)
		}
		found := true
		for _, bit := range layer.Bits {
			found = found && bit.Set
			inLine := false
			for _, line := range layer.Lines {
				inLine = inLine || bit.At/512 == layer.Block*8+uint64(line)
			}
			if bit.At >= info.Layers[i].Bits || len(layer.Lines) > 0 && !inLine {
				t.Errorf("%s: bit %d of %d, in lines %v of block %d", name, bit.At, info.Layers[i].Bits, layer.Lines, layer.Block)
			}
		}
		somewhere = somewhere || found
	}
	answer := make([]bool, 1)
	if f.Contains(t.Context(), [][]byte{key}, answer); answer[0] != somewhere {
		t.Errorf("%s: Contains(%q) = %v, but all bits set: %v", name, key, answer[0], somewhere)
	}
}
