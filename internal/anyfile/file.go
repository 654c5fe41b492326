// Package anyfile opens filter files of every kind, and files in other programs'
// formats, and turns lines into keys.
//
// [Options.Open] recognises a file by its bytes and returns a [File]: the filter and the
// rest of what the file says. A [KeyMap] turns lines into keys as the file requires: in
// the normal form that its metadata records, or through one of Guava's funnels. Errors
// say what to do next, in terms of the command line.
package anyfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/internal/machine"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/klauspost/compress/gzip"
)

// A File is a filter and the file that it came from: of any of our kinds, or in another
// program's format. Type assertions on Filter find the methods that only some filters
// have.
type File struct {
	interop.Filter
	Path string
	Info fs.FileInfo // of the file when it was read

	Foreign *interop.File // nil for a file of ours
	Packed  bool          // with gzip

	Keys *KeyMap // from a line to its key

	unlock func() // releases the file's lock; nil if it is not held
}

// Options are the flags that say how to read another program's file if its bytes do not.
type Options struct {
	Format string
	Scheme string
	Bits   human.BitsFlag
	Probes human.ProbesFlag
	Funnel string
	From   bool // the format is --from
}

// RefuseIdle refuses flags about the format that none of the files needed: our files
// record all of that, and so do those of most other programs.
func (f *Options) RefuseIdle(files ...*File) error {
	name := f.flag()
	for _, flag := range []struct {
		name  string
		given bool
	}{{name, f.Format != ""}, {"scheme", f.Scheme != ""}, {"bits", f.Bits != 0}, {"probes", f.Probes != 0}} {
		if flag.given && !slices.ContainsFunc(files, func(o *File) bool { return o.takes(flag.name) }) {
			return Usagef("%s: is a file of the format %s, which is detected: leave --%s out", files[0].Path, files[0].Format(), flag.name)
		}
	}
	return nil
}

// flag is the flag that names the format.
func (f *Options) flag() string {
	if f.From {
		return "from"
	}
	return "format"
}

// takes reports whether the flag can affect how the file is read.
func (f *File) takes(flag string) bool {
	switch {
	case f.Foreign == nil:
		return false
	case flag == "format" || flag == "from" || f.Foreign.Format.Needs != "":
		return true
	}
	return flag == "scheme" && f.Format() == "npm-bloom-filters" || flag == "bits" && strings.HasPrefix(f.Format(), "parquet")
}

func (f *Options) Interop() (interop.Options, error) {
	o := interop.Options{Bits: uint64(f.Bits), Probes: int(f.Probes)}
	if total, _ := machine.Usable(); total != 0 { // more would not fit
		o.Limit = int64(total)
		grant, release := redisbloom.Budget(total)
		o.Grant = func(bytes uint64) error {
			if err := grant(bytes); err != nil {
				return fmt.Errorf("%w, which are the memory of this machine, or of its control group", err)
			}
			return nil
		}
		o.Release = release
	}
	if f.Scheme != "" {
		scheme, ok := classic.SchemeNamed(f.Scheme)
		if !ok {
			return o, Usagef("--scheme %s is unknown: take one of %s", f.Scheme, strings.Join(SchemeNames(), ", "))
		}
		o.Scheme = scheme
	}
	return o, nil
}

// OpenMode says why a filter is opened.
type OpenMode bool

const (
	ToRead   OpenMode = false // maps a Filter or a Scalable
	ToChange OpenMode = true  // reads it into memory
)

// OpenToSave is Open for a file that will be saved. Until Close, another process can
// change the file only by replacing it, which saving detects.
func (f *Options) OpenToSave(path string, mode OpenMode) (*File, error) {
	unlock, err := Lock(path)
	if err != nil {
		return nil, err
	}
	opened, err := f.openAny(path, mode)
	if err != nil {
		unlock()
		return nil, Unclean(path, err)
	}
	opened.unlock = unlock
	return opened, nil
}

// Close releases the filter and the lock of its file.
func (f *File) Close() error {
	if f.unlock != nil {
		defer f.unlock()
	}
	return f.Filter.Close()
}

// Open opens a filter file of any kind.
func (f *Options) Open(path string, mode OpenMode) (*File, error) {
	opened, err := f.openAny(path, mode)
	return opened, Unclean(path, err)
}

func (f *Options) openAny(path string, mode OpenMode) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil && MissingDirectory(path) != "":
		return nil, fmt.Errorf("%s: there is no directory %s", path, MissingDirectory(path))
	case err != nil:
		return nil, WithAdvice(lines.FileError(path, err))
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory: name a filter file in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file: write its contents to one first", path)
	}
	_, err = bloom.KindOf(path)
	opened := &File{Path: path, Info: info}
	switch {
	case err == nil:
		opened.Filter, err = load(path, mode)
		if err == nil && info.Size() <= verifyBytes {
			err = opened.verifyMapped()
		}
		err = WithAdvice(err)
	case errors.Is(err, bloom.ErrFormat) && info.Mode().IsRegular() && !BeginsAsOurs(path):
		err = f.openForeign(opened)
	default:
		err = WithAdvice(err)
	}
	if err != nil {
		return nil, err
	}
	opened.Keys, err = NewKeyMap(f.Funnel, "")
	if err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// verifyBytes is the size up to which a file's checksums are always verified, which takes
