package web_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/rate"
	"github.com/bloomery/bloom/internal/webtest"
)

// A change is what a stranger did to a golden file: some bytes, and then its length.
type change struct {
	Base    string  `json:"base"`
	Length  int     `json:"length"`
	Patches []patch `json:"patches"`
}

type patch struct {
	At    int    `json:"at"`
	Bytes string `json:"bytes"` // in hexadecimal
}

const (
	page       = 4096
	bodyOffset = 3 * page
)

var le = binary.LittleEndian

var hostileFiles = flag.Int("hostile", 1500, "how many changed files TestHostile reads")

// TestHostile changes golden files, mends the checksums so that what is behind them is
// reached, and has both the library and JavaScript read each: they must agree on
// which are refused. Lookups in the others must answer.
func TestHostile(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(20, 26))
	cases := webtest.Golden(t, root)
	var changes []change
	for i := range *hostileFiles {
		c := cases[i%len(cases)]
		base := []byte(webtest.ReadFile(t, c.Path))
		changes = append(changes, changeOf(c.Path, base, hostile(random, bytes.Clone(base))))
	}
	accepted, _ := judge(t, changes)
	if n := strings.Count(accepted, "1"); n < len(accepted)/20 || n > len(accepted)*5/6 {
		t.Errorf("%d of %d files are accepted: that tests too little", n, len(accepted))
	}
}

