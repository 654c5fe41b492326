package bloom_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"pgregory.net/rapid"
)

// crowded returns a filter with keys 0 to n-1, so full that false positives are
// common, and some of its false positives.
func crowded(t testing.TB, n uint64) (x *bloom.Exceptions, mistakes []string) {
	t.Helper()
	f := mustNew(t, bloom.Config{Keys: n, Rate: 0.1})
	for i := range n {
		f.AddString(strconv.FormatUint(i, 10))
	}
	for i := n; i < 5*n; i++ {
		if key := strconv.FormatUint(i, 10); f.ContainsString(key) {
			mistakes = append(mistakes, key)
		}
	}
	if len(mistakes) < 10 {
		t.Fatalf("only %d false positives", len(mistakes))
	}
	return bloom.WithExceptions(f), mistakes
}

func mustExcept(t testing.TB, x *bloom.Exceptions, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := x.ExceptString(key); err != nil {
			t.Fatal(err)
		}
	}
}

// excepted collects the list.
func excepted(x *bloom.Exceptions) []string {
	keys := []string{}
	for key := range x.Excepted() {
		keys = append(keys, string(key))
	}
	return keys
}

func TestExcept(t *testing.T) {
	x, mistakes := crowded(t, 1000)
	stranger := "never found"
	for x.ContainsString(stranger) {
		stranger += "!"
	}
	if err := x.ExceptString(stranger); !errors.Is(err, bloom.ErrNotContained) || !strings.Contains(err.Error(), stranger) {
		t.Errorf("Except of a key that is not found: %v, want ErrNotContained that names it", err)
	}
	key := []byte(mistakes[0])
	for range 2 { // the second time it is on the list already
		if err := x.Except(key); err != nil {
			t.Fatal(err)
		}
		if r := x.Report(); x.Len() != 1 || x.Bytes() != len(key) || r != x.Filter().Report() {
			t.Errorf("after one exception it has %d of %d bytes and reports %+v", x.Len(), x.Bytes(), r)
		}
	}
	text := string(key)
	key[0] = '!' // the list has its own copy
	if x.ContainsString(text) || x.ContainsHash(x.HashString(text)) || x.ContainsStrings([]string{text, "1"}, nil) != 1 {
		t.Error("an excepted key is still found")
	}
	if !x.Filter().ContainsString(text) {
		t.Error("the filter beneath knows of the exception")
	}
	added := x.Report().Added
	if !x.AddString(text) || x.AddString(text) || !x.ContainsString(text) {
		t.Error("an excepted key that is added must be new once, and contained then")
	}
	if r := x.Report(); x.Len() != 0 || x.Bytes() != 0 || r.Added != added+1 {
		t.Errorf("after it was added it reports %+v", r)
	}
	x.AddUint64(7)
	if err := x.ExceptUint64(7); err != nil || x.ContainsUint64(7) || x.Contains([]byte{7, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("ExceptUint64 is not Except of the little-endian bytes: %v", err)
	}
	if !x.AddUint64(7) || !x.ContainsUint64(7) {
		t.Error("AddUint64 does not drop the exception")
	}
	for i := range 1000 {
		if !x.ContainsString(strconv.Itoa(i)) {
			t.Errorf("key %d is lost", i)
		}
	}
}

// TestExceptedOrder: the list comes in one order whatever the order it grew in,
// and what is yielded is the caller's.
func TestExceptedOrder(t *testing.T) {
	x, mistakes := crowded(t, 1000)
	y := x.Clone()
	mustExcept(t, x, mistakes...)
	slices.Reverse(mistakes)
	mustExcept(t, y, mistakes...)
	slices.Sort(mistakes)
	if !slices.Equal(excepted(x), mistakes) || !slices.Equal(excepted(y), mistakes) || !x.Equal(y) {
		t.Error("the list depends on the order in which it grew")
	}
	for key := range x.Excepted() {
		clear(key)
	}
	for range x.Excepted() {
		break
	}
	if !slices.Equal(excepted(x), mistakes) {
		t.Error("a caller has changed the list")
	}
	if x.AddString(mistakes[0]); x.Equal(y) {
		t.Error("Equal, with different lists")
	}
}

// TestExceptionsByHash: a hash stands for all keys that have it, so an add by
// hash drops the exception, and no way of looking up says no afterwards.
func TestExceptionsByHash(t *testing.T) {
	x, mistakes := crowded(t, 1000)
	mustExcept(t, x, mistakes[:4]...)
	hashes := make([]uint64, 4)
	for i := range hashes {
		hashes[i] = x.Hash([]byte(mistakes[i]))
	}
	if x.ContainsHashes(hashes, nil) != 0 || x.ContainsHash(hashes[0]) {
		t.Error("an exception does not hold for its hash")
	}
	if !x.AddHash(hashes[0]) || x.AddHash(hashes[0]) || !x.ContainsString(mistakes[0]) {
		t.Error("AddHash of an excepted key's hash is not new, or leaves the exception")
	}
	isNew := make([]bool, 4)
	if n := x.AddHashes(slices.Concat(hashes[:2], hashes[1:3]), isNew); n != 2 || !slices.Equal(isNew, []bool{false, true, false, true}) {
		t.Errorf("AddHashes says %d, %v", n, isNew)
	}
	if x.ContainsHashes(hashes, nil) != 3 || !slices.Equal(excepted(x), mistakes[3:4]) {
		t.Errorf("the exceptions left are %q", excepted(x))
	}
}

// collision returns two keys of 16 bytes with the same XXH3 of seed 0, whatever x
// is. The hash is 16 + reversed(lo) + hi + lo*hi, mixed, for the two halves of
// the key with a constant exclusive-ored to each; so lo = 0 with hi = x, and lo =
// reversed(x) with hi = 0, come to the same.
func collision(x uint64) (a, b string) {
	const lo, hi = 0x6782737bea4239b9, 0xaf56bc3b0996523a
	halves := func(first, second uint64) string {
		return string(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, first^lo), second^hi))
	}
	return halves(0, x), halves(bits.ReverseBytes64(x), 0)
}

