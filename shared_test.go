package bloom_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bloomery/bloom"
)

const racers = 64

// race has goroutines add the keys 0..n-1 to f at once, each in an order of its
// own, half of them in batches. It returns how often each key was told new.
func race(f *bloom.Shared, n uint64) []uint32 {
	told := make([]uint32, n)
	var wait sync.WaitGroup
	for g := range uint64(racers) {
		wait.Go(func() {
			order := newOrder(n, g)
			hashes, isNew := make([]uint64, 1000), make([]bool, 1000)
			for i := uint64(0); i < n; i += uint64(len(hashes)) {
				hashes = hashes[:min(n-i, 1000)]
				if g%2 == 0 {
					for j := range hashes {
						key := order.at(i + uint64(j))
						if f.AddHash(hashOf(key)) {
							atomic.AddUint32(&told[key], 1)
						}
					}
					continue
				}
				for j := range hashes {
					hashes[j] = hashOf(order.at(i + uint64(j)))
				}
				f.AddHashes(hashes, isNew[:len(hashes)])
				for j := range hashes {
					if isNew[j] {
						atomic.AddUint32(&told[order.at(i+uint64(j))], 1)
					}
				}
			}
		})
	}
	wait.Wait()
	return told
}

// hashOf stands for a hash of an integer: SplitMix64's finaliser.
func hashOf(i uint64) uint64 {
	i += 0x9e3779b97f4a7c15
	i = (i ^ i>>30) * 0xbf58476d1ce4e5b9
	i = (i ^ i>>27) * 0x94d049bb133111eb
	return i ^ i>>31
}

// order visits 0..n-1 in an order that depends on the seed, without keeping it:
// from some start on, in steps prime to n. Even seeds share their order, so that
// goroutines run into each other.
type order struct{ start, step, n uint64 }

func newOrder(n, seed uint64) order {
	random := rand.New(rand.NewPCG(seed/4, 1))
	step := random.Uint64N(n) | 1
	for gcd(step, n) != 1 {
		step += 2
	}
	return order{random.Uint64N(n), step, n}
}

func (o order) at(i uint64) uint64 { return (o.start + i%o.n*o.step) % o.n }

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func raceKeys() uint64 {
	switch {
	case raceEnabled:
		return 8000
	case testing.Short():
		return 20_000
	}
	return 1_000_000
}

// TestOneWinner: of 64 goroutines that add the same keys at most one is told
// that a key is new, and at a rate so low that there are no false positives,
// exactly one.
func TestOneWinner(t *testing.T) {
	n := raceKeys()
	f, err := bloom.NewShared(n, 1e-9)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for key, times := range race(f, n) {
		if times != 1 {
			t.Fatalf("key %d was told new %d times", key, times)
		}
	}
	if r := f.Report(); r.Added != n || math.Abs(r.Keys-float64(n)) > 6*r.KeysError {
		t.Errorf("%d keys, and the report says %d added, about %.0f there", n, r.Added, r.Keys)
	}
}

