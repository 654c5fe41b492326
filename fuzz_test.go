package bloom_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/bloomery/bloom"
)

// FuzzRead gives Read the bytes as they are, and then as the beginnings of a
// file's three pages and body, each filled up with zeros, with its checksum put
// right. So the fuzzer gets behind the checksums, and its inputs are short: those
// above some 200 bytes it minimizes for a minute each.
func FuzzRead(f *testing.F) {
	add := func(file []byte) { seed(f, file) }
	for _, s := range shapes() {
		if s.bytes > body+16*block {
			continue
		}
		file := fileOf(f, s.filter(f))
		add(file)
		add(withState(file, [2]uint64{3, 4}, [2]uint64{1, 2}))
		add(withState(file, [2]uint64{0, 1}, [2]uint64{1, 2}))
		for at, value := range map[int]byte{8: 1, 16: 2, 64: 0xff, stateAt + 8: 0, stateAt + 12: 2, sectionAt + 4: 4, sectionAt + 24: 2, sectionAt + 27: 1} {
			changed := slices.Clone(file)
			changed[at] = value
			add(changed)
		}
	}
	add(claim(f, 1<<33))
	f.Fuzz(func(t *testing.T, header, state, state2, rest []byte) {
		readAnything(t, slices.Concat(header, state, state2, rest))
		readAnything(t, ofParts(header, state, state2, rest))
	})
}

// seed adds the beginnings of a file's three pages and its body, without the zeros that
// follow.
func seed(f *testing.F, file []byte) {
	const short = 128
	trim := func(b []byte) []byte { return bytes.TrimRight(b[:min(len(b), short)], "\x00") }
	f.Add(trim(file), trim(file[stateAt:]), trim(file[state2At:]), trim(file[body:]))
}

// ofParts puts a file together from its parts, filled up with zeros, with its checksums put
// right.
func ofParts(header, state, state2, rest []byte) []byte {
	file := make([]byte, body, body+len(rest))
	copy(file[:page-4], header)
	copy(file[stateAt:state2At-4], state)
	copy(file[state2At:body-4], state2)
	file = append(file, rest...)
	size := le.Uint64(file[stateAt+32:])
	if le.Uint64(file[state2At:]) > le.Uint64(file[stateAt:]) {
		size = le.Uint64(file[state2At+32:])
	}
	if size <= body+64*block {
		file = append(file, make([]byte, max(int(size)-len(file), 0))...)
	}
	sealAll(file)
	return file
}

// sealAll puts right the checksums of all pages that are there, and of the body
// if the file is as long as one whose body is below one MiB.
func sealAll(file []byte) {
	for at := 0; at < body && at+page <= len(file); at += page {
		if at != state2At || slices.ContainsFunc(file[at:at+page], func(b byte) bool { return b != 0 }) {
			seal(file, at)
		}
	}
	if end := len(file) - 8; end > body && end <= body+mib {
		le.PutUint32(file[end:], sumOf(file[body:end]))
		le.PutUint32(file[end+4:], sumOf(file[end:end+4]))
	}
}

// readAnything reads what may be a file, and checks what Read promises.
func readAnything(t *testing.T, file []byte) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := bytes.NewReader(file)
	f, err := bloom.Read(r, math.MaxInt64)
	runtime.ReadMemStats(&after)
	// Three pages of head, one MiB for a body before it comes, twice what came.
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(4*mib+3*len(file)) {
		t.Fatalf("Read of %d bytes allocated %d", len(file), took)
	}
	if err != nil {
		if f != nil || !isSentinel(err) {
			t.Fatalf("Read = %v, %v: want no filter and an error that is in errors.go", f, err)
		}
		return
	}
	defer f.Close()
	if _, err := bloom.Read(bytes.NewReader(file), bloom.Inside.FileBytes(f)-1); !errors.Is(err, bloom.ErrLimit) {
		t.Fatalf("Read with a limit of one byte less: got error %v, want ErrLimit", err)
	}

	// Written again it is the same file, but that the state becomes the first.
	file = file[:len(file)-r.Len()]
	again := fileOf(t, f)
	if !bytes.Equal(again, normal(file)) {
		t.Fatal("read and written again, the file is another")
	}
	g, err := bloom.Read(bytes.NewReader(again), int64(len(again)))
	if err != nil {
		t.Fatalf("read and written again, the file is not a file: %v", err)
	}
	defer g.Close()
	if !g.Equal(f) || g.Plan() != f.Plan() || bloom.Inside.FileBytes(f) != int64(len(file)) {
		t.Fatalf("read and written again, %v is %v", f, g)
	}

	// It works as a filter does.
	_, _ = f.Report(), f.String()
	if f.NeedsSecret() {
		f.SetSecret(testSecret)
	} else {
		f.ContainsString("Titanic")
	}
	for _, h := range []uint64{0, 1, 1 << 63, math.MaxUint64} {
		f.ContainsHash(h)
		if f.AddHash(h); !f.ContainsHash(h) || !f.Clone().ContainsHash(h) {
			t.Fatalf("%v lost hash %#x", f, h)
		}
	}
}

