package bloom_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/bloomery/bloom"
)

func Example() {
	seen, err := bloom.New(1_000_000, 0.001)
	if err != nil {
		panic(err)
	}
	for _, url := range []string{"https://go.dev/", "https://example.org/", "https://go.dev/"} {
		if seen.AddString(url) {
			fmt.Println("crawl", url)
		} else {
			fmt.Println("seen ", url)
		}
	}
	// Output:
	// crawl https://go.dev/
	// crawl https://example.org/
	// seen  https://go.dev/
}

func ExampleConfig_Plan() {
	plan, err := bloom.Config{Keys: 10_000_000_000, Rate: 0.01}.Plan()
	if err != nil {
		panic(err)
	}
	fmt.Printf("ten billion URLs: %.1f GB, k = %d\n", float64(plan.Bytes())/1e9, plan.Probes)
	fmt.Printf("with twice as many: 1 in %.0f is wrong\n", 1/plan.RateAt(20_000_000_000))

	_, err = bloom.Config{Keys: 10_000_000_000, Rate: 0.01, Budget: 4 << 30}.Plan()
	fmt.Println(err)
	// Output:
	// ten billion URLs: 12.1 GB, k = 6
	// with twice as many: 1 in 8 is wrong
	// bloom: over budget: 10000000000 keys at rate 0.01 need 12100506112 bytes, the budget is 4294967296: raise the budget or the rate, or plan for fewer keys
}

func ExampleFilter_Report() {
	f, err := bloom.New(100_000, 0.01)
	if err != nil {
		panic(err)
	}
	for i := range uint64(300_000) {
		f.AddUint64(i)
	}
	r := f.Report()
	fmt.Printf("about %.0f keys (give or take %.0f), over-full: %v\n", r.Keys, r.KeysError, r.Overfull())
	fmt.Printf("planned for 1 in %.0f, now 1 in %.1f\n", 1/r.Plan.Rate, r.OneIn())
	// Output:
	// about 299756 keys (give or take 308), over-full: true
	// planned for 1 in 101, now 1 in 2.8
}

func ExampleFilter_Union() {
	monday, _ := bloom.New(1000, 0.01)
	tuesday, _ := bloom.New(1000, 0.01)
	monday.AddString("spam@example.com")
	tuesday.AddString("more-spam@example.com")

	if err := monday.Union(tuesday); err != nil {
		panic(err)
	}
	fmt.Println(monday.ContainsString("more-spam@example.com"))
	// Output: true
}

func ExampleOpen() {
	directory, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)
	path := filepath.Join(directory, "blacklist.bloom")

	blacklist, _ := bloom.New(1000, 1e-6)
	blacklist.AddString("http://bad.example/")
	if err := blacklist.Save(path); err != nil {
		panic(err)
	}

	f, err := bloom.Open(path) // mapped, not read: instant at any size
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Println(f.ContainsString("http://bad.example/"), f.ContainsString("http://good.example/"))
	// Output: true false
}

func ExampleShared() {
	seen, err := bloom.NewShared(1_000_000, 1e-6)
	if err != nil {
		panic(err)
	}
	// Eight crawlers find the same thousand pages. Each page is fetched once.
	var fetched atomic.Int64
	var crawlers sync.WaitGroup
	for range 8 {
		crawlers.Go(func() {
			for page := range 1000 {
				if seen.AddString(fmt.Sprintf("https://example.org/%d", page)) {
					fetched.Add(1)
				}
			}
		})
	}
	crawlers.Wait()
	fmt.Println("fetched", fetched.Load(), "pages")
	// Output: fetched 1000 pages
}

// The filter of a column chunk, as in Parquet: half of an engine's lookups end here,
// without reading the column.
func ExampleSplitBlock() {
	column, err := bloom.NewSplitBlock(10_000, 0.01)
	if err != nil {
		panic(err)
	}
	for id := range uint64(10_000) {
		column.AddUint64(2 * id)
	}
	fmt.Println(column.ContainsUint64(4242), column.ContainsUint64(4243))
	fmt.Printf("%.1f bits per key, k = %d\n", column.Plan().BitsPerKey(), column.Plan().Probes)
	// Output:
	// true false
	// 10.5 bits per key, k = 8
}
