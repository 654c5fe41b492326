package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestCounting runs the comparison once with few keys.
func TestCounting(t *testing.T) {
	var out bytes.Buffer
	writeCounting(&out, options{sizes: []uint64{30_000}, rate: 0.01, rounds: 1})
	for _, want := range []string{"| 3e4 | batch of 16-byte keys |", "| 3e4 | batch of hashes |", "| at most 2.5 |", "Noise at n = 3e4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, &out)
		}
	}
}

// TestCountingRow: what is compared with what, and the verdict.
func TestCountingRow(t *testing.T) {
	r := &result{n: 1000}
	for name, ns := range map[string][3]float64{"Filter": {10, 20, 40}, "Counting": {24, 60, 90}, fiveLines: {15, 51, 99}, firstHalf: {99, 99, 8}} {
		e := &entrant{library: library{name: name}, times: map[cell]*times{}}
		for op, x := range ns {
			e.times[cell{batchHashes, operation(op)}] = &times{cpu: []float64{x}}
		}
		r.entrants = append(r.entrants, e)
	}
	want := "| 1e3 | batch of hashes | 10.0 / 20 / 40 | 24 / 60 / 90 | 15.0 / 51 / 8.0 | 1.50 / 2.55 / 0.20 | 2.40 / 3.00 / 2.25 | at most 2.5 | **missed: hit**, and by the floor: hit |"
	if got := countingRow(r, batchHashes); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
