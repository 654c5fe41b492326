//go:build !wasm

package main

import "syscall"

const (
	hangup     = syscall.SIGHUP  // the end of the session
	closedPipe = syscall.SIGPIPE // nobody reads what is written
)
