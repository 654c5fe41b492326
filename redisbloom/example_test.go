package redisbloom_test

import (
	"fmt"
	"log"

	"github.com/bloomery/bloom/redisbloom"
)

// A chain does what BF.RESERVE, BF.ADD and BF.INFO do, and grows. Two of these keys
// were taken for old ones.
func ExampleNew() {
	chain, err := redisbloom.New(redisbloom.Config{Keys: 100, Rate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 250 {
		chain.Add(fmt.Append(nil, "page ", i))
	}
	fmt.Println(chain.Contains([]byte("page 17")), chain.Contains([]byte("page 999")))
	fmt.Printf("%+v\n", chain.Info())
	fmt.Println(chain)
	// Output:
	// true false
	// {Capacity:300 Size:616 Filters:2 Items:248 Expansion:2}
	// redisbloom chain: expansion 2; items by layer: 100 of 100 in m 1152, k 8; 148 of 200 in m 2496, k 9
}

// A dump moves a filter from one server to another, chunk by chunk.
func ExampleLoadHeader() {
	from, err := redisbloom.New(redisbloom.Config{})
	if err != nil {
		log.Fatal(err)
	}
	from.Add([]byte("a"))

	iterator, data := from.ScanDump(0)
	grant, _ := redisbloom.Budget(1 << 20)
	to, err := redisbloom.LoadHeader(data, grant)
	if err != nil {
		log.Fatal(err)
	}
	for {
		iterator, data = from.ScanDump(iterator)
		if iterator == 0 {
			break
		}
		fmt.Println("iterator", iterator, "with", len(data), "bytes")
		if err := to.LoadChunk(iterator, data); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(to.Contains([]byte("a")))
	// Output:
	// iterator 145 with 144 bytes
	// true
}
