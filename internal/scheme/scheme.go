// Package scheme holds the rules by which Bloom filters map a key to the positions of
// its bits: Bloomery's own, and those of other programs, one file each, bit for bit.
// Positions depend only on the key, the number of bits m and, in one case, a seed.
// Nothing here keeps state, or allocates for keys of ordinary length.
//
// Keys are bytes. For programs that see text as UTF-16 units or code points, these are
// decoded from UTF-8; see text.go.
package scheme

import (
	"math"
	"math/bits"
)

// Scheme is one such rule.
type Scheme struct {
	// Number identifies the scheme in files. Its meaning never changes.
	Number uint16

	// Name is for people. It never changes either.
	Name string

	// Fill sets every element of at to a position of key, 0 to m-1, in the
	// program's own order. Positions may repeat. m is at least 1. Nil for
	// Bloomery's own scheme, which starts from a hash; see Stream.
	Fill func(at []uint64, key []byte, m, seed uint64)

	// Unit: the program rounds m up to a multiple of it.
	Unit uint64

	// MinProbes and MaxProbes bound k.
	MinProbes, MaxProbes int

	// PowerOfTwo: the program masks with m-1, which reaches all bits only if m is a
	// power of two.
	PowerOfTwo bool

	// MostBits is the program's limit on m, and Why the reason for it; zero if the
	// program has no limit below MaxBits.
	MostBits uint64
	Why      string

	// Size sizes a filter as the program does, nil if the program does not.
	Size func(n, p float64) (m uint64, k int)

	// Seed is the program's default seed; zero if the scheme has no seed.
	Seed uint64
}

// Bloomery's own limits, which hold for every scheme.
const (
	// MaxBits is the largest m for which 2^19 values of our own scheme's stream, give or
	// take one, fall on each position, so that all are hit equally often.
	MaxBits = 1 << 45

	// MaxProbes is the largest k that Guava's format can hold.
	MaxProbes = 255
)

// Numbers of the schemes. Files store them: add numbers, but never change one.
const (
	Custom         = 0 // the caller's; identified only by its name
	Own            = 1
	MD5IndexKey    = 2
	SHA256MD5      = 3
	MD5KeyIndex    = 4
	MurmurFNVJS    = 5
	JavaBitSet     = 6
	Guava32        = 7
	Guava64        = 8
	RedisBloom     = 9
	BitsAndBlooms  = 10
	DCSO           = 11
	BloomFilterJS1 = 12
	BloomFilterJS2 = 13
	NPMBloom       = 14
	RedisSetBit    = 15
)

// Table has each scheme at the index of its number; entry 0 is empty.
var Table = [...]Scheme{
	Own:            {Name: "bloomery"},
	MD5IndexKey:    {Name: "md5-index-key", Fill: fillMD5IndexKey, Size: SizeTruncated},
	SHA256MD5:      {Name: "sha256-md5", Fill: fillSHA256MD5, MinProbes: 2, MaxProbes: 2},
	MD5KeyIndex:    {Name: "md5-key-index", Fill: fillMD5KeyIndex, Size: SizeCeiling},
	MurmurFNVJS:    {Name: "murmur2-fnv-js", Fill: fillMurmurFNVJS, MinProbes: 2, MaxProbes: 2},
	JavaBitSet:     {Name: "java-bitset", Fill: fillJavaBitSet, MaxProbes: len(javaSeeds), PowerOfTwo: true, MostBits: 1 << 30, Why: "in Java its size is an int", Size: sizeJavaBitSet},
	Guava32:        {Name: "guava-mitz-32", Fill: fillGuava32, Unit: 64, MostBits: math.MaxInt32 * 64, Why: "its array has at most 2^31-1 longs", Size: SizeGuava33},
	Guava64:        {Name: "guava-mitz-64", Fill: fillGuava64, Unit: 64, MostBits: math.MaxInt32 * 64, Why: "its array has at most 2^31-1 longs", Size: SizeGuava33},
	RedisBloom:     {Name: "redisbloom", Fill: fillRedisBloom, Unit: 64, Size: SizeRedisBloom},
	BitsAndBlooms:  {Name: "bits-and-blooms", Fill: fillBitsAndBlooms, Size: SizeBitsAndBlooms},
	DCSO:           {Name: "dcso", Fill: fillDCSO, Size: SizeDCSO},
	BloomFilterJS1: {Name: "bloomfilter.js-32", Fill: fillBloomFilterJS1, Unit: 32, MostBits: 1 << 31, Why: "beyond 2^31 its shift of a signed number loses nine keys of ten", Size: SizeBloomFilterJS},
	BloomFilterJS2: {Name: "bloomfilter.js-64", Fill: fillBloomFilterJS2, Unit: 32, MostBits: 1 << 31, Why: "beyond 2^31 its shift of a signed number loses nine keys of ten", Size: SizeBloomFilterJS},
	NPMBloom:       {Name: "npm-bloom-filters", Fill: fillNPMBloom, MostBits: 1 << 32, Why: "its hashes have 32 bits", Size: SizeNPMBloom, Seed: npmSeed},
	RedisSetBit:    {Name: "redis-setbit", Fill: fillRedisSetBit, PowerOfTwo: true, MostBits: 1 << 32, Why: "a Redis string has at most 2^32 bits"},
}

func init() {
	for i := range Table {
		s := &Table[i]
		s.Number = uint16(i)
		s.Unit = max(s.Unit, 1)
		s.MinProbes = max(s.MinProbes, 1)
		if s.MaxProbes == 0 {
			s.MaxProbes = MaxProbes
		}
	}
}

// Stream generates the positions of Bloomery's own scheme from a 64-bit hash h:
//
//	position i = hi64(mix(h + i*step) * m)    step = rotate32(h * 0xd1342543de82ef95) | 1
//	mix(x) = y ^ y>>29,  y = (x ^ x>>32) * 0x9fb21c651e98df25
//
// The multiplication by m replaces a modulo: it needs no division, has a negligible
// bias and uses the top bits. Without mix this would be double hashing, whose
// equidistant positions coincide with those of other keys too often (Dillinger and
// Manolios 2004, section 4). Because step follows from h, no two keys follow each
// other's steps.
type Stream struct{ at, step uint64 }

// NewStream starts at the first position.
func NewStream(h uint64) Stream {
	step := h * 0xd1342543de82ef95
	return Stream{h, (step>>32 | step<<32) | 1}
}

// Next returns the next position, 0 to m-1.
func (s *Stream) Next(m uint64) uint64 {
	x := (s.at ^ s.at>>32) * 0x9fb21c651e98df25
	s.at += s.step
	position, _ := bits.Mul64(x^x>>29, m)
	return position
}
