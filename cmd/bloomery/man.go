package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/bloomery/bloom/internal/lines"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// keepTables keeps Markdown from joining the indented lines of a help text: it puts
// a blank line before them and indents them by four spaces or more.
func keepTables(help string) string {
	var kept []string
	table := false
	for line := range strings.SplitSeq(help, "\n") {
		was := table
		if table = strings.HasPrefix(line, "  "); table {
			line = "  " + line
		}
		if table != was && line != "" && len(kept) > 0 && kept[len(kept)-1] != "" {
			kept = append(kept, "")
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

// newMan is `bloomery man`.
func newMan() *cobra.Command {
	var directory string
	cmd := &cobra.Command{
		Use:   "man -o DIR",
		Short: "Write the manual pages",
		Long: `Man writes a manual page for each command into the directory DIR, which is created
if missing. Existing pages are replaced.`,
		Example: `  bloomery man -o ~/.local/share/man/man1
  bloomery man -o /tmp/man1 && man -l /tmp/man1/bloomery-check.1`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if directory == "" {
				return usagef("name the directory: bloomery man -o ~/.local/share/man/man1")
			}
			if err := os.MkdirAll(directory, 0o777); err != nil {
				return lines.FileError(directory, err)
			}
			header := &doc.GenManHeader{Section: "1", Source: "bloomery " + readVersion().Version, Manual: "Bloomery"}
			cmd.Root().DisableAutoGenTag = true
			for _, page := range cmd.Root().Commands() {
				page.Long = keepTables(page.Long)
			}
			if err := doc.GenManTree(cmd.Root(), header, directory); err != nil {
				return fmt.Errorf("%s: %w", directory, err)
			}
			return nil
		},
		DisableFlagsInUseLine: true,
	}
	cmd.Flags().StringVarP(&directory, "output", "o", "", "the `DIR`ectory to write to")
	cmd.MarkFlagDirname("output")
	return cmd
}
