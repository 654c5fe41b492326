package bloom

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/rate"
)

// mustMake makes a filter and adds n random keys to it, as hashes.
func mustMake(t testing.TB, c Config, n int, random *rand.Rand) *Filter {
	t.Helper()
	f, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		f.AddHash(random.Uint64())
	}
	return f
}

// slowLineRate enumerates the patterns of lanes: each is as likely as any other,
// and then each lane's bit is one of 64.
func slowLineRate(line []uint64, perLine int) float64 {
	sum, patterns := 0., 0.
	for lanes := range 256 {
		if bits.OnesCount(uint(lanes)) != perLine {
			continue
		}
		patterns++
		product := 1.
		for lane, word := range line {
			if lanes>>lane&1 == 1 {
				product *= float64(bits.OnesCount64(word)) / 64
			}
		}
		sum += product
	}
	return sum / patterns
}

// slowRate walks every block and ordered pair of lines.
func slowRate(f *Filter) float64 {
	sum, pairs := 0., 0.
	for at := 0; at < len(f.bits.Words); at += kernel.WordsPerBlock {
		block := f.bits.Words[at:][:kernel.WordsPerBlock]
		for a := range 8 {
			for b := range 8 {
				if a != b {
					sum += slowLineRate(block[8*a:][:8], f.plan.Probes/2) * slowLineRate(block[8*b:][:8], f.plan.Probes/2)
					pairs++
				}
			}
		}
	}
	return sum / pairs
}

func near(got, want, relative float64) bool {
	return math.Abs(got-want) <= relative*math.Abs(want)
}

func TestReportIsExact(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	for probes := 2; probes <= maxProbes; probes += 2 {
		for _, n := range []int{0, 1, 2, 17, 400, 3000} {
			f := mustMake(t, Config{Keys: 1000, Bits: 3 * 4096, Probes: probes}, n, random)
			r := f.Report()
			set := 0
			for _, word := range f.bits.Words {
				set += bits.OnesCount64(word)
			}
			if r.Fill != float64(set)/(3*4096) {
				t.Errorf("k %d, %d keys: fill %g, but %d bits are set", probes, n, r.Fill, set)
			}
			if want := slowRate(f) + r.Keys/(1<<64); !near(r.Rate, want, 1e-12) {
				t.Errorf("seed %d, k %d, %d keys: rate %g, want %g", seed, probes, n, r.Rate, want)
			}
			if r.RateError != 0 {
				t.Errorf("k %d, %d keys: rate error %g, though all blocks were read", probes, n, r.RateError)
			}
			if r.Plan != f.Plan() || r.Added != f.added || r.OneIn() != 1/r.Rate {
				t.Errorf("k %d, %d keys: %+v does not hang together", probes, n, r)
			}
		}
	}
}

// TestReportOfOneKey works the rate out by hand: a query must take the key's two
// lines, 2 of 56 ordered pairs, and in each the same lanes and the same bits.
func TestReportOfOneKey(t *testing.T) {
	lineSets := [9]float64{1, 8, 28, 56, 70, 56, 28, 8, 1} // C(8,K)
	for probes := 2; probes <= maxProbes; probes += 2 {
		f := mustMake(t, Config{Keys: 100, Bits: 4096, Probes: probes}, 0, nil)
		f.AddString("alone")
		r := f.Report()
		line := 1 / (lineSets[probes/2] * math.Pow(64, float64(probes/2)))
		if want := 2./56*line*line + 1./(1<<64); !near(r.Rate, want, 1e-12) {
			t.Errorf("k %d: rate %g, want %g", probes, r.Rate, want)
		}
		if r.Fill != float64(probes)/4096 || !near(r.Keys, 1, 1e-9) || r.Added != 1 || r.Remaining != 99 {
			t.Errorf("k %d: %+v", probes, r)
		}
	}
}

func TestReportOfEmpty(t *testing.T) {
	f := mustMake(t, Config{Keys: 1000, Rate: 0.01}, 0, nil)
	r := f.Report()
	if r.Fill != 0 || r.Rate != 0 || r.Keys != 0 || r.KeysError != 0 || r.Added != 0 {
		t.Errorf("an empty filter reports %+v", r)
	}
	if !math.IsInf(r.OneIn(), 1) || r.Full() != 0 || r.Overfull() || r.Remaining != 1000 {
		t.Errorf("an empty filter: one in %g, full %g, overfull %v, %d remain", r.OneIn(), r.Full(), r.Overfull(), r.Remaining)
	}
}

// TestReportOfSaturated includes a bug's test: +Inf keys with an error of +Inf
// were not more than planned, so a full filter was not overfull.
func TestReportOfSaturated(t *testing.T) {
	f := mustMake(t, Config{Keys: 1000, Rate: 0.01}, 0, nil)
	for i := range f.bits.Words {
		f.bits.Words[i] = math.MaxUint64
	}
	r := f.Report()
	if r.Fill != 1 || r.Rate != 1 || r.OneIn() != 1 || r.Remaining != 0 {
		t.Errorf("a saturated filter reports %+v", r)
	}
	if !math.IsInf(r.Keys, 1) || !math.IsInf(r.Full(), 1) || !r.Overfull() {
		t.Errorf("a saturated filter: %g keys, full %g, overfull %v", r.Keys, r.Full(), r.Overfull())
	}
	f.bits.Words[0] = math.MaxUint64 - 1
	if r := f.Report(); math.IsInf(r.Keys, 0) || !r.Overfull() || !(r.KeysError > 0) {
		t.Errorf("one bit short of saturated: %+v", r)
	}
}

