// Package tidy holds house rules that reviewers should not have to check, as
// tests. It has no code of its own: run
//
//	go test ./internal/tidy
//
// and do what the failures say. The tests parse the files themselves instead of
// asking go list: go test caches a pass by the files the test opened, and does
// not know what a child process has read.
//
// # Imports
//
// Imports go one way, room by room, after the policy table in imports_test.go.
// A new room needs a row there.
//
// # Names and sizes
//
// No package or file is named util, common, types and the like; files and
// functions have a limit; a file that uses unsafe or declares assembly opens
// with a comment that says why. See names_test.go.
//
// # Floating-point arithmetic
//
// The library's arithmetic gives the same bits on every processor: it calls no
// function of package math whose last bits differ, and the compiler finds nothing
// to fuse in it. See arithmetic_test.go and the package comment of
// internal/elementary.
//
// # Numbers in documents
//
// A number in a document is printed by a program in this repository, or it is
// not there. The rule covers README.md, ARCHITECTURE.md and docs/*.md.
//
// A block is a fenced code block or a Markdown table. A block with numbers
// carries a marker, an HTML comment on the line directly above it, which says
// where the numbers come from:
//
//	<!-- printed by: COMMAND -->       COMMAND is cheap and always prints the same
//	<!-- measured by: make TARGET -->  timings and long runs; the Makefile has TARGET
//	<!-- drawing -->                   a diagram or table that defines (a format, a constant)
//
// The test runs each COMMAND and compares its output with the block, line by
// line, trailing space aside. To rewrite every such block from its command:
//
//	go test ./internal/tidy -update
//
// COMMAND starts with "bloomery ", "go test " or "go run ./" and is given to sh
// in the root of the repository, so pipes and && work. bloomery is built from
// this tree. Files it needs to write go to $TMPDIR, an empty directory that all
// commands of one document share, in their order; its name is cut from the
// output, so that $TMPDIR/a.bloom prints as a.bloom. Only standard output
// counts. Exit code 1 is allowed to bloomery, where it means that nothing was
// selected. From the output of go test, its own lines (=== RUN, PASS, ok ...)
// are dropped, so a test or an Example may print a table by fmt.Print.
//
// A ```console block may open with the input, in lines that start with "$ ".
// They are kept, the rest is compared, and what they show must be what ran: each
// such line stands verbatim in COMMAND, but for $TMPDIR/ and testdata/.
//
// Blocks that need no marker: those without numbers; fenced blocks in a language
// of input (go, sh, yaml and so on: see inputLanguages), and console blocks that
// show input only. In tables, text in backticks and names such as RESP3, Go 1.26
// or section 2.1 are not numbers. In other fenced blocks every digit is.
//
// Two documents are to be copied from, docs/choosing.md and docs/from-the-articles.md.
// Each line of Go in them stands in a Go file, and the commands in the tables of the
// former run without an error: see guides_test.go.
//
// In prose, a figure is a number with a unit (9.68 bits, 12 ns, 1.5x, 10%) or
// with a decimal point. Its number must also stand, digit for digit (but for
// thousands separators), in a marked block of any of the documents: 10% wants a
// 10 there, not a 0.1. These are no figures: headings; text in backticks; links'
// addresses; $formulas$; versions (Go 1.26, v0.8.0, Apache-2.0); references
// (section 3.2); and sizes joined by a hyphen (64-bit, 512-byte), which are names.
package tidy
