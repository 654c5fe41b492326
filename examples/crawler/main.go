// Command crawler crawls a site and remembers in a filter file which pages it has
// fetched. It may stop at any time and goes on where it was:
//
//	go run ./examples/crawler                                       # a site of its own, in three runs
//	go run ./examples/crawler -site http://localhost:8000/ -max 50  # yours; state in crawl.d
//
// The state is two files. seen.bloom is the filter of the fetched pages: a few bytes a
// page, however long its URL. frontier.txt has the links that were found, a line each.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/bloomery/bloom"
)

func main() {
	log.SetFlags(0)
	site := flag.String("site", "", "the page to start at; without it the program serves a site itself")
	state := flag.String("state", "crawl.d", "the directory of the state")
	most := flag.Int("max", 50, "how many pages to fetch in this run")
	flag.Parse()
	var err error
	if *site == "" {
		err = demonstrate()
	} else {
		err = crawl(*site, *state, *most)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// crawl fetches up to most pages, beginning with those that earlier runs have left.
func crawl(start, state string, most int) error {
	if err := os.MkdirAll(state, 0o755); err != nil {
		return err
	}
	// One page in a million is lost, since it looks like one that was fetched. A page
	// that was fetched is never fetched again. The file opens at once at any size.
	path := filepath.Join(state, "seen.bloom")
	seen, err := bloom.OpenUpdate(path)
	if errors.Is(err, fs.ErrNotExist) {
		seen, err = bloom.Config{Keys: 1_000_000, Rate: 1e-6}.Create(path, nil)
	}
	if err != nil {
		return err
	}
	defer seen.Close()

	frontier, err := os.OpenFile(filepath.Join(state, "frontier.txt"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer frontier.Close()
	queue := []string{start}
	for lines := bufio.NewScanner(frontier); lines.Scan(); {
		queue = append(queue, lines.Text())
	}

	fetched := 0
	for ; len(queue) > 0 && fetched < most; queue = queue[1:] {
		page := queue[0]
		if seen.ContainsString(page) {
			continue
		}
		links, err := fetch(page)
		if err != nil {
			return err
		}
		// First the links, then the mark. If the program is killed between the two, this
		// page is fetched again. The other way round its links would be lost for ever.
		for _, link := range links {
			if !seen.ContainsString(link) {
				if _, err := fmt.Fprintln(frontier, link); err != nil {
					return err
				}
				queue = append(queue, link)
			}
		}
		seen.AddString(page)
		fetched++
	}
	fmt.Printf("fetched %d pages, %d links are left\n", fetched, len(queue))
	return seen.Close() // nil: all of it is on the disk
}
