package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom"
)

// repaired repairs the harness's disk, opens it, and returns what became unknown.
func repaired(t *testing.T, q *harness) (told string) {
	t.Helper()
	config := LocalConfig{seams: seams{disk: q.disk, now: func() time.Time { return q.clock }}}
	err := repair(config, func(what []string) bool { told = strings.Join(what, "\n"); return true })
	if err != nil {
		t.Fatalf("repairing: %v; it was said: %s", err, told)
	}
	if told == "" {
		t.Fatal("nothing was told")
	}
	if err := q.open(); err != nil {
		t.Fatalf("opening what was repaired: %v", err)
	}
	return told
}

// kept returns the number of the harness's filters that are there. Each must have all of
// its keys.
func (p *harness) kept(t *testing.T) (n int) {
	t.Helper()
	for name, v := range p.now() {
		f, err := p.store.Open([]byte(name))
		if v.kind == String || err != nil {
			continue
		}
		n++
		for key := range v.keys {
			found := []bool{false}
			if f.Contains(bg, [][]byte{[]byte(key)}, found); !found[0] {
				t.Errorf("%q has lost %q", name, key)
			}
		}
	}
	return n
}

// TestRepairSnapshotHead: a snapshot whose beginning is damaged can be repaired, since
// values have headers of their own. Once it could not.
func TestRepairSnapshotHead(t *testing.T) {
	p := populated(t, 6)
	snapshot, log := p.files()
	for _, c := range []struct {
		name string
		harm func(data []byte)
		kept int // of five filters, at least
	}{
		{"one bit of the magic", func(b []byte) { b[0] ^= 1 }, 5},
		{"the version", func(b []byte) { b[9] ^= 1 }, 5},
		{"the salt", func(b []byte) { clear(b[24:32]) }, 5},
		{"the store", func(b []byte) { clear(b[40:56]) }, 5},
		{"the frame of the first record", func(b []byte) { clear(b[headBytes:][:frameBytes]) }, 5},
		{"the first record", func(b []byte) { b[headBytes+frameBytes+12] ^= 4 }, 5},
		{"the whole head", func(b []byte) { clear(b[:headBytes]) }, 5},
		{"the first 100 bytes", func(b []byte) { clear(b[:100]) }, 5},
		{"a sector", func(b []byte) { clear(b[:512]) }, 3},
	} {
		q := p.again()
		c.harm(q.disk.cached[snapshot].cache)
		if err := q.open(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: opening: %v", c.name, err)
			continue
		}
		told := repaired(t, q)
		if kept := q.kept(t); kept < c.kept {
			t.Errorf("%s: %d of %d filters are there; it was said: %s", c.name, kept, c.kept, told)
		}
		if !strings.Contains(told, "can no longer be told") && !strings.Contains(told, "another directory") {
			t.Errorf("%s: it was said: %s", c.name, told)
		}
	}
	for _, size := range []int{16, headBytes, 512} { // of the log
		q := p.again()
		clear(q.disk.cached[log].cache[:size])
		if err := q.open(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes of the log: opening: %v", size, err)
			continue
		}
		told := repaired(t, q)
		if kept := q.kept(t); kept < 5 {
			t.Errorf("%d bytes of the log: %d of 5 filters are there; it was said: %s", size, kept, told)
		}
		if all := "all of its records are there"; strings.Contains(told, all) != (size <= headBytes) {
			t.Errorf("%d bytes of the log: it was said: %s", size, told)
		}
	}
}

// TestRepairWithoutSnapshot: if the snapshot is missing, its values are lost, but not those
// created since. If it is the store's first snapshot, which is empty, nothing is lost.
func TestRepairWithoutSnapshot(t *testing.T) {
	p := populated(t, 7)
	snapshot, _ := p.files()
	q := p.again()
	delete(q.disk.cached, snapshot)
	if err := q.open(); !errors.Is(err, ErrDamaged) {
		t.Fatalf("without a snapshot: %v", err)
	}
	if told := repaired(t, q); !strings.Contains(told, "all values that were in it are lost") {
		t.Errorf("it was said: %s", told)
	}

	p = newHarness(8, Always, flawNone)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	for i, spec := range modelSpecs {
		name := string(rune('a' + i))
		f, err := p.store.Create(bg, name, spec)
		if err != nil {
			t.Fatal(err)
		}
		p.did(func(next modelState) { next[name] = newModel(f, spec) })
		p.add(name)
	}
	p.commit()
	q = p.again()
	delete(q.disk.cached, snapshotName(2))
	if err := q.open(); !errors.Is(err, ErrDamaged) {
		t.Fatalf("without the first snapshot: %v", err)
	}
	if told := repaired(t, q); !strings.Contains(told, "all values are in the log") {
		t.Errorf("it was said: %s", told)
	}
	if err := q.check(p.states); err != nil {
		t.Error(err)
	}
}

