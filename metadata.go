package bloom

import (
	"maps"
	"sync/atomic"

	"github.com/bloomery/bloom/internal/filterfile"
)

// Metadata is the part of a filter that describes it to people and programs: pairs
// such as source, licence or the normaliser of its keys. Every kind embeds one and
// stores it in its file. The zero Metadata is empty. Any number of goroutines may
// call its methods at once, also while others use the filter.
type Metadata struct {
	pairs atomic.Pointer[map[string]string] // nil or not empty; the map never changes
}

// Meta returns a copy of the metadata, nil if there are none.
func (m *Metadata) Meta() map[string]string { return maps.Clone(m.noted()) }

// SetMeta replaces the metadata. They must fit in the header page of a file, or the
// error wraps [ErrLimit] and nothing has changed. The next WriteTo or Save writes
// them; a file that is open, for reading or for update, keeps those it has.
func (m *Metadata) SetMeta(meta map[string]string) error {
	if err := filterfile.CheckMeta(meta); err != nil {
		return err
	}
	m.note(maps.Clone(meta))
	return nil
}

// note is SetMeta for a map that fits and that nobody changes.
func (m *Metadata) note(meta map[string]string) {
	if len(meta) == 0 {
		m.pairs.Store(nil)
		return
	}
	m.pairs.Store(&meta)
}

// noted is Meta for callers that only read.
func (m *Metadata) noted() map[string]string {
	if pairs := m.pairs.Load(); pairs != nil {
		return *pairs
	}
	return nil
}
