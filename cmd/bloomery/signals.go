//go:build !wasm

package main

import "syscall"

const (
	hangup     = syscall.SIGHUP  // the session ends
	closedPipe = syscall.SIGPIPE // nobody reads what is written
)
