package bloom_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/long"
)

// What a file is made of, as docs/format.md has it. These stand here a second
// time: the tests must not take the library's word for them.
const (
	page      = 4096
	body      = 3 * page
	block     = 512
	mib       = 1 << 20
	stateAt   = page // page 1
	state2At  = 2 * page
	sectionAt = stateAt + 64
)

var (
	testSecret = []byte("sixteen bytes ..")
	le         = binary.LittleEndian
)

// A shape is a filter worth putting into a file.
type shape struct {
	name   string
	config bloom.Config
	keys   int
	meta   map[string]string
	bytes  int64 // of the file
}

// shapes have every kind of end that a body can have: within a page and on it,
// within a checksum's MiB and on it, in Go's heap and in memory of its own.
func shapes() []shape {
	ofBlocks := func(blocks uint64) bloom.Config { return bloom.Config{Keys: 500, Bits: blocks * block * 8} }
	file := func(blocks int64) int64 { return body + blocks*block + (blocks*block+mib-1)/mib*4 + 4 }
	keyed := ofBlocks(9)
	keyed.Secret = testSecret
	seeded := ofBlocks(4)
	seeded.Seed = 1 << 63
	thin := ofBlocks(2)
	thin.Probes = 2
	fat := ofBlocks(2)
	fat.Probes = 16
	return []shape{
		{"one block", ofBlocks(1), 50, nil, file(1)},
		{"empty", ofBlocks(1), 0, nil, file(1)},
		{"seven blocks", ofBlocks(7), 300, map[string]string{"source": "Fiume"}, file(7)},
		{"one page", ofBlocks(8), 300, nil, file(8)},
		{"k 2", thin, 100, nil, file(2)},
		{"k 16", fat, 100, nil, file(2)},
		{"keyed", keyed, 300, map[string]string{"normalize": "url", "licence": "", "": "no name"}, file(9)},
		{"seeded", seeded, 300, map[string]string{"ž": strings.Repeat("€", 1000)}, file(4)},
		{"1 MiB less a block", ofBlocks(2047), 500, nil, file(2047)},
		{"1 MiB", ofBlocks(2048), 500, nil, file(2048)},
		{"1 MiB and a block", ofBlocks(2049), 500, nil, file(2049)},
		{"2 MiB", ofBlocks(4096), 500, nil, file(4096)},
		{"more than 5 MiB", ofBlocks(5*2048 + 3), 500, nil, file(5*2048 + 3)},
	}
}

func (s shape) filter(t testing.TB) *bloom.Filter {
	t.Helper()
	f := mustNew(t, s.config)
	for i := range s.keys {
		f.AddUint64(uint64(i))
	}
	if err := f.SetMeta(s.meta); err != nil {
		t.Fatal(err)
	}
	return f
}

func fileOf(t testing.TB, f *bloom.Filter) []byte {
	t.Helper()
	var file bytes.Buffer
	n, err := f.WriteTo(&file)
	if err != nil || n != int64(file.Len()) {
		t.Fatalf("WriteTo = %d, %v; it wrote %d bytes", n, err, file.Len())
	}
	return file.Bytes()
}

// A derivation is all that comes from a key's hash, in the words of
// docs/format.md and with nothing from the library.
type derivation struct {
	block, p, q, g, x, s, a, b uint64
	rowA, rowB                 uint64
	countsA, countsB           uint64
}

func derive(h, blocks uint64, k int) (d derivation) {
	d.block, _ = bits.Mul64(h, blocks)
	d.q, d.p = bits.Mul64(h, 0xd1342543de82ef95)
	d.g = d.p ^ d.q
	hi, lo := bits.Mul64(d.g, 0x9fb21c651e98df25)
	d.x = hi ^ lo
	d.s = d.p & 0xffffffff
	d.a = d.s >> 24 & 7
	d.b = d.a ^ (1 + (d.s&0xffffff)*7>>24)
	rows := rowsOf(k / 2)
	d.rowA, d.rowB = rows[d.s&255], rows[d.s>>8&255]
	d.countsA = d.g&0x3f3f3f3f3f3f3f3f | d.rowA
	d.countsB = d.x&0x3f3f3f3f3f3f3f3f | d.rowB
	return d
}

// rowsOf makes the table of rows for a number of bits per line. The sets of lanes are
// numbers with bit i for lane i, listed as the page says: a set is followed by
// its other rotations, those with few rotations first.
func rowsOf(perLine int) (rows [256]uint64) {
	var patterns []uint64
	for _, length := range []int{1, 2, 4, 8} {
		seen := map[uint64]bool{}
		for lanes := range uint64(256) {
			if bits.OnesCount64(lanes) != perLine || seen[lanes] {
				continue
			}
			var family []uint64
			for set := lanes; !seen[set]; set = (set<<1 | set>>7) & 255 {
				seen[set] = true
				pattern := uint64(0)
				for lane := range 8 {
					if set>>lane&1 == 0 {
						pattern |= 0x40 << (8 * lane)
					}
				}
				family = append(family, pattern)
			}
			if len(family) == length {
				patterns = append(patterns, family...)
			}
		}
	}
	for r := range rows {
		rows[r] = patterns[r%len(patterns)]
	}
	return rows
}

