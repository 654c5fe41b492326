package lines

import (
	"bytes"
	"io"
	"os"
)

// CountAll counts the lines of the sources without consuming them. The count is an upper
// bound on the number of different lines. ok is false if one of the sources is
// compressed or not a regular file.
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
	// A section has its own offset: that of standard input does not move.
	rest := io.NewSectionReader(file, from, s.Bytes)
	head, err := readHead(rest)
	if err != nil || isGzip(head) || isZstd(head) {
		return 0, false, err
	}
	return countIn(io.MultiReader(bytes.NewReader(head), rest), separator)
}

// countIn counts the lines in r, including a last one that is not terminated.
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

// Again returns a function that makes a regular source readable from its start again:
// it seeks standard input back; for a path there is nothing to do.
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
