package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the CPU time of this thread, in nanoseconds. Time during which
// another program had the core does not count.
func threadTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		log.Fatal(err)
	}
	return t.Nano()
}

// writeHead writes the machine, the time, the command and the rivals' versions.
func writeHead(out io.Writer) {
	head := machineHead()
	fmt.Fprintf(out, "- CPU: %s\n- %s\n- %s\n- command: %s\n- rivals: %s\n\n", head["CPU"], head["Go"], head["date"], head["command"], head["rivals"])
}

// machineHead returns the lines of writeHead by name.
func machineHead() map[string]string {
	return map[string]string{
		"CPU":     fmt.Sprintf("%s, %d cores", cpuModel(), runtime.NumCPU()),
		"Go":      fmt.Sprintf("%s %s/%s; huge pages: %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, hugePages()),
		"date":    time.Now().Format("2006-01-02 15:04 MST"),
		"command": "go run . " + strings.Join(os.Args[1:], " "),
		"rivals":  strings.Join(versions(), ", "),
	}
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // without it the model is "unknown"
	var model, family, number string
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "model name":
			model = value
		case "cpu family":
			family = value
		case "model":
			number = value
		}
	}
	if model == "" {
		return "unknown"
	}
	return fmt.Sprintf("%s (family %s, model %s)", model, family, number)
}

// hugePages is the system's setting: the word in brackets.
func hugePages() string {
	text, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	_, rest, ok := strings.Cut(string(text), "[")
	setting, _, closed := strings.Cut(rest, "]")
	if !ok || !closed {
		return "unknown"
	}
	return setting
}

// versions lists the rivals' modules, as built into this program.
func versions() (list []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return []string{"unknown"}
	}
	for _, module := range info.Deps {
		for _, l := range libraries {
			if module.Path == "github.com/"+l.name {
				list = append(list, l.name+" "+module.Version)
			}
		}
		if module.Path == "github.com/"+linvonName {
			list = append(list, linvonName+" "+module.Version)
		}
	}
	return list
}
