package filterfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/replace"
)

// Updater is a file that is changed in place, by the protocol of docs/format.md.
// Its state pages and checksums are written, and synced, through Disk; its bits
// are set in the mapping, which the system may write back at any time, page by page.
// So before the first bit is set the file says, durably, that its checksums are old:
// it is not clean. Sync makes it clean again.
//
//	clean ──Begin──▶ changing ──Sync──▶ clean
//	                 │      ▲
//	                 └Append┘  a Scalable's next layer
//
// After the first failed write the file is never written again, because the system may
// then consider pages written that are not. Later bits are set in memory only.
type Updater struct {
	path string   // absolute
	file *os.File // open and locked
	Disk Disk     // file, or a test's wrapper around it

	mutex     sync.Mutex  // guards err, and changing on its way to true
	changing  atomic.Bool // bits may be set
	err       error       // the first failure
	recovered bool

	// The rest changes only while no goroutine adds.

	State                  // in force
	newest *memory.Mapping // of the whole file, as long as it is now
	sums   []byte          // the checksums of the last sync, one for each MiB of body
	base   uint64          // where in the body the last section begins: bits are set there
	blocks uint64          // of that section
	marks  []atomic.Bool   // the MiB in which bits were set since the last sync
	bare   atomic.Int64    // the number of MiB without a mark
}

// Disk has the calls that change a file other than through its mapping. *os.File is
// one; tests record the calls, so that they can lose what was not synced.
type Disk interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
}

// OpenUpdate locks and maps the file at path. Nothing is changed yet: call Mend
// next.
func OpenUpdate(path string) (*Updater, *File, error) {
	if !memory.LittleEndian {
		return nil, nil, fmt.Errorf("bloom: files cannot be changed in place on big-endian machines: %w: use Load and Save", errors.ErrUnsupported)
	}
	file, err := openLocked(path)
	if err != nil {
		return nil, nil, err
	}
	s, _, err := readHead(file)
	if err == nil && s.Generation >= 1<<63 { // no writer gets this far, and the next could wrap to zero
		err = fmt.Errorf("%w: generation %d", ErrFormat, s.Generation)
	}
	if err == nil {
		if mapErr := s.mapTo(file, true); mapErr != nil {
			err = fmt.Errorf("bloom: opening for update: %w", mapErr)
		}
	}
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return newUpdate(path, file, s), s, nil
}

func newUpdate(path string, file *os.File, s *File) *Updater {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	u := &Updater{path: path, file: file, Disk: file, State: s.State, newest: s.Memory[0]}
	u.Sections = slices.Clone(s.Sections) // the caller has the others
	u.sums = make([]byte, u.marksNeeded()*4)
	u.aim()
	return u
}

// openLocked opens and locks the file at path, and makes sure that it is still at
// path once it is locked.
func openLocked(path string) (*os.File, error) {
	for {
		info, err := os.Stat(path) // before opening, which would wait if path is a named pipe
		if err != nil {
			return nil, fmt.Errorf("bloom: opening for update: %w", err)
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: %w: not a regular file: only regular files can be changed in place", path, ErrFormat)
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("bloom: opening for update: %w", err)
		}
		if err := lockFile(file); err != nil {
			file.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if samePlace(path, file) {
			return file, nil
		}
		file.Close() // the file was replaced before we had the lock
	}
}

// lockFile takes the lock that excludes other writers; see [memory.LockFile].
func lockFile(file *os.File) error {
	err := memory.LockFile(file)
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("files cannot be changed in place on %s: %w", runtime.GOOS, err)
	}
	return err
}

// samePlace reports whether file is still the one at path.
func samePlace(path string, file *os.File) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	ours, err := file.Stat()
	return err == nil && os.SameFile(there, ours)
}

