package filterfile_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/memory"
)

// Package bloom tests this package with real filters: every field, damage at every
// byte, golden files and power cuts. These tests use it as another package would, with
// nothing but numbers and words.

// sample returns a file of a kind, with arbitrary words.
func sample(kind filterfile.Kind) *filterfile.File {
	const xxh3, xxh64 = 1, 3
	h := filterfile.Header{
		Kind: kind, Scheme: filterfile.SchemePaired, Hash: filterfile.Hash{Algorithm: xxh3, Key: 7},
		Keys: 1000, Rate: 0.01, Meta: map[string]string{"source": "Fiume", "": "x"},
	}
	paired := filterfile.Section{Kind: filterfile.SectionPaired, Probes: 8, Blocks: 3}
	lengths := []int{3 * 64} // words
	sections := []filterfile.Section{paired}
	added := uint64(5)
	switch kind {
	case filterfile.KindSplitBlock:
		h.Scheme, h.Hash.Algorithm = filterfile.SchemeSplit, xxh64
		sections[0] = filterfile.Section{Kind: filterfile.SectionSplit, Probes: 8, Blocks: 3}
		lengths[0] = 3 * 4
	case filterfile.KindClassic:
		h.Scheme = 12
		sections[0] = filterfile.Section{Kind: filterfile.SectionBits, Probes: 7, Blocks: 1000}
		lengths[0] = 16
	case filterfile.KindCounting:
		sections[0].Kind = filterfile.SectionCounters
		lengths[0] *= 4
	case filterfile.KindScalableCounting:
		h.Parameters = [2]uint64{2, 1 << 30}
		sections[0] = filterfile.Section{Kind: filterfile.SectionCounters, Probes: 8, Blocks: 3, Keys: 700, Rate: 0.005, Added: 3}
		lengths[0] *= 4
		sections = append(sections, sections[0])
		sections[1].Added = 2
		lengths = append(lengths, lengths[0])
	case filterfile.KindScalable, filterfile.KindWindow:
		h.Parameters = [2]uint64{2, 1 << 30}
		sections[0].Keys, sections[0].Rate, sections[0].Added = 700, 0.005, 3
		sections = append(sections, sections[0])
		sections[1].Added = 2
		lengths = append(lengths, lengths[0])
	case filterfile.KindExceptions:
		sections = append(sections, filterfile.Section{Kind: filterfile.SectionKeys, Blocks: 2})
		lengths = append(lengths, 5)
	case filterfile.KindCuckoo:
		const murmur64A = 4
		h.Scheme, h.Hash.Algorithm = filterfile.SchemeCuckoo, murmur64A
		h.Parameters = [2]uint64{20, 0}
		sections[0] = filterfile.Section{Kind: filterfile.SectionBuckets, Probes: 3, Blocks: 4, Keys: 12, Added: 5}
		lengths[0] = 2
	}
	rng := rand.New(rand.NewPCG(1, uint64(kind)))
	words := make([][]uint64, len(lengths))
	for i, n := range lengths {
		for range n {
			words[i] = append(words[i], rng.Uint64())
		}
	}
	return filterfile.New(h, added, sections, words)
}

var kinds = []filterfile.Kind{
	filterfile.KindFilter, filterfile.KindSplitBlock, filterfile.KindClassic, filterfile.KindCounting,
	filterfile.KindScalable, filterfile.KindWindow, filterfile.KindExceptions, filterfile.KindCuckoo,
	filterfile.KindScalableCounting,
}

func written(t *testing.T, f *filterfile.File) []byte {
	t.Helper()
	var file bytes.Buffer
	n, err := f.WriteTo(&file)
	if err != nil || n != int64(file.Len()) || uint64(n) != f.FileBytes {
		t.Fatalf("WriteTo = %d, %v, of %d bytes; FileBytes is %d", n, err, file.Len(), f.FileBytes)
	}
	return file.Bytes()
}

