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
)

// Writing a filter file so that its path never holds half of one, whatever
// happens, Ctrl-C among it.

const exitInterrupted = 130 // 128 and the number of SIGINT, as in a shell

// beside is the unfinished file that is to replace another, if there is one.
var beside struct {
	sync.Mutex
	path string
}

// exitWhenInterrupted makes Ctrl-C, from the first call on, end the program and
// leave no half file. Who was told to ignore it, as by nohup, goes on ignoring it.
var exitWhenInterrupted = sync.OnceFunc(func() {
	if signal.Ignored(os.Interrupt) {
		return
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	go func() {
		<-interrupts
		beside.Lock() // and never unlocked: a rename is done, or not begun
		if beside.path != "" {
			os.Remove(beside.path)
		}
		os.Exit(exitInterrupted)
	}()
})

// replaceFile lets write fill a file beside path, and puts it in path's place.
// If was is not nil, path must still be that file: who changed it meanwhile
// would lose what was changed.
func replaceFile(path string, was fs.FileInfo, write func(io.Writer) error) error {
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

// mayWrite refuses to overwrite a file that was not meant to be.
func mayWrite(path string, force bool) error {
	if path == "" || path == "-" {
		return usagef("name the file to write: -o FILE")
	}
	if force {
		return nil
	}
	_, err := os.Lstat(path)
	if err == nil {
		return fmt.Errorf("%s: is there already: give another name, or --force to replace it", path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return inputError(path, err)
}