// TestMissingLog: a missing log is noticed. Once it was not, from a store's first start to
// its first snapshot, and the store began empty.
func TestMissingLog(t *testing.T) {
	p := newHarness(1, Always, flawNone)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	p.store.Create(bg, "seen", Spec{Kind: Paired, Capacity: 100, Rate: 0.01})
	addSome(t, p.store, "seen", 0, 50)
	_, log := p.files()
	q := p.again()
	delete(q.disk.cached, log)
	if err := q.open(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "is not there") {
		t.Errorf("without its log: %v", err)
	}
	if told := repaired(t, q); !strings.Contains(told, log) {
		t.Errorf("it was said: %s", told)
	}
}

// TestForeignFiles: a file of another directory, with the same name, is noticed.
func TestForeignFiles(t *testing.T) {
	var harnesses [2]*harness
	for i := range harnesses {
		p := newHarness(1, Always, flawNone)
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		p.store.Create(bg, "seen", Spec{Kind: RedisBloom, Capacity: 100, Rate: 0.01})
		if err := p.store.Snapshot(bg); err != nil {
			t.Fatal(err)
		}
		addSome(t, p.store, "seen", 0, 50)
		harnesses[i] = p
	}
	_, log := harnesses[0].files()
	q := harnesses[0].again()
	q.disk.cached[log] = harnesses[1].disk.cached[log]
	if err := q.open(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "of another directory") {
		t.Errorf("with the log of another: %v", err)
	}
	if told := repaired(t, q); !strings.Contains(told, "of another directory") {
		t.Errorf("it was said: %s", told)
	}
	if f, err := q.store.Open([]byte("seen")); err != nil || f.Report().Fill < 1 {
		t.Errorf("its adds are lost, and it does not say perhaps: %v", err)
	}
}

// TestNewerVersion: the error for a directory of a later release names the version. It is
// not reported as damage.
func TestNewerVersion(t *testing.T) {
	p := populated(t, 9)
	snapshot, log := p.files()
	for _, name := range []string{snapshot, log} {
		q := p.again()
		head := q.disk.cached[name].cache[:oldHeadBytes]
		order.PutUint32(head[8:], fileVersion+1)
		reseal(head)
		clear(q.disk.cached[name].cache[oldHeadBytes:headBytes]) // whatever that will be
		if err := q.open(); !errors.Is(err, bloom.ErrVersion) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "version 2, and this release reads up to 1") {
			t.Errorf("%s of a newer version: %v", name, err)
		}
	}
}

func reseal(b []byte) {
	n := len(b) - 4
	order.PutUint32(b[n:], sum(0, b[:n]))
}

// TestTornRecords: whole records after a bad one are counted.
func TestTornRecords(t *testing.T) {
	p := newHarness(1, EverySecond, flawNone)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	p.store.Create(bg, "seen", Spec{Kind: Paired, Capacity: 1000, Rate: 0.01})
	var sizes []uint64
	for i := range 10 {
		sizes = append(sizes, p.store.log.segment.bytes)
		addSome(t, p.store, "seen", 10*i, 10*i+10)
	}
	_, log := p.files()
	p.disk.cached[log].cache[sizes[7]+20] ^= 1
	p.disk = p.disk.restart(false)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	if r := p.store.Recovered(); r.TornRecords < 20 || r.TornRecords > 29 || r.Torn != log { // one add each
		t.Errorf("%d records behind the torn one, %d bytes", r.TornRecords, r.TornBytes)
	}
}

// countingDisk counts the bytes that searches for records read.
type countingDisk struct {
	*crashDisk
	read *int
}

func (d countingDisk) Open(name string) (diskSource, error) {
	file, err := d.crashDisk.Open(name)
	if err != nil {
		return nil, err
	}
	return countingSource{file.(crashSource).Reader, d.read}, nil
}

