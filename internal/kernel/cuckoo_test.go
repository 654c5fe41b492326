package kernel

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// plainCuckoo is Cuckoo, slot by slot.
type plainCuckoo struct {
	slots         []byte
	buckets, size uint64
}

// places returns the slots of a key's buckets in their order; those of a bucket that is
// both of them come twice.
func (p *plainCuckoo) places(h uint64) (places []uint64, fingerprint byte) {
	fingerprint = byte(h%255) + 1
	for _, x := range []uint64{h, h ^ uint64(fingerprint)*0x5bd1e995} {
		for slot := range p.size {
			places = append(places, x%p.buckets*p.size+slot)
		}
	}
	return places, fingerprint
}

func (p *plainCuckoo) count(h uint64) (n int) {
	places, fingerprint := p.places(h)
	for _, at := range places {
		if p.slots[at] == fingerprint {
			n++
		}
	}
	return n
}

func (p *plainCuckoo) replace(h uint64, adds bool) bool {
	places, fingerprint := p.places(h)
	old, with := fingerprint, byte(0)
	if adds {
		old, with = with, old
	}
	for _, at := range places {
		if p.slots[at] == old {
			p.slots[at] = with
			return true
		}
	}
	return false
}

// TestCuckoo compares each operation with its plain twin, for tables of all shapes.
func TestCuckoo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []uint64{1, 2, 3, 4, 5, 7, 8, 9, 16, 255} {
		for _, buckets := range []uint64{1, 2, 4, 64, 256, 1024} {
			table := &Cuckoo{Slots: make([]byte, buckets*size), Mask: buckets - 1, Size: size}
			plain := &plainCuckoo{make([]byte, buckets*size), buckets, size}
			var hashes []uint64
			for range min(3*buckets*size, 3000) {
				h := random.Uint64()
				if len(hashes) > 0 && random.IntN(3) == 0 {
					h = hashes[random.IntN(len(hashes))]
				}
				hashes = append(hashes, h)
				n := NestOf(h)
				adds := random.IntN(4) > 0
				old, with := n.Fingerprint, byte(0)
				if adds {
					old, with = with, old
				}
				if got, want := table.Replace(n, old, with) >= 0, plain.replace(h, adds); got != want || !bytes.Equal(table.Slots, plain.slots) {
					t.Fatalf("%d buckets of %d: Replace says %v, want %v", buckets, size, got, want)
				}
				back := NestIn(n.Other&table.Mask, n.Fingerprint)
				if back.Other&table.Mask != n.One&table.Mask {
					t.Fatalf("%d buckets: from the other bucket of %#x no way leads back", buckets, h)
				}
			}
			found, used := make([]bool, len(hashes)), uint64(0)
			table.ContainsBatch(hashes, found)
			for i, h := range hashes {
				n, want := NestOf(h), plain.count(h)
				if got := table.Count(n); got != want || table.Contains(n) != (want > 0) || found[i] != (want > 0) {
					t.Fatalf("%d buckets of %d: Count says %d, want %d; Contains says %v", buckets, size, got, want, table.Contains(n))
				}
			}
			for _, slot := range table.Slots {
				if slot != 0 {
					used++
				}
			}
			if table.Used() != used || table.Buckets() != buckets {
				t.Errorf("%d buckets of %d: Used says %d, want %d", buckets, size, table.Used(), used)
			}
		}
	}
}

// TestCuckooKick: a kick moves fingerprints to their other buckets only, or changes nothing.
func TestCuckooKick(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, size := range []uint64{1, 2, 3, 4, 8, 9} {
		table := &Cuckoo{Slots: make([]byte, 256*size), Mask: 255, Size: size}
		var hashes []uint64
		kicked, refused := 0, 0
		for range 400 * size {
			h := random.Uint64()
			n := NestOf(h)
			before := bytes.Clone(table.Slots)
			switch {
			case table.Replace(n, 0, n.Fingerprint) >= 0:
			case table.Kick(n, 10, nil):
				kicked++
			default:
				if refused++; !bytes.Equal(before, table.Slots) {
					t.Fatalf("buckets of %d: a kick that fails changes the table", size)
				}
				continue
			}
			hashes = append(hashes, h)
		}
		for _, h := range hashes {
			if n := NestOf(h); table.Replace(n, n.Fingerprint, 0) < 0 {
				t.Fatalf("buckets of %d: a key is lost", size)
			}
		}
		if table.Used() != 0 || kicked == 0 || refused == 0 {
			t.Errorf("buckets of %d: %d keys too many, after %d kicks and %d that failed", size, table.Used(), kicked, refused)
		}
	}
}

// benchmarkHashes are of keys that are in a table of some megabytes, nine tenths full, and
// of others.
func benchmarkHashes(size uint64) (table *Cuckoo, in, out []uint64) {
	random := rand.New(rand.NewPCG(5, 6))
	table = &Cuckoo{Slots: make([]byte, 1<<16), Mask: 1<<16/size - 1, Size: size}
	for len(in) < 1<<16*8/10 {
		h := random.Uint64()
		if n := NestOf(h); table.Replace(n, 0, n.Fingerprint) >= 0 || table.Kick(n, 100, nil) {
			in = append(in, h)
		}
	}
	for range in {
		out = append(out, random.Uint64())
	}
	return table, in, out
}

// BenchmarkCuckooSearch compares the search of both buckets in one word with one after the
// other.
func BenchmarkCuckooSearch(b *testing.B) {
	table, in, out := benchmarkHashes(2)
	for name, hashes := range map[string][]uint64{"hit": in, "miss": out} {
		for how, contains := range map[string]func(n Nest) bool{
			"one word": table.Contains,
			"one after the other": func(n Nest) bool {
				return bytes.IndexByte(table.Bucket(n.One), n.Fingerprint) >= 0 || bytes.IndexByte(table.Bucket(n.Other), n.Fingerprint) >= 0
			},
			"slot by slot": func(n Nest) bool {
				for _, i := range []uint64{n.One, n.Other} {
					for _, slot := range table.Bucket(i) {
						if slot == n.Fingerprint {
							return true
						}
					}
				}
				return false
			},
		} {
			b.Run(name+"/"+how, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					if i == len(hashes) {
						i = 0
					}
					contains(NestOf(hashes[i]))
				}
			})
		}
	}
}

// TestCuckooNext compares Next with a loop, for slots of every number up to two words.
func TestCuckooNext(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for n := range 40 {
		for range 20 {
			table := Cuckoo{Slots: make([]byte, n)}
			var want, got []int
			for i := range table.Slots {
				if random.IntN(6) == 0 {
					table.Slots[i] = byte(1 + random.IntN(255))
					want = append(want, i)
				}
			}
			for slot := table.Next(0); slot >= 0; slot = table.Next(slot + 1) {
				got = append(got, slot)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("of %d slots %v are in use, and Next says %v", n, want, got)
			}
		}
	}
}
