package bloom

import (
	"fmt"
	"io"
	"maps"
	"sync/atomic"

	"github.com/bloomery/bloom/internal/filterfile"
)

// Any is a filter of any kind: what [Filter], [Shared], [SplitBlock], [Counting],
// [ScalableCounting], [Cuckoo], [Scalable], [Window] and [Exceptions] have in common with each
// other and with the filters of other programs. Use a type switch for the kind, and a type assertion for
// methods that only some kinds have. A filter from [LoadAny], [ReadAny] or [OpenAny]
// also has WriteTo, Save and all methods of [Hasher] and [Metadata].
type Any interface {
	// Add and AddMany report which keys are certainly new; see [Filter.AddMany].
	Add(key []byte) (isNew bool)
	AddMany(keys [][]byte, isNew []bool) int

	// Contains and ContainsMany report which keys are probably in the filter; see
	// [Filter.ContainsMany].
	Contains(key []byte) (found bool)
	ContainsMany(keys [][]byte, found []bool) int

	Plan() Plan     // the sizing in force
	Report() Report // what the bits say
	Close() error   // see [Filter.Close]
}

// LoadAny reads the file at path, whatever kind of filter it holds; see [Load]. Only
// package classic reads its own filters. A Window uses the system's clock; see
// [LoadWindow].
func LoadAny(path string) (Any, error) { return load(path, anyFrom) }

// ReadAny reads a filter of any kind from a stream; see [Read] and [LoadAny].
func ReadAny(r io.Reader, limitBytes int64) (Any, error) { return read(r, limitBytes, anyFrom) }

// OpenAny is LoadAny, but maps the file if its kind allows; see [Open] and
// [OpenScalable].
func OpenAny(path string) (Any, error) {
	switch kind, err := KindOf(path); {
	case err != nil:
		return nil, err
	case kind == KindFilter:
		return orNone(Open(path))
	case kind == KindScalable:
		return orNone(OpenScalable(path))
	}
	return LoadAny(path)
}

// anyFrom makes the filter that a file holds.
func anyFrom(s *filterfile.File) (Any, error) {
	switch s.Kind {
	case filterfile.KindFilter:
		return orNone(filterFrom(s))
	case filterfile.KindSplitBlock:
		return orNone(splitBlockFrom(s))
	case filterfile.KindClassic:
		return nil, fmt.Errorf("%w: the file holds a Classic: use package classic", ErrVersion)
	case filterfile.KindCounting:
		return orNone(countingFrom(s))
	case filterfile.KindScalable:
		return orNone(scalableInMemory(s))
	case filterfile.KindWindow:
		return orNone(windowFrom(s, nil))
	case filterfile.KindExceptions:
		return orNone(exceptionsFrom(s))
	case filterfile.KindCuckoo:
		return orNone(cuckooFrom(s))
	case filterfile.KindScalableCounting:
		return orNone(scalableCountingFrom(s))
	}
	return nil, fmt.Errorf("%w: kind %d", ErrVersion, s.Kind) // filterfile has refused it
}

// orNone returns a nil interface, not a nil pointer in one, with an error.
func orNone[F Any](f F, err error) (Any, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Kind says which type of filter a file holds. The numbers are stored in files and
// never change meaning.
type Kind uint16

// The kinds, and what reads them.
const (
	KindFilter     Kind = Kind(filterfile.KindFilter)     // [Load], [Open], [Read]
	KindSplitBlock Kind = Kind(filterfile.KindSplitBlock) // [LoadSplitBlock]
	KindClassic    Kind = Kind(filterfile.KindClassic)    // classic.Load
	KindCounting   Kind = Kind(filterfile.KindCounting)   // [LoadCounting]
	KindScalable   Kind = Kind(filterfile.KindScalable)   // [LoadScalable]
	KindWindow     Kind = Kind(filterfile.KindWindow)     // [LoadWindow]
	KindExceptions Kind = Kind(filterfile.KindExceptions) // [LoadExceptions]
	KindCuckoo     Kind = Kind(filterfile.KindCuckoo)     // [LoadCuckoo]

	KindScalableCounting Kind = Kind(filterfile.KindScalableCounting) // [LoadScalableCounting]
)

// String is the type's name in lower case, such as "splitblock".
func (k Kind) String() string { return filterfile.Kind(k).String() }

// KindOf returns the kind of filter in the file at path. It reads the first page only.
// The error is as for [Load]; it wraps [ErrFormat] if the file is not one of ours.
func KindOf(path string) (Kind, error) {
	kind, err := filterfile.KindOf(path)
	return Kind(kind), err
}

// Metadata describes a filter to people and programs: pairs such as source, licence or
// the normaliser of its keys. Every kind embeds one and stores it in its file. The zero
// Metadata is empty. Any number of goroutines may call its methods at once, also while
// others use the filter.
type Metadata struct {
	pairs atomic.Pointer[map[string]string] // nil or not empty; the map never changes
}

// Meta returns a copy of the metadata, nil if there is none.
func (m *Metadata) Meta() map[string]string { return maps.Clone(m.noted()) }

// SetMeta replaces the metadata. It must fit in the header page of a file, or the error
// wraps [ErrLimit] and nothing has changed. The next WriteTo or Save writes it; an open
// file keeps the metadata that it has.
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
