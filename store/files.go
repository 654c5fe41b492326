package store

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomery/bloom"
)

// ErrDamaged: a file of the store is not as it was written. The message names the
// file, the byte and the remedy.
var ErrDamaged = errors.New("store: damaged")

// The files of a store. A snapshot and the segments of a log have the LSN in their
// names that they begin with, in 16 hexadecimal digits: of the snapshot, that of
// the first record which it may not contain.
const (
	lockName      = "lock"
	secretsName   = "secrets"
	snapPrefix    = "snapshot-"
	segmentPrefix = "log-"
	tempSuffix    = ".new" // a file that is being written
	asidePrefix   = "damaged-"
)

func snapshotName(start uint64) string { return fmt.Sprintf("%s%016x", snapPrefix, start) }
func segmentName(start uint64) string  { return fmt.Sprintf("%s%016x", segmentPrefix, start) }

// starts are the LSNs of the files with a prefix, in ascending order.
func starts(names []string, prefix string) (found []uint64) {
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, prefix)
		if start, err := strconv.ParseUint(digits, 16, 64); ok && err == nil && len(digits) == 16 {
			found = append(found, start)
		}
	}
	slices.Sort(found)
	return found
}

// What may become of a file that put could not write.
var (
	// errNotWritten: nothing has changed. What had the name still has it.
	errNotWritten = errors.New("the file was not written")

	// errUnnamed: it is written, and nobody knows whether it has its name.
	errUnnamed = errors.New("the file was not renamed")

	// errUnsynced: it has its name, and nobody knows whether the disk has that.
	errUnsynced = errors.New("the directory was not synced")
)

// put writes a file under another name and then renames it, replacing any file that
// has its name; so a file with a name is whole. When put returns without an error the
// name is on the disk, too.
func put(d disk, name string, flaw flaw, write func(file diskFile) error) error {
	temp := name + tempSuffix
	if err := d.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errNotWritten, err)
	}
	file, err := d.Create(temp)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotWritten, err)
	}
	if err = write(file); err == nil && !(flaw == flawSnapshotUnsynced && strings.HasPrefix(name, snapPrefix)) {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		d.Remove(temp) // it may take the room that others need
		return fmt.Errorf("%w: %w", errNotWritten, err)
	}
	if err := d.Rename(temp, name); err != nil {
		d.Remove(temp)
		return fmt.Errorf("%w: %w", errUnnamed, err)
	}
	if flaw == flawNoDirSync {
		return nil
	}
	if err := d.SyncDir(); err != nil {
		return fmt.Errorf("%w: %w", errUnsynced, err)
	}
	return nil
}

// The file of secrets has a line for each: its algorithm, and 16 bytes in
// hexadecimal. There is one so far.
const secretLine = "siphash-2-4 "

// openSecret reads the store's secret, or makes one if there is nothing yet.
func openSecret(d disk, fresh bool) ([]byte, error) {
	file, err := d.Open(secretsName)
	if errors.Is(err, fs.ErrNotExist) && fresh {
		secret := newSecret()
		return secret, put(d, secretsName, flawNone, func(file diskFile) error {
			return writeAll(file, []byte(secretLine+hex.EncodeToString(secret)+"\n"))
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the store's secret: %w: put the file %q back from a backup: without it no key can be looked up in the filters that were made with it", err, secretsName)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return nil, err
	}
	digits, ok := strings.CutPrefix(strings.TrimSpace(string(text)), secretLine)
	secret, err := hex.DecodeString(digits)
	if !ok || err != nil || len(secret) != bloom.SecretBytes {
		return nil, fmt.Errorf("%w: %s: not a line of %q and %d hexadecimal digits: put the file back from a backup", ErrDamaged, secretsName, secretLine, 2*bloom.SecretBytes)
	}
	return secret, nil
}

func newSecret() []byte {
	secret := make([]byte, bloom.SecretBytes)
	rand.Read(secret)
	return secret
}

// fingerprint tells secrets apart without giving them away.
func fingerprint(secret []byte) uint64 {
	f, err := bloom.Config{Keys: 1, Rate: 0.5, Secret: secret}.New()
	if err != nil {
		panic(err) // a secret has the right length
	}
	return f.HashIdentity().Key
}

// recordReader reads the records of a file, one after the other.
type recordReader struct {
	name   string
	from   *bufio.Reader
	close  func() error
	size   int    // bytes of the file, 0 if the disk does not say
	start  uint64 // of the file's head
	salt   uint64
	at     uint64 // offset of the record that is read next
	next   uint64 // its number
	record []byte
}

// errTorn: the bytes from here on are no record, whatever they are.
var errTorn = errors.New("not a record")

// openRecords opens a file and reads its head.
func openRecords(d disk, name, magic string) (*recordReader, error) {
	file, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	r := &recordReader{name: name, from: bufio.NewReaderSize(file, 256<<10), close: file.Close}
	if file, ok := file.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if info, err := file.Stat(); err == nil {
			r.size = int(min(info.Size(), math.MaxInt))
		}
	}
	head := make([]byte, headBytes)
	n, err := io.ReadFull(r.from, head)
	switch {
	case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
	case n == headBytes && string(head[:8]) == magic && crc32.Checksum(head[:headBytes-4], castagnoli) == order.Uint32(head[headBytes-4:]):
		if version := order.Uint32(head[8:]); version != fileVersion {
			err = fmt.Errorf("%s: %w: version %d, this release reads %d", name, bloom.ErrVersion, version, fileVersion)
			break
		}
		r.start, r.salt, r.at = order.Uint64(head[16:]), order.Uint64(head[24:]), headBytes
		return r, nil
	default:
		err = r.damaged("the file's head is damaged")
	}
	file.Close()
	return nil, err
}

// read reads a record. Its fields are good until the next call. The error is
// io.EOF at the end of the file, errTorn if there is no whole record with the right
// number, or the disk's.
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
	if sum(r.salt, r.record) != order.Uint32(frame[4:]) || order.Uint64(r.record) != r.next {
		return 0, f, errTorn
	}
	r.at += frameBytes + uint64(length)
	r.next++
	return r.record[8], fields{b: r.record[recordBytes:]}, nil
}

// fill reads the record: memory is taken as bytes come.
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

// damaged is the error of what is no record where there must be one.
func (r *recordReader) damaged(what string) error {
	return fmt.Errorf("%w: %s, byte %d: %s: put the directory back from a backup, or repair it, which says before what becomes unknown", ErrDamaged, r.name, r.at, what)
}
