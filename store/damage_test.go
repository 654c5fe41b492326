package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/long"
)

// populated returns a store with a snapshot of all kinds of values and a log after it,
// which ends with a mark that the rest is on disk.
func populated(t testing.TB, seed uint64) *harness {
	t.Helper()
	p := newHarness(seed, Always, flawNone)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	fill := func(name string, from int) {
		f, err := p.store.Open([]byte(name))
		if err != nil {
			t.Fatal(err)
		}
		var keys [][]byte
		for i := range 10 {
			keys = append(keys, fmt.Appendf(nil, "key %d", from+i))
		}
		p.addKeys(name, f, keys)
	}
	for i, spec := range modelSpecs {
		name := fmt.Sprint("filter ", i)
		f, err := p.store.Create(bg, name, spec)
		if err != nil {
			t.Fatal(err)
		}
		p.did(func(next modelState) { next[name] = newModel(f, spec) })
		fill(name, 0)
	}
	p.store.Set(bg, "text", []byte("some text"))
	p.did(func(next modelState) { next["text"] = &modelValue{kind: String, text: "some text"} })
	if err := p.store.Snapshot(bg); err != nil {
		t.Fatal(err)
	}
	for i := range modelSpecs {
		fill(fmt.Sprint("filter ", i), 10)
		p.commit()
	}
	p.store.Rename(bg, "text", "renamed")
	p.did(func(next modelState) { next["renamed"] = next["text"]; delete(next, "text") })
	p.commit()
	if err := p.store.log.syncNow(); err != nil {
		t.Fatal(err)
	}
	p.certain()
	return p
}

// files returns the names of the snapshot and of the log.
func (p *harness) files() (snapshot, log string) {
	for name := range p.disk.cached {
		switch {
		case len(starts([]string{name}, snapPrefix)) == 1:
			snapshot = name
		case len(starts([]string{name}, segmentPrefix)) == 1:
			log = name
		}
	}
	return snapshot, log
}

// again returns a copy of the harness with a copy of its disk, for another process.
func (p *harness) again() *harness {
	q := *p
	q.disk = p.disk.restart(false)
	q.disk.cached = map[string]*crashFile{}
	for name, file := range p.disk.cached {
		data := bytes.Clone(file.cache)
		q.disk.cached[name] = &crashFile{cache: data, disk: bytes.Clone(data)}
	}
	q.disk.synced = maps.Clone(q.disk.cached)
	q.disk.steps = nil
	return &q
}

// TestBitFlips flips every bit of the heads of snapshot, log and secrets, and many other
// bits: each flip is noticed, or does no harm.
func TestBitFlips(t *testing.T) {
	p := populated(t, 1)
	snapshot, log := p.files()
	detected, harmless := 0, 0
	for _, name := range []string{snapshot, log, secretsName} {
		size := len(p.disk.cached[name].cache)
		for bit := 0; bit < size*8; {
			q := p.again()
			q.disk.cached[name].cache[bit/8] ^= 1 << (bit % 8)
			err := q.open()
			switch {
			case err == nil:
				if err := q.check(p.states); err != nil {
					t.Fatalf("%s, bit %d: %v", name, bit, err)
				}
				harmless++
			case errors.Is(err, ErrDamaged), errors.Is(err, bloom.ErrVersion), errors.Is(err, bloom.ErrSecret):
				detected++
			default:
				t.Fatalf("%s, bit %d: %v", name, bit, err)
			}
			if bit < 8*(headBytes+100) {
				bit++
			} else {
				bit += 1 + p.rng.IntN(1000)
			}
		}
	}
	t.Logf("%d bits changed: %d noticed, %d harmless", detected+harmless, detected, harmless)
	if detected < 900 {
		t.Errorf("only %d were noticed", detected)
	}
}

