package interop

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/elementary"
	"github.com/bloomery/bloom/internal/filterfile"
)

// DCSO is a filter as version 1 of github.com/DCSO/bloom writes it, and flor,
// fleur and poppy after it. The best known is CIRCL hashlookup's: its keys are
// hex digests as text, SHA-1 in upper case, SHA-256 in lower case. fleur, written in
// C, sets other bits for keys with bytes above 7f on processors where char is signed;
// for ASCII they all agree.
//
//	byte 0     flags; the lowest byte is the version, 1
//	byte 8     n
//	byte 16    p, a float64
//	byte 24    k
//	byte 32    m
//	byte 40    N, the keys that looked new when they were added
//	byte 48    ceil(m/64) words; bit i is in word i/64, mask 1<<(i%64)
//	then       free data up to the end of the file
//
// Each field has 8 bytes, the lowest first. The whole may be compressed with gzip.
type DCSO struct {
	// Filter has the bits, under [classic.SchemeDCSO]. For some m, including powers of
	// two, its rate is far above Rate.
	Filter *classic.Filter

	Flags    uint64  // as in the file; poppy's optimisation level is in the second byte
	Capacity uint64  // n, as in the file; Filter.Plan().Keys may differ if this is impossible
	Rate     float64 // p, as in the file, whatever it is
	Data     []byte  // free data, written back byte for byte
	Gzip     bool    // the file was, and will be, compressed

	count uint64 // N when it was read
}

const (
	dcsoHeadBytes = 48
	dcsoVersion   = 1
	poppyVersion  = 2

	// maxOpenData is the most free data that OpenDCSO reads into memory.
	maxOpenData = 64 << 20
)

var dcsoFormat = &Format{
	Name:    "dcso",
	About:   "DCSO/bloom version 1, flor, poppy version 1 (CIRCL hashlookup), also in gzip",
	Schemes: []classic.Scheme{classic.SchemeDCSO},
	Matches: matchesDCSO,
	plans:   true,
	read: func(r io.Reader, o Options) (*File, error) {
		d, err := ReadDCSO(r, o.Limit)
		if err != nil {
			return nil, err
		}
		return d.file(), nil
	},
	open: func(path string, o Options) (*File, error) {
		d, err := OpenDCSO(path)
		if errors.Is(err, errInGzip) || errors.Is(err, errNoFile) {
			d, err = loadDCSO(path, o.Limit)
		}
		if err != nil {
			return nil, err
		}
		return d.file(), nil
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(classic.SchemeDCSO)
		if err != nil {
			return err
		}
		d := NewDCSO(filter)
		if was, ok := f.state.(*DCSO); ok {
			*d = *was
			d.Filter = filter
		}
		d.Data = f.Data
		if r := filter.Report(); d.count == 0 && r.Added == 0 && !math.IsInf(r.Keys, 1) {
			d.count = uint64(math.Round(r.Keys)) // the filter came from a file without N
		}
		return d.Write(w)
	},
}

func (d *DCSO) file() *File {
	details := [][2]string{
		{"flags", fmt.Sprintf("%#x", d.Flags)},
		{"n", fmt.Sprint(d.Capacity)},
		{"p", fmt.Sprint(d.Rate)},
		{"N, keys that looked new", fmt.Sprint(d.count)},
		{"bytes of free data", fmt.Sprint(len(d.Data))},
	}
	return &File{Filter: d.Filter, Data: d.Data, Details: details, Unplanned: d.Capacity != d.Filter.Plan().Keys, state: d}
}

// NewDCSO returns the DCSO to write for a filter of [classic.SchemeDCSO]: n is the
// plan's Keys, and p the shortest number from which DCSO's formula derives m from n,
// as some readers compute it again. If there is none, p is the plan's Rate.
func NewDCSO(f *classic.Filter) *DCSO {
	plan := f.Plan()
	return &DCSO{Filter: f, Flags: dcsoVersion, Capacity: plan.Keys, Rate: dcsoRate(plan)}
}

func dcsoRate(plan bloom.Plan) float64 {
	middle := elementary.Exp(-(float64(plan.Bits) + 0.5) * math.Ln2 * math.Ln2 / float64(plan.Keys))
	for digits := range 17 {
		p, err := strconv.ParseFloat(strconv.FormatFloat(middle, 'e', digits, 64), 64)
		if err != nil {
			break
		}
		if m, k, err := classic.FormulaDCSO.Size(plan.Keys, p); err == nil && m == plan.Bits && k == plan.Probes {
			return p
		}
	}
	return plan.Rate
}

// Count is N: the keys that looked new when they were added, in the file and since.
func (d *DCSO) Count() uint64 { return d.count + d.Filter.Report().Added }

