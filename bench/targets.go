package main

import (
	"fmt"
	"io"
	"strings"
)

// A target is a promise about one row of the table: our time against a rival's, for
// an add, a hit and a miss. It applies at p = 1%. A rival without batches is
// measured by its loop.
type target struct {
	about  string
	us     string
	our    call
	rival  string
	their  call
	limits map[uint64]limit // by n
}

// limit is the requirement for the three figures; 0 means none. At most one of
// faster and within is set.
type limit struct {
	faster [3]float64 // at least this many times as fast as the rival
	within [3]float64 // at most this multiple of the rival's time
	plus   float64    // nanoseconds allowed on top of within
}

func faster(add, hit, miss float64) limit { return limit{faster: [3]float64{add, hit, miss}} }

func within(add, hit, miss, plus float64) limit {
	return limit{within: [3]float64{add, hit, miss}, plus: plus}
}

var (
	singleKeys   = call{key16, false}
	batchKeys    = call{key16, true}
	singleHashes = call{hashed, false}
	batchHashes  = call{hashed, true}
)

// Filter's targets, including those for batches of hashes, were set against loops
// over 16-byte keys that include hashing.
var targets = []target{
	{"16-byte keys one by one", "Filter", singleKeys, bnb, singleKeys, map[uint64]limit{
		1e5: faster(5, 5, 5), 1e7: faster(3.3, 3.3, 3.3), 1e8: faster(3.8, 3.8, 3.8)}},
	{"16-byte keys one by one", "Filter", singleKeys, blob, singleKeys, map[uint64]limit{
		1e5: faster(1, 1, 1.6), 1e7: faster(1, 1, 1), 1e8: faster(1, 1, 1)}},
	{"batch of 16-byte keys", "Filter", batchKeys, bnb, singleKeys, map[uint64]limit{
		1e5: faster(9, 6, 6), 1e7: faster(20, 15, 15), 1e8: faster(14, 14, 14)}},
	{"batch of 16-byte keys", "Filter", batchKeys, blob, singleKeys, map[uint64]limit{
		1e5: faster(1.4, 1.4, 1.4), 1e7: faster(4.5, 4.5, 4.5), 1e8: faster(4, 4, 4)}},
	{"batch of hashes, it 16-byte keys", "Filter", batchHashes, bnb, singleKeys, map[uint64]limit{
		1e5: faster(12, 12, 12), 1e7: faster(30, 30, 30), 1e8: faster(19, 19, 19)}},
	{"batch of hashes, it 16-byte keys", "Filter", batchHashes, blob, singleKeys, map[uint64]limit{
		1e5: faster(2.9, 2.9, 2.9), 1e7: faster(9, 9, 9), 1e8: faster(4.8, 4.8, 4.8)}},
	{"batch of hashes", "Filter", batchHashes, "bare touch", batchHashes, map[uint64]limit{
		1e7: within(0, 0, 1.6, 0), 1e8: within(0, 0, 1.45, 0)}},

	{"16-byte keys one by one", "SplitBlock", singleKeys, parq, singleKeys, everySize(faster(1.5, 1.5, 1.5))},
	{"batch of 16-byte keys", "SplitBlock", batchKeys, parq, batchKeys, everySize(faster(1.5, 1.5, 1.5))},
	{"hashes one by one", "SplitBlock", singleHashes, parq, singleHashes, everySize(faster(1.5, 1.5, 1.5))},
	{"batch of hashes", "SplitBlock", batchHashes, parq, batchHashes, everySize(faster(1.5, 1.5, 1.5))},

	{"batch of 16-byte keys", "Shared", batchKeys, "Filter", batchKeys, everySize(within(1.5, 1.5, 1.5, 2))},
	{"batch of hashes", "Shared", batchHashes, "Filter", batchHashes, everySize(within(1.5, 1.5, 1.5, 2))},
}

func everySize(l limit) map[uint64]limit { return map[uint64]limit{1e5: l, 1e7: l, 1e8: l} }

// writeTargets writes a row for each target and size that was measured.
func writeTargets(out io.Writer, results []*result) {
	var rows []string
	met, all := 0, 0
	for _, t := range targets {
		for _, r := range results {
			row, m, a := t.row(r)
			if a > 0 {
				rows = append(rows, row)
				met, all = met+m, all+a
			}
		}
	}
	if all == 0 {
		fmt.Fprintln(out, "There are no targets for these sizes, rivals and rate.")
		return
	}
	fmt.Fprintf(out, "Targets: %d of %d met. Figures are for add / hit / miss; ours are times faster, or the share of the rival's time.\n\n", met, all)
	fmt.Fprintln(out, "| target | rival | n | asked | measured | verdict |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|")
	fmt.Fprintln(out, strings.Join(rows, "\n"))
}

// row is the target's row for one size, with the number of figures that meet it and
// of all figures. Both are 0 if the result lacks what the target is about.
func (t *target) row(r *result) (row string, met, all int) {
	us, rival := r.find(t.us), r.find(t.rival)
	if us == nil || rival == nil || r.p != 0.01 {
		return "", 0, 0
	}
	limit := t.limits[r.n]
	var asked, measured, missed []string
	for op := add; op <= miss; op++ {
		ours, theirs := us.median(cell{t.our, op}), rival.median(cell{t.their, op})
		if theirs == 0 {
			theirs = rival.median(cell{call{t.their.kind, false}, op})
		}
		want, got, ok := limit.check(op, ours, theirs)
		asked, measured = append(asked, want), append(measured, got)
		if want == "-" {
			continue
		}
		all++
		if ok {
			met++
		} else {
			missed = append(missed, op.String())
		}
	}
	verdict := "met"
	if missed != nil {
		verdict = "**missed: " + strings.Join(missed, ", ") + "**"
	}
	return fmt.Sprintf("| %s: %s | %s | %s | %s | %s | %s |", t.us, t.about, t.rival, sizeName(r.n),
		strings.Join(asked, " / "), strings.Join(measured, " / "), verdict), met, all
}

func (r *result) find(name string) *entrant {
	for _, e := range r.entrants {
		if e.name == name {
			return e
		}
	}
	return nil
}

// check compares our time with the rival's. It returns the requirement ("-" if there
// is none), and what was measured.
func (l limit) check(op operation, ours, theirs float64) (asked, measured string, ok bool) {
	switch {
	case ours == 0 || theirs == 0:
		return "-", "-", true
	case l.faster[op] > 0:
		ratio := theirs / ours
		return fmt.Sprintf("%.3gx", l.faster[op]), fmt.Sprintf("%.2fx", ratio), ratio >= l.faster[op]
	case l.within[op] > 0:
		asked = fmt.Sprintf("at most %.3g", l.within[op])
		if l.plus > 0 {
			asked += fmt.Sprintf(" and %g ns", l.plus)
		}
		return asked, fmt.Sprintf("%.2f", ours/theirs), ours <= l.within[op]*theirs+l.plus
	}
	return "-", "-", true
}
