package filterfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/bloomery/bloom/internal/memory"
)

// LittleEndian converts words from the machine's byte order to that of files, or back.
func LittleEndian(words []uint64) {
	if memory.LittleEndian {
		return
	}
	for i, word := range words {
		words[i] = bits.ReverseBytes64(word)
	}
}

// WriteWords writes the first length bytes of the words, a part at a time. reorder, if
// not nil, converts a copy of each part from memory's order to the file's.
func WriteWords(w io.Writer, words []uint64, length uint64, reorder func([]uint64)) (written int64, err error) {
	buffer := make([]uint64, min(len(words), SpanBytes/8))
	for len(words) > 0 && err == nil {
		n := min(len(words), len(buffer))
		part := words[:n]
		if reorder != nil {
			part = buffer[:copy(buffer, words)]
			reorder(part)
		}
		var wrote int
		wrote, err = w.Write(memory.Bytes(part)[:min(uint64(n)*8, length-uint64(written))])
		written += int64(wrote)
		words = words[n:]
	}
	if err != nil {
		return written, fmt.Errorf("bloom: writing the bits: %w", err)
	}
	return written, nil
}

// ReadWords reads length bytes into words. It calls pass with each part as it arrives,
// in the file's byte order, to be checksummed or reordered. If the reader has a method
// Len that reports enough bytes, as a bytes.Reader does, the memory is allocated at
// once; otherwise it doubles each time it is full, so it is never more than twice what
// has arrived. The mapping holds the words; the caller closes it, even after an error.
func ReadWords(r io.Reader, length uint64, pass func([]uint64)) (words []uint64, mapping *memory.Mapping, err error) {
	total, first := (length+7)/8, uint64(firstGrowth)
	if r, ok := r.(interface{ Len() int }); ok && uint64(r.Len()) >= length {
		first = total
	}
	ready := func() {} // the memory
	defer func() { ready() }()
	for have := uint64(0); have < total; {
		if have == uint64(len(words)) {
			grown, room, err := memory.Words(min(total, max(2*have, first)))
			if err != nil {
				return nil, mapping, err
			}
			copy(grown, words)
			mapping.Close()
			words, mapping = grown, room
			if first == total {
				ready = memory.PrefaultAhead(words, mapping)
			}
		}
		part := words[have:][:min(total-have, firstGrowth)]
		bytes := memory.Bytes(part)
		if err := ReadFull(r, bytes[:min(uint64(len(bytes)), length-8*have)]); err != nil {
			return nil, mapping, err
		}
		pass(part)
		have += uint64(len(part))
	}
	return words, mapping, nil
}

// fileParts yields the words as the bytes of the file, a checksum span at a time. The
// parts are views of memory if the byte order allows that.
func fileParts(words []uint64) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		var buffer []byte
		for len(words) > 0 {
			n := min(len(words), SpanBytes/8)
			var part []byte
			if memory.LittleEndian {
				part = memory.Bytes(words[:n])
			} else {
				buffer = buffer[:0]
				for _, word := range words[:n] {
					buffer = binary.LittleEndian.AppendUint64(buffer, word)
				}
				part = buffer
			}
			if !yield(part) {
				return
			}
			words = words[n:]
		}
	}
}

// firstGrowth is how many words ReadWords allocates before the first byte arrives, and
// how many it reads at a time.
const firstGrowth = SpanBytes / 8

// ReadFull fills b. Its error is that of ReadError.
func ReadFull(r io.Reader, b []byte) error {
	if _, err := io.ReadFull(r, b); err != nil {
		return ReadError(err)
	}
	return nil
}

// ReadError wraps a reader's error: as [ErrFormat] if the input ends too early, otherwise
// as a failed read. An error of this package is returned unchanged.
func ReadError(err error) error {
	switch {
	case errors.Is(err, ErrFormat) || errors.Is(err, ErrLimit):
		return err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the file ends too early", ErrFormat)
	}
	return fmt.Errorf("bloom: reading a filter: %w", err)
}
