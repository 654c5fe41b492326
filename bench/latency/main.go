//go:build linux

// Latency measures how long others wait while a server is busy with something large:
// snapshots, merges, dumps, deletions and the like, of filters of every kind. It
// starts `bloomery serve`, and prints a Markdown table.
//
//	go run ./latency -bloomery ../bin/bloomery
//	go run ./latency -bloomery ../bin/bloomery -gib 0.1 -kinds redisbloom,names
//
// Four clients in a process of their own each send one command a millisecond: PING,
// BF.ADD and BF.EXISTS on the filter that the operation is about, and BF.ADD on
// another one. A reply that is late counts for the commands, too, that would have been
// sent meanwhile. A fifth client pings another server, which has nothing to do: how
// late its replies are is the machine's share. The rows "nothing" are the floor without
// any load.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

var (
	program = flag.String("bloomery", "bin/bloomery", "the program")
	gib     = flag.Float64("gib", 1, "the size of the filters, in GiB")
	dump    = flag.Float64("dump-mib", 24, "the size of the filter of DUMP and RESTORE, in MiB")
	names   = flag.Int("names", 1_000_000, "how many names are listed and cleared")
	idle    = flag.Duration("idle", 5*time.Second, "how long the floor is measured")
	only    = flag.String("kinds", "", "some of the kinds, with commas between them; none: all")
	beside  = flag.String("beside", "", "only operations with this in their names; the others are done, but not measured")
	level   = flag.String("durability", "everysec", "that of the server")
	loops   = flag.Int("loops", 0, "event loops of the server; 0: its default")
	probe   = flag.String("probe", "", "what the process of the probes does: the addresses of the server and of the idle one, with a comma between them")
)

func main() {
	flag.Parse()
	do := measure
	if *probe != "" {
		do = func() error { return probes(*probe) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
}

// A kind is a row of filters, with the words of BF.RESERVE that make them.
type kind struct {
	name, text string
	rate       string
	words      []string
	fixed      bool // refuses to grow
	dumps      bool // by DUMP
}

// The rate of RedisBloom's kind keeps its capacity below what BF.RESERVE takes.
var kinds = []kind{
	{name: "redisbloom", text: "RedisBloom's kind", rate: "0.0000001", words: []string{"EXPANSION", "16"}, dumps: true},
	{name: "fixed", text: "paired, fixed", rate: "0.0001", words: []string{"LAYOUT", "PAIRED", "NONSCALING"}, fixed: true},
	{name: "growing", text: "paired, growing", rate: "0.0001", words: []string{"LAYOUT", "PAIRED", "EXPANSION", "16"}},
	{name: "window", text: "window", rate: "0.0001", words: []string{"WINDOW", "24h"}, fixed: true},
}

const namesKind = "names"

// measure runs all operations and prints the table.
func measure() error {
	wanted := strings.Split(*only, ",")
	for _, name := range wanted {
		known := slices.ContainsFunc(kinds, func(k kind) bool { return k.name == name })
		if *only != "" && !known && name != namesKind {
			return fmt.Errorf("no kind %q", name)
		}
	}
	fmt.Println("| filter | beside | took | PING | BF.ADD | BF.EXISTS | BF.ADD to another | PING, idle server |")
	fmt.Println("|---|---|--:|--:|--:|--:|--:|--:|")
	for _, k := range kinds {
		if *only == "" || slices.Contains(wanted, k.name) {
			if err := with(func(b *bench) error { return b.filters(k) }); err != nil {
				return fmt.Errorf("%s: %w", k.text, err)
			}
		}
	}
	if *only == "" || slices.Contains(wanted, namesKind) {
		if err := with((*bench).manyNames); err != nil {
			return fmt.Errorf("names: %w", err)
		}
	}
	fmt.Printf("\nWorst and 99.9th percentile, in milliseconds.\n\n<!-- measured by: make bench-latency -->\n```text\n%d cores; %s %s/%s; %s. --durability %s.\n```\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format(time.DateOnly), *level)
	return nil
}

// A bench is a server, a client that gives it work, and probes that wait.
type bench struct {
	server *process
	client *client
	probes *prober
	random *rand.Rand // of keys
	filter string     // column of the table
}

// with calls do with a server in a fresh directory.
func with(do func(*bench) error) error {
	dir, err := os.MkdirTemp("", "bloomery-latency-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{random: rand.New(rand.NewPCG(1, 2))}
	if b.server, err = start(*program, filepath.Join(dir, "busy")); err != nil {
		return err
	}
	defer b.server.kill()
	if b.client, err = dial(b.server.address); err != nil {
		return err
	}
	defer b.client.conn.Close()
	idle, err := start(*program, filepath.Join(dir, "idle"))
	if err != nil {
		return err
	}
	defer idle.kill()
	if b.probes, err = startProbes(b.server.address + "," + idle.address); err != nil {
		return err
	}
	defer b.probes.end()
	if err := do(b); err != nil {
		return fmt.Errorf("%w\n%s", err, b.server.printed())
	}
	return nil
}

// row does something while the probes measure, and prints what they saw.
func (b *bench) row(name string, do func() error) error {
	if !strings.Contains(name, *beside) {
		if err := do(); err != nil && !errors.As(err, new(refusal)) {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if err := b.probes.tell("begin"); err != nil {
		return err
	}
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	failure := do()
	took := fmt.Sprintf("%.2f s", time.Since(began).Seconds())
	time.Sleep(50 * time.Millisecond)
	results, err := b.probes.results()
	if err != nil {
		return err
	}
	if refused, ok := failure.(refusal); ok {
		took = "refused: " + strings.SplitN(string(refused), ":", 2)[0]
	} else if failure != nil {
		return fmt.Errorf("%s: %w", name, failure)
	}
	fmt.Printf("| %s | %s | %s |", b.filter, name, took)
	for _, r := range results {
		fmt.Printf(" %.1f / %.1f |", r.worst, r.high)
	}
	fmt.Println()
	return nil
}
