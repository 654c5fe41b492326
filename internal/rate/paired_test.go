package rate_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/long"
	"github.com/bloomery/bloom/internal/rate"
)

// minRate is the lowest rate for which the library plans paired lines.
const minRate = 1e-12

// mustPlan returns a plan that must not be refused.
func mustPlan(t testing.TB, c bloom.Config) bloom.Plan {
	t.Helper()
	p, err := c.Plan()
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return p
}

func near(got, want, relative float64) bool {
	return math.Abs(got-want) <= relative*math.Abs(want)
}

// TestRateAtRises increases n: more keys never give a better rate. Beyond 2^44 keys there
// is still an answer, and quickly.
func TestRateAtRises(t *testing.T) {
	long.Test(t)
	for _, blocks := range []uint64{1, 2, 10, rate.FewBlocks - 1, rate.FewBlocks, 10_000} {
		for probes := 2; probes <= 16; probes += 2 {
			plan := bloom.Plan{Blocks: blocks, Probes: probes, Layout: bloom.PairedLines}
			if r := plan.RateAt(0); r != 0 {
				t.Errorf("B %d, k %d: rate %g without a key", blocks, probes, r)
			}
			last := 0.
			for n := uint64(1); n < 1<<20*blocks; n += 1 + n/(50*blocks) + n/500 {
				r := plan.RateAt(n)
				if r < last*(1-1e-9) || r > 1 {
					t.Fatalf("B %d, k %d: rate %g with %d keys, %g before", blocks, probes, r, n, last)
				}
				last = r
			}
			if last != 1 || plan.RateAt(math.MaxUint64) != 1 {
				t.Errorf("B %d, k %d: rate %g of a full filter", blocks, probes, last)
			}
		}
	}
}

// rateByKeys computes the exact expected rate in another way than paired.go: it follows
// how many of a query's bits are still clear in its two lines, key by key. All terms are
// positive, so no digit is lost.
func rateByKeys(n, blocks uint64, perLine int) float64 {
	beta, alpha := 2./56/float64(blocks), 12./56/float64(blocks)

	// fall[u][v] is the chance that a key reduces the query's clear bits in a line from
	// u to v. The query's lanes are the first ones; all patterns of the key's lanes are
	// enumerated.
	var fall [9][9]float64
	for u := 0; u <= perLine; u++ {
		patterns := 0.
		for lanes := range 256 {
			if bits.OnesCount(uint(lanes)) != perLine {
				continue
			}
			patterns++
			chance := []float64{1} // chance[i]: the lanes so far set i of the bits
			for range bits.OnesCount(uint(lanes & (1<<u - 1))) {
				next := make([]float64, len(chance)+1)
				for set, c := range chance {
					next[set] += c * 63 / 64
					next[set+1] += c / 64
				}
				chance = next
			}
			for set, c := range chance {
				fall[u][u-set] += c
			}
		}
		for v := range fall[u] {
			fall[u][v] /= patterns
		}
	}

	var state [9][9]float64
	state[perLine][perLine] = 1
	for range n {
		var next [9][9]float64
		for a := 0; a <= perLine; a++ {
			for b := 0; b <= perLine; b++ {
				now := state[a][b]
				next[a][b] += now * (1 - beta - 2*alpha)
				for x := 0; x <= a; x++ {
					next[x][b] += now * alpha * fall[a][x]
					for y := 0; y <= b; y++ {
						next[x][y] += now * beta * fall[a][x] * fall[b][y]
					}
				}
				for y := 0; y <= b; y++ {
					next[a][y] += now * alpha * fall[b][y]
				}
			}
		}
		state = next
	}
	return state[0][0]
}

// TestBinomialIsExact compares the binomial sum with rateByKeys, for loads from a few
// keys to full blocks.
func TestBinomialIsExact(t *testing.T) {
	worst := 0.
	for _, blocks := range []uint64{1, 2, 3, 10, 50, 255} {
		for perLine := 1; perLine <= 8; perLine++ {
			for _, n := range []uint64{1, 2, 3, 10, 30, 100, 300, 1000, 2000} {
				want := rateByKeys(n, blocks, perLine)
				if want < minRate {
					continue
				}
				off := rate.PairedBinomial(float64(n), float64(blocks), perLine)/want - 1
				worst = max(worst, math.Abs(off))
				if math.Abs(off) > 1e-8 {
					t.Errorf("n %d, B %d, K %d: off by %.2g of %g", n, blocks, perLine, off, want)
				}
			}
		}
	}
	t.Logf("largest difference: %.2g", worst)
}

