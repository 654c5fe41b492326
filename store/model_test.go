package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// drawn is a source of random numbers that rapid can shrink.
type drawn struct{ t *rapid.T }

func (d drawn) Uint64() uint64 { return rapid.Uint64().Draw(d.t, "chance") }

// TestModel does random operations, ends of the process and power failures among them,
// and compares the store with an exact model.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.SampledFrom([]Level{Always, EverySecond}).Draw(t, "level")
		p := newHarness(0, level, flawNone)
		p.rng = rand.New(drawn{t})
		p.disk.rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "disk"), 1))
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 40).Draw(t, "actions") {
			end := rapid.IntRange(0, 19).Draw(t, "end")
			if end > 1 {
				p.act()
				if err := p.compare(p.now(), p.now()); err != nil {
					t.Fatal(err)
				}
				continue
			}
			possible := p.killed
			if end == 1 {
				possible = p.states
			}
			p.disk = p.disk.restart(end == 1)
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			if err := p.check(possible); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestWindowAcrossRestarts: a window remembers the keys of the last span, and forgets older
// ones, across power failures and restarts.
func TestWindowAcrossRestarts(t *testing.T) {
	p := newHarness(1, Always, flawNone)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	const span = 60 // seconds
	f, err := p.store.Create(bg, "w", Spec{Kind: Window, Capacity: 4000, Rate: 0.001, Span: span * 1e9})
	if err != nil {
		t.Fatal(err)
	}
	for second := range 200 {
		f.Add(bg, [][]byte{fmt.Append(nil, "at ", second)}, []bool{false})
		f.Add(bg, [][]byte{[]byte("again and again")}, []bool{false})
		p.store.Commit(bg)
		if second%7 == 3 {
			p.second() // which may take a snapshot
		} else {
			p.clock = p.clock.Add(1e9)
		}
		if second%11 != 5 {
			continue
		}
		p.disk = p.disk.restart(true)
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		if f, err = p.store.Open([]byte("w")); err != nil {
			t.Fatal(err)
		}
		for added := range second + 1 {
			found := []bool{false}
			f.Contains(bg, [][]byte{fmt.Append(nil, "at ", added)}, found)
			age := second + 1 - added
			if age <= span && !found[0] {
				t.Fatalf("in second %d, what was added %d s ago is forgotten", second, age)
			}
			if age > span*5/4+1 && found[0] {
				t.Fatalf("in second %d, what was added %d s ago is remembered", second, age)
			}
		}
	}
}

// TestCheckpoints: the log is kept short, and an add costs at most 40 bytes of writes,
// snapshots included.
func TestCheckpoints(t *testing.T) {
	s, err := OpenLocal(LocalConfig{Dir: t.TempDir(), CheckpointBytes: 1 << 20, seams: seams{idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	const adds, group = 1_000_000, 1000
	f, err := s.Create(bg, "f", Spec{Kind: RedisBloom, Capacity: adds, Rate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	keys, isNew, written := make([][]byte, group), make([]bool, group), uint64(0)
	for from := 0; from < adds-adds/50; from += group {
		for i := range keys {
			keys[i] = fmt.Append(keys[i][:0], from+i)
		}
		if _, err := f.Add(bg, keys, isNew); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(bg); err != nil {
			t.Fatal(err)
		}
		if from%50_000 == 0 {
			before := s.Stats().Snapshots
			s.eachSecond()
			written += (s.Stats().Snapshots - before) * s.Stats().SnapshotBytes
			if log := s.Stats().LogBytes; log > 4<<20 {
				t.Errorf("%d bytes of log for %d of filters", log, f.Info().Bytes)
			}
		}
	}
	stats := s.Stats()
	each := float64(stats.Log.Bytes+written) / float64(f.Info().Items)
	t.Logf("%d adds in groups of %d: %.1f bytes each on the disk, with %d snapshots", f.Info().Items, group, each, stats.Snapshots)
	if each > 40 || stats.Snapshots < 4 || stats.Log.Syncs == 0 || stats.Log.Writes < adds/group*9/10 || stats.SnapshotAt.IsZero() {
		t.Errorf("%.1f bytes for each add, want at most 40; %+v", each, stats)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
