package store

import (
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fullDisk is a disk without room for snapshots, or one that fails to write them in
// another way.
type fullDisk struct {
	*crashDisk
	at  string // the call that fails: write, short, sync, close, rename or remove; empty: none
	err error
}

type fullFile struct {
	diskFile
	disk *fullDisk
}

func (d *fullDisk) Create(name string) (diskFile, error) {
	file, err := d.crashDisk.Create(name)
	if err == nil && strings.HasPrefix(name, snapPrefix) {
		return &fullFile{file, d}, nil
	}
	return file, err
}

func (f *fullFile) Write(b []byte) (int, error) {
	switch f.disk.at {
	case "write":
		return 0, f.disk.err
	case "short":
		return f.diskFile.Write(b[:len(b)/2])
	}
	return f.diskFile.Write(b)
}

func (f *fullFile) Sync() error {
	if f.disk.at == "sync" {
		return f.disk.err
	}
	return f.diskFile.Sync()
}

func (f *fullFile) Close() error {
	err := f.diskFile.Close()
	if f.disk.at == "close" {
		return f.disk.err
	}
	return err
}

func (d *fullDisk) Rename(from, to string) error {
	if d.at == "rename" && strings.HasPrefix(to, snapPrefix) {
		return d.err
	}
	return d.crashDisk.Rename(from, to)
}

func (d *fullDisk) Remove(name string) error {
	if d.at == "remove" && !strings.HasSuffix(name, tempSuffix) {
		return d.err
	}
	return d.crashDisk.Remove(name)
}

// TestSnapshotFails: a snapshot that cannot be written does not stop the store. Adds are
// acknowledged as before, the snapshot is retried, and Close succeeds, except if adds
// that were not logged are lost.
func TestSnapshotFails(t *testing.T) {
	for _, level := range []Level{Always, EverySecond, Unlogged} {
		for _, at := range []string{"write", "short", "sync", "close", "rename", "remove"} {
			for _, fault := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EFBIG} {
				disk := &fullDisk{crashDisk: newCrashDisk(rand.New(rand.NewPCG(1, 2)))}
				config := LocalConfig{Level: level, CheckpointBytes: 1, Checkpoint: 1e-9, SnapshotEvery: 1, seams: seams{disk: disk, idle: true}}
				l, err := OpenLocal(config)
				if err != nil {
					t.Fatal(err)
				}
				l.Create(bg, "seen", Spec{Kind: Paired, Capacity: 1000, Rate: 0.01})
				addSome(t, l, "seen", 0, 100)
				disk.at, disk.err = at, fault
				for n := range 3 {
					if err := l.Snapshot(bg); err == nil || errors.Is(err, ErrStopped) || at != "short" && !errors.Is(err, fault) {
						t.Fatalf("%v, %s: %v: a snapshot: %v", level, at, fault, err)
					}
					addSome(t, l, "seen", 100*n, 100*n+100)
					if l.wantsSnapshot() {
						t.Errorf("%v, %s: %v: it is tried again at once", level, at, fault)
					}
					if s := l.Stats(); s.SnapshotFailure == nil || s.SnapshotFailures != uint64(n+1) || s.Failure != nil {
						t.Errorf("%v, %s: %v: %d failures, the last one: %v; stopped: %v", level, at, fault, s.SnapshotFailures, s.SnapshotFailure, s.Failure)
					}
				}
				if pause := time.Until(l.last.retry); pause < 3*firstPause || pause > 4*firstPause {
					t.Errorf("it is tried again in %v", pause)
				}
				if l.last.retry = time.Now(); !l.wantsSnapshot() {
					t.Errorf("%v, %s: %v: it is not tried again", level, at, fault)
				}
				if files, _ := disk.List(); strings.Contains(strings.Join(files, " "), tempSuffix) {
					t.Errorf("%v, %s: %v: there are %q", level, at, fault, files)
				}
				lossy := level == Unlogged && at != "remove" // at "remove" the snapshot was written
				if err := l.Close(); (err != nil) != lossy || err != nil && errors.Is(err, ErrStopped) {
					t.Errorf("%v, %s: %v: an orderly end: %v", level, at, fault, err)
				}
				disk.at = ""
				config.disk = disk.crashDisk.restart(true)
				if l, err = OpenLocal(config); err != nil {
					t.Fatalf("%v, %s: %v: the next start: %v", level, at, fault, err)
				}
				items := l.lookup([]byte("seen")).Info().Items
				if want := uint64(300); !lossy && (items < want-10 || items > want) {
					t.Errorf("%v, %s: %v: %d items of %d", level, at, fault, items, want)
				}
				if err := l.Snapshot(bg); err != nil || l.Stats().SnapshotFailure != nil {
					t.Errorf("and then: %v", err)
				}
			}
		}
	}
}

