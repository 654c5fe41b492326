package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/bloomery/bloom/internal/lines"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newCompletion is `bloomery completion`.
func newCompletion() *cobra.Command {
	shells := map[string]func(*cobra.Command) error{
		"bash":       func(cmd *cobra.Command) error { return cmd.Root().GenBashCompletionV2(cmd.OutOrStdout(), true) },
		"zsh":        func(cmd *cobra.Command) error { return cmd.Root().GenZshCompletion(cmd.OutOrStdout()) },
		"fish":       func(cmd *cobra.Command) error { return cmd.Root().GenFishCompletion(cmd.OutOrStdout(), true) },
		"powershell": func(cmd *cobra.Command) error { return cmd.Root().GenPowerShellCompletionWithDesc(cmd.OutOrStdout()) },
	}
	names := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print what a shell needs to complete commands at Tab",
		Long: `Completion prints a script for a shell. With it, Tab completes commands, flags,
formats, schemes and file names.`,
		Example: `  bloomery completion bash > ~/.local/share/bash-completion/completions/bloomery
  bloomery completion zsh > "${fpath[1]}/_bloomery"
  bloomery completion fish > ~/.config/fish/completions/bloomery.fish
  bloomery completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return usagef("name the shell: one of %s", joined(names))
			}
			return shells[args[0]](cmd)
		},
		DisableFlagsInUseLine: true,
	}
}

// keepTables makes Markdown keep the indented lines of a help text as they are,
// which it would run together: a blank line before them, and four spaces or more.
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
		Long: `Man writes a manual page for each command into the directory DIR, which it makes
if need be. What is there under those names is replaced.`,
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
