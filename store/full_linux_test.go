package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mountSmall mounts a file system in memory, with options such as its size.
func mountSmall(t *testing.T, options string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a file system takes root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mounting a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFullFileSystem fills a file system so that no snapshot fits, requests some, closes
// the store and reopens it.
func TestFullFileSystem(t *testing.T) {
	root := mountSmall(t, "size=24m")
	config := LocalConfig{Dir: filepath.Join(root, "data"), Level: Always, seams: seams{idle: true}}
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	// Filters of 8 MiB, and a longer log.
	l.Create(bg, "seen", Spec{Kind: RedisBloom, Capacity: 7_000_000, Rate: 0.01})
	addSome(t, l, "seen", 0, 1000)
	f, _ := l.Open([]byte("seen"))
	keys := goldenKeys(0, 700_000)
	f.Add(bg, keys, make([]bool, len(keys)))
	if err := l.Commit(bg); err != nil {
		t.Fatal(err)
	}
	if l.log.bytes() < l.used.Load() {
		t.Fatalf("a log of %d bytes beside %d of filters", l.log.bytes(), l.used.Load())
	}
	filler := filepath.Join(root, "filler")
	fill := func(leave int64) {
		var s unix.Statfs_t
		if err := unix.Statfs(root, &s); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filler, make([]byte, int64(s.Bavail)*int64(s.Bsize)-leave), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fill(4 << 20)
	for range 2 {
		if err := l.Snapshot(bg); err == nil || errors.Is(err, ErrStopped) {
			t.Fatalf("a snapshot on a full disk: %v", err)
		}
		addSome(t, l, "seen", 1000, 2000)
	}
	// There is no room although hasRoom expects that there is.
	l.used.Store(1)
	if err := l.Snapshot(bg); !errors.Is(err, unix.ENOSPC) || errors.Is(err, ErrStopped) {
		t.Fatalf("a snapshot that fills the disk: %v", err)
	}
	l.used.Store(l.lookup([]byte("seen")).Info().Bytes)
	addSome(t, l, "seen", 2000, 3000)
	items := l.lookup([]byte("seen")).Info().Items
	if err := l.Close(); err != nil {
		t.Fatalf("an orderly end on a full disk: %v", err)
	}
	began := time.Now()
	if l, err = OpenLocal(config); err != nil {
		t.Fatalf("a start on a full disk, after %v: %v", time.Since(began), err)
	}
	if got := l.lookup([]byte("seen")).Info().Items; got != items {
		t.Errorf("%d items of %d", got, items)
	}
	if l.Stats().SnapshotFailure == nil {
		t.Error("nobody would know that there is no snapshot")
	}
	addSome(t, l, "seen", 3000, 4000)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	l.last.retry = time.Now()
	l.eachSecond()
	if s := l.Stats(); s.SnapshotFailure != nil || s.LogBytes > 1<<20 {
		t.Errorf("with room again: %v, and a log of %d bytes", s.SnapshotFailure, s.LogBytes)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSyncWithoutDescriptors: a process that has too many files open can still sync its
// directory. Otherwise a snapshot that was just renamed would stop the store.
func TestSyncWithoutDescriptors(t *testing.T) {
	d, err := openDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, openErr := d.Open(lockName)
	syncErr := d.SyncDir()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if openErr == nil || syncErr != nil {
		t.Errorf("opening: %v; syncing the directory: %v", openErr, syncErr)
	}
}
