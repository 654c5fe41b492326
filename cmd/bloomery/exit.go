package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/spf13/cobra"
)

// Exit codes, after grep's.
const (
	exitDone     = 0 // something was selected or done
	exitNothing  = 1 // nothing was selected
	exitError    = 2
	exitOverfull = 3 // done, but with --strict and a filter past its rate
)

// exitStatus ends a command with this code and no message.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// isStatus reports whether err is an intended exit status, not a failure.
func isStatus(err error) bool {
	var status exitStatus
	return errors.As(err, &status)
}

// selected is the exit status of a command that selects lines.
func selected(lines uint64) error {
	if lines == 0 {
		return exitStatus(exitNothing)
	}
	return nil
}

// usagef returns an error in how the command was called.
func usagef(format string, args ...any) error { return anyfile.Usagef(format, args...) }

// execute runs the command that the arguments name and returns the exit code.
func execute(root *cobra.Command) int {
	called, err := root.ExecuteC()
	if err != nil {
		err = plainUsage(err)
	}
	var status exitStatus
	var usage anyfile.UsageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, syscall.EPIPE):
		return exitDone // the reader of our output has enough; only selected lines are written
	}
	stderr := root.ErrOrStderr()
	complain(stderr, err)
	if errors.As(err, &usage) || called == root { // cobra's own: an unknown command
		complain(stderr, fmt.Errorf("see '%s --help'", called.CommandPath()))
	}
	return exitError
}

// inFlags names flags where the library's error names fields of its configs.
func inFlags(err error, bits string) error {
	if err == nil {
		return nil
	}
	text := human.TrimPrefixes(err.Error())
	text = strings.NewReplacer("Config.Folds", "--folds", "Keys, Rate and Bits", "-n, -p and "+bits, "Keys", "-n", "Rate", "-p", "Bits", bits, "Probes", "the number of probes", "BucketSize", "--bucket-size", "Iterations", "--iterations", "Growth", "--expansion").Replace(text)
	return flagsError{text, err}
}

// flagsError is an error with another text.
type flagsError struct {
	text string
	error
}

func (e flagsError) Error() string { return e.text }
func (e flagsError) Unwrap() error { return e.error }

// complain prints an error.
func complain(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "bloomery: %s\n", human.Error(err.Error()))
}
