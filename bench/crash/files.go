package main

import (
	"context"
	"maps"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// This file implements the calls that the kernel makes.

// file is a file of the directory.
type file struct {
	fs.Inode
	disk *disk
	*content
}

func (d *directory) node(ctx context.Context, c *content) *fs.Inode {
	return d.NewInode(ctx, &file{disk: d.disk, content: c}, fs.StableAttr{Mode: syscall.S_IFREG, Ino: c.ino})
}

func (d *directory) Getattr(ctx context.Context, f fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode = syscall.S_IFDIR | 0o700
	return 0
}

func (d *directory) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.names[name]
	if c == nil {
		return nil, syscall.ENOENT
	}
	c.attributes(&out.Attr)
	return d.node(ctx, c), 0
}

// change changes the names, not durably yet. The disk is locked.
func (d *directory) change(do func(names map[string]*content)) {
	do(d.names)
	d.renamed = append(d.renamed, do)
}

func (d *directory) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err, bad := d.fails("create"); bad {
		return nil, nil, 0, err
	}
	c := d.names[name]
	if c == nil {
		c = &content{ino: 1 + lastIno.Add(1)}
		d.change(func(names map[string]*content) { names[name] = c })
	}
	c.attributes(&out.Attr)
	return d.node(ctx, c), nil, 0, 0
}

func (d *directory) Unlink(ctx context.Context, name string) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err, bad := d.fails("unlink"); bad {
		return err
	}
	d.change(func(names map[string]*content) { delete(names, name) })
	return 0
}

func (d *directory) Rename(ctx context.Context, from string, parent fs.InodeEmbedder, to string, flags uint32) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err, bad := d.fails("rename"); bad {
		return err
	}
	d.change(func(names map[string]*content) {
		if c := names[from]; c != nil {
			names[to] = c
			delete(names, from)
		}
	})
	return 0
}

func (d *directory) Readdir(ctx context.Context) (fs.DirStream, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var entries []fuse.DirEntry
	for name, c := range d.names {
		entries = append(entries, fuse.DirEntry{Name: name, Mode: syscall.S_IFREG, Ino: c.ino})
	}
	return fs.NewListDirStream(entries), 0
}

func (d *directory) Fsync(ctx context.Context, f fs.FileHandle, flags uint32) syscall.Errno {
	time.Sleep(syncTime)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err, bad := d.fails("fsyncdir"); bad {
		return err
	}
	d.durable, d.renamed = maps.Clone(d.names), nil
	d.syncs++
	return 0
}

func (c *content) attributes(out *fuse.Attr) {
	out.Mode, out.Size, out.Nlink, out.Ino = syscall.S_IFREG|0o600, uint64(len(c.bytes)), 1, c.ino
}

func (f *file) Getattr(ctx context.Context, h fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.attributes(&out.Attr)
	return 0
}

// Setattr changes only sizes. The new size is durable after the next fsync.
func (f *file) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if size, ok := in.GetSize(); ok {
		if int(size) < len(f.bytes) {
			f.bytes = f.bytes[:size]
		}
		f.bytes = grown(f.bytes, int(size))
	}
	f.attributes(&out.Attr)
	return 0
}

// Open lets the kernel drop cached pages: the file may have changed in a power cut.
func (f *file) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (f *file) Read(ctx context.Context, h fs.FileHandle, dest []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if at >= int64(len(f.bytes)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest, f.bytes[at:])]), 0
}

func (f *file) Write(ctx context.Context, h fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	part := d.fault != nil && d.fault.part && d.faulted.IsZero() && len(data) > 1
	if err, bad := d.fails("write"); bad {
		if !part || !d.off.IsZero() {
			return 0, err
		}
		data = data[:1+d.rng.IntN(len(data)-1)]
	}
	f.bytes = grown(f.bytes, int(at)+len(data))
	copy(f.bytes[at:], data)
	f.unsynced = append(f.unsynced, extent{int(at), int(at) + len(data)})
	return uint32(len(data)), 0
}

// Fsync makes the bytes durable. If it fails, it does what ext4 does: the bytes count
// as written, can still be read, and are not written by the next fsync.
func (f *file) Fsync(ctx context.Context, h fs.FileHandle, flags uint32) syscall.Errno {
	d := f.disk
	time.Sleep(syncTime) // the power may be cut now
	d.mu.Lock()
	defer d.mu.Unlock()
	call := "fsync"
	if !d.isLog(f.content) {
		call = "fsync of another file" // no fault has this name
	}
	if err, bad := d.fails(call); bad {
		if d.off.IsZero() {
			f.unsynced = nil
		}
		return err
	}
	f.durable = append(f.durable[:min(len(f.durable), len(f.bytes))], make([]byte, len(f.bytes)-min(len(f.durable), len(f.bytes)))...)
	for _, e := range f.unsynced {
		if to := min(e.to, len(f.bytes)); to > e.from {
			copy(f.durable[e.from:to], f.bytes[e.from:to])
		}
	}
	f.unsynced = nil
	d.syncs++
	return 0
}
