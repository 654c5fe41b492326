package main

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
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/internal/machine"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"
)

// A filterFile is a filter and the file that it came from: any kind of ours, or
// another program's format. Commands ask it for what all filters can do, and by
// a type assertion of its Filter for what only some can.
type filterFile struct {
	interop.Filter
	path string
	info fs.FileInfo // of the file when it was read
	kind string      // such as "filter", "classic" or "chain"

	foreign *interop.File // nil: a file of ours
	packed  bool          // with gzip

	keys *keyMap // from a line to its key

	unlock func() // gives the file's lock back; nil: it is not held
}

// formatFlags are the flags that say how a file of another program is to be
// read, where its bytes do not.
type formatFlags struct {
	format string
	scheme string
	bits   human.BitsFlag
	probes human.ProbesFlag
	funnel string
	from   bool // the format is --from
}

func addFormat(cmd *cobra.Command, f *formatFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "", "the `FORMAT` of filters that another program wrote, if their bytes do not tell; see 'bloomery convert --list'")
	flags.StringVar(&f.scheme, "scheme", "", "of a format of bare bits: the `SCHEME` from a key to its positions")
	flags.Var(&f.bits, "bits", "of a format of bare bits: m")
	flags.Var(&f.probes, "probes", "of a format of bare bits: `K`, the bits that a key sets")
	cmd.RegisterFlagCompletionFunc("format", completeFormats)
	cmd.RegisterFlagCompletionFunc("scheme", completeSchemes)
}

// addFunnel is for commands that read keys.
func addFunnel(cmd *cobra.Command, f *formatFlags) {
	cmd.Flags().StringVar(&f.funnel, "funnel", "", "the `FUNNEL` that Guava's keys went through: "+joined(funnelNames()))
	cmd.RegisterFlagCompletionFunc("funnel", fixed(funnelNames()...))
}

// refuseIdle refuses flags about the format that none of the files needed: ours
// say all of that themselves, and so do those of most other programs.
func (f *formatFlags) refuseIdle(files ...*filterFile) error {
	name := "format"
	if f.from {
		name = "from"
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{name, f.format != ""}, {"scheme", f.scheme != ""}, {"bits", f.bits != 0}, {"probes", f.probes != 0}} {
		if flag.given && !slices.ContainsFunc(files, func(o *filterFile) bool { return o.takes(flag.name) }) {
			return usagef("%s: is a file of the format %s, which says itself what it is: leave --%s out", files[0].path, files[0].format(), flag.name)
		}
	}
	return nil
}

// takes reports whether the flag can matter to how the file was read.
func (f *filterFile) takes(flag string) bool {
	switch {
	case f.foreign == nil:
		return false
	case flag == "format" || flag == "from" || f.foreign.Format.Needs != "":
		return true
	}
	return flag == "scheme" && f.format() == "npm-bloom-filters" || flag == "bits" && strings.HasPrefix(f.format(), "parquet")
}

