//go:build unix

// Peak runs a command and appends one line to a file: wall-clock seconds, CPU
// seconds, and peak memory in KiB, as counted by the kernel (wait4, ru_maxrss).
// /usr/bin/time does the same where it is installed.
//
//	peak FILE COMMAND [ARG...]
//
// The command inherits peak's three streams. The child is a clone of peak until it
// executes the command, so the reported memory is at least peak's own few MiB.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: peak FILE COMMAND [ARG...]")
		os.Exit(2)
	}
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(2)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	memory := usage.Maxrss
	if runtime.GOOS == "darwin" {
		memory /= 1024 // macOS counts bytes
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err := note(os.Args[1], fmt.Sprintf("%.3f %.3f %d\n", wall.Seconds(), cpu.Seconds(), memory)); err != nil {
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(2)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

func note(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(line); err != nil {
		return err
	}
	return file.Close()
}