// TestExceptionsCollision: exceptions are of keys, also where two keys have one
// hash, and an add drops what it could make a false negative.
func TestExceptionsCollision(t *testing.T) {
	a, b := collision(0x0123456789abcdef)
	x := bloom.WithExceptions(mustNewWith(t))
	h := x.HashString(a)
	if a == b || h != x.HashString(b) {
		t.Fatalf("%q and %q do not collide", a, b)
	}
	x.AddString(a)
	mustExcept(t, x, b)
	if !x.ContainsString(a) || x.ContainsString(b) || x.ContainsStrings([]string{a, b}, nil) != 1 {
		t.Error("the exception of one key is taken for that of another with the same hash")
	}
	if x.ContainsHash(h) {
		t.Error("by its hash an excepted key is found")
	}
	if x.AddString(a) || !x.ContainsHash(h) || !x.ContainsString(a) {
		t.Error("a key that was added again is new, or not found by its hash")
	}
	if got := excepted(x); len(got) != 0 {
		t.Errorf("the exceptions left are %q", got)
	}

	mustExcept(t, x, a, b) // say they were never added
	if got := excepted(x); len(got) != 2 || x.Len() != 2 || x.ContainsString(a) || x.ContainsString(b) {
		t.Errorf("the exceptions are %q, want both", got)
	}
	for name, add := range map[string]func(x *bloom.Exceptions) bool{
		"Add":        func(x *bloom.Exceptions) bool { return x.AddString(a) },
		"AddHash":    func(x *bloom.Exceptions) bool { return x.AddHash(h) },
		"AddMany":    func(x *bloom.Exceptions) bool { return x.AddMany([][]byte{[]byte(a), []byte(b)}, nil) == 1 },
		"AddStrings": func(x *bloom.Exceptions) bool { return x.AddStrings([]string{a, a, b}, nil) == 1 },
		"AddHashes":  func(x *bloom.Exceptions) bool { return x.AddHashes([]uint64{h, h}, nil) == 1 },
	} {
		y := x.Clone()
		if !add(y) || !y.ContainsString(a) || !y.ContainsHash(h) || y.Bytes() != 0 {
			t.Errorf("%s: an excepted key is not new once, or is not found afterwards", name)
		}
	}
}

