package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/bloomery/bloom"
)

// Writing a filter file so that its path never holds half of one, whatever
// happens, Ctrl-C among it, and nobody's lines are lost.

// The exit codes of signals: 128 and the signal's number, as in a shell.
const (
	exitHangup      = 128 + 1
	exitInterrupted = 128 + 2
	exitTerminated  = 128 + 15
)

// beside is the unfinished file that is to replace another, if there is one.
var beside struct {
	sync.Mutex
	path string
}

// watching is the teller whose progress bar may be on the terminal.
var watching atomic.Pointer[teller]

// exitWhenInterrupted makes Ctrl-C, from the first call on, end the program and
// leave no half file; so does the end of the session, or of the system. Who was
// told to ignore one of them, as by nohup, goes on ignoring it.
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

// tidyUp leaves no half file, and the terminal as it was. The caller has locked
// beside.
func tidyUp() {
	if beside.path != "" {
		os.Remove(beside.path)
	}
	if tell := watching.Load(); tell != nil {
		tell.finish()
	}
}

// lockFilter keeps others from changing the filter file at path in place, as
// 'dedupe --state' does, until unlock: their lines would be lost with the file
// that is replaced. Where there is no file, or no such lock, nobody can.
func lockFilter(path string) (unlock func(), err error) {
	unlock, err = bloom.Lock(path)
	if errors.Is(err, bloom.ErrLocked) {
		return nil, fmt.Errorf("%s: is in use by another process: wait for it to end", path)
	}
	if err != nil {
		return func() {}, nil
	}
	return unlock, nil
}

// replaceFile lets write fill a file beside path, and puts it in path's place. It
// takes the lock of a file that is there, unless was is given: then the caller has
// it, and path must still be that file: who changed it meanwhile would lose what
// was changed.
func replaceFile(path string, was fs.FileInfo, write func(io.Writer) error) error {
	if was == nil {
		unlock, err := lockFilter(path)
		if err != nil {
			return err
		}
		defer unlock()
	}
	exitWhenInterrupted()
	file, err := createBeside(path)
	if err != nil {
		return err
	}
	name := file.Name()
	finished := false
	defer func() {
		if !finished {
			file.Close()
			os.Remove(name)
		}
		beside.Lock()
		beside.path = ""
		beside.Unlock()
	}()
	buffered := bufio.NewWriterSize(file, 1<<20)
	for _, step := range []func() error{
		func() error { return write(buffered) },
		buffered.Flush,
		file.Sync,
		file.Close,
		func() error { return unchanged(path, was) },
		func() error {
			beside.Lock()
			defer beside.Unlock()
			beside.path = ""
			return os.Rename(name, path)
		},
	} {
		if err := step(); err != nil {
			return inputError(path, err)
		}
	}
	finished = true
	return syncDirectory(filepath.Dir(path))
}

// createBeside creates a file in path's directory, with the permissions of the
// file that it is to replace, or those of any new file.
func createBeside(path string) (*os.File, error) {
	mode := fs.FileMode(0o666)
	old, err := os.Lstat(path)
	replaces := err == nil && old.Mode().IsRegular()
	switch {
	case replaces:
		mode = old.Mode().Perm()
	case err == nil && old.Mode().Type() != fs.ModeSymlink:
		return nil, fmt.Errorf("%s: is not a regular file: give the name of one", path)
	}
	beside.Lock()
	defer beside.Unlock()
	for {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%08x", filepath.Base(path), rand.Uint32()))
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, inputError(path, err)
		}
		beside.path = name
		if replaces { // the umask may have taken some of mode away
			err = file.Chmod(mode)
		}
		if err != nil {
			file.Close()
			os.Remove(name)
			return nil, inputError(path, err)
		}
		return file, nil
	}
}

// unchanged refuses a file that is not what it was.
func unchanged(path string, was fs.FileInfo) error {
	if was == nil {
		return nil
	}
	now, err := os.Stat(path)
	if err != nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) || was.Size() != now.Size() {
		return errors.New("was changed by another program meanwhile, and stays as that left it: run the command again")
	}
	return nil
}

// syncDirectory makes the names in a directory durable.
func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return inputError(path, err)
	}
	defer directory.Close()
	if err := directory.Sync(); err != nil && runtime.GOOS != "windows" { // where directories have no sync
		return inputError(path, err)
	}
	return nil
}

// mayWrite refuses to overwrite a file that was not meant to be, and before the
// work what would go wrong after it.
func mayWrite(path string, force bool) error {
	if path == "" || path == "-" {
		return usagef("name the file to write: -o FILE")
	}
	_, err := os.Lstat(path)
	switch {
	case err == nil && !force:
		return fmt.Errorf("%s: is there already: give another name, or --force to replace it", path)
	case err == nil:
		unlock, err := lockFilter(path)
		if err != nil {
			return err
		}
		unlock()
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return inputError(path, err)
	}
	if directory := missingDirectory(path); directory != "" {
		return fmt.Errorf("%s: there is no directory %s: make it first", path, directory)
	}
	return nil
}

// missingDirectory is the directory that a file is to be in, if that is not there.
func missingDirectory(path string) string {
	directory := filepath.Dir(path)
	if _, err := os.Stat(directory); errors.Is(err, fs.ErrNotExist) {
		return directory
	}
	return ""
}
