// Command tables prints the computed tables of the documents, as Markdown:
//
//	go run ./internal/tables overhead   our bits per key next to the textbook's
//	go run ./internal/tables textbook   bits per key and k of the textbook filter
//	go run ./internal/tables layouts    space and cache lines of four layouts
//	go run ./internal/tables overfill   the rate with more keys than planned
//	go run ./internal/tables tightening bits per key of a chain, by series of rates
//	go run ./internal/tables growing    a Scalable next to filters planned for n
//	go run ./internal/tables churn      a ScalableCounting whose keys are replaced
//	go run ./internal/tables windows    bits per key of a Window, by generations
//	go run ./internal/tables cuckoo     how full a Cuckoo is when it grows
//
// and those of docs/choosing.md:
//
//	go run ./internal/tables exact      what a set costs that is never wrong
//	go run ./internal/tables saved      what a filter in front of something slow saves
//	go run ./internal/tables worth      the rate that costs the least
//	go run ./internal/tables kinds      bits per key of each kind
//	go run ./internal/tables small      what a filter of few keys takes
//
// and of docs/from-the-articles.md:
//
//	go run ./internal/tables approximation the textbook's formula and the exact rate
//	go run ./internal/tables formulas   the articles' formulas, and the rates that they give
//	go run ./internal/tables perkey     the rate by bits per key
//	go run ./internal/tables prefixes   keys that share positions
//	go run ./internal/tables neighbours two readings of MD5(x+i)
//	go run ./internal/tables tenbillion the black list of ten billion URLs
//	go run ./internal/tables javaclass  the rate of the Java class, measured
//	go run ./internal/tables counters   how often a counter of few bits overflows
//	go run ./internal/tables removals   what is lost when strangers are removed
//	go run ./internal/tables operations union, intersection and difference of bits
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomery/bloom"
)

// rates are the rates of the columns.
var rates = []float64{1e-2, 1e-3, 1e-4, 1e-5, 1e-6}

// manyKeys is large enough that rounding to whole blocks does not show.
const manyKeys = 10_000_000

// tables are the tables by name.
var tables = map[string]func(){
	"overhead": overhead, "textbook": textbook, "layouts": layouts, "overfill": overfill, "tightening": tightening, "growing": growing, "churn": churn, "windows": windows, "cuckoo": cuckoo,
	"exact": exact, "saved": saved, "worth": worth, "kinds": kinds, "small": small,
	"approximation": approximation, "formulas": formulas, "perkey": perkey, "prefixes": prefixes, "neighbours": neighbours, "tenbillion": tenbillion, "javaclass": javaclass,
	"counters": counters, "removals": removals, "operations": operations,
}

func main() {
	if len(os.Args) != 2 || tables[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/tables", strings.Join(slices.Sorted(maps.Keys(tables)), "|"))
		os.Exit(2)
	}
	tables[os.Args[1]]()
}

// row prints a row of a table.
func row(cells ...string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }

// head prints the first two lines of a table: a title, and right-aligned columns.
func head(titles ...string) {
	row(titles...)
	row("---", strings.Join(strings.Fields(strings.Repeat("--: ", len(titles)-1)), " | "))
}

// name writes a rate without an exponent.
func name(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) }

// rateTitles are the titles of columns by rate.
func rateTitles(first string) []string {
	titles := []string{first}
	for _, p := range rates {
		titles = append(titles, "p = "+name(p))
	}
	return titles
}

// mustPlan returns the plan of our layout for rate p.
func mustPlan(p float64) bloom.Plan {
	plan, err := bloom.Config{Keys: manyKeys, Rate: p}.Plan()
	if err != nil {
		panic(err)
	}
	return plan
}
