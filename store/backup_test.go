package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom"
)

// TestBackupPowerCuts backs a store up again and again while the store is in use, and
// sometimes cuts the power of the backup's disk. A store opened from that disk must have
// everything that was acknowledged before the last finished backup.
func TestBackupPowerCuts(t *testing.T) {
	finished, cuts := 0, 0
	for seed := range max(*powerCuts/10, 20) {
		p := newHarness(uint64(seed), []Level{Always, EverySecond}[seed%2], flawNone)
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		target := newCrashDisk(p.rng)
		var possible []modelState // states that the backup may hold; nil if none was finished
		for range 1 + p.rng.IntN(6) {
			for range p.rng.IntN(40) {
				p.act()
			}
			began := slices.Clone(p.killed)
			var since []modelState
			target.changing = func() { // the store is in use while files are copied
				for range p.rng.IntN(3) {
					p.act()
					since = append(since, p.killed...)
				}
			}
			if p.rng.IntN(2) == 0 {
				target.cut = target.calls + 1 + p.rng.IntN(60)
			}
			_, err := backup(p.disk, target)
			switch {
			case err == nil:
				finished++
				possible = slices.Concat(began, since)
			case target.dead:
				cuts++
				if possible != nil { // it holds the last finished backup or this one
					possible = slices.Concat(possible, began, since)
				}
			default:
				t.Fatalf("seed %d: %v", seed, err)
			}
			target.changing = nil
			target = target.restart(target.dead || p.rng.IntN(2) == 0)
			q := p.onto(target)
			if possible == nil && q.disk.cached[backupName] == nil {
				continue // not even begun
			}
			if err := q.open(); err != nil {
				if possible == nil && strings.Contains(err.Error(), "never finished") {
					continue
				}
				t.Fatalf("seed %d: opening the backup: %v", seed, err)
			}
			if possible == nil { // the power failed after everything was written
				possible = slices.Concat(began, since)
			}
			if err := q.check(possible); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	if finished < 20 || cuts < 10 {
		t.Errorf("%d backups were finished, and %d cut off", finished, cuts)
	}
	t.Logf("%d backups, %d of them cut off: 0 adds lost", finished+cuts, cuts)
}

// onto returns a copy of the harness that uses a copy of another disk.
func (p *harness) onto(disk *crashDisk) *harness {
	q := *p
	q.disk = newCrashDisk(p.rng)
	for name, file := range disk.cached {
		data := slices.Clone(file.cache)
		q.disk.cached[name] = &crashFile{cache: data, disk: slices.Clone(data)}
	}
	q.disk.synced = maps.Clone(q.disk.cached)
	return &q
}

// TestBackup: files that the backup already has are not copied again. The backup can be
// verified and opened, and then it is a store's directory.
func TestBackup(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "backups", "seen")
	l, err := OpenLocal(LocalConfig{Dir: dir, seams: seams{idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { l.Close() }()
	take := func(copied, kept int) {
		t.Helper()
		r, err := Backup(dir, to)
		if err != nil {
			t.Fatal(err)
		}
		if r.Copied != copied || r.Kept != kept {
			t.Errorf("%d files were copied and %d kept, want %d and %d", r.Copied, r.Kept, copied, kept)
		}
		if _, err := Verify(to); err != nil {
			t.Errorf("verifying: %v", err)
		}
	}
	l.Create(bg, "seen", Spec{Kind: RedisBloom, Capacity: 100_000, Rate: 0.01})
	addSome(t, l, "seen", 0, 1000)
	if err := l.Snapshot(bg); err != nil {
		t.Fatal(err)
	}
	addSome(t, l, "seen", 1000, 2000)
	take(3, 0)
	take(0, 3)
	addSome(t, l, "seen", 2000, 3000)
	take(1, 2) // the log has grown
	if _, err := l.log.rotate(); err != nil {
		t.Fatal(err)
	}
	addSome(t, l, "seen", 3000, 4000)
	take(1, 3) // it has another file
	take(0, 4)
	if err := l.Snapshot(bg); err != nil {
		t.Fatal(err)
	}
	addSome(t, l, "seen", 4000, 5000)
	take(2, 1)
	data, err := os.ReadFile(filepath.Join(to, secretsName))
	if err != nil {
		t.Fatal(err)
	}
	data[20] ^= 1 // the backup's disk flips a bit
	if err := os.WriteFile(filepath.Join(to, secretsName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	take(1, 2)
	if err := l.Snapshot(bg); err != nil {
		t.Fatal(err)
	}
	take(2, 1)
	if err := l.unlock(); err != nil { // the next start replaces the segment, as it is empty
		t.Fatal(err)
	}
	if l, err = OpenLocal(LocalConfig{Dir: dir, seams: seams{idle: true}}); err != nil {
		t.Fatal(err)
	}
	take(1, 2)
	addSome(t, l, "seen", 5000, 6000)
	take(1, 2)
	items := l.lookup([]byte("seen")).Info().Items

	// Other files that a killed backup may have left do no harm.
	for _, name := range []string{snapshotName(1 << 40), segmentName(1 << 40), snapshotName(5) + tempSuffix} {
		if err := os.WriteFile(filepath.Join(to, name), []byte("from another backup"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	restored, err := OpenLocal(LocalConfig{Dir: to, seams: seams{idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	if got := restored.lookup([]byte("seen")).Info().Items; got != items {
		t.Errorf("%d items of %d", got, items)
	}
	if _, err := Backup(dir, to); !errors.Is(err, bloom.ErrLocked) {
		t.Errorf("into a directory that is served: %v", err)
	}
	if err := restored.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := directory(to).List()
	if len(files) != 4 || slices.Contains(files, backupName) {
		t.Errorf("after that there are %q", files)
	}
	if _, err := Backup(dir, to); err == nil || !strings.Contains(err.Error(), "is no backup") {
		t.Errorf("into a directory that was served: %v", err)
	}
}

// TestBackupRefuses: Backup refuses directories that are not a store's, or not a backup
// of that store, and damaged files.
func TestBackupRefuses(t *testing.T) {
	stores := func() (l *Local, dir string) {
		dir = t.TempDir()
		l, err := OpenLocal(LocalConfig{Dir: dir, seams: seams{idle: true}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		l.Create(bg, "seen", Spec{Kind: RedisBloom, Capacity: 1000, Rate: 0.01})
		addSome(t, l, "seen", 0, 100)
		return l, dir
	}
	l, dir := stores()
	_, other := stores()
	to := filepath.Join(t.TempDir(), "to")
	if _, err := Backup(dir, to); err != nil {
		t.Fatal(err)
	}
	refused := func(from, to, want string) {
		t.Helper()
		if _, err := Backup(from, to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused(other, to, "of another store")
	refused(dir, other, "another backup, or a server, is using it")
	refused(to, t.TempDir(), "is a backup itself")
	refused(t.TempDir(), t.TempDir(), "there is no store")
	full := t.TempDir()
	os.WriteFile(filepath.Join(full, "thesis.tex"), nil, 0o600)
	refused(dir, full, `has the file "thesis.tex", and is no backup`)

	// Damage of the store is not copied.
	addSome(t, l, "seen", 100, 200)
	name := filepath.Join(dir, segmentName(l.log.segment.start))
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[headBytes+100] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(dir, to); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged log: %v", err)
	}
	if _, err := Verify(to); err != nil {
		t.Errorf("the backup before that: %v", err)
	}

	// Damage of the backup is noticed.
	for _, what := range []string{backupName, segmentName(2), snapshotName(2), secretsName} {
		bad := filepath.Join(t.TempDir(), "bad")
		if err := os.CopyFS(bad, os.DirFS(to)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(bad, what)); err != nil {
			t.Fatal(err)
		}
		_, err := OpenLocal(LocalConfig{Dir: bad})
		if what == backupName && err == nil {
			continue // the files are those of a store
		}
		if err == nil {
			t.Errorf("a backup without %s was opened", what)
		}
	}
	unfinished := t.TempDir()
	if err := put(directory(unfinished), backupName, (&manifest{unfinished: true}).write); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLocal(LocalConfig{Dir: unfinished}); err == nil || !strings.Contains(err.Error(), "never finished") {
		t.Errorf("a backup that was never finished: %v", err)
	}
}

// TestBackupUnderLoad backs up a store that constantly adds keys, takes snapshots and
// removes files.
func TestBackupUnderLoad(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	l, err := OpenLocal(LocalConfig{Dir: dir, CheckpointBytes: 20_000, Checkpoint: 1e-9, seams: seams{idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.Create(bg, "seen", Spec{Kind: Paired, Capacity: 100_000, Rate: 0.01, Growth: 2})
	if err == nil {
		err = l.Commit(bg) // before the first backup
	}
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	stop := make(chan struct{})
	var acked struct {
		sync.Mutex
		keys int
	}
	running := func() bool {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	done.Go(func() {
		for n := 0; running(); n++ {
			f.Add(bg, goldenKeys(n, n+1), make([]bool, 1))
			if l.Commit(bg) != nil {
				t.Error("it has stopped")
				return
			}
			acked.Lock()
			acked.keys = n + 1
			acked.Unlock()
		}
	})
	done.Go(func() {
		for running() {
			l.eachSecond()
			time.Sleep(time.Millisecond)
		}
	})
	for n := range 10 {
		acked.Lock()
		keys := acked.keys
		acked.Unlock()
		if _, err := Backup(dir, to); err != nil {
			t.Fatalf("backup %d: %v", n, err)
		}
		copied := filepath.Join(t.TempDir(), fmt.Sprint(n))
		if err := os.CopyFS(copied, os.DirFS(to)); err != nil {
			t.Fatal(err)
		}
		b, err := OpenLocal(LocalConfig{Dir: copied, seams: seams{idle: true}})
		if err != nil {
			t.Fatalf("backup %d: %v", n, err)
		}
		g, err := b.Open([]byte("seen"))
		if err != nil {
			t.Fatal(err)
		}
		found := make([]bool, keys)
		if g.Contains(bg, goldenKeys(0, keys), found); countTrue(found) < keys {
			t.Errorf("backup %d has %d of %d keys; the first that is missing is %d; %+v", n, countTrue(found), keys, slices.Index(found, false), b.Recovered())
		}
		b.Close()
		os.RemoveAll(copied)
	}
	close(stop)
	done.Wait()
	t.Logf("%d snapshots were taken meanwhile", l.Stats().Snapshots)
}

// FuzzManifest passes any text to parseManifest, with and without a valid checksum.
func FuzzManifest(f *testing.F) {
	f.Add("bloomery backup 1\nunfinished\n")
	f.Add("bloomery backup 1\nstore 000102030405060708090a0b0c0d0e0f\nsecrets 45 01234567\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseManifest(fmt.Sprintf("%schecksum %08x\n", text, sum(0, []byte(text))))
		if (m == nil) == (err == nil) {
			t.Errorf("%v, %v", m, err)
		}
		parseManifest(text)
	})
}