// TestShortFiles truncates the files anywhere. That is noticed, except after the head of
// the log, which may have ended there. A missing file is noticed, too.
func TestShortFiles(t *testing.T) {
	long.Test(t)
	p := populated(t, 2)
	snapshot, log := p.files()
	for _, name := range []string{snapshot, log} {
		for size := range p.disk.cached[name].cache {
			if size%7 != 0 && size > headBytes+60 {
				continue
			}
			q := p.again()
			q.disk.cached[name].cache = q.disk.cached[name].cache[:size]
			err := q.open()
			damaged := name == snapshot || size < headBytes
			if errors.Is(err, ErrDamaged) != damaged || err != nil && !damaged {
				t.Fatalf("%s of %d bytes: %v", name, size, err)
			}
		}
	}
	for _, name := range []string{snapshot, log, secretsName} {
		q := p.again()
		delete(q.disk.cached, name)
		if err := q.open(); err == nil || !strings.Contains(err.Error(), "back") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestRepair damages files and repairs them. Repair lists beforehand what becomes unknown,
// and afterwards every key that was added is found in the filters that are still there.
func TestRepair(t *testing.T) {
	base := populated(t, 3)
	snapshot, log := base.files()
	config := func(p *harness) LocalConfig {
		return LocalConfig{seams: seams{disk: p.disk, now: base.store.config.now}}
	}
	for round := range 150 {
		p := base.again()
		name := []string{snapshot, log}[round%2]
		data := p.disk.cached[name].cache
		last := len(data)
		if name == log {
			last -= frameBytes + recordBytes + 8 // the last mark
		}
		at := headBytes + base.rng.IntN(last-headBytes)
		for i := range 1 + base.rng.IntN(30) {
			if at+i < last {
				data[at+i] ^= byte(1 + base.rng.IntN(255))
			}
		}
		before := p.again()
		if err := p.open(); err == nil {
			continue // it did no harm
		}
		if err := repair(config(before), func([]string) bool { return false }); !errors.Is(err, ErrDamaged) {
			t.Fatalf("round %d: repairing without consent: %v", round, err)
		}
		if got := slices.Sorted(maps.Keys(before.disk.cached)); len(got) != len(base.disk.cached) {
			t.Fatalf("round %d: there are %q", round, got)
		}
		var unknown []string
		if err := repair(config(before), func(what []string) bool { unknown = what; return true }); err != nil {
			t.Fatalf("round %d: %s, byte %d: repairing: %v", round, name, at, err)
		}
		if len(unknown) == 0 {
			t.Fatalf("round %d: nothing is unknown", round)
		}
		if before.disk.cached[asidePrefix+name] == nil {
			t.Errorf("round %d: %s is gone", round, name)
		}
		if err := before.open(); err != nil {
			t.Fatalf("round %d: opening what was repaired: %v", round, err)
		}
		told := strings.Join(unknown, "\n")
		for name, v := range base.now() {
			f, err := before.store.Open([]byte(name))
			if err != nil {
				if v.kind != String && !strings.Contains(told, "values") && !strings.Contains(told, name) {
					t.Fatalf("round %d: %q is gone, and it was said: %s", round, name, told)
				}
				continue
			}
			keys := make([][]byte, 0, len(v.keys))
			for key := range v.keys {
				keys = append(keys, []byte(key))
			}
			found := make([]bool, len(keys))
			f.Contains(bg, keys, found)
			if n := countTrue(found); n < len(keys) {
				t.Fatalf("round %d, %s, byte %d: %q has lost %d of %d keys; it was said: %s", round, name, at, name, len(keys)-n, len(keys), told)
			}
		}
	}
}

// FuzzRecords passes any records to the readers, with valid checksums.
func FuzzRecords(f *testing.F) {
	p := populated(f, 4)
	snapshot, log := p.files()
	for i, name := range []string{snapshot, log} {
		data := p.disk.cached[name].cache[headBytes:]
		var bare []byte // lengths and records, without their checksums and numbers
		for len(data) > 0 {
			n := int(order.Uint32(data))
			if n < 1000 {
				bare = order.AppendUint16(bare, uint16(n-8))
				bare = append(bare, data[frameBytes+8:][:n-8]...)
			}
			data = data[frameBytes+n:]
		}
		f.Add(i == 0, bare)
	}
	f.Fuzz(func(t *testing.T, isSnapshot bool, bare []byte) {
		q := p.again()
		name, next, magic := log, starts([]string{log}, segmentPrefix)[0], fileMagicLog
		if isSnapshot {
			name, next, magic = snapshot, 1, fileMagicSnap
		}
		file := fileHead{start: starts([]string{log}, segmentPrefix)[0], salt: 1, store: p.store.id}.encode(magic)
		for len(bare) > 2 {
			n := min(int(order.Uint16(bare)), len(bare)-2)
			record := append(order.AppendUint64(nil, next), bare[2:][:n]...)
			next++
			file = order.AppendUint32(file, uint32(len(record)))
			file = order.AppendUint32(file, sum(seed(1), record))
			file = append(file, record...)
			bare = bare[2+n:]
		}
		q.disk.cached[name] = &crashFile{cache: file}
		openAny(q)
	})
}

// FuzzFiles passes any bytes to the readers.
func FuzzFiles(f *testing.F) {
	p := populated(f, 5)
	snapshot, log := p.files()
	f.Add(true, p.disk.cached[snapshot].cache)
	f.Add(false, p.disk.cached[log].cache)
	f.Add(false, []byte{})
	f.Fuzz(func(t *testing.T, isSnapshot bool, data []byte) {
		q := p.again()
		name := log
		if isSnapshot {
			name = snapshot
		}
		q.disk.cached[name] = &crashFile{cache: data}
		openAny(q)
	})
}

// openAny inspects, as for a repair, and opens a directory whose files may have any
// contents. Neither may panic, and a store that opens must be usable.
func openAny(q *harness) {
	defer time.AfterFunc(5*time.Second, func() { panic("this takes too long") }).Stop()
	config := LocalConfig{Memory: 16 << 20, seams: seams{disk: q.disk, now: q.store.config.now, strict: true, idle: true}}
	repair(config, func([]string) bool { return false })
	var err error
	if q.store, err = OpenLocal(config); err != nil {
		return
	}
	names, _, _ := q.store.List(0, 100)
	for _, name := range names {
		if f, err := q.store.Open([]byte(name)); err == nil {
			f.Contains(bg, [][]byte{[]byte("key")}, []bool{false})
			f.Info()
		}
	}
	q.store.Close()
}
