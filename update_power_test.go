package bloom

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/memory"
)

// powerDisk is a disk that the power may leave at any moment. It keeps the file
// as it was at the last sync, and at each write since. The system may have
// written any sector in any of these versions: those that are synced are safe,
// the others may have come in any order or not at all. (That the mapping is
// synced by itself counts for nothing here.)
type powerDisk struct {
	*os.File
	t       *testing.T
	path    string
	synced  []byte
	since   [][]byte
	failure func(call string) error // of this call, if not nil
	calls   int
	onCall  func() // at each call, before and after
}

func (d *powerDisk) now() []byte {
	file, err := os.ReadFile(d.path)
	if err != nil {
		d.t.Fatal(err)
	}
	return file
}

func (d *powerDisk) call(name string, do func() error) error {
	d.calls++
	d.since = append(d.since, d.now())
	d.onCall()
	if err := d.failure(name); err != nil {
		return err
	}
	if err := do(); err != nil {
		d.t.Fatal(err)
	}
	if name == "Sync" {
		d.synced, d.since = d.now(), nil
	} else {
		d.since = append(d.since, d.now())
	}
	d.onCall()
	return nil
}

func (d *powerDisk) WriteAt(b []byte, at int64) (n int, err error) {
	return len(b), d.call("WriteAt", func() error { _, err := d.File.WriteAt(b, at); return err })
}

func (d *powerDisk) Truncate(size int64) error {
	return d.call("Truncate", func() error { return d.File.Truncate(size) })
}

func (d *powerDisk) Sync() error { return d.call("Sync", d.File.Sync) }

const sectorBytes = 512

// left is a file that may be left when the power fails now.
func (d *powerDisk) left(rng *rand.Rand) []byte {
	versions := append([][]byte{d.synced}, d.since...)
	versions = append(versions, d.now())
	pick := func() []byte { return versions[rng.IntN(len(versions))] }
	file := make([]byte, len(pick()))
	// Most sectors of one version and some of any other: mixtures of equal parts
	// alone would never combine a whole state page with an old body.
	most, others := pick(), []float64{0, 0.01, 0.3, 1}[rng.IntN(4)]
	for at := 0; at < len(file); at += sectorBytes {
		version := most
		if rng.Float64() < others {
			version = pick()
		}
		if at < len(version) {
			copy(file[at:min(at+sectorBytes, len(file))], version[at:])
		}
	}
	if rng.IntN(8) == 0 { // the sector under the head
		at := rng.IntN(3) * filterfile.PageBytes / 2
		from := filterfile.BodyOffset - 2*filterfile.PageBytes + at
		copy(file[from:from+rng.IntN(sectorBytes)], pick()[from:])
	}
	return file
}

// powered is a filter in a file, of either kind.
type powered interface {
	AddUint64(key uint64) bool
	ContainsUint64(key uint64) bool
	Sync() error
	Close() error
	Recovered() bool
}

var poweredKinds = []struct {
	name   string
	create func(path string) (powered, *filterfile.Updater)
	open   func(path string) (powered, error)
	load   func(path string) (powered, error)
	files  int // that are tried at each call
}{
	{
		"Filter",
		func(path string) (powered, *filterfile.Updater) {
			f, err := Config{Bits: 8 * 200 * sectorBytes, Rate: 0.001}.Create(path, nil)
			if err != nil {
				panic(err)
			}
			return f, f.update
		},
		func(path string) (powered, error) { return OpenUpdate(path) },
		func(path string) (powered, error) { return Load(path) },
		3,
	}, {
		"Filter of more than a MiB",
		func(path string) (powered, *filterfile.Updater) {
			f, err := Config{Bits: 8 * (filterfile.SpanBytes + 100*sectorBytes), Rate: 0.001}.Create(path, nil)
			if err != nil {
				panic(err)
			}
			return f, f.update
		},
		func(path string) (powered, error) { return OpenUpdate(path) },
		func(path string) (powered, error) { return Load(path) },
		1,
	}, {
		"Scalable",
		func(path string) (powered, *filterfile.Updater) {
			f, err := ScalableConfig{First: 100, Rate: 0.001}.Create(path)
			if err != nil {
				panic(err)
			}
			return f, f.update
		},
		func(path string) (powered, error) { return OpenUpdateScalable(path) },
		func(path string) (powered, error) { return LoadScalable(path) },
		3,
	},
}

