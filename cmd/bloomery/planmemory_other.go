//go:build !linux

package main

func availableMemory() uint64 { return 0 }
func memoryCeiling() uint64   { return 0 }
