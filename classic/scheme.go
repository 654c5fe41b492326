package classic

import (
	"fmt"
	"math"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/scheme"
	"github.com/bloomery/bloom/internal/sizing"
)

// Scheme is the rule by which a [Filter] turns a key into the positions of its
// bits. The zero Scheme is [SchemeBloomery]. Schemes can be compared with ==,
// except for those of [NewScheme], which are the same if their names are.
//
// The schemes of other programs set the very bits that those programs set. They
// start from the key's bytes. Where the program sees text as UTF-16 units or code
// points, the bytes are taken as UTF-8, and an unpaired surrogate, which UTF-8
// cannot hold, as its three bytes ED A0..BF xx.
type Scheme struct{ rule *scheme.Scheme }

// The numbered schemes. The numbers and their meanings are frozen.
var (
	// SchemeBloomery is our own: positions from one 64-bit hash of the filter's
	// HashIdentity, by multiplication, even and independent at any m up to 2^45
	// and any k.
	SchemeBloomery = numbered(scheme.Own)

	// SchemeMD5IndexKey is the textbook family MD5("0"+key), MD5("1"+key) and so
	// on, big-endian, modulo m.
	SchemeMD5IndexKey = numbered(scheme.MD5IndexKey)

	// SchemeSHA256MD5 has k = 2: SHA-256 and MD5 of the key, little-endian,
	// modulo m (TheAlgorithms' Python collection).
	SchemeSHA256MD5 = numbered(scheme.SHA256MD5)

	// SchemeMD5KeyIndex is the family MD5(key+"1"), MD5(key+"2") and so on,
	// big-endian, modulo m.
	SchemeMD5KeyIndex = numbered(scheme.MD5KeyIndex)

	// SchemeMurmurFNVJS has k = 2: what the page "Bloom Filters by Example" calls
	// FNV, and MurmurHash2, modulo m. The page has m = 15.
	SchemeMurmurFNVJS = numbered(scheme.MurmurFNVJS)

	// SchemeJavaBitSet is the Java class with the seeds 3, 5, 7, 11, 13, 31, 37
	// and 61. k is at most 8, and m a power of two, originally 2<<28. Its hashes
	// are poor: short strings reach only the lowest positions, so the rate can be
	// much higher than [bloom.Report] says.
	SchemeJavaBitSet = numbered(scheme.JavaBitSet)

	// SchemeGuava32 is Guava's MURMUR128_MITZ_32, as funnelled bytes: a string
	// funnel's UTF-8, an integer funnel's 4 or a long funnel's 8 little-endian
	// bytes. m is a multiple of 64.
	SchemeGuava32 = numbered(scheme.Guava32)

	// SchemeGuava64 is Guava's MURMUR128_MITZ_64, its default; see SchemeGuava32.
	SchemeGuava64 = numbered(scheme.Guava64)

	// SchemeRedisBloom is that of RedisBloom's BF commands, for one layer of a
	// filter. m is a multiple of 64. At small m, powers of two above all, its rate
	// is far above what [bloom.Report] says: the positions of about one key in m
	// coincide, so that no rate much below 1/m can be had. A filter of package
	// redisbloom reports the true rate.
	SchemeRedisBloom = numbered(scheme.RedisBloom)

	// SchemeBitsAndBlooms is that of github.com/bits-and-blooms/bloom/v3.
	SchemeBitsAndBlooms = numbered(scheme.BitsAndBlooms)

	// SchemeDCSO is that of github.com/DCSO/bloom version 1, of CIRCL hashlookup
	// and of poppy's version 1. At some m, powers of two among them, its rate is
	// far above what [bloom.Report] says.
	SchemeDCSO = numbered(scheme.DCSO)

	// SchemeBloomFilterJS32 is that of bloomfilter.js up to version 0.0.18. m is
	// a multiple of 32, at most 2^31.
	SchemeBloomFilterJS32 = numbered(scheme.BloomFilterJS1)

	// SchemeBloomFilterJS64 is that of bloomfilter.js since version 0.0.21. m is
	// a multiple of 32, at most 2^31.
	SchemeBloomFilterJS64 = numbered(scheme.BloomFilterJS2)

	// SchemeNPMBloomFilters is that of the npm package bloom-filters. Its seed is
	// Config.Seed, of which the low 32 bits count; zero stands for the
	// package's own, 0x1234567890.
	SchemeNPMBloomFilters = numbered(scheme.NPMBloom)

	// SchemeRedisSetBit is that of crawlers' filters in a Redis string
	// (ScrapyRedisBloomFilter). m is a power of two. Redis stores the bits of each
	// byte in the opposite order. That program never finds the empty key, even if
	// it was added; here it is a key like any other. Short keys have small hashes
	// that lie close together, so the rate is far above what [bloom.Report] says:
	// at m = 2^20 and k = 7, for keys of eight letters, fourteen times.
	SchemeRedisSetBit = numbered(scheme.RedisSetBit)
)

