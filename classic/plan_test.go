package classic

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/rate"
)

// TestClassicPlans: the rate is kept, one bit less would not keep it, and m is
// what the textbook says but for the price of a whole k.
func TestClassicPlans(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 10, 1000, 1e6, 1e9, 1e12} {
		for _, p := range []float64{0.9, 0.5, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6, 1e-9} {
			plan, err := Config{Keys: n, Rate: p}.Plan()
			if rate.HashFloor(n) > p/2 {
				if !errors.Is(err, bloom.ErrRate) {
					t.Errorf("n %d, p %g: error %v, want ErrRate", n, p, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("n %d, p %g: %v", n, p, err)
				continue
			}
			if plan.Rate > p || plan.Layout != bloom.AnyBits || plan.Blocks != plan.Bits {
				t.Errorf("n %d, p %g: plan %+v", n, p, plan)
			}
			for k := 1; k <= mostTriedProbes && plan.Bits > 1; k++ {
				if rate.Classic(n, plan.Bits-1, k) <= p {
					t.Errorf("n %d, p %g: %d bits are enough with k %d, the plan is %v", n, p, plan.Bits-1, k, plan)
				}
			}
			if over := plan.BitsPerKey()/bloom.ClassicBitsPerKey(p) - 1; n >= 1000 && p < 0.5 && (over < 0 || over > 0.03) {
				t.Errorf("n %d, p %g: %v, %+.2g of the textbook's bits", n, p, plan, over)
			}
		}
	}
}

// TestClassicThreeWays: m and k given; from n; from n and p.
func TestClassicThreeWays(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    Config
		n, m uint64
		k    int
	}{
		{"m and k", Config{Bits: 10, Probes: 3}, 2, 10, 3},
		{"m, k and n", Config{Bits: 10, Probes: 3, Keys: 7}, 7, 10, 3},
		{"n", Config{Keys: 1000}, 1000, 10_000, 7},
		{"n, a scheme with k 2", Config{Keys: 1000, Scheme: SchemeSHA256MD5}, 1000, 10_000, 2},
		{"n, a scheme with powers of two", Config{Keys: 1000, Scheme: SchemeRedisSetBit}, 1000, 1 << 14, 11},
		{"n and p, truncated", Config{Keys: 1_000_000, Rate: 0.01, Formula: FormulaTruncated}, 1_000_000, 9_567_152, 6},
		{"n and p, ceiling", Config{Keys: 1_000_000, Rate: 0.01, Formula: FormulaCeiling}, 1_000_000, 9_585_059, 7},
		{"n and p, Guava", Config{Keys: 10_000, Rate: 0.0001, Scheme: SchemeGuava64}, 10_000, 191_744, 13},
		{"n and p, DCSO", Config{Keys: 418_299_668, Rate: 1e-4, Scheme: SchemeDCSO}, 418_299_668, 8_018_853_474, 14},
		{"n and p, the Java class has one size", Config{Keys: 1000, Rate: 0.5, Scheme: SchemeJavaBitSet}, 1000, 2 << 28, 8},
		{"n and p, k 2", Config{Keys: 100, Rate: 0.01, Scheme: SchemeSHA256MD5}, 100, 1899, 2},
		{"n and p, powers of two", Config{Keys: 1000, Rate: 0.01, Scheme: SchemeRedisSetBit}, 1000, 1 << 14, 11},
		{"n and m", Config{Keys: 1000, Bits: 14_378}, 1000, 14_378, 10},
		{"whole longs", Config{Bits: 100, Probes: 3, Scheme: SchemeGuava64}, 29, 128, 3},
	} {
		p, err := tt.c.Plan()
		if err != nil || p.Keys != tt.n || p.Bits != tt.m || p.Probes != tt.k {
			t.Errorf("%s: plan %v, %v, want n %d, m %d, k %d", tt.name, p, err, tt.n, tt.m, tt.k)
		} else if want := rate.Classic(tt.n, tt.m, tt.k); p.Rate != want || p.RateAt(tt.n) != want {
			t.Errorf("%s: rate %g, want %g", tt.name, p.Rate, want)
		}
	}
	p, err := Config{Bits: 9585, Rate: 0.01}.Plan()
	if err != nil || p.Keys < 990 || p.Keys > 1000 || p.Rate > 0.01 {
		t.Errorf("m and p: plan %v, %v", p, err)
	}
}

