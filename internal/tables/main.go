// Command tables prints the computed tables of the documents, as Markdown:
//
//	go run ./internal/tables overhead   our bits per key next to the textbook's
//	go run ./internal/tables textbook   bits per key and k of the textbook filter
//	go run ./internal/tables layouts    space and cache lines of four layouts
//	go run ./internal/tables overfill   the rate with more keys than planned
//	go run ./internal/tables tightening bits per key of a chain, by series of rates
//	go run ./internal/tables growing    a Scalable next to filters planned for n
//	go run ./internal/tables windows    bits per key of a Window, by generations
//	go run ./internal/tables cuckoo     how full a Cuckoo is when it grows
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/bloomery/bloom"
)

// rates are the rates of the columns.
var rates = []float64{1e-2, 1e-3, 1e-4, 1e-5, 1e-6}

// manyKeys is large enough that rounding to whole blocks does not show.
const manyKeys = 10_000_000

func main() {
	tables := map[string]func(){"overhead": overhead, "textbook": textbook, "layouts": layouts, "overfill": overfill,
		"tightening": tightening, "growing": growing, "windows": windows, "cuckoo": cuckoo}
	if len(os.Args) != 2 || tables[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/tables overhead|textbook|layouts|overfill|tightening|growing|windows|cuckoo")
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

func overhead() {
	head("rate", "textbook bits per key", "bits per key", "more")
	for _, p := range rates {
		least, ours := bloom.ClassicBitsPerKey(p), mustPlan(p).BitsPerKey()
		row(name(p), fmt.Sprintf("%.2f", least), fmt.Sprintf("%.2f", ours), fmt.Sprintf("+%.1f%%", 100*(ours/least-1)))
	}
}

func textbook() {
	head(rateTitles("")...)
	perKey, ideal, whole := []string{"bits per key, `log2(1/p) / ln 2`"}, []string{"best k, `log2(1/p)`"}, []string{"bits per key with k whole"}
	for _, p := range rates {
		c, k := leastSpace(p, 30, textbookRate)
		perKey = append(perKey, fmt.Sprintf("%.2f", bloom.ClassicBitsPerKey(p)))
		ideal = append(ideal, fmt.Sprintf("%.2f", bloom.ClassicBitsPerKey(p)*ln2))
		whole = append(whole, fmt.Sprintf("%.2f (k = %d)", c, k))
	}
	row(perKey...)
	row(ideal...)
	row(whole...)
}

// mustPlan returns the plan of our layout for rate p.
func mustPlan(p float64) bloom.Plan {
	plan, err := bloom.Config{Keys: manyKeys, Rate: p}.Plan()
	if err != nil {
		panic(err)
	}
	return plan
}
