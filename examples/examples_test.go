// Package examples_test builds the programs of this directory, runs them and compares
// what they print.
package examples_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/bloomery/bloom/internal/redistest"
)

// bin has the programs.
var bin string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "examples"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(bin)
	arguments := []string{"build", "-buildvcs=false", "-o", bin + string(filepath.Separator)}
	if raceEnabled {
		arguments = append(arguments, "-race")
	}
	if output, err := exec.Command("go", append(arguments, "./...")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the examples: %v\n%s", err, output)
		return 1
	}
	return redistest.Main(m)
}

// program returns a command that runs a program in an empty directory.
func program(t *testing.T, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(filepath.Join(bin, name), arguments...)
	command.Dir = t.TempDir()
	return command
}

// output runs a command and returns what it prints.
func output(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil || errors.String() != "" {
		t.Fatalf("%s: %v\n%s%s", command, err, output, errors.String())
	}
	return string(output)
}

// TestPrograms runs the programs that print the same each time: their filters have a
// public seed, and give the same answers on every machine.
func TestPrograms(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"crawler", `
fetched 40 pages, 43 links are left
fetched 40 pages, 35 links are left
fetched 20 pages, 0 links are left
the site has 100 pages, served 100, and 0 of them again
`},
		{"hourly", `
01:00  about 10851 messages in 40 KiB
02:00  about 11736 messages in 40 KiB
03:00  about 11655 messages in 40 KiB
04:00  about 11733 messages in 40 KiB
05:00  about 11670 messages in 40 KiB
59986 messages handled once, 11169 repeats recognised, 18 new ones lost
07:59  about 0 messages
`},
		{"lookups", `
10 files, 1250 KiB; their filters, 25 KiB
filters false  keys that are there true   files searched 11000, in vain  9000, disk reads 118775
filters false  keys that are there false  files searched 20000, in vain 20000, disk reads 200000
filters true   keys that are there true   files searched  2070, in vain    70, disk reads  20747
filters true   keys that are there false  files searched   158, in vain   158, disk reads   1580
`},
		{"spamlist", `
of the address book, 20 are taken for spammers
with 19 exceptions it is 1
loaded from the file it is 1
of 10000 strangers, 82 are taken for spammers
friend1016@home.example blocked: before false, now true; 18 exceptions left
`},
		{"summarycache", `
10000 requests: 3514 answered by the own cache, 2854 by the peer, 3632 by the origin
messages to the peer: 2904 questions, 50 of them in vain; 144 summaries of 13320 bytes
without summaries: 6486 questions; the peer had it and was not asked: 63 times
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, want := output(t, program(t, tt.name)), strings.TrimPrefix(tt.want, "\n")
			if got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// TestCacheGuard runs the guard in front of a real Redis server. Its filter has a random
// secret, so the few invented keys that pass differ each time.
func TestCacheGuard(t *testing.T) {
	server := redistest.Start(t)
	got := output(t, program(t, "cacheguard", "-redis", server.Address))
	line := regexp.MustCompile(`^without a filter +refused by the filter +0, asked of Redis 6000, of the database +(\d+) \(for no product 3000\)
with a filter +refused by the filter +(\d+), asked of Redis +(\d+), of the database +(\d+) \(for no product +(\d+)\)
a product inserted now is found: true
$`).FindStringSubmatch(got)
	if line == nil {
		t.Fatalf("got\n%s", got)
	}
	var n [6]int
	for i := 1; i < len(line); i++ {
		n[i], _ = strconv.Atoi(line[i]) // the pattern has found digits
	}
	plain, refused, asked, guarded, passed := n[1], n[2], n[3], n[4], n[5]
	// The filter is half full, at a rate below 1e-5. So more than three of 3,000 pass less
	// than once in a million runs.
	if passed > 3 || refused != 3000-passed || asked != 3000+passed {
		t.Errorf("%d of 3000 invented keys passed the filter, %d refused, %d asked of Redis", passed, refused, asked)
	}
	// Each product that was asked for came from the database once.
	if plain-3000 != guarded-passed || guarded-passed > 1000 {
		t.Errorf("the database was asked for products %d times without the filter and %d times with it, want the same, at most 1000", plain-3000, guarded-passed)
	}
}

// A site counts how often each of its pages is fetched.
type site struct {
	*httptest.Server
	mu      sync.Mutex
	fetched map[string]int
	total   int
	on      map[int]func() // what to do at a fetch
}

// newSite serves a binary tree of pages with links up and down.
func newSite(t *testing.T, pages int) *site {
	s := &site{fetched: map[string]int{}, on: map[int]func(){}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fetched[r.URL.Path]++
		s.total++
		if do := s.on[s.total]; do != nil {
			do()
		}
		page, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/page/"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		for _, to := range []int{page / 2, 2 * page, 2*page + 1} {
			if to >= 1 && to <= pages {
				fmt.Fprintf(w, `<a href="%d">`, to)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// counts returns how many pages were fetched, and with how many requests.
func (s *site) counts() (fetched, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.fetched), s.total
}

// TestCrawlerGoesOn stops the crawler several times. It fetches every page, and none
// twice.
func TestCrawlerGoesOn(t *testing.T) {
	const pages = 120
	s := newSite(t, pages)
	state := t.TempDir()
	for _, want := range []int{50, 50, 20, 0} {
		got := output(t, program(t, "crawler", "-site", s.URL+"/page/1", "-state", state, "-max", "50"))
		if !strings.HasPrefix(got, fmt.Sprintf("fetched %d pages,", want)) {
			t.Errorf("got %q, want %d pages", got, want)
		}
	}
	if fetched, requests := s.counts(); fetched != pages || requests != pages {
		t.Errorf("the site has %d pages: %d were fetched, with %d requests", pages, fetched, requests)
	}
}

// TestCrawlerKilled kills the crawler while it waits for a page. The next run fetches
// that page again, and no other one.
func TestCrawlerKilled(t *testing.T) {
	const pages, kills = 120, 3
	s := newSite(t, pages)
	state := t.TempDir()
	crawler := func() *exec.Cmd {
		return program(t, "crawler", "-site", s.URL+"/page/1", "-state", state, "-max", strconv.Itoa(pages))
	}
	for kill := range kills {
		command := crawler()
		s.mu.Lock() // the site waits until the process is known
		err := command.Start()
		s.on[s.total+20*(kill+1)] = func() { command.Process.Kill() }
		s.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err == nil {
			t.Fatal("the crawler came to its end before it was killed")
		}
	}
	output(t, crawler())
	if fetched, requests := s.counts(); fetched != pages || requests != pages+kills {
		t.Errorf("the site has %d pages, and the crawler was killed %d times: %d were fetched, with %d requests", pages, kills, fetched, requests)
	}
}
