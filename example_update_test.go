//go:build unix && !aix && !mips && !mips64 && !ppc64 && !s390x

package bloom_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bloomery/bloom"
)

// A nightly job keeps what it has seen in a file. Opening the file takes milliseconds,
// however large it has become.
func ExampleOpenUpdate() {
	directory, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)
	path := filepath.Join(directory, "seen.bloom")

	night := func(urls ...string) error {
		seen, err := bloom.OpenUpdate(path)
		if errors.Is(err, fs.ErrNotExist) {
			seen, err = bloom.Config{Keys: 1_000_000, Rate: 1e-6}.Create(path, nil)
		}
		if err != nil {
			return err // errors.Is(err, bloom.ErrLocked): last night's job is still running
		}
		for _, url := range urls {
			if seen.AddString(url) {
				fmt.Println("new:", url)
			}
		}
		return seen.Close() // nil: all of it is on the disk
	}
	fmt.Println(night("https://a.example/", "https://b.example/"))
	fmt.Println(night("https://b.example/", "https://c.example/"))
	// Output:
	// new: https://a.example/
	// new: https://b.example/
	// <nil>
	// new: https://c.example/
	// <nil>
}
