package bloom

import (
	"fmt"
	"io"
	"math"

	"github.com/bloomery/bloom/internal/filterfile"
)

// stored lays the filter out as a file. An [Inside].Image of it keeps the layers, though the
// filter may drop them.
func (f *ScalableCounting) stored() (*filterfile.File, error) {
	var sections []filterfile.Section
	var words [][]uint64
	for _, layer := range f.layers {
		layer.mustBeOpen()
		sections = append(sections, filterfile.Section{
			Kind:   filterfile.SectionCounters,
			Probes: uint32(layer.plan.Probes),
			Blocks: layer.plan.Blocks,
			Keys:   layer.plan.Keys,
			Rate:   layer.plan.Rate,
			Added:  layer.live,
		})
		words = append(words, layer.counters.Words)
	}
	s := filterfile.New(filterfile.Header{
		Kind:       filterfile.KindScalableCounting,
		Scheme:     filterfile.SchemePaired,
		Hash:       f.id.stored(),
		Keys:       f.config.First,
		Rate:       f.config.Rate,
		Meta:       f.noted(),
		Parameters: [2]uint64{uint64(f.config.Growth), f.config.Budget},
	}, f.Len(), sections, words)
	s.Removed, s.Dropped = f.removed, f.dropped
	s.Live = f.layers
	return s, nil
}

func scalableCountingFrom(s *filterfile.File) (*ScalableCounting, error) {
	if err := s.MustHold(filterfile.KindScalableCounting); err != nil {
		return nil, err
	}
	growth := s.Parameters[0]
	if growth < 2 || growth > maxGrowth || s.Rate <= 0 || s.Rate >= 1 {
		return nil, fmt.Errorf("%w: growth %d at rate %g", ErrFormat, growth, s.Rate)
	}
	f := &ScalableCounting{
		config:  ScalableConfig{First: s.Keys, Rate: s.Rate, Growth: int(growth), Budget: s.Parameters[1]},
		Hasher:  hashIdentity(s.Hash).Hasher(),
		removed: s.Removed,
		dropped: s.Dropped,
	}
	f.note(s.Meta)
	if HashAlgorithm(s.Hash.Algorithm) == XXH3 {
		f.config.Seed = s.Hash.Key
	}
	for i, e := range s.Sections {
		plan := pairedPlan(e.Keys, e.Rate, &e)
		if math.Abs(plan.RateAt(e.Keys)-e.Rate) > 1e-6*e.Rate {
			return nil, fmt.Errorf("%w: %d keys in %d blocks do not have the rate %g", ErrFormat, e.Keys, e.Blocks, e.Rate)
		}
		layer := countersIn(s, i, plan)
		if layer.counters.Stuck > 0 { // then the counters do not show it
			layer.live = e.Added
		}
		f.layers = append(f.layers, layer)
	}
	switch plan, limit := f.Plan(), f.config.Budget; {
	case plan.Rate > s.Rate:
		return nil, fmt.Errorf("%w: layers of rate %g in a filter of rate %g", ErrFormat, plan.Rate, s.Rate)
	case limit != 0 && f.Bytes() > limit:
		return nil, fmt.Errorf("%w: layers of %d bytes under a limit of %d", ErrFormat, f.Bytes(), limit)
	}
	if newest := f.newest(); newest.live > newest.plan.Keys { // it was over-full, and Err must say so at once
		if _, err := f.nextPlan(); err != nil {
			f.err = f.overfull(err)
		}
	}
	return f, nil
}

// WriteTo writes the filter as a file; see [Filter.WriteTo].
func (f *ScalableCounting) WriteTo(w io.Writer) (int64, error) {
	s, err := f.stored()
	if err != nil {
		return 0, err
	}
	return s.WriteTo(w)
}

// Save writes the filter to a file at path; see [Filter.Save].
func (f *ScalableCounting) Save(path string) error { return filterfile.Save(path, f.WriteTo) }

// ReadScalableCounting reads a filter that [ScalableCounting.WriteTo] wrote; see [Read].
func ReadScalableCounting(r io.Reader, limitBytes int64) (*ScalableCounting, error) {
	return read(r, limitBytes, scalableCountingFrom)
}

// LoadScalableCounting reads the file at path; see [Load].
func LoadScalableCounting(path string) (*ScalableCounting, error) {
	return load(path, scalableCountingFrom)
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *ScalableCounting) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *ScalableCounting) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f; see [Filter.UnmarshalBinary].
func (f *ScalableCounting) UnmarshalBinary(data []byte) error {
	g, err := filterfile.UnmarshalBinary(data, ReadScalableCounting)
	if err != nil {
		return err
	}
	f.Hasher, f.config, f.layers = g.Hasher, g.config, g.layers
	f.dropped, f.removed, f.err = g.dropped, g.removed, g.err
	f.note(g.noted())
	return nil
}