// normal returns a file as it would be written: its state is the first.
func normal(file []byte) []byte {
	file = slices.Clone(file)
	if state, second := file[stateAt:state2At], file[state2At:body]; le.Uint64(second) > le.Uint64(state) {
		copy(state, second)
	}
	clear(file[state2At:body])
	le.PutUint64(file[stateAt:], 1)
	seal(file, stateAt)
	return file
}

// FuzzReadCuckoo is FuzzRead for a Cuckoo, of one or more layers.
func FuzzReadCuckoo(f *testing.F) {
	for _, c := range []bloom.CuckooConfig{
		{Keys: 4},
		{Keys: 4, NonScaling: true, Iterations: 500, Budget: 4},
		{Keys: 2, BucketSize: 3, Growth: 4},
		{Keys: 9, BucketSize: 9, Secret: testSecret},
		{Keys: 1, BucketSize: 1, Growth: 2, Iterations: 1},
	} {
		filter := mustCuckoo(f, c)
		for i := range uint64(20) {
			filter.AddUint64(i)
			filter.RemoveUint64(i / 4)
		}
		var file bytes.Buffer
		if _, err := filter.WriteTo(&file); err != nil {
			f.Fatal(err)
		}
		seed(f, file.Bytes())
		for _, at := range []int{34, 48, 49, 52, 54, 56, stateAt + 16, stateAt + 40, sectionAt + 4, sectionAt + 24, sectionAt + 32} {
			changed := slices.Clone(file.Bytes())
			changed[at] ^= 2
			seed(f, changed)
		}
	}
	f.Fuzz(func(t *testing.T, header, state, state2, rest []byte) {
		readAnyCuckoo(t, slices.Concat(header, state, state2, rest))
		readAnyCuckoo(t, ofParts(header, state, state2, rest))
	})
}

// readAnyCuckoo is readAnything for a Cuckoo.
func readAnyCuckoo(t *testing.T, file []byte) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := bytes.NewReader(file)
	f, err := bloom.ReadCuckoo(r, math.MaxInt64)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(4*mib+3*len(file)) {
		t.Fatalf("ReadCuckoo of %d bytes allocated %d", len(file), took)
	}
	if err != nil {
		if f != nil || !isSentinel(err) {
			t.Fatalf("ReadCuckoo = %v, %v: want no filter and an error that is in errors.go", f, err)
		}
		return
	}
	defer f.Close()
	var again bytes.Buffer
	if _, err := f.WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), normal(file[:len(file)-r.Len()])) {
		t.Fatalf("read and written again, the file is another; %v", err)
	}

	// It works as a filter does. Growth is bounded here, as by a server.
	_, _, _ = f.Report(), f.Plan(), f.String()
	if f.Config().Growth > 4 {
		return
	}
	for _, h := range []uint64{0, 1, 1 << 63, math.MaxUint64} {
		held := f.Len()
		if err := f.InsertHash(h); err == nil && (!f.ContainsHash(h) || f.CountHash(h) == 0 || f.Len() != held+1) {
			t.Fatalf("%v lost hash %#x", f, h)
		} else if err != nil && f.Len() != held {
			t.Fatalf("%v: hash %#x: %v", f, h, err)
		}
		if f.RemoveHash(h + 7); f.Len() > held+1 {
			t.Fatalf("%v counts wrongly", f)
		}
	}
	f.Compact()
	f.RemoveHashes([]uint64{0, 1, 2, 3, 1 << 63}, nil)
}
