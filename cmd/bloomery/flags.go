package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags that several commands share, and what they mean.

func addNull(cmd *cobra.Command, null *bool) {
	cmd.Flags().BoolVarP(null, "null", "0", false, "lines end with a NUL byte instead of a newline")
}

func addJSON(cmd *cobra.Command, asJSON *bool, what string) {
	cmd.Flags().BoolVar(asJSON, "json", false, what)
}

// addBudget adds --budget. beyond says what happens where the filter needs more.
func addBudget(cmd *cobra.Command, budget *human.SizeFlag, beyond string) {
	cmd.Flags().Var(budget, "budget", "the most memory the filter may take, like 2GiB; "+beyond)
}

func addSecret(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "secret", "", "hash with the secret in `FILE`: 16 bytes, 32 hexadecimal digits, or a server's file DIR/secrets")
}

func addNormalize(cmd *cobra.Command, forms *string) {
	cmd.Flags().StringVar(forms, "normalize", "", "bring lines into a normal `FORM` first: url, lower, upper, trim or hex")
	cmd.RegisterFlagCompletionFunc("normalize", fixed("url", "lower", "upper", "trim", "hex"))
}

func addOutput(cmd *cobra.Command, path *string, force *bool) {
	cmd.Flags().StringVarP(path, "output", "o", "", "the filter `FILE` to write")
	cmd.Flags().BoolVar(force, "force", false, "replace the file if it is there")
}

func separator(null bool) byte {
	if null {
		return 0
	}
	return '\n'
}

// refuseEmpty refuses an argument or a flag's value that is empty. It is most
// likely a variable that is not set, and would switch off without a word what it
// was given for: --secret a secret, --state a memory, --members a check.
func refuseEmpty(cmd *cobra.Command, args []string) (err error) {
	if strings.HasPrefix(cmd.Name(), "__") { // the shell asks what may follow
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

// idle refuses flags that were given and have no effect here, for the reason why.
func idle(cmd *cobra.Command, why string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usagef("--%s has no effect: %s: leave it out", name, why)
		}
	}
	return nil
}

// serverSecret stands before the digits in a server's file.
const serverSecret = "siphash-2-4 "

// readSecret reads a secret: 16 raw bytes, 32 hexadecimal digits, or the secrets
// file of a server's data directory. No path means no secret.
func readSecret(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, lines.FileError(path, err)
	}
	if len(b) == bloom.SecretBytes {
		return b, nil
	}
	digits := strings.TrimSpace(string(b))
	digits = strings.TrimPrefix(digits, serverSecret)
	secret, err := hex.DecodeString(digits)
	if err != nil || len(secret) != bloom.SecretBytes {
		return nil, fmt.Errorf("%s: a secret is %d bytes or %d hexadecimal digits: make one with 'head -c %d /dev/urandom > FILE'",
			path, bloom.SecretBytes, 2*bloom.SecretBytes, bloom.SecretBytes)
	}
	return secret, nil
}

// printJSON prints one object on a line of its own.
func printJSON(w io.Writer, object any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(object)
}