// ReadDCSO reads a file to its end, compressed with gzip or not. limitBytes is the
// most that it may have, decompressed; zero means no limit. The error wraps
// [bloom.ErrVersion] for a file of another version, such as poppy's 2,
// [bloom.ErrFormat] or [bloom.ErrLimit].
func ReadDCSO(r io.Reader, limitBytes int64) (*DCSO, error) {
	in := bufio.NewReader(r)
	r = in
	start, _ := in.Peek(len(gzipMark)) // an error of r shows again below
	isGzip := bytes.Equal(start, gzipMark)
	if isGzip {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, gzipError(err)
		}
		r = unpacking{unpacked}
	}
	if limitBytes > 0 {
		r = &limited{r, limitBytes}
	}
	d, c, err := readDCSOHead(r)
	if isGzip && errors.Is(err, errInGzip) {
		err = fmt.Errorf("%w: gzip within gzip: unpack the file once", bloom.ErrFormat)
	}
	if err != nil {
		return nil, err
	}
	d.Gzip = isGzip
	if d.Filter, err = c.ReadBits(r, classic.LittleEndianWords); err != nil {
		return nil, err
	}
	if d.Data, err = io.ReadAll(r); err != nil {
		d.Filter.Close()
		return nil, fmt.Errorf("interop: reading the free data: %w", err)
	}
	return d, nil
}

// OpenDCSO maps a file that is not compressed: it is ready at once, however large,
// and its pages are read when they are accessed. Changing the filter panics,
// [classic.Filter.Clone] makes one that can be changed; Close the filter when
// done. What [bloom.Open] says of the file holds here as well. The errors are
// those of [ReadDCSO]; [bloom.ErrLimit] is for more than 64 MiB of free data.
func OpenDCSO(path string) (*DCSO, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("interop: opening: %w", err)
	}
	if !info.Mode().IsRegular() { // a named pipe would wait for its writer
		return nil, fmt.Errorf("%s: %w", path, errNoFile)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("interop: opening: %w", err)
	}
	defer file.Close() // OpenBits opens its own
	d, c, err := readDCSOHead(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if d.Filter, err = c.OpenBits(path, dcsoHeadBytes); err != nil {
		return nil, err
	}
	end := dcsoHeadBytes + int64(c.Bits+63)/64*8
	behind := info.Size() - end
	if behind > maxOpenData {
		err = fmt.Errorf("%w: %d bytes of free data, and at most %d are read into memory: ReadDCSO reads more", bloom.ErrLimit, behind, maxOpenData)
	} else {
		d.Data, err = io.ReadAll(io.NewSectionReader(file, end, behind))
	}
	if err != nil {
		d.Filter.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// Files that can be read but not mapped.
var (
	errInGzip = fmt.Errorf("%w: gzip cannot be mapped: unpack the file first, or read it by ReadDCSO", bloom.ErrFormat)
	errNoFile = fmt.Errorf("%w: not a regular file: use ReadDCSO for a stream", bloom.ErrFormat)
)

// loadDCSO is ReadDCSO of a file.
func loadDCSO(path string, limitBytes int64) (*DCSO, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("interop: opening: %w", err)
	}
	defer file.Close()
	return ReadDCSO(file, limitBytes)
}

// readDCSOHead reads the header and returns it with the filter's config.
func readDCSOHead(r io.Reader) (*DCSO, classic.Config, error) {
	none := classic.Config{}
	head := make([]byte, dcsoHeadBytes)
	n, err := io.ReadFull(r, head)
	switch {
	case bytes.HasPrefix(head[:n], gzipMark):
		return nil, none, errInGzip
	case n >= 8 && head[0] != dcsoVersion && !isZero(head[2:8]):
		return nil, none, fmt.Errorf("%w: it does not begin as a DCSO filter does", bloom.ErrFormat)
	case n >= 8 && head[0] == poppyVersion:
		return nil, none, fmt.Errorf("%w: this is version 2, of poppy, which has another hash and another layout: version 1 is written by poppy --version 1", bloom.ErrVersion)
	case n >= 8 && head[0] != dcsoVersion:
		return nil, none, fmt.Errorf("%w: DCSO's version is %d, this is %d", bloom.ErrVersion, dcsoVersion, head[0])
	case err != nil:
		return nil, none, filterfile.ReadError(err)
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(head[at:]) }
	d := &DCSO{Flags: word(0), Capacity: word(8), Rate: math.Float64frombits(word(16)), count: word(40)}
	m, k := word(32), word(24)
	if k == 0 || m == 0 || k > math.MaxInt32 {
		return nil, none, fmt.Errorf("%w: m = %d and k = %d make no filter", bloom.ErrFormat, m, k)
	}
	c := classic.Config{Keys: d.Capacity, Bits: m, Probes: int(k), Scheme: classic.SchemeDCSO}
	if _, err := c.Plan(); err != nil {
		c.Keys = 0 // n is unchecked
	}
	if _, err := c.Plan(); err != nil {
		return nil, none, fmt.Errorf("%w: %w", bloom.ErrFormat, err)
	}
	return d, c, nil
}

// Write writes the file. N is [DCSO.Count]. The error wraps [ErrScheme] unless
// the filter is of [classic.SchemeDCSO].
func (d *DCSO) Write(w io.Writer) error {
	if d.Filter.Scheme() != classic.SchemeDCSO {
		return fmt.Errorf("%w: DCSO has no scheme %v: build the filter again from its keys", ErrScheme, d.Filter.Scheme())
	}
	if !d.Gzip {
		return d.writePlain(w)
	}
	packed := gzip.NewWriter(w)
	if err := d.writePlain(packed); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return fmt.Errorf("interop: writing: %w", err)
	}
	return nil
}

