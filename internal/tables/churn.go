package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/bloomery/bloom"
)

// churn replaces keys of a ScalableCounting by others and measures it on the way.
func churn() {
	const p, first = 0.01, 1000
	head("keys at a time", "replaced", "layers", "dropped", "bits per key", "rate from the counters")
	for _, n := range []int{10_000, 100_000} {
		f, err := bloom.ScalableConfig{First: first, Rate: p}.NewCounting()
		if err != nil {
			panic(err)
		}
		rng := rand.New(rand.NewPCG(3, uint64(n)))
		keys := make([]uint64, n)
		next := uint64(0)
		add := func(i int) {
			keys[i] = next
			f.AddUint64(next)
			next++
		}
		for i := range keys {
			add(i)
		}
		for _, times := range []int{0, 1, 3, 10, 30} {
			for next < uint64((times+1)*n) {
				i := rng.IntN(n)
				f.RemoveUint64(keys[i])
				add(i)
			}
			dropped, _ := bloom.Inside.CountingLayers(f)
			row(fmt.Sprint(n), fmt.Sprintf("%d times", times), fmt.Sprint(f.LayerCount()), fmt.Sprint(dropped),
				fmt.Sprintf("%.1f", 8*float64(f.Bytes())/float64(n)), fmt.Sprintf("%.2g", f.Report().Rate))
		}
	}
}