// positions returns which bits a key with hash h sets in a body of this many blocks. Bit i of the body is bit i%8 of its byte i/8.
func positions(h, blocks uint64, k int) (found []uint64) {
	d := derive(h, blocks, k)
	for lane := range uint64(8) {
		if count := d.countsA >> (8 * lane) & 255; count < 64 {
			found = append(found, d.block*4096+d.a*512+lane*64+count)
		}
		if count := d.countsB >> (8 * lane) & 255; count < 64 {
			found = append(found, d.block*4096+d.b*512+lane*64+count)
		}
	}
	return found
}

// sameFilter compares everything that a file carries.
func sameFilter(t testing.TB, how string, got, want *bloom.Filter) {
	t.Helper()
	if !got.Equal(want) {
		t.Errorf("%s: the bits differ", how)
	}
	if got.Plan() != want.Plan() || got.HashIdentity() != want.HashIdentity() {
		t.Errorf("%s: got %v, want %v", how, got, want)
	}
	if !maps.Equal(got.Meta(), want.Meta()) {
		t.Errorf("%s: Meta() = %q, want %q", how, got.Meta(), want.Meta())
	}
	if g, w := got.Report(), want.Report(); g != w {
		t.Errorf("%s: Report() = %+v, want %+v", how, g, w)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			f := s.filter(t)
			file := fileOf(t, f)
			if bloom.Inside.FileBytes(f) != s.bytes || int64(len(file)) != s.bytes {
				t.Errorf("FileBytes() = %d, the file has %d bytes, want %d", bloom.Inside.FileBytes(f), len(file), s.bytes)
			}
			if !bytes.Equal(file, fileOf(t, f)) || !bytes.Equal(file, fileOf(t, f.Clone())) {
				t.Error("the same filter gave two different files")
			}
			// A reader may give as little as it likes at a time.
			for how, r := range map[string]io.Reader{
				"whole":             bytes.NewReader(file),
				"half":              iotest.HalfReader(bytes.NewReader(file)),
				"end with the last": iotest.DataErrReader(bytes.NewReader(file)),
			} {
				g, err := bloom.Read(r, s.bytes)
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				sameFilter(t, how, g, f)
				if !bytes.Equal(file, fileOf(t, g)) {
					t.Errorf("%s: read and written again, the file is another", how)
				}
				if g.NeedsSecret() {
					if err := g.SetSecret(testSecret); err != nil {
						t.Fatal(err)
					}
				}
				for i := range s.keys {
					if !g.ContainsUint64(uint64(i)) {
						t.Fatalf("%s: key %d is lost", how, i)
					}
				}
				if err := g.Verify(); err != nil {
					t.Errorf("%s: Verify of a filter in memory: %v", how, err)
				}
			}
		})
	}
}

// TestRoundTripOfPlans: whatever filter can be made, its file can be read.
func TestRoundTripOfPlans(t *testing.T) {
	check := func(f *bloom.Filter) {
		t.Helper()
		g, err := bloom.Read(bytes.NewReader(fileOf(t, f)), math.MaxInt64)
		if err != nil {
			t.Errorf("%v: %v", f, err)
			return
		}
		sameFilter(t, f.String(), g, f)
	}
	for _, c := range []bloom.Config{
		{Keys: 1, Rate: 1e-12},
		{Keys: 1, Rate: 0.999999},
		{Keys: 1, Bits: 1},
		{Keys: 1, Bits: 1 << 23},
		{Keys: 1 << 44, Bits: 1}, // hopelessly full
		{Rate: 0.5, Bits: 1 << 20},
		{Rate: 1e-12, Bits: 1 << 20},
		{Keys: 1000, Rate: 0.01, Folds: 1 << 10},
		{Keys: 1000, Rate: 0.01, Seed: math.MaxUint64},
	} {
		f := mustNew(t, c)
		f.AddString("a")
		check(f)
		if c.Folds == 0 {
			continue
		}
		for by := uint64(2); by <= c.Folds; by *= 2 {
			g, err := f.Fold(by)
			if err != nil {
				t.Fatal(err)
			}
			check(g)
		}
	}
}

func TestReadStopsAtTheEnd(t *testing.T) {
	var stream bytes.Buffer
	all := shapes()
	for _, s := range all {
		s.filter(t).WriteTo(&stream)
	}
	stream.WriteString("rest")
	// HalfReader has no method but Read, so nothing can be put back.
	r := iotest.HalfReader(&stream)
	for _, s := range all {
		g, err := bloom.Read(r, s.bytes)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		sameFilter(t, s.name, g, s.filter(t))
	}
	if rest, err := io.ReadAll(r); string(rest) != "rest" || err != nil {
		t.Errorf("behind the filters came %q, %v, want %q", rest, err, "rest")
	}
}