func (d *DCSO) writePlain(w io.Writer) error {
	plan := d.Filter.Plan()
	head := make([]byte, 0, dcsoHeadBytes)
	for _, word := range []uint64{d.Flags&^0xff | dcsoVersion, d.Capacity, math.Float64bits(d.Rate), uint64(plan.Probes), plan.Bits, d.Count()} {
		head = binary.LittleEndian.AppendUint64(head, word)
	}
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("interop: writing: %w", err)
	}
	if _, err := d.Filter.WriteBits(w, classic.LittleEndianWords); err != nil {
		return err
	}
	if _, err := w.Write(d.Data); err != nil {
		return fmt.Errorf("interop: writing: %w", err)
	}
	return nil
}

var gzipMark = []byte{0x1f, 0x8b}

// unpacking is a gzip reader that reports damage as such.
type unpacking struct{ from *gzip.Reader }

func (u unpacking) Read(b []byte) (int, error) {
	n, err := u.from.Read(b)
	return n, gzipError(err)
}

func gzipError(err error) error {
	var damage flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &damage) {
		return fmt.Errorf("%w: the gzip around it is damaged: %w", bloom.ErrFormat, err)
	}
	return err
}

// matchesDCSO also accepts version 2, so that Read can name the version.
func matchesDCSO(head []byte, size int64) bool {
	if bytes.HasPrefix(head, gzipMark) {
		return matchesZippedDCSO(head)
	}
	if len(head) < dcsoHeadBytes || !mayBeDCSO(head) {
		return false
	}
	m, k := binary.LittleEndian.Uint64(head[32:]), binary.LittleEndian.Uint64(head[24:])
	if head[0] == poppyVersion || size < 0 {
		return head[0] == poppyVersion || m != 0 && m <= math.MaxInt64 && k != 0
	}
	whole := m != 0 && m <= math.MaxInt64 && k != 0 && uint64(size) >= dcsoHeadBytes+(m+63)/64*8
	return whole || mayBeCutDCSO(head)
}

// mayBeCutDCSO recognises a file that is shorter than it claims, as after an
// interrupted download, if n, p, k and m are consistent, so that Read can say so.
func mayBeCutDCSO(head []byte) bool {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(head[at:]) }
	m, k, err := classic.FormulaDCSO.Size(word(8), math.Float64frombits(word(16)))
	return err == nil && m == word(32) && uint64(k) == word(24)
}

// matchesZippedDCSO unpacks as much of a header as head holds. If that is little or
// nothing, the file is assumed to be DCSO's, the only format that uses gzip.
func matchesZippedDCSO(head []byte) bool {
	unpacked, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return errors.Is(err, io.ErrUnexpectedEOF) // a long name, for one
	}
	start, err := io.ReadAll(io.LimitReader(unpacked, dcsoHeadBytes))
	if len(start) == dcsoHeadBytes {
		return !bytes.HasPrefix(start, gzipMark) && matchesDCSO(start, -1)
	}
	return errors.Is(err, io.ErrUnexpectedEOF) && mayBeDCSO(start)
}

// mayBeDCSO checks the flags, as far as they are there.
func mayBeDCSO(head []byte) bool {
	const mostOptions = 3 // poppy's, in the second byte
	var flags [8]byte
	n := copy(flags[:], head)
	return n == 0 || (flags[0] == dcsoVersion || flags[0] == poppyVersion) && flags[1] <= mostOptions && isZero(flags[2:])
}