// TestExceptionsBatch compares the batches with single calls, over more keys
// than are hashed at a time.
func TestExceptionsBatch(t *testing.T) {
	single, mistakes := crowded(t, 3000)
	mustExcept(t, single, mistakes...)
	var texts []string
	for i := range 5000 {
		texts = append(texts, strconv.Itoa(2500+i))
		if i%7 == 0 {
			texts = append(texts, strconv.Itoa(2500+i/2), mistakes[i%len(mistakes)])
		}
	}
	keys, hashes, want, got := make([][]byte, len(texts)), make([]uint64, len(texts)), make([]bool, len(texts)), make([]bool, len(texts))
	for i, text := range texts {
		keys[i], hashes[i] = []byte(text), single.HashString(text)
	}
	for _, list := range []bool{true, false} {
		before, count := single.Clone(), 0
		for i := range keys {
			if want[i] = single.Contains(keys[i]); want[i] {
				count++
			}
		}
		for name, contains := range map[string]func() int{
			"ContainsMany":    func() int { return before.ContainsMany(keys, got) },
			"ContainsStrings": func() int { return before.ContainsStrings(texts, got) },
			"ContainsHashes":  func() int { return before.ContainsHashes(hashes, got) },
		} {
			if n := contains(); n != count || !slices.Equal(got, want) {
				t.Errorf("list %v: %s differs from single calls: %d, want %d", list, name, n, count)
			}
		}
		count = 0
		for i := range keys {
			if want[i] = single.Add(keys[i]); want[i] {
				count++
			}
		}
		for name, add := range map[string]func(x *bloom.Exceptions) int{
			"AddMany":    func(x *bloom.Exceptions) int { return x.AddMany(keys, got) },
			"AddStrings": func(x *bloom.Exceptions) int { return x.AddStrings(texts, got) },
			"AddHashes":  func(x *bloom.Exceptions) int { return x.AddHashes(hashes, got) },
		} {
			x := before.Clone()
			if n := add(x); n != count || !slices.Equal(got, want) || !x.Equal(single) || x.Report() != single.Report() {
				t.Errorf("list %v: %s differs from single calls: %d, want %d", list, name, n, count)
			}
		}
		single.Clear()
	}
}

func TestExceptionsUnion(t *testing.T) {
	x, mistakes := crowded(t, 1000)
	empty := bloom.WithExceptions(mustNew(t, bloom.Config{Keys: 1000, Rate: 0.1}))
	mustExcept(t, x, mistakes[:5]...)
	y := empty.Clone()
	y.AddString(mistakes[0]) // contained
	y.AddString(mistakes[1])
	mustExcept(t, y, mistakes[1]) // "contained" by the bits, but an exception there, too
	z := x.Clone()
	for _, pair := range [][2]*bloom.Exceptions{{x, y}, {y.Clone(), z}} { // both ways
		into, from := pair[0], pair[1]
		if err := into.Union(from); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(mistakes[1:5])
		slices.Sort(want)
		if got := excepted(into); !slices.Equal(got, want) {
			t.Errorf("the exceptions are %q, want %q", got, want)
		}
		if !into.ContainsString(mistakes[0]) || into.ContainsStrings(mistakes[1:5], nil) != 0 || into.Len() != 4 {
			t.Error("the answers do not agree with the list")
		}
	}
	seeded := bloom.WithExceptions(mustNew(t, bloom.Config{Keys: 1000, Rate: 0.1, Seed: 1}))
	for i := range 10_000 { // until it contains whatever it is asked for
		seeded.AddString(strconv.Itoa(i))
	}
	before := x.Clone()
	if err := x.Union(seeded); !errors.Is(err, bloom.ErrUnlike) || !x.Equal(before) {
		t.Errorf("Union with another seed: %v, want ErrUnlike and no change", err)
	}
	if err := x.Union(x); err != nil || !x.Equal(before) {
		t.Errorf("Union with itself: %v", err)
	}
}

func TestExceptionsCopies(t *testing.T) {
	f := mustNew(t, bloom.Config{Keys: 1000, Rate: 0.01, Folds: 2})
	for i := range 1000 {
		f.AddString(strconv.Itoa(i))
	}
	x := bloom.WithExceptions(f)
	mustExcept(t, x, "3", "33") // to no harm of this test
	clone := x.Clone()
	folded, err := x.Fold(2)
	if err != nil {
		t.Fatal(err)
	}
	if !clone.Equal(x) || folded.ContainsString("33") || !folded.ContainsString("34") || folded.Len() != 2 {
		t.Error("Clone or Fold lost an exception")
	}
	clone.AddString("3")
	mustExcept(t, folded, "7")
	if got := excepted(x); !slices.Equal(got, []string{"3", "33"}) {
		t.Errorf("what happened to the copies changed the list to %q", got)
	}
	if _, err := x.Fold(0); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("Fold(0): %v, want ErrConfig", err)
	}
	x.Clear()
	if r := x.Report(); r.Fill != 0 || x.Len() != 0 || x.Bytes() != 0 || !x.AddString("33") {
		t.Errorf("after Clear it reports %+v", r)
	}
	x.AddStrings([]string{"3", "new"}, nil)
	mustExcept(t, x, "new")
	if got := excepted(x); !slices.Equal(got, []string{"new"}) || !x.ContainsString("3") || !x.ContainsString("33") {
		t.Errorf("an exception has survived Clear: there are %q", got)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if panicOf(func() { x.ContainsString("33") }) == "" {
		t.Error("Contains of a closed filter does not panic")
	}
}

