package bloom

import (
	"fmt"
	"math"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
)

// Filters that are updated in their files, for sets that outlive the process: "have I
// seen this before, today or last year?". OpenUpdate is ready in milliseconds whatever
// the size of the file, and Close takes as long as writing what was added.

// OpenUpdate maps the file at path, which holds a Filter, so that keys can be added in
// place. It reads neither the bits nor all checksums, so even a file of gigabytes opens
// at once. Adds go to the file; [Filter.Sync] makes them durable, and Close syncs.
//
//	seen, err := bloom.OpenUpdate("seen.bloom")
//	...
//	if seen.AddString(url) { ... }
//	err = seen.Close() // check it: nil means that the adds are on the disk
//
// # What is safe when
//
// Before the first bit changes, the file is durably marked as changing; Sync makes it
// complete again. If the process is killed, at any time, every add that returned is in
// the file. If the power fails or the system crashes, every add before the last Sync
// that returned nil is in the file, and perhaps some later ones. In both cases the next
// OpenUpdate recomputes the checksums, which takes as long as reading and writing the
// file, and [Filter.Recovered] returns true. The number of adds in Report is then that
// of the last Sync. Disk damage to such a file goes unnoticed, because its checksums
// were old.
//
// If the file can no longer be written, adds still work, in memory, and the file stays
// as it is, with at least the adds up to the last Sync. Sync and Close return the error
// every time. Disk space for the bits is reserved beforehand; but on a copy-on-write
// file system, such as Btrfs or ZFS, a full disk can still kill the process.
//
// # Who may use the file
//
// There is one writer: OpenUpdate takes an advisory lock, and its error wraps
// [ErrLocked] if another process, or another filter of this one, holds it. [Open] works
// while a writer has the file. [Load], [Read] and [Filter.Verify] refuse it with
// [ErrChecksum] while it has adds that were not synced. If [Filter.Save] replaces the
// file, the writer's Sync and Close return an error.
//
// # What the filter can do
//
// Add and its variants, and all reading methods; as with any Filter, only one goroutine
// may add. Methods that clear bits, change many at a time or take them over panic:
// Clear, Union, Intersect, Difference, Share, Growing, Bulk, Prefault. Clone the filter
// for these. SetMeta does not reach the file. A key that the filter already contains
// changes nothing, and a file to which nothing new was added is not written.
//
// The error wraps [ErrLocked], [ErrFormat], [ErrVersion] or [ErrChecksum], or is the
// system's: no such file, no permission to write. A keyed filter comes back locked: see
// [Hasher.SetSecret]. On Windows and other systems without mmap, and on big-endian
// machines, the error always wraps [errors.ErrUnsupported]; use Load and Save there.
func OpenUpdate(path string) (*Filter, error) {
	u, s, err := filterfile.OpenUpdate(path)
	if err != nil {
		return nil, err
	}
	f, err := filterFrom(s)
	if err == nil {
		err = u.Mend(s, nil)
	}
	if err != nil {
		s.Close()
		u.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.readOnly, f.update = true, u
	return f, nil
}

// Create makes a file with an empty filter of the planned size at path, and opens it as
// [OpenUpdate] does. The file appears at path only when it is complete; anything that is
// there already stays, and the error wraps [io/fs.ErrExist]. Disk space for all bits is
// reserved at once, without writing them if the system can; if there is too little, no
// file is left behind. meta may be nil; it cannot be changed later.
//
// The error wraps [ErrConfig], [ErrRate], [ErrBudget] or [ErrLimit] (too much
// metadata), or is the system's.
func (c Config) Create(path string, meta map[string]string) (*Filter, error) {
	plan, err := c.Plan()
	if err != nil {
		return nil, err
	}
	hash, err := NewHasher(c.Seed, c.Secret)
	if err != nil {
		return nil, err
	}
	s := filterfile.NewEmpty(
		filterfile.Header{Kind: filterfile.KindFilter, Scheme: filterfile.SchemePaired, Hash: hash.id.stored(), Keys: plan.Keys, Rate: plan.Rate, Meta: meta},
		[]filterfile.Section{{
			Kind: filterfile.SectionPaired, Probes: uint32(plan.Probes), Blocks: plan.Blocks, Length: plan.Bytes(),
		}})
	u, err := filterfile.Create(path, s)
	if err != nil {
		return nil, err
	}
	f, err := filterFrom(s)
	if err != nil {
		s.Close()
		u.Close()
		return nil, err
	}
	f.Hasher, f.plan, f.readOnly, f.update = hash, plan, true, u
	return f, nil
}

// Sync makes the adds to a filter from [OpenUpdate] or [Config.Create] durable: once it
// returns nil, every key added before is in the file whatever happens, and until the
// next add the file is complete: anyone can load and verify it. Sync computes the
// checksums of each MiB in which bits were set, which after some thousands of new keys
// is nearly every one, and waits for the disk. With nothing to write it is cheap.
//
// After an error the file is no longer written: see [OpenUpdate]. For any other filter
// Sync returns nil.
func (f *Filter) Sync() error {
	f.mustBeOpen()
	if f.update == nil {
		return nil
	}
	defer f.keepAlive()
	return f.update.Sync(func(s *filterfile.State) { s.Added = f.added })
}

// Recovered reports whether [OpenUpdate] repaired a file that its writer had not closed.
// Then every key of the writer's last Sync is there, and some or all of the later ones.
func (f *Filter) Recovered() bool { return f.update != nil && f.update.Recovered() }

// closeUpdate is Close. An error of the last Sync comes first.
func (f *Filter) closeUpdate() error {
	u := f.update
	err := f.Sync()
	f.bits, f.update = kernel.Paired{}, nil
	if unmapErr := f.memory.Close(); err == nil {
		err = unmapErr
	}
	if closeErr := u.Close(); err == nil { // last, as it unlocks the file
		err = closeErr
	}
	return err
}

// addToFile is AddHash for bits in a file.
func (f *Filter) addToFile(h uint64) bool {
	u := f.update
	if u == nil {
		f.mustBeOpen()
		panicReadOnly()
	}
	if !u.Changing() {
		if f.ContainsHash(h) {
			return false
		}
		u.Begin()
	}
	isNew := f.bits.Add(h)
	if isNew {
		f.added++
		u.Touch(h)
	}
	f.keepAlive()
	return isNew
}

// addManyToFile is AddHashes for bits in a file.
func (f *Filter) addManyToFile(hashes []uint64, isNew []bool) int {
	if f.update == nil {
		f.mustBeOpen()
		panicReadOnly()
	}
	return inParts(hashes, isNew, f.addPartToFile)
}

func (f *Filter) addPartToFile(hashes []uint64, isNew []bool) int {
	u := f.update
	if !u.Changing() {
		if f.containsBatch(hashes, isNew, new(kernel.Recent)) == len(hashes) {
			clear(isNew)
			return 0
		}
		u.Begin()
	}
	added := f.bits.AddBatch(hashes, isNew)
	if added > 0 && u.Unmarked() > 0 {
		for i, is := range isNew {
			if is {
				u.Touch(hashes[i])
			}
		}
	}
	f.added += uint64(added)
	f.keepAlive()
	return added
}

// OpenUpdateScalable maps the file at path, which holds a Scalable, so that keys can be
// added in place; see [OpenUpdate]. When the filter grows, the file gets a section for
// the new layer; if the disk is full, [Scalable.Err] returns an error that wraps
// [ErrBudget]. Any number of goroutines may add, look up and call Sync. Adds wait for a
// running Sync, lookups do not. Clear panics.
//
// If a writer was killed, the number of keys in the newest layer is estimated from its
// bits, so that the rate is kept.
func OpenUpdateScalable(path string) (*Scalable, error) {
	u, s, err := filterfile.OpenUpdate(path)
	if err != nil {
		return nil, err
	}
	var f *Scalable
	if err = s.MustHold(filterfile.KindScalable); err == nil && !s.Clean {
		recount(s)
	}
	if err == nil {
		f, err = scalableFrom(s)
	}
	if err == nil {
		err = u.Mend(s, f.countLayers)
	}
	if err != nil {
		s.Close()
		u.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.update = u
	return f, nil
}

// recount corrects the newest layer's count, which is that of the last Sync, by the
// layer's bits.
func recount(s *filterfile.File) {
	last := len(s.Sections) - 1
	e := &s.Sections[last]
	layer := Filter{
		bits: kernel.Paired{Words: s.Words[last], Blocks: e.Blocks},
		plan: pairedPlan(e.Keys, e.Rate, e),
	}
	held := uint64(math.Ceil(min(layer.Report().Keys, maxKeys)))
	if held > e.Added {
		s.Added += held - e.Added
		e.Added = held
	}
}

// Create makes a file with an empty filter at path, and opens it as
// [OpenUpdateScalable] does; see [Config.Create].
func (c ScalableConfig) Create(path string) (*Scalable, error) {
	f, plan, err := c.planned()
	if err != nil {
		return nil, err
	}
	s := filterfile.NewEmpty(f.header(), []filterfile.Section{layerSection(plan)})
	u, err := filterfile.Create(path, s)
	if err != nil {
		return nil, err
	}
	filters := layersFrom(s, f.Hasher)
	f.layers.Store(newLayers(filters, layerRoom(plan)))
	f.update = u
	return f, nil
}

// layerSection is the section of an empty layer.
func layerSection(plan Plan) filterfile.Section {
	return filterfile.Section{
		Kind: filterfile.SectionPaired, Probes: uint32(plan.Probes), Blocks: plan.Blocks, Length: plan.Bytes(),
		Keys: plan.Keys, Rate: plan.Rate,
	}
}

// Sync makes every key whose Add has returned durable; see [Filter.Sync].
func (f *Scalable) Sync() error {
	if f.update == nil {
		return nil
	}
	l := f.lockedLayers()
	defer l.unlock()
	return f.update.Sync(f.countLayers)
}

// countLayers writes the layers' counts into the state.
func (f *Scalable) countLayers(s *filterfile.State) {
	filters := f.layers.Load().filters // the newest first
	s.Added = 0
	for i := range s.Sections {
		n := filters[len(filters)-1-i].added()
		s.Sections[i].Added = n
		s.Added += n
	}
}

// Recovered reports whether the file was repaired; see [Filter.Recovered].
func (f *Scalable) Recovered() bool { return f.update != nil && f.update.Recovered() }

// touch marks the file as changing before keys are added to its newest layer. The
// caller holds a gate.
func (f *Scalable) touch(hashes ...uint64) {
	if len(hashes) > 0 {
		f.update.Begin()
	}
	for _, h := range hashes {
		f.update.Touch(h)
	}
}

// nextLayer makes a new layer, at the end of the file if there is a file.
func (f *Scalable) nextLayer(plan Plan) (*Shared, error) {
	if f.update == nil {
		return newLayer(plan, f.Hasher)
	}
	if len(f.update.Sections) == filterfile.MaxSections {
		return nil, fmt.Errorf("%w: the file has %d layers already", ErrRate, filterfile.MaxSections)
	}
	words, mapping, err := f.update.Append(layerSection(plan))
	if err != nil {
		return nil, err
	}
	return &Shared{
		bits:    kernel.Paired{Words: words, Blocks: plan.Blocks, Rows: kernel.RowsFor(plan.Probes / 2)},
		stripes: kernel.NewStripes(plan.Blocks),
		Hasher:  f.Hasher,
		plan:    plan,
		memory:  mapping,
	}, nil
}

// closeUpdate is Close.
func (f *Scalable) closeUpdate() error {
	u := f.update
	err := f.Sync()
	f.update = nil
	if unmapErr := f.layers.Load().close(); err == nil {
		err = unmapErr
	}
	if closeErr := u.Close(); err == nil {
		err = closeErr
	}
	return err
}
