package human

import (
	"fmt"
	"io"
)

// A Table prints rows of a label and a value.
type Table struct {
	To  io.Writer
	Err error
}

func (t *Table) Row(label, format string, args ...any) {
	if t.Err == nil {
		_, t.Err = fmt.Fprintf(t.To, "%-18s "+format+"\n", append([]any{label}, args...)...)
	}
}
