package main

import (
	"fmt"
	"io"
)

// A table prints rows of a label and a value.
type table struct {
	to  io.Writer
	err error
}

func (t *table) row(label, format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.to, "%-18s "+format+"\n", append([]any{label}, args...)...)
	}
}
