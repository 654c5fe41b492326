package main

import (
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What the shell offers when Tab is pressed. Where nothing is said here it
// offers files.

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// fixed offers some words.
func fixed(words ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFormats offers the formats, each with what it is.
func completeFormats(*cobra.Command, []string, string) (words []string, _ cobra.ShellCompDirective) {
	for _, f := range interop.Formats {
		words = append(words, cobra.CompletionWithDesc(f.Name, f.About))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func completeSchemes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return schemeNames(), cobra.ShellCompDirectiveNoFileComp
}

func formatNames() (names []string) {
	for _, f := range interop.Formats {
		names = append(names, f.Name)
	}
	return names
}

func schemeNames() (names []string) {
	for _, s := range bloom.Schemes() {
		names = append(names, s.Name())
	}
	return names
}

// dropQuotes takes the back-quotes out of what flags say of themselves: help makes
// the name of a value of them, and a shell shows them as they are.
func dropQuotes(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	}
}

func joined(names []string) string { return strings.Join(names, ", ") }
