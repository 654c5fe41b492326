//go:build !linux

package main

import "os"

func machineMemory() uint64 { return 0 }

func widen(*os.File) {}
