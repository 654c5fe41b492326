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
	head := make([]byte, pageBytes)
	n, err := io.ReadFull(file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return 0, fmt.Errorf("%s: bloom: reading: %w", path, err)
	}
	kind, err := KindOfHead(head[:n])
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return kind, nil
}

// KindOfHead is [KindOf] for a file that begins so: head has its first 4,096
// bytes, or more.
func KindOfHead(head []byte) (Kind, error) {
	if len(head) < pageBytes {
		return 0, fmt.Errorf("%w: it has only %d bytes", ErrFormat, len(head))
	}
	h, err := decodeHeader(head[:pageBytes])
	if err != nil {
		return 0, err
	}
	return Kind(h.kind), nil
}
