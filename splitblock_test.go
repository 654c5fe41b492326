package bloom_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/long"
	"github.com/cespare/xxhash/v2"
)

// TestSplitBlockPositions works Parquet's specification out for some keys and
// looks at what the filter reports of them.
func TestSplitBlockPositions(t *testing.T) {
	f, err := bloom.Config{Keys: 1000, Bits: 7 * 256}.NewSplitBlock()
	if err != nil {
		t.Fatal(err)
	}
	salts := []uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}
	var want [7 * 8]uint32
	for i := range 40 {
		key := fmt.Appendf(nil, "key %d", i)
		h := xxhash.Sum64(key)
		if f.Hash(key) != h || f.HashString(string(key)) != h {
			t.Fatalf("the hash of %q is not XXH64", key)
		}
		block := (h >> 32) * 7 >> 32
		isNew := false
		for lane, salt := range salts {
			bit := uint32(1) << (uint32(h) * salt >> 27)
			isNew = isNew || want[block*8+uint64(lane)]&bit == 0
			want[block*8+uint64(lane)] |= bit
		}
		if got := f.Contains(key); got == isNew {
			t.Errorf("Contains(%q) = %v before it was added", key, got)
		}
		if got := f.Add(key); got != isNew {
			t.Errorf("Add(%q) = %v, want %v", key, got, isNew)
		}
	}
	set, rate := 0, 0.
	for block := range 7 {
		product := 1.
		for _, lane := range want[block*8:][:8] {
			n := 0
			for ; lane != 0; lane &= lane - 1 {
				n++
			}
			set += n
			product *= float64(n) / 32
		}
		rate += product / 7
	}
	r := f.Report()
	if r.Fill != float64(set)/(7*256) || math.Abs(r.Rate-rate) > 1e-12 {
		t.Errorf("fill %g, rate %g, want %g, %g", r.Fill, r.Rate, float64(set)/(7*256), rate)
	}
}

// TestSplitBlockRates makes the three comparisons of rates: what is found of
// strangers against the bits, the bits averaged over filters against the plan,
// the plan against what was asked. 1% is 1%, not the 1.46% of Parquet's own
// sizing formula.
func TestSplitBlockRates(t *testing.T) {
	long.Test(t)
	keys := make([][]byte, 65_536)
	for i := range keys {
		keys[i] = make([]byte, 8)
	}
	for _, p := range []float64{0.1, 0.01, 0.001, 1e-5} {
		for _, n := range []uint64{1, 10, 1000, 1024, 65_536} {
			filters, probes := 200, 20_000
			if n > 10_000 {
				filters = 30
			}
			mean, squares, found, expected := 0., 0., 0., 0.
			var plan bloom.Plan
			for seed := range uint64(filters) {
				c := bloom.Config{Keys: n, Rate: p, Seed: seed / 2} // half of them with Parquet's own seed
				if seed%3 == 0 {
					c = bloom.Config{Keys: n, Rate: p, Secret: []byte("0123456789abcdef")}
				}
				f, err := c.NewSplitBlock()
				if err != nil {
					t.Fatal(err)
				}
				for i := range keys[:n] {
					binary.BigEndian.PutUint64(keys[i], seed<<40+uint64(i))
				}
				f.AddMany(keys[:n], nil)
				if found := f.ContainsMany(keys[:n], nil); found != int(n) {
					t.Fatalf("n %d, p %g: %d keys are lost", n, p, int(n)-found)
				}
				for i := range keys[:probes] {
					binary.BigEndian.PutUint64(keys[i], seed<<40+n+uint64(i))
				}
				rate := f.Report().Rate
				found += float64(f.ContainsMany(keys[:probes], nil))
				expected += rate * float64(probes)
				mean += rate / float64(filters)
				squares += rate * rate / float64(filters)
				plan = f.Plan()
				f.Close()
			}
			if plan.Rate > p || plan.Layout != bloom.SplitBlocks || plan.Probes != 8 {
				t.Errorf("n %d, p %g: %+v", n, p, plan)
			}
			if sigma := math.Sqrt(expected + 1); math.Abs(found-expected) > 4*sigma {
				t.Errorf("n %d, p %g: %v strangers found, by the bits %.1f +- %.1f", n, p, found, expected, sigma)
			}
			deviation := math.Sqrt(max(squares-mean*mean, 0)/float64(filters-1)) + 1e-9*plan.Rate
			if z := (mean - plan.Rate) / deviation; math.Abs(z) > 4 {
				t.Errorf("n %d, p %g: rate by the bits %g, by the plan %g, %.1f standard errors", n, p, mean, plan.Rate, z)
			}
		}
	}
	if _, err := bloom.NewSplitBlock(1000, 1e-10); !errors.Is(err, bloom.ErrRate) {
		t.Errorf("p = 1e-10: %v, want ErrRate", err)
	}
	if plan, err := (bloom.Config{Keys: 1e7, Rate: 0.01}).PlanSplitBlock(); err != nil || math.Abs(plan.BitsPerKey()-10.53) > 0.005 {
		t.Errorf("1%% takes %v bits per key, %v, want 10.53", plan.BitsPerKey(), err)
	}
}

