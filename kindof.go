package bloom

import (
	"fmt"
	"io"
)

// Kind says which type of filter a file holds. The numbers stand in files and
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

// KindOf tells which kind of filter the file at path holds, by its first page,
// so that the right function can read it. The rest of the file is not looked at.
// The error is as of [Load]; it wraps [ErrFormat] where the file is no filter
// file of ours.
func KindOf(path string) (Kind, error) {
	file, _, err := openRegular(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	page := make([]byte, pageBytes)
	if n, err := io.ReadFull(file, page); err == io.EOF || err == io.ErrUnexpectedEOF {
		return 0, fmt.Errorf("%s: %w: it has only %d bytes", path, ErrFormat, n)
	} else if err != nil {
		return 0, fmt.Errorf("%s: bloom: reading: %w", path, err)
	}
	h, err := decodeHeader(page)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return Kind(h.kind), nil
}
