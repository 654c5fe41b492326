package classic

import (
	"fmt"
	"io"
	"maps"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/scheme"
)

// schemeMeta is the metadata key under which a file names a caller's scheme.
const schemeMeta = "scheme"

// SetMeta replaces the metadata; see [bloom.Metadata.SetMeta]. A file of a scheme
// made by [NewScheme] names the scheme by the key "scheme": metadata with that key
// are an error that wraps [bloom.ErrConfig].
func (f *Filter) SetMeta(meta map[string]string) error {
	if _, taken := meta[schemeMeta]; taken && f.scheme.Number() == scheme.Custom {
		return fmt.Errorf("%w: the metadata of this filter name its scheme: take another key than %q", bloom.ErrConfig, schemeMeta)
	}
	if err := filterfile.CheckMeta(f.withScheme(meta)); err != nil {
		return err
	}
	return f.Metadata.SetMeta(meta)
}

// withScheme returns the metadata of the file: meta, and the name of a caller's
// scheme.
func (f *Filter) withScheme(meta map[string]string) map[string]string {
	if f.scheme.Number() != scheme.Custom {
		return meta
	}
	both := map[string]string{schemeMeta: f.scheme.Name()}
	maps.Copy(both, meta)
	return both
}

// stored returns the filter as a file.
func (f *Filter) stored() *filterfile.File {
	f.mustBeOpen()
	id := f.HashIdentity()
	h := filterfile.Header{
		Kind:   filterfile.KindClassic,
		Scheme: uint32(f.scheme.Number()),
		Hash:   filterfile.Hash{Algorithm: uint32(id.Algorithm), Key: id.Key},
		Keys:   f.plan.Keys,
		Rate:   f.plan.Rate,
		Meta:   f.withScheme(f.Meta()),
	}
	return filterfile.New(h, f.added,
		[]filterfile.Section{{Kind: filterfile.SectionBits, Probes: uint32(f.plan.Probes), Blocks: f.plan.Bits}},
		[][]uint64{f.words})
}

// from returns the filter that a file holds. A caller's scheme is looked up in known.
func from(s *filterfile.File, known []Scheme) (*Filter, error) {
	if err := s.MustHold(filterfile.KindClassic); err != nil {
		return nil, err
	}
	rule, ok := SchemeNumbered(uint16(s.Scheme))
	meta := s.Meta
	if s.Scheme == scheme.Custom {
		name := meta[schemeMeta]
		if name == "" {
			return nil, fmt.Errorf("%w: it does not name its scheme", bloom.ErrFormat)
		}
		for _, k := range known {
			if k.Number() == scheme.Custom && k.Name() == name {
				rule, ok = k, true
			}
		}
		if !ok {
			return nil, fmt.Errorf("%w: the file is of the scheme %q: load it with that scheme", bloom.ErrVersion, name)
		}
		meta = maps.Clone(meta)
		delete(meta, schemeMeta)
	}
	if !ok {
		return nil, fmt.Errorf("%w: scheme %d is unknown", bloom.ErrVersion, s.Scheme)
	}
	e := s.Sections[0]
	if err := rule.fits(e.Blocks, int(e.Probes)); err != nil {
		return nil, fmt.Errorf("%w: %w", bloom.ErrFormat, err)
	}
	id := bloom.HashIdentity{Algorithm: bloom.HashAlgorithm(s.Hash.Algorithm), Key: s.Hash.Key}
	if !rule.hashedBy(id) {
		return nil, fmt.Errorf("%w: the scheme %s with the hash %v", bloom.ErrFormat, rule, id)
	}
	if err := noneBehind(s.Words[0], e.Blocks); err != nil {
		return nil, err
	}
	f := &Filter{
		Hasher: id.Hasher(),
		words:  s.Words[0],
		scheme: rule,
		added:  s.Added,
		plan:   bloom.Plan{Keys: s.Keys, Rate: s.Rate, Bits: e.Blocks, Probes: int(e.Probes), Blocks: e.Blocks, Layout: bloom.AnyBits},
		memory: s.Memory[0],
	}
	return f, f.Metadata.SetMeta(meta)
}

// WriteTo writes the filter as a file; see [bloom.Filter.WriteTo]. A scheme made by
// [NewScheme] is stored as its name.
func (f *Filter) WriteTo(w io.Writer) (int64, error) {
	defer f.keepAlive()
	return f.stored().WriteTo(w)
}

// Save writes the filter to a file at path; see [bloom.Filter.Save].
func (f *Filter) Save(path string) error { return filterfile.Save(path, f.WriteTo) }

// Read reads a filter that [Filter.WriteTo] wrote; see [bloom.Read]. If its scheme
// was made by [NewScheme], it must be among schemes.
func Read(r io.Reader, limitBytes int64, schemes ...Scheme) (*Filter, error) {
	s, err := filterfile.Read(r, limitBytes)
	if err != nil {
		return nil, err
	}
	return made(s, schemes)
}

// Load reads the file at path; see [bloom.Load] and [Read].
func Load(path string, schemes ...Scheme) (*Filter, error) {
	s, err := filterfile.Load(path)
	if err != nil {
		return nil, err
	}
	f, err := made(s, schemes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *Filter) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.plan.Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *Filter) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f; see [bloom.Filter.UnmarshalBinary]. A scheme made by
// [NewScheme] is recognised if it is f's.
func (f *Filter) UnmarshalBinary(data []byte) error {
	if f.readOnly {
		f.mustBeWritable()
	}
	var known []Scheme
	if f.scheme.rule != nil {
		known = []Scheme{f.scheme}
	}
	g, err := filterfile.UnmarshalBinary(data, func(r io.Reader, limitBytes int64) (*Filter, error) {
		return Read(r, limitBytes, known...)
	})
	if err != nil {
		return err
	}
	f.Hasher, f.words, f.scheme, f.added, f.plan, f.memory = g.Hasher, g.words, g.scheme, g.added, g.plan, g.memory
	return f.Metadata.SetMeta(g.Meta())
}

// made is from, but frees the file's memory if it fails.
func made(s *filterfile.File, schemes []Scheme) (*Filter, error) {
	f, err := from(s, schemes)
	if err != nil {
		s.Close()
		return nil, err
	}
	return f, nil
}
