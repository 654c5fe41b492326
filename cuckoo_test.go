package bloom_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bloomery/bloom"
	"pgregory.net/rapid"
)

func mustCuckoo(t rapid.TB, c bloom.CuckooConfig) *bloom.Cuckoo {
	t.Helper()
	f, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCuckooVerbs(t *testing.T) {
	f := mustCuckoo(t, bloom.CuckooConfig{Keys: 1 << 16, Secret: []byte("0123456789abcdef")})
	defer f.Close()
	if f.RemoveString("a") || f.CountString("a") != 0 || f.ContainsString("a") {
		t.Error("an empty filter has a key")
	}
	isNew, found := make([]bool, 3), make([]bool, 3)
	if n := f.AddStrings([]string{"a", "b", "a"}, isNew); n != 2 || !slices.Equal(isNew, []bool{true, true, false}) {
		t.Errorf("AddStrings says %d, %v", n, isNew)
	}
	if n := f.AddMany([][]byte{[]byte("c"), []byte("a")}, nil); n != 1 {
		t.Errorf("AddMany says %d, want 1", n)
	}
	if n := f.AddHashes([]uint64{f.HashString("d"), f.Hash([]byte("d"))}, nil); n != 1 {
		t.Errorf("AddHashes says %d, want 1", n)
	}
	if !f.AddUint64(258) || !f.Contains([]byte{2, 1, 0, 0, 0, 0, 0, 0}) || f.CountUint64(258) != 1 {
		t.Error("AddUint64(258) is not Add of its little-endian bytes")
	}
	if inserted, err := f.InsertUnique([]byte("d")); inserted || err != nil {
		t.Errorf("InsertUnique of a key that is there: %v, %v", inserted, err)
	}
	if inserted, err := f.InsertUniqueHash(f.HashString("f")); !inserted || err != nil {
		t.Errorf("InsertUnique of a new key: %v, %v", inserted, err)
	}
	if err := f.Insert([]byte("f")); err != nil || f.InsertHash(f.HashString("f")) != nil {
		t.Error(err)
	}
	for key, want := range map[string]int{"a": 3, "b": 1, "c": 1, "d": 2, "e": 0, "f": 3} {
		if got := f.Count([]byte(key)); got != want || f.CountHash(f.HashString(key)) != want {
			t.Errorf("Count(%q) = %d, want %d", key, got, want)
		}
	}
	if n := f.ContainsStrings([]string{"a", "d", "e"}, found); n != 2 || !slices.Equal(found, []bool{true, true, false}) {
		t.Errorf("ContainsStrings says %d, %v", n, found)
	}
	if f.ContainsMany([][]byte{[]byte("b"), []byte("x")}, nil) != 1 || f.ContainsHashes([]uint64{f.HashString("b")}, nil) != 1 {
		t.Error("a batch has lost b, or found x")
	}
	if r := f.Report(); r.Added != 11 || r.Keys != 11 || r.KeysError != 0 || f.Len() != 11 || r.Fill != 11./(1<<16) || r.Remaining != 1<<16-11 {
		t.Errorf("it reports %+v", r)
	}
	if !f.Remove([]byte("b")) || !f.RemoveUint64(258) || !f.RemoveHash(f.HashString("c")) ||
		!f.RemoveString("a") || !f.RemoveString("a") || !f.ContainsString("a") || !f.RemoveString("a") {
		t.Error("a key that was added cannot be removed as often")
	}
	for _, key := range []string{"a", "b", "c"} {
		if f.ContainsString(key) || f.RemoveString(key) {
			t.Errorf("%q has been removed as often as it was added, and is still there", key)
		}
	}
	if !f.ContainsString("d") || f.Len() != 5 || f.Removed() != 6 {
		t.Errorf("%d keys are left after %d removals", f.Len(), f.Removed())
	}
	if f.Compact(); f.Removed() != 0 || f.Len() != 5 || f.LayerCount() != 1 {
		t.Errorf("after Compact %d removals are counted", f.Removed())
	}
	if !strings.Contains(f.String(), fmt.Sprint(f.Bytes())) || f.HashIdentity().Algorithm != bloom.SipHash {
		t.Errorf("it calls itself %q", f)
	}
	if public := mustCuckoo(t, bloom.CuckooConfig{Seed: 3}); public.HashIdentity() != (bloom.HashIdentity{Algorithm: bloom.Murmur64A, Key: 3}) || public.HashString("a") == f.HashString("a") {
		t.Errorf("a filter without a secret has the hash %v", public.HashIdentity())
	}
}

func TestCuckooConfig(t *testing.T) {
	for _, tt := range []struct {
		config bloom.CuckooConfig
		want   bloom.CuckooConfig
		slots  uint64
	}{
		{bloom.CuckooConfig{}, bloom.CuckooConfig{Keys: 1024, BucketSize: 2, Iterations: 20, Growth: 1}, 1024},
		{bloom.CuckooConfig{Keys: 1}, bloom.CuckooConfig{Keys: 1, BucketSize: 2, Iterations: 20, Growth: 1}, 2},
		{bloom.CuckooConfig{Keys: 1025, Growth: 3}, bloom.CuckooConfig{Keys: 1025, BucketSize: 2, Iterations: 20, Growth: 4}, 1024}, // 1,025/2 rounded down
		{bloom.CuckooConfig{Keys: 1026}, bloom.CuckooConfig{Keys: 1026, BucketSize: 2, Iterations: 20, Growth: 1}, 2048},
		{bloom.CuckooConfig{Keys: 1000, BucketSize: 255, Iterations: 65535, Growth: 32768}, bloom.CuckooConfig{Keys: 1000, BucketSize: 255, Iterations: 65535, Growth: 32768}, 4 * 255},
		{bloom.CuckooConfig{Growth: 8, NonScaling: true, Budget: 1024}, bloom.CuckooConfig{Keys: 1024, BucketSize: 2, Iterations: 20, Growth: 1, NonScaling: true, Budget: 1024}, 1024},
	} {
		f := mustCuckoo(t, tt.config)
		plan, err := tt.config.Plan()
		if got := f.Config(); fmt.Sprint(got) != fmt.Sprint(tt.want) || f.Bytes() != tt.slots || err != nil || plan != f.Plan() || plan.Bytes() != tt.slots {
			t.Errorf("%+v has %d slots and is %+v, want %d and %+v; %v", tt.config, f.Bytes(), got, tt.slots, tt.want, err)
		}
	}
	refuse := func(bytes uint64) error { return bloom.ErrBudget }
	for name, tt := range map[string]struct {
		config bloom.CuckooConfig
		want   error
	}{
		"a bucket of 256":   {bloom.CuckooConfig{BucketSize: 256}, bloom.ErrConfig},
		"a bucket of -1":    {bloom.CuckooConfig{BucketSize: -1}, bloom.ErrConfig},
		"65,536 iterations": {bloom.CuckooConfig{Iterations: 65536}, bloom.ErrConfig},
		"growth 32,769":     {bloom.CuckooConfig{Growth: 32769}, bloom.ErrConfig},
		"2^44 keys":         {bloom.CuckooConfig{Keys: 1 << 44}, bloom.ErrConfig},
		"2^45 keys":         {bloom.CuckooConfig{Keys: 1 << 45}, bloom.ErrConfig},
		"rate 1":            {bloom.CuckooConfig{Rate: 1}, bloom.ErrConfig},
		"rate NaN":          {bloom.CuckooConfig{Rate: math.NaN()}, bloom.ErrConfig},
		"rate 0.001":        {bloom.CuckooConfig{Rate: 0.001}, bloom.ErrRate},
		"a short secret":    {bloom.CuckooConfig{Secret: []byte("short")}, bloom.ErrConfig},
		"a small budget":    {bloom.CuckooConfig{Budget: 1023}, bloom.ErrBudget},
		"a Grant":           {bloom.CuckooConfig{Grant: refuse}, bloom.ErrBudget},
	} {
		if f, err := tt.config.New(); f != nil || !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if _, err := bloom.NewCuckoo(0); err != nil {
		t.Error(err)
	}
}

// TestCuckooFull: where adds end, and what they say then.
func TestCuckooFull(t *testing.T) {
	for _, tt := range []struct {
		config bloom.CuckooConfig
		want   error
		layers int
	}{
		{bloom.CuckooConfig{Keys: 64, NonScaling: true}, bloom.ErrFull, 1},
		{bloom.CuckooConfig{Keys: 64}, bloom.ErrLayers, 32},
		{bloom.CuckooConfig{Keys: 64, Budget: 3*64 - 1}, bloom.ErrBudget, 2},
		{bloom.CuckooConfig{Keys: 64, Growth: 32768, Budget: 1 << 30}, bloom.ErrBudget, 2},
	} {
		f := mustCuckoo(t, tt.config)
		key := uint64(0)
		for ; f.Err() == nil; key++ {
			before := f.Len()
			if isNew := f.AddUint64(key); f.Err() != nil && (isNew || f.Len() != before) {
				t.Errorf("%+v: a key that was refused is new", tt.config)
			} else if f.Err() == nil && !f.ContainsUint64(key) {
				t.Fatalf("%+v: key %d was not refused, and is lost", tt.config, key)
			}
			if tt.layers == 2 && key > 1<<17 { // 2^21 slots take too long
				break
			}
		}
		if tt.config.Growth > 1 {
			continue
		}
		if !errors.Is(f.Err(), tt.want) || f.LayerCount() != tt.layers {
			t.Errorf("%+v: %v after %d keys in %d layers, want %v in %d", tt.config, f.Err(), f.Len(), f.LayerCount(), tt.want, tt.layers)
		}
		if tt.want != bloom.ErrLayers && f.Report().Fill < 0.8 {
			t.Errorf("%+v: full at %v", tt.config, f.Report().Fill)
		}
		for i := range key / 2 {
			f.RemoveUint64(i)
		}
		if err := f.Insert([]byte("more")); err != nil || !f.ContainsString("more") {
			t.Errorf("%+v: after removals: %v", tt.config, err)
		}
		if f.Err() == nil {
			t.Errorf("%+v: the error is forgotten", tt.config)
		}
		if f.Clear(); f.Err() != nil || f.Len() != 0 || f.LayerCount() != 1 || f.Report().Fill != 0 || f.ContainsString("more") {
			t.Errorf("%+v: Clear leaves %v", tt.config, f)
		}
	}
}

// TestCuckooKick: a kick that fails leaves the filter as it was.
func TestCuckooKick(t *testing.T) {
	for size := 1; size <= 9; size++ {
		f := mustCuckoo(t, bloom.CuckooConfig{Keys: uint64(16 * size), BucketSize: size, NonScaling: true, Iterations: 7})
		refused := 0
		for key := uint64(0); key < 1000; key++ {
			before := f.Clone()
			if err := f.InsertHash(mix(key)); err == nil {
				continue
			}
			if refused++; !f.Equal(before) || f.Len() != before.Len() {
				t.Fatalf("%d slots in a bucket: an add that is refused changes the filter", size)
			}
		}
		if f.Len() > uint64(16*size) || refused == 0 {
			t.Errorf("%d slots in a bucket: %d keys, %d refused", size, f.Len(), refused)
		}
	}
}

func TestCuckooClosed(t *testing.T) {
	f := mustCuckoo(t, bloom.CuckooConfig{})
	other := mustCuckoo(t, bloom.CuckooConfig{})
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, call := range map[string]func(){
		"Add":          func() { f.AddString("x") },
		"AddMany":      func() { f.AddHashes([]uint64{1}, nil) },
		"Insert":       func() { f.Insert([]byte("x")) },
		"InsertUnique": func() { f.InsertUnique([]byte("x")) },
		"Remove":       func() { f.RemoveString("x") },
		"RemoveMany":   func() { f.RemoveHashes([]uint64{1}, nil) },
		"Contains":     func() { f.ContainsString("x") },
		"ContainsMany": func() { f.ContainsHashes([]uint64{1}, nil) },
		"Count":        func() { f.CountString("x") },
		"Plan":         func() { f.Plan() },
		"Report":       func() { f.Report() },
		"Compact":      func() { f.Compact() },
		"Clone":        func() { f.Clone() },
		"Clear":        func() { f.Clear() },
		"Equal":        func() { other.Equal(f) },
	} {
		if panicOf(call) == "" {
			t.Errorf("%s of a closed filter does not panic", name)
		}
	}
}

func TestCuckooNoAllocations(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 8} {
		f := mustCuckoo(t, bloom.CuckooConfig{Keys: 500_000, BucketSize: size})
		for i := range uint64(300_000) { // so that adds kick
			f.AddUint64(i)
		}
		layers := f.LayerCount()
		key, text := []byte("https://example.org/a/page"), "https://example.org/a/page"
		keys, answers := [][]byte{key, key, key}, make([]bool, 3)
		texts, hashes := []string{text, text, text}, []uint64{1, 2, 3}
		next := uint64(1e6)
		for name, call := range map[string]func(){
			"Add and Remove":  func() { f.Add(key); f.Remove(key) },
			"as strings":      func() { f.AddString(text); f.RemoveString(text) },
			"as integers":     func() { f.AddUint64(next); next++ },
			"Insert":          func() { f.Insert(key); f.Remove(key) },
			"InsertUnique":    func() { f.InsertUnique(key) },
			"RemoveUint64":    func() { f.RemoveUint64(1) },
			"Contains":        func() { f.Contains(key) },
			"ContainsString":  func() { f.ContainsString(text) },
			"ContainsUint64":  func() { f.ContainsUint64(1) },
			"Count":           func() { f.Count(key) },
			"CountString":     func() { f.CountString(text) },
			"CountUint64":     func() { f.CountUint64(1) },
			"AddMany":         func() { f.AddMany(keys, answers); f.RemoveMany(keys, answers) },
			"AddStrings":      func() { f.AddStrings(texts, nil); f.RemoveStrings(texts, nil) },
			"AddHashes":       func() { f.AddHashes(hashes, nil); f.RemoveHashes(hashes, nil) },
			"ContainsMany":    func() { f.ContainsMany(keys, answers) },
			"ContainsStrings": func() { f.ContainsStrings(texts, nil) },
			"ContainsHashes":  func() { f.ContainsHashes(hashes, nil) },
		} {
			if n := testing.AllocsPerRun(1000, call); n != 0 && !raceEnabled {
				t.Errorf("%d slots in a bucket: %s allocates %v times", size, name, n)
			}
		}
		if f.LayerCount() != layers {
			t.Errorf("%d slots in a bucket: it has grown to %d layers, so that allocations are no wonder", size, f.LayerCount())
		}
	}
}

// TestCuckooConcurrentReads: all that only reads may run at once. The race detector sees
// what is wrong.
func TestCuckooConcurrentReads(t *testing.T) {
	f := mustCuckoo(t, bloom.CuckooConfig{Keys: 500, Growth: 2})
	const n = 3000
	for i := range uint64(n) {
		f.AddUint64(i)
	}
	report := f.Report()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := range uint64(n) {
				if !f.ContainsUint64(i) || f.CountUint64(i) < 1 {
					t.Errorf("key %d is lost", i)
				}
			}
			hashes := []uint64{f.HashString("a"), f.HashString("b")}
			f.ContainsHashes(hashes, nil)
			var file bytes.Buffer
			if _, err := f.WriteTo(&file); err != nil {
				t.Error(err)
			}
			if f.Report() != report || f.Len() != n || !f.Equal(f.Clone()) || f.Plan() != report.Plan {
				t.Error("it reports otherwise")
			}
		})
	}
	readers.Wait()
}