// hasRoom reports whether the next new key goes into the newest layer.
func hasRoom(f *Scalable) bool {
	l := f.lockedLayers()
	defer l.unlock()
	return l.collect() > 0
}

// lost is how many of the keys are not found.
func lost(f powered, keys uint64) (n int) {
	for key := range keys {
		if !f.ContainsUint64(key) {
			n++
		}
	}
	return n
}

// TestUpdatePowerFails: whatever of the unsynced sectors reached the disk, every
// key of the last Sync is found, and no reader takes a file for whole that is not.
func TestUpdatePowerFails(t *testing.T) {
	if _, err := (Config{Keys: 1, Rate: 0.1}).Create(filepath.Join(t.TempDir(), "f"), nil); err != nil {
		t.Skip("files cannot be changed in place here: ", err)
	}
	for i, kind := range poweredKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(3, uint64(i)))
			path, left := filepath.Join(t.TempDir(), "seen"), filepath.Join(t.TempDir(), "left")
			f, u := kind.create(path)
			d := &powerDisk{File: u.File(), path: u.Path(), t: t, failure: func(string) error { return nil }}
			d.synced = d.now()
			u.Disk = d
			key, safe := uint64(0), uint64(0)
			var whole, mended, refused int
			d.onCall = func() {
				for range kind.files {
					file := d.left(rng)
					if err := os.WriteFile(left, file, 0o666); err != nil {
						t.Fatal(err)
					}
					if g, err := kind.load(left); err == nil {
						whole++
						if n := lost(g, safe); n > 0 {
							t.Fatalf("loaded: %d of %d synced keys are lost", n, safe)
						}
						g.Close()
					} else if refused++; !errors.Is(err, ErrChecksum) && !errors.Is(err, ErrFormat) {
						t.Fatalf("Load: %v", err)
					}
					mapped, err := Open(left)
					if err == nil {
						if n := lost(mapped, safe); n > 0 {
							t.Fatalf("opened: %d of %d synced keys are lost", n, safe)
						}
						mapped.Close()
					} else if kind.name != "Scalable" {
						t.Fatalf("Open: %v", err)
					}
					g, err := kind.open(left)
					if err != nil {
						t.Fatalf("OpenUpdate after %d calls: %v", d.calls, err)
					}
					if n := lost(g, safe); n > 0 {
						t.Fatalf("mended: %d of %d synced keys are lost", n, safe)
					}
					if g.Recovered() {
						mended++
					}
					g.AddUint64(1 << 60)
					if err := g.Close(); err != nil {
						t.Fatal(err)
					}
					if g, err = kind.load(left); err != nil {
						t.Fatalf("Load of the mended file: %v", err)
					}
					if n := lost(g, safe); n > 0 || !g.ContainsUint64(1<<60) {
						t.Fatalf("mended and loaded: %d of %d synced keys are lost", n, safe)
					}
					g.Close()
				}
			}
			for round := range 12 {
				for range rng.IntN(150) {
					f.AddUint64(key)
					key++
				}
				if s, ok := f.(*Scalable); ok && round%2 == 0 { // so that the next add grows a clean file
					for hasRoom(s) {
						f.AddUint64(key)
						key++
					}
				}
				if err := f.Sync(); err != nil {
					t.Fatal(err)
				}
				safe = key
				d.onCall()
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d calls: %d files whole, %d refused by Load, %d mended", d.calls, whole, refused, mended)
			if whole < 20 || mended < 20 || refused < 20 {
				t.Error("too few of a sort")
			}
			if s, ok := f.(*Scalable); ok && len(s.layers.Load().filters) < 3 {
				t.Error("the file did not grow")
			}
		})
	}
}

