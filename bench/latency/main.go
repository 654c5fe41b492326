//go:build linux

// Latency measures how long other clients wait while a server is busy with a large
// operation, such as a snapshot, merge, dump or deletion, on filters of every kind.
// It starts `bloomery serve` and prints a Markdown table.
//
//	go run ./latency -bloomery ../bin/bloomery
//	go run ./latency -bloomery ../bin/bloomery -gib 0.1 -kinds redisbloom,names
//
// Four clients in a separate process each send one command per millisecond: PING,
// BF.ADD and BF.EXISTS on the filter of the operation, and BF.ADD on another one. A
// late reply also counts for the commands that should have been sent in the
// meantime. A fifth client pings an idle server; the delay of its replies is the
// machine's share. There are two floors: the rows "nothing" are without any load; during
// "new memory, another process" that process touches as much new memory as the filter
// has, a huge page at a time, as filling a filter does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

var (
	program = flag.String("bloomery", "bin/bloomery", "the `program` to measure")
	gib     = flag.Float64("gib", 1, "size of the filters, in GiB")
	dump    = flag.Float64("dump-mib", 24, "size of the filter for DUMP and RESTORE, in MiB")
	names   = flag.Int("names", 1_000_000, "number of names to list and clear")
	idle    = flag.Duration("idle", 5*time.Second, "how long to measure the floor")
	only    = flag.String("kinds", "", "kinds of filters, separated by commas (default all)")
	beside  = flag.String("beside", "", "measure only operations whose names contain this; the others run unmeasured")
	level   = flag.String("durability", "everysec", "durability level of the server")
	loops   = flag.Int("loops", 0, "event loops of the server (0 for its default)")
	touch   = flag.Uint64("touch", 0, "internal: run as the process that touches this many bytes of new memory")
	probe   = flag.String("probe", "", "internal: run as the probes' process, with the addresses of the server and the idle server, separated by a comma")
)

// interrupted ends with a signal. Then the servers are killed, so that the operation
// under way fails, and their directories are removed.
var interrupted, _ = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)

func main() {
	flag.Parse()
	do := measure
	switch {
	case *probe != "":
		do = func() error { return probes(*probe) }
	case *touch != 0:
		do = func() error { return touchNew(int(*touch)) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
}

// A kind is a kind of filter, with the arguments of BF.RESERVE for it.
type kind struct {
	name, text string
	rate       string
	words      []string
	fixed      bool // refuses to grow
	dumps      bool // supports DUMP
}

// The rate of RedisBloom's kind keeps its capacity below the limit of BF.RESERVE.
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

// A bench is a server, a client that runs the operations, and the probes.
type bench struct {
	server *process
	client *client
	probes *prober
	random *rand.Rand // for keys
	filter string     // text for the table's first column
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

// row runs an operation while the probes measure, and prints their results.
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
