package redisstore_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/redistest"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/redisstore"
	"github.com/redis/rueidis"
)

// The site that the crawlers of TestCrawlers visit: each page has four links.
const pages = 20_000

func links(page int) []int {
	return []int{(2*page + 1) % pages, (2*page + 2) % pages, (7*page + 3) % pages, (page + 101) % pages}
}

var demo = flag.Bool("demo", false, "run TestCrawlers")

// crawlAt is the environment variable that makes the test program a crawler: the address
// of a server, and the pages to begin with.
const crawlAt = "BLOOMERY_CRAWL"

// crawl fetches all pages that are new, and the pages that they link to, and prints a line
// for each.
func crawl(where string) error {
	var address string
	var first int
	if _, err := fmt.Sscan(where, &address, &first); err != nil {
		return err
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := redisstore.New(ctx, client, redisstore.Config{Durability: redisstore.Durability{Replicas: 1}})
	if err != nil {
		return err
	}
	defer s.Close()
	seen, err := s.Filter(ctx, "seen")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	todo := []int{first}
	for len(todo) > 0 {
		page := todo[0]
		todo = todo[1:]
		url := fmt.Appendf(nil, "https://example.com/%d", page)
		isNew, err := seen.Add(ctx, url)
		for unknown := false; err != nil; unknown = true {
			if !errors.Is(err, redisstore.ErrUnreachable) && !errors.Is(err, redisstore.ErrUnconfirmed) {
				return err
			}
			time.Sleep(50 * time.Millisecond)
			if isNew, err = seen.Add(ctx, url); err == nil && !isNew && unknown {
				fmt.Fprintln(out, "unknown", page) // an add that failed may have been done: by whom?
			}
		}
		if isNew {
			fmt.Fprintln(out, "fetched", page)
			todo = append(todo, links(page)...)
		}
		out.Flush()
	}
	return nil
}

// TestCrawlers: four crawlers in processes of their own share a filter, and a master is
// killed under them. No page is fetched twice. make cluster-demo shows it.
func TestCrawlers(t *testing.T) {
	if !*demo {
		t.Skip("make cluster-demo runs it")
	}
	servers := redistest.Cluster(t, 3)
	client := connect(t, servers[0].Address)
	s := openStore(t, client, redisstore.Config{})
	defer s.Close()
	create(t, s, "seen", store.Spec{Kind: store.Paired, Capacity: 1_000_000, Rate: 1e-9})
	fmt.Println("six redis-server processes on this machine: three masters, each with a replica")
	time.Sleep(300 * time.Millisecond) // the replicas have the chunks

	const crawlers = 4
	var mu sync.Mutex
	by := map[string]int{} // page -> crawler
	var fetched, twice, unknown atomic.Int64
	of := [crawlers]int{}
	var wait sync.WaitGroup
	began := time.Now()
	for c := range crawlers {
		cmd := exec.Command(os.Args[0], "-test.run", "^$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", crawlAt, servers[c].Address, c*pages/crawlers))
		cmd.Stderr = os.Stderr
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			for lines := bufio.NewScanner(pipe); lines.Scan(); {
				what, page, _ := strings.Cut(lines.Text(), " ")
				if what == "unknown" {
					unknown.Add(1)
				}
				if what != "fetched" {
					continue
				}
				fetched.Add(1)
				mu.Lock()
				if other, is := by[page]; is {
					twice.Add(1)
					t.Errorf("page %s was fetched by crawlers %d and %d", page, other+1, c+1)
				}
				by[page] = c
				of[c]++
				mu.Unlock()
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("crawler %d: %v", c+1, err)
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); fetched.Load() < pages/4; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d pages were fetched in a minute", fetched.Load())
		}
	}
	killed := time.Now()
	servers[1].Kill()
	fmt.Printf("four crawlers have fetched a quarter of the %d pages after %.1f s: kill -9 of a master\n", pages, time.Since(began).Seconds())
	time.Sleep(4 * time.Second)
	servers[1].Restart(t)
	fmt.Printf("%.1f s later: it starts again, as a replica; %d pages were fetched\n", time.Since(killed).Seconds(), fetched.Load())
	wait.Wait()
	fmt.Printf("all crawlers are done after %.1f s: %v pages each, %d together, %d fetched twice\n", time.Since(began).Seconds(), of, fetched.Load(), twice.Load())
	fmt.Printf("%d pages were not fetched: %d times an add failed and was found done when it was tried again, so that nobody knows who did it\n",
		pages-fetched.Load(), unknown.Load())
	if missing := pages - fetched.Load(); missing > unknown.Load()*3+10 {
		t.Errorf("%d pages were not fetched, and only %d were in doubt", missing, unknown.Load())
	}
}