// TestCuckooPadding: bytes behind the slots are not slots, even if every checksum fits.
func TestCuckooPadding(t *testing.T) {
	f := mustCuckoo(t, bloom.CuckooConfig{Keys: 3, BucketSize: 3})
	f.AddString("a")
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	b := file.Bytes()
	const body, sums = 12288, 12288 + 8
	for at, want := range []error{nil, nil, nil, bloom.ErrFormat, bloom.ErrFormat, bloom.ErrFormat, bloom.ErrFormat, bloom.ErrFormat} {
		damaged := bytes.Clone(b)
		slots := damaged[body:][:8]
		if at < 3 { // another fingerprint in the same slot
			slots[bytes.IndexFunc(slots, func(r rune) bool { return r != 0 })] = byte(1 + at)
		} else {
			slots[at] = 1
		}
		table := crc32.MakeTable(crc32.Castagnoli)
		binary.LittleEndian.PutUint32(damaged[sums:], crc32.Checksum(slots, table))
		binary.LittleEndian.PutUint32(damaged[sums+4:], crc32.Checksum(damaged[sums:][:4], table))
		if _, err := bloom.ReadCuckoo(bytes.NewReader(damaged), 1<<20); !errors.Is(err, want) {
			t.Errorf("byte %d behind the head: %v, want %v", at, err, want)
		}
	}
}

