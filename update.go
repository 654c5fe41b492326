package bloom

import (
	"fmt"

	"github.com/bloomery/bloom/internal/kernel"
)

// A filter in a file that is added to in place, for a set that outlives the
// process: "have I seen this before, today or last year?". OpenUpdate is ready in
// milliseconds whatever the size of the file, and Close takes as long as what was
// added takes to be written.

// OpenUpdate maps the file at path, which holds a Filter, to be added to in
// place. It reads neither the bits nor all checksums, so a file of gigabytes is
// open at once. Adds go to the file; [Filter.Sync] makes them durable, and Close
// syncs.
//
//	seen, err := bloom.OpenUpdate("seen.bloom")
//	...
//	if seen.AddString(url) { ... }
//	err = seen.Close() // look at it: it says whether the adds are on the disk
//
// # What is safe when
//
// Before the first bit changes, the file says durably that it is being changed;
// Sync makes it whole again. If the process is killed, whenever that is, every
// add that returned is in the file. If the power fails or the system crashes,
// every add before the last Sync that returned nil is, and of the later ones
// some. In both cases the next OpenUpdate computes the checksums anew, in the
// time that reading and writing the file takes, and [Filter.Recovered] says so.
// The number of adds in Report is then that of the last Sync. Damage that the
// disk did to such a file is not noticed, as its checksums were old.
//
// If the file cannot be written any more, adds still work, in memory, and the
// file is left as it is, with the adds up to the last Sync at least. Sync and
// Close return the error, every time. The disk's room for the bits is set aside
// beforehand; on a file system that writes all changes to a new place, such as
// Btrfs or ZFS, a full disk can kill the process nevertheless.
//
// # Who may use the file
//
// There is one writer: OpenUpdate takes a lock, and its error wraps [ErrLocked]
// if another process has it, or another filter of this one. The lock is advisory.
// [Open] works beside a writer. [Load], [Read] and [Filter.Verify] refuse the
// file with [ErrChecksum] while it has adds that were not synced. [Filter.Save]
// to the same path puts another file in its place, which the writer notices: its
// Sync and Close then return an error.
//
// # What the filter can do
//
// Add and its kin, and all that reads; like a Filter, it is for one goroutine
// that adds. What needs the bits for itself, clears any or changes many at a time
// panics: Clear, Union, Intersect, Difference, Share, Growing, Bulk, Prefault.
// Clone it for that. SetMeta does not reach the file. A key that the filter
// already contains changes nothing, and a file to which nothing new was added is
// not written to.
//
// The error wraps [ErrLocked], [ErrFormat], [ErrVersion] or [ErrChecksum], or is
// the system's: no such file, no permission to write. A keyed filter comes back
// locked: see [Filter.SetSecret]. On Windows and other systems without mmap, and
// on big-endian machines, the error always wraps [errors.ErrUnsupported]; use Load
// and Save there.
func OpenUpdate(path string) (*Filter, error) {
	u, s, err := openUpdate(path)
	if err != nil {
		return nil, err
	}
	f, err := filterFrom(s)
	if err == nil {
		err = u.mend(s, nil)
	}
	if err != nil {
		s.close()
		u.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.readOnly, f.update = true, u
	return f, nil
}

// Create makes a file with an empty filter of the planned size at path, and opens
// it as [OpenUpdate] does. It is made beside and then given its name, so path
// never holds half a file; if there is anything at path already, the error wraps
// [io/fs.ErrExist] and it stays. The disk's room for all bits is taken at once,
// without writing them where the system can do so; if there is none, no file is
// left behind. Metadata, which may be nil, are for now and ever.
//
// The error wraps [ErrConfig], [ErrRate], [ErrBudget] or [ErrLimit] (too much
// metadata), or is the system's.
func (c Config) Create(path string, meta map[string]string) (*Filter, error) {
	plan, err := c.Plan()
	if err != nil {
		return nil, err
	}
	hash, err := newHasher(c.Seed, c.Secret)
	if err != nil {
		return nil, err
	}
	s := &stored{
		header: header{kind: kindFilter, scheme: schemePaired, hash: hash.id, keys: plan.Keys, rate: plan.Rate, meta: meta},
		state: newState(0, []section{{
			kind: sectionPaired, probes: uint32(plan.Probes), blocks: plan.Blocks, length: plan.Bytes(),
		}}),
	}
	u, err := createUpdate(path, s)
	if err != nil {
		return nil, err
	}
	f, err := filterFrom(s)
	if err != nil {
		s.close()
		u.close()
		return nil, err
	}
	f.Hasher, f.plan, f.readOnly, f.update = hash, plan, true, u
	return f, nil
}

// Sync makes durable what was added to a filter from [OpenUpdate] or
// [Config.Create]: when it returns nil, every key added before is in the file
// whatever happens then, and the file is whole, to be loaded and verified by
// anyone until the next add. It computes the checksums of the MiB that bits were
// set in, which after some thousands of new keys are most of them, and waits for
// the disk. With nothing to write it is cheap.
//
// After an error the file is not written any more: see [OpenUpdate]. A filter
// without such a file has nothing to sync: nil.
func (f *Filter) Sync() error {
	f.mustBeOpen()
	if f.update == nil {
		return nil
	}
	defer f.keepAlive()
	return f.update.sync(func(s *state) { s.added = f.added })
}

// Recovered reports whether [OpenUpdate] found the file as a writer leaves it
// that did not get to its end, and mended it. Then every key of its last Sync is
// there, and all others that it added or some of them.
func (f *Filter) Recovered() bool { return f.update != nil && f.update.recovered }

// closeUpdate is Close: the error is that of the last Sync, if there is one.
func (f *Filter) closeUpdate() error {
	u := f.update
	err := f.Sync()
	f.bits, f.update = kernel.Paired{}, nil
	if unmapErr := f.memory.Close(); err == nil {
		err = unmapErr
	}
	if closeErr := u.close(); err == nil { // last, as it lets the next writer in
		err = closeErr
	}
	return err
}

// addToFile is AddHash where the bits are those of a file.
func (f *Filter) addToFile(h uint64) bool {
	u := f.update
	if u == nil {
		f.mustBeOpen()
		panicReadOnly()
	}
	if !u.changing.Load() {
		if f.ContainsHash(h) {
			return false
		}
		u.begin()
	}
	isNew := f.bits.Add(h)
	if isNew {
		f.added++
		u.touch(h)
	}
	f.keepAlive()
	return isNew
}

// addManyToFile is AddHashes where the bits are those of a file.
func (f *Filter) addManyToFile(hashes []uint64, isNew []bool) int {
	if f.update == nil {
		f.mustBeOpen()
		panicReadOnly()
	}
	return inParts(hashes, isNew, f.addPartToFile)
}

func (f *Filter) addPartToFile(hashes []uint64, isNew []bool) int {
	u := f.update
	if !u.changing.Load() {
		if f.containsBatch(hashes, isNew, new(kernel.Recent)) == len(hashes) {
			clear(isNew)
			return 0
		}
		u.begin()
	}
	added := f.bits.AddBatch(hashes, isNew)
	if added > 0 && u.bare.Load() > 0 {
		for i, is := range isNew {
			if is {
				u.touch(hashes[i])
			}
		}
	}
	f.added += uint64(added)
	f.keepAlive()
	return added
}
