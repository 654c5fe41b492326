// Command interop tests package interop against the programs whose filters it reads
// and writes. They must be installed: `make interop` installs them.
//
//	go run .                       all formats, one table
//	go run . -only guava,parquet   only these formats
//	go run . -docs FILE            also write the table to the document
//
// For each filter, the real program builds one from keys, writes it and answers
// thousands of probes. The library reads it, writes it again and answers the same
// probes. It builds the same filter from the keys, which the program reads and
// answers for. Every byte and every answer must be equal, false positives included. A
// format is a row in peers.go, a program a file in programs/.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("interop: ")
	var in tools
	flag.StringVar(&in.guava, "guava", "/usr/share/java/guava.jar", "path of Guava's jar")
	flag.StringVar(&in.modules, "modules", "", "the node_modules directory with the JavaScript packages")
	flag.StringVar(&in.vectors, "vectors", "../../testdata/vectors", "directory of recorded filters")
	only := flag.String("only", "", "formats, separated by commas (default all)")
	docs := flag.String("docs", "", "document to write the table to")
	flag.Parse()
	if err := run(in, *only, *docs); err != nil {
		log.Fatal(err)
	}
}

func run(in tools, only, docs string) (err error) {
	if only != "" && docs != "" {
		return errors.New("-docs needs the whole table: leave out -only")
	}
	if in.dir, err = os.MkdirTemp("", "bloomery-interop"); err != nil {
		return err
	}
	defer os.RemoveAll(in.dir)
	var results []*result
	problems := 0
	for _, p := range peers(in) {
		if !chosen(only, p.format) {
			continue
		}
		r, err := compare(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.format, err)
		}
		log.Printf("%s: %d filters of %s", r.format, r.filters, r.program)
		for i, problem := range r.problems {
			if i == mostPrinted {
				log.Printf("and %d more problems", len(r.problems)-i)
				break
			}
			log.Print(problem)
		}
		problems += len(r.problems)
		results = append(results, r)
	}
	if len(results) == 0 {
		return fmt.Errorf("-only %s: no such format", only)
	}
	head, table := machine(), tableOf(results)
	fmt.Printf("%s\n\n%s\n", strings.Join(head, "\n"), strings.Join(table, "\n"))
	if problems > 0 {
		return fmt.Errorf("%d problems, listed above; no document was written", problems)
	}
	if docs != "" {
		return writeDocs(docs, head, table)
	}
	return nil
}

// mostPrinted is how many problems of a row are printed at most.
const mostPrinted = 5

func chosen(only, format string) bool {
	return only == "" || slices.Contains(strings.Split(only, ","), format)
}
