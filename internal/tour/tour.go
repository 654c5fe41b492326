// Command tour shows what Bloomery does, on a real list of URLs, as a terminal
// session: every line after a $ is a command that it actually runs. `make run` runs
// it, and `make tour` draws its first chapter to docs/tour.svg.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func main() {
	binary := flag.String("bloomery", "bin/bloomery", "the `program` to demonstrate")
	urls := flag.String("urls", "testdata/urls.txt.gz", "a gzipped `file` of URLs, one a line")
	svg := flag.String("svg", "", "draw the first chapter to this `file`, as a terminal shows it, and print nothing")
	flag.Parse()
	tour := func() error { return run(*binary, *urls) }
	if *svg != "" {
		session := tour
		tour = func() error { return record(*svg, session) }
	}
	if err := tour(); err != nil {
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

func run(binary, urls string) error {
	directory, err := os.MkdirTemp("", "bloomery-tour")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	lines, err := readLines(urls)
	if err != nil {
		return err
	}
	t := &tour{
		binary: binary,
		urls:   urls,
		filter: filepath.Join(directory, "urls.bloom"),
		lines:  lines,
		exact:  countExactly(lines),
	}
	for _, chapter := range []func() error{t.dedupe, t.build, t.known, t.unknown, t.info, t.next} {
		if err := chapter(); err != nil {
			return err
		}
	}
	return nil
}

type tour struct {
	binary, urls, filter string
	lines                []string
	exact                exactSet
}

// exactSet is the result and the cost of a set that stores its keys.
type exactSet struct {
	distinct int
	bytes    uint64
}

func (t *tour) dedupe() error {
	t.say("1. The main job: which of these %d URLs are new, and which did we see before?", len(t.lines))
	out, err := t.command("", "dedupe", "-n", "60000", "-p", "1e-6", "--stats", t.urls)
	if err != nil {
		return err
	}
	first := strings.Count(out, "\n")
	t.say("   (%d lines of output; the first three:)", first)
	for _, line := range strings.SplitN(out, "\n", 4)[:3] {
		fmt.Println("  ", line)
	}
	t.say("   An exact set of the same lines, for comparison:")
	fmt.Printf("                   %12s %12s\n", "dedupe", "exact set")
	fmt.Printf("   first seen      %12d %12d\n", first, t.exact.distinct)
	fmt.Printf("   repeated        %12d %12d\n", len(t.lines)-first, len(t.lines)-t.exact.distinct)
	plan, err := t.quiet("plan", "-n", "60000", "-p", "1e-6", "--json")
	if err != nil {
		return err
	}
	bits := jsonNumber(plan, "bytes")
	fmt.Printf("   memory, bytes   %12.0f %12d   %.0f times less\n", bits, t.exact.bytes, float64(t.exact.bytes)/bits)
	return nil
}

func (t *tour) build() error {
	t.say("2. Keep what was seen, in a file.")
	_, err := t.command("", "build", "-o", t.filter, "-n", "34000", "-p", "0.001", "--meta", "source=Debian package index, Homepage fields", t.urls)
	return err
}

func (t *tour) known() error {
	t.say("3. Ask about two URLs that were added and one that was not. Like grep, check prints the lines that match.")
	other := slices.IndexFunc(t.lines, func(line string) bool { return line != t.lines[0] })
	known := t.lines[0] + "\n" + t.lines[other] + "\nhttps://never-seen.example/\n"
	if _, err := t.show(known, "check", t.filter); err != nil {
		return err
	}
	t.say("   And the other way round: what is certainly new?")
	if _, err := t.show(known, "check", "-v", t.filter); err != nil {
		return err
	}
	t.say("   No URL that was added is ever missed:")
	_, err := t.show("", "check", "-v", "-c", t.filter, t.urls)
	return err
}

func (t *tour) unknown() error {
	const n = 1_000_000
	t.say("4. A million URLs that were never added: how many look seen? The filter was built for 1 in 1000.")
	var made strings.Builder
	for i := range n {
		fmt.Fprintf(&made, "https://host-%d.example/page/%d\n", i%9973, i)
	}
	_, err := t.show(made.String(), "check", "-c", t.filter)
	return err
}

func (t *tour) info() error {
	t.say("5. What the file says about itself, from its bits.")
	_, err := t.show("", "info", t.filter)
	return err
}

// next prints what to read or try next.
func (t *tour) next() error {
	t.say("What now?")
	for _, line := range []string{
		"bin/bloomery dedupe FILE                 your own lines, each once; bin/bloomery COMMAND --help has examples",
		"bin/bloomery serve --data DIR            the same filters for programs that speak to Redis:",
		"redis-cli -p 6380 BF.ADD seen URL        in another terminal; http://127.0.0.1:6381/metrics has its numbers",
		"docs/shell.md                            replaces sort -u, awk, anew, comm and grep -Fxf",
		"README.md                                the library for Go, and what a filter does not promise",
	} {
		fmt.Println("  ", line)
	}
	return nil
}

func (t *tour) say(format string, values ...any) { fmt.Printf("\n"+format+"\n", values...) }

// show runs a command and prints its output. Exit code 1 ("nothing selected") is
// allowed.
func (t *tour) show(input string, args ...string) (string, error) {
	out, err := t.command(input, args...)
	fmt.Print(t.indent(out))
	return out, err
}

// command prints a command line, runs it and prints its standard error.
func (t *tour) command(input string, args ...string) (string, error) {
	prompt := "$ "
	if input != "" {
		prompt = "$ ... | "
		if strings.Count(input, "\n") < 10 {
			prompt = "$ printf '" + strings.ReplaceAll(input, "\n", `\n`) + "' | "
		}
	}
	fmt.Println("   " + prompt + "bloomery " + t.quoted(args))
	cmd := exec.Command(t.binary, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	err := cmd.Run()
	fmt.Print(t.indent(messages.String()))
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 1 {
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("bloomery %s: %w", strings.Join(args, " "), err)
	}
	return out.String(), nil
}

func (t *tour) quiet(args ...string) (string, error) {
	out, err := exec.Command(t.binary, args...).Output()
	return string(out), err
}

// quoted returns the arguments as a user would type them.
func (t *tour) quoted(args []string) string {
	shown := make([]string, len(args))
	for i, arg := range args {
		if arg == t.filter {
			arg = filepath.Base(arg)
		}
		if strings.ContainsAny(arg, " ,") {
			arg = "'" + arg + "'"
		}
		shown[i] = arg
	}
	return strings.Join(shown, " ")
}

// indent indents a program's output, and names temporary files as the command line above
// it does.
func (t *tour) indent(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ReplaceAll(s, t.filter, filepath.Base(t.filter))
	return "   " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n   ") + "\n"
}

// jsonNumber returns one number from a flat JSON object.
func jsonNumber(object, name string) (n float64) {
	_, after, _ := strings.Cut(object, `"`+name+`":`)
	fmt.Sscan(strings.TrimSpace(after), &n)
	return n
}

func readLines(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	var lines []string
	scanner := bufio.NewScanner(unpacked)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	return lines, scanner.Err()
}

// countExactly measures the memory of a Go map of the lines.
func countExactly(lines []string) exactSet {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	set := make(map[string]struct{})
	for _, line := range lines {
		if _, seen := set[line]; !seen {
			set[strings.Clone(line)] = struct{}{}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	count := exactSet{len(set), after.HeapAlloc - before.HeapAlloc}
	runtime.KeepAlive(set)
	return count
}
