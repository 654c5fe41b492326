//go:build linux

// Soak runs `bloomery serve` in a control group with limited memory, with the ceiling
// that the server chooses there, and keeps it near 90% of that under loads that
// constantly create and delete filters and values. It samples the resident memory
// each second and prints a Markdown table. It fails if the system killed a server, or
// if one used more than 1.25 times its ceiling plus 100 MB.
//
//	go run ./soak -bloomery ../bin/bloomery
//	go run ./soak -bloomery ../bin/bloomery -time 30s -loads rebuild,delete
//
// It needs root and memory control groups, of version 1 or 2.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	binary   = flag.String("bloomery", "../bin/bloomery", "the `program` to test")
	forTime  = flag.Duration("time", 10*time.Minute, "how long each load runs")
	groupMiB = flag.Uint64("mib", 1024, "memory of each group, in MiB")
	only     = flag.String("loads", "", "loads to run, separated by commas (default all)")
	parallel = flag.Bool("parallel", false, "run all loads in parallel, each in its own group")
	withData = flag.Bool("data", false, "run the servers with a data directory, so with snapshots and a log")
)

// allowed is how much memory may be resident under a ceiling, in bytes.
func allowed(ceiling uint64) uint64 { return ceiling + ceiling/4 + 100e6 }

// A result holds the measurements of a load.
type result struct {
	load              load
	took              time.Duration
	ceiling           uint64
	used              uint64 // the peak of the server's accounted memory
	resident, usage   uint64 // the peaks of the process and of its group
	late              uint64 // the peak of resident in the last tenth of the time
	commands, refused int
	err               error // why the load failed
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed, err := soak(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || failed {
		stop()
		os.Exit(1)
	}
}

func soak(ctx context.Context) (failed bool, err error) {
	chosen, err := chosenLoads()
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(*binary); err != nil {
		return false, fmt.Errorf("%w: build it with make build, or name it with -bloomery", err)
	}
	tried, err := newGroup("tried", *groupMiB<<20)
	if err != nil {
		return false, err
	}
	if err := tried.remove(); err != nil {
		return false, err
	}
	results := make([]result, len(chosen))
	var wait sync.WaitGroup
	for i, load := range chosen {
		wait.Go(func() { results[i] = runLoad(ctx, load) })
		if !*parallel {
			wait.Wait()
		}
	}
	wait.Wait()
	fmt.Println("| load | time | commands | refused | ceiling | accounted, most | resident, most | in the last tenth | group, most | may be resident | |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
	mib := func(bytes uint64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
	for _, r := range results {
		verdict := "kept"
		if r.err != nil {
			verdict, failed = "FAILED: "+r.err.Error(), true
		}
		fmt.Printf("| %s: %s | %v | %d | %d | %s | %s | %s | %s | %s | %s | %s |\n", r.load.name, r.load.about, r.took.Round(time.Second), r.commands, r.refused,
			mib(r.ceiling), mib(r.used), mib(r.resident), mib(r.late), mib(r.usage), mib(allowed(r.ceiling)), verdict)
	}
	fmt.Printf("\n<!-- measured by: make soak -->\n```text\n%d cores; %s %s/%s; %s. Groups of %d MiB.\n```\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format(time.DateOnly), *groupMiB)
	return failed, ctx.Err()
}

func chosenLoads() (chosen []load, err error) {
	if *only == "" {
		return loads, nil
	}
	for name := range strings.SplitSeq(*only, ",") {
		i := slices.IndexFunc(loads, func(l load) bool { return l.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no load %q", name)
		}
		chosen = append(chosen, loads[i])
	}
	return chosen, nil
}

// runLoad runs a load in its own group.
func runLoad(ctx context.Context, load load) (r result) {
	r.load = load
	g, err := newGroup(load.name, *groupMiB<<20)
	if err != nil {
		r.err = err
		return r
	}
	defer func() { r.err = errors.Join(r.err, g.remove()) }()
	var flags []string
	if *withData {
		dir, err := os.MkdirTemp("", "bloomery-soak-")
		if err != nil {
			r.err = err
			return r
		}
		defer os.RemoveAll(dir)
		flags = []string{"--data", dir}
	}
	s, err := startServer(g, *binary, flags...)
	if err != nil {
		r.err = err
		return r
	}
	defer s.stop()
	r.ceiling = s.ceiling
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, *forTime)
	defer cancel()
	var sampled sync.WaitGroup
	sampled.Go(func() { r.sample(ctx, s, g, began) })
	err = work(ctx, s, &r)
	cancel()
	sampled.Wait()
	r.took = time.Since(began)
	switch {
	case s.gone():
		r.err = fmt.Errorf("the server exited after %v: %v", r.took.Round(time.Second), s.err)
		fmt.Fprint(os.Stderr, s.printed())
	case err != nil:
		r.err = err
	case r.resident > allowed(r.ceiling):
		r.err = errors.New("too much memory was resident")
	}
	return r
}

// work runs a load's rounds until time is up.
func work(ctx context.Context, s *server, r *result) error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	// A load that waits for a reply must also stop when time is up.
	defer context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Now().Add(20 * time.Second)) })()
	l := &run{client: c, ctx: ctx, ceiling: s.ceiling, rng: rand.New(rand.NewPCG(1, 2))}
	if r.load.begin != nil {
		err = r.load.begin(l)
	}
	for err == nil && ctx.Err() == nil {
		err = r.load.round(l)
	}
	r.commands, r.refused = c.commands, c.refused
	if ctx.Err() != nil && !s.gone() && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// sample records the resident and the accounted memory once a second.
func (r *result) sample(ctx context.Context, s *server, g *group, began time.Time) {
	c, err := dial(s.address)
	if err == nil {
		defer c.conn.Close()
	}
	for tick := time.NewTicker(time.Second); ; {
		resident := s.resident()
		r.resident, r.usage = max(r.resident, resident), max(r.usage, g.usage())
		if time.Since(began) > *forTime*9/10 {
			r.late = max(r.late, resident)
		}
		if err == nil {
			var used uint64
			if used, err = c.used(); err == nil {
				r.used = max(r.used, used)
			}
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-s.ended:
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}
