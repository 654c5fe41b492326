package machine

import (
	"testing"
	"testing/fstest"
)

// The mounts of machines, named after what is mounted.
const (
	mountV2     = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	mountV1     = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
	mountV1CPU  = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
	mountHybrid = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	noLimitV1   = "9223372036854771712\n"
)

func TestGroupLimit(t *testing.T) {
	for _, tt := range []struct {
		name           string
		cgroup, mounts string
		files          map[string]string
		want           uint64
		from           string
	}{
		{name: "no control groups"},
		{
			name: "no limit", cgroup: "0::/user.slice\n", mounts: mountV2,
			files: map[string]string{"sys/fs/cgroup/user.slice/memory.max": "max\n", "sys/fs/cgroup/user.slice/memory.high": "max\n"},
		},
		{
			name: "v2 in a namespace", cgroup: "0::/\n", mounts: mountV2,
			files: map[string]string{"sys/fs/cgroup/memory.max": "419430400\n", "sys/fs/cgroup/memory.high": "max\n"},
			want:  400 << 20, from: "/sys/fs/cgroup/memory.max",
		},
		{
			name: "v2 under systemd without a namespace", cgroup: "0::/system.slice/bloomery.service\n", mounts: mountV2,
			files: map[string]string{"sys/fs/cgroup/system.slice/bloomery.service/memory.max": "1073741824\n", "sys/fs/cgroup/system.slice/memory.max": "max\n"},
			want:  1 << 30, from: "/sys/fs/cgroup/system.slice/bloomery.service/memory.max",
		},
		{
			name: "v2, high is less than max", cgroup: "0::/a\n", mounts: mountV2,
			files: map[string]string{"sys/fs/cgroup/a/memory.max": "1073741824\n", "sys/fs/cgroup/a/memory.high": "536870912\n"},
			want:  512 << 20, from: "/sys/fs/cgroup/a/memory.high",
		},
		{
			name: "v2, a group above has less", cgroup: "0::/a/b/c\n", mounts: mountV2,
			files: map[string]string{"sys/fs/cgroup/a/memory.max": "268435456\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/c/memory.max": "1073741824\n"},
			want:  256 << 20, from: "/sys/fs/cgroup/a/memory.max",
		},
		{
			name: "v2, only the container's part is mounted", cgroup: "0::/docker/abc\n",
			mounts: "29 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			files:  map[string]string{"sys/fs/cgroup/memory.max": "1000000000\n"},
			want:   1000000000, from: "/sys/fs/cgroup/memory.max",
		},
		{
			name: "v2, outside of the namespace", cgroup: "0::/../other\n", mounts: mountV2,
			files: map[string]string{"sys/fs/cgroup/memory.max": "1000000000\n"},
			want:  1000000000, from: "/sys/fs/cgroup/memory.max",
		},
		{
			name: "v2, another part is mounted", cgroup: "0::/docker/abcdef\n",
			mounts: "29 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			files:  map[string]string{"sys/fs/cgroup/memory.max": "1000000000\n"},
			want:   1000000000, from: "/sys/fs/cgroup/memory.max",
		},
		{
			name: "v2 at a path with a space", cgroup: "0::/a\n",
			mounts: `29 23 0:26 / /control\040groups rw - cgroup2 cgroup2 rw` + "\n",
			files:  map[string]string{"control groups/a/memory.max": "1000000000\n"},
			want:   1000000000, from: "/control groups/a/memory.max",
		},
		{
			name: "v1", cgroup: "5:cpu,cpuacct:/x\n4:memory:/jobs/one\n", mounts: mountV1CPU + mountV1,
			files: map[string]string{
				"sys/fs/cgroup/memory/memory.limit_in_bytes":          noLimitV1,
				"sys/fs/cgroup/memory/jobs/memory.limit_in_bytes":     "2147483648\n",
				"sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes": noLimitV1,
				"sys/fs/cgroup/cpu/x/memory.limit_in_bytes":           "4096\n",
			},
			want: 2 << 30, from: "/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes",
		},
		{
			name: "v1 without a limit", cgroup: "4:memory:/\n", mounts: mountV1,
			files: map[string]string{
				"sys/fs/cgroup/memory/memory.limit_in_bytes": noLimitV1,
				"sys/fs/cgroup/memory/memory.stat":           "cache 1\nhierarchical_memory_limit 9223372036854771712\n",
			},
		},
		{
			name: "v1 in a container, a group above has less", cgroup: "4:memory:/docker/abc\n",
			mounts: "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			files: map[string]string{
				"sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
				"sys/fs/cgroup/memory/memory.stat":           "cache 1\nhierarchical_memory_limit 1073741824\nhierarchical_memsw_limit 5\n",
			},
			want: 1 << 30, from: "/sys/fs/cgroup/memory/memory.stat",
		},
		{
			name: "hybrid: the memory is version 1's", cgroup: "4:memory:/jobs\n0::/elsewhere\n", mounts: mountV1 + mountHybrid,
			files: map[string]string{
				"sys/fs/cgroup/memory/jobs/memory.limit_in_bytes": "1073741824\n",
				"sys/fs/cgroup/unified/elsewhere/cgroup.procs":    "1\n",
			},
			want: 1 << 30, from: "/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes",
		},
		{
			name: "hybrid: the memory is version 2's", cgroup: "1:cpu,cpuacct:/x\n0::/jobs\n", mounts: mountV1CPU + mountHybrid,
			files: map[string]string{"sys/fs/cgroup/unified/jobs/memory.max": "1073741824\n"},
			want:  1 << 30, from: "/sys/fs/cgroup/unified/jobs/memory.max",
		},
		{
			name: "nonsense", cgroup: "4\n0::\n:::\n", mounts: "1 2 3\n - \n" + mountV2,
			files: map[string]string{"sys/fs/cgroup/memory.max": "-5\n", "sys/fs/cgroup/memory.high": "\n"},
		},
	} {
		root := fstest.MapFS{
			"proc/self/cgroup":    {Data: []byte(tt.cgroup)},
			"proc/self/mountinfo": {Data: []byte("22 1 254:0 / / rw - ext4 /dev/vda rw\n" + tt.mounts)},
		}
		for name, text := range tt.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if limit, from := groupLimit(root); limit != tt.want || from != tt.from {
			t.Errorf("%s: %d by %q, want %d by %q", tt.name, limit, from, tt.want, tt.from)
		}
	}
	if limit, from := groupLimit(fstest.MapFS{}); limit != 0 || from != "" {
		t.Errorf("an empty file system: %d by %q", limit, from)
	}
}

// TestUsable: there is memory, and at most what the machine has.
func TestUsable(t *testing.T) {
	total, from := Usable()
	if memory := Memory(); total > memory || memory > 0 && (total < 16<<20 || from == "") {
		t.Errorf("%d bytes by %q, on a machine with %d", total, from, memory)
	}
}
