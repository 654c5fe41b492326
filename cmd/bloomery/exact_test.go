package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/long"
)

// command runs bloomery in this process.
func command(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, err bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(""))
	root.SetOut(&out)
	root.SetErr(&err)
	code = execute(root)
	return out.String(), err.String(), code
}

// millionLines writes a million lines, of zero to 200 bytes, of which many
// repeat, and returns them.
func millionLines(t *testing.T, seed uint64) (path string, lines []string) {
	t.Helper()
	return randomLines(t, seed, 1_000_000)
}

func randomLines(t *testing.T, seed uint64, n int) (path string, lines []string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	path = filepath.Join(t.TempDir(), "lines")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	for range n {
		i := random.IntN(n * 7 / 10)
		line := strings.Repeat("x", i%190) + strconv.Itoa(i)
		if i == 0 {
			line = ""
		}
		lines = append(lines, line)
		fmt.Fprintln(w, line)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return path, lines
}

// TestDedupeAgainstMap holds dedupe against an exact map: the output is that of
// awk '!seen[$0]++', but for at most a few lines, and a repeat is never printed.
func TestDedupeAgainstMap(t *testing.T) {
	long.Test(t)
	path, lines := millionLines(t, 1)
	for _, test := range []struct {
		args []string
		lost int // at most
	}{
		{[]string{"dedupe", path}, 4}, // 0.5 are expected, at most
		{[]string{"dedupe", "-n", "600k", "-p", "1e-12", path}, 0},
		{[]string{"dedupe", "-n", "600k", "-p", "1%", path}, 6000}, // 1% of 532,000, and the rate is lower at first
	} {
		stdout, stderr, code := command(t, test.args...)
		if code != exitDone || stderr != "" {
			t.Fatalf("%v: exit code %d: %s", test.args, code, stderr)
		}
		got := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		seen := make(map[string]bool)
		lost := 0
		for _, line := range lines {
			if seen[line] {
				continue
			}
			seen[line] = true
			if len(got) > 0 && got[0] == line {
				got = got[1:]
			} else {
				lost++
			}
		}
		if len(got) > 0 {
			t.Errorf("%v: %q is printed out of order or again", test.args, got[0])
		}
		if lost > test.lost {
			t.Errorf("%v: %d of %d first occurrences lost, want at most %d", test.args, lost, len(seen), test.lost)
		}
		t.Logf("%v: %d of %d lost", test.args, lost, len(seen))
	}
}

// TestBuildAndCheckAgainstMap builds a filter of a million lines, finds every
// one of them, and of others as many as the rate allows.
func TestBuildAndCheckAgainstMap(t *testing.T) {
	long.Test(t)
	path, lines := millionLines(t, 1)
	others, otherLines := millionLines(t, 2)
	filter := filepath.Join(t.TempDir(), "f.bloom")
	if _, stderr, code := command(t, "build", "-o", filter, "-n", "540k", "-p", "1%", path); code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if stdout, _, code := command(t, "check", "-v", filter, path); code != exitNothing || stdout != "" {
		t.Errorf("false negatives, exit code %d: %.100q", code, stdout)
	}

	known := make(map[string]bool)
	for _, line := range lines {
		known[line] = true
	}
	strangers, members := 0, 0
	for _, line := range otherLines {
		if known[line] {
			members++
		} else {
			strangers++
		}
	}
	stdout, _, _ := command(t, "check", "-c", filter, others)
	found, err := strconv.Atoi(strings.TrimSpace(stdout))
	if err != nil {
		t.Fatal(err)
	}
	rate := float64(found-members) / float64(strangers)
	if found < members || rate > 0.0115 || rate < 0.008 { // 168,000 different strangers: 10 sigma is 0.25%
		t.Errorf("%d found, of which %d are in it: a rate of %.4f", found, members, rate)
	}
	t.Logf("false-positive rate %.4f", rate)
}

// TestSameOnAnyCPUs: the output is the same, byte for byte, whatever the number
// of CPUs, false positives and growth included.
func TestSameOnAnyCPUs(t *testing.T) {
	path, _ := randomLines(t, 7, 50_000)
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, args := range [][]string{
		{"dedupe", "-p", "1%", "-n", "15k", "--grow", path},      // grows once or twice
		{"dedupe", "-d", "-p", "1%", "-n", "10", "--grow", path}, // at every few lines, first
		{"dedupe", "-p", "1%", "-n", "40k", path},                // does not
	} {
		t.Run(strings.Join(args[1:len(args)-1], " "), func(t *testing.T) {
			want := ""
			for _, cpus := range []int{1, 2, 16} {
				runtime.GOMAXPROCS(cpus)
				stdout, stderr, code := command(t, args...)
				if code != exitDone {
					t.Fatalf("%d CPUs: exit code %d, %s", cpus, code, stderr)
				}
				if want == "" {
					want = stdout
				}
				if stdout != want {
					t.Fatalf("%d CPUs: %d bytes of output, 1 CPU: %d; or they differ", cpus, len(stdout), len(want))
				}
			}
		})
	}
}