// TestPoissonMeetsBinomial compares the two around the number of blocks at which Paired
// changes from one to the other, and above it.
func TestPoissonMeetsBinomial(t *testing.T) {
	worst := 0.
	for _, blocks := range []uint64{rate.FewBlocks - 1, rate.FewBlocks, 16 * rate.FewBlocks} {
		for _, asked := range []float64{0.9, 0.5, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 5e-8, 1e-8, 1e-9, 1e-10, 1e-11, minRate} {
			plan := mustPlan(t, bloom.Config{Rate: asked, Bits: blocks * 4096})
			n := float64(plan.Keys)
			poisson := rate.PairedPoisson(n/float64(blocks), plan.Probes/2)
			binomial := rate.PairedBinomial(n, float64(blocks), plan.Probes/2)
			off := poisson/binomial - 1
			worst = max(worst, off)
			if off > 0.002 || off < -1e-5 || off < 0 && asked <= 0.1 {
				t.Errorf("B %d, p %g, k %d: Poisson is %+.3f%% off the binomial", blocks, asked, plan.Probes, 100*off)
			}
		}
	}
	t.Logf("Poisson is at most %.3f%% above", 100*worst)
	if got, want := rate.PairedBinomial(25_000, 250, 8), rateByKeys(25_000, 250, 8); math.Abs(got/want-1) > 1e-8 {
		t.Errorf("binomial %g, key by key %g", got, want)
	}
}

// TestRowsAreFairEnough computes the rate with the lane patterns' true shares of the
// kernel's 256 rows, whereas paired.go assumes equal shares. It also computes the rate
// that Report would derive from the bits, since Report assumes equal shares, too.
func TestRowsAreFairEnough(t *testing.T) {
	for _, asked := range []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-9} {
		best := mustPlan(t, bloom.Config{Keys: 1e7, Rate: asked}).Probes
		for perLine := 1; perLine <= 8; perLine++ {
			plan := mustPlan(t, bloom.Config{Keys: 1e7, Rate: asked, Probes: 2 * perLine})
			load := float64(plan.Keys) / float64(plan.Blocks)
			rows, even := rowShares(perLine), evenShares(perLine)
			alike := rateOfShares(load, even, even)
			if want := rate.PairedPoisson(load, perLine); !near(alike, want, 1e-6) {
				t.Fatalf("p %g, k %d: rate %g by sets of lanes, %g by their number", asked, 2*perLine, alike, want)
			}
			most := 0.0015
			if best == 2*perLine {
				most = 0.00005
			}
			if shift := rateOfShares(load, rows, rows)/alike - 1; math.Abs(shift) > most {
				t.Errorf("p %g, k %d: uneven rows shift the rate by %.4f%%", asked, 2*perLine, 100*shift)
			}
			if shift := rateOfShares(load, rows, even)/alike - 1; math.Abs(shift) > most {
				t.Errorf("p %g, k %d: uneven rows shift the rate from the bits by %.4f%%", asked, 2*perLine, 100*shift)
			}
		}
	}
}

// rowShares returns the share of each set of lanes in the kernel's rows.
func rowShares(perLine int) (share [256]float64) {
	for _, row := range kernel.RowsFor(perLine) {
		lanes := 0
		for lane := range 8 {
			if row>>(8*lane)&0xff == 0 {
				lanes |= 1 << lane
			}
		}
		share[lanes] += 1. / 256
	}
	return share
}

func evenShares(perLine int) (share [256]float64) {
	for lanes := range share {
		if bits.OnesCount(uint(lanes)) == perLine {
			share[lanes] = 1 / rate.Choose(8, perLine)
		}
	}
	return share
}

// rateOfShares is pairedPoisson for lane patterns of different shares, given separately
// for added keys and queries: inclusion and exclusion over the sets of lanes instead of
// their sizes.
func rateOfShares(load float64, added, query [256]float64) float64 {
	var miss, signed [256]float64
	for set := range 256 {
		for lanes := range 256 {
			if added[lanes] != 0 {
				miss[set] += added[lanes] * math.Pow(63./64, float64(bits.OnesCount(uint(lanes&set))))
			}
			if lanes&set == set {
				signed[set] += query[lanes] * float64(1-2*(bits.OnesCount(uint(set))&1))
			}
		}
	}
	both, only := load*2/56, load*12/56
	rate, chance := 0., math.Exp(-both)
	for x := 0.; x < both+12*math.Sqrt(both)+30; x++ {
		g := 0.
		for set, sign := range signed {
			if sign != 0 {
				g += sign * math.Pow(miss[set], x) * math.Exp(-only*(1-miss[set]))
			}
		}
		rate += chance * g * g
		chance *= both / (x + 1)
	}
	return rate
}
