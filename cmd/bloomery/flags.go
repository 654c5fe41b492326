package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The flags that several commands share.

func addNull(cmd *cobra.Command, null *bool) {
	cmd.Flags().BoolVarP(null, "null", "0", false, "lines end with a NUL byte instead of a newline")
}

func addJSON(cmd *cobra.Command, asJSON *bool, what string) {
	cmd.Flags().BoolVar(asJSON, "json", false, what)
}

// addBudget adds --budget. beyond says what happens if the filter needs more.
func addBudget(cmd *cobra.Command, budget *human.SizeFlag, beyond string) {
	cmd.Flags().Var(budget, "budget", "the most memory the filter may take, like 2GiB; "+beyond)
}

func addSecret(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "secret", "", "hash with the secret in `FILE`: 16 bytes, 32 hexadecimal digits, or a server's file DIR/secrets")
}

func addNormalize(cmd *cobra.Command, forms *string) {
	cmd.Flags().StringVar(forms, "normalize", "", "convert lines to a normal `FORM` first: url, lower, upper, trim or hex")
	cmd.RegisterFlagCompletionFunc("normalize", fixed("url", "lower", "upper", "trim", "hex"))
}

func addOutput(cmd *cobra.Command, path *string, force *bool) {
	cmd.Flags().StringVarP(path, "output", "o", "", "the filter `FILE` to write")
	cmd.Flags().BoolVar(force, "force", false, "replace the file if it exists")
}

func separator(null bool) byte {
	if null {
		return 0
	}
	return '\n'
}

// refuseEmpty refuses an empty argument or flag value. It is most likely a variable
// that is not set, and would silently switch off what the flag is for: --secret a
// secret, --state a memory, --members a check.
func refuseEmpty(cmd *cobra.Command, args []string) (err error) {
	if strings.HasPrefix(cmd.Name(), "__") { // the shell asks for completions
		return nil
	}
	if slices.Contains(args, "") {
		return usagef("an argument is empty: is it a variable that is not set?")
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		empty := f.Value.Type() == "string" && f.Value.String() == "" // numbers refuse "" themselves
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values := list.GetSlice()
			empty = len(values) == 0 || slices.Contains(values, "")
		}
		if err == nil && empty {
			err = usagef("--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}

// idle refuses flags that were given but have no effect, for the reason why.
func idle(cmd *cobra.Command, why string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usagef("--%s has no effect: %s: leave it out", name, why)
		}
	}
	return nil
}

// printJSON prints one object on a line of its own.
func printJSON(w io.Writer, object any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(object)
}

func addFormat(cmd *cobra.Command, f *anyfile.Options) {
	flags := cmd.Flags()
	flags.StringVar(&f.Format, "format", "", "the `FORMAT` of another program's filters, if it cannot be detected; see 'bloomery convert --list'")
	flags.StringVar(&f.Scheme, "scheme", "", "for raw-bit formats: the `SCHEME` that maps keys to bit positions")
	flags.Var(&f.Bits, "bits", "for raw-bit formats: m")
	flags.Var(&f.Probes, "probes", "for raw-bit formats: `K`, the bits that a key sets")
	cmd.RegisterFlagCompletionFunc("format", completeFormats)
	cmd.RegisterFlagCompletionFunc("scheme", completeSchemes)
}

// addFunnel is for commands that read keys.
func addFunnel(cmd *cobra.Command, f *anyfile.Options) {
	cmd.Flags().StringVar(&f.Funnel, "funnel", "", "the `FUNNEL` that made Guava's keys: "+joined(anyfile.FunnelNames()))
	cmd.RegisterFlagCompletionFunc("funnel", fixed(anyfile.FunnelNames()...))
}

// normalizeHelp explains --normalize.
const normalizeHelp = `
--normalize converts each line to a normal form before it is hashed. The filter's
metadata records the form, so that later commands apply it by themselves:

    lower  A to Z become a to z
    upper  a to z become A to Z
    trim   spaces, tabs, carriage returns and the like are removed at both
           ends
    hex    hexadecimal digits become lower case, without 0x before them and
           without blanks, colons and hyphens between; other lines are kept
    url    RFC 3986, sections 6.2.2 and 6.2.3: scheme and host in lower case,
           no default port (http, https, ftp, ws, wss), no empty port, no
           fragment, percent-encoding in upper case and only where it is
           needed, no dot segments, "/" for an empty path; lines without
           scheme:// are kept

Several forms are applied in the order given: --normalize trim,url.`