func numbered(number uint16) Scheme { return Scheme{&scheme.Table[number]} }

// maxSchemeName leaves room for the name in a header page.
const maxSchemeName = 255

// NewScheme makes a scheme of the caller's own. positions sets each of the k
// elements of at to a position from 0 to m-1 that depends on key and m alone.
// Positions may repeat. Any number of goroutines may call it at once. It must not
// change key, and must keep neither slice. A filter panics if a position is m or
// more; nothing checks that positions are spread evenly, on which the rate depends.
//
// Files hold only the scheme's name; to load one, pass the scheme of that name. So
// a scheme that gives other positions needs another name.
//
// The error wraps [bloom.ErrConfig] if the name is empty, longer than 255 bytes, not
// printable, or that of a numbered scheme.
func NewScheme(name string, positions func(at []uint64, key []byte, m uint64)) (Scheme, error) {
	switch _, taken := SchemeNamed(name); {
	case positions == nil:
		return Scheme{}, fmt.Errorf("%w: a scheme needs a function", bloom.ErrConfig)
	case taken:
		return Scheme{}, fmt.Errorf("%w: the scheme %q is ours: give yours another name", bloom.ErrConfig, name)
	case name == "" || len(name) > maxSchemeName || strings.ContainsFunc(name, unprintable):
		return Scheme{}, fmt.Errorf("%w: the name of a scheme has 1 to %d printable bytes, not %q", bloom.ErrConfig, maxSchemeName, name)
	}
	return Scheme{&scheme.Scheme{
		Number:    scheme.Custom,
		Name:      name,
		Fill:      func(at []uint64, key []byte, m, _ uint64) { positions(at, key, m) },
		Unit:      1,
		MinProbes: 1,
		MaxProbes: scheme.MaxProbes,
	}}, nil
}

func unprintable(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }

// Schemes returns the numbered schemes in the order of their numbers.
func Schemes() []Scheme {
	all := make([]Scheme, 0, len(scheme.Table)-1)
	for number := scheme.Own; number < len(scheme.Table); number++ {
		all = append(all, numbered(uint16(number)))
	}
	return all
}

// SchemeNamed returns the numbered scheme of that name.
func SchemeNamed(name string) (s Scheme, ok bool) {
	for _, s := range Schemes() {
		if s.rule.Name == name {
			return s, true
		}
	}
	return Scheme{}, false
}

// SchemeNumbered returns the scheme that has this number in files.
func SchemeNumbered(number uint16) (s Scheme, ok bool) {
	if number == scheme.Custom || int(number) >= len(scheme.Table) {
		return Scheme{}, false
	}
	return numbered(number), true
}

// Name returns the scheme's name, such as "guava-mitz-64".
func (s Scheme) Name() string { return s.def().Name }

// Number returns the scheme's number in files, 0 for one made by [NewScheme].
func (s Scheme) Number() uint16 { return s.def().Number }

func (s Scheme) String() string { return s.Name() }

