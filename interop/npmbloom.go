package interop

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
)

// The JSON of the npm package bloom-filters (Callidon), saveAsJSON:
//
//	{"type":"BloomFilter","_size":10,"_nbHashes":3,
//	 "_filter":{"size":16,"content":"3gM="},"_seed":78187493520}
//
// _size is m; the size in _filter is the next multiple of 8, and content has bit i
// in byte i/8, mask 1<<(i%8). Only the low 32 bits of the seed count, in two's
// complement if it is negative; for -1 and -2, see npmLeastSeed.
//
// Old versions wrote _filter as an array of 0 and 1. They also had another rule of
// positions, which skipped those that a key had already. Today's package still reads
// their files, but then finds few of their keys.

var npmBloomFormat = &Format{
	Name:    "npm-bloom-filters",
	About:   "JavaScript: npm bloom-filters 3.x, JSON of BloomFilter.saveAsJSON",
	Schemes: []classic.Scheme{classic.SchemeNPMBloomFilters},
	Matches: func(head []byte, _ int64) bool {
		begins, _ := jsonBegins(head)
		kind := begins["type"]
		return (kind == "" || strings.HasPrefix(kind, `"`+npmType+`"`)) && jsonLike(head, npmMembers, "_nbHashes", "_filter")
	},
	read: func(r io.Reader, o Options) (*File, error) {
		f, isArray, err := readNPMBloom(r, o.Scheme == classic.SchemeNPMBloomFilters)
		if err != nil {
			return nil, err
		}
		file := &File{Filter: f, Details: [][2]string{{"seed", npmSeed(f)}}}
		if isArray {
			file.Details = append(file.Details, [2]string{"bits", "an array, from a version with other positions: keys will be missed"})
		}
		return file, nil
	},
	write: func(w io.Writer, f *File) error {
		filter, err := f.classicUnder(classic.SchemeNPMBloomFilters)
		if err != nil {
			return err
		}
		return writeNPMBloom(w, filter)
	},
}

const npmType = "BloomFilter"

// npmMembers are the bytes that the values in the JSON begin with.
var npmMembers = map[string]string{"type": `"`, "_size": jsonDigits, "_nbHashes": jsonDigits, "_filter": "{[", "_seed": jsonDigits + "-"}

// npmSeedZero is a seed that acts as zero, which [classic.Config] takes for
// the package's own. JavaScript has no such integer, so no file has it.
const npmSeedZero = 1 << 63

// The seeds that are read. The package adds 1 and 2 to a seed: of 2^53-1 both sums
// are 2^53 in JavaScript, and of -1 and -2 one is zero, for which it takes its
// default. Either makes a rule of positions that no other seed has.
const (
	npmMostSeed  = 1<<53 - 2
	npmLeastSeed = -(1<<53 - 1)
)

// ReadNPMBloom reads a filter that npm bloom-filters' saveAsJSON made and
// JSON.stringify wrote. It reads r to its end. The error wraps [bloom.ErrFormat], or
// [bloom.ErrVersion] for another of the package's filters and for one that is too old:
// its bits are an array, set by another rule.
func ReadNPMBloom(r io.Reader) (*classic.Filter, error) {
	f, _, err := readNPMBloom(r, false)
	return f, err
}

// WriteNPMBloom writes a filter as JSON.stringify writes npm bloom-filters'
// saveAsJSON, for its BloomFilter.fromJSON. A seed that was read as a negative number
// is written as such. Any other above 2^53-2, with which JavaScript cannot calculate,
// is written as its low 32 bits, which act the same. The error wraps [ErrScheme] if
// the filter is not of [classic.SchemeNPMBloomFilters].
func WriteNPMBloom(w io.Writer, f *classic.Filter) error {
	return npmBloomFormat.write(w, &File{Filter: f})
}

// npmSaved is what the JSON says.
type npmSaved struct {
	kind               string
	m, k, seed         int64
	hasSeed, hasFilter bool
	size               int64 // of content, in bits
	content            []byte
	isArray            bool
	ones               bitList // if the bits are an array
}