// cuckooPlace is all that a Cuckoo knows of a key in a layer of this many buckets.
type cuckooPlace struct{ low, high, fingerprint uint64 }

func placeOf(h, buckets uint64) cuckooPlace {
	fingerprint := h%255 + 1
	one, other := h%buckets, (h^fingerprint*0x5bd1e995)%buckets
	return cuckooPlace{min(one, other), max(one, other), fingerprint}
}

// cuckooModel is a Cuckoo with the exact multiset of its keys.
type cuckooModel struct {
	filter *bloom.Cuckoo
	times  map[uint64]int
	stored uint64
}

// check compares the filter with the model: no key is lost, and each is counted as often as
// it is there, together with those that share its fingerprint and buckets.
func (m *cuckooModel) check(t *rapid.T) {
	first, err := m.filter.Config().Plan()
	if err != nil {
		t.Fatal(err)
	}
	growth := uint64(m.filter.Config().Growth)
	small, large := first.Blocks, first.Blocks // buckets of the first layer and the newest
	for range m.filter.LayerCount() - 1 {
		large *= growth
	}
	var keys []uint64
	inSmall, inLarge := map[cuckooPlace]int{}, map[cuckooPlace]int{}
	for key, times := range m.times {
		h := m.filter.Hash(fmt.Append(nil, key))
		keys = append(keys, h)
		inSmall[placeOf(h, small)] += times
		inLarge[placeOf(h, large)] += times
	}
	for key, times := range m.times {
		h := m.filter.Hash(fmt.Append(nil, key))
		least, most := inLarge[placeOf(h, large)], inSmall[placeOf(h, small)]
		if place := placeOf(h, small); place.low == place.high {
			most *= 2 // as CF.COUNT does
		}
		if growth == 1 {
			least = most
		}
		if n := m.filter.Count(fmt.Append(nil, key)); n < times || n < least || n > most {
			t.Fatalf("key %d is in %d times, and counted %d times, want %d to %d", key, times, n, least, most)
		}
	}
	if n := m.filter.ContainsHashes(keys, nil); n != len(keys) {
		t.Fatalf("of %d keys %d are lost", len(keys), len(keys)-n)
	}
	if r := m.filter.Report(); m.filter.Len() != m.stored || r.Keys != float64(m.stored) || !(r.Rate >= 0 && r.Rate <= 1) {
		t.Fatalf("%d fingerprints, and the filter has %d and reports %+v", m.stored, m.filter.Len(), r)
	}
}

