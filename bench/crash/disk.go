package main

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A disk is a directory whose power can be cut: a FUSE file system in this process's
// memory that distinguishes what was synced from what was only written. It promises
// no more than POSIX does:
//
//   - fsync of a file makes its bytes durable, but not its name;
//   - fsync of the directory makes the names durable.
//
// After a power cut, each 512-byte sector that was not synced survives or not, at
// random. Of the changes to names that were not synced, a random number survive, in
// order.
type disk struct {
	mu      sync.Mutex
	rng     *rand.Rand
	names   map[string]*content // as the server sees them
	durable map[string]*content // as of the last fsync of the directory
	renamed []func(map[string]*content)
	off     time.Time // when the power was cut

	fault   *fault
	faulted time.Time // when the fault happened

	syncs, torn int
}

// A content is the content of a file.
type content struct {
	ino      uint64
	bytes    []byte
	durable  []byte
	unsynced []extent
}

// An extent is a range of bytes.
type extent struct{ from, to int }

// A fault describes which call fails, and how. A sync fails once. Writes keep
// failing, because the kernel reports the failure of one as a short write.
type fault struct {
	call string // write, fsync (of the log) or fsyncdir
	skip int    // how many of these calls succeed first
	err  syscall.Errno
	part bool // part of the write is done
}

const (
	sector   = 512
	syncTime = time.Millisecond // how long an fsync takes
)

// lastIno is the inode number of the newest file on any disk.
var lastIno atomic.Uint64

func newDisk(rng *rand.Rand) *disk {
	return &disk{rng: rng, names: map[string]*content{}, durable: map[string]*content{}}
}

// mount mounts the disk at a directory. It returns a function that unmounts it.
func (d *disk) mount(at string) (unmount func() error, err error) {
	if err := os.MkdirAll(at, 0o700); err != nil {
		return nil, err
	}
	server, err := fs.Mount(at, &directory{disk: d}, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "bloomery-power", Name: "power"},
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		err := errors.New("never tried")
		for range 100 {
			if err = server.Unmount(); err == nil {
				return nil
			}
			time.Sleep(20 * time.Millisecond) // the server's files are still being closed
		}
		return errors.Join(err, syscall.Unmount(at, syscall.MNT_DETACH))
	}, nil
}

// cut cuts the power: from now on nothing becomes durable.
func (d *disk) cut() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off.IsZero() {
		d.off = time.Now()
	}
	return d.off
}

// restored returns the disk as it is when the power comes back.
func (d *disk) restored() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := newDisk(d.rng)
	names := maps.Clone(d.durable)
	keep := d.rng.IntN(len(d.renamed) + 1)
	for _, change := range d.renamed[:keep] {
		change(names)
	}
	for name, c := range names {
		survived := d.survived(c)
		next.names[name] = &content{ino: c.ino, bytes: survived, durable: append([]byte(nil), survived...)}
	}
	next.durable = maps.Clone(next.names)
	return next
}

// survived returns what a power cut leaves of a file.
func (d *disk) survived(c *content) []byte {
	b := append([]byte(nil), c.durable...)
	whole, none := d.rng.IntN(4) == 0, d.rng.IntN(4) == 0
	for _, e := range c.unsynced {
		if none {
			break
		}
		for from := e.from; from < e.to; {
			to := min((from/sector+1)*sector, e.to, len(c.bytes))
			if to <= from {
				break
			}
			if whole || d.rng.IntN(2) == 0 {
				b = grown(b, to)
				copy(b[from:to], c.bytes[from:to])
			} else {
				d.torn++
			}
			from = to
		}
	}
	return b
}

func grown(b []byte, size int) []byte {
	if len(b) < size {
		b = append(b, make([]byte, size-len(b))...)
	}
	return b
}

// isLog reports whether a file belongs to the log.
func (d *disk) isLog(c *content) bool {
	for name, other := range d.names {
		if other == c {
			return strings.HasPrefix(name, "log-") && !strings.HasSuffix(name, ".new")
		}
	}
	return false
}

// fails reports whether this call must fail.
func (d *disk) fails(call string) (syscall.Errno, bool) {
	if !d.off.IsZero() {
		return syscall.EIO, true
	}
	f := d.fault
	if f == nil || f.call != call {
		return 0, false
	}
	if f.skip--; f.skip >= 0 {
		return 0, false
	}
	if d.faulted.IsZero() {
		d.faulted = time.Now()
	}
	if call != "write" { // a sync that is retried succeeds, but its data is lost
		d.fault = nil
	}
	return f.err, true
}

// directory is the root, and the only directory.
type directory struct {
	fs.Inode
	*disk
}

var (
	_ fs.NodeLookuper  = (*directory)(nil)
	_ fs.NodeCreater   = (*directory)(nil)
	_ fs.NodeUnlinker  = (*directory)(nil)
	_ fs.NodeRenamer   = (*directory)(nil)
	_ fs.NodeReaddirer = (*directory)(nil)
	_ fs.NodeFsyncer   = (*directory)(nil)
	_ fs.NodeGetattrer = (*directory)(nil)
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeGetattrer = (*file)(nil)
	_ fs.NodeSetattrer = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
	_ fs.NodeWriter    = (*file)(nil)
	_ fs.NodeFsyncer   = (*file)(nil)
)