// TestUpdatePowerFailsInMending: the power fails a second time, while the file is
// being mended.
func TestUpdatePowerFailsInMending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	f, err := Config{Bits: 8 * 200 * sectorBytes, Rate: 0.001}.Create(path, nil)
	if err != nil {
		t.Skip("files cannot be changed in place here: ", err)
	}
	for key := range uint64(100) {
		f.AddUint64(key)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	abandon(f)
	clean, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	left := filepath.Join(t.TempDir(), "left")
	for _, torn := range []int{0, 1, 2} { // state page that is damaged; without one, the clean flag is missing
		file := bytes.Clone(clean)
		if torn > 0 {
			file[torn*filterfile.PageBytes+100] ^= 1
		} else {
			s, err := filterfile.DecodeHead(file[:filterfile.BodyOffset])
			if err != nil {
				t.Fatal(err)
			}
			s.Clean = false
			s.Generation++
			copy(file[(3-s.Page)*filterfile.PageBytes:], s.State.Encode())
		}
		for i := range 20 { // bits that were set since
			file[filterfile.BodyOffset+777*i] |= 1 << (i % 8)
		}
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
		u, s, err := filterfile.OpenUpdate(path)
		if err != nil {
			t.Fatal(err)
		}
		d := &powerDisk{File: u.File(), path: u.Path(), t: t, failure: func(string) error { return nil }}
		d.synced = d.now()
		d.onCall = func() {
			for range 3 {
				if err := os.WriteFile(left, d.left(rng), 0o666); err != nil {
					t.Fatal(err)
				}
				g, err := OpenUpdate(left)
				if err != nil {
					t.Fatal(err)
				}
				if n := lost(g, 100); n > 0 {
					t.Fatalf("%d keys are lost", n)
				}
				if err := errors.Join(g.Verify(), g.Close()); err != nil {
					t.Fatal(err)
				}
			}
		}
		u.Disk = d
		if err := u.Mend(s, nil); err != nil || !u.Recovered() || d.calls < 5 {
			t.Errorf("damaged page %d: mended with %d calls, recovered %v, %v", torn, d.calls, u.Recovered(), err)
		}
		s.Close()
		u.Close()
		if _, err := Load(path); err != nil {
			t.Error(err)
		}
	}
}

// abandon leaves the file as a process that is killed does.
func abandon(f *Filter) {
	f.memory.Close()
	f.update.File().Close()
}

// TestUpdateDiskFails: at the first call that fails the file is left alone, every
// later Sync says so, adds go on in memory, and the next writer finds the keys of
// the last Sync.
func TestUpdateDiskFails(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, kind := range poweredKinds {
		if kind.name == "Filter of more than a MiB" {
			continue
		}
		for at := 1; ; at++ {
			path := filepath.Join(t.TempDir(), "seen")
			if f, err := (Config{Keys: 1, Rate: 0.1}).Create(path+".try", nil); err != nil {
				t.Skip("files cannot be changed in place here: ", err)
			} else {
				f.Close()
			}
			f, u := kind.create(path)
			d := &powerDisk{File: u.File(), path: u.Path(), t: t, onCall: func() {}}
			d.failure = func(call string) error {
				if d.calls >= at {
					return broken
				}
				return nil
			}
			u.Disk = d
			key, safe := uint64(0), uint64(0)
			var failed error
			for round := range 6 {
				for range 60 {
					f.AddUint64(key)
					key++
				}
				before := d.calls
				err := f.Sync()
				if failed != nil && (err != failed || d.calls != before) {
					t.Fatalf("%s, call %d: after a failure Sync returned %v and called the disk %d times", kind.name, at, err, d.calls-before)
				}
				if failed = err; err == nil {
					safe = key
				} else if !errors.Is(err, broken) {
					t.Fatalf("%s, call %d: Sync in round %d: %v", kind.name, at, round, err)
				}
				if n := lost(f, key); n > 0 {
					t.Fatalf("%s, call %d: %d of %d keys are lost", kind.name, at, n, key)
				}
			}
			if s, ok := f.(*Scalable); ok && (s.Err() != nil || len(s.layers.Load().filters) < 3) {
				t.Fatalf("%s, call %d: it did not go on growing: %v", kind.name, at, s.Err())
			}
			file := d.now()
			for range 100 {
				f.AddUint64(key)
				key++
			}
			if failed != nil && !bytes.Equal(file, d.now()) {
				t.Fatalf("%s, call %d: adds after the failure went to the file", kind.name, at)
			}
			if err := f.Close(); failed != nil && err != failed {
				t.Fatalf("%s, call %d: Close: got %v, want the same error", kind.name, at, err)
			}
			g, err := kind.open(path)
			if err != nil {
				t.Fatalf("%s, call %d: the next writer: %v", kind.name, at, err)
			}
			if n := lost(g, safe); n > 0 {
				t.Fatalf("%s, call %d: %d of %d synced keys are lost", kind.name, at, n, safe)
			}
			g.Close()
			if g, err = kind.load(path); err != nil {
				t.Fatalf("%s, call %d: Load: %v", kind.name, at, err)
			}
			g.Close()
			if failed == nil {
				if at < 20 {
					t.Errorf("%s: only %d calls", kind.name, at)
				}
				break
			}
		}
	}
}