// some milliseconds. A larger file is ready at once, and verified only on request.
const verifyBytes = 64 << 20

// verifyMapped finds damage in a file that was only mapped. It ignores files that another
// process is changing, whose checksums cannot be right.
func (f *File) verifyMapped() error {
	mapped, ok := f.Filter.(interface{ Verify() error })
	if !ok {
		return nil
	}
	err := mapped.Verify()
	if err == nil || errors.Is(err, bloom.ErrUnclean) {
		return nil
	}
	f.Filter.Close()
	return fmt.Errorf("%s: %w", f.Path, err)
}

// load loads a file of ours. For reading, it maps the file if the kind allows that.
func load(path string, mode OpenMode) (bloom.Any, error) {
	if mode == ToRead {
		return Open(path)
	}
	return Load(path)
}

// readOurs reads a file of ours from a stream, if it fits into the usable memory.
func readOurs(r io.Reader) (bloom.Any, error) {
	limit := int64(math.MaxInt64)
	if total, _ := machine.Usable(); total != 0 {
		limit = int64(total)
	}
	return Read(r, limit)
}

// OrNone turns a nil pointer into a nil interface.
func OrNone[F bloom.Any](f F, err error) (bloom.Any, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// BeginsAsOurs reports whether a file has our magic number: whatever is wrong with
// it, it was not written by another program.
func BeginsAsOurs(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, len(filterfile.Magic))
	io.ReadFull(file, head)
	return string(head) == filterfile.Magic
}

// headBytes is how many bytes are read to recognise a format.
const headBytes = filterfile.PageBytes

// openForeign reads the file of another program, which may be compressed.
func (f *Options) openForeign(opened *File) error {
	file, err := os.Open(opened.Path)
	if err != nil {
		return lines.FileError(opened.Path, err)
	}
	defer file.Close()
	r, size := bufio.NewReaderSize(file, 1<<20), opened.Info.Size()
	head, err := r.Peek(headBytes)
	if lines.Packing(head) == "gzip" && (err == nil || err == io.EOF) {
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			return lines.FileError(opened.Path, err)
		}
		r, size, opened.Packed = bufio.NewReaderSize(unpacked, 1<<20), -1, true
		head, err = r.Peek(headBytes)
		if err != nil && err != io.EOF {
			return lines.FileError(opened.Path, err)
		}
	}
	if opened.Packed && bytes.HasPrefix(head, []byte(filterfile.Magic)) {
		return opened.readPacked(r)
	}
	format, err := f.formatOf(opened.Path, head, size)
	if err != nil {
		return err
	}
	options, err := f.Interop()
	if err != nil {
		return err
	}
	opened.Foreign, err = format.Read(r, options)
	if err != nil {
		if format.Needs != "" && errors.Is(err, bloom.ErrConfig) {
			err = fmt.Errorf("%w: the format needs %s: give --bits, --probes or --scheme", err, format.Needs)
		}
		return fmt.Errorf("%s: %w", opened.Path, err)
	}
	opened.SetForeign(opened.Foreign)
	return nil
}

// readPacked reads a compressed file of ours.
func (f *File) readPacked(r io.Reader) error {
	var err error
	f.Filter, err = readOurs(r)
	if err == nil { // read to the end, where gzip's checksum is
		_, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return WithAdvice(fmt.Errorf("%s: %w", f.Path, err))
	}
	return nil
}

// SetForeign turns the file into one of another program.
func (f *File) SetForeign(file *interop.File) {
	f.Foreign, f.Filter = file, file.Filter
	if chain, ok := file.Filter.(*redisbloom.Filter); ok {
		f.Filter = &Chain{Filter: chain}
	}
}

// Chain is RedisBloom's chain, which may be full. It then stops adding, and remembers
// why.
type Chain struct {
	*redisbloom.Filter
	err error
}

func (f *Chain) Err() error { return f.err }

func (f *Chain) AddMany(keys [][]byte, isNew []bool) (added int) {
	if isNew == nil {
		isNew = make([]bool, len(keys))
	}
	pairs := make([]redisbloom.Pair, len(keys))
	redisbloom.HashMany(keys, pairs)
	for at := 0; at < len(pairs) && f.err == nil; {
		var done int
		done, _, f.err = f.AddPairs(pairs[at:], isNew[at:])
		at += done
	}
	for _, is := range isNew {
		if is {
			added++
		}
	}
	return added
}