func TestReadersOwnError(t *testing.T) {
	file := fileOf(t, shapes()[0].filter(t))
	broken := errors.New("the cable is cut")
	for _, n := range []int{0, 1, page, body, body + 1, len(file) - 1} {
		r := io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken))
		if _, err := bloom.Read(r, math.MaxInt64); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "bloom: ") {
			t.Errorf("error after %d bytes: got %v, want %v", n, err, broken)
		}
	}
}

// A fullDisk accepts room bytes, then fails.
type fullDisk struct{ room int }

var errFull = errors.New("the disk is full")

func (w *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), w.room)
	w.room -= n
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

func TestWriteToFullDisk(t *testing.T) {
	f := shapes()[len(shapes())-1].filter(t)
	for _, room := range []int64{0, page, body - 1, body, body + mib, body + mib + 1, bloom.Inside.FileBytes(f) - 1} {
		n, err := f.WriteTo(&fullDisk{int(room)})
		if n != room || !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "bloom: writing the ") {
			t.Errorf("with room for %d bytes WriteTo = %d, %v", room, n, err)
		}
	}
}

func TestLockedFilter(t *testing.T) {
	c := bloom.Config{Keys: 100, Rate: 0.01, Secret: testSecret}
	f := mustNew(t, c)
	f.AddString("Titanic")
	locked := func() *bloom.Filter {
		g, err := bloom.Read(bytes.NewReader(fileOf(t, f)), math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := locked()
	if f.NeedsSecret() || !g.NeedsSecret() || !g.Clone().NeedsSecret() {
		t.Error("NeedsSecret is wrong")
	}
	one, text := [][]byte{nil}, []string{""}
	for name, call := range map[string]func(){
		"Add":             func() { g.Add(nil) },
		"AddString":       func() { g.AddString("") },
		"AddUint64":       func() { g.AddUint64(0) },
		"AddMany":         func() { g.AddMany(one, nil) },
		"AddStrings":      func() { g.AddStrings(text, nil) },
		"Contains":        func() { g.Contains(nil) },
		"ContainsString":  func() { g.ContainsString("") },
		"ContainsUint64":  func() { g.ContainsUint64(0) },
		"ContainsMany":    func() { g.ContainsMany(one, nil) },
		"ContainsStrings": func() { g.ContainsStrings(text, nil) },
		"Hash":            func() { g.Hash(nil) },
		"HashString":      func() { g.HashString("") },
	} {
		const want = "bloom: the filter is keyed: call SetSecret before hashing keys"
		if message := panicOf(call); message != want {
			t.Errorf("%s of a locked filter panics with %q, want %q", name, message, want)
		}
	}

	// What needs no key works.
	h := f.HashString("Titanic")
	if !g.ContainsHash(h) || g.ContainsHashes([]uint64{h}, nil) != 1 {
		t.Error("ContainsHash of a locked filter is wrong")
	}
	sameFilter(t, "locked", g, f)
	empty := mustNew(t, c)
	if err := empty.Union(g); err != nil || !empty.Equal(f) {
		t.Errorf("Union with a locked filter: %v", err)
	}
	if err := g.Union(f); err != nil {
		t.Errorf("Union onto a locked filter: %v", err)
	}
	if _, err := g.Fold(1); err != nil {
		t.Errorf("Fold of a locked filter: %v", err)
	}

	g = locked()
	for _, wrong := range [][]byte{nil, []byte("another sixteen.")} {
		if err := g.SetSecret(wrong); !errors.Is(err, bloom.ErrSecret) || !g.NeedsSecret() {
			t.Errorf("SetSecret(%q): got %v, want ErrSecret and a locked filter", wrong, err)
		}
	}
	if err := g.SetSecret([]byte("short")); err == nil || !g.NeedsSecret() {
		t.Error("SetSecret takes a short secret")
	}
	if err := g.SetSecret(testSecret); err != nil || g.NeedsSecret() || !g.ContainsString("Titanic") || !g.AddString("Avatar") {
		t.Errorf("SetSecret with the right one: %v", err)
	}
	if bytes.Contains(fileOf(t, f), testSecret[:8]) || bytes.Contains(fileOf(t, f), testSecret[8:]) {
		t.Error("the secret stands in the file")
	}
	if err := mustNew(t, bloom.Config{Keys: 1, Rate: 0.1}).SetSecret(testSecret); !errors.Is(err, bloom.ErrSecret) {
		t.Errorf("SetSecret of an unkeyed filter: got %v, want ErrSecret", err)
	}
}

// TestLayoutOnPaper: for every k, a filter has the bits that docs/format.md says,
// and no others. What is tried here is the page: a reader in another language is
// written from it alone.
func TestLayoutOnPaper(t *testing.T) {
	for k := 2; k <= 16; k += 2 {
		for _, blocks := range []uint64{1, 2, 3, 100} {
			f := mustNew(t, bloom.Config{Keys: 500, Bits: blocks * block * 8, Probes: k})
			want := make([]byte, blocks*block)
			for i := range 50 {
				key := fmt.Sprint("key ", i)
				f.AddString(key)
				found := positions(f.HashString(key), blocks, k)
				if len(found) != k {
					t.Fatalf("%q has %d bits on paper, want %d", key, len(found), k)
				}
				for _, bit := range found {
					want[bit/8] |= 1 << (bit % 8)
				}
			}
			if got := fileOf(t, f)[body:][:blocks*block]; !bytes.Equal(got, want) {
				t.Errorf("k %d, %d blocks: the bits are not those of the page", k, blocks)
			}
		}
	}
}

// The next three print the worked example of docs/format.md, for go test -v.

// exampleFilter is the filter of the worked example.
func exampleFilter(t *testing.T) *bloom.Filter {
	f := mustNew(t, bloom.Config{Keys: 1000, Rate: 0.01})
	f.AddString("Titanic")
	if err := f.SetMeta(map[string]string{"source": "docs"}); err != nil {
		t.Fatal(err)
	}
	return f
}

// show prints a part of the page.
func show(format string, args ...any) {
	if testing.Verbose() {
		fmt.Printf(format, args...)
	}
}

// TestShowFile prints the file as hexdump -C does: * stands for more lines like
// the one above it.
func TestShowFile(t *testing.T) {
	file := fileOf(t, exampleFilter(t))
	var last []byte
	squeezed := false
	for at := 0; at < len(file); at += 16 {
		line := file[at:min(at+16, len(file))]
		switch {
		case !bytes.Equal(line, last):
			show("%08x%s", at, hex.Dump(line)[8:])
			last, squeezed = line, false
		case !squeezed:
			show("*\n")
			squeezed = true
		}
	}
	show("%08x\n", len(file))
}

func TestShowKey(t *testing.T) {
	f := exampleFilter(t)
	h, blocks, k := f.HashString("Titanic"), f.Plan().Blocks, f.Plan().Probes
	d := derive(h, blocks, k)
	show("h         %016x    XXH3-64 of %q, seed %d\n", h, "Titanic", f.HashIdentity().Key)
	show("B, k      %d, %d\n", blocks, k)
	show("block     %d\n", d.block)
	show("p         %016x\nq         %016x\ng         %016x\nx         %016x\n", d.p, d.q, d.g, d.x)
	show("s         %08x\n", d.s)
	show("a, b      %d, %d\n", d.a, d.b)
	show("row a     %016x    rows[%d]\nrow b     %016x    rows[%d]\n", d.rowA, d.s&255, d.rowB, d.s>>8&255)
	show("counts a  %016x\ncounts b  %016x\n\n", d.countsA, d.countsB)
	show("line  lane  bit   in the file\n")
	found := positions(h, blocks, k)
	slices.Sort(found)
	file := fileOf(t, f)
	set := 0
	for _, bit := range found {
		at := body + bit/8
		show("%4d  %4d  %3d   byte %x, mask %02x\n", bit/512%8, bit/64%8, bit%64, at, 1<<(bit%8))
		if file[at]&(1<<(bit%8)) == 0 {
			t.Errorf("bit %d of byte %d is clear in the file", bit%8, at)
		}
	}
	for _, b := range file[body:][:blocks*block] {
		set += bits.OnesCount8(b)
	}
	if set != k {
		t.Errorf("%d bits are set, want %d", set, k)
	}
}

// TestShowChecks prints what shows an implementation in another language that its
// hashes and tables are right.
func TestShowChecks(t *testing.T) {
	secret := make([]byte, bloom.SecretBytes)
	for i := range secret {
		secret[i] = byte(i)
	}
	plain := mustNew(t, bloom.Config{Keys: 1, Rate: 0.1})
	seeded := mustNew(t, bloom.Config{Keys: 1, Rate: 0.1, Seed: 1})
	keyed := mustNew(t, bloom.Config{Keys: 1, Rate: 0.1, Secret: secret})
	show("key        XXH3-64, seed 0   XXH3-64, seed 1   SipHash-2-4, secret 00 01 .. 0f\n")
	for _, key := range []string{"", "a", "Titanic"} {
		show("%-9q  %016x  %016x  %016x\n", key, plain.HashString(key), seeded.HashString(key), keyed.HashString(key))
	}
	show("fingerprint of the secret              %016x\n\n", keyed.HashIdentity().Key)

	show(" K  rows[0]           rows[100]         rows[255]         CRC-32C of the table\n")
	for perLine := 1; perLine <= 8; perLine++ {
		rows := rowsOf(perLine)
		var table []byte
		for _, row := range rows {
			table = le.AppendUint64(table, row)
		}
		show("%2d  %016x  %016x  %016x  %08x\n", perLine, rows[0], rows[100], rows[255], sumOf(table))
	}
}

// The rest is about bytes that we did not write.

// isSentinel reports whether err is one of those that Read promises.
func isSentinel(err error) bool {
	return errors.Is(err, bloom.ErrFormat) || errors.Is(err, bloom.ErrVersion) ||
		errors.Is(err, bloom.ErrChecksum) || errors.Is(err, bloom.ErrLimit)
}

// seal puts the right checksum on the page that begins at byte at.
func seal(file []byte, at int) {
	le.PutUint32(file[at+page-4:], sumOf(file[at:at+page-4]))
}

func sumOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// openings are the three ways into a file. Each returns the error of making sure
// that all of it is right.
var openings = []struct {
	name string
	open func(path string) (*bloom.Filter, error)
}{
	{"Read", func(path string) (*bloom.Filter, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return bloom.Read(file, math.MaxInt64)
	}},
	{"Load", bloom.Load},
	{"Open and Verify", func(path string) (*bloom.Filter, error) {
		f, err := bloom.Open(path)
		if err != nil {
			return nil, err
		}
		if err := f.Verify(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}},
}

// refused checks that every way into these bytes gives the error, with text in it.
func refused(t *testing.T, name string, file []byte, want error, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hostile")
	if err := os.WriteFile(path, file, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, how := range openings {
		f, err := how.open(path)
		if err == nil {
			f.Close()
		}
		if !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%s: %s: got error %v, want %q with %q", name, how.name, err, want, text)
		}
	}
}

// smallFile is a file of one block with a key in it, where damage is tried byte
// by byte.
func smallFile(t testing.TB) []byte {
	f := mustNew(t, bloom.Config{Keys: 10, Bits: 4096})
	f.SetMeta(map[string]string{"source": "test"})
	f.AddString("Titanic")
	return fileOf(t, f)
}

func TestTruncated(t *testing.T) {
	whole := smallFile(t)
	path := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(path, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	for n := len(whole) - 1; n >= 0; n-- {
		if err := os.Truncate(path, int64(n)); err != nil {
			t.Fatal(err)
		}
		for _, how := range openings {
			if _, err := how.open(path); !errors.Is(err, bloom.ErrFormat) {
				t.Fatalf("%s of %d bytes out of %d: got error %v, want ErrFormat", how.name, n, len(whole), err)
			}
		}
	}
}

func TestEveryByteChanged(t *testing.T) {
	long.Test(t)
	whole := smallFile(t)
	path := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(path, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	put := func(i int, b byte) {
		if _, err := file.WriteAt([]byte{b}, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	memory := slices.Clone(whole)
	for i := range whole {
		for _, change := range []byte{0x01, 0x80, 0xff} {
			memory[i] = whole[i] ^ change
			_, err := bloom.Read(bytes.NewReader(memory), math.MaxInt64)
			if !isSentinel(err) {
				t.Fatalf("Read with byte %d changed by %#x: got error %v", i, change, err)
			}
			if i >= 10 && !errors.Is(err, bloom.ErrChecksum) { // before that lie magic and version
				t.Fatalf("Read with byte %d changed by %#x: got error %q, want ErrChecksum", i, change, err)
			}
		}
		memory[i] = whole[i]
		put(i, whole[i]^0x80)
		for _, how := range openings[1:] {
			if _, err := how.open(path); !isSentinel(err) {
				t.Fatalf("%s with byte %d changed: got error %v", how.name, i, err)
			}
		}
		put(i, whole[i])
	}
	for _, how := range openings {
		if _, err := how.open(path); err != nil {
			t.Errorf("%s with every byte put back: %v", how.name, err)
		}
	}
}

// TestDamageIsPlaced: the message says which MiB of a larger file is damaged.
func TestDamageIsPlaced(t *testing.T) {
	whole := fileOf(t, mustNew(t, bloom.Config{Keys: 500, Bits: 8 * (2*mib + block)}))
	for _, tt := range []struct {
		at   int
		text string
	}{
		{body, "the MiB at byte 12288"},
		{body + mib - 1, "the MiB at byte 12288"},
		{body + mib, "the MiB at byte 1060864"},
		{body + 2*mib + block - 1, "the MiB at byte 2109440"},
		{len(whole) - 5, "the list of checksums"},
		{len(whole) - 1, "the list of checksums"},
	} {
		file := slices.Clone(whole)
		file[tt.at] ^= 4
		refused(t, fmt.Sprintf("byte %d changed", tt.at), file, bloom.ErrChecksum, tt.text)
	}
	// The list may be changed together with its own sum.
	file := slices.Clone(whole)
	list := file[body+2*mib+block:]
	list[0] ^= 1
	le.PutUint32(list[len(list)-4:], sumOf(list[:len(list)-4]))
	refused(t, "another list", file, bloom.ErrChecksum, "the MiB at byte 12288")
}

// TestImpossibleFields changes fields and then puts the checksums right, so that
// the checks behind them are reached.
func TestImpossibleFields(t *testing.T) {
	u16 := func(at int, v uint16) func([]byte) { return func(file []byte) { le.PutUint16(file[at:], v) } }
	u32 := func(at int, v uint32) func([]byte) { return func(file []byte) { le.PutUint32(file[at:], v) } }
	u64 := func(at int, v uint64) func([]byte) { return func(file []byte) { le.PutUint64(file[at:], v) } }
	rate := func(v float64) func([]byte) { return u64(40, math.Float64bits(v)) }
	meta := func(text string) func([]byte) {
		return func(file []byte) {
			clear(file[64 : page-4])
			copy(file[64:], text)
		}
	}
	blocks := func(n uint64) func([]byte) { // with a length that agrees, modulo 2^64
		return func(file []byte) {
			le.PutUint64(file[sectionAt+16:], n*block)
			le.PutUint64(file[sectionAt+24:], n)
			le.PutUint64(file[stateAt+24:], body+n*block)
			le.PutUint64(file[stateAt+32:], body+n*block+8)
		}
	}
	const atLength, atBlocks, atOffset = sectionAt + 16, sectionAt + 24, sectionAt + 8
	format, version := bloom.ErrFormat, bloom.ErrVersion
	for _, tt := range []struct {
		name   string
		change func([]byte)
		want   error
		text   string
	}{
		{"magic", u16(0, 0), format, "it does not begin with"},
		{"version 0", u16(8, 0), version, "file version 0, this release reads 1"},
		{"version 2", u16(8, 2), version, "file version 2, this release reads 1"},
		{"version 65535", u16(8, 65535), version, "file version 65535"},
		{"kind 0", u16(10, 0), version, "kind 0"},
		{"kind 99", u16(10, 99), version, "kind 99"},
		{"scheme 0", u32(12, 0), version, "scheme 0"},
		{"scheme 2", u32(12, 2), version, "scheme 2"},
		{"scheme 2^32-1", u32(12, math.MaxUint32), version, "scheme 4294967295"},
		{"hash 0", u32(16, 0), version, "hash 0"},
		{"hash 3", u32(16, 3), version, "hash 3"},
		{"hash 257", u32(16, 257), version, "hash 257"},
		{"hash 2^32-1", u32(16, math.MaxUint32), version, "hash 4294967295"},
		{"keys 0", u64(32, 0), format, "planned for 0 keys"},
		{"keys 2^44+1", u64(32, 1<<44+1), format, "planned for 17592186044417 keys"},
		{"keys 2^64-1", u64(32, math.MaxUint64), format, "planned for"},
		{"rate NaN", rate(math.NaN()), format, "rate NaN"},
		{"rate -0.5", rate(-0.5), format, "rate -0.5"},
		{"rate 2", rate(2), format, "rate 2"},
		{"rate +Inf", rate(math.Inf(1)), format, "rate +Inf"},
		{"header byte 20 in use", u32(20, 1), format, "bytes in use"},
		{"header byte 48 in use", u64(48, 1<<40), format, "bytes in use"},
		{"header byte 63 in use", u64(56, 1<<63), format, "bytes in use"},
		{"header's last byte in use", u64(page-12, 1<<63), format, "bytes in use"},
		{"65535 pairs of metadata", meta("\xff\xff"), format, "metadata"},
		{"a metadata key of 65535 bytes", meta("\x01\x00\xff\xff"), format, "metadata run over"},
		{"a metadata value to the page's end and one more", meta("\x01\x00\x00\x00\xb7\x0f"), format, "metadata run over"},
		{"half a length of metadata at the page's end", meta("\x02\x00\x00\x00\xb5\x0f"), format, "metadata run over"},
		{"no length of metadata at the page's end", meta("\x02\x00\x00\x00\xb6\x0f"), format, "metadata run over"},
		{"metadata out of order", meta("\x02\x00\x01\x00b\x00\x00\x01\x00a\x00\x00"), format, "out of order"},
		{"metadata twice the same", meta("\x02\x00\x01\x00b\x00\x00\x01\x00b\x00\x00"), format, "out of order"},

		{"flag 2", u32(stateAt+8, 3), format, "bytes in use"},
		{"flag 31", u32(stateAt+8, 1|1<<31), format, "bytes in use"},
		{"no section", u32(stateAt+12, 0), format, "0 sections"},
		{"2 sections, the second empty", u32(stateAt+12, 2), version, "kind 0"},
		{"62 sections", u32(stateAt+12, 62), version, "kind 0"},
		{"63 sections", u32(stateAt+12, 63), format, "63 sections; 1 to 62"},
		{"2^32-1 sections", u32(stateAt+12, math.MaxUint32), format, "4294967295 sections"},
		{"state byte 40 in use", u32(stateAt+40, 1), format, "bytes in use"},
		{"state byte 63 in use", u64(stateAt+56, 1<<63), format, "bytes in use"},
		{"bytes behind the table in use", u32(sectionAt+64, 1), format, "bytes in use"},
		{"section kind 0", u32(sectionAt, 0), version, "section 0 has kind 0"},
		{"section kind 99", u32(sectionAt, 99), version, "section 0 has kind 99"},
		{"section byte 32 in use", u64(sectionAt+32, 1), format, "bytes in use"},
		{"section byte 63 in use", u64(sectionAt+56, 1<<63), format, "bytes in use"},
		{"k 0", u32(sectionAt+4, 0), format, "k 0"},
		{"k 1", u32(sectionAt+4, 1), format, "k 1"},
		{"k 3", u32(sectionAt+4, 3), format, "k 3"},
		{"k 18", u32(sectionAt+4, 18), format, "k 18"},
		{"k 2^32-2", u32(sectionAt+4, math.MaxUint32-1), format, "k 4294967294"},
		{"no block", blocks(0), format, "0 blocks"},
		{"2^33+1 blocks", blocks(1<<33 + 1), format, "8589934593 blocks"},
		{"2^55+1 blocks, whose bytes are 512 modulo 2^64", blocks(1<<55 + 1), format, "blocks"},
		{"2^60 blocks", blocks(1 << 60), format, "1152921504606846976 blocks"},
		{"2 blocks in the length of one", u64(atBlocks, 2), format, "2 blocks in 512 bytes"},
		{"1 block in the length of two", u64(atLength, 1024), format, "1 blocks in 1024 bytes"},
		{"1 block in no byte", u64(atLength, 0), format, "1 blocks in 0 bytes"},
		{"length 2^64-1", u64(atLength, math.MaxUint64), format, "1 blocks in"},
		{"offset 0", u64(atOffset, 0), format, "begins at byte 0, not 12288"},
		{"offset one page early", u64(atOffset, 2*page), format, "begins at byte 8192, not 12288"},
		{"offset one byte late", u64(atOffset, body+1), format, "begins at byte 12289, not 12288"},
		{"offset 2^64-512", u64(atOffset, math.MaxUint64-511), format, "begins at byte 18446744073709551104"},
		{"checksums inside the body", u64(stateAt+24, body), format, "checksums at byte 12288"},
		{"checksums far away", u64(stateAt+24, 1<<62), format, "checksums at byte"},
		{"a file of no byte", u64(stateAt+32, 0), format, "of 0, where"},
		{"a file one byte longer", u64(stateAt+32, body+block+9), format, "of 12809, where"},
		{"a file of 2^64-1 bytes", u64(stateAt+32, math.MaxUint64), format, "where the sections end at 12800"},
	} {
		file := smallFile(t)
		tt.change(file)
		seal(file, 0)
		seal(file, stateAt)
		refused(t, tt.name, file, tt.want, tt.text)
	}
}

// TestManySections: tables that are right in themselves, for more sections than
// a Filter has. Both are whole files.
func TestManySections(t *testing.T) {
	for _, n := range []int{2, 62} {
		file := make([]byte, body)
		copy(file, smallFile(t)[:body])
		le.PutUint32(file[stateAt+12:], uint32(n))
		for i := range n {
			e := file[sectionAt+64*i:]
			copy(e[:64], file[sectionAt:])
			le.PutUint64(e[8:], uint64(body+page*i))
		}
		end := body + page*(n-1) + block
		le.PutUint64(file[stateAt+24:], uint64(end))
		le.PutUint64(file[stateAt+32:], uint64(end+8))
		seal(file, stateAt)
		file = append(file, make([]byte, end-body+8)...)
		le.PutUint32(file[end:], sumOf(file[body:end]))
		le.PutUint32(file[end+4:], sumOf(file[end:end+4]))
		refused(t, fmt.Sprint(n, " sections"), file, bloom.ErrFormat, fmt.Sprintf("has %d sections", n))
	}
}

// withState returns the file with state pages 1 and 2 as given: a copy of its
// own state with this generation and number of adds, or empty for generation 0.
func withState(file []byte, generations, adds [2]uint64) []byte {
	file = slices.Clone(file)
	own := slices.Clone(file[stateAt:state2At])
	for i, at := range []int{stateAt, state2At} {
		clear(file[at : at+page])
		if generations[i] != 0 {
			copy(file[at:], own)
			le.PutUint64(file[at:], generations[i])
			le.PutUint64(file[at+16:], adds[i])
			seal(file, at)
		}
	}
	return file
}

func TestStatePages(t *testing.T) {
	whole := smallFile(t)
	for _, tt := range []struct {
		name        string
		generations [2]uint64
		want        uint64 // adds: 11 from page 1, 22 from page 2
	}{
		{"page 1 alone", [2]uint64{7, 0}, 11},
		{"page 2 alone", [2]uint64{0, 7}, 22},
		{"page 2 is newer", [2]uint64{7, 8}, 22},
		{"page 1 is newer", [2]uint64{9, 8}, 11},
		{"page 2 is newer, as unsigned numbers go", [2]uint64{math.MaxInt64, 1 << 63}, 22},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, withState(whole, tt.generations, [2]uint64{11, 22}), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, how := range openings {
			f, err := how.open(path)
			if err != nil {
				t.Errorf("%s: %s: %v", tt.name, how.name, err)
			} else if got := f.Report().Added; got != tt.want || !f.ContainsString("Titanic") {
				t.Errorf("%s: %s: got %d adds, want %d", tt.name, how.name, got, tt.want)
			}
		}
	}

	both := withState(whole, [2]uint64{7, 8}, [2]uint64{11, 22})
	refused(t, "no state", withState(whole, [2]uint64{}, [2]uint64{}), bloom.ErrFormat, "no state page")
	refused(t, "two of one generation", withState(whole, [2]uint64{7, 7}, [2]uint64{11, 22}), bloom.ErrFormat, "both state pages claim generation 7")
	for i, at := range []int{stateAt, state2At} {
		file := slices.Clone(both)
		file[at+16] ^= 1
		refused(t, "one page is damaged", file, bloom.ErrChecksum, fmt.Sprintf("state page %d is damaged", i+1))

		// Not in force, perhaps, but nobody writes such a page.
		file = slices.Clone(both)
		le.PutUint32(file[at+12:], 0)
		seal(file, at)
		refused(t, "one page is wrong", file, bloom.ErrFormat, "0 sections")
	}

	unclean := slices.Clone(whole)
	le.PutUint32(unclean[stateAt+8:], 0)
	seal(unclean, stateAt)
	refused(t, "not clean", unclean, bloom.ErrChecksum, "not closed cleanly")
	if _, err := bloom.Read(bytes.NewReader(unclean), math.MaxInt64); !strings.Contains(fmt.Sprint(err), "make it again from its keys") {
		t.Errorf("Read of an unclean file: got %v, want what to do", err)
	}
}

func TestReadLimit(t *testing.T) {
	whole := smallFile(t)
	size := int64(len(whole))
	for _, tt := range []struct {
		limit int64
		want  error
	}{
		{size, nil}, {size + 1, nil}, {math.MaxInt64, nil},
		{size - 1, bloom.ErrLimit}, {body, bloom.ErrLimit}, {1, bloom.ErrLimit}, {0, bloom.ErrLimit},
		{-1, bloom.ErrLimit}, {math.MinInt64, bloom.ErrLimit},
	} {
		if _, err := bloom.Read(bytes.NewReader(whole), tt.limit); !errors.Is(err, tt.want) {
			t.Errorf("Read of %d bytes with limit %d: got error %v, want %v", size, tt.limit, err, tt.want)
		}
	}
}

func TestBytesBehindTheEnd(t *testing.T) {
	for _, extra := range []int{1, 8, page, mib} {
		path := filepath.Join(t.TempDir(), "long")
		if err := os.WriteFile(path, append(smallFile(t), make([]byte, extra)...), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, how := range openings[1:] {
			if _, err := how.open(path); !errors.Is(err, bloom.ErrFormat) || !strings.Contains(err.Error(), "its header says 12808") {
				t.Errorf("%s with %d bytes behind the filter: got error %v", how.name, extra, err)
			}
		}
	}
}

// claim returns the three pages of a file that claims this number of blocks.
func claim(t testing.TB, blocks uint64) []byte {
	file := smallFile(t)[:body]
	length := blocks * block
	le.PutUint64(file[sectionAt+16:], length)
	le.PutUint64(file[sectionAt+24:], blocks)
	le.PutUint64(file[stateAt+24:], body+length)
	le.PutUint64(file[stateAt+32:], body+length+(length+mib-1)/mib*4+4)
	seal(file, stateAt)
	return file
}

// A meter is a reader that watches the memory of its own process as it is read.
type meter struct {
	r     io.Reader
	start uint64
	most  uint64
}

func (m *meter) Read(b []byte) (int, error) {
	if now := dataBytes(); m.start == 0 {
		m.start = now
	} else if now > m.start {
		m.most = max(m.most, now-m.start)
	}
	return m.r.Read(b)
}

// dataBytes is how much private writable memory the process has mapped, touched
// or not; 0 where that cannot be told.
func dataBytes() uint64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, line, _ := strings.Cut(string(status), "VmData:")
	var kB uint64
	fmt.Sscan(line, &kB)
	return kB << 10
}

// TestClaims: a header that claims much, with little behind it, costs as little.
func TestClaims(t *testing.T) {
	if dataBytes() == 0 {
		t.Logf("MEMORY MAPPED IS NOT CHECKED: %s has no /proc/self/status", runtime.GOOS)
	}
	for _, blocks := range []uint64{1 << 31 /* 2^40 bytes */, 1 << 33, 3 << 22 /* 6 GiB */} {
		for _, behind := range []int{0, 1, 100 * block, 5*mib + 1} {
			file := append(claim(t, blocks), make([]byte, behind)...)
			m := &meter{r: bytes.NewReader(file)}
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := bloom.Read(m, math.MaxInt64)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, bloom.ErrFormat) || errors.Is(err, bloom.ErrBudget) {
				t.Errorf("%d blocks claimed, %d bytes behind: got error %v, want ErrFormat", blocks, behind, err)
			}
			if heap := after.TotalAlloc - before.TotalAlloc; heap > 16*mib {
				t.Errorf("%d blocks claimed, %d bytes behind: Read allocated %d bytes", blocks, behind, heap)
			}
			// Go's heap grows by arenas of 64 MiB, and may do so now.
			if m.most > (64+16)*mib && !raceEnabled {
				t.Errorf("%d blocks claimed, %d bytes behind: the process grew by %d bytes", blocks, behind, m.most)
			}

			path := filepath.Join(t.TempDir(), "claim")
			if err := os.WriteFile(path, file, 0o666); err != nil {
				t.Fatal(err)
			}
			for _, how := range openings[1:] {
				if _, err := how.open(path); !errors.Is(err, bloom.ErrFormat) {
					t.Errorf("%s: %d blocks claimed, %d bytes behind: got error %v, want ErrFormat", how.name, blocks, behind, err)
				}
			}
		}
	}
}
