//go:build !linux

package main

func availableMemory() uint64 { return 0 }