func TestClassicRefusals(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    Config
		err  error
		says string
	}{
		{"nothing", Config{}, bloom.ErrConfig, "give two of"},
		{"k alone", Config{Probes: 3}, bloom.ErrConfig, "give two of"},
		{"n = 0", Config{Rate: 0.01}, bloom.ErrConfig, "Keys (n) is 0: give two of"}, // bits-and-blooms made k = 2^63, and Add never came back
		{"p = 1", Config{Keys: 10, Rate: 1}, bloom.ErrConfig, "above 0 and below 1"},
		{"p = NaN", Config{Keys: 10, Rate: math.NaN()}, bloom.ErrConfig, "above 0 and below 1"},
		{"p too small", Config{Keys: 10, Rate: 1e-300}, bloom.ErrRate, "below"},
		{"huge k", Config{Bits: 10, Probes: math.MaxInt}, bloom.ErrConfig, "k must be from 1 to 255"},
		{"negative k", Config{Bits: 10, Probes: -1}, bloom.ErrConfig, "k must be from 1 to 255"},
		{"huge m", Config{Bits: 1<<45 + 1, Probes: 3}, bloom.ErrConfig, "m must be from 1 to 35184372088832"},
		{"largest m", Config{Bits: math.MaxUint64, Probes: 3, Scheme: SchemeGuava64}, bloom.ErrConfig, "m must be from"},
		{"huge n", Config{Keys: 1 << 60}, bloom.ErrConfig, ""},
		{"n alone", Config{Keys: 1 << 44}, bloom.ErrConfig, "m must be from"},
		{"all three, too few bits", Config{Keys: 1000, Bits: 100, Rate: 0.01}, bloom.ErrRate, "leave one"},
		{"budget", Config{Keys: 1e6, Rate: 0.01, Budget: 1e6}, bloom.ErrBudget, "bytes"},
		{"k = 0 by the formula", Config{Keys: 1000, Rate: 0.5, Scheme: SchemeMD5IndexKey}, bloom.ErrRate, "k = 0"},
		{"m = 0 by the formula", Config{Keys: 1, Rate: 0.9999, Scheme: SchemeGuava64}, bloom.ErrRate, "m = 0"},
		{"formula without p", Config{Keys: 1000, Bits: 1000, Formula: FormulaDCSO}, bloom.ErrConfig, "works from Keys and Rate"},
		{"no such formula", Config{Keys: 1000, Rate: 0.1, Formula: 99}, bloom.ErrConfig, "formula 99"},
		{"Java, not a power of two", Config{Bits: math.MaxInt32, Probes: 8, Scheme: SchemeJavaBitSet}, bloom.ErrConfig, "power of two"},
		{"Java, 2<<30", Config{Bits: 2 << 30, Probes: 8, Scheme: SchemeJavaBitSet}, bloom.ErrConfig, "in Java"},
		{"Java, nine seeds", Config{Bits: 1024, Probes: 9, Scheme: SchemeJavaBitSet}, bloom.ErrConfig, "from 1 to 8"},
		{"two hashes, k = 3", Config{Bits: 8, Probes: 3, Scheme: SchemeSHA256MD5}, bloom.ErrConfig, "k must be 2"},
		{"bloomfilter.js above 2^31", Config{Bits: 3 << 30, Probes: 3, Scheme: SchemeBloomFilterJS64}, bloom.ErrConfig, "nine keys of ten"},
		{"Guava above 2^31 longs", Config{Bits: 1 << 37, Probes: 3, Scheme: SchemeGuava64}, bloom.ErrConfig, "longs"},
		{"Redis above 2^32", Config{Bits: 1 << 33, Probes: 6, Scheme: SchemeRedisSetBit}, bloom.ErrConfig, "Redis string"},
		{"seed", Config{Bits: 64, Probes: 6, Scheme: SchemeRedisBloom, Seed: 1}, bloom.ErrConfig, "no seed"},
		{"secret", Config{Bits: 64, Probes: 6, Scheme: SchemeGuava64, Secret: make([]byte, 16)}, bloom.ErrConfig, "no secret"},
		{"short secret", Config{Bits: 64, Probes: 6, Secret: make([]byte, 15)}, bloom.ErrConfig, "16 bytes"},
	} {
		began := time.Now()
		f, err := tt.c.New()
		if f != nil || !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %v that says %q", tt.name, err, tt.err, tt.says)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: refused after %v", tt.name, took)
		}
	}
}
