package bloom

import (
	"fmt"
	"io"
)

// Any is a filter of whatever kind: what [Filter], [Shared], [SplitBlock],
// [Classic], [Counting], [Scalable], [Window] and [Exceptions] have in common, and
// the filters of other programs, too. A type switch gives the kind, and a type
// assertion what only some kinds have; those from [LoadAny] and its kin also have
// WriteTo, Save and all methods of [Hasher] and [Metadata].
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

// LoadAny reads the file at path, whatever kind of filter it holds; see [Load]. A
// Classic under a scheme of [NewScheme] takes [LoadClassic]. A Window goes by the
// system's clock; see [LoadWindow].
func LoadAny(path string) (Any, error) { return load(path, anyFrom) }

// ReadAny reads a filter of any kind from a stream; see [Read] and [LoadAny].
func ReadAny(r io.Reader, limitBytes int64) (Any, error) { return read(r, limitBytes, anyFrom) }

// OpenAny is LoadAny, but maps the file where its kind can be mapped: see [Open] and
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
func anyFrom(s *stored) (Any, error) {
	switch s.kind {
	case kindFilter:
		return orNone(filterFrom(s))
	case kindSplitBlock:
		return orNone(splitBlockFrom(s))
	case kindClassic:
		return orNone(classicFrom(s, nil))
	case kindCounting:
		return orNone(countingFrom(s))
	case kindScalable:
		return orNone(scalableInMemory(s))
	case kindWindow:
		return orNone(windowFrom(s, nil))
	case kindExceptions:
		return orNone(exceptionsFrom(s))
	}
	return nil, fmt.Errorf("%w: kind %d", ErrVersion, s.kind) // decodeHeader has refused it
}

// orNone makes a nil interface of a nil pointer.
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
	KindFilter     Kind = kindFilter     // [Load], [Open], [Read]
	KindSplitBlock Kind = kindSplitBlock // [LoadSplitBlock]
	KindClassic    Kind = kindClassic    // [LoadClassic]
	KindCounting   Kind = kindCounting   // [LoadCounting]
	KindScalable   Kind = kindScalable   // [LoadScalable]
	KindWindow     Kind = kindWindow     // [LoadWindow]
	KindExceptions Kind = kindExceptions // [LoadExceptions]
)

var kindNames = map[Kind]string{
	KindFilter:     "filter",
	KindSplitBlock: "splitblock",
	KindClassic:    "classic",
	KindCounting:   "counting",
	KindScalable:   "scalable",
	KindWindow:     "window",
	KindExceptions: "exceptions",
}

// String is the type's name in lower case, such as "splitblock".
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind %d", uint16(k))
}

// KindOf returns the kind of filter in the file at path, by its first page. It does
// not look at the rest of the file. The error is that of [Load]; it wraps
// [ErrFormat] if the file is not one of ours.
func KindOf(path string) (Kind, error) {
	file, _, err := openRegular(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	head := make([]byte, pageBytes)
	n, err := io.ReadFull(file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return 0, fmt.Errorf("%s: bloom: reading: %w", path, err)
	}
	if n < pageBytes {
		return 0, fmt.Errorf("%s: %w: it has only %d bytes", path, ErrFormat, n)
	}
	h, err := decodeHeader(head)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return Kind(h.kind), nil
}
