package classic_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/scheme"
)

func newClassic(t testing.TB, c classic.Config) *classic.Filter {
	t.Helper()
	f, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestStreamFar: at m far above what memory holds, the positions are as good at
// their low end as at their high end. Each is cut down to a filter of 2^16 bits,
// by its low digits or by its high ones, whose rate must be what the bits say.
func TestStreamFar(t *testing.T) {
	const small, k, n, strangers = 1 << 16, 7, 6000, 400_000
	for _, m := range []uint64{1<<32 + 1<<16, 1 << 33, 1<<40 + 12345<<16, 1 << 45} {
		for _, by := range []struct {
			name string
			cut  func(position uint64) uint64
		}{
			{"low", func(p uint64) uint64 { return p % small }},
			{"high", func(p uint64) uint64 { return p / (m / small) % small }},
		} {
			var set [small]bool
			each := func(h uint64, do func(uint64)) {
				s := scheme.NewStream(h)
				for range k {
					p := s.Next(m)
					if p >= m {
						t.Fatalf("m %d: position %d", m, p)
					}
					do(by.cut(p))
				}
			}
			for i := range uint64(n) {
				each(mix(i), func(p uint64) { set[p] = true })
			}
			ones := 0
			for _, is := range set {
				if is {
					ones++
				}
			}
			fill := float64(ones) / small
			if want := -math.Expm1(-n * k / float64(small)); math.Abs(fill-want) > 4*math.Sqrt(0.08/small) {
				t.Errorf("m %d, %s end: fill %.5f, want %.5f", m, by.name, fill, want)
			}
			found := 0
			for i := range uint64(strangers) {
				all := true
				each(mix(i+n), func(p uint64) { all = all && set[p] })
				if all {
					found++
				}
			}
			expected := math.Pow(fill, k) * strangers
			if z := (float64(found) - expected) / math.Sqrt(expected); math.Abs(z) > 4 {
				t.Errorf("m %d, %s end: %d of %d strangers found, the bits say %.1f: %+.1f sigma", m, by.name, found, strangers, expected, z)
			}
		}
	}
}

// TestStreamOfPlainHashes: hashes with hardly a bit set, or all of them, give k
// different positions too. Where a step can be zero or even, as in bbloom, some
// keys have one position only, or half of them.
func TestStreamOfPlainHashes(t *testing.T) {
	var hashes []uint64
	for bit := range 64 {
		hashes = append(hashes, 1<<bit, ^uint64(0)<<bit, ^uint64(1<<bit))
	}
	for _, h := range append(hashes, 0) {
		s := scheme.NewStream(h)
		seen := map[uint64]bool{}
		for range 64 {
			seen[s.Next(1<<40)] = true
		}
		if len(seen) != 64 {
			t.Errorf("hash %#x gives %d different positions of 64", h, len(seen))
		}
	}
}

// TestClassicSparse: filters above 2^32 bits, by a few keys. Where positions are
// cut to 32 bits, as in BoomFilters, keys are lost or found too often.
func TestClassicSparse(t *testing.T) {
	for _, m := range []uint64{1<<32 + 7, 1 << 34} {
		f, err := classic.Config{Keys: 1 << 20, Bits: m, Probes: 3}.New()
		if errors.Is(err, bloom.ErrBudget) {
			t.Logf("NOT CHECKED: %d bits; this machine says: %v", m, err)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		above := 0
		for i := range uint64(12) {
			key := binary.LittleEndian.AppendUint64(nil, i)
			if f.Contains(key) || !f.AddUint64(i) || f.AddUint64(i) || !f.Contains(key) {
				t.Errorf("m %d: key %d was found before it was added, or not afterwards", m, i)
			}
			for _, p := range f.Positions(key) {
				if p >= m {
					t.Errorf("m %d: key %d has position %d", m, i, p)
				}
				if p >= 1<<32 {
					above++
				}
			}
		}
		if m == 1<<34 && (above < 15 || above > 35) {
			t.Errorf("m %d: %d of 36 positions are above 2^32, want about 27", m, above)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestClassicVerbs: each way to add and to look up gives the same bits and
// answers, under every scheme.
func TestClassicVerbs(t *testing.T) {
	for _, s := range append(classic.Schemes(), worked(t)) {
		c := classic.Config{Bits: 1 << 14, Probes: 2, Scheme: s}
		if s == worked(t) {
			c = classic.Config{Bits: 10, Probes: 3, Scheme: s}
		}
		one, many, texts := newClassic(t, c), newClassic(t, c), newClassic(t, c)
		var keys [][]byte
		var strs []string
		for i := range 700 {
			strs = append(strs, fmt.Sprint("key ", i%500))
			keys = append(keys, []byte(strs[i]))
		}
		want, isNew, isNewText := make([]bool, len(keys)), make([]bool, len(keys)), make([]bool, len(keys))
		count := 0
		for i, key := range keys {
			want[i] = one.Add(key)
			if want[i] {
				count++
			}
			if !one.Contains(key) || !one.ContainsString(strs[i]) || one.AddString(strs[i]) {
				t.Fatalf("%v: key %q is lost", s, key)
			}
		}
		if n := many.AddMany(keys, isNew); n != count || !slices.Equal(isNew, want) {
			t.Errorf("%v: AddMany: %d new, want %d, and answers as Add's", s, n, count)
		}
		if n := texts.AddStrings(strs, isNewText); n != count || !slices.Equal(isNewText, want) {
			t.Errorf("%v: AddStrings: %d new, want %d, and answers as Add's", s, n, count)
		}
		if !one.Equal(many) || !one.Equal(texts) || !one.Equal(one.Clone()) {
			t.Errorf("%v: unlike bits", s)
		}
		if n, m := many.ContainsMany(keys, nil), many.ContainsStrings(strs, nil); n != len(keys) || m != len(keys) {
			t.Errorf("%v: %d and %d of %d keys found", s, n, m, len(keys))
		}
		if r := one.Report(); r.Added != uint64(count) {
			t.Errorf("%v: Added %d, want %d", s, r.Added, count)
		}
		le := binary.LittleEndian.AppendUint64(nil, 77)
		if one.AddUint64(77); !one.Contains(le) || !one.ContainsUint64(77) {
			t.Errorf("%v: AddUint64 does not add eight little-endian bytes", s)
		}
		one.Clear()
		if r := one.Report(); r.Fill != 0 || r.Added != 0 || r.Keys != 0 || r.Rate != 0 || one.Contains(keys[0]) {
			t.Errorf("%v: after Clear the report is %+v", s, r)
		}
		if s.TakesHashes() {
			one.AddHash(one.Hash(keys[3]))
			if !one.Contains(keys[3]) || !one.ContainsHash(one.HashString(strs[3])) {
				t.Errorf("%v: AddHash adds another key", s)
			}
		} else {
			mustPanic(t, "needs the key", func() { one.AddHash(1) })
			mustPanic(t, "needs the key", func() { one.ContainsHashes([]uint64{1}, nil) })
			mustPanic(t, "needs the key", func() { one.Hash(nil) })
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		mustPanic(t, "closed", func() { one.BitString() })
	}
}

func mustPanic(t *testing.T, says string, do func()) {
	t.Helper()
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), says) {
			t.Errorf("panic %v, want one that says %q", r, says)
		}
	}()
	do()
}

// worked is the example on ten slots, as a scheme of the caller's.
var workedScheme classic.Scheme

func worked(t testing.TB) classic.Scheme {
	if workedScheme == (classic.Scheme{}) {
		s, err := classic.NewScheme("worked", func(at []uint64, key []byte, m uint64) {
			for i := range at {
				at[i] = (uint64(len(key)) + uint64(i)) % m
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		workedScheme = s
	}
	return workedScheme
}

func TestNewScheme(t *testing.T) {
	positions := func(at []uint64, key []byte, m uint64) { at[0] = m }
	for _, name := range []string{"", "bloomery", "guava-mitz-64", "two\nlines", "\xff", strings.Repeat("x", 256)} {
		if _, err := classic.NewScheme(name, positions); !errors.Is(err, bloom.ErrConfig) {
			t.Errorf("name %q: error %v, want ErrConfig", name, err)
		}
	}
	if _, err := classic.NewScheme("mine", nil); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("no function: error %v, want ErrConfig", err)
	}
	s, err := classic.NewScheme("mine", positions)
	if err != nil || s.Name() != "mine" || s.Number() != 0 || s.TakesHashes() {
		t.Fatalf("scheme %v, number %d, %v", s, s.Number(), err)
	}
	f := newClassic(t, classic.Config{Bits: 10, Probes: 1, Scheme: s})
	mustPanic(t, `the scheme "mine" gives position 10, but m is 10`, func() { f.AddString("x") })

	again, err := classic.NewScheme("mine", positions)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Union(newClassic(t, classic.Config{Bits: 10, Probes: 1, Scheme: again})); err != nil {
		t.Errorf("the same scheme given again: %v", err)
	}
	file, err := newClassic(t, classic.Config{Bits: 20, Probes: 1, Scheme: again}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.UnmarshalBinary(file); err != nil || f.Plan().Bits != 20 || f.Scheme().Name() != "mine" {
		t.Errorf("UnmarshalBinary over a filter of the scheme: %v, %v", err, f)
	}
	if err := new(classic.Filter).UnmarshalBinary(file); !errors.Is(err, bloom.ErrVersion) {
		t.Errorf("UnmarshalBinary of a scheme that nobody gave: error %v, want ErrVersion", err)
	}
}

func TestClassicSets(t *testing.T) {
	c := classic.Config{Bits: 1000, Probes: 4}
	a, b, both := newClassic(t, c), newClassic(t, c), newClassic(t, c)
	for i := range uint64(100) {
		a.AddUint64(i)
		b.AddUint64(i + 50)
		both.AddUint64(i)
		both.AddUint64(i + 50)
	}
	common := a.Clone()
	if err := a.Union(b); err != nil || !a.Equal(both) {
		t.Errorf("Union: %v, and not the bits of a filter with the keys of both", err)
	}
	if err := common.Intersect(b); err != nil {
		t.Error(err)
	}
	for i := uint64(50); i < 100; i++ {
		if !common.ContainsUint64(i) {
			t.Errorf("Intersect lost the common key %d", i)
		}
	}
	for name, unlike := range map[string]classic.Config{
		"k 4, the other 5":         {Bits: 1000, Probes: 5}, // bits-and-blooms names m here
		"m 1000, the other 1001":   {Bits: 1001, Probes: 4},
		"seed 0, the other":        {Bits: 1000, Probes: 4, Seed: 1},
		"siphash":                  {Bits: 1000, Probes: 4, Secret: make([]byte, 16)},
		"bloomery, the other dcso": {Bits: 1000, Probes: 4, Scheme: classic.SchemeDCSO},
	} {
		g := newClassic(t, unlike)
		for _, err := range []error{both.Union(g), both.Intersect(g)} {
			if !errors.Is(err, bloom.ErrUnlike) || !strings.Contains(err.Error(), name) {
				t.Errorf("error %v, want ErrUnlike that says %q", err, name)
			}
		}
		if both.Equal(g) {
			t.Errorf("Equal to a filter of %s", name)
		}
	}
	if !both.Equal(a) {
		t.Error("a refused operation changed the filter")
	}
}

// TestClassicReport: the estimates hold at every fill; a full filter holds
// infinitely many keys (bits-and-blooms says 0).
func TestClassicReport(t *testing.T) {
	for _, n := range []uint64{1, 10, 1000, 3000} {
		f := newClassic(t, classic.Config{Keys: 1000, Rate: 0.01})
		for i := range n {
			f.AddUint64(i)
		}
		r := f.Report()
		if math.Abs(r.Keys-float64(n)) > 4*r.KeysError+1e-9*float64(n)+0.1 {
			t.Errorf("n %d: %.2f keys ± %.2f", n, r.Keys, r.KeysError)
		}
		if set := strings.Count(f.BitString(), "1"); float64(set)/float64(r.Plan.Bits) != r.Fill {
			t.Errorf("n %d: fill %g, but %d of %d bits", n, r.Fill, set, r.Plan.Bits)
		}
		if r.Overfull() != (n > 1000) || math.Abs(r.Rate-f.EstimatedErrorRate()) > 1e-12*r.Rate+float64(n)/(1<<63) {
			t.Errorf("n %d: report %+v", n, r)
		}
	}
	full := newClassic(t, classic.Config{Bits: 3, Probes: 2})
	for i := range uint64(100) {
		full.AddUint64(i)
	}
	if r := full.Report(); r.Fill != 1 || r.Rate != 1 || !math.IsInf(r.Keys, 1) || !r.Overfull() || r.Remaining != 0 {
		t.Errorf("full: %+v", r)
	}
	large := newClassic(t, classic.Config{Bits: 3 << 29, Probes: 3}) // 192 MiB: sampled
	for i := range uint64(1 << 20) {
		large.AddHash(mix(i))
	}
	if r := large.Report(); math.Abs(r.Keys-1<<20) > 4*r.KeysError || r.KeysError > 1<<12 || r.RateError == 0 {
		t.Errorf("large: %+v", r)
	}
	large.Close()
}

// TestClassicAllocs: nothing is allocated, keys on the stack included.
func TestClassicAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool forget")
	}
	for _, s := range classic.Schemes() {
		f := newClassic(t, classic.Config{Bits: 1 << 14, Probes: 2, Scheme: s})
		key, i := []byte("https://example.com/页"), uint64(0)
		if n := testing.AllocsPerRun(100, func() {
			i++
			var onStack [9]byte
			onStack[0] = byte(i)
			f.Add(onStack[:])
			f.Contains(onStack[:])
			f.Add(key)
			f.AddUint64(i)
			f.ContainsUint64(i)
			f.ContainsString("x")
		}); n != 0 {
			t.Errorf("%v: %v allocations", s, n)
		}
	}
}

// TestClassicReaders: any number of goroutines may read (BoomFilters' Test is a
// data race). For the race detector.
func TestClassicReaders(t *testing.T) {
	for _, s := range classic.Schemes() {
		f := newClassic(t, classic.Config{Bits: 1 << 14, Probes: 2, Scheme: s})
		f.AddString("a key")
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for range 100 {
					if !f.ContainsString("a key") {
						t.Errorf("%v: a key is lost", s)
					}
				}
			})
		}
		wait.Wait()
	}
}

// TestClassicKeyed: another secret gives other positions, and foreign schemes
// have none.
func TestClassicKeyed(t *testing.T) {
	one := newClassic(t, classic.Config{Keys: 1000, Rate: 0.01, Secret: []byte("sixteen bytes ..")})
	two := newClassic(t, classic.Config{Keys: 1000, Rate: 0.01, Secret: []byte("sixteen bytes ,,")})
	if slices.Equal(one.Positions([]byte("x")), two.Positions([]byte("x"))) {
		t.Error("two secrets give the same positions")
	}
	if id := one.HashIdentity(); id.Algorithm != bloom.SipHash || id == two.HashIdentity() {
		t.Errorf("hash identities %v and %v", id, two.HashIdentity())
	}
}

// TestJavaBitSetShortStrings: the Java class's polynomials take short strings to
// few places, so that it finds strangers far more often than its bits let
// expect. Our own scheme does not.
func TestJavaBitSetShortStrings(t *testing.T) {
	word := func(i uint64) []byte {
		key := make([]byte, 5)
		for x, at := mix(i), 0; at < len(key); at++ {
			key[at] = 'a' + byte(x%26)
			x /= 26
		}
		return key
	}
	for _, s := range []classic.Scheme{classic.SchemeJavaBitSet, classic.SchemeBloomery} {
		f := newClassic(t, classic.Config{Bits: 1 << 23, Probes: 8, Scheme: s})
		known := map[string]bool{}
		for i := range uint64(300_000) {
			f.Add(word(i))
			known[string(word(i))] = true
		}
		found, strangers := 0, 0
		for i := range uint64(300_000) {
			if key := word(i + 300_000); !known[string(key)] {
				strangers++
				if f.Contains(key) {
					found++
				}
			}
		}
		expected := f.Report().Rate * float64(strangers)
		isPoor := float64(found) > 3*expected+20
		if isPoor != (s == classic.SchemeJavaBitSet) {
			t.Errorf("%v: %d of %d strangers found, the bits say %.1f", s, found, strangers, expected)
		}
	}
}

// FuzzSchemes: no key makes a numbered scheme panic or leave the filter, and a
// key that is added is found.
func FuzzSchemes(f *testing.F) {
	for _, key := range []string{"", "a", "\x00", "布隆", "\xed\xa0\x80", "\xed\xa0", "a\xed\xb0\x80\xed\xa0\x80b", "\xff\xfe", strings.Repeat("\xed\xa0\x80", 200)} {
		f.Add([]byte(key), uint64(1000), 7)
		f.Add([]byte(key), uint64(1), 1)
	}
	f.Fuzz(func(t *testing.T, key []byte, m uint64, k int) {
		k = 1 + k&15 // for more k the plan takes most of the time
		for _, s := range classic.Schemes() {
			c, err := classic.Config{Bits: m % (1 << 20), Probes: k, Scheme: s}.New()
			if errors.Is(err, bloom.ErrConfig) {
				c, err = classic.Config{Bits: 1 << (m % 20), Probes: 2, Scheme: s}.New()
			}
			if err != nil {
				t.Fatalf("%v, m %d, k %d: %v", s, m, k, err)
			}
			for _, p := range c.Positions(key) {
				if p >= c.Plan().Bits {
					t.Fatalf("%v: position %d of %v", s, p, c.Plan())
				}
			}
			if c.Add(key); !c.Contains(key) {
				t.Fatalf("%v, m %d, k %d: %q is lost", s, m, k, key)
			}
		}
	})
}

// TestClassicFolds: position at 2m halves to position at m, since both are the
// top of the same product.
func TestClassicFolds(t *testing.T) {
	for i := range uint64(1000) {
		s, half := scheme.NewStream(mix(i)), scheme.NewStream(mix(i))
		for range 20 {
			if a, b := s.Next(2*12345), half.Next(12345); a/2 != b {
				t.Fatalf("positions %d of %d and %d of %d", a, 2*12345, b, 12345)
			}
		}
	}
}

func BenchmarkClassic(b *testing.B) {
	for _, s := range classic.Schemes() {
		f := newClassic(b, classic.Config{Bits: 1 << 20, Probes: probesFor(s), Scheme: s})
		b.Run(s.Name()+"/add", func(b *testing.B) {
			var key [16]byte
			for i := uint64(0); b.Loop(); i++ {
				binary.LittleEndian.PutUint64(key[:], i%100_000)
				f.Add(key[:])
			}
		})
	}
}

// probesFor is 7, or what the scheme allows.
func probesFor(s classic.Scheme) int {
	if s == classic.SchemeSHA256MD5 || s == classic.SchemeMurmurFNVJS {
		return 2
	}
	return 7
}

// mix is splitmix64's output function (Steele, Lea, Flood 2014): a permutation, so
// different numbers stay different.
func mix(x uint64) uint64 {
	x = (x + 20_090_318) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// TestUnknownScheme is a bug's test: a file of a scheme that this version does not know was
// read as one of our own scheme, and most of its keys were then missing.
func TestUnknownScheme(t *testing.T) {
	f, err := classic.Config{Keys: 100, Rate: 0.01}.New()
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	for _, number := range []uint32{16, 17, 1<<16 - 1} {
		b := bytes.Clone(file.Bytes())
		binary.LittleEndian.PutUint32(b[12:], number)
		binary.LittleEndian.PutUint32(b[4092:], crc32.Checksum(b[:4092], crc32.MakeTable(crc32.Castagnoli)))
		if _, err := classic.Read(bytes.NewReader(b), 1<<20); !errors.Is(err, bloom.ErrVersion) {
			t.Errorf("scheme %d: %v, want ErrVersion", number, err)
		}
	}
}
