package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// kill ends a store as the end of its process would: nothing more is written.
func kill(t *testing.T, l *Local) {
	t.Helper()
	if err := l.unlock(); err != nil {
		t.Fatal(err)
	}
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

// TestStart: what is certainly on the disk is not written again by a start, and
// after an orderly end there is nothing to be done again.
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
	for round := 1; round < 6; round++ { // each leaves a log
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

	// A snapshot from before, which a crash has left, goes with the next one.
	old := filepath.Join(config.Dir, snapshotName(1))
	if err := os.WriteFile(old, []byte("from before"), 0o600); err != nil {
		t.Fatal(err)
	}
	l = start()
	items := l.look([]byte("seen")).Info().Items
	l.eachSecond()
	if now := files("snapshot-*"); len(now) != 1 || now[0] == old || len(files("log-*")) != 1 {
		t.Errorf("a second later: %q", files("*"))
	}
	kill(t, l)
	l = start()
	if got := l.look([]byte("seen")).Info().Items; got != items || items < 145 {
		t.Errorf("%d items, and then %d", items, got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
