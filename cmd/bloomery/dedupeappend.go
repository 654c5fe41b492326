package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/internal/memory"
)

// The file of lines that dedupe --append reads first and appends to.

type appendedFile struct {
	path string
	file *os.File
	out  *lines.Writer
	size int64 // up to the last whole line
}

// openAppended opens the file of lines, locks it, and adds its lines, which then
// count as seen.
func (r *dedupeRun) openAppended(stdout io.Writer) error {
	path := r.command.appendTo
	if path == "" {
		return nil
	}
	if err := r.mayAppend(path, stdout); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return lines.FileError(path, err)
	}
	r.append = &appendedFile{path: path, file: file, out: lines.NewWriter(file)}
	if err := memory.LockFile(file); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%s: is in use by another process: wait for it to end", path)
	}
	packer, err := lines.ReadPacking(io.NewSectionReader(file, 0, lines.BlockBytes))
	if err != nil {
		return lines.FileError(path, err)
	}
	if packer != "" {
		return fmt.Errorf("%s: is compressed: lines can only be appended to a plain file", path)
	}
	if r.command.state == "" || r.seen.Report().Added == 0 { // otherwise the lines were remembered when they were written
		known, err := lines.FindOne(path, nil)
		if err != nil {
			return err
		}
		err = lines.NewAdding(r.seen, separator(r.command.null)).Each([]*lines.Source{known}, r.tell.Read, func(*lines.Job) error { return nil })
		var full fullError
		if errors.As(err, &full) {
			return fmt.Errorf("%s alone has more lines: %w; %s", path, full, r.seen.advice())
		}
		if err != nil {
			return err
		}
	}
	return r.append.endLine(separator(r.command.null))
}

// mayAppend refuses anything that is not a file of lines.
func (r *dedupeRun) mayAppend(path string, stdout io.Writer) error {
	if path == "-" {
		return usagef("--append names the file that remembers the lines; the new ones go to standard output anyway")
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return lines.FileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is not a regular file: lines are read from it first, and then appended", path)
	}
	if anyfile.BeginsAsOurs(path) {
		return fmt.Errorf("%s: is a filter: give it to --state, and a file of lines to --append", path)
	}
	if out, ok := stdout.(*os.File); ok {
		if to, err := out.Stat(); err == nil && os.SameFile(info, to) {
			return fmt.Errorf("%s: is also the output: the new lines would be in it twice", path)
		}
	}
	return nil
}

// endLine terminates the last line, if it is not.
func (a *appendedFile) endLine(separator byte) (err error) {
	if a.size, err = a.file.Seek(0, io.SeekEnd); err != nil || a.size == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := a.file.ReadAt(last, a.size-1); err != nil {
		return lines.FileError(a.path, err)
	}
	if last[0] != separator {
		if _, err := a.file.Write([]byte{separator}); err != nil {
			return lines.FileError(a.path, err)
		}
		a.size++
	}
	return nil
}

// write appends the new lines of a job: all of them, or none.
func (a *appendedFile) write(j *lines.Job) error {
	if err := a.out.Write(j, true); err != nil {
		a.file.Truncate(a.size) // a part of a line would be taken for a line
		return lines.FileError(a.path, err)
	}
	start := 0
	for i, end := range j.Ends {
		if j.Answers[i] {
			a.size += int64(end - start)
		}
		start = end
	}
	return nil
}
