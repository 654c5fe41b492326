//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A group is a memory control group, of version 1 or 2, at the top of the mounted
// hierarchy: version 2 allows none below a group that contains processes.
type group struct {
	dir     string
	version int
}

// newGroup creates a group limited to the given number of bytes, without swap.
func newGroup(name string, limitBytes uint64) (*group, error) {
	top, version, err := groupMount()
	if err != nil {
		return nil, err
	}
	g := &group{filepath.Join(top, "bloomery-soak-"+strconv.Itoa(os.Getpid())+"-"+name), version}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create a control group: run as root, where %s is writable: %w", top, err)
	}
	limit, swap, none := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", strconv.FormatUint(limitBytes, 10)
	if version == 2 {
		limit, swap, none = "memory.max", "memory.swap.max", "0"
	}
	if err := g.write(limit, strconv.FormatUint(limitBytes, 10)); err != nil {
		os.Remove(g.dir)
		return nil, fmt.Errorf("cannot limit the group (in version 2, the parent needs +memory in cgroup.subtree_control): %w", err)
	}
	g.write(swap, none) // the file is missing if the system does not count swap
	return g, nil
}

// groupMount finds where memory control groups are mounted.
func groupMount() (top string, version int, err error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", 0, err
	}
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		fields, about := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(about) < 3 {
			continue
		}
		switch {
		case about[0] == "cgroup" && strings.Contains(","+about[2]+",", ",memory,"):
			return fields[4], 1, nil
		case about[0] == "cgroup2":
			controllers, err := os.ReadFile(filepath.Join(fields[4], "cgroup.controllers"))
			if err == nil && strings.Contains(" "+strings.TrimSpace(string(controllers))+" ", " memory ") {
				top, version = fields[4], 2
			}
		}
	}
	if version == 0 {
		return "", 0, fmt.Errorf("no memory control groups are mounted here, of version 1 or 2")
	}
	return top, version, nil
}

func (g *group) write(file, text string) error {
	return os.WriteFile(filepath.Join(g.dir, file), []byte(text), 0o644)
}

// processes is the file to which the id of a joining process is written.
func (g *group) processes() string { return filepath.Join(g.dir, "cgroup.procs") }

// usage is the group's memory in bytes, including the kernel's on its behalf.
func (g *group) usage() uint64 {
	file := "memory.usage_in_bytes"
	if g.version == 2 {
		file = "memory.current"
	}
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n
}

// remove removes the group. Its processes have exited.
func (g *group) remove() error {
	var err error
	for range 50 {
		if err = os.Remove(g.dir); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond) // the kernel is still cleaning up
	}
	return err
}
