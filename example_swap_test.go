package bloom_test

import (
	"fmt"
	"sync/atomic"

	"github.com/bloomery/bloom"
)

// A filter is rebuilt from its source from time to time while others look keys up. The
// old one is not closed, since a reader may still be using it. The collector releases
// its memory when the last reader is done.
func Example_swap() {
	build := func(keys ...string) *bloom.Filter {
		f, err := bloom.New(1_000_000, 0.001)
		if err != nil {
			panic(err)
		}
		f.AddStrings(keys, nil)
		return f
	}
	var blocked atomic.Pointer[bloom.Filter]
	blocked.Store(build("a.example", "b.example"))

	// Any number of goroutines, at any time:
	isBlocked := func(host string) bool { return blocked.Load().ContainsString(host) }
	fmt.Println(isBlocked("b.example"), isBlocked("c.example"))

	// One goroutine, once an hour:
	blocked.Store(build("a.example", "c.example"))
	fmt.Println(isBlocked("b.example"), isBlocked("c.example"))
	// Output:
	// true false
	// false true
}