// remove removes a key that is there.
func (m *cuckooModel) remove(t *rapid.T, key uint64) {
	if !m.filter.Remove(fmt.Append(nil, key)) {
		t.Fatalf("key %d, which is in %d times, cannot be removed", key, m.times[key])
	}
	m.stored--
	if m.times[key]--; m.times[key] == 0 {
		delete(m.times, key)
	}
}

// TestCuckooModel does at random what may be done to a Cuckoo.
func TestCuckooModel(t *testing.T) {
	most, compacted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		config := bloom.CuckooConfig{
			Keys:       rapid.Uint64Range(1, 100).Draw(t, "capacity"),
			BucketSize: rapid.SampledFrom([]int{1, 2, 3, 4, 5, 8, 9}).Draw(t, "bucket size"),
			Iterations: rapid.IntRange(1, 30).Draw(t, "iterations"),
			Growth:     rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "growth"),
			NonScaling: rapid.IntRange(0, 5).Draw(t, "scaling") == 0,
			Budget:     1 << 16, // with growth 4, tiny buckets soon need gigabytes
		}
		m := &cuckooModel{filter: mustCuckoo(t, config), times: map[uint64]int{}}
		key := rapid.Uint64Range(0, 400)
		insert := func(t *rapid.T, key uint64) bool {
			before := m.filter.Clone()
			err := m.filter.Insert(fmt.Append(nil, key))
			if err == nil {
				m.times[key]++
				m.stored++
				most = max(most, m.filter.LayerCount())
				return true
			}
			full := config.NonScaling && errors.Is(err, bloom.ErrFull) || m.filter.LayerCount() == bloom.MaxCuckooLayers && errors.Is(err, bloom.ErrLayers) || config.Growth > 1 && errors.Is(err, bloom.ErrBudget)
			if !full || !m.filter.Equal(before) {
				t.Fatalf("key %d is refused: %v", key, err)
			}
			return false
		}
		t.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"Insert": func(t *rapid.T) { insert(t, key.Draw(t, "key")) },
			"Insert many": func(t *rapid.T) {
				first := key.Draw(t, "first")
				for i := range rapid.Uint64Range(1, 100).Draw(t, "keys") {
					if !insert(t, first+i) {
						break
					}
				}
			},
			"Add again and again": func(t *rapid.T) {
				key := key.Draw(t, "key")
				for range rapid.IntRange(1, 12).Draw(t, "times") {
					was := m.filter.Contains(fmt.Append(nil, key))
					before := m.filter.Len()
					if isNew := m.filter.Add(fmt.Append(nil, key)); m.filter.Len() == before {
						if isNew || m.filter.Err() == nil {
							t.Fatalf("key %d was not added: %v, %v", key, isNew, m.filter.Err())
						}
						break
					} else if isNew == was {
						t.Fatalf("key %d is found: %v, and new: %v", key, was, isNew)
					}
					m.times[key]++
					m.stored++
				}
			},
			"InsertUnique": func(t *rapid.T) {
				key := key.Draw(t, "key")
				was := m.filter.Contains(fmt.Append(nil, key))
				inserted, err := m.filter.InsertUnique(fmt.Append(nil, key))
				if inserted == was && err == nil || inserted && err != nil {
					t.Fatalf("key %d is found: %v, and inserted: %v, %v", key, was, inserted, err)
				}
				if inserted {
					m.times[key]++
					m.stored++
				}
			},
			"Remove": func(t *rapid.T) {
				key := key.Draw(t, "key")
				if m.times[key] > 0 {
					m.remove(t, key)
				} else if !m.filter.Contains(fmt.Append(nil, key)) && m.filter.Remove(fmt.Append(nil, key)) {
					t.Fatalf("key %d, which is not found, is removed", key)
				}
			},
			"Remove many": func(t *rapid.T) {
				first, layers := key.Draw(t, "first"), m.filter.LayerCount()
				for i := range rapid.Uint64Range(1, 200).Draw(t, "keys") {
					for m.times[first+i] > 0 {
						m.remove(t, first+i)
					}
				}
				if m.filter.LayerCount() < layers {
					compacted++
				}
			},
			"Compact": func(t *rapid.T) {
				layers := m.filter.LayerCount()
				if m.filter.Compact(); m.filter.Removed() != 0 {
					t.Fatal("removals are still counted")
				}
				if m.filter.LayerCount() < layers {
					compacted++
				}
			},
			"Save and load": func(t *rapid.T) {
				before := m.filter.Clone()
				m.filter = reread(t, m.filter, bloom.ReadCuckoo)
				if !m.filter.Equal(before) || m.filter.Report() != before.Report() || m.filter.Removed() != before.Removed() {
					t.Fatal("it comes back as another filter")
				}
			},
			"Clone": func(t *rapid.T) {
				clone := m.filter.Clone()
				if !clone.Equal(m.filter) || clone.Report() != m.filter.Report() || clone.Removed() != m.filter.Removed() {
					t.Fatal("a clone differs")
				}
				m.filter.Clear()
				if m.filter.Report().Fill != 0 || m.filter.Len() != 0 || m.filter.LayerCount() != 1 {
					t.Fatal("Clear left something")
				}
				m.filter = clone
			},
		})
	})
	t.Logf("up to %d layers, %d times fewer after removals", most, compacted)
}

