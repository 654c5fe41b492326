package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/internal/replace"
)

// Filter files are replaced so that a path never holds half of one, whatever
// happens, including Ctrl-C, and so that no lines added by others are lost.

// The exit codes of signals: 128 plus the signal's number, as in a shell.
const (
	exitHangup      = 128 + 1
	exitInterrupted = 128 + 2
	exitTerminated  = 128 + 15
)

// beside is the temporary file that will replace another, if there is one.
var beside struct {
	sync.Mutex
	path string
}

// watching is the reporter whose progress bar may be on the terminal.
var watching atomic.Pointer[lines.Reporter]

// exitWhenInterrupted makes Ctrl-C, from the first call on, end the program and
// remove the temporary file. SIGHUP and SIGTERM do the same. Signals ignored at the
// start, as under nohup, stay ignored.
var exitWhenInterrupted = sync.OnceFunc(func() {
	codes := map[os.Signal]int{os.Interrupt: exitInterrupted, syscall.SIGTERM: exitTerminated, hangup: exitHangup}
	interrupts := make(chan os.Signal, len(codes))
	for sign := range codes {
		if !signal.Ignored(sign) {
			signal.Notify(interrupts, sign)
		}
	}
	go func() {
		came := <-interrupts
		beside.Lock() // and never unlocked: a rename is done, or not begun
		tidyUp()
		os.Exit(codes[came])
	}()
})

// tidyUp removes the temporary file and restores the terminal. The caller has
// locked beside.
func tidyUp() {
	if beside.path != "" {
		os.Remove(beside.path)
	}
	if tell := watching.Load(); tell != nil {
		tell.Finish()
	}
}

// replaceFile replaces the file at path with one that write fills. It locks an
// existing file, unless was is given: then the caller has the lock, and path must
// still be the file was, or the changes of another program would be lost.
func replaceFile(path string, was fs.FileInfo, write func(io.Writer) error) error {
	if was == nil {
		unlock, err := anyfile.Lock(path)
		if err != nil {
			return err
		}
		defer unlock()
	}
	exitWhenInterrupted()
	defer forgetBeside()
	_, err := replace.Do(&guardedPath{replace.At(path), path, was}, func(file *os.File) error {
		buffered := bufio.NewWriterSize(file, 1<<20)
		if err := write(buffered); err != nil {
			return err
		}
		return buffered.Flush()
	})
	switch {
	case errors.Is(err, replace.ErrNotRegular):
		return fmt.Errorf("%s: is %w: give the name of one", path, err)
	case err != nil:
		return lines.FileError(path, err)
	}
	return nil
}

// guardedPath is a path whose temporary file a signal removes, and whose file is
// replaced only if it is still the one that was read.
type guardedPath struct {
	*replace.Path
	path string
	was  fs.FileInfo // nil for any
}

func (p *guardedPath) Create() (*os.File, error) {
	beside.Lock()
	defer beside.Unlock()
	file, err := p.Path.Create()
	beside.path = p.Temporary()
	return file, err
}

func (p *guardedPath) Rename() error {
	if err := unchanged(p.path, p.was); err != nil {
		return err
	}
	beside.Lock()
	defer beside.Unlock()
	err := p.Path.Rename()
	beside.path = p.Temporary()
	return err
}

// forgetBeside is called when the temporary file is renamed or removed.
func forgetBeside() {
	beside.Lock()
	defer beside.Unlock()
	beside.path = ""
}

// unchanged returns an error if the file at path is no longer the one it was.
func unchanged(path string, was fs.FileInfo) error {
	if was == nil {
		return nil
	}
	now, err := os.Stat(path)
	if err != nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) || was.Size() != now.Size() {
		return errors.New("was changed by another program meanwhile, and is left as that program wrote it: run the command again")
	}
	return nil
}

// mayWrite refuses to overwrite a file without --force, and reports before the work
// what would fail after it.
func mayWrite(path string, force bool) error {
	if path == "" || path == "-" {
		return usagef("name the file to write: -o FILE")
	}
	_, err := os.Lstat(path)
	switch {
	case err == nil && !force:
		return fmt.Errorf("%s: already exists: choose another name, or use --force to replace it", path)
	case err == nil:
		unlock, err := anyfile.Lock(path)
		if err != nil {
			return err
		}
		unlock()
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return lines.FileError(path, err)
	}
	if directory := anyfile.MissingDirectory(path); directory != "" {
		return fmt.Errorf("%s: there is no directory %s: make it first", path, directory)
	}
	return nil
}

// save replaces the file that the filter was opened from, by OpenToSave, with the
// changed filter.
func save(f *anyfile.File) error { return replaceFile(f.Path, f.Info, f.Encode) }
