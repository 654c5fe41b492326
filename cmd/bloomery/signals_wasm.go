package main

import "syscall"

// WebAssembly has no such signals, nor names for them: these are Unix's numbers.
const (
	hangup     = syscall.Signal(1)
	closedPipe = syscall.Signal(13)
)
