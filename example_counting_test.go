package bloom_test

import (
	"fmt"

	"github.com/bloomery/bloom"
)

// Who is in the house? People come and go, and some come twice.
func ExampleCounting() {
	inside, err := bloom.NewCounting(10_000, 1e-6)
	if err != nil {
		panic(err)
	}
	inside.AddStrings([]string{"Ada", "Grace", "Ada"}, nil)

	fmt.Println("Ada is in", inside.CountString("Ada"), "times")
	fmt.Println("Ada leaves:", inside.RemoveString("Ada"), inside.ContainsString("Ada"))
	fmt.Println("and again: ", inside.RemoveString("Ada"), inside.ContainsString("Ada"))
	fmt.Println("Alan, who never came, leaves:", inside.RemoveString("Alan"))
	// Output:
	// Ada is in 2 times
	// Ada leaves: true true
	// and again:  true false
	// Alan, who never came, leaves: false
}

// The counters stay where keys are added and removed. A program that only looks keys up
// gets the bits, a quarter of the size.
func ExampleCounting_Filter() {
	blacklist, err := bloom.NewCounting(100_000, 0.001)
	if err != nil {
		panic(err)
	}
	blacklist.AddString("http://bad.example/")
	blacklist.AddString("http://reformed.example/")
	blacklist.RemoveString("http://reformed.example/")

	f, err := blacklist.Filter()
	if err != nil {
		panic(err)
	}
	fmt.Println(f.ContainsString("http://bad.example/"), f.ContainsString("http://reformed.example/"))
	fmt.Println(blacklist.Bytes() / f.Plan().Bytes())
	// Output:
	// true false
	// 4
}

// Nobody knows how many will come. The filter grows, and shrinks again when the first guests
// have left.
func ExampleScalableCounting() {
	present, err := bloom.NewScalableCounting(1000, 1e-6)
	if err != nil {
		panic(err)
	}
	for guest := range uint64(5000) {
		present.AddUint64(guest)
	}
	fmt.Println(present.Len(), "guests,", present.LayerCount(), "layers")
	for guest := range uint64(4000) {
		present.RemoveUint64(guest)
	}
	fmt.Println(present.Len(), "guests,", present.LayerCount(), "layer")
	fmt.Println(present.ContainsUint64(100), present.ContainsUint64(4100))
	// Output:
	// 5000 guests, 3 layers
	// 1000 guests, 1 layer
	// false true
}