func readNPMBloom(r io.Reader, takeArrays bool) (f *classic.Filter, isArray bool, err error) {
	var saved npmSaved
	j := newJSONReader(r)
	if err := saved.read(j); err != nil {
		return nil, false, err
	}
	if err := j.end(); err != nil {
		return nil, false, err
	}
	switch {
	case saved.kind != npmType:
		return nil, false, fmt.Errorf("%w: a %q of npm bloom-filters; of its filters only a %q is known", bloom.ErrVersion, saved.kind, npmType)
	case !saved.hasFilter || !saved.hasSeed:
		return nil, false, fmt.Errorf("%w: _filter or _seed is missing", bloom.ErrFormat)
	case saved.seed == -1 || saved.seed == -2:
		return nil, false, fmt.Errorf("%w: _seed is %d, for which the package mixes in its default seed: build the filter again from its keys, under another seed", bloom.ErrVersion, saved.seed)
	case saved.isArray && !takeArrays:
		return nil, false, fmt.Errorf("%w: _filter is an array, so the keys were hashed by the rule of an old version; to read it as today's package does, and miss keys, name the scheme %v",
			bloom.ErrVersion, classic.SchemeNPMBloomFilters)
	case saved.isArray && saved.ones.count != uint64(saved.m):
		return nil, false, fmt.Errorf("%w: _size is %d, and _filter has %d elements", bloom.ErrFormat, saved.m, saved.ones.count)
	case saved.isArray:
		saved.content, saved.size = saved.ones.bytes, int64(len(saved.ones.bytes))*8
	}
	if saved.size != (saved.m+7)/8*8 || saved.size != int64(len(saved.content))*8 {
		return nil, false, fmt.Errorf("%w: _size is %d, the size in _filter %d, and there are %d bytes", bloom.ErrFormat, saved.m, saved.size, len(saved.content))
	}
	seed := uint64(saved.seed)
	if seed == 0 {
		seed = npmSeedZero
	}
	c := classic.Config{Bits: uint64(saved.m), Probes: int(saved.k), Scheme: classic.SchemeNPMBloomFilters, Seed: seed}
	f, err = classicOf(c, bytes.NewReader(saved.content), classic.LowBitFirst)
	return f, saved.isArray, err
}

func (s *npmSaved) read(j *jsonReader) error {
	return j.object(func(name string) (err error) {
		switch name {
		case "type":
			s.kind, err = j.text()
		case "_size":
			s.m, err = j.integer(1, 1<<45)
		case "_nbHashes":
			s.k, err = j.integer(1, math.MaxInt32)
		case "_seed":
			s.seed, err = j.integer(npmLeastSeed, npmMostSeed)
			s.hasSeed = true
		case "_filter":
			s.hasFilter = true
			err = s.readFilter(j)
		default:
			err = j.skip()
		}
		return err
	})
}

func (s *npmSaved) readFilter(j *jsonReader) error {
	if b, err := j.next(); err != nil || b == '[' {
		s.isArray = true
		return s.ones.read(j)
	}
	return j.object(func(name string) (err error) {
		switch name {
		case "size":
			s.size, err = j.integer(0, 1<<46)
		case "content":
			s.content, _, err = j.base64()
		default:
			err = j.skip()
		}
		return err
	})
}

// npmSeed is the seed as the package writes it. Negative seeds are kept in two's
// complement.
func npmSeed(f *classic.Filter) string {
	seed := f.HashIdentity().Key
	switch negative := int64(seed); {
	case negative >= npmLeastSeed && negative < -2:
		return strconv.FormatInt(negative, 10)
	case seed > npmMostSeed:
		seed &= math.MaxUint32
	}
	return strconv.FormatUint(seed, 10)
}

func writeNPMBloom(w io.Writer, f *classic.Filter) error {
	out := bufio.NewWriter(w)
	m := f.Plan().Bits
	fmt.Fprintf(out, `{"type":%q,"_size":%d,"_nbHashes":%d,"_filter":{"size":%d,"content":"`, npmType, m, f.Plan().Probes, (m+7)/8*8)
	text := base64.NewEncoder(base64.StdEncoding, out)
	if _, err := f.WriteBits(text, classic.LowBitFirst); err != nil {
		return err
	}
	if err := text.Close(); err != nil {
		return err
	}
	fmt.Fprintf(out, `"},"_seed":%s}`, npmSeed(f))
	return out.Flush()
}
