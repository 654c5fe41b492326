package bloom_test

import (
	"fmt"

	"github.com/bloomery/bloom"
)

// A mail filter's allow list: a sender who was mistaken for a spammer complains.
func ExampleExceptions() {
	spammers, err := bloom.New(10_000, 0.01)
	if err != nil {
		panic(err)
	}
	for i := range 10_000 {
		spammers.AddString(fmt.Sprintf("spammer%d@example.com", i))
	}
	honest := ""
	for i := range 1000 {
		if honest = fmt.Sprintf("customer%d@example.org", i); spammers.ContainsString(honest) {
			break // an innocent that the filter takes for a spammer
		}
	}

	filter := bloom.WithExceptions(spammers)
	fmt.Println("a spammer?", filter.ContainsString(honest))
	if err := filter.ExceptString(honest); err != nil {
		panic(err)
	}
	fmt.Println("a spammer?", filter.ContainsString(honest))
	for key := range filter.Excepted() {
		fmt.Println("excepted:", string(key) == honest)
	}

	fmt.Println("added:", filter.AddString(honest)) // he has turned bad
	fmt.Println("a spammer?", filter.ContainsString(honest), filter.Len())
	fmt.Println(filter.ExceptString("unsuspected@example.org"))
	// Output:
	// a spammer? true
	// a spammer? false
	// excepted: true
	// added: true
	// a spammer? true 0
	// bloom: key not contained: no exception needed for "unsuspected@example.org"
}
