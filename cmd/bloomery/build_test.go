package main

import (
	"fmt"
	"testing"

	"github.com/bloomery/bloom"
)

// TestBulkAdder: sorting the keys first changes neither the filter nor the
// count of new keys.
func TestBulkAdder(t *testing.T) {
	config := bloom.Config{Keys: 200_000, Rate: 0.01}
	direct, err := config.New()
	if err != nil {
		t.Fatal(err)
	}
	sorted, err := config.New()
	if err != nil {
		t.Fatal(err)
	}
	bulk, err := sorted.Bulk(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := bulk.Feed()
	if err != nil {
		t.Fatal(err)
	}
	adders := []adder{directAdder{direct}, &bulkAdder{bulk: bulk, feed: feed}}
	isNew := make([]int, 2)
	for i := 0; i < 250_000; i += 1000 {
		var keys [][]byte
		for j := range 1000 {
			keys = append(keys, fmt.Appendf(nil, "key %d", (i+j)%200_000))
		}
		for a := range adders {
			isNew[a] += adders[a].add(keys)
		}
	}
	for a := range adders {
		n, err := adders[a].finish()
		if err != nil {
			t.Fatal(err)
		}
		isNew[a] += n
	}
	if !sorted.Equal(direct) {
		t.Error("the bulk set other bits")
	}
	// Some new keys are taken for old, and which ones depends on the order.
	if added := sorted.Report().Added; uint64(isNew[1]) != added || isNew[1] < 198_000 || isNew[1] > 200_000 {
		t.Errorf("the bulk told of %d new keys, the filter of %d, adding one by one %d", isNew[1], added, isNew[0])
	}
}
