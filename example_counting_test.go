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
