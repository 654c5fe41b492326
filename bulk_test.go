package bloom_test

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/bloomery/bloom"
)

// TestBulk: any number of feeds set the bits that as many adds do.
func TestBulk(t *testing.T) {
	const n = 300_000
	for _, c := range []bloom.Config{
		{Keys: 1000, Rate: 0.1},       // one part
		{Keys: 3_000_000, Rate: 0.01}, // some, the last one short
		{Keys: 3_000_000, Rate: 0.01, Secret: []byte("sixteen byte key")},
	} {
		want := mustNew(t, c)
		for i := range uint64(n) {
			want.AddUint64(i)
		}
		for _, feeds := range []uint64{1, 2, 5} {
			f := mustNew(t, c)
			bulk, err := f.Bulk(1 << 20)
			if err != nil {
				t.Fatal(err)
			}
			var wait sync.WaitGroup
			for g := range feeds {
				wait.Go(func() {
					feed, err := bulk.Feed()
					if err != nil {
						t.Error(err)
						return
					}
					var hashes []uint64
					for i := g; i < n; i += feeds {
						hashes = append(hashes, f.Hash(littleEndian(i)))
						if len(hashes) == 777 {
							feed.AddHashes(hashes)
							hashes = hashes[:0]
						}
					}
					feed.AddHashes(hashes)
					if err := feed.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wait.Wait()
			if !f.Equal(want) {
				t.Errorf("%d feeds into %v: other bits than by Add", feeds, f.Plan())
			}
			if bulk.Added() != f.Report().Added {
				t.Errorf("the bulk counts %d new keys, the filter %d", bulk.Added(), f.Report().Added)
			}
			if feeds == 1 && c.Keys > n && bulk.Added() > n {
				t.Errorf("%d of %d keys were new", bulk.Added(), n)
			}
		}
	}
}

func TestBulkKeys(t *testing.T) {
	f := mustNew(t, bloom.Config{Keys: 1000, Rate: 0.01})
	bulk, err := f.Bulk(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := bulk.Feed()
	if err != nil {
		t.Fatal(err)
	}
	feed.AddMany([][]byte{[]byte("hello")})
	feed.AddStrings([]string{"world", "world"})
	if f.ContainsString("hello") {
		t.Error("a key is there before its feed was flushed")
	}
	feed.Flush()
	if !f.ContainsString("hello") || !f.ContainsString("world") || f.Report().Added != 2 {
		t.Error("a key was lost")
	}
	feed.Flush()
	feed.Close()
}

func TestBulkTooSmall(t *testing.T) {
	f := mustNew(t, bloom.Config{Keys: 10_000_000, Rate: 0.01})
	if _, err := f.Bulk(8 << 10); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("a bulk of 8 KiB for 12 MB: %v, want ErrConfig", err)
	}
}

func littleEndian(i uint64) []byte {
	b := make([]byte, 8)
	for j := range b {
		b[j] = byte(i >> (8 * j))
	}
	return b
}

func TestAddDisjoint(t *testing.T) {
	f, err := bloom.New(100_000, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	want := f.Clone()
	const workers = 4
	var hashes [workers][]uint64
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		h := rng.Uint64()
		block, _ := bits.Mul64(h, f.Plan().Blocks)
		hashes[block%workers] = append(hashes[block%workers], h)
	}
	var wait sync.WaitGroup
	var added, wanted int
	var counts [workers]int
	for i, own := range hashes {
		wanted += want.AddHashes(own, nil)
		wait.Go(func() { counts[i] = bloom.Inside.AddDisjoint(f, own, nil) })
	}
	wait.Wait()
	for _, n := range counts {
		added += n
	}
	if added != wanted || !f.Equal(want) || f.Added() != uint64(wanted) {
		t.Errorf("%d keys were new, want %d; Added() = %d", added, wanted, f.Added())
	}
}

// TestFeedClosed: closing twice is no mistake, adding after it is one.
func TestFeedClosed(t *testing.T) {
	f := mustNew(t, bloom.Config{Keys: 3_000_000, Rate: 0.01}) // of more than one part
	bulk, err := f.Bulk(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := bulk.Feed()
	if err != nil {
		t.Fatal(err)
	}
	feed.AddHashes([]uint64{1, 1 << 63})
	for range 2 {
		if err := feed.Close(); err != nil {
			t.Error(err)
		}
	}
	feed.Flush()
	if bulk.Added() != 2 || !f.ContainsHash(1) || !f.ContainsHash(1<<63) {
		t.Errorf("%d of 2 keys were added", bulk.Added())
	}
	for name, call := range map[string]func(){
		"AddMany":    func() { feed.AddMany([][]byte{nil}) },
		"AddStrings": func() { feed.AddStrings([]string{""}) },
		"AddHashes":  func() { feed.AddHashes([]uint64{1}) },
	} {
		if says := panicOf(call); !strings.Contains(says, "the feed is closed") {
			t.Errorf("%s on a closed feed panics with %q", name, says)
		}
	}
}