// formatOf returns the format that was named, or detected from the bytes.
func (f *Options) formatOf(path string, head []byte, size int64) (*interop.Format, error) {
	if f.Format != "" {
		format, ok := interop.FormatNamed(f.Format)
		if !ok {
			return nil, Usagef("--%s %s is unknown: take one of %s", f.flag(), f.Format, strings.Join(FormatNames(), ", "))
		}
		return format, nil
	}
	if packer := lines.Packing(head); packer != "" && packer != "gzip" {
		return nil, fmt.Errorf("%s: is compressed with %s: decompress it first; only gzip is read directly", path, packer)
	}
	format, ok := interop.Recognise(head, size)
	if !ok {
		return nil, fmt.Errorf("%s: %w: its format was not recognised: if another program wrote it, name the --format ('bloomery convert --list' lists them)", path, bloom.ErrFormat)
	}
	return format, nil
}

// Kind returns the kind of the filter, by its type, such as filter, classic or, for
// RedisBloom's, chain.
func (f *File) Kind() string {
	switch f.Filter.(type) {
	case *bloom.Filter:
		return bloom.KindFilter.String()
	case *bloom.SplitBlock:
		return bloom.KindSplitBlock.String()
	case *classic.Filter:
		return bloom.KindClassic.String()
	case *bloom.Scalable:
		return bloom.KindScalable.String()
	case *bloom.Window:
		return bloom.KindWindow.String()
	case *bloom.Counting:
		return bloom.KindCounting.String()
	case *bloom.Exceptions:
		return bloom.KindExceptions.String()
	case *bloom.Cuckoo:
		return bloom.KindCuckoo.String()
	case *bloom.ScalableCounting:
		return bloom.KindScalableCounting.String()
	}
	return "chain"
}

// Format returns the name of the file's format.
func (f *File) Format() string {
	if f.Foreign != nil {
		return f.Foreign.Format.Name
	}
	return OurFormat
}

// OurFormat is the name of our own format in lists of formats.
const OurFormat = "bloomery"

// Encode writes the file in its own format.
func (f *File) Encode(w io.Writer) error {
	if !f.Packed {
		return f.writePlain(w)
	}
	packer := gzip.NewWriter(w)
	if err := f.writePlain(packer); err != nil {
		return err
	}
	return packer.Close()
}

func (f *File) writePlain(w io.Writer) error {
	if f.Foreign != nil {
		return f.Foreign.Write(w, f.Foreign.Format)
	}
	_, err := f.Filter.(io.WriterTo).WriteTo(w)
	return err
}

// Noted is a filter whose file has metadata.
type Noted interface {
	Meta() map[string]string
	SetMeta(meta map[string]string) error
}

func (f *File) Meta() map[string]string {
	if n, ok := f.Filter.(Noted); ok {
		return n.Meta()
	}
	return nil
}

// CloseAll closes filters that are no longer needed.
func CloseAll(files []*File) {
	for _, f := range files {
		f.Close()
	}
}

// Condition returns the condition of the file's filter.
func (f *File) Condition() human.Condition {
	return human.Condition{Report: f.Report(), Unplanned: f.Unplanned()}
}

// Unplanned reports whether the file has neither n nor p. Files of ours have both, but in
// a file converted from one without them, they only describe the filter with half of its
// bits set.
func (f *File) Unplanned() bool {
	if f.Foreign != nil {
		return f.Foreign.Unplanned
	}
	plan := f.Plan()
	switch k := f.Filter.(type) {
	case *classic.Filter:
		return !k.Scheme().TakesHashes() && plan.Keys == halfFull(plan)
	case *bloom.SplitBlock:
		return k.HashIdentity().Algorithm == bloom.XXH64 && plan.Keys == halfFull(plan)
	}
	return false
}

// halfFull returns how many keys set half of the bits: ln 2 m/k.
func halfFull(p bloom.Plan) uint64 {
	return max(uint64(float64(p.Bits)*math.Ln2/float64(p.Probes)), 1)
}

// Lock keeps other processes from changing the filter file at path in place, as
// 'dedupe --state' does, until unlock: the lines that they add would be lost with the old
// file. If there is no file, or the system has no such lock, no process can change it.
func Lock(path string) (unlock func(), err error) {
	unlock, err = bloom.Inside.Lock(path)
	if errors.Is(err, bloom.ErrLocked) {
		return nil, fmt.Errorf("%s: is in use by another process: wait for it to end", path)
	}
	if err != nil {
		return func() {}, nil
	}
	return unlock, nil
}

// Verify checks the checksums of a file that was only mapped; all others were
// checked when they were read.
func (f *File) Verify() error {
	mapped, ok := f.Filter.(interface{ Verify() error })
	if !ok {
		return nil
	}
	if err := mapped.Verify(); err != nil {
		return Unclean(f.Path, WithAdvice(fmt.Errorf("%s: %w", f.Path, err)))
	}
	return nil
}

func FormatNames() (names []string) {
	for _, f := range interop.Formats {
		names = append(names, f.Name)
	}
	return names
}

func SchemeNames() (names []string) {
	for _, s := range classic.Schemes() {
		names = append(names, s.Name())
	}
	return names
}
