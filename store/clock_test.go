package store

import (
	"fmt"
	"testing"
	"time"
)

// TestWindowClockJump: the time of day jumps ahead, for one add and for snapshots, and
// back. No key expires too early, neither at once nor after a restart.
func TestWindowClockJump(t *testing.T) {
	disk := newHarness(1, Always, flawNone).disk
	began := time.Unix(1_000_000_000, 0)
	passed, jump := time.Duration(0), time.Duration(0)
	var l *Local
	open := func() Filter {
		t.Helper()
		opened := passed
		var err error
		l, err = OpenLocal(LocalConfig{Level: Always, seams: seams{
			disk:    disk,
			idle:    true,
			now:     func() time.Time { return began.Add(passed + jump) },
			elapsed: func() time.Duration { return passed - opened },
		}})
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.Open([]byte("w"))
		if err != nil {
			if f, err = l.Create(bg, "w", Spec{Kind: Window, Capacity: 4000, Rate: 1e-6, Span: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	f := open()
	addAll(f, 0, 1000)
	passed += 10 * time.Minute
	jump = 10 * time.Hour
	addAll(f, 1000, 1001)
	if err := l.Snapshot(bg); err != nil {
		t.Fatal(err)
	}
	jump = 0
	passed += 10 * time.Minute
	addAll(f, 1001, 1010)
	jump = 10 * time.Hour
	if err := l.Snapshot(bg); err != nil { // with no log after it
		t.Fatal(err)
	}
	jump = 0
	for _, when := range []string{"at once", "after a restart", "after another"} {
		keys, found := make([][]byte, 1010), make([]bool, 1010)
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "key %d", i)
		}
		if f.Contains(bg, keys, found); countTrue(found) != len(keys) {
			t.Errorf("%s %d of %d keys are found", when, countTrue(found), len(keys))
		}
		l.Commit(bg)
		disk = disk.restart(true)
		f = open()
	}
	passed += 3 * time.Hour
	if found := []bool{true}; f.Contains(bg, [][]byte{[]byte("key 1000")}, found) != nil || found[0] {
		t.Error("the key that was added when the clock was ahead is never forgotten")
	}
}