// TakesHashes reports whether the scheme starts from the 64-bit hash of the
// filter's HashIdentity, so that AddHash and ContainsHash work. Only
// SchemeBloomery does.
func (s Scheme) TakesHashes() bool { return s.def().Number == scheme.Own }

func (s Scheme) def() *scheme.Scheme {
	if s.rule == nil {
		return &scheme.Table[scheme.Own]
	}
	return s.rule
}

// is reports whether s and t give the same positions.
func (s Scheme) is(t Scheme) bool {
	return s.Number() == t.Number() && s.Name() == t.Name()
}

// refuseBits returns an error if the scheme cannot have m bits.
func (s Scheme) refuseBits(m uint64) error {
	def := s.def()
	if m == 0 || m > scheme.MaxBits {
		return fmt.Errorf("%w: m must be from 1 to %d, not %d", bloom.ErrConfig, uint64(scheme.MaxBits), m)
	}
	if def.PowerOfTwo && m&(m-1) != 0 {
		return fmt.Errorf("%w: the scheme %s masks with m-1, so m must be a power of two, not %d", bloom.ErrConfig, def.Name, m)
	}
	if def.MostBits != 0 && m > def.MostBits {
		return fmt.Errorf("%w: %d bits are too many for the scheme %s: %s", bloom.ErrConfig, m, def.Name, def.Why)
	}
	return nil
}

// refuseProbes returns an error if the scheme cannot have k probes.
func (s Scheme) refuseProbes(k int) error {
	def := s.def()
	if k < def.MinProbes || k > def.MaxProbes {
		return fmt.Errorf("%w: k must be %s for the scheme %s, not %d", bloom.ErrConfig, fromTo(def.MinProbes, def.MaxProbes), def.Name, k)
	}
	return nil
}

func fromTo(first, last int) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("from %d to %d", first, last)
}

// fits checks m and k against what the scheme allows.
func (s Scheme) fits(bits uint64, probes int) error {
	if err := s.refuseBits(bits); err != nil {
		return err
	}
	if err := s.refuseProbes(probes); err != nil {
		return err
	}
	if unit := s.def().Unit; bits%unit != 0 {
		return fmt.Errorf("%w: the scheme %s has multiples of %d bits, not %d", bloom.ErrConfig, s, unit, bits)
	}
	return nil
}

// hashedBy reports whether filters of the scheme can have this identity.
func (s Scheme) hashedBy(id bloom.HashIdentity) bool {
	switch {
	case s.TakesHashes():
		return id.Algorithm == bloom.XXH3 || id.Algorithm == bloom.SipHash
	case s.def().Seed != 0:
		return id.Algorithm == bloom.XXH64
	}
	return id == bloom.HashIdentity{}
}

// Formula is a published way to compute m and k from n and p, with the order of
// operations and the rounding of its source, so that the result is that program's
// filter. Most do not keep p, because they ignore what rounding k costs. Zero
// stands for the exact plan, which does keep it; see [Config].
type Formula uint8

const (
	// FormulaTruncated: m = trunc(1.44 n log2(1/p)), k = trunc(m/n ln 2); the
	// textbook behind [SchemeMD5IndexKey]. Its rate is up to 4% above p, and for p
	// above 0.499 its k is zero.
	FormulaTruncated Formula = iota + 1

	// FormulaCeiling: m = ceil(-n ln p/(ln 2)^2), k = ceil(-log2 p); the
	// textbook behind [SchemeMD5KeyIndex].
	FormulaCeiling

	// FormulaReal: m = -n ln p/(ln 2)^2, k = m/n ln 2, for which the textbook
	// behind [SchemeJavaBitSet] gives no rounding: here m is rounded up and k to
	// the nearest.
	FormulaReal

	// FormulaGuava31 is Guava's in 31.1 and 32.0.1, FormulaGuava33 in 33.7.1:
	// they differ in k for n up to 3.
	FormulaGuava31
	FormulaGuava33

	// FormulaRedisBloom is that of BF.RESERVE ... NONSCALING,
	// FormulaRedisBloomScaling that of the first layer of a chain.
	FormulaRedisBloom
	FormulaRedisBloomScaling

	// FormulaBitsAndBlooms is that of bits-and-blooms' EstimateParameters.
	FormulaBitsAndBlooms

	// FormulaDCSO is that of DCSO/bloom version 1.
	FormulaDCSO

	// FormulaBloomFilterJS is that of bloomfilter.js' withTargetError.
	FormulaBloomFilterJS

	// FormulaNPMBloomFilters is that of the npm package bloom-filters.
	FormulaNPMBloomFilters
)

