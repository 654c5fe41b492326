package lines

import (
	"bytes"
	"io"
	"os"
)

// CountAll counts the lines of the sources, without taking them: an upper
// bound for the number of different ones. ok is false if that cannot be, as one
// of them is no regular file, or packed.
func CountAll(sources []*Source, separator byte) (lines uint64, ok bool, err error) {
	for _, s := range sources {
		if !s.Regular {
			return 0, false, nil
		}
	}
	for _, s := range sources {
		n, ok, err := s.countLines(separator)
		if err != nil {
			return 0, false, FileError(s.Name(), err)
		}
		if !ok {
			return 0, false, nil
		}
		lines += n
	}
	return lines, true, nil
}

func (s *Source) countLines(separator byte) (lines uint64, ok bool, err error) {
	file, given := s.stdin.(*os.File)
	if !given {
		if file, err = os.Open(s.path); err != nil {
			return 0, false, err
		}
		defer file.Close()
	}
	from, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, false, err
	}
	// A section has an offset of its own: that of standard input stays.
	rest := io.NewSectionReader(file, from, s.Bytes)
	head, err := readHead(rest)
	if err != nil || isGzip(head) || isZstd(head) {
		return 0, false, err
	}
	return countIn(io.MultiReader(bytes.NewReader(head), rest), separator)
}

// countIn counts the lines that r holds, the last one also if it does not end.
func countIn(r io.Reader, separator byte) (lines uint64, ok bool, err error) {
	buffer := make([]byte, BlockBytes)
	last := separator
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			lines += uint64(bytes.Count(buffer[:n], []byte{separator}))
			last = buffer[n-1]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, false, err
		}
	}
	if last != separator {
		lines++
	}
	return lines, true, nil
}

// Again returns what makes a regular source readable from its start once more:
// of a path nothing, of standard input a seek.
func (s *Source) Again() (func() error, error) {
	file, ok := s.stdin.(*os.File)
	if !ok {
		return func() error { return nil }, nil
	}
	at, err := file.Seek(0, io.SeekCurrent)
	return func() error {
		_, err := file.Seek(at, io.SeekStart)
		return err
	}, err
}
