package machine

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// groupLimit returns how many bytes of memory the control groups of this process allow,
// and the file with that limit; zero if there is no limit. It looks at both versions of
// control groups, because a system may have both, and at every group above the process's
// own, because their limits apply too. root is the file system from "/".
//
// A group is found as follows: /proc/self/cgroup has its path in the hierarchy, and
// /proc/self/mountinfo says which part of the hierarchy is mounted where. The path begins
// at the root of the namespace, usually the container's, otherwise the machine's. Under
// systemd the path is /system.slice/bloomery.service or similar, and the root group
// above it has no limit.
func groupLimit(root fs.FS) (limit uint64, from string) {
	for _, at := range controlGroups(root) {
		for dir := at.dir; ; dir = path.Dir(dir) {
			for _, file := range at.files {
				name := path.Join(dir, file)
				if n, ok := readLimit(root, name); ok && (limit == 0 || n < limit) {
					limit, from = n, name
				}
			}
			if dir == at.top || dir == "/" || dir == "." {
				break
			}
		}
	}
	return limit, from
}

// group is the directory of a control group of this process, the mount point above it,
// and the files there that contain limits.
type group struct {
	dir, top string
	files    []string
}

var (
	filesV1 = []string{"memory.limit_in_bytes", "memory.stat"}
	filesV2 = []string{"memory.max", "memory.high"}
)

// controlGroups returns the memory groups of this process. A group outside the mount, as
// in some containers, is replaced by the top of the mount.
func controlGroups(root fs.FS) (groups []group) {
	v1, v2 := groupPaths(root)
	eachLine(root, "proc/self/mountinfo", func(line string) {
		// 35 31 0:32 /in/the/hierarchy /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
		before, after, ok := strings.Cut(line, " - ")
		fields, about := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(about) < 3 {
			return
		}
		within, g := "", group{top: unescape(fields[4])}
		switch {
		case about[0] == "cgroup2":
			within, g.files = v2, filesV2
		case about[0] == "cgroup" && slices.Contains(strings.Split(about[2], ","), "memory"):
			within, g.files = v1, filesV1
		}
		if within == "" {
			return
		}
		g.dir = g.top
		mounted := unescape(fields[3])
		if below, ok := strings.CutPrefix(within, strings.TrimSuffix(mounted, "/")); ok && (below == "" || below[0] == '/') && !strings.HasPrefix(below, "/..") {
			g.dir = path.Join(g.top, below)
		}
		groups = append(groups, g)
	})
	return groups
}

// groupPaths returns the paths of the process's memory groups in the hierarchies of both
// versions, "" if it has none.
func groupPaths(root fs.FS) (v1, v2 string) {
	eachLine(root, "proc/self/cgroup", func(line string) {
		// 4:memory:/path of version 1, 0::/path of version 2
		fields := strings.SplitN(line, ":", 3)
		switch {
		case len(fields) != 3:
		case fields[0] == "0" && fields[1] == "":
			v2 = fields[2]
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			v1 = fields[2]
		}
	})
	return v1, v2
}

// readLimit reads a limit from a file. ok is false if there is none.
func readLimit(root fs.FS, name string) (limit uint64, ok bool) {
	text, err := fs.ReadFile(root, strings.TrimPrefix(name, "/"))
	if err != nil {
		return 0, false
	}
	word := strings.TrimSpace(string(text))
	if path.Base(name) == "memory.stat" {
		// This line has the lowest limit of all groups above, including those that a
		// container cannot see.
		_, word, _ = strings.Cut("\n"+word, "\nhierarchical_memory_limit ")
		word, _, _ = strings.Cut(word, "\n")
	}
	limit, err = strconv.ParseUint(word, 10, 64) // "max" is not a number
	const none = 1 << 62                         // version 1 has 2^63 minus a page
	return limit, err == nil && limit > 0 && limit < none
}

func eachLine(root fs.FS, name string, do func(line string)) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		do(lines.Text())
	}
}

// unescape undoes the escapes of mountinfo, such as \040 for a space.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