func TestRoundTrip(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			f := sample(kind)
			file := written(t, f)
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, file, 0o666); err != nil {
				t.Fatal(err)
			}
			for name, read := range map[string]func() (*filterfile.File, error){
				"Read": func() (*filterfile.File, error) { return filterfile.Read(bytes.NewReader(file), int64(len(file))) },
				"Load": func() (*filterfile.File, error) { return filterfile.Load(path) },
				"Open": func() (*filterfile.File, error) { return filterfile.Open(path) },
			} {
				g, err := read()
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if g.Kind != f.Kind || g.Scheme != f.Scheme || g.Hash != f.Hash || g.Keys != f.Keys || g.Rate != f.Rate ||
					g.Parameters != f.Parameters || !maps.Equal(g.Meta, f.Meta) || g.Added != f.Added || !slices.Equal(g.Sections, f.Sections) {
					t.Errorf("%s: %+v %+v, want %+v %+v", name, g.Header, g.State, f.Header, f.State)
				}
				if !slices.EqualFunc(g.Words, f.Words, slices.Equal[[]uint64]) {
					t.Errorf("%s: the words differ", name)
				}
				if !bytes.Equal(written(t, g), file) {
					t.Errorf("%s: written again, the file differs", name)
				}
				g.Close()
			}
			if len(f.Sections) == 1 && filterfile.FileBytes(f.Sections[0].Length) != uint64(len(file)) {
				t.Errorf("FileBytes = %d of %d bytes", filterfile.FileBytes(f.Sections[0].Length), len(file))
			}
			if err := filterfile.Verify(file); err != nil {
				t.Error(err)
			}
			if got, err := filterfile.KindOf(path); got != kind || err != nil {
				t.Errorf("KindOf = %v, %v", got, err)
			}
			image, err := f.Image()
			if err != nil {
				t.Fatal(err)
			}
			if piece, err := image.Piece(0, 2<<20); err != nil || !bytes.Equal(piece, file) {
				t.Errorf("the image has %d bytes, %v, and they are not the file's", len(piece), err)
			}
			for _, other := range kinds {
				if err := f.MustHold(other); (err == nil) != (other == kind) || err != nil && !errors.Is(err, filterfile.ErrVersion) {
					t.Errorf("MustHold(%v) = %v", other, err)
				}
			}
		})
	}
}

// TestDamage: a file that is cut or changed anywhere is refused.
func TestDamage(t *testing.T) {
	sentinels := []error{filterfile.ErrFormat, filterfile.ErrVersion, filterfile.ErrChecksum, filterfile.ErrLimit}
	file := written(t, sample(filterfile.KindExceptions)) // which has zeros between two sections
	for at := range file {
		if _, err := filterfile.Read(bytes.NewReader(file[:at]), 1<<30); !errors.Is(err, filterfile.ErrFormat) {
			t.Fatalf("cut at byte %d: %v", at, err)
		}
		file[at] ^= 1 << (at % 8)
		_, err := filterfile.Read(bytes.NewReader(file), 1<<30)
		if !slices.ContainsFunc(sentinels, func(s error) bool { return errors.Is(err, s) }) {
			t.Fatalf("changed at byte %d: %v", at, err)
		}
		if filterfile.Verify(file) == nil {
			t.Fatalf("changed at byte %d: verified", at)
		}
		file[at] ^= 1 << (at % 8)
	}
	if _, err := filterfile.Read(bytes.NewReader(file), int64(len(file))-1); !errors.Is(err, filterfile.ErrLimit) {
		t.Errorf("above the limit: %v", err)
	}
}

