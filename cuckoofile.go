package bloom

import (
	"fmt"
	"io"
	"slices"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/memory"
)

// A Cuckoo's first parameter in a file is its iterations, and its growth above them, zero
// if it does not grow; its second the budget.
const growthShift = 32

func (f *Cuckoo) file() *filterfile.File {
	f.mustBeOpen()
	var sections []filterfile.Section
	var words [][]uint64
	stored := uint64(0)
	for i := range f.layers {
		t := &f.layers[i]
		e := filterfile.Section{Kind: filterfile.SectionBuckets, Probes: uint32(t.Size), Blocks: t.Buckets(), Keys: uint64(len(t.Slots)), Added: t.Used()}
		sections, words = append(sections, e), append(words, inFile(f.rooms[i].words))
		stored += e.Added
	}
	shape := f.shape()
	file := filterfile.New(
		filterfile.Header{
			Kind: filterfile.KindCuckoo, Scheme: filterfile.SchemeCuckoo, Hash: f.id.stored(), Keys: f.first.Keys, Rate: f.first.Rate, Meta: f.noted(),
			Parameters: [2]uint64{uint64(shape[1]) | uint64(shape[2])<<growthShift, f.config.Budget},
		},
		stored, sections, words,
	)
	file.Removed = f.removed
	return file
}

// inFile turns slots in memory into words as a file has them, or back. The first slot is
// the lowest byte of a word of the file, and the first byte of one in memory.
func inFile(words []uint64) []uint64 {
	if !memory.LittleEndian {
		words = slices.Clone(words)
		filterfile.LittleEndian(words)
	}
	return words
}

func cuckooFrom(s *filterfile.File) (*Cuckoo, error) {
	if err := s.MustHold(filterfile.KindCuckoo); err != nil {
		return nil, err
	}
	growth := s.Parameters[0] >> growthShift
	c := CuckooConfig{
		Keys: s.Keys, BucketSize: int(s.Sections[0].Probes), Iterations: int(uint32(s.Parameters[0]) & maxIterations),
		Growth: int(min(growth, maxCuckooGrowth)), NonScaling: growth == 0, Budget: s.Parameters[1],
	}
	rooms := make([]cuckooRoom, len(s.Words))
	for i := range rooms {
		rooms[i] = cuckooRoom{inFile(s.Words[i]), s.Memory[i]}
	}
	f, err := cuckooOf(c, hashIdentity(s.Hash).Hasher(), rooms)
	if err != nil {
		return nil, err
	}
	shape := f.shape()
	if s.Parameters[0] != uint64(shape[1])|uint64(shape[2])<<growthShift {
		return nil, fmt.Errorf("%w: a cuckoo filter with parameters %#x", ErrFormat, s.Parameters[0])
	}
	for i, e := range s.Sections {
		t := &f.layers[i]
		if t.Size != uint64(e.Probes) || t.Buckets() != e.Blocks || e.Keys != uint64(len(t.Slots)) || e.Rate != 0 || e.Added != t.Used() {
			return nil, fmt.Errorf("%w: section %d of a cuckoo filter has %d buckets of %d with %d fingerprints, not %d of %d with %d", ErrFormat, i, e.Blocks, e.Probes, e.Added, t.Buckets(), t.Size, t.Used())
		}
	}
	f.first.Rate = s.Rate
	f.stored, f.removed = s.Added, s.Removed
	f.note(s.Meta)
	return f, nil
}

// cuckooOf makes a filter of its layers, which it then owns. The error wraps [ErrFormat].
func cuckooOf(c CuckooConfig, hash Hasher, rooms []cuckooRoom) (*Cuckoo, error) {
	f, err := c.planned()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	case c.Iterations == 0:
		return nil, fmt.Errorf("%w: a cuckoo filter that moves no fingerprints", ErrFormat)
	case len(rooms) > MaxCuckooLayers || len(rooms) > 1 && c.NonScaling:
		return nil, fmt.Errorf("%w: a cuckoo filter with %d layers", ErrFormat, len(rooms))
	}
	f.Hasher = hash
	for i, room := range rooms {
		buckets, err := f.nextBuckets()
		if err != nil {
			return nil, fmt.Errorf("%w: layer %d: %w", ErrFormat, i, err)
		}
		if slots := buckets * uint64(c.BucketSize); uint64(len(room.words)) != (slots+7)/8 {
			return nil, fmt.Errorf("%w: layer %d of a cuckoo filter has %d bytes, not %d", ErrFormat, i, 8*len(room.words), slots)
		} else if !allZero(memory.Bytes(room.words)[slots:]) {
			return nil, fmt.Errorf("%w: layer %d of a cuckoo filter has more than %d slots", ErrFormat, i, slots)
		}
		f.append(room, buckets)
	}
	if slots := f.slots(); c.Budget != 0 && slots > c.Budget {
		return nil, fmt.Errorf("%w: a cuckoo filter of %d bytes, and a limit of %d", ErrFormat, slots, c.Budget)
	}
	return f, nil
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// WriteTo writes the filter as a file; see [Filter.WriteTo].
func (f *Cuckoo) WriteTo(w io.Writer) (int64, error) {
	defer f.keepAlive()
	return f.file().WriteTo(w)
}

// Save writes the filter to a file at path; see [Filter.Save].
func (f *Cuckoo) Save(path string) error { return filterfile.Save(path, f.WriteTo) }

// ReadCuckoo reads a filter that [Cuckoo.WriteTo] wrote; see [Read].
func ReadCuckoo(r io.Reader, limitBytes int64) (*Cuckoo, error) {
	return read(r, limitBytes, cuckooFrom)
}

// LoadCuckoo reads the file at path; see [Load].
func LoadCuckoo(path string) (*Cuckoo, error) { return load(path, cuckooFrom) }
