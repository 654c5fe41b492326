package redisbloom_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bloomery/bloom/redisbloom"
)

// TestRate: the rate that a report claims is the one that strangers meet, in
// layers so small that RedisBloom's double hashing keeps far less than was asked.
func TestRate(t *testing.T) {
	for _, tt := range []struct {
		keys      uint64
		rate      float64
		strangers int
		above     float64 // how many times what was asked it is at least; else zero
	}{
		{16, 1e-6, 1e6, 1000}, // 512 bits: the chain claimed 1.1e-7
		{17, 1e-6, 1e6, 1000},
		{20, 1e-6, 1e6, 300}, // 576 = 64 * 9
		{33, 1e-6, 2e6, 100},
		{57, 1e-6, 2e6, 50},
		{285, 1e-6, 1e7, 20}, // 8,192
		{1130, 1e-6, 2e7, 3}, // 32,512 = 256 * 127
		{100, 1e-3, 2e6, 0},  // 1,472 = 64 * 23
		{100, 0.01, 1e6, 0},  // 960 = 64 * 15
		{10_000, 0.01, 1e6, 0},
		{10, 1e-12, 1e6, 1e8}, // 640
	} {
		t.Run(fmt.Sprintf("%d keys at %g", tt.keys, tt.rate), func(t *testing.T) {
			c, err := redisbloom.New(redisbloom.Config{Keys: tt.keys, Rate: tt.rate, NonScaling: true})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(tt.keys, 2))
			for added := uint64(0); added < tt.keys; {
				if isNew, err := c.AddPair(r.Uint64(), r.Uint64()); err != nil {
					t.Fatal(err)
				} else if isNew {
					added++
				}
			}
			strangers, found := tt.strangers, 0
			if raceEnabled || testing.Short() { // the tolerance grows with it
				strangers /= 20
			}
			for range strangers {
				if c.ContainsPair(r.Uint64(), r.Uint64()) {
					found++
				}
			}
			measured := float64(found) / float64(strangers)
			sigma := math.Sqrt(max(float64(found), 1)) / float64(strangers)
			report := c.Report()
			t.Logf("m %d: measured %.3g ± %.1g, reported %.3g ± %.1g", report.Plan.Bits, measured, sigma, report.Rate, report.RateError)
			if off := math.Abs(report.Rate - measured); off > 0.2*measured+4*math.Hypot(sigma, report.RateError) {
				t.Errorf("the report says %.3g, measured %.3g", report.Rate, measured)
			}
			if again := c.Report(); again != report {
				t.Errorf("another report says %+v, the first said %+v", again, report)
			}
			if tt.above != 0 && measured+3*sigma < tt.above*tt.rate {
				t.Errorf("measured %.3g: is it no longer %v times what was asked?", measured, tt.above)
			}
		})
	}
}

// BenchmarkReport is of the dearest layer for its size.
func BenchmarkReport(b *testing.B) {
	c, err := redisbloom.New(redisbloom.Config{Keys: 70, Rate: 1e-6, NonScaling: true})
	if err != nil {
		b.Fatal(err)
	}
	for i := range uint64(70) {
		c.AddPair(i*0x9e3779b97f4a7c15, i*0xc2b2ae3d27d4eb4f)
	}
	for b.Loop() {
		c.Report()
	}
}
