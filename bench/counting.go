package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/bloomery/bloom"
)

// Counting next to Filter and to its own floor, by batches: what the counters cost, and how
// much of that is their memory, which is four times as large.

func newCounting(n uint64, p float64) *contender {
	f := must(bloom.NewCounting(n, p))
	answers := make([]bool, maxKeys)
	return &contender{
		bits:  float64(8 * f.Bytes()),
		close: func() { f.Close() },
		keyBatch: loops[[]byte]{
			add:   func(keys [][]byte) { f.AddMany(keys, answers[:len(keys)]) },
			count: func(keys [][]byte) int { return f.ContainsMany(keys, answers[:len(keys)]) },
		},
		hashBatch: loops[uint64]{
			add:   func(hashes []uint64) { f.AddHashes(hashes, answers[:len(hashes)]) },
			count: func(hashes []uint64) int { return f.ContainsHashes(hashes, answers[:len(hashes)]) },
		},
	}
}

// batches leaves out a contender's calls of one key.
func batches(make func(n uint64, p float64) *contender) func(n uint64, p float64) *contender {
	return func(n uint64, p float64) *contender {
		c := make(n, p)
		c.keys, c.hashes = loops[[]byte]{}, loops[uint64]{}
		return c
	}
}

const (
	fiveLines = "touch of five lines" // the floor of adds and hits
	firstHalf = "touch of two or three lines"
)

// countingWithin is the target: Counting's time over Filter's.
const countingWithin = 2.5

// writeCounting compares Counting with Filter and with the floor, a row for each n and call.
func writeCounting(out io.Writer, opt options) {
	fmt.Fprintf(out, "Nanoseconds per key, CPU time of one core, p = %g, medians of interleaved rounds, for add / hit / miss. The floor is a\n", opt.rate)
	fmt.Fprintf(out, "loop that only touches the lines of a key: five for an add and a hit, two or three for a miss.\n\n")
	fmt.Fprintln(out, "| n | call | Filter | Counting | the floor | floor / Filter | Counting / Filter | asked | verdict |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|")
	var noise []*result
	for _, n := range opt.sizesOr(1e5, 1e7, 1e8) {
		r := measure(n, opt, library{"Filter", batches(newFilter)}, []library{
			{"Counting", newCounting}, {fiveLines, newTouchCounters}, {firstHalf, newTouchFirst}})
		noise = append(noise, r)
		for _, call := range []call{batchKeys, batchHashes} {
			fmt.Fprintln(out, countingRow(r, call))
		}
	}
	fmt.Fprintln(out)
	for _, r := range noise {
		writeNoise(out, r)
	}
}

// countingRow is the row for one size and call.
func countingRow(r *result, call call) string {
	var ours, theirs, floors, floorRatios, ratios, missed, impossible []string
	for op := add; op <= miss; op++ {
		filter := r.find("Filter").median(cell{call, op})
		counting := r.find("Counting").median(cell{call, op})
		touch := fiveLines
		if op == miss {
			touch = firstHalf
		}
		floor := r.find(touch).median(cell{batchHashes, op})
		theirs, ours = append(theirs, significant(filter)), append(ours, significant(counting))
		floors, floorRatios = append(floors, significant(floor)), append(floorRatios, fmt.Sprintf("%.2f", floor/filter))
		ratios = append(ratios, fmt.Sprintf("%.2f", counting/filter))
		if counting > countingWithin*filter {
			missed = append(missed, op.String())
		}
		if floor > countingWithin*filter {
			impossible = append(impossible, op.String())
		}
	}
	verdict := "met"
	if missed != nil {
		verdict = "**missed: " + strings.Join(missed, ", ") + "**"
	}
	if impossible != nil {
		verdict += ", and by the floor: " + strings.Join(impossible, ", ")
	}
	triple := func(of []string) string { return strings.Join(of, " / ") }
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | at most %g | %s |", sizeName(r.n), call,
		triple(theirs), triple(ours), triple(floors), triple(floorRatios), triple(ratios), countingWithin, verdict)
}