// Create creates the file at path from s, which must come from [NewEmpty], and maps it.
// If path exists, the error wraps [fs.ErrExist].
func Create(path string, s *File) (u *Updater, err error) {
	wrap := func(err error) error { return fmt.Errorf("bloom: creating %s: %w", path, err) }
	if !memory.LittleEndian {
		return nil, wrap(fmt.Errorf("files cannot be changed in place on big-endian machines: %w: use New and Save", errors.ErrUnsupported))
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, wrap(fs.ErrExist)
	}
	head, err := s.Head()
	if err != nil {
		return nil, err
	}
	place := replace.At(path)
	file, err := place.Create()
	if err != nil {
		return nil, wrap(err)
	}
	defer func() {
		if err != nil {
			place.Remove()
			s.Close()
			file.Close()
		}
	}()
	if err := lockFile(file); err != nil {
		return nil, wrap(err)
	}
	if err := extend(file, 0, s.FileBytes); err != nil {
		return nil, wrap(err)
	}
	if err := s.mapTo(file, true); err != nil {
		return nil, wrap(err)
	}
	u = newUpdate(path, file, s)
	u.sumZeros(0)
	if _, err := file.WriteAt(sealSums(u.sums), int64(u.Checksums)); err != nil {
		return nil, wrap(err)
	}
	if _, err := file.WriteAt(head, 0); err != nil {
		return nil, wrap(err)
	}
	if err := file.Sync(); err != nil {
		return nil, wrap(err)
	}
	if err := place.Link(); err != nil {
		return nil, wrap(err)
	}
	if err := place.SyncDir(); err != nil {
		return nil, wrap(err)
	}
	return u, nil
}

// extend appends zeros to the file, with disk blocks allocated for them: writing to a
// mapped page without a block kills the process when the disk is full. If there is not
// enough space, the file stays as it was.
func extend(file *os.File, from, to uint64) error {
	err := Reserve(file, from, to)
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil
		zeros := make([]byte, min(to-from, SpanBytes))
		for at := from; at < to && err == nil; at += uint64(len(zeros)) {
			_, err = file.WriteAt(zeros[:min(uint64(len(zeros)), to-at)], int64(at))
		}
	}
	if err != nil {
		file.Truncate(int64(from))
		return fmt.Errorf("no room for %d more bytes: %w", to-from, err)
	}
	return nil
}

// Mend reads the checksums of a file that was just opened. If the file is not clean,
// Mend computes them from the bits as they are, and makes the file clean. count is as in
// Sync.
func (u *Updater) Mend(s *File, count func(*State)) error {
	if err := Reserve(u.file, 0, u.FileBytes); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("bloom: opening for update: making room for a sparse file: %w", err)
	}
	if s.Clean && s.damaged == nil {
		sums, err := openSums(u.newest.Bytes()[u.Checksums:u.FileBytes])
		copy(u.sums, sums)
		if err == nil {
			err = s.checkGaps(u.newest.Bytes())
		}
		return err
	}
	// If the file is longer, a section was about to be appended; it has no bits yet.
	if err := u.Disk.Truncate(int64(u.FileBytes)); err != nil {
		return fmt.Errorf("bloom: recovering: %w", err)
	}
	u.recovered = true
	u.changing.Store(true) // also if one state page is damaged, until it is written again
	for i := range u.marks {
		u.mark(uint64(i))
	}
	// Gaps must be zeros: readers accept nothing else.
	for _, gap := range s.gaps(u.newest.Bytes()) {
		clear(gap)
	}
	// If the previous writer met an error, the system may have pages in memory that it
	// wrongly believes to be on the disk. Touching each page has it written again.
	for _, words := range s.Words {
		for i := 0; i < len(words); i += PageBytes / 8 {
			atomic.AddUint64(&words[i], 0)
		}
	}
	return u.Sync(count)
}