// TestStartWithoutRoom: a start that wants to replace a long log by a snapshot, and has no
// room for it, continues the log.
func TestStartWithoutRoom(t *testing.T) {
	for _, at := range []string{"write", "short", "sync", "close"} {
		disk := &fullDisk{crashDisk: newCrashDisk(rand.New(rand.NewPCG(1, 2))), err: syscall.ENOSPC}
		config := LocalConfig{Level: Always, seams: seams{disk: disk, idle: true}}
		l, err := OpenLocal(config)
		if err != nil {
			t.Fatal(err)
		}
		l.Create(bg, "seen", Spec{Kind: Window, Capacity: 1000, Rate: 0.01, Span: time.Hour})
		items, from := uint64(0), 0
		for range 3 {
			addSome(t, l, "seen", from, from+1000)
			from += 1000
			if l.log.bytes() < l.used.Load() {
				t.Fatalf("a log of %d bytes, beside %d of filters, is too short", l.log.bytes(), l.used.Load())
			}
			items = l.lookup([]byte("seen")).Info().Items
			disk.crashDisk = disk.crashDisk.restart(true)
			disk.at = at
			if l, err = OpenLocal(config); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			if got := l.lookup([]byte("seen")).Info().Items; got != items {
				t.Errorf("%s: %d items of %d", at, got, items)
			}
			if l.Stats().SnapshotFailure == nil {
				t.Errorf("%s: nobody would know that there is no snapshot", at)
			}
		}
		disk.at = ""
		disk.crashDisk = disk.crashDisk.restart(true)
		if l, err = OpenLocal(config); err != nil || l.lookup([]byte("seen")).Info().Items != items {
			t.Fatalf("%s: %v", at, err)
		}
		if files, _ := disk.List(); len(starts(files, segmentPrefix)) != 1 {
			t.Errorf("with room there are still %q", files)
		}
	}
}

// TestMergeAfterLeak: a merge that was not finished needs a snapshot. While there is no
// room for it, other merges succeed. (Once they returned the snapshot's error.)
func TestMergeAfterLeak(t *testing.T) {
	disk := &fullDisk{crashDisk: newCrashDisk(rand.New(rand.NewPCG(9, 10))), err: syscall.ENOSPC}
	config := LocalConfig{Level: Always, seams: seams{disk: disk, idle: true}}
	var l *Local
	doomed := "b"
	config.between = func() { l.Drop(bg, doomed) }
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	filters := map[string]Filter{}
	for _, name := range []string{"a", "b", "c"} {
		if filters[name], err = l.Create(bg, name, Spec{Kind: Paired, Capacity: 10_000, Rate: 0.01}); err == nil {
			err = addKeys(filters[name], someKeys(name, 100))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	disk.at = "write"
	if err := filters["a"].Merge(bg, filters["b"]); !errors.Is(err, ErrNotFound) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a merge of what is dropped meanwhile, and no room for a snapshot: %v", err)
	}
	doomed = ""
	if err := filters["a"].Merge(bg, filters["c"]); err != nil {
		t.Errorf("a merge after that: %v", err)
	}
	if err := hasKeys(filters["a"], append(someKeys("a", 100), someKeys("c", 100)...)); err != nil {
		t.Error(err)
	}
	if !l.leaky() {
		t.Error("no snapshot was taken, and its need is forgotten")
	}
	disk.at = ""
	if err := l.Snapshot(bg); err != nil || l.leaky() {
		t.Errorf("the snapshot that was owed: %v", err)
	}
}
