package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// recordReader reads the records of a file in order.
type recordReader struct {
	fileHead
	name    string
	file    diskSource
	from    *bufio.Reader
	size    int    // bytes of the file
	seed    uint32 // of its checksums
	guessed bool   // the head is damaged, and seed is unknown: resync will infer it
	at      uint64 // offset of the next record
	next    uint64 // its number
	record  []byte
}

// errTorn: the bytes from here on are not a record.
var errTorn = errors.New("not a record")

// openRecords opens a file and reads its head.
func openRecords(d disk, name, magic string) (*recordReader, error) {
	r, err := openAnyRecords(d, name)
	if err != nil {
		return nil, err
	}
	head := make([]byte, min(headBytes, r.size))
	_, err = r.file.ReadAt(head, 0)
	if err == nil || err == io.EOF {
		var ok bool
		if r.fileHead, ok, err = parseHead(head, magic); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		} else if !ok {
			err = r.damaged("the file's head is damaged")
		}
	}
	if err == nil {
		r.seed, r.guessed = seed(r.salt), false
		err = r.seek(r.fileHead.bytes())
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// openAnyRecords opens, at its beginning, a file whose head may be damaged. Its records
// are found by resync.
func openAnyRecords(d disk, name string) (*recordReader, error) {
	file, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &recordReader{name: name, file: file, from: bufio.NewReaderSize(file, 256<<10), size: int(min(size, math.MaxInt)), guessed: true}, nil
}

func (r *recordReader) close() error { return r.file.Close() }

func (r *recordReader) isLog() bool { return len(starts([]string{r.name}, segmentPrefix)) == 1 }

// seek moves to an offset.
func (r *recordReader) seek(at uint64) error {
	_, err := r.file.Seek(int64(at), io.SeekStart)
	r.from.Reset(r.file)
	r.at = at
	return err
}

// read reads a record. Its fields are valid until the next call. The error is io.EOF at
// the end of the file, errTorn if there is no whole record with the right number, or an
// error of the disk.
func (r *recordReader) read() (kind byte, f fields, err error) {
	var frame [frameBytes]byte
	if n, err := io.ReadFull(r.from, frame[:]); err != nil {
		if err == io.ErrUnexpectedEOF || err == io.EOF && n > 0 {
			err = errTorn
		}
		return 0, f, err
	}
	length := order.Uint32(frame[:])
	if length < recordBytes || length > maxRecord {
		return 0, f, errTorn
	}
	if err := r.fill(int(length)); err != nil {
		return 0, f, err
	}
	if sum(r.seed, r.record) != order.Uint32(frame[4:]) || order.Uint64(r.record) != r.next {
		return 0, f, errTorn
	}
	r.at += frameBytes + uint64(length)
	r.next++
	return r.record[8], fields{b: r.record[recordBytes:]}, nil
}

// fill reads the record. It allocates memory as bytes arrive.
func (r *recordReader) fill(length int) error {
	r.record = r.record[:0]
	for len(r.record) < length {
		part := min(length-len(r.record), max(len(r.record), 1<<16))
		r.record = slices.Grow(r.record, part)
		n, err := io.ReadFull(r.from, r.record[len(r.record):][:part])
		r.record = r.record[:len(r.record)+n]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return errTorn
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// damaged returns the error for bytes that should be a record, and are not.
func (r *recordReader) damaged(what string) error {
	return fmt.Errorf("%w: %s, byte %d: %s: restore the directory from a backup, or repair it, which first shows what becomes unknown", ErrDamaged, r.name, r.at, what)
}

// failed returns the error for a failure to read a record that must be there.
func (r *recordReader) failed(err error, what string) error {
	switch {
	case err == nil:
		return r.damaged(what)
	case err == io.EOF:
		return r.damaged("the file ends too early")
	case errors.Is(err, errTorn):
		return r.damaged("the record is damaged")
	}
	return fmt.Errorf("%s, byte %d: %w", r.name, r.at, err)
}

// resync moves forward to the next whole record, and reports whether there is one.
func (r *recordReader) resync() (bool, error) {
	c, err := r.search(r.at, r.next)
	if err != nil || c.at < 0 {
		return false, err
	}
	r.next, r.seed, r.guessed = c.number, c.seed, false
	return true, r.seek(uint64(c.at))
}

// candidate is a place where a record may begin.
type candidate struct {
	at     int64 // negative if there is none
	length int   // of the record
	number uint64
	kind   byte
	seed   uint32
}

// The next record may be near. So search looks through firstWindow bytes first, and
// doubles that each time up to mostWindow. aloneBytes is the longest record that it tries
// although nothing after it looks like the next one.
const (
	firstWindow = 4 << 10
	mostWindow  = 1 << 20
	aloneBytes  = 2 * contentBytes
)

// search finds the first whole record at or after an offset; next is the number of the
// first damaged record. Checksums take time, so they are tried only where the length,
// number and type are plausible: each record takes at least 17 bytes, which limits how
// many can have been lost on the way.
func (r *recordReader) search(from, next uint64) (candidate, error) {
	const least = frameBytes + recordBytes
	var window []byte
	step := 0
	for base := int64(from); base+least <= int64(r.size); base += int64(step) {
		step = min(max(2*step, firstWindow), mostWindow)
		window = slices.Grow(window[:0], step+least)
		b := window[:min(int64(step+least), int64(r.size)-base)]
		if _, err := r.file.ReadAt(b, base); err != nil && err != io.EOF {
			return candidate{at: -1}, err
		}
		for i := 0; i+least <= len(b) && i < step; i++ {
			c := candidate{at: base + int64(i), kind: b[i+least-1], seed: r.seed}
			if c.kind < recordPairs || c.kind > recordLast || r.isLog() != inLog(c.kind) {
				continue
			}
			c.length, c.number = int(order.Uint32(b[i:])), order.Uint64(b[i+frameBytes:])
			passed := (uint64(c.at) - from) / least
			if c.length < recordBytes || c.length > maxRecord || c.number < next || c.number-next > passed {
				continue
			}
			if ok, err := r.isWhole(&c, order.Uint32(b[i+4:])); ok || err != nil {
				return c, err
			}
		}
	}
	return candidate{at: -1}, nil
}

// isWhole reports whether a candidate is a record. If the file's seed is unknown, the
// next record must yield the same seed.
func (r *recordReader) isWhole(c *candidate, want uint32) (bool, error) {
	end := c.at + frameBytes + int64(c.length)
	if end > int64(r.size) {
		return false, nil
	}
	var frame [frameBytes + recordBytes]byte
	n, err := r.file.ReadAt(frame[:], end)
	if err != nil && err != io.EOF {
		return false, err
	}
	followed := n == len(frame) && order.Uint64(frame[frameBytes:]) == c.number+1
	if !followed && (r.guessed || c.length > aloneBytes) {
		return false, nil
	}
	record, err := r.bytesAt(c.at+frameBytes, c.length)
	if err != nil {
		return false, err
	}
	if !r.guessed {
		return sum(c.seed, record) == want, nil
	}
	c.seed = unwound(want, record)
	length := int(order.Uint32(frame[:]))
	if length < recordBytes || length > maxRecord || end+frameBytes+int64(length) > int64(r.size) {
		return false, nil
	}
	record, err = r.bytesAt(end+frameBytes, length)
	return err == nil && sum(c.seed, record) == order.Uint32(frame[4:]), err
}

func (r *recordReader) bytesAt(at int64, n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := r.file.ReadAt(b, at)
	if err == io.EOF { // it is the last record
		err = nil
	}
	return b, err
}
