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

// crashDisk is a disk whose power may fail at any call, and whose calls may fail.
//
// Writes go to the cache. A sync writes a file's cache to the disk. After a power
// failure, any of the unsynced sectors may be on the disk or not, one may be torn, and a
// file may be longer than its sectors on the disk; of the changes of the directory since
// its last sync, the first few are on the disk. A sync that fails has written some
// sectors. The others are never written: the cache has them, and counts as clean.
type crashDisk struct {
	mutex  sync.Mutex
	rng    *rand.Rand
	cached map[string]*crashFile
	synced map[string]*crashFile         // the directory on the disk
	steps  []func(map[string]*crashFile) // changes of the directory since it was synced

	calls  int
	cut    int  // the power fails at this call; 0: at none
	dead   bool // the power has failed
	fail   int  // this call fails; 0: none
	sites  map[string]*site
	failed string // the site that was made to fail

	meanwhile func() // called whenever a snapshot is made or written
	changing  func() // called whenever a file is made

	full       float64 // the share of snapshots that fail, at some call
	fullFaults int     // the number that failed

	failSite string // the next call from there fails
	failSkip int    // after this many that do not
}

// site is a place in the store's code that calls the disk.
type site struct{ calls, faults int }

type crashFile struct {
	cache, disk []byte
	dirty       []int // the lengths that the file has had since it was synced
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

// call begins every call, and locks the disk. fault is the error that the call must return.
// err says that the power has failed.
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

// caller returns the place in the store's code that called.
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

// crashSource is the contents of a file when it was opened.
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
	fails     string // the call that fails for lack of space
}

// full returns the errors of a call, which fails if it is h.fails.
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
		// The power failed during the write.
		h.file.write(b[:h.disk.rng.IntN(len(b)+1)])
		return 0, err
	}
	if fault != nil {
		n := 0
		if h.disk.rng.IntN(2) == 0 { // a short write
			n = h.disk.rng.IntN(len(b) + 1)
			if h.disk.rng.IntN(2) == 0 {
				fault = nil // without an error
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

// left returns what is on the disk if the power fails now.
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
	copy(file, f.disk[:min(len(f.disk), len(file))]) // synced bytes stay
	return file
}

// restart returns the disk that the next process finds: after a power failure, or with
// the cache of the previous process.
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