// TestCuckooShrinks: a filter that grew to many layers loses them again when most of its
// keys are removed, by itself, and keeps the others.
func TestCuckooShrinks(t *testing.T) {
	for _, config := range []bloom.CuckooConfig{
		{Keys: 64},
		{Keys: 64, BucketSize: 1, Iterations: 5},
		{Keys: 16, Growth: 2},
		{Keys: 30, Growth: 4, BucketSize: 3},
		{Keys: 64, BucketSize: 9},
	} {
		f := mustCuckoo(t, config)
		const n, left = 600, 20
		for i := range uint64(n) {
			if err := f.InsertHash(mix(i)); err != nil {
				t.Fatal(err)
			}
		}
		grown := f.LayerCount()
		for i := uint64(left); i < n; i++ {
			if !f.RemoveHash(mix(i)) {
				t.Fatalf("%+v: key %d is lost", config, i)
			}
		}
		if shrunk := f.LayerCount(); grown < 3 || shrunk > 2 || f.Len() != left {
			t.Errorf("%+v: %d layers, after removals %d with %d keys", config, grown, shrunk, f.Len())
		}
		for i := range uint64(left) {
			if !f.ContainsHash(mix(i)) {
				t.Errorf("%+v: key %d is lost", config, i)
			}
		}
	}
}