// TestRefuses: fields that contradict each other are refused even if all checksums
// match.
func TestRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind filterfile.Kind
		set  func(f *filterfile.File)
		want error
	}{
		{"kind 99", filterfile.KindFilter, func(f *filterfile.File) { f.Kind = 99 }, filterfile.ErrVersion},
		{"hash 3 of a Filter", filterfile.KindFilter, func(f *filterfile.File) { f.Hash.Algorithm = 3 }, filterfile.ErrVersion},
		{"a hash that is 1 in its low byte", filterfile.KindFilter, func(f *filterfile.File) { f.Hash.Algorithm = 257 }, filterfile.ErrVersion},
		{"scheme 2 of a Filter", filterfile.KindFilter, func(f *filterfile.File) { f.Scheme = 2 }, filterfile.ErrVersion},
		{"a Classic's scheme above 16 bits", filterfile.KindClassic, func(f *filterfile.File) { f.Scheme = 1 << 16 }, filterfile.ErrVersion},
		{"no keys", filterfile.KindFilter, func(f *filterfile.File) { f.Keys = 0 }, filterfile.ErrFormat},
		{"too many keys", filterfile.KindFilter, func(f *filterfile.File) { f.Keys = filterfile.MaxKeys + 1 }, filterfile.ErrFormat},
		{"rate 2", filterfile.KindFilter, func(f *filterfile.File) { f.Rate = 2 }, filterfile.ErrFormat},
		{"parameters of a Filter", filterfile.KindFilter, func(f *filterfile.File) { f.Parameters[1] = 1 }, filterfile.ErrFormat},
		{"odd k", filterfile.KindFilter, func(f *filterfile.File) { f.Sections[0].Probes = 7 }, filterfile.ErrFormat},
		{"another number of blocks", filterfile.KindFilter, func(f *filterfile.File) { f.Sections[0].Blocks++ }, filterfile.ErrFormat},
		{"a section of another kind", filterfile.KindFilter, func(f *filterfile.File) { f.Sections[0].Kind = filterfile.SectionCounters }, filterfile.ErrFormat},
		{"a section of no kind", filterfile.KindFilter, func(f *filterfile.File) { f.Sections[0].Kind = 99 }, filterfile.ErrVersion},
		{"n in a section of a Filter", filterfile.KindFilter, func(f *filterfile.File) { f.Sections[0].Keys = 1 }, filterfile.ErrFormat},
		{"no n in a layer", filterfile.KindScalable, func(f *filterfile.File) { f.Sections[1].Keys = 0 }, filterfile.ErrFormat},
		{"a start in a layer", filterfile.KindScalable, func(f *filterfile.File) { f.Sections[1].Start = 1 }, filterfile.ErrFormat},
		{"counts that do not add up", filterfile.KindScalable, func(f *filterfile.File) { f.Added++ }, filterfile.ErrFormat},
		{"scheme 1 of a Cuckoo", filterfile.KindCuckoo, func(f *filterfile.File) { f.Scheme = 1 }, filterfile.ErrVersion},
		{"hash 1 of a Cuckoo", filterfile.KindCuckoo, func(f *filterfile.File) { f.Hash.Algorithm = 1 }, filterfile.ErrVersion},
		{"3 buckets", filterfile.KindCuckoo, func(f *filterfile.File) { f.Sections[0].Blocks = 3 }, filterfile.ErrFormat},
		{"8 buckets in the length of 4", filterfile.KindCuckoo, func(f *filterfile.File) { f.Sections[0].Blocks = 8 }, filterfile.ErrFormat},
		{"buckets of 256", filterfile.KindCuckoo, func(f *filterfile.File) { f.Sections[0].Probes = 256 }, filterfile.ErrFormat},
		{"buckets of none", filterfile.KindCuckoo, func(f *filterfile.File) { f.Sections[0].Probes = 0 }, filterfile.ErrFormat},
		{"2^35 buckets", filterfile.KindCuckoo, func(f *filterfile.File) { f.Sections[0].Blocks = 1 << 35 }, filterfile.ErrFormat},
		{"no n in a layer of counters", filterfile.KindScalableCounting, func(f *filterfile.File) { f.Sections[1].Keys = 0 }, filterfile.ErrFormat},
		{"a layer of bits among counters", filterfile.KindScalableCounting, func(f *filterfile.File) { f.Sections[1].Kind = filterfile.SectionPaired }, filterfile.ErrFormat},
		{"dropped layers of a Scalable", filterfile.KindScalable, func(f *filterfile.File) { f.Dropped = 1 }, filterfile.ErrFormat},
		{"dropped layers of a Cuckoo", filterfile.KindCuckoo, func(f *filterfile.File) { f.Dropped = 1 }, filterfile.ErrFormat},
		{"removals of a Filter", filterfile.KindFilter, func(f *filterfile.File) { f.Removed = 1 }, filterfile.ErrFormat},
		{"a longer file", filterfile.KindFilter, func(f *filterfile.File) { f.FileBytes++ }, filterfile.ErrFormat},
		{"not clean", filterfile.KindFilter, func(f *filterfile.File) { f.Clean = false }, filterfile.ErrUnclean},
	} {
		f := sample(tt.kind)
		tt.set(f)
		var file bytes.Buffer
		if _, err := f.WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		if _, err := filterfile.Read(&file, 1<<30); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestCheckMeta(t *testing.T) {
	const room = filterfile.MaxMetaBytes - 2 - 4 // minus the count and two lengths
	for n, want := range map[int]error{0: nil, room: nil, room + 1: filterfile.ErrLimit} {
		if err := filterfile.CheckMeta(map[string]string{"": strings.Repeat("v", n)}); !errors.Is(err, want) {
			t.Errorf("CheckMeta of %d bytes = %v, want %v", n, err, want)
		}
	}
}

// TestReadWords: ReadWords returns the words that were written, in memory that grows as
// they arrive.
func TestReadWords(t *testing.T) {
	words := make([]uint64, 3*filterfile.SpanBytes/8+5)
	for i := range words {
		words[i] = rand.Uint64()
	}
	reverse := func(part []uint64) {
		for i := range part {
			part[i] = ^part[i]
		}
	}
	for _, length := range []uint64{uint64(len(words)) * 8, uint64(len(words))*8 - 3} {
		var file bytes.Buffer
		if n, err := filterfile.WriteWords(&file, words, length, reverse); uint64(n) != length || err != nil {
			t.Fatalf("WriteWords = %d, %v", n, err)
		}
		for _, r := range []io.Reader{bytes.NewReader(file.Bytes()), io.MultiReader(bytes.NewReader(file.Bytes()))} { // with and without Len
			got, mapping, err := filterfile.ReadWords(r, length, reverse)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(memory.Bytes(got)[:length], memory.Bytes(words)[:length]) {
				t.Errorf("%d bytes: the words differ", length)
			}
			mapping.Close()
		}
		_, mapping, err := filterfile.ReadWords(bytes.NewReader(file.Bytes()[1:]), length, reverse)
		if !errors.Is(err, filterfile.ErrFormat) {
			t.Errorf("a byte too few: %v", err)
		}
		mapping.Close()
	}
}

// TestUpdater: a file is created, changed and extended, then abandoned by its writer,
// and mended.
func TestUpdater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	like := sample(filterfile.KindScalable)
	layer := like.Sections[0]
	layer.Added = 0
	f := filterfile.NewEmpty(like.Header, []filterfile.Section{layer})
	u, err := filterfile.Create(path, f)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("files cannot be changed in place here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := filterfile.OpenUpdate(path); !errors.Is(err, memory.ErrLocked) {
		t.Errorf("a second writer: %v", err)
	}
	count := func(n uint64) func(*filterfile.State) {
		return func(s *filterfile.State) { s.Added, s.Sections[0].Added = n, n }
	}
	want := func(n uint64, bits ...uint64) {
		t.Helper()
		g, err := filterfile.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		var got []uint64
		for _, words := range g.Words {
			got = append(got, words[0])
		}
		if g.Added != n || !slices.Equal(got, bits) {
			t.Errorf("%d adds, words %x, want %d, %x", g.Added, got, n, bits)
		}
	}
	want(0, 0)

	u.Begin()
	f.Words[0][0] = 1
	u.Touch(0)
	if _, err := filterfile.Load(path); !errors.Is(err, filterfile.ErrUnclean) || !errors.Is(err, filterfile.ErrChecksum) {
		t.Errorf("a file that is changing: %v", err)
	}
	if err := u.Sync(count(1)); err != nil || u.Changing() {
		t.Fatalf("Sync: %v, changing %v", err, u.Changing())
	}
	want(1, 1)

	words, mapping, err := u.Append(layer)
	if err != nil {
		t.Fatal(err)
	}
	words[0] = 2
	u.Touch(0)
	if err := u.Sync(count(1)); err != nil {
		t.Fatal(err)
	}
	want(1, 1, 2)
	if err := u.Verify(); err != nil {
		t.Error(err)
	}

	u.Begin()
	words[0] = 3
	u.Touch(0)
	f.Close() // as a process that is killed leaves it
	mapping.Close()
	u.File().Close()

	u, g, err := filterfile.OpenUpdate(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Mend(g, count(2)); err != nil || !u.Recovered() {
		t.Errorf("Mend: %v, recovered %v", err, u.Recovered())
	}
	g.Close()
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	want(2, 1, 3)

	unlock, err := filterfile.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filterfile.Lock(path); !errors.Is(err, memory.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	unlock()
}