// TestTornRecordsAreCountedQuickly: with every tenth of many records torn, the searches
// read little.
func TestTornRecordsAreCountedQuickly(t *testing.T) {
	p := newHarness(1, EverySecond, flawNone)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	p.store.Create(bg, "seen", Spec{Kind: Paired, Capacity: 100_000, Rate: 0.01})
	f, err := p.store.Open([]byte("seen"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range goldenKeys(0, 20_000) {
		f.Add(bg, [][]byte{key}, make([]bool, 1))
	}
	if err := p.store.Commit(bg); err != nil {
		t.Fatal(err)
	}
	_, log := p.files()
	data := p.disk.cached[log].cache
	torn := 0
	for at, n := headBytes, 0; at < len(data); n++ {
		size := frameBytes + int(order.Uint32(data[at:]))
		if n%10 == 5 {
			data[at+frameBytes+9] ^= 1
			torn++
		}
		at += size
	}
	read := 0
	p.disk = p.disk.restart(false)
	l, err := OpenLocal(LocalConfig{seams: seams{disk: countingDisk{p.disk, &read}, idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	if n := l.Recovered().TornRecords; n < 17_000 || n > 18_000 {
		t.Errorf("%d records behind the first torn one", n)
	}
	if most := torn * 2 * firstWindow; read > most {
		t.Errorf("%d bytes were searched for %d records, of a file of %d", read, torn, len(data))
	}
}

// TestUnfinishedRestore: filters that a kill in a RESTORE left under a name of the server's
// own are dropped.
func TestUnfinishedRestore(t *testing.T) {
	p := newHarness(1, Always, flawNone)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	s := p.store
	for _, name := range []string{"seen", UnfinishedPrefix + "12", UnfinishedPrefix + "and not a number", "other" + UnfinishedPrefix + "12"} {
		if _, err := s.Create(bg, name, Spec{Kind: RedisBloom, Capacity: 100, Rate: 0.01}); err != nil {
			t.Fatal(err)
		}
		addSome(t, s, name, 0, 10)
	}
	used := s.used.Load()
	for range 3 {
		p.disk = p.disk.restart(false)
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		names, _, _ := p.store.List(0, 100)
		slices.Sort(names)
		if want := []string{UnfinishedPrefix + "and not a number", "other" + UnfinishedPrefix + "12", "seen"}; !slices.Equal(names, want) {
			t.Errorf("there are %q, want %q", names, want)
		}
		if n := p.store.Recovered().Unfinished; n != 1 || p.store.used.Load() >= used {
			t.Errorf("%d were dropped; %d bytes are in use, and %d were", n, p.store.used.Load(), used)
		}
		// The name can be used again.
		if _, err := p.store.Create(bg, UnfinishedPrefix+"12", Spec{Kind: RedisBloom, Capacity: 100, Rate: 0.01}); err != nil {
			t.Error(err)
		}
		if err := p.store.Commit(bg); err != nil {
			t.Fatal(err)
		}
	}
}

// countingSource counts the bytes that ReadAt reads.
type countingSource struct {
	*bytes.Reader
	read *int
}

func (s countingSource) Close() error { return nil }

func (s countingSource) ReadAt(b []byte, at int64) (int, error) {
	n, err := s.Reader.ReadAt(b, at)
	*s.read += n
	return n, err
}

// TestSearchIsQuick: after damage, the next record is found without a checksum of megabytes
// at each byte, which took minutes.
func TestSearchIsQuick(t *testing.T) {
	p := newHarness(1, Always, flawNone)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	for i := range 4 { // sparse bits look like lengths and LSNs
		name := fmt.Sprint("filter ", i)
		if _, err := p.store.Create(bg, name, Spec{Kind: RedisBloom, Capacity: 4_000_000, Rate: 0.01}); err != nil {
			t.Fatal(err)
		}
		addSome(t, p.store, name, 0, 20_000)
	}
	if err := p.store.Snapshot(bg); err != nil {
		t.Fatal(err)
	}
	snapshot, _ := p.files()
	data := p.disk.cached[snapshot].cache
	for _, at := range []int{100, len(data) / 3, len(data) / 2} {
		in, err := openRecords(p.disk, snapshot, fileMagicSnap)
		if err != nil {
			t.Fatal(err)
		}
		in.next = 1
		for in.at < uint64(at) {
			if _, _, err := in.read(); err != nil {
				t.Fatal(err)
			}
		}
		damaged := bytes.Clone(data)
		clear(damaged[in.at:][:frameBytes+3*contentBytes/2])
		read := 0
		in.file = countingSource{bytes.NewReader(damaged), &read}
		from, next := in.at, in.next
		ok, err := in.resync()
		if err != nil || !ok || in.next <= next {
			t.Fatalf("record %d is found: %v, %v", in.next, ok, err)
		}
		if most := 3 * (in.at - from); uint64(read) > most+2*mostWindow {
			t.Errorf("%d bytes were read to find the record %d bytes behind", read, in.at-from)
		}
	}
}
