package lines

import (
	"bytes"
	"errors"
	"io"
)

const (
	// BlockBytes is how much is read at once: enough that the cost of the system call
	// is negligible, and little enough to stay in the second-level cache until the lines
	// are written.
	BlockBytes = 256 << 10

	// BatchKeys is how many lines are decided at once: as many as the library hashes
	// together.
	BatchKeys = 1024

	// keepBytes is the size of the largest block that is reused. A block that has grown
	// larger, for a very long line, is freed.
	keepBytes = 4 << 20
)

// A Batch is some consecutive lines.
type Batch struct {
	text []byte   // whole lines, each with its separator
	Keys [][]byte // the same lines without it, slices of text
}

// A blockReader splits a stream into blocks of whole lines.
type blockReader struct {
	in        *stream
	separator byte
	rest      []byte // the beginning of a line, after the last block
	err       error  // of the last Read, kept until the lines before it are returned

	// beforeWait is called before a Read that may wait for the stream's writer, so that
	// the lines decided so far can be written.
	beforeWait func() error
}

// next returns a block of at least one whole line, each with its separator. The block is
// in buffer, or in a larger one if a line is longer. If the last line has no separator,
// next appends one. Whole lines are returned as soon as reading more might wait.
//
// After the last block, next returns io.EOF. It returns a read error after the whole
// lines before the error; the incomplete line is dropped.
func (r *blockReader) next(buffer []byte) ([]byte, error) {
	buffer = append(buffer[:0], r.rest...)
	r.rest = r.rest[:0]
	whole := 0 // buffer[:whole] are whole lines
	for r.err == nil {
		ready := r.in.ready()
		if whole > 0 && (!ready || cap(buffer)-len(buffer) < BlockBytes/4) {
			break
		}
		if !ready {
			if err := r.beforeWait(); err != nil {
				return nil, err
			}
		}
		if len(buffer) == cap(buffer) {
			buffer = append(make([]byte, 0, 2*cap(buffer)), buffer...)
		}
		var n int
		n, r.err = r.in.Read(buffer[len(buffer):cap(buffer)])
		if end := lastSeparator(buffer[len(buffer):len(buffer)+n], r.separator); end >= 0 {
			whole = len(buffer) + end + 1
		}
		buffer = buffer[:len(buffer)+n]
	}
	if r.err == io.EOF && len(buffer) > whole {
		buffer = append(buffer, r.separator)
		whole = len(buffer)
	}
	if whole == 0 {
		return nil, r.err
	}
	r.rest = append(r.rest, buffer[whole:]...)
	return buffer[:whole], nil
}

// lastSeparator is bytes.LastIndexByte, but fast if there is no separator, which is the
// usual case inside a line of many megabytes.
func lastSeparator(b []byte, separator byte) int {
	first := bytes.IndexByte(b, separator)
	if first < 0 {
		return first
	}
	return first + bytes.LastIndexByte(b[first:], separator)
}

// split appends the lines of text to keys until keys is full, and returns the
// remaining text.
func split(text []byte, separator byte, keys [][]byte) (lines [][]byte, rest []byte) {
	for len(text) > 0 && len(keys) < cap(keys) {
		end := bytes.IndexByte(text, separator)
		keys = append(keys, text[:end:end])
		text = text[end+1:]
	}
	return keys, text
}

// ErrEnough stops reading: the consumer has enough.
var ErrEnough = errors.New("enough")

// A Reader reads all lines of some sources.
type Reader struct {
	Sources   []*Source
	Separator byte
	Count     func(int) // called with the number of bytes of each read
}

// Each passes all lines to do, in order, a batch at a time. The batch is valid only
// until do returns.
func (l *Reader) Each(do func(Batch) error) error {
	buffer := make([]byte, 0, BlockBytes)
	keys := make([][]byte, 0, BatchKeys)
	for _, s := range l.Sources {
		in, err := s.open(l.Count)
		if err != nil {
			return err
		}
		blocks := &blockReader{in: in, separator: l.Separator, beforeWait: func() error { return nil }}
		for {
			block, err := blocks.next(buffer)
			if err == io.EOF {
				break
			}
			if err != nil {
				in.close()
				return FileError(s.Name(), err)
			}
			if cap(block) <= keepBytes {
				buffer = block[:0]
			}
			for len(block) > 0 {
				lines, rest := split(block, l.Separator, keys)
				if err := do(Batch{block[:len(block)-len(rest)], lines}); err != nil {
					in.close()
					return err
				}
				block = rest
			}
		}
		in.close()
	}
	return nil
}
