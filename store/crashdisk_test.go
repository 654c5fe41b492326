package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// crashDisk is a disk that the power may leave at any call, and that may fail.
//
// What is written is in the cache. A sync brings a file to the disk. When the power
// goes, of what was not synced any sectors are on the disk and others are not, one
// may be torn, and a file may be longer than its sectors that came; and of what was
// done to the directory since its last sync the first few steps are. A sync
// that fails has brought some sectors to the disk, and the others never come: the
// cache has them, and is taken for clean.
type crashDisk struct {
	mutex  sync.Mutex
	rng    *rand.Rand
	cached map[string]*crashFile
	synced map[string]*crashFile // what the directory on the disk says
	steps  []func(map[string]*crashFile)

	calls  int
	cut    int // the power goes at this call; 0: not by itself
	dead   bool
	fail   int // this call fails; 0: none
	sites  map[string]*site
	failed string // the site that was made to fail

	meanwhile func() // called whenever a snapshot is made or written
	changing  func() // called whenever a file is made

	full       float64 // the share of snapshots that fail, at some call
	fullFaults int     // and how many did

	failSite string // calls from there fail
	failSkip int    // but for this many first
}

// site is a place in the store's code that calls the disk.
type site struct{ calls, faults int }

type crashFile struct {
	cache, disk []byte
	dirty       []int // the lengths that the file had since it was synced
}

const sectorSize = 512

var (
	errPower = errors.New("the power is gone")
	errIO    = errors.New("input/output error")
	errSpace = errors.New("no space left on device")
)

func newCrashDisk(rng *rand.Rand) *crashDisk {
	return &crashDisk{rng: rng, cached: map[string]*crashFile{}, synced: map[string]*crashFile{}, sites: map[string]*site{}}
}

// call is at the beginning of every call. fault is the error that it must answer.
func (d *crashDisk) call(name string) (fault, err error) {
	d.mutex.Lock()
	at := d.caller(name)
	d.calls++
	if d.dead {
		return nil, errPower
	}
	if d.calls == d.cut {
		d.dead = true
		return nil, errPower
	}
	if d.sites[at] == nil {
		d.sites[at] = &site{}
	}
	d.sites[at].calls++
	if at == d.failSite {
		d.failSkip--
	}
	if d.calls == d.fail || at == d.failSite && d.failSkip < 0 {
		if at == d.failSite {
			d.failSite = ""
		}
		d.sites[at].faults++
		d.failed = at
		return []error{errIO, errSpace}[d.rng.IntN(2)], nil
	}
	return nil, nil
}

// caller names the place in the store that calls.
func (d *crashDisk) caller(name string) string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "/store.") && !strings.HasSuffix(frame.File, "_test.go") {
			function := frame.Function[strings.LastIndex(frame.Function, "/store.")+len("/store."):]
			if function == "writeAll" || function == "timedSync" || function == "put" {
				name += " by " + function
				continue
			}
			return fmt.Sprintf("%s:%d %s: %s", filepath.Base(frame.File), frame.Line, function, name)
		}
		if !more {
			return name
		}
	}
}

func (d *crashDisk) step(do func(map[string]*crashFile)) {
	do(d.cached)
	d.steps = append(d.steps, do)
}

func (d *crashDisk) Create(name string) (diskFile, error) {
	if d.changing != nil {
		d.changing()
	}
	meanwhile := d.meanwhile
	if !strings.HasPrefix(name, snapPrefix) {
		meanwhile = nil
	}
	if meanwhile != nil {
		meanwhile()
	}
	fault, err := d.call("Create")
	defer d.mutex.Unlock()
	if err := errors.Join(fault, err); err != nil {
		return nil, err
	}
	if d.cached[name] != nil {
		return nil, fs.ErrExist
	}
	file := &crashFile{}
	fails := ""
	if strings.HasPrefix(name, snapPrefix) && d.full > 0 && d.rng.Float64() < d.full {
		fails = []string{"Create", "Write", "Sync", "Close"}[d.rng.IntN(4)]
		d.fullFaults++
		d.failed = fmt.Sprint("snapshot fault ", d.fullFaults)
		if fails == "Create" {
			return nil, errSpace
		}
	}
	d.step(func(files map[string]*crashFile) { files[name] = file })
	return &crashHandle{d, file, meanwhile, fails}, nil
}

func (d *crashDisk) Append(name string) (diskFile, error) {
	fault, err := d.call("Append")
	defer d.mutex.Unlock()
	if err := errors.Join(fault, err); err != nil {
		return nil, err
	}
	file := d.cached[name]
	if file == nil {
		return nil, fs.ErrNotExist
	}
	return &crashHandle{d, file, nil, ""}, nil
}

// crashSource is what a file was when it was opened.
type crashSource struct{ *bytes.Reader }

func (crashSource) Close() error { return nil }

func (d *crashDisk) Open(name string) (diskSource, error) {
	fault, err := d.call("Open")
	defer d.mutex.Unlock()
	if err := errors.Join(fault, err); err != nil {
		return nil, err
	}
	file := d.cached[name]
	if file == nil {
		return nil, fs.ErrNotExist
	}
	return crashSource{bytes.NewReader(file.cache)}, nil
}