func (f *formatFlags) options() (interop.Options, error) {
	o := interop.Options{Bits: uint64(f.bits), Probes: int(f.probes)}
	if total, _ := machine.Usable(); total != 0 { // more could not be kept
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
	if f.scheme != "" {
		scheme, ok := bloom.SchemeNamed(f.scheme)
		if !ok {
			return o, usagef("--scheme %s is unknown: take one of %s", f.scheme, joined(schemeNames()))
		}
		o.Scheme = scheme
	}
	return o, nil
}

// openMode says what for a filter is opened.
type openMode bool

const (
	toRead   openMode = false // a Filter and a Scalable are mapped
	toChange openMode = true  // in memory
)

// openToSave is open for who will save. Until Close nobody else can change the
// file, but by replacing it, which save notices.
func (f *formatFlags) openToSave(path string, mode openMode) (*filterFile, error) {
	unlock, err := lockFilter(path)
	if err != nil {
		return nil, err
	}
	opened, err := f.openAny(path, mode)
	if err != nil {
		unlock()
		return nil, unclean(path, err)
	}
	opened.unlock = unlock
	return opened, nil
}

// Close releases the filter and the lock of its file.
func (f *filterFile) Close() error {
	if f.unlock != nil {
		defer f.unlock()
	}
	return f.Filter.Close()
}

// open opens a filter file of whatever kind.
func (f *formatFlags) open(path string, mode openMode) (*filterFile, error) {
	opened, err := f.openAny(path, mode)
	return opened, unclean(path, err)
}

func (f *formatFlags) openAny(path string, mode openMode) (*filterFile, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil && missingDirectory(path) != "":
		return nil, fmt.Errorf("%s: there is no directory %s", path, missingDirectory(path))
	case err != nil:
		return nil, withAdvice(lines.FileError(path, err))
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory: name a filter file in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file, which alone can be a filter's: write what comes from it to one first", path)
	}
	kind, err := bloom.KindOf(path)
	opened := &filterFile{path: path, info: info}
	switch {
	case err == nil:
		opened.kind = kind.String()
		opened.Filter, err = load(path, mode)
		if err == nil && info.Size() <= verifyBytes {
			err = opened.verifyMapped()
		}
		err = withAdvice(err)
	case errors.Is(err, bloom.ErrFormat) && info.Mode().IsRegular() && !beginsAsOurs(path):
		err = f.openForeign(opened)
	default:
		err = withAdvice(err)
	}
	if err != nil {
		return nil, err
	}
	opened.keys, err = newKeyMap(f.funnel, "")
	if err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// verifyBytes is the size of file up to which checksums are always looked at: it
// costs some milliseconds. A larger one is ready at once, and is verified by who
// asks for it.
const verifyBytes = 64 << 20

// verifyMapped finds damage in a file that was only mapped. One that another
// process changes meanwhile has no checksums that could be right.
func (f *filterFile) verifyMapped() error {
	mapped, ok := f.Filter.(interface{ Verify() error })
	if !ok {
		return nil
	}
	err := mapped.Verify()
	if err == nil || errors.Is(err, bloom.ErrUnclean) {
		return nil
	}
	f.Filter.Close()
	return fmt.Errorf("%s: %w", f.path, err)
}

// load loads a file of ours. To be read, it is mapped where its kind can be.
func load(path string, mode openMode) (bloom.Any, error) {
	if mode == toRead {
		return bloom.OpenAny(path)
	}
	return bloom.LoadAny(path)
}

// readOurs reads a file of ours from a stream, if it fits in the memory there is.
func readOurs(r io.Reader) (bloom.Any, error) {
	limit := int64(math.MaxInt64)
	if total, _ := machine.Usable(); total != 0 {
		limit = int64(total)
	}
	return bloom.ReadAny(r, limit)
}

// orNone makes a nil interface of a nil pointer.
func orNone[F bloom.Any](f F, err error) (bloom.Any, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// beginsAsOurs reports whether a file has our magic, so that what is wrong with
// it is not that it is somebody else's.
func beginsAsOurs(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, len(magic))
	io.ReadFull(file, head)
	return bytes.Equal(head, magic)
}

// magic begins every file of ours.
var magic = []byte("bloomery")

// headBytes is what formats are recognised by.
const headBytes = 4096

// openForeign reads the file of another program, which may be packed.
func (f *formatFlags) openForeign(opened *filterFile) error {
	file, err := os.Open(opened.path)
	if err != nil {
		return lines.FileError(opened.path, err)
	}
	defer file.Close()
	r, size := bufio.NewReaderSize(file, 1<<20), opened.info.Size()
	head, err := r.Peek(headBytes)
	if lines.Packing(head) == "gzip" && (err == nil || err == io.EOF) {
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			return lines.FileError(opened.path, err)
		}
		r, size, opened.packed = bufio.NewReaderSize(unpacked, 1<<20), -1, true
		head, err = r.Peek(headBytes)
		if err != nil && err != io.EOF {
			return lines.FileError(opened.path, err)
		}
	}
	if opened.packed && bytes.HasPrefix(head, magic) {
		return opened.readPacked(r)
	}
	format, err := f.formatOf(opened.path, head, size)
	if err != nil {
		return err
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	opened.foreign, err = format.Read(r, options)
	if err != nil {
		if format.Needs != "" && errors.Is(err, bloom.ErrConfig) {
			err = fmt.Errorf("%w: the format needs %s: give --bits, --probes or --scheme", err, format.Needs)
		}
		return fmt.Errorf("%s: %w", opened.path, err)
	}
	opened.setForeign(opened.foreign)
	return nil
}

// readPacked reads a file of ours that somebody packed.
func (f *filterFile) readPacked(r io.Reader) error {
	var err error
	f.Filter, err = readOurs(r)
	if err == nil { // to the end, where the checksum of gzip stands
		_, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return withAdvice(fmt.Errorf("%s: %w", f.path, err))
	}
	f.kind = kindOf(f.Filter)
	return nil
}

// setForeign makes the file one of another program.
func (f *filterFile) setForeign(file *interop.File) {
	f.foreign, f.Filter = file, file.Filter
	if chain, ok := file.Filter.(*redisbloom.Filter); ok {
		f.Filter = &chainFilter{Filter: chain}
	}
	f.kind = kindOf(f.Filter)
}

// chainFilter is RedisBloom's chain, which may have no room for a key. It then
// stops adding, and remembers why.
type chainFilter struct {
	*redisbloom.Filter
	err error
}

func (f *chainFilter) Err() error { return f.err }

func (f *chainFilter) AddMany(keys [][]byte, isNew []bool) (added int) {
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

// formatOf is the format that was named, or the one that the bytes tell.
func (f *formatFlags) formatOf(path string, head []byte, size int64) (*interop.Format, error) {
	if f.format != "" {
		format, ok := interop.FormatNamed(f.format)
		if !ok {
			return nil, usagef("--format %s is unknown: take one of %s", f.format, joined(formatNames()))
		}
		return format, nil
	}
	if packer := lines.Packing(head); packer != "" && packer != "gzip" {
		return nil, fmt.Errorf("%s: is packed by %s: unpack it first; only filters in gzip are read as they are", path, packer)
	}
	format, ok := interop.Recognise(head, size)
	if !ok {
		return nil, fmt.Errorf("%s: %w: it begins neither as one of ours nor as one of a program whose files can be told by their bytes: name its --format, if it has one ('bloomery convert --list')", path, bloom.ErrFormat)
	}
	return format, nil
}

// kindOf is the kind of a filter by its type.
func kindOf(f interop.Filter) string {
	switch f.(type) {
	case *bloom.Filter:
		return bloom.KindFilter.String()
	case *bloom.SplitBlock:
		return bloom.KindSplitBlock.String()
	case *bloom.Classic:
		return bloom.KindClassic.String()
	case *bloom.Scalable:
		return bloom.KindScalable.String()
	case *bloom.Window:
		return bloom.KindWindow.String()
	case *bloom.Counting:
		return bloom.KindCounting.String()
	case *bloom.Exceptions:
		return bloom.KindExceptions.String()
	}
	return "chain"
}

// format is the name of the file's format.
func (f *filterFile) format() string {
	if f.foreign != nil {
		return f.foreign.Format.Name
	}
	return ourFormat
}

// ourFormat is the name of our own format among the others.
const ourFormat = "bloomery"

// writeTo writes the file in the format that it has.
func (f *filterFile) writeTo(w io.Writer) error {
	if !f.packed {
		return f.writePlain(w)
	}
	packer := gzip.NewWriter(w)
	if err := f.writePlain(packer); err != nil {
		return err
	}
	return packer.Close()
}

func (f *filterFile) writePlain(w io.Writer) error {
	if f.foreign != nil {
		return f.foreign.Write(w, f.foreign.Format)
	}
	_, err := f.Filter.(io.WriterTo).WriteTo(w)
	return err
}

// save puts what the filter has become into the place of the file that it came
// from, by openToSave.
func (f *filterFile) save() error { return replaceFile(f.path, f.info, f.writeTo) }

// keyed are filters that may need a secret.
type keyed interface {
	NeedsSecret() bool
	SetSecret(secret []byte) error
}

func (f *filterFile) needsSecret() bool {
	k, ok := f.Filter.(keyed)
	return ok && k.NeedsSecret()
}

// unlock gives the secret to the filters that need one, and refuses a secret
// that none of them needs, and a filter that needs one that was not given.
func unlock(secretPath string, files ...*filterFile) error {
	secret, err := readSecret(secretPath)
	if err != nil {
		return err
	}
	used := false
	for _, f := range files {
		if !f.needsSecret() {
			continue
		}
		if secret == nil {
			return fmt.Errorf("%s: the filter is keyed: give --secret the file that it was built with", f.path)
		}
		if err := f.Filter.(keyed).SetSecret(secret); err != nil {
			return withAdvice(fmt.Errorf("%s: %w", f.path, err))
		}
		used = true
	}
	if secret != nil && !used {
		return fmt.Errorf("%s: the filter is not keyed: leave --secret out", files[0].path)
	}
	return nil
}

// noted are filters whose file has metadata.
type noted interface {
	Meta() map[string]string
	SetMeta(meta map[string]string) error
}

func (f *filterFile) meta() map[string]string {
	if n, ok := f.Filter.(noted); ok {
		return n.Meta()
	}
	return nil
}

// closeAll closes filters whose answers have been had.
func closeAll(files []*filterFile) {
	for _, f := range files {
		f.Close()
	}
}

// condition is that of the file's filter.
func (f *filterFile) condition() human.Condition {
	return human.Condition{Report: f.Report(), Unplanned: f.unplanned()}
}

// unplanned reports whether the file says neither n nor p. A file of ours says
// both; but those of a filter that came from such a file are what half of its bits
// set would be.
func (f *filterFile) unplanned() bool {
	if f.foreign != nil {
		return f.foreign.Unplanned
	}
	plan := f.Plan()
	switch k := f.Filter.(type) {
	case *bloom.Classic:
		return !k.Scheme().TakesHashes() && plan.Keys == halfFull(plan)
	case *bloom.SplitBlock:
		return k.HashIdentity().Algorithm == bloom.XXH64 && plan.Keys == halfFull(plan)
	}
	return false
}

// halfFull is how many keys set half of the bits: ln 2 m/k.
func halfFull(p bloom.Plan) uint64 {
	return max(uint64(float64(p.Bits)*math.Ln2/float64(p.Probes)), 1)
}
