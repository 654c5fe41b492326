package redisbloom_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
)

// Benchmark: a chain of one layer for 1e5, 1e7 and 1e8 keys at 1%, half of
// them added, with 16-byte keys hashed, in batches of 256, beside the loop of a
// Classic under the same scheme.
func Benchmark(b *testing.B) {
	for _, n := range []uint64{1e5, 1e7, 1e8} {
		if testing.Short() && n > 1e7 {
			continue
		}
		c := mustChain(b, redisbloom.Config{Keys: n, Rate: 0.01, NonScaling: true})
		plan := c.Plan()
		classic, err := classic.Config{Bits: plan.Bits, Probes: plan.Probes, Scheme: classic.SchemeRedisBloom}.New()
		if err != nil {
			b.Fatal(err)
		}
		empty := func() {
			c.SetItems(0, 0)
			zeros := make([]byte, 16<<20)
			for at := int64(0); at < int64(plan.Bits/8); {
				part := zeros[:min(int64(len(zeros)), int64(plan.Bits/8)-at)]
				at += int64(len(part))
				if err := c.LoadChunk(1+at, part); err != nil {
					b.Fatal(err)
				}
			}
		}
		benchmarkFilter(b, "chain", c, empty, n)
		benchmarkFilter(b, "classic", classic, classic.Clear, n)
	}
}

// benchmarkFilter adds half of n keys, and measures new ones, present and absent
// ones.
func benchmarkFilter(b *testing.B, name string, f interop.Filter, empty func(), n uint64) {
	keys := make([][]byte, 256)
	for i := range keys {
		keys[i] = make([]byte, 16)
	}
	answers, last := make([]bool, 256), uint64(0)
	fill := func(salt uint64, from func(i int) uint64) {
		for i := range keys {
			binary.LittleEndian.PutUint64(keys[i], from(i))
			binary.LittleEndian.PutUint64(keys[i][8:], salt)
		}
	}
	next := func(int) uint64 { last++; return last }
	for last < n/2 {
		fill(1, next)
		f.AddMany(keys, nil)
	}
	added := last
	random := uint64(1)
	present := func(int) uint64 { random = random*0x5851f42d4c957f2d + 1; return 1 + (random>>20)%added }
	run := func(what string, salt uint64, from func(i int) uint64, do func([][]byte, []bool) int) {
		b.Run(fmt.Sprintf("%s/%.0e/%s", what, float64(n), name), func(b *testing.B) {
			done := 0
			for b.Loop() {
				if last-added > n/2 && what == "add" { // full; so it starts from nothing
					b.StopTimer()
					empty()
					added = last
					b.StartTimer()
				}
				fill(salt, from)
				do(keys, answers)
				done += len(keys)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/key")
		})
	}
	run("hit", 1, present, f.ContainsMany)
	run("miss", 2, next, f.ContainsMany)
	run("add", 1, next, f.AddMany)
}
