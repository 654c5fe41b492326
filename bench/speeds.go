package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// speedFile holds the figures of the speed chart, so that it can be drawn again
// without measuring again. Lines that begin with # describe the measurement. Then
// there is a row for each size and curve, with columns separated by tabs.
const speedFile = "speed.tsv"

// speeds are the figures of the speed chart.
type speeds struct {
	rate float64           // p
	head map[string]string // describes the measurement
	rows []speedRow
}

// speedRow holds the nanoseconds per key of one curve, by operation.
type speedRow struct {
	n     uint64
	curve string
	ns    [miss + 1]float64
}

// headNames are the entries of speeds.head, in the order of the file.
var headNames = []string{"CPU", "Go", "date", "command", "rivals"}

const speedColumns = "n\tcurve\tadd\thit\tmiss"

// measureSpeeds measures for the speed chart and writes the figures to dir.
func measureSpeeds(dir string, opt options) error {
	s := speeds{rate: opt.rate, head: machineHead()}
	rivals := []library{touchLibrary, named(bnb), named(blob), named(parq)}
	for _, n := range opt.sizesOr(1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7) {
		r := measure(n, opt, filterLibrary, rivals)
		for _, c := range curves {
			row := speedRow{n: n, curve: c.name}
			for op := add; op <= miss; op++ {
				row.ns[op] = r.find(c.library).median(cell{c.call, op})
			}
			s.rows = append(s.rows, row)
		}
	}
	return os.WriteFile(filepath.Join(dir, speedFile), []byte(s.String()), 0o644)
}

// String is the text of the file.
func (s speeds) String() string {
	var b bytes.Buffer
	fmt.Fprintln(&b, "# Nanoseconds per 16-byte key, medians. make bench-charts measures them, make charts draws them.")
	for _, name := range headNames {
		fmt.Fprintf(&b, "# %s: %s\n", name, s.head[name])
	}
	fmt.Fprintf(&b, "# p: %g\n", s.rate)
	fmt.Fprintln(&b, speedColumns)
	for _, row := range s.rows {
		fmt.Fprintf(&b, "%s\t%s", sizeName(row.n), row.curve)
		for _, ns := range row.ns {
			fmt.Fprintf(&b, "\t%.3g", ns)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// parseSpeeds reads what String writes.
func parseSpeeds(text string) (speeds, error) {
	s := speeds{head: make(map[string]string)}
	bad := func(i int, line string) (speeds, error) {
		return speeds{}, fmt.Errorf("%s: line %d is %q", speedFile, i+1, line)
	}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if comment, is := strings.CutPrefix(line, "# "); is {
			if name, value, found := strings.Cut(comment, ": "); found {
				s.head[name] = value
			}
			continue
		}
		if line == speedColumns {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 2+len(speedRow{}.ns) {
			return bad(i, line)
		}
		n, err := strconv.ParseFloat(columns[0], 64)
		if err != nil || n < 1 {
			return bad(i, line)
		}
		row := speedRow{n: uint64(n), curve: columns[1]}
		for op := range row.ns {
			if row.ns[op], err = strconv.ParseFloat(columns[2+op], 64); err != nil {
				return bad(i, line)
			}
		}
		s.rows = append(s.rows, row)
	}
	var err error
	if s.rate, err = strconv.ParseFloat(s.head["p"], 64); err != nil || !(s.rate > 0 && s.rate < 1) || len(s.rows) == 0 {
		return speeds{}, fmt.Errorf("%s: no rate p or no rows", speedFile)
	}
	return s, nil
}

// source describes the measurement in one line.
func (s speeds) source() string {
	parts := []string{fmt.Sprintf("p = %g", s.rate)}
	for _, name := range headNames {
		parts = append(parts, name+": "+s.head[name])
	}
	return strings.Join(parts, "; ")
}
