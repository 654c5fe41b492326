package main

import (
	"fmt"

	"github.com/bloomery/bloom"
)

// cuckoo shows how full the first layer of a Cuckoo is when it grows, by the shape of its
// buckets: the mean of ten filters. The rate is that of a layer whose slots are all in use.
func cuckoo() {
	sizes := []uint64{1 << 10, 1 << 14, 1 << 17, 1 << 20}
	titles := []string{"slots in a bucket, iterations"}
	for _, slots := range sizes {
		titles = append(titles, fmt.Sprintf("%d slots", slots))
	}
	head(append(titles, "rate when full")...)
	for _, size := range []int{1, 2, 4, 8} {
		for _, iterations := range []int{20, 500} {
			cells := []string{fmt.Sprintf("%d, %d", size, iterations)}
			rate := 0.
			for _, slots := range sizes {
				const filters = 10
				fill := 0.
				for i := range uint64(filters) {
					f := mustCuckoo(slots, size, iterations)
					for key := i << 40; f.LayerCount() == 1; key++ {
						f.AddUint64(key)
					}
					fill += float64(f.Len()) / float64(slots) / filters
					f.Close()
				}
				rate = mustCuckoo(slots, size, iterations).Plan().RateAt(slots)
				cells = append(cells, fmt.Sprintf("%.0f%%", 100*fill))
			}
			row(append(cells, fmt.Sprintf("%.2f%%", 100*rate))...)
		}
	}
}

func mustCuckoo(slots uint64, size, iterations int) *bloom.Cuckoo {
	f, err := bloom.CuckooConfig{Keys: slots, BucketSize: size, Iterations: iterations}.New()
	if err != nil {
		panic(err)
	}
	return f
}
