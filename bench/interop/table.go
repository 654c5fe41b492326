package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// machine describes the machine and the time. The table has the programs' versions.
func machine() []string {
	system := runtime.GOOS
	if file, err := os.Open("/etc/os-release"); err == nil {
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "PRETTY_NAME="); ok {
				system = strings.Trim(name, `"`)
			}
		}
	}
	return []string{
		"```text",
		fmt.Sprintf("%s, %s %s, %s", system, runtime.Version(), runtime.GOARCH, time.Now().UTC().Format("2006-01-02 15:04 MST")),
		"```",
	}
}

// tableOf formats the results as Markdown.
func tableOf(results []*result) []string {
	lines := []string{
		"| format | program | its filters, read: equal answers | its filters, written again: equal bytes | ours, built from the keys: equal bytes | ours, read by it: equal answers | answers compared | false positives among them, equal |",
		"|---|---|---|---|---|---|---|---|",
	}
	for _, r := range results {
		lines = append(lines, r.row("`"+r.format+"`"))
	}
	return lines
}

func (r *result) row(name string) string {
	rewritten, identical := of(r.rewritten, r.filters), of(r.identical, r.built)
	if r.loose {
		rewritten, identical = "-", "-"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |", name, r.program, of(r.read, r.filters),
		rewritten, identical, of(r.accepted, r.offered), thousands(r.answers), thousands(r.falsePositives))
}

func of(n, all int) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", n, all)
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

const marker = "<!-- measured by: make interop -->"

// writeDocs replaces the blocks under the markers.
func writeDocs(path string, blocks ...[]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := withBlocks(string(text), blocks...)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o666)
}

// withBlocks replaces the text under each marker, up to the next empty line.
func withBlocks(text string, blocks ...[]string) (string, error) {
	lines := strings.Split(text, "\n")
	at := 0
	for i, block := range blocks {
		next := slices.Index(lines[at:], marker)
		if next < 0 {
			return "", fmt.Errorf("found %d lines %q, want %d", i, marker, len(blocks))
		}
		first := at + next + 1
		last := first
		for last < len(lines) && lines[last] != "" {
			last++
		}
		lines = slices.Replace(lines, first, last, block...)
		at = first + len(block)
	}
	return strings.Join(lines, "\n"), nil
}
