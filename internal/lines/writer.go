package lines

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

// outputBytes is how much is written at once: what a pipe holds.
const outputBytes = 64 << 10

// A Writer writes the selected lines of jobs.
type Writer struct{ To *bufio.Writer }

func NewWriter(w io.Writer) *Writer {
	return &Writer{bufio.NewWriterSize(w, outputBytes)}
}

// Write writes the lines of a job whose answer is want. Consecutive lines are written
// as one piece. Nothing is held back: the next job may be long in coming.
func (w *Writer) Write(j *Job, want bool) error {
	piece, at := 0, 0
	for i, end := range j.Ends {
		if j.Answers[i] != want {
			if piece < at {
				if _, err := w.To.Write(j.Text[piece:at]); err != nil {
					return err
				}
			}
			piece = end
		}
		at = end
	}
	if _, err := w.To.Write(j.Text[piece:at]); err != nil {
		return err
	}
	return w.Flush()
}

func (w *Writer) Flush() error { return w.To.Flush() }

// RefuseLoop refuses to read the file to which the lines are written: each line would
// come back as input, forever.
func RefuseLoop(printing bool, stdout io.Writer, sources []*Source) error {
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
			return fmt.Errorf("%s: is the output as well as an input: write to another file", s.Name())
		}
	}
	return nil
}