func TestExceptionsLimits(t *testing.T) {
	f := mustNew(t, bloom.Config{Keys: 1000, Rate: 0.01})
	x := bloom.WithExceptions(f)
	long := strings.Repeat("x", bloom.MaxExceptionBytes/2)
	for _, key := range []string{long, long[1:], "x", "xx"} {
		x.AddString(key)
	}
	mustExcept(t, x, long, long[1:], "x")
	if err := x.ExceptString("xx"); !errors.Is(err, bloom.ErrLimit) || !x.ContainsString("xx") || x.Bytes() != bloom.MaxExceptionBytes {
		t.Errorf("past the limit of bytes: %v, want ErrLimit and no change", err)
	}
	y := bloom.WithExceptions(mustNew(t, bloom.Config{Keys: 1000, Rate: 0.01}))
	y.AddString("y")
	mustExcept(t, y, "y")
	before := y.Clone()
	if err := y.Union(x); !errors.Is(err, bloom.ErrLimit) || !y.Equal(before) {
		t.Errorf("Union past the limit of bytes: %v, want ErrLimit and no change", err)
	}
	if testing.Short() || raceEnabled {
		return // a million exceptions take a second
	}
	x = bloom.WithExceptions(mustNew(t, bloom.Config{Keys: 100_000, Rate: 0.9}))
	for i := range uint64(bloom.MaxExceptions) {
		x.AddUint64(i)
		if err := x.ExceptUint64(i); err != nil {
			t.Fatalf("exception %d: %v", i, err)
		}
	}
	x.AddString("one more")
	if err := x.ExceptString("one more"); !errors.Is(err, bloom.ErrLimit) {
		t.Errorf("one exception more than the limit: %v, want ErrLimit", err)
	}
}

// TestExceptionsReadOnly: a list with a filter opened read-only.
func TestExceptionsReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "read.bloom")
	if err := mustNewWith(t, "a", "b").Save(path); err != nil {
		t.Fatal(err)
	}
	f, err := bloom.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	x := bloom.WithExceptions(f)
	defer x.Close()
	mustExcept(t, x, "a")
	if x.ContainsString("a") || !x.ContainsString("b") {
		t.Error("the exception does not hold over a file")
	}
	if message := panicOf(func() { x.AddString("a") }); !strings.Contains(message, "read-only") || x.ContainsString("a") {
		t.Errorf("Add over a file panics with %q", message)
	}
}

func mustNewWith(t *testing.T, keys ...string) *bloom.Filter {
	t.Helper()
	f := mustNew(t, bloom.Config{Keys: 100, Rate: 0.001})
	f.AddStrings(keys, nil)
	return f
}

