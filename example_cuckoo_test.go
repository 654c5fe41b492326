package bloom_test

import (
	"fmt"

	"github.com/bloomery/bloom"
)

// Sessions come and go: a Cuckoo keeps a byte or two of each while it lasts.
func ExampleCuckoo() {
	sessions, err := bloom.CuckooConfig{Keys: 100_000, BucketSize: 4, Iterations: 500}.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"anna", "bert", "carl"} {
		if _, err := sessions.InsertUnique([]byte(id)); err != nil {
			fmt.Println(err) // there is no room
		}
	}
	sessions.RemoveString("bert") // was added, so this takes nobody else's fingerprint
	fmt.Println(sessions.ContainsString("anna"), sessions.ContainsString("bert"), sessions.Len())
	fmt.Printf("%d bytes for %d sessions, one of a stranger's in %.0f found\n", sessions.Bytes(), sessions.Plan().Keys, 1/sessions.Plan().Rate)
	// Output:
	// true false 2
	// 131072 bytes for 100000 sessions, one of a stranger's in 42 found
}