// TestUpdateMarks: a file has the right checksums whatever MiB its keys fell in.
func TestUpdateMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	f, err := Config{Bits: 8 * (5*filterfile.SpanBytes + sectorBytes), Rate: 0.001}.Create(path, nil)
	if err != nil {
		t.Skip("files cannot be changed in place here: ", err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for round := range 40 {
		f.AddHash(rng.Uint64())
		f.AddHashes([]uint64{rng.Uint64(), rng.Uint64()}[:round%3], nil)
		if f.update.Unmarked() < 2 {
			t.Fatal("too many MiB have a mark: the test shows nothing")
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := f.Verify(); err != nil {
			t.Fatal(err)
		}
	}
	f.AddHash(1<<64 - 1) // the block of the last, short MiB
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUpdateMarksOfLayers: so has one that has just grown, with few keys since the
// last Sync before and after.
func TestUpdateMarksOfLayers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	f, err := ScalableConfig{First: 900_000, Rate: 0.05, Growth: 8}.Create(path)
	if err != nil {
		t.Skip("files cannot be changed in place here: ", err)
	}
	rng := rand.New(rand.NewPCG(6, 6))
	room := layerRoom(f.layers.Load().filters[0].plan)
	for hashes := make([]uint64, 1000); f.layers.Load().filters[0].added() < uint64(room)-1000; {
		for i := range hashes {
			hashes[i] = rng.Uint64()
		}
		f.AddHashes(hashes, nil)
	}
	for hasRoom(f) { // one layer after the other has its few marks, and no two have the same
		if n := room - int64(f.layers.Load().filters[0].added()); n == 2 {
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
			f.AddHash(1) // in the first block
		}
		f.AddHash(rng.Uint64())
	}
	f.AddHash(1<<64 - 2) // in the last block
	filters := f.layers.Load().filters
	if len(filters) != 2 || f.update.Unmarked() < 5 || len(filters[1].bits.Words)*8 < filterfile.SpanBytes {
		t.Fatalf("%d layers, the first of %d words, %d of %d MiB have no mark: the test shows nothing",
			len(filters), len(filters[1].bits.Words), f.update.Unmarked(), f.update.Spans())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadScalable(path); err != nil {
		t.Error(err)
	}
}

// TestUpdateNoRoom: when the disk is full, no new file is left behind, no layer begins,
// and everything else continues.
func TestUpdateNoRoom(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is asked for room before it is written")
	}
	directory := t.TempDir()
	const far = 1 << 60 // bytes, more than any disk has
	probe, err := os.Create(filepath.Join(directory, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	if err := filterfile.Reserve(probe, 0, far); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the file system has no call for it: ", err)
	} else if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("reserve of %d bytes: got error %v", int64(far), err)
	}

	s := filterfile.NewEmpty(filterfile.Header{Kind: filterfile.KindFilter, Scheme: filterfile.SchemePaired, Keys: 1}, []filterfile.Section{{Length: far}})
	u, err := filterfile.Create(filepath.Join(directory, "new"), s)
	if !memory.LittleEndian {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("creating a file on a big-endian machine: got error %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("creating %d bytes: %v", s.FileBytes, u)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("creating %d bytes: got error %v", s.FileBytes, err)
	}
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 1 {
		t.Errorf("creating failed and left %v behind, %v", entries, err)
	}

	path := filepath.Join(directory, "seen")
	f, err := ScalableConfig{First: 100, Rate: 0.01}.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.AddUint64(1)
	if _, _, err := f.update.Append(filterfile.Section{Length: far}); !errors.Is(err, ErrBudget) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("appending %d bytes: got error %v", int64(far), err)
	}
	for key := range uint64(1000) { // it can still grow by less
		f.AddUint64(key)
	}
	if err := errors.Join(f.Err(), f.Close()); err != nil {
		t.Error(err)
	}
	if g, err := LoadScalable(path); err != nil || lost(g, 1000) > 0 {
		t.Errorf("loaded: %v", err)
	}
}