// TestCuckooJournal replays the journal of a filter that grows, kicks and compacts on copies
// whose parts were taken at different times.
func TestCuckooJournal(t *testing.T) {
	type step struct {
		journal         []uint64
		layers          int
		stored, removed uint64
	}
	rng := rand.New(rand.NewPCG(4, 12))
	for _, c := range []bloom.CuckooConfig{{Keys: 64}, {Keys: 64, BucketSize: 4, Growth: 2}, {Keys: 500, BucketSize: 7, NonScaling: true}} {
		f := mustCuckoo(t, c)
		var journal []uint64
		bloom.Inside.Journal(f, &journal)
		var hashes []uint64
		churn := func(n int) (steps []step) {
			for range n {
				journal = nil
				if len(hashes) > 0 && rng.IntN(100) < 45 {
					i := rng.IntN(len(hashes))
					f.RemoveHash(hashes[i])
					hashes = slices.Delete(hashes, i, i+1)
				} else if h := rng.Uint64(); f.InsertHash(h) == nil {
					hashes = append(hashes, h)
				} else if len(journal) > 0 {
					t.Fatalf("an add that failed has changed %d slots", len(journal))
				}
				if rng.IntN(200) == 0 {
					f.Compact()
				}
				steps = append(steps, step{journal, f.LayerCount(), f.Len(), f.Removed()})
			}
			return steps
		}
		for range 30 {
			churn(rng.IntN(400))
			old := f.Clone()
			steps := churn(rng.IntN(200))
			for layer, slots := range bloom.Inside.CuckooSlots(old) { // the second half of each is newer
				if now := bloom.Inside.CuckooSlots(f); layer < len(now) {
					copy(slots[len(slots)/2:], now[layer][len(slots)/2:])
				}
			}
			for _, s := range append(steps, churn(rng.IntN(200))...) {
				if err := bloom.Inside.ReplayCuckoo(old, s.journal, s.layers, s.stored, s.removed); err != nil {
					t.Fatal(err)
				}
			}
			if !old.Equal(f) || old.Len() != f.Len() || old.Removed() != f.Removed() {
				t.Fatalf("%+v: the replayed filter differs: %v and %v", c, old, f)
			}
		}
		if err := bloom.Inside.ReplayCuckoo(f, []uint64{1 << 60}, f.LayerCount(), 0, 0); !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("a slot that is not there: %v", err)
		}
	}
}
