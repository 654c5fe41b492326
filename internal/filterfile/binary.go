package filterfile

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// AppendBinary appends to b the file that f writes. sections is the approximate size of
// its sections in bytes.
func AppendBinary(b []byte, sections uint64, f io.WriterTo) ([]byte, error) {
	file := bytes.NewBuffer(slices.Grow(b, int(FileBytes(sections))))
	if _, err := f.WriteTo(file); err != nil {
		return b, err
	}
	return file.Bytes(), nil
}

// UnmarshalBinary reads a filter from data, which must be its whole file.
func UnmarshalBinary[F any](data []byte, read func(r io.Reader, limitBytes int64) (F, error)) (made F, err error) {
	file := bytes.NewReader(data)
	if made, err = read(file, int64(len(data))); err == nil && file.Len() > 0 {
		err = fmt.Errorf("%w: %d bytes after the end of the filter", ErrFormat, file.Len())
	}
	return made, err
}