func TestSplitBlockVerbs(t *testing.T) {
	f, err := bloom.Config{Keys: 1000, Rate: 0.01, Secret: []byte("0123456789abcdef")}.NewSplitBlock()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	isNew := make([]bool, 2)
	if n := f.AddStrings([]string{"a", "a"}, isNew); n != 1 || !isNew[0] || isNew[1] {
		t.Errorf("AddStrings says %d, %v", n, isNew)
	}
	f.AddUint64(9)
	f.AddString("b")
	f.AddHashes([]uint64{f.HashString("c")}, nil)
	if f.ContainsStrings([]string{"a", "b", "c", "d"}, nil) != 3 || !f.ContainsUint64(9) || !f.ContainsString("b") ||
		f.ContainsHashes([]uint64{f.HashString("c"), f.HashString("d")}, nil) != 1 || f.HashIdentity().Algorithm != bloom.SipHash {
		t.Error("a key is lost or invented")
	}
	if r := f.Report(); r.Added != 4 {
		t.Errorf("Added = %d, want 4", r.Added)
	}
	f.Clear()
	if f.ContainsString("a") || f.Report().Added != 0 {
		t.Error("Clear left something")
	}
	key, keys, hashes := []byte("key"), [][]byte{{1}, {2}}, []uint64{1, 2}
	for name, call := range map[string]func(){
		"Add":          func() { f.Add(key) },
		"Contains":     func() { f.Contains(key) },
		"AddMany":      func() { f.AddMany(keys, nil) },
		"ContainsMany": func() { f.ContainsMany(keys, isNew) },
		"AddHashes":    func() { f.AddHashes(hashes, isNew) },
	} {
		if n := testing.AllocsPerRun(1000, call); n != 0 && !raceEnabled {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// TestSplitBlockKeys: the kernel hashes keys as the library does, singly and in batches, and
// every way of adding counts alike.
func TestSplitBlockKeys(t *testing.T) {
	byKey, byHash := splitBlockOf(t), splitBlockOf(t)
	batch, strings, hashes, answered := splitBlockOf(t), splitBlockOf(t), splitBlockOf(t), splitBlockOf(t)
	random := rand.New(rand.NewPCG(1, 18))
	var keys [][]byte
	for n := range 301 {
		for range 8 {
			key := make([]byte, n)
			for i := range key {
				key[i] = byte(random.Uint32())
			}
			h := xxhash.Sum64(key)
			if got := byKey.Contains(key); got != byHash.ContainsHash(h) {
				t.Fatalf("Contains of %d bytes = %v, ContainsHash of their hash is not", n, got)
			}
			if got := byKey.Add(key); got != byHash.AddHash(h) {
				t.Fatalf("Add of %d bytes = %v, AddHash of their hash is not", n, got)
			}
			keys = append(keys, key)
		}
	}
	var texts []string
	var sums []uint64
	for _, key := range keys {
		texts, sums = append(texts, string(key)), append(sums, xxhash.Sum64(key))
	}
	added := byHash.Report().Added
	for name, got := range map[string]int{
		"AddMany":                batch.AddMany(keys, nil),
		"AddStrings":             strings.AddStrings(texts, nil),
		"AddHashes":              hashes.AddHashes(sums, nil),
		"AddHashes with answers": answered.AddHashes(sums, make([]bool, len(sums))),
	} {
		if uint64(got) != added {
			t.Errorf("%s = %d, want %d", name, got, added)
		}
	}
	for name, f := range map[string]*bloom.SplitBlock{"Add": byKey, "AddMany": batch, "AddStrings": strings, "AddHashes": hashes, "AddHashes with answers": answered} {
		if !f.Equal(byHash) || f.Report().Added != added {
			t.Errorf("%s: other bits than AddHash, or %d added, want %d", name, f.Report().Added, added)
		}
	}
}

func splitBlockOf(t *testing.T) *bloom.SplitBlock {
	f, err := bloom.NewSplitBlock(2000, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSplitBlockSecret: a filter keeps hashing keys by its own Hasher wherever it comes from,
// also when that gets its secret later.
func TestSplitBlockSecret(t *testing.T) {
	secret, key := []byte("0123456789abcdef"), []byte("key")
	f, err := bloom.Config{Keys: 100_000, Rate: 0.01, Secret: secret}.NewSplitBlock()
	if err != nil {
		t.Fatal(err)
	}
	f.Add(key)
	folded, err := f.Fold(1)
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var loaded bloom.SplitBlock
	if err := loaded.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if err := loaded.SetSecret(secret); err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]*bloom.SplitBlock{"New": f, "Clone": f.Clone(), "Fold": folded, "UnmarshalBinary": &loaded} {
		if !g.Contains(key) || !g.ContainsHash(f.Hash(key)) || g.Contains([]byte("other")) {
			t.Errorf("%s: the key is not found, or another one is", name)
		}
		if !g.Add([]byte("new")) || !g.ContainsHash(f.Hash([]byte("new"))) {
			t.Errorf("%s: Add used another hash", name)
		}
	}
}
