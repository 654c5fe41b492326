package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

// outputBytes is how much is written at once: as much as a pipe takes.
const outputBytes = 64 << 10

// A lineWriter writes the selected lines of jobs.
type lineWriter struct{ to *bufio.Writer }

func newLineWriter(w io.Writer) *lineWriter {
	return &lineWriter{bufio.NewWriterSize(w, outputBytes)}
}

// write writes the lines of a job whose answer is want. Lines that follow each
// other are written as one piece. Nothing is held back: the next job may be long
// in coming.
func (w *lineWriter) write(j *job, want bool) error {
	piece, at := 0, 0
	for i, end := range j.ends {
		if j.answers[i] != want {
			if piece < at {
				if _, err := w.to.Write(j.text[piece:at]); err != nil {
					return err
				}
			}
			piece = end
		}
		at = end
	}
	if _, err := w.to.Write(j.text[piece:at]); err != nil {
		return err
	}
	return w.flush()
}

func (w *lineWriter) flush() error { return w.to.Flush() }

// refuseLoop refuses to read the file that the lines are written to: each line
// would come back as input for ever.
func refuseLoop(printing bool, stdout io.Writer, sources []*source) error {
	file, ok := stdout.(*os.File)
	if !printing || !ok {
		return nil
	}
	out, err := file.Stat()
	if err != nil || !out.Mode().IsRegular() {
		return nil
	}
	for _, s := range sources {
		if s.info != nil && os.SameFile(s.info, out) {
			return fmt.Errorf("%s: is the output as well as an input: write to another file", s.name())
		}
	}
	return nil
}