// judge has the library and JavaScript read changed files, which they must both accept or
// both refuse. It returns a character for each, 1 if it is accepted and otherwise 0,
// and why JavaScript refuses.
func judge(t *testing.T, changes []change) (accepted string, messages []string) {
	t.Helper()
	scratch := filepath.Join(t.TempDir(), "changed.bloom")
	for _, c := range changes {
		file := make([]byte, c.Length)
		copy(file, webtest.ReadFile(t, c.Base))
		for _, p := range c.Patches {
			if _, err := hex.Decode(file[p.At:], []byte(p.Bytes)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(scratch, file, 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := anyfile.Load(scratch)
		if err == nil {
			f.Close()
			accepted += "1"
		} else {
			accepted += "0"
		}
	}
	var got struct {
		Accepted string
		Messages []string
		Problems []string
	}
	if err := json.Unmarshal([]byte(node(t, "hostile.mjs", inJSON(t, changes))), &got); err != nil {
		t.Fatal(err)
	}
	for _, problem := range got.Problems {
		t.Error(problem)
	}
	if len(got.Accepted) != len(accepted) {
		t.Fatalf("%d of %d files were read", len(got.Accepted), len(accepted))
	}
	wrong := 0
	for i := range accepted {
		if got.Accepted[i] != accepted[i] {
			if wrong++; wrong <= 10 {
				t.Errorf("change %d of %s, %+v: JavaScript says %c (%s), the library %c", i, filepath.Base(changes[i].Base), changes[i].Patches, got.Accepted[i], got.Messages[i], accepted[i])
			}
		}
	}
	return accepted, got.Messages
}

// TestConditions: conditions that random changes hardly ever break alone. Each file is
// changed so that only one of them is not met.
func TestConditions(t *testing.T) {
	t.Parallel()
	golden := func(name string) string { return filepath.Join(root, "testdata", "golden", name+".bloom") }
	window := windows(t, t.TempDir(), time.Unix(1_800_000_000, 0))[0].Path
	section := func(file []byte, i int) []byte { return file[page+64+64*i:] }
	conditions := []struct {
		name, path, want string
		change           func(file []byte) []byte
	}{
		{"nothing", golden("exceptions"), "", func(file []byte) []byte { return file }},
		{"a flag without meaning", golden("filter"), "bytes in use that mean nothing", func(file []byte) []byte {
			file[page+8] |= 2
			return file
		}},
		{"an exception that the bits do not contain", golden("exceptions"), "does not contain", func(file []byte) []byte {
			clear(file[bodyOffset : bodyOffset+512])
			return file
		}},
		{"a word of zeros after the exceptions", golden("exceptions"), "list of 1 keys", func(file []byte) []byte {
			keys := section(file, 1)
			le.PutUint64(keys[16:], le.Uint64(keys[16:])+8)
			le.PutUint64(file[page+24:], le.Uint64(file[page+24:])+8)
			le.PutUint64(file[page+32:], le.Uint64(file[page+32:])+8)
			longer := append(file[:len(file)-8:len(file)-8], make([]byte, 16)...)
			return longer
		}},
		{"a window's layer of another k", window, "not like the first", func(file []byte) []byte {
			last := section(file, int(le.Uint32(file[page+12:]))-1)
			k := le.Uint32(last[4:]) - 2
			le.PutUint32(last[4:], k)
			le.PutUint64(last[40:], math.Float64bits(rate.Paired(le.Uint64(last[32:]), le.Uint64(last[24:]), int(k)/2)))
			return file
		}},
		{"more generations than the window has", window, "generations of 1", func(file []byte) []byte {
			le.PutUint64(file[48:], 1)
			le.PutUint64(file[56:], uint64(time.Minute))
			return file
		}},
		{"a mask that does not reach all bits", golden("classic-java-bitset"), "2047 bits", func(file []byte) []byte {
			le.PutUint64(section(file, 0)[24:], 2047)
			file[bodyOffset+255] &= 127
			return file
		}},
		{"a kind that the reader does not know", golden("filter"), "filters of kind 999 are unknown", func(file []byte) []byte {
			le.PutUint16(file[10:], 999)
			return file
		}},
		{"removals in another kind", golden("scalable"), "mean nothing to a Scalable", func(file []byte) []byte {
			file[page+40] = 1
			return file
		}},
		{"dropped layers in another kind", golden("cuckoo"), "mean nothing to a Cuckoo", func(file []byte) []byte {
			file[page+48] = 1
			return file
		}},
		{"dropped layers and removals", golden("scalablecounting"), "", func(file []byte) []byte {
			file[page+40]++
			file[page+48]++
			return file
		}},
		{"layers that do not keep the rate", golden("scalablecounting"), "in a filter of rate", func(file []byte) []byte {
			le.PutUint64(file[40:], math.Float64bits(math.Float64frombits(le.Uint64(file[40:]))/100))
			return file
		}},
		{"more keys in a layer than its rate allows", golden("scalablecounting"), "where its keys and bits give", func(file []byte) []byte {
			le.PutUint64(section(file, 0)[32:], le.Uint64(section(file, 0)[32:])*2)
			return file
		}},
		{"counters above their limit", golden("scalablecounting"), "under a limit of 1", func(file []byte) []byte {
			le.PutUint64(file[56:], 1)
			return file
		}},
		{"removals in a cuckoo filter", golden("cuckoo"), "", func(file []byte) []byte {
			file[page+40] ^= 5
			return file
		}},
		{"fingerprints moved among slots", golden("cuckoo"), "", func(file []byte) []byte {
			slices.Reverse(file[bodyOffset : bodyOffset+48])
			return file
		}},
		{"another fingerprint", golden("cuckoo"), "", func(file []byte) []byte {
			at := bodyOffset + bytes.IndexFunc(file[bodyOffset:], func(r rune) bool { return r != 0 })
			file[at] = file[at]%255 + 1
			return file
		}},
		{"a fingerprint less", golden("cuckoo"), "fingerprints, not", func(file []byte) []byte {
			at := bodyOffset + bytes.IndexFunc(file[bodyOffset:], func(r rune) bool { return r != 0 })
			file[at] = 0
			return file
		}},
		{"no iterations", golden("cuckoo"), "with parameters", func(file []byte) []byte {
			le.PutUint32(file[48:], 0)
			return file
		}},
		{"65,536 iterations", golden("cuckoo"), "with parameters", func(file []byte) []byte {
			le.PutUint32(file[48:], 1<<16)
			return file
		}},
		{"a growth of 3", golden("cuckoo"), "with parameters", func(file []byte) []byte {
			le.PutUint32(file[52:], 3)
			return file
		}},
		{"another growth", golden("cuckoo"), "buckets of", func(file []byte) []byte {
			le.PutUint32(file[52:], le.Uint32(file[52:])*2)
			return file
		}},
		{"layers that do not grow", golden("cuckoo"), "layers", func(file []byte) []byte {
			le.PutUint32(file[52:], 0)
			return file
		}},
		{"more keys than fit the buckets", golden("cuckoo"), "buckets of", func(file []byte) []byte {
			le.PutUint64(file[32:], le.Uint64(file[32:])*4)
			return file
		}},
		{"slots above their limit", golden("cuckoo"), "under a limit of 1", func(file []byte) []byte {
			le.PutUint64(file[56:], 1)
			return file
		}},
		{"a rate of a layer", golden("cuckoo"), "buckets of", func(file []byte) []byte {
			le.PutUint64(section(file, 0)[40:], math.Float64bits(0.5))
			return file
		}},
		{"a hash that a cuckoo filter does not have", golden("cuckoo"), "hash 1", func(file []byte) []byte {
			le.PutUint32(file[16:], 1)
			return file
		}},
		{"the hash of a cuckoo filter", golden("filter"), "hash 4", func(file []byte) []byte {
			le.PutUint32(file[16:], 4)
			return file
		}},
		{"a seed for a scheme that has none", golden("classic-dcso"), "with hash 0", func(file []byte) []byte {
			file[24] = 1
			return file
		}},
	}
	var changes []change
	for _, tt := range conditions {
		base := []byte(webtest.ReadFile(t, tt.path))
		changed := tt.change(bytes.Clone(base))
		mend(changed)
		changes = append(changes, changeOf(tt.path, base, changed))
	}
	accepted, messages := judge(t, changes)
	for i, tt := range conditions {
		if want := tt.want == ""; (accepted[i] == '1') != want || !strings.Contains(messages[i], tt.want) {
			t.Errorf("%s: accepted %c, %q, want %q", tt.name, accepted[i], messages[i], tt.want)
		}
	}
}

// hostile changes a file at random.
func hostile(random *rand.Rand, file []byte) []byte {
	for range 1 + random.IntN(3) {
		switch random.IntN(8) {
		case 0: // any byte
			file[random.IntN(len(file))] ^= 1 << random.IntN(8)
		case 1, 2: // a field of the header
			field := []int{8, 10, 12, 16, 20, 24, 32, 40, 48, 56, 64, 66, 68, 70}[random.IntN(14)]
			strange(random, file[field:])
		case 3, 4: // a field of the state
			strange(random, file[page+[]int{0, 8, 12, 16, 24, 32, 40}[random.IntN(7)]:])
		case 5, 6: // a field of a section
			strange(random, file[page+64+64*random.IntN(2)+[]int{0, 4, 8, 16, 24, 32, 40, 48, 56}[random.IntN(9)]:])
		case 7: // the body
			file[bodyOffset+random.IntN(len(file)-bodyOffset)] ^= 1 << random.IntN(8)
		}
	}
	switch random.IntN(12) {
	case 0: // a copy of the state, perhaps a newer one
		copy(file[2*page:bodyOffset], file[page:2*page])
		file[2*page] += byte(random.IntN(2))
	case 1: // not clean
		file[page+8] = 0
	case 2: // not as long
		file = file[:len(file)-random.IntN(len(file)-bodyOffset)]
	case 3: // longer
		file = append(file, make([]byte, random.IntN(5000))...)
	}
	if random.IntN(10) > 0 {
		mend(file)
	}
	return file
}

// strange puts a value into a field that is often at a limit.
func strange(random *rand.Rand, field []byte) {
	value := []uint64{
		0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 60, 61, 62, 63, 64, 255, 256, 2048, 4096, 1<<16 - 1, 1 << 20, 1<<20 + 1, 1<<31 - 1, 1 << 31, 1 << 32, 1 << 33, 1<<33 + 1,
		1 << 44, 1<<44 + 1, 1 << 45, 1<<45 + 1, 1<<63 - 1, 1 << 63, math.MaxUint64, math.Float64bits(0.5), math.Float64bits(1), math.Float64bits(1.1),
		math.Float64bits(-1), math.Float64bits(math.NaN()), math.Float64bits(math.Copysign(0, -1)), math.Float64bits(math.Inf(1)), random.Uint64(),
	}[random.IntN(42)]
	switch random.IntN(4) {
	case 0: // next to what is there
		le.PutUint64(field, le.Uint64(field)+1-2*uint64(random.IntN(2)))
	case 1:
		le.PutUint16(field, uint16(value))
	case 2:
		le.PutUint32(field, uint32(value))
	default:
		le.PutUint64(field, value)
	}
}

// mend makes all checksums right again.
func mend(file []byte) {
	table := crc32.MakeTable(crc32.Castagnoli)
	for at := 0; at+page <= len(file) && at < bodyOffset; at += page {
		if sealed := file[at : at+page]; at < 2*page || bytes.ContainsFunc(sealed, func(r rune) bool { return r != 0 }) {
			le.PutUint32(sealed[page-4:], crc32.Checksum(sealed[:page-4], table))
		}
	}
	checksums := le.Uint64(file[page+24:])
	if body := uint64(len(file)) - 8; checksums == body && body > bodyOffset { // one span, as in all golden files
		le.PutUint32(file[body:], crc32.Checksum(file[bodyOffset:body], table))
		le.PutUint32(file[body+4:], crc32.Checksum(file[body:body+4], table))
	}
}

// changeOf returns what turns base into changed.
func changeOf(path string, base, changed []byte) change {
	c := change{Base: path, Length: len(changed), Patches: []patch{}}
	was := func(i int) byte {
		if i < len(base) {
			return base[i]
		}
		return 0
	}
	for i := 0; i < len(changed); i++ {
		from := i
		for i < len(changed) && changed[i] != was(i) {
			i++
		}
		if i > from {
			c.Patches = append(c.Patches, patch{from, hex.EncodeToString(changed[from:i])})
		}
	}
	return c
}

// TestTruncated: a file that ends anywhere before its end is refused.
func TestTruncated(t *testing.T) {
	t.Parallel()
	var changes []change
	for i, c := range webtest.Golden(t, root) {
		size := len(webtest.ReadFile(t, c.Path))
		step := 211
		if c.Name == "filter" || c.Name == "exceptions" || c.Name == "classic" {
			step = 1
		}
		for length := i; length < size; length += step {
			changes = append(changes, change{c.Path, length, []patch{}})
		}
	}
	var got struct {
		Accepted string
		Problems []string
	}
	if err := json.Unmarshal([]byte(node(t, "hostile.mjs", inJSON(t, changes))), &got); err != nil {
		t.Fatal(err)
	}
	for _, problem := range got.Problems {
		t.Error(problem)
	}
	for i, answer := range got.Accepted {
		if answer != '0' {
			t.Errorf("%s, cut to %d bytes, is accepted", changes[i].Base, changes[i].Length)
		}
	}
	if len(got.Accepted) != len(changes) {
		t.Errorf("%d of %d files were read", len(got.Accepted), len(changes))
	}
}
