package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// writeTable writes one row for each size, library and call.
func writeTable(out io.Writer, results []*result) {
	us := results[0].entrants[0].name
	fmt.Fprintf(out, "Nanoseconds per key, CPU time of one core, p = %g, medians of interleaved rounds. In brackets: how many times\n", results[0].p)
	fmt.Fprintf(out, "faster %s is on the same kind of keys, called one by one / in a batch.\n\n", us)
	fmt.Fprintln(out, "| n | filter | bits per key | rate | call | add | hit | miss |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|")
	for _, r := range results {
		for _, e := range r.entrants {
			for _, call := range calls {
				if !e.measured(call) {
					continue
				}
				fmt.Fprintf(out, "| %s | %s | %.2f | %s | %s |", sizeName(r.n), e.name, e.bits/float64(r.n), e.rateText(), e.callText(call))
				for op := add; op <= miss; op++ {
					fmt.Fprintf(out, " %s |", r.figure(e, cell{call, op}))
				}
				fmt.Fprintln(out)
			}
		}
	}
	fmt.Fprintln(out)
	for _, r := range results {
		writeNoise(out, r)
	}
	fmt.Fprintln(out)
}

func (e *entrant) measured(call call) bool {
	for op := add; op <= miss; op++ {
		if e.times[cell{call, op}] != nil {
			return true
		}
	}
	return false
}

func (e *entrant) rateText() string {
	if e.rate == 1 {
		return "-" // no answers
	}
	return fmt.Sprintf("%.3g%%", 100*e.rate)
}

func (e *entrant) callText(call call) string {
	if e.name == touchLibrary.name {
		return touchForm
	}
	return call.String()
}

// figure is the cell's text: the time, and its ratio to the first entrant's.
func (r *result) figure(e *entrant, at cell) string {
	ns := e.median(at)
	if at.op == add && e.buildTime.cpu != nil {
		return fmt.Sprintf("%s to build", significant(median(e.buildTime.cpu)))
	}
	if ns == 0 {
		return "-"
	}
	if e == r.entrants[0] {
		return "**" + significant(ns) + "**"
	}
	var ratios []string
	for _, batch := range []bool{false, true} {
		at.call.batch = batch
		if us := r.entrants[0].median(at); us > 0 {
			ratios = append(ratios, significant(ns/us)+"x")
		}
	}
	return fmt.Sprintf("%s (%s)", significant(ns), strings.Join(ratios, " / "))
}

// significant writes a positive number with two or three digits: 0.45, 4.5, 45, 450.
func significant(x float64) string {
	switch {
	case x < 0.995:
		return fmt.Sprintf("%.2f", x)
	case x < 19.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// writeNoise reports how noisy the run was: the spread of the rounds (the
// interquartile range over the median), and how much longer everything took by the
// wall clock.
func writeNoise(out io.Writer, r *result) {
	var spreads, waits []float64
	for _, e := range r.entrants {
		for _, t := range e.times {
			spreads = append(spreads, (quantile(t.cpu, 0.75)-quantile(t.cpu, 0.25))/median(t.cpu))
			waits = append(waits, median(t.wall)/median(t.cpu)-1)
		}
	}
	percent := func(x float64) string { return fmt.Sprintf("%.0f%%", math.Round(100*x)) }
	fmt.Fprintf(out, "Noise at n = %s: rounds spread by %s (worst figure %s); the wall clock showed %s more (worst %s).\n",
		sizeName(r.n), percent(median(spreads)), percent(quantile(spreads, 1)), percent(median(waits)), percent(quantile(waits, 1)))
}
