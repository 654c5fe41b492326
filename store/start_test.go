package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// kill ends a store as the end of its process would: nothing more is written.
func kill(t *testing.T, l *Local) {
	t.Helper()
	if err := l.unlock(); err != nil {
		t.Fatal(err)
	}
}

// restart kills a store and opens its directory again.
func restart(t *testing.T, l *Local, config LocalConfig) *Local {
	t.Helper()
	kill(t, l)
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func addSome(t *testing.T, l *Local, name string, from, to int) {
	t.Helper()
	f, err := l.Open([]byte(name))
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < to; i++ {
		f.Add(context.Background(), [][]byte{fmt.Append(nil, i)}, make([]bool, 1))
	}
	if err := l.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestStart: a start does not rewrite what is certainly on disk, and after Close there is
// nothing to replay.
func TestStart(t *testing.T) {
	ctx := context.Background()
	config := LocalConfig{Dir: t.TempDir(), seams: seams{idle: true}}
	start := func() *Local {
		l, err := OpenLocal(config)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	files := func(pattern string) []string {
		found, err := filepath.Glob(filepath.Join(config.Dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	l := start()
	l.Create(ctx, "seen", Spec{Kind: RedisBloom, Capacity: 1_000_000, Rate: 0.01})
	addSome(t, l, "seen", 0, 100)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	snapshots := files("snapshot-*")
	if len(snapshots) != 1 || len(files("log-*")) != 1 {
		t.Fatalf("after an orderly end: %q", files("*"))
	}
	first, err := os.Stat(snapshots[0])
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l = start()
		if r := l.Recovered(); r.Records != 0 || r.Values != 1 {
			t.Errorf("after an orderly end: %+v", r)
		}
		if at := l.Stats().SnapshotAt; at.IsZero() || l.Stats().SnapshotBytes != uint64(first.Size()) {
			t.Errorf("the snapshot is of %v, %d bytes", at, l.Stats().SnapshotBytes)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for round := 1; round < 6; round++ { // each round leaves a log
		l = start()
		if r := l.Recovered(); int(r.Adds) > 10*(round-1) {
			t.Errorf("round %d: %+v", round, r)
		}
		addSome(t, l, "seen", 100*round, 100*round+10)
		kill(t, l)
	}
	if now := files("snapshot-*"); !slices.Equal(now, snapshots) {
		t.Errorf("%q instead of %q", now, snapshots)
	} else if info, err := os.Stat(now[0]); err != nil || !os.SameFile(info, first) || info.ModTime() != first.ModTime() {
		t.Errorf("the snapshot was written again")
	}

	// An older snapshot that a crash has left is removed after the next one.
	old := filepath.Join(config.Dir, snapshotName(1))
	if err := os.WriteFile(old, []byte("from before"), 0o600); err != nil {
		t.Fatal(err)
	}
	l = start()
	items := l.lookup([]byte("seen")).Info().Items
	l.eachSecond()
	if now := files("snapshot-*"); len(now) != 1 || now[0] == old || len(files("log-*")) != 1 {
		t.Errorf("a second later: %q", files("*"))
	}
	kill(t, l)
	l = start()
	if got := l.lookup([]byte("seen")).Info().Items; got != items || items < 145 {
		t.Errorf("%d items, and then %d", items, got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestClockWasAhead: a snapshot whose time is in the future does not delay the next one,
// which unlogged adds need.
func TestClockWasAhead(t *testing.T) {
	config := LocalConfig{Dir: t.TempDir(), Level: Unlogged, SnapshotEvery: 1, seams: seams{idle: true}}
	config.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	l.Create(bg, "seen", Spec{Kind: Paired, Capacity: 100_000, Rate: 0.01})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	config.now = nil
	if l, err = OpenLocal(config); err != nil {
		t.Fatal(err)
	}
	addSome(t, l, "seen", 0, 100)
	time.Sleep(time.Millisecond)
	if !l.wantsSnapshot() {
		t.Errorf("no snapshot is wanted before %v", l.Stats().SnapshotAt)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// rottingDisk returns a cleared sector of the log from the second time that it is opened.
type rottingDisk struct {
	*crashDisk
	name  string
	reads int
}

func (d *rottingDisk) Open(name string) (diskSource, error) {
	file, err := d.crashDisk.Open(name)
	if err != nil || name != d.name {
		return file, err
	}
	if d.reads++; d.reads < 2 {
		return file, nil
	}
	data, err := io.ReadAll(file)
	clear(data[len(data)/2:][:sectorSize])
	return crashSource{bytes.NewReader(data)}, err
}

// TestSegmentIsCheckedAgain: a start copies a segment to a new file. If it does not read
// the same records as before, it fails, and nothing is changed.
func TestSegmentIsCheckedAgain(t *testing.T) {
	disk := newCrashDisk(rand.New(rand.NewPCG(1, 2)))
	l, err := OpenLocal(LocalConfig{seams: seams{disk: disk, idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	l.Create(bg, "seen", Spec{Kind: RedisBloom, Capacity: 100_000, Rate: 0.01})
	addSome(t, l, "seen", 0, 100)
	disk = disk.restart(false)
	rotting := &rottingDisk{crashDisk: disk, name: segmentName(l.log.segment.start)}
	if _, err := OpenLocal(LocalConfig{seams: seams{disk: rotting, idle: true}}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a file that changed while it was copied: %v", err)
	}
	if l, err = OpenLocal(LocalConfig{seams: seams{disk: disk, idle: true}}); err != nil || l.lookup([]byte("seen")).Info().Items != 100 {
		t.Errorf("after that: %v", err)
	}
}

// crowdedDisk cannot create files, as when the process has too many open.
type crowdedDisk struct {
	*crashDisk
	crowded bool
}

func (d *crowdedDisk) Create(name string) (diskFile, error) {
	if d.crowded {
		return nil, syscall.EMFILE
	}
	return d.crashDisk.Create(name)
}

// TestCrowded: a snapshot that could not be begun does not stop the store, and is retried.
func TestCrowded(t *testing.T) {
	for _, level := range []Level{Always, Unlogged} {
		disk := &crowdedDisk{crashDisk: newCrashDisk(rand.New(rand.NewPCG(1, 2)))}
		l, err := OpenLocal(LocalConfig{Level: level, SnapshotEvery: 1, seams: seams{disk: disk, idle: true}})
		if err != nil {
			t.Fatal(err)
		}
		l.Create(bg, "seen", Spec{Kind: Paired, Capacity: 1000, Rate: 0.01})
		addSome(t, l, "seen", 0, 100)
		disk.crowded = true
		for range 3 {
			if err := l.Snapshot(bg); !errors.Is(err, syscall.EMFILE) || errors.Is(err, ErrStopped) {
				t.Errorf("a snapshot that cannot be begun: %v", err)
			}
			addSome(t, l, "seen", 100, 200)
		}
		l.last.retry = time.Now() // the pause is over
		if l.Stats().SnapshotFailure == nil || level == Unlogged && !l.wantsSnapshot() {
			t.Errorf("nobody would know of it, or try again")
		}
		disk.crowded = false
		if err := l.Snapshot(bg); err != nil || l.Stats().SnapshotFailure != nil {
			t.Errorf("and later: %v", err)
		}
		items := l.lookup([]byte("seen")).Info().Items
		disk.crashDisk = disk.restart(false)
		if l, err = OpenLocal(LocalConfig{seams: seams{disk: disk, idle: true}}); err != nil {
			t.Fatal(err)
		}
		if got := l.lookup([]byte("seen")).Info().Items; got != items {
			t.Errorf("%d items of %d", got, items)
		}
	}
}
