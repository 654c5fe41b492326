//go:build linux

// Soak runs `bloomery serve` in a control group with a limit to its memory, with the
// ceiling that the server chooses there, and keeps it near 90% of that under loads
// that make and drop filters and values all the time. It samples what is resident
// each second, prints a Markdown table, and fails if the system ended a server, or
// one had more than 1.25 times its ceiling and 100 MB.
//
//	go run ./soak -bloomery ../bin/bloomery
//	go run ./soak -bloomery ../bin/bloomery -time 30s -loads rebuild,delete
//
// It needs root, and control groups of memory, of version 1 or 2.
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
	binary   = flag.String("bloomery", "../bin/bloomery", "the program")
	forTime  = flag.Duration("time", 10*time.Minute, "how long each load runs")
	groupMiB = flag.Uint64("mib", 1024, "the memory of each group, in MiB")
	only     = flag.String("loads", "", "the loads to run, with commas between; all if empty")
	parallel = flag.Bool("parallel", false, "run all loads at once, each in a group of its own")
	withData = flag.Bool("data", false, "let the servers keep their data in a directory, with snapshots and a log")
)

// allowed is how much may be resident under a ceiling, in bytes.
func allowed(ceiling uint64) uint64 { return ceiling + ceiling/4 + 100e6 }

// result is what was measured of a load.
type result struct {
	load              load
	took              time.Duration
	ceiling           uint64
	used              uint64 // the most that the accounts said
	resident, usage   uint64 // the most that the process, and its group, had
	late              uint64 // the most resident in the last tenth of the time
	commands, refused int
	err               error // why it failed
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
		return false, fmt.Errorf("%w: build it by make build, or name it by -bloomery", err)
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

// runLoad runs a load in a group of its own.
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
		r.err = fmt.Errorf("the server ended after %v: %v", r.took.Round(time.Second), s.err)
		fmt.Fprint(os.Stderr, s.printed())
	case err != nil:
		r.err = err
	case r.resident > allowed(r.ceiling):
		r.err = errors.New("more was resident than may be")
	}
	return r
}

// work does a load's rounds until the time is over.
func work(ctx context.Context, s *server, r *result) error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	// A load that waits for a reply ends with the time, too.
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

// sample notes each second what is resident, and what the accounts say.
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
