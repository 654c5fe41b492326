// Command interop holds package interop against the programs whose filters it
// reads and writes. It wants them installed: run `make interop`.
//
//	go run .                       all of them, one table
//	go run . -only guava,parquet   these formats only
//	go run . -docs FILE            writes the table into the document, too
//
// For each filter it has the real program make one from keys, write it and answer
// thousands of probes; reads it, writes it again and answers the same probes;
// builds the same filter with the library, and has the program read that and
// answer. Every byte and every answer must be equal, false positives included. A
// format is a row of peers.go, a program a file in programs/.
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
	flag.StringVar(&in.guava, "guava", "/usr/share/java/guava.jar", "Guava's jar")
	flag.StringVar(&in.modules, "modules", "", "the node_modules with the packages of JavaScript")
	flag.StringVar(&in.vectors, "vectors", "../../testdata/vectors", "what programs wrote once")
	only := flag.String("only", "", "formats, separated by commas; all if empty")
	docs := flag.String("docs", "", "a document to write the table into")
	flag.Parse()
	if err := run(in, *only, *docs); err != nil {
		log.Fatal(err)
	}
}

func run(in tools, only, docs string) (err error) {
	if only != "" && docs != "" {
		return errors.New("-docs takes the whole table: leave out -only")
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
				log.Printf("and %d problems more", len(r.problems)-i)
				break
			}
			log.Print(problem)
		}
		problems += len(r.problems)
		results = append(results, r)
	}
	if len(results) == 0 {
		return fmt.Errorf("-only %s: there is no such format", only)
	}
	head, table := machine(), tableOf(results)
	fmt.Printf("%s\n\n%s\n", strings.Join(head, "\n"), strings.Join(table, "\n"))
	if problems > 0 {
		return fmt.Errorf("%d problems, see above; no document was written", problems)
	}
	if docs != "" {
		return writeDocs(docs, head, table)
	}
	return nil
}

// mostPrinted is how many problems of a row are printed.
const mostPrinted = 5

func chosen(only, format string) bool {
	return only == "" || slices.Contains(strings.Split(only, ","), format)
}
