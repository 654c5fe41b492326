// Command lookups counts the disk reads that filters avoid in a store of sorted files:
//
//	go run ./examples/lookups
//
// A log-structured store (an LSM tree) writes what is new into a new sorted file. To find
// a key it searches the files, newest first, until one has it: for a key that is nowhere
// that is all of them. A filter for each file, kept in memory, answers "not in this one"
// without a read.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
)

const (
	segments = 10
	perFile  = 2_000
	lookups  = 2_000 // of keys that are there, and as many of others
)

func main() {
	log.SetFlags(0)
	dir, err := os.MkdirTemp("", "lookups")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := run(dir); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	// Key i is in file i modulo 10, as if they had come in turn.
	var files []*segment
	var filterBytes, fileBytes int64
	for s := range segments {
		var keys []string
		for i := range perFile {
			keys = append(keys, key(i*segments+s))
		}
		file, err := create(filepath.Join(dir, fmt.Sprintf("%02d", s)), keys)
		if err != nil {
			return err
		}
		defer file.close()
		files = append(files, file)
		filterBytes += int64(file.filter.Plan().Bytes())
		fileBytes += file.rows * rowBytes
	}
	fmt.Printf("%d files, %d KiB; their filters, %d KiB\n", segments, fileBytes>>10, filterBytes>>10)

	for _, useFilters := range []bool{false, true} {
		for _, there := range []bool{true, false} {
			var total counts
			for i := range lookups {
				wanted := key(7 * i)
				if !there {
					wanted = fmt.Sprintf("other-%08d", i)
				}
				found, err := search(files, wanted, useFilters, &total)
				if err != nil {
					return err
				}
				if found != there {
					return fmt.Errorf("%s: found %v, want %v", wanted, found, there)
				}
			}
			fmt.Printf("filters %-5v  keys that are there %-5v  files searched %5d, in vain %5d, disk reads %6d\n",
				useFilters, there, total.searched, total.inVain, total.reads)
		}
	}
	return nil
}

// key makes all keys equally long.
func key(i int) string { return fmt.Sprintf("key-%010d", i) }

// search looks for a key in the files, newest first.
func search(files []*segment, key string, useFilters bool, c *counts) (bool, error) {
	for i := len(files) - 1; i >= 0; i-- {
		if useFilters && !files[i].filter.ContainsString(key) {
			continue // certainly not in this file
		}
		found, err := files[i].search(key, c)
		if found || err != nil {
			return found, err
		}
		c.inVain++ // with filters, one of their false positives
	}
	return false, nil
}
