package main

import (
	"fmt"
	"math"
	"time"

	"github.com/bloomery/bloom"
)

// growths are numbers of layers: a chain whose layers double in size is full with 1, 4,
// 7, 10 and 14 of them.
var growths = []int{1, 4, 7, 10, 14}

// series is how a growing filter divides its rate among its layers; the shares of all
// layers add up to one.
var series = []struct {
	name  string
	share func(layer int) float64 // from 0
}{
	{"r = 0.5", geometric(0.5)},
	{"r = 0.7", geometric(0.7)},
	{"**r = 0.8**", geometric(0.8)},
	{"r = 0.9", geometric(0.9)},
	{"6 / (π i)²", func(i int) float64 { return 6 / math.Pow(math.Pi*float64(i+1), 2) }},
}

// geometric is (1-r) r^i: Almeida, Baquero, Preguiça and Hutchison 2007, section 3.
func geometric(r float64) func(int) float64 {
	return func(i int) float64 { return (1 - r) * math.Pow(r, float64(i)) }
}

// tightening compares series of rates by the space of a chain that doubles, with all its
// layers full, relative to a filter of the same rate planned for n keys.
func tightening() {
	titles := []string{"series, p"}
	for _, layers := range growths {
		titles = append(titles, fmt.Sprintf("L = %d, %d times", layers, 1<<layers-1))
	}
	head(titles...)
	for _, s := range series {
		for _, p := range []float64{1e-2, 1e-3} {
			cells := []string{fmt.Sprintf("%s, %s", s.name, name(p))}
			right := mustPlan(p).BitsPerKey()
			for _, layers := range growths {
				bits, keys := 0., 0.
				for i := range layers {
					size := math.Pow(2, float64(i))
					bits += size * mustPlan(p*s.share(i)).BitsPerKey()
					keys += size
				}
				cells = append(cells, fmt.Sprintf("+%.0f%%", 100*(bits/keys/right-1)))
			}
			row(cells...)
		}
	}
}

// growing fills a Scalable and measures it on the way.
func growing() {
	const p, first = 0.01, 1000
	head("keys", "growth", "layers", "bits per key", "of a filter that knew n", "times", "rate from the bits")
	for _, growth := range []int{2, 4} {
		f, err := bloom.ScalableConfig{First: first, Rate: p, Growth: growth}.New()
		if err != nil {
			panic(err)
		}
		key := uint64(0)
		for _, n := range []uint64{1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6} {
			for ; key < n; key++ {
				f.AddUint64(key)
			}
			right, err := bloom.Config{Keys: n, Rate: p}.Plan()
			if err != nil {
				panic(err)
			}
			r := f.Report()
			row(fmt.Sprint(n), fmt.Sprint(growth), fmt.Sprint(len(f.Layers())),
				fmt.Sprintf("%.1f", float64(r.Plan.Bits)/float64(n)), fmt.Sprintf("%.1f", right.BitsPerKey()),
				fmt.Sprintf("%.2f", float64(r.Plan.Bits)/float64(right.Bits)), fmt.Sprintf("%.4f", r.Rate))
		}
	}
}

// windows shows what a window costs, by its number of generations and by how keys arrive.
func windows() {
	const n = 1_000_000
	gs := []int{1, 2, 3, 4, 6, 8, 11, 12, 24, 30}
	titles := []string{"G"}
	for _, g := range gs {
		titles = append(titles, fmt.Sprint(g))
	}
	head(titles...)
	for _, p := range []float64{1e-2, 1e-4} {
		even, burst, again := []string{"evenly, p = " + name(p)}, []string{"in one burst, p = " + name(p)}, []string{"the same in every generation, p = " + name(p)}
		for _, g := range gs {
			layers, err := bloom.WindowConfig{Keys: n, Rate: p, Span: time.Hour, Generations: g}.Layers()
			if err != nil {
				panic(err)
			}
			first, all := float64(layers[0].Bits)/n, 0.
			for _, layer := range layers {
				all += float64(layer.Bits) / n
			}
			even = append(even, fmt.Sprintf("%.1f", float64(g+2)*first))
			burst = append(burst, fmt.Sprintf("%.1f", float64(g+1)*first+all))
			again = append(again, fmt.Sprintf("%.1f", float64(g+1)*all+first))
		}
		row(even...)
		row(burst...)
		row(again...)
	}
	cells := []string{"forgotten at the latest after"}
	for _, g := range gs {
		cells = append(cells, fmt.Sprintf("%.2f T", 1+1/float64(g)))
	}
	row(cells...)
}