func (d *crashDisk) Rename(from, to string) error {
	fault, err := d.call("Rename")
	defer d.mutex.Unlock()
	if fault == nil && err == nil && strings.HasPrefix(to, snapPrefix) && d.rng.Float64() < d.full/4 {
		d.fullFaults++
		d.failed = fmt.Sprint("snapshot fault ", d.fullFaults)
		fault = errIO
	}
	if err := errors.Join(fault, err); err != nil {
		return err
	}
	d.step(func(files map[string]*crashFile) {
		if file := files[from]; file != nil {
			files[to] = file
			delete(files, from)
		}
	})
	return nil
}

func (d *crashDisk) Remove(name string) error {
	fault, err := d.call("Remove")
	defer d.mutex.Unlock()
	if err := errors.Join(fault, err); err != nil {
		return err
	}
	if d.cached[name] == nil {
		return fs.ErrNotExist
	}
	d.step(func(files map[string]*crashFile) { delete(files, name) })
	return nil
}

func (d *crashDisk) List() ([]string, error) {
	fault, err := d.call("List")
	defer d.mutex.Unlock()
	return slices.Sorted(maps.Keys(d.cached)), errors.Join(fault, err)
}

func (d *crashDisk) SyncDir() error {
	fault, err := d.call("SyncDir")
	defer d.mutex.Unlock()
	if err := errors.Join(fault, err); err != nil {
		return err
	}
	d.synced, d.steps = maps.Clone(d.cached), nil
	return nil
}

func (d *crashDisk) Lock() (func() error, error) {
	fault, err := d.call("Lock")
	defer d.mutex.Unlock()
	if err := errors.Join(fault, err); err != nil {
		return nil, err
	}
	return func() error { return nil }, nil
}

type crashHandle struct {
	disk      *crashDisk
	file      *crashFile
	meanwhile func()
	fails     string // the call that finds no space
}

// full is the error of the call if it has to fail.
func (h *crashHandle) full(call string, fault, err error) (error, error) {
	if h.fails == call && fault == nil && err == nil {
		fault = errSpace
	}
	return fault, err
}

func (h *crashHandle) Write(b []byte) (int, error) {
	if h.meanwhile != nil {
		h.meanwhile()
	}
	fault, err := h.disk.call("Write")
	fault, err = h.full("Write", fault, err)
	defer h.disk.mutex.Unlock()
	if err != nil {
		// The power went while it was written.
		h.file.write(b[:h.disk.rng.IntN(len(b)+1)])
		return 0, err
	}
	if fault != nil {
		n := 0
		if h.disk.rng.IntN(2) == 0 { // a short write
			n = h.disk.rng.IntN(len(b) + 1)
			if h.disk.rng.IntN(2) == 0 {
				fault = nil // and no word of it
			}
		}
		h.file.write(b[:n])
		if n == len(b) {
			return n, errIO
		}
		return n, fault
	}
	h.file.write(b)
	return len(b), nil
}

func (f *crashFile) write(b []byte) {
	f.cache = append(f.cache, b...)
	f.dirty = append(f.dirty, len(f.cache))
}

func (h *crashHandle) Sync() error {
	fault, err := h.disk.call("Sync")
	fault, err = h.full("Sync", fault, err)
	defer h.disk.mutex.Unlock()
	if err != nil {
		return err
	}
	if fault != nil {
		h.file.disk = h.file.left(h.disk.rng)
		h.file.dirty = nil
		return errIO
	}
	if len(h.file.dirty) > 0 {
		from := min(len(h.file.disk), len(h.file.cache)) / sectorSize * sectorSize
		h.file.disk = append(h.file.disk[:from:from], h.file.cache[from:]...)
	}
	h.file.dirty = nil
	return nil
}

func (h *crashHandle) Close() error {
	fault, err := h.disk.call("Close")
	fault, err = h.full("Close", fault, err)
	defer h.disk.mutex.Unlock()
	return errors.Join(fault, err)
}

// left is what is on the disk if the power goes now.
func (f *crashFile) left(rng *rand.Rand) []byte {
	if len(f.dirty) == 0 {
		return bytes.Clone(f.disk)
	}
	length := max(f.dirty[rng.IntN(len(f.dirty))], len(f.disk))
	if rng.IntN(3) == 0 {
		length = len(f.disk)
	}
	file := make([]byte, length)
	copy(file, f.disk)
	share := []float64{0, 0.5, 0.9, 1}[rng.IntN(4)]
	for at := len(f.disk) / sectorSize * sectorSize; at < length; at += sectorSize {
		if rng.Float64() >= share {
			continue
		}
		end := min(at+sectorSize, length, len(f.cache))
		if rng.IntN(20) == 0 { // torn
			end = at + rng.IntN(end-at+1)
		}
		if at < end {
			copy(file[at:end], f.cache[at:end])
		}
	}
	copy(file, f.disk[:min(len(f.disk), len(file))]) // what was synced stays
	return file
}

// restart is the disk that the next process finds: after the power went, or with
// the cache of the process before.
func (d *crashDisk) restart(power bool) *crashDisk {
	next := newCrashDisk(d.rng)
	next.full, next.fullFaults = d.full, d.fullFaults
	next.sites, next.failSite, next.failSkip, next.failed = d.sites, d.failSite, d.failSkip, d.failed
	if !power {
		next.cached, next.synced, next.steps = d.cached, d.synced, d.steps
		return next
	}
	next.synced = maps.Clone(d.synced)
	for _, step := range d.steps[:d.rng.IntN(len(d.steps)+1)] {
		step(next.synced)
	}
	for name, file := range next.synced {
		data := file.left(d.rng)
		next.synced[name] = &crashFile{cache: data, disk: bytes.Clone(data)}
	}
	next.cached = maps.Clone(next.synced)
	return next
}