func TestExceptionsNoAllocations(t *testing.T) {
	x, mistakes := crowded(t, 1000)
	mustExcept(t, x, mistakes...)
	key, text := []byte(mistakes[0]), mistakes[0]
	keys, answers := [][]byte{key, key, []byte("1")}, make([]bool, 3)
	texts, hashes := []string{text, text, "1"}, []uint64{1, x.HashString(text), 3}
	for name, call := range map[string]func(){
		"Contains":        func() { x.Contains(key) },
		"ContainsString":  func() { x.ContainsString(text) },
		"ContainsUint64":  func() { x.ContainsUint64(1) },
		"ContainsHash":    func() { x.ContainsHash(1) },
		"ContainsMany":    func() { x.ContainsMany(keys, answers) },
		"ContainsStrings": func() { x.ContainsStrings(texts, nil) },
		"ContainsHashes":  func() { x.ContainsHashes(hashes, nil) },
		"Add":             func() { x.Add(key) },
		"AddString":       func() { x.AddString(text) },
		"AddUint64":       func() { x.AddUint64(1) },
		"AddHash":         func() { x.AddHash(1) },
		"AddMany":         func() { x.AddMany(keys, answers) },
		"AddStrings":      func() { x.AddStrings(texts, nil) },
		"AddHashes":       func() { x.AddHashes(hashes, nil) },
	} {
		if n := testing.AllocsPerRun(1000, call); n != 0 && !raceEnabled {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// exceptionsModel is an Exceptions with the exact sets of its keys and its exceptions,
// which have no key in common.
type exceptionsModel struct {
	filter  *bloom.Exceptions
	in, out map[string]bool
}

// The filter is so small that a fifth of all strangers are found.
var exceptionsModelConfig = bloom.Config{Keys: 300, Bits: 4096, Probes: 2, Folds: 1}

var exceptionsKey = rapid.Custom(func(t *rapid.T) string {
	return fmt.Sprint(rapid.IntRange(0, 1000).Draw(t, "key"))
})

func newExceptionsModel(t *rapid.T) *exceptionsModel {
	f, err := exceptionsModelConfig.New()
	if err != nil {
		t.Fatal(err)
	}
	m := &exceptionsModel{bloom.WithExceptions(f), map[string]bool{}, map[string]bool{}}
	first, n := rapid.IntRange(0, 500).Draw(t, "first"), rapid.IntRange(0, 500).Draw(t, "keys")
	for i := range n {
		key := fmt.Sprint(first + i)
		m.filter.AddString(key)
		m.in[key] = true
	}
	for range 20 {
		m.except(t)
	}
	return m
}

func (m *exceptionsModel) except(t *rapid.T) {
	key := exceptionsKey.Draw(t, "excepted")
	if m.in[key] {
		return // the caller's mistake
	}
	found := m.filter.ContainsString(key)
	err := m.filter.ExceptString(key)
	if ok := found || m.out[key]; ok != (err == nil) {
		t.Fatalf("Except(%q): %v, and it was found: %v", key, err, found)
	} else if ok {
		m.out[key] = true
	}
}

func (m *exceptionsModel) check(t *rapid.T) {
	for key := range m.in {
		if !m.filter.ContainsString(key) || !m.filter.ContainsHash(m.filter.HashString(key)) {
			t.Fatalf("false negative for %q", key)
		}
	}
	if keys := slices.Collect(maps.Keys(m.in)); m.filter.ContainsStrings(keys, nil) != len(keys) {
		t.Fatal("false negative in a batch")
	}
	for key := range m.out {
		if m.filter.ContainsString(key) || m.filter.ContainsHash(m.filter.HashString(key)) || !m.filter.Filter().ContainsString(key) {
			t.Fatalf("the exception of %q does not hold", key)
		}
	}
	if got, want := excepted(m.filter), slices.Sorted(maps.Keys(m.out)); !slices.Equal(got, want) {
		t.Fatalf("the exceptions are %q, want %q", got, want)
	}
}

// TestExceptionsModel does at random what may be done to an Exceptions.
func TestExceptionsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newExceptionsModel(t)
		add := func(key string, isNew bool) {
			if m.in[key] && isNew || m.out[key] && !isNew {
				t.Fatalf("Add(%q) says new: %v; it was in: %v, excepted: %v", key, isNew, m.in[key], m.out[key])
			}
			m.in[key] = true
			delete(m.out, key)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"Except": m.except,
			"Add": func(t *rapid.T) {
				key := exceptionsKey.Draw(t, "key")
				add(key, m.filter.AddString(key))
			},
			"AddHash": func(t *rapid.T) {
				key := exceptionsKey.Draw(t, "key")
				add(key, m.filter.AddHash(m.filter.HashString(key)))
			},
			"AddStrings": func(t *rapid.T) {
				keys := rapid.SliceOfN(exceptionsKey, 0, 10).Draw(t, "keys")
				isNew := make([]bool, len(keys))
				m.filter.AddStrings(keys, isNew)
				for i, key := range keys {
					add(key, isNew[i])
				}
			},
			"Union": func(t *rapid.T) {
				other := newExceptionsModel(t)
				out := map[string]bool{}
				for key := range m.out {
					if !other.filter.ContainsString(key) {
						out[key] = true
					}
				}
				for key := range other.out {
					if !m.filter.ContainsString(key) {
						out[key] = true
					}
				}
				if err := m.filter.Union(other.filter); err != nil {
					t.Fatal(err)
				}
				maps.Copy(m.in, other.in)
				m.out = out
			},
			"Save and load": func(t *rapid.T) {
				m.filter = reread(t, m.filter, bloom.ReadExceptions)
			},
			"Clone": func(t *rapid.T) {
				clone := m.filter.Clone()
				if !clone.Equal(m.filter) {
					t.Fatal("a clone differs")
				}
				m.filter.Clear()
				m.filter = clone
			},
		})
	})
}