var formulas = [...]struct {
	name string
	size func(n, p float64) (m uint64, k int)
}{
	FormulaTruncated:         {"truncated", scheme.SizeTruncated},
	FormulaCeiling:           {"ceiling", scheme.SizeCeiling},
	FormulaReal:              {"real", scheme.SizeReal},
	FormulaGuava31:           {"guava 31", scheme.SizeGuava31},
	FormulaGuava33:           {"guava 33", scheme.SizeGuava33},
	FormulaRedisBloom:        {"redisbloom", scheme.SizeRedisBloom},
	FormulaRedisBloomScaling: {"redisbloom scaling", scheme.SizeRedisBloomScaling},
	FormulaBitsAndBlooms:     {"bits-and-blooms", scheme.SizeBitsAndBlooms},
	FormulaDCSO:              {"dcso", scheme.SizeDCSO},
	FormulaBloomFilterJS:     {"bloomfilter.js", scheme.SizeBloomFilterJS},
	FormulaNPMBloomFilters:   {"npm-bloom-filters", scheme.SizeNPMBloom},
}

func (f Formula) String() string {
	switch {
	case f == 0:
		return "exact"
	case int(f) < len(formulas):
		return formulas[f].name
	}
	return fmt.Sprintf("formula %d", uint8(f))
}

// Size computes m and k. The error wraps [bloom.ErrConfig] if n or p is out of range,
// and [bloom.ErrRate] if m or k is zero or above its limit, as happens at extreme n
// and p: the program itself would then make a filter that does not work.
func (f Formula) Size(n uint64, p float64) (m uint64, k int, err error) {
	if f == 0 || int(f) >= len(formulas) {
		return 0, 0, fmt.Errorf("%w: there is no %v to work out m and k by", bloom.ErrConfig, f)
	}
	return sizeBy(f.String(), formulas[f].size, n, p)
}

func sizeBy(name string, size func(n, p float64) (uint64, int), n uint64, p float64) (m uint64, k int, err error) {
	if n == 0 || n > sizing.MaxKeys {
		return 0, 0, fmt.Errorf("%w: n must be from 1 to %d, not %d", bloom.ErrConfig, uint64(sizing.MaxKeys), n)
	}
	if !(p > 0 && p < 1) || math.IsInf(1/p, 1) {
		return 0, 0, fmt.Errorf("%w: the rate must be above 0 and below 1, not %g", bloom.ErrConfig, p)
	}
	m, k = size(float64(n), p)
	switch {
	case k == 0:
		return m, k, fmt.Errorf("%w: the formula %q gives k = 0 for %d keys at rate %g, a filter that finds every key: lower the rate", bloom.ErrRate, name, n, p)
	case m == 0:
		return m, k, fmt.Errorf("%w: the formula %q gives m = 0 for %d keys at rate %g: lower the rate", bloom.ErrRate, name, n, p)
	case k > scheme.MaxProbes:
		return m, k, fmt.Errorf("%w: the formula %q gives k = %d for %d keys at rate %g, above the limit of %d: raise the rate", bloom.ErrRate, name, k, n, p, scheme.MaxProbes)
	case m > scheme.MaxBits:
		return m, k, fmt.Errorf("%w: the formula %q gives m = %d for %d keys at rate %g, above the limit of %d: raise the rate", bloom.ErrRate, name, m, n, p, uint64(scheme.MaxBits))
	}
	return m, k, nil
}