// TestWinnersAmongFalsePositives: at one in a hundred some keys are false
// positives and told new to nobody; as many as when one goroutine adds.
func TestWinnersAmongFalsePositives(t *testing.T) {
	n := raceKeys()
	alone := make([]float64, 10)
	mean := 0.
	for i := range alone {
		f, err := bloom.New(n, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		o := newOrder(n, uint64(4*i))
		for j := range n {
			if !f.AddHash(hashOf(o.at(j))) {
				alone[i]++
			}
		}
		mean += alone[i] / 10
		f.Close()
	}
	shared, err := bloom.NewShared(n, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	never := 0.
	for key, times := range race(shared, n) {
		if times > 1 {
			t.Fatalf("key %d was told new %d times", key, times)
		}
		if times == 0 {
			never++
		}
		if !shared.ContainsHash(hashOf(uint64(key))) {
			t.Fatalf("key %d is lost", key)
		}
	}
	// Each count is close to Poisson; the mean of ten has a tenth of its variance.
	if sigma := math.Sqrt(mean * 1.1); math.Abs(never-mean) > 4*sigma {
		t.Errorf("%v keys of %d were told new to nobody, alone %v on average, sigma %v", never, n, mean, sigma)
	}
	t.Logf("of %d keys %v were told new to nobody, alone %v", n, never, alone)
}

// TestSyncHasTheSameBits as Filter, by every way to add.
func TestSyncHasTheSameBits(t *testing.T) {
	for _, secret := range [][]byte{nil, []byte("sixteen byte key")} {
		c := bloom.Config{Keys: 10_000, Rate: 1e-4, Secret: secret}
		f := mustNew(t, c)
		s, err := c.NewShared()
		if err != nil {
			t.Fatal(err)
		}
		var keys [][]byte
		var texts []string
		for i := range 3000 {
			texts = append(texts, strings.Repeat("x", i%100)+string(rune(i)))
			keys = append(keys, []byte(texts[i]))
		}
		f.AddStrings(texts, nil)
		s.AddMany(keys[:1000], nil)
		s.AddStrings(texts[1000:2000], nil)
		for i, key := range keys[2000:] {
			if i%2 == 0 {
				s.Add(key)
			} else {
				s.AddString(string(key))
			}
		}
		f.AddUint64(77)
		s.AddUint64(77)
		if n := s.ContainsMany(keys, nil); n != len(keys) || s.ContainsStrings(texts, nil) != n || !s.ContainsUint64(77) || !s.Contains(keys[5]) || !s.ContainsString(texts[6]) {
			t.Errorf("%d of %d keys found", n, len(keys))
		}
		snapshot, err := s.Snapshot()
		if err != nil || !snapshot.Equal(f) {
			t.Errorf("the shared filter has other bits: %v", err)
		}
		if got, want := s.Report(), f.Report(); got != want {
			t.Errorf("Report = %+v, want %+v", got, want)
		}
		var file, want strings.Builder
		s.WriteTo(&file)
		f.WriteTo(&want)
		if file.String() != want.String() {
			t.Error("the shared filter writes another file")
		}
		s.Clear()
		if r := s.Report(); r.Fill != 0 || r.Added != 0 || s.ContainsUint64(77) {
			t.Error("Clear left something")
		}
		again := snapshot.Share()
		if !again.ContainsUint64(77) || again.Report().Added != f.Report().Added {
			t.Error("Share lost something")
		}
		if panicOf(func() { snapshot.Add(nil) }) == "" {
			t.Error("a filter that was shared can still be added to")
		}
	}
}

// TestSnapshotWhileAdding: a snapshot holds every key whose Add had returned.
func TestSnapshotWhileAdding(t *testing.T) {
	n := raceKeys() / 2
	f, err := bloom.NewShared(n, 1e-3)
	if err != nil {
		t.Fatal(err)
	}
	var added [4]atomic.Uint64 // keys g*n/4 ... are in
	var wait sync.WaitGroup
	for g := range uint64(4) {
		wait.Go(func() {
			for i := range n / 4 {
				f.AddHash(hashOf(g*n/4 + i))
				added[g].Store(i + 1)
			}
		})
	}
	for done := false; !done; {
		var before [4]uint64
		done = true
		for g := range before {
			before[g] = added[g].Load()
			done = done && before[g] == n/4
		}
		snapshot, err := f.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for g, count := range before {
			for i := range count {
				if h := hashOf(uint64(g)*(n/4) + i); !snapshot.ContainsHash(h) || !f.ContainsHash(h) {
					t.Fatalf("key %d of goroutine %d was added before, and is not there", i, g)
				}
			}
		}
		snapshot.Close()
	}
	wait.Wait()
}

func TestSyncNoAllocations(t *testing.T) {
	f, err := bloom.NewShared(100_000, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	key, keys, hashes, answers := []byte("key"), [][]byte{nil, {1}}, []uint64{1, 2}, make([]bool, 2)
	for name, call := range map[string]func(){
		"Add":            func() { f.Add(key) },
		"Contains":       func() { f.Contains(key) },
		"AddHash":        func() { f.AddHash(5) },
		"AddMany":        func() { f.AddMany(keys, answers) },
		"ContainsMany":   func() { f.ContainsMany(keys, nil) },
		"AddHashes":      func() { f.AddHashes(hashes, nil) },
		"ContainsHashes": func() { f.ContainsHashes(hashes, answers) },
	} {
		if n := testing.AllocsPerRun(1000, call); n != 0 && !raceEnabled {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
