// Command bench compares the filters of github.com/bloomery/bloom with other Bloom
// filters in Go, and with the most that the machine's memory can do. It runs on
// Linux.
//
//	go run .                            1e5 and 1e7 keys, one table, the project's targets
//	go run . -n 1e5,1e7,1e8             also 1e8: needs 14 GB of free memory
//	go run . -rivals blobloom -n 1e6    only Filter, the bare touch and the named rivals
//	go run . -only split                SplitBlock and parquet-go
//	go run . -only sync                 Shared and Filter, then one and two goroutines
//	go run . -only keys                 keys of 16 to 100 bytes: what hashing costs
//	go run . -only cuckoo               Cuckoo, other cuckoo filters, and Counting
//	go run . -only counting             Counting, Filter, and the least that counters can cost
//	go run . -only bulk                 a bulk build of 1e9 keys
//	go run . -charts ../docs            measures for the charts and draws them
//	go run . -draw ../docs              draws them from the last measurement
//
// measure.go explains the method. Each contender is a file: see contender.go.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// options are the values of the flags.
type options struct {
	sizes  []uint64 // the values of n
	rate   float64  // p
	rounds int      // 0: depends on n
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	sizes := flag.String("n", "", "numbers of keys, such as 1e5,1e7 (the default; 1e9 for -only bulk)")
	rate := flag.Float64("p", 0.01, "false-positive rate")
	rounds := flag.Int("rounds", 0, "rounds per figure (default: 15 below 1e6 keys, 9 below 1e8, else 5)")
	rivals := flag.String("rivals", "", "measure only libraries whose names contain one of these, such as parquet,blobloom")
	only := flag.String("only", "", "run one comparison instead of the table: split, sync, keys, cuckoo, counting or bulk")
	charts := flag.String("charts", "", "measure for the charts, and write figures and charts to this directory")
	draw := flag.String("draw", "", "draw the charts in this directory again, from its figures")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unknown argument %q", flag.Arg(0))
	}
	if !(*rate > 0 && *rate < 1) {
		log.Fatalf("-p %g: a rate must be above 0 and below 1", *rate)
	}
	opt := options{rate: *rate, rounds: *rounds}
	opt.sizes = parseSizes(*sizes)

	// The harness collects garbage itself, never while a clock runs.
	debug.SetGCPercent(-1)

	if *draw != "" {
		drawCharts(*draw)
		return
	}
	out := io.Writer(os.Stdout)
	writeHead(out)
	switch {
	case *charts != "":
		if err := measureSpeeds(*charts, opt); err != nil {
			log.Fatal(err)
		}
		drawCharts(*charts)
	case *only == "":
		compare(out, opt, filterLibrary, choose(*rivals))
	case *only == "split" || *only == "sync" || *only == "keys" || *only == "cuckoo" || *only == "counting" || *only == "bulk":
		writeOnly(out, *only, opt)
	default:
		log.Fatalf("-only %q: want split, sync, keys, cuckoo, counting or bulk", *only)
	}
}

// compare measures base and its rivals, and writes the table and the targets.
func compare(out io.Writer, opt options, base library, rivals []library) {
	var results []*result
	for _, n := range opt.sizesOr(1e5, 1e7) {
		results = append(results, measure(n, opt, base, rivals))
	}
	writeTable(out, results)
	writeTargets(out, results)
}

// parseSizes reads "1e5,1e7".
func parseSizes(list string) (sizes []uint64) {
	if list == "" {
		return nil
	}
	for item := range strings.SplitSeq(list, ",") {
		x, err := strconv.ParseFloat(item, 64)
		if err != nil || x < 1000 || x > 1e11 {
			log.Fatalf("-n %q: want sizes from 1e3 to 1e11, separated by commas", list)
		}
		sizes = append(sizes, uint64(x))
	}
	return sizes
}

func (o options) sizesOr(sizes ...uint64) []uint64 {
	if o.sizes != nil {
		return o.sizes
	}
	return sizes
}

// sizeName writes 100000 as 1e5 and 2500000 as 2.5e6.
func sizeName(n uint64) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(float64(n), 'e', -1, 64), "e+")
	return fmt.Sprintf("%se%s", mantissa, strings.TrimPrefix(exponent, "0"))
}