// Begin makes it durable that the file is changing, before the first bit is set.
// Many goroutines may call it.
func (u *Updater) Begin() {
	if u.changing.Load() {
		return
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.changing.Load() {
		return
	}
	next := u.State
	next.Clean = false
	if err := u.write(next); err != nil {
		u.fail(err)
	}
	u.changing.Store(true)
}

// write puts a state in force, by overwriting the page that is not in force.
func (u *Updater) write(next State) error {
	next.Generation++
	next.Page = 3 - u.Page
	if _, err := u.Disk.WriteAt(next.Encode(), int64(next.Page)*PageBytes); err != nil {
		return err
	}
	if err := u.Disk.Sync(); err != nil {
		return err
	}
	u.State = next
	return nil
}

// fail records that the file could not be written. From now on the file is not written,
// and bits are set in memory only. The caller holds the mutex.
func (u *Updater) fail(err error) error {
	u.err = fmt.Errorf("bloom: updating %s: %w (what was added since the last sync is in memory only)", u.path, err)
	if err := u.newest.Detach(u.file); err != nil {
		panic(fmt.Errorf("%w; and there is no memory to continue: %w", u.err, err))
	}
	u.changing.Store(true)
	return u.err
}

// Close unlocks and closes the file. It unlocks explicitly, because a child process
// that is just being forked keeps the file open for a moment, and with it the lock.
func (u *Updater) Close() error {
	memory.UnlockFile(u.file)
	if err := u.file.Close(); err != nil {
		return fmt.Errorf("bloom: closing %s: %w", u.path, err)
	}
	return nil
}

// Sync makes the bits durable and the file clean. count, if not nil, sets the counts of
// adds in the state. No goroutine may add meanwhile.
func (u *Updater) Sync(count func(*State)) error {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.err != nil {
		return u.err
	}
	if u.changing.Load() {
		if err := u.writeClean(count); err != nil {
			return u.fail(err)
		}
		u.changing.Store(false)
	}
	if !samePlace(u.path, u.file) {
		return fmt.Errorf("bloom: %s was removed or replaced while it was open for update, and does not have the keys added since", u.path)
	}
	return nil
}

func (u *Updater) writeClean(count func(*State)) error {
	u.sumMarked()
	list := sealSums(slices.Clone(u.sums))
	if _, err := u.Disk.WriteAt(list, int64(u.Checksums)); err != nil {
		return err
	}
	if err := u.newest.Sync(); err != nil {
		return err
	}
	if err := u.Disk.Sync(); err != nil {
		return err
	}
	next := u.State
	next.Clean = true
	if count != nil {
		next.Sections = slices.Clone(next.Sections)
		count(&next)
	}
	return u.write(next)
}

// Append appends an empty section to the file; bits are set there from now on. No
// goroutine may add meanwhile. After an error there is no new section, and everything
// else continues to work.
func (u *Updater) Append(e Section) ([]uint64, *memory.Mapping, error) {
	u.Begin() // the checksums are about to be overwritten
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.err != nil { // bits are now set in memory only
		return memory.Words(e.Length / 8)
	}
	next := u.State
	next.Sections = append(slices.Clone(next.Sections), e)
	next.layOut()
	if err := extend(u.file, u.FileBytes, next.FileBytes); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", memory.ErrBudget, err)
	}
	mapping, err := memory.MapFile(u.file, int64(next.FileBytes), true)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%w: %w", memory.ErrBudget, err), u.Disk.Truncate(int64(u.FileBytes)))
	}
	old := u.State
	if err := u.writeLonger(next); err != nil {
		mapping.Close()
		u.fail(err)
		return memory.Words(e.Length / 8)
	}
	u.newest = mapping
	u.sums = append(u.sums, make([]byte, u.marksNeeded()*4-uint64(len(u.sums)))...)
	marks := u.marks
	u.aim()
	for i := range marks {
		if marks[i].Load() {
			u.mark(uint64(i))
		}
	}
	// The MiB in which the old body ended now has more bytes; all later ones are zero.
	whole := (old.Checksums - BodyOffset) / SpanBytes
	u.sumZeros(whole)
	if whole < uint64(len(u.marks)) {
		u.mark(whole)
	}
	at := next.Sections[len(next.Sections)-1].Offset
	return memory.FileWords(mapping.Bytes()[at:][:e.Length]), mapping, nil
}

