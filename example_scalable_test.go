package bloom_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bloomery/bloom"
)

// A crawler does not know how many pages it will find. The filter starts small, grows
// with them and keeps its rate.
func ExampleScalable() {
	seen, err := bloom.NewScalable(1000, 0.001)
	if err != nil {
		panic(err)
	}
	queue := []int{1} // page numbers stand for addresses
	crawled := 0
	for ; len(queue) > 0 && crawled < 50_000; crawled++ {
		page := queue[0]
		queue = queue[1:]
		for link := 2 * page; link <= 2*page+2; link++ {
			if seen.AddString(fmt.Sprintf("https://example.com/%d", link)) {
				queue = append(queue, link)
			}
		}
	}
	r := seen.Report()
	fmt.Println("pages crawled:", crawled)
	fmt.Println("rate kept:", r.Rate <= 0.001 && seen.Err() == nil, "with", len(seen.Layers()), "layers")
	// Output:
	// pages crawled: 50000
	// rate kept: true with 7 layers
}

// At its limit the filter stops growing, and Err reports it.
func ExampleScalable_Err() {
	seen, err := bloom.ScalableConfig{First: 1000, Rate: 0.01, Budget: 1 << 16}.New()
	if err != nil {
		panic(err)
	}
	key := uint64(0)
	for ; seen.Err() == nil; key++ {
		seen.AddUint64(key)
	}
	r := seen.Report()
	fmt.Println("full:", errors.Is(seen.Err(), bloom.ErrBudget))
	fmt.Println("within the limit:", r.Plan.Bytes() <= 1<<16, "and so far at the rate:", r.Rate <= 0.01)
	fmt.Println("and the key that did not fit is found:", seen.ContainsUint64(key-1))
	// Output:
	// full: true
	// within the limit: true and so far at the rate: true
	// and the key that did not fit is found: true
}

func ExampleScalable_Compact() {
	grown, _ := bloom.NewScalable(100, 0.01)
	names := [][]byte{}
	for i := range 10_000 {
		names = append(names, fmt.Appendf(nil, "user-%d@example.com", i))
	}
	grown.AddMany(names, nil)

	compact, err := grown.Compact(slices.Values(names))
	if err != nil {
		panic(err)
	}
	fmt.Println(compact.ContainsString("user-7@example.com"))
	fmt.Println("smaller:", 2*compact.Plan().Bytes() < grown.Plan().Bytes())
	// Output:
	// true
	// smaller: true
}
