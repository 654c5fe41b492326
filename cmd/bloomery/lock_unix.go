//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile keeps others that lock it away from a file, until it is closed.
func lockFile(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