// writeLonger puts a state with one more section in force. The new section overlaps the
// old checksums.
func (u *Updater) writeLonger(next State) error {
	if err := u.newest.Sync(); err != nil { // the last time that this mapping is written
		return err
	}
	if _, err := u.Disk.WriteAt(make([]byte, u.FileBytes-u.Checksums), int64(u.Checksums)); err != nil {
		return err
	}
	if err := u.Disk.Sync(); err != nil {
		return err
	}
	return u.write(next)
}

// aim makes the marks for the current body, and finds the section in which bits are set.
func (u *Updater) aim() {
	last := u.Sections[len(u.Sections)-1]
	u.base, u.blocks = last.Offset-BodyOffset, last.Blocks
	u.marks = make([]atomic.Bool, u.marksNeeded())
	u.bare.Store(int64(len(u.marks)))
}

// marksNeeded returns the number of MiB of the body, rounded up.
func (u *Updater) marksNeeded() uint64 {
	return roundUp(u.Checksums-BodyOffset, SpanBytes) / SpanBytes
}

// Touch records that bits are set for the key with this hash. In a body of hundreds of
// MiB, every MiB has its mark after some thousands of keys, and Touch then costs next to
// nothing.
func (u *Updater) Touch(h uint64) {
	if u.bare.Load() == 0 {
		return
	}
	block, _ := bits.Mul64(h, u.blocks) // as the kernel does
	u.mark((u.base + block*kernel.BlockBytes) / SpanBytes)
}

func (u *Updater) mark(i uint64) {
	if !u.marks[i].Load() && u.marks[i].CompareAndSwap(false, true) {
		u.bare.Add(-1)
	}
}

// span returns the i-th MiB of the body.
func (u *Updater) span(i int) []byte {
	body := u.newest.Bytes()[BodyOffset:u.Checksums]
	from := i * SpanBytes
	return body[from:min(from+SpanBytes, len(body))]
}

// sumMarked computes the checksums of the marked MiB, and removes the marks.
func (u *Updater) sumMarked() {
	for i := range u.marks {
		if u.marks[i].Load() {
			u.putSum(i, crc32.Checksum(u.span(i), castagnoli))
			u.marks[i].Store(false)
		}
	}
	u.bare.Store(int64(len(u.marks)))
}

func (u *Updater) putSum(i int, sum uint32) { binary.LittleEndian.PutUint32(u.sums[4*i:], sum) }

// sumZeros sets the checksums of the MiB numbered from and above, which are all zeros.
// It does not read them, so they need not be in memory.
func (u *Updater) sumZeros(from uint64) {
	zeros := make([]byte, SpanBytes)
	whole := crc32.Checksum(zeros, castagnoli)
	for i := int(from); i < len(u.marks); i++ {
		sum := whole
		if n := len(u.span(i)); n < SpanBytes {
			sum = crc32.Checksum(zeros[:n], castagnoli)
		}
		u.putSum(i, sum)
	}
}

// Changing reports whether the file is marked as changing, so that bits may be set.
func (u *Updater) Changing() bool { return u.changing.Load() }

// Recovered reports whether Mend found a file that its writer had not finished.
func (u *Updater) Recovered() bool { return u.recovered }

// Unmarked returns the number of MiB of the body that have no mark yet. At zero, Touch
// has nothing to do.
func (u *Updater) Unmarked() int64 { return u.bare.Load() }

// Verify checks the file against its checksums, as it is now.
func (u *Updater) Verify() error { return Verify(u.newest.Bytes()) }

// File returns the open file, which is locked, and Path its path.
func (u *Updater) File() *os.File { return u.file }
func (u *Updater) Path() string   { return u.path }

// Lock takes the lock of the file at path, as [OpenUpdate] does, until unlock.
func Lock(path string) (unlock func(), err error) {
	file, err := openLocked(path)
	if err != nil {
		return nil, err
	}
	return func() {
		memory.UnlockFile(file) // at once; see Updater.Close
		file.Close()
	}, nil
}

// Spans returns the number of MiB of the body, rounded up.
func (u *Updater) Spans() int { return len(u.marks) }
