package bloom_test

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/bloomery/bloom"
)

// Many keys in one call are several times faster than one at a time, because their
// cache lines are fetched from memory together.
func ExampleFilter_AddMany() {
	seen, err := bloom.New(1_000_000, 0.001)
	if err != nil {
		panic(err)
	}
	keys := [][]byte{[]byte("a"), []byte("b"), []byte("a")}
	isNew := make([]bool, len(keys))
	added := seen.AddMany(keys, isNew)
	fmt.Println(added, isNew)
	// Output: 2 [true true false]
}

// Pass nil for the answers if only the number matters.
func ExampleFilter_ContainsMany() {
	seen, err := bloom.New(1_000_000, 0.001)
	if err != nil {
		panic(err)
	}
	seen.AddStrings([]string{"a", "b"}, nil)
	keys := [][]byte{[]byte("a"), []byte("c")}
	found := make([]bool, len(keys))
	fmt.Println(seen.ContainsMany(keys, found), found)
	fmt.Println(seen.ContainsMany(keys, nil))
	// Output:
	// 1 [true false]
	// 1
}

// Bulk fills a filter far larger than the cache fastest, with a goroutine and a feed for
// each CPU.
func ExampleFilter_Bulk() {
	f, err := bloom.New(10_000_000, 0.01)
	if err != nil {
		panic(err)
	}
	f.Prefault()
	bulk, err := f.Bulk(16 << 20) // bytes of keys that may wait, for each feed
	if err != nil {
		panic(err)
	}
	var wait sync.WaitGroup
	for part := range 2 {
		wait.Go(func() {
			feed, err := bulk.Feed()
			if err != nil {
				panic(err)
			}
			defer feed.Close() // adds what still waits
			for i := range 1000 {
				feed.AddStrings([]string{fmt.Sprintf("key %d of part %d", i, part)})
			}
		})
	}
	wait.Wait()
	fmt.Println(bulk.Added() > 1990, f.ContainsString("key 7 of part 1"))
	// Output: true true
}

// Without the secret nobody can choose keys that are found without having been added. A
// file does not contain the secret.
func ExampleFilter_SetSecret() {
	secret := []byte("sixteen bytes...") // from a vault, or crypto/rand
	f, err := bloom.Config{Keys: 1000, Rate: 0.001, Secret: secret}.New()
	if err != nil {
		panic(err)
	}
	f.AddString("10.1.2.3")

	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		panic(err)
	}
	g, err := bloom.Read(&file, 1<<20)
	if err != nil {
		panic(err)
	}
	if g.NeedsSecret() {
		if err := g.SetSecret(secret); err != nil {
			panic(err) // errors.Is(err, bloom.ErrSecret): it is another one
		}
	}
	fmt.Println(g.ContainsString("10.1.2.3"))
	// Output: true
}

func ExampleReport_String() {
	f, err := bloom.New(100_000, 0.01)
	if err != nil {
		panic(err)
	}
	for i := range uint64(300_000) {
		f.AddUint64(i)
	}
	fmt.Println(f.Report())
	// Output: about 299756 of 100000 planned keys, rate 0.36 now, 0.00988 planned, 84.3% of the bits set: over-full
}