// TestReportEstimatesKeys fills several hundred filters half, whole and double,
// and looks at the estimate's errors in units of the error it states.
func TestReportEstimatesKeys(t *testing.T) {
	const (
		seed    = 2
		filters = 600
		planned = 2000
	)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, asked := range []float64{0.1, 0.01, 1e-5} {
		for _, n := range []int{planned / 2, planned, 2 * planned} {
			var z rate.Moments
			for range filters {
				f := mustMake(t, Config{Keys: planned, Rate: asked}, n, random)
				r := f.Report()
				z.Add((r.Keys - float64(n)) / r.KeysError)
				if full := r.Keys / planned; r.Full() != full {
					t.Fatalf("full %g, want %g", r.Full(), full)
				}
				if want := uint64(max(planned-r.Keys, 0)); r.Remaining != want {
					t.Fatalf("%g keys of %d, and %d remain, want %d", r.Keys, planned, r.Remaining, want)
				}
				if n != planned && r.Overfull() != (n > planned) {
					t.Fatalf("seed %d, p %g: overfull is %v with %d keys of %d", seed, asked, r.Overfull(), n, planned)
				}
			}
			mean, deviation := z.Mean(), z.StandardError()*math.Sqrt(filters)
			t.Logf("p %g, %d keys of %d: mean %+.3f, deviation %.3f", asked, n, planned, mean, deviation)
			if math.Abs(mean) > 4/math.Sqrt(filters) || deviation < 0.9 || deviation > 1.1 {
				t.Errorf("seed %d, p %g, %d keys of %d: the estimate is off by %+.3f ± %.3f stated errors, want 0 ± 1", seed, asked, n, planned, mean, deviation)
			}
		}
	}
}

// TestReportSamples takes a filter of 80 MiB, past where every block is read,
// whose blocks are filled unevenly.
func TestReportSamples(t *testing.T) {
	const seed = 3
	random := rand.New(rand.NewPCG(seed, 0))
	f := mustMake(t, Config{Rate: 0.001, Bits: 80 << 23}, 0, nil)
	defer f.Close()
	var rates, sets rate.Moments
	for at := 0; at < len(f.bits.Words); at += kernel.WordsPerBlock {
		block := f.bits.Words[at:][:kernel.WordsPerBlock]
		density := random.Uint64()
		for i := range block {
			if density>>i&1 == 1 {
				block[i] = random.Uint64()
			}
		}
		found, set := measureBlock(block, f.plan.Probes/2)
		rates.Add(found)
		sets.Add(float64(set))
	}
	r := f.Report()
	if off := (r.Rate - rates.Mean()) / r.RateError; !(math.Abs(off) <= 5) || !(r.RateError < 0.02*r.Rate) {
		t.Errorf("seed %d: sampled rate %g ± %g, all blocks say %g", seed, r.Rate, r.RateError, rates.Mean())
	} else {
		t.Logf("rate %.6g ± %.2g sampled, %.6g from all blocks: %+.2f errors", r.Rate, r.RateError, rates.Mean(), off)
	}
	keys, _ := rate.Keys(sets.Mean()/kernel.BlockBits, 0, float64(f.plan.Bits), float64(f.plan.Probes))
	if off := (r.Keys - keys) / r.KeysError; !(math.Abs(off) <= 5) {
		t.Errorf("seed %d: sampled %g ± %g keys, all blocks say %g", seed, r.Keys, r.KeysError, keys)
	}

	// Just below, nothing is sampled.
	whole := mustMake(t, Config{Rate: 0.001, Bits: 64 << 23}, 0, nil)
	defer whole.Close()
	copy(whole.bits.Words, f.bits.Words)
	if r := whole.Report(); r.RateError != 0 || r.Rate == 0 {
		t.Errorf("64 MiB: rate %g ± %g, want no error", r.Rate, r.RateError)
	}
}

// TestReportString: what is printed of reports says what they hold.
func TestReportString(t *testing.T) {
	plan := Plan{Keys: 1000, Rate: 0.01}
	part := Report{Plan: plan, Fill: 0.25, Rate: 0.001, Keys: 499.6, KeysError: 2}
	for _, tt := range []struct {
		report fmt.Stringer
		want   string
	}{
		{part, "about 500 of 1000 planned keys, rate 0.001 now, 0.01 planned, 25% of the bits set"},
		{Report{Plan: plan, Fill: 0.75, Rate: 0.1, Keys: 2000, KeysError: 2}, "about 2000 of 1000 planned keys, rate 0.1 now, 0.01 planned, 75% of the bits set: over-full"},
		{Report{Plan: plan, Fill: 1, Rate: 1, Keys: math.Inf(1)}, "more keys than can be told, planned 1000, rate 1 now, 0.01 planned, all bits set: over-full"},
	} {
		if got := tt.report.String(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
