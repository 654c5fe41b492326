package bloom

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/rate"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// mustPlan is for plans that cannot be refused.
func mustPlan(t testing.TB, c Config) Plan {
	t.Helper()
	p, err := c.Plan()
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return p
}

// TestPlanSpace pins what the layout costs, at a size where rounding to whole
// blocks is lost.
func TestPlanSpace(t *testing.T) {
	for _, tt := range []struct{ rate, perKey, over float64 }{ // over: percent above the textbook
		{1e-2, 9.680, 1.0},
		{1e-3, 14.686, 2.1},
		{1e-4, 19.973, 4.2},
		{1e-5, 25.611, 6.9},
		{1e-6, 31.827, 10.7},
		{1e-7, 0, 17},
		{1e-8, 0, 25},
		{1e-9, 0, 36},
	} {
		plan := mustPlan(t, Config{Keys: 10_000_000, Rate: tt.rate})
		got := plan.BitsPerKey()
		if tt.perKey != 0 && math.Abs(got-tt.perKey) > 0.002 {
			t.Errorf("p %g: %.4f bits per key, want %.3f", tt.rate, got, tt.perKey)
		}
		tolerance := 0.05
		if tt.perKey == 0 {
			tolerance = 0.6
		}
		if over := 100 * (got/ClassicBitsPerKey(tt.rate) - 1); math.Abs(over-tt.over) > tolerance {
			t.Errorf("p %g: %.2f%% over the textbook, want %g%%", tt.rate, over, tt.over)
		}
	}
}

// TestPlanGolden pins the plans themselves: the same Config gives the same bits
// in every release.
func TestPlanGolden(t *testing.T) {
	path := filepath.Join("testdata", "plans.golden")
	got := goldenPlans()
	if *update {
		head := "# What Config.Plan answers: n keys, rate p, m bits -> B blocks, k probes.\n" +
			"# Lines are only added: a plan that changed would change the bits of a filter.\n" +
			"# Made by: go test -run TestPlanGolden . -update\n" +
			"# With: " + runtime.Version() + " " + runtime.GOARCH + "\n"
		if err := os.WriteFile(path, []byte(head+strings.Join(got, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var want []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "#") {
			want = append(want, lines.Text())
		}
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("no longer planned: %s", want[i])
		case i >= len(want):
			t.Errorf("not in %s: %s", path, got[i])
		case got[i] != want[i]:
			t.Errorf("got %s, want %s", got[i], want[i])
		}
	}
}

func goldenPlans() (lines []string) {
	line := func(c Config) {
		asked := ""
		if c.Keys != 0 {
			asked += fmt.Sprintf(" n=%d", c.Keys)
		}
		if c.Rate != 0 {
			asked += fmt.Sprintf(" p=%g", c.Rate)
		}
		if c.Bits != 0 {
			asked += fmt.Sprintf(" m=%d", c.Bits)
		}
		if c.Folds != 0 {
			asked += fmt.Sprintf(" folds=%d", c.Folds)
		}
		if c.Probes != 0 {
			asked += fmt.Sprintf(" k=%d", c.Probes)
		}
		answer := ""
		switch p, err := c.Plan(); {
		case errors.Is(err, ErrRate):
			answer = "out of reach"
		case err != nil:
			answer = err.Error()
		case c.Keys == 0:
			answer = fmt.Sprintf("B=%d k=%d n=%d", p.Blocks, p.Probes, p.Keys)
		default:
			answer = fmt.Sprintf("B=%d k=%d", p.Blocks, p.Probes)
		}
		lines = append(lines, asked[1:]+": "+answer)
	}
	rates := []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9}
	for _, n := range []uint64{1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10} {
		for _, p := range rates {
			line(Config{Keys: n, Rate: p})
		}
	}
	for shift := 0; shift <= 30; shift += 3 {
		for _, p := range []float64{0.5, 0.02, 1.0 / (1 << 10), 1.0 / (1 << 20), 1e-12} {
			line(Config{Keys: 1 << shift, Rate: p})
		}
	}
	for _, folds := range []uint64{2, 3, 8, 64, 1000, 1 << 20} {
		for _, n := range []uint64{1, 1e3, 1e6, 1e9} {
			line(Config{Keys: n, Rate: 1e-2, Folds: folds})
			line(Config{Keys: n, Rate: 1e-5, Folds: folds})
		}
	}
	for probes := 2; probes <= maxProbes; probes += 2 {
		line(Config{Keys: 1e6, Rate: 1e-3, Probes: probes})
	}
	for shift := 12; shift <= 36; shift += 4 {
		for _, n := range []uint64{100, 1e4, 1e6, 1e8} {
			line(Config{Keys: n, Bits: 1 << shift})
		}
		for _, p := range rates {
			line(Config{Rate: p, Bits: 1 << shift})
		}
	}
	return lines
}

var (
	planKeysGrid  = []uint64{1, 2, 3, 7, 10, 33, 100, 640, 1000, 4096, 10_000, 99_999, 100_000, 1 << 20, 1e7, 1e9}
	planRatesGrid = []float64{0.9, 0.5, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 5e-8, 1e-8, 1e-9}
)

// TestPlanIsLeast checks that one unit of blocks less fails with every k, and
// every smaller k with these blocks.
func TestPlanIsLeast(t *testing.T) {
	for _, n := range planKeysGrid {
		for _, asked := range planRatesGrid {
			for _, unit := range []uint64{1, 2, 5, 64} {
				plan := mustPlan(t, Config{Keys: n, Rate: asked, Folds: unit})
				at := fmt.Sprintf("n %d, p %g, folds %d: B %d, k %d", n, asked, unit, plan.Blocks, plan.Probes)
				if plan.Rate > asked || plan.Rate != plan.RateAt(n) {
					t.Errorf("%s: rate %g, RateAt(n) %g", at, plan.Rate, plan.RateAt(n))
				}
				if plan.Blocks%unit != 0 || plan.Blocks == 0 || plan.Bits != plan.Blocks*4096 || plan.Bytes() != plan.Blocks*512 || plan.Keys != n {
					t.Errorf("%s: does not hang together: %+v", at, plan)
				}
				for perLine := 1; perLine <= 8; perLine++ {
					if less := plan.Blocks - unit; less > 0 && rate.Paired(n, less, perLine) <= asked {
						t.Errorf("%s: B %d with k %d would do", at, less, 2*perLine)
					}
					if 2*perLine < plan.Probes && rate.Paired(n, plan.Blocks, perLine) <= asked {
						t.Errorf("%s: k %d would do", at, 2*perLine)
					}
				}
			}
		}
	}
}

// TestPlanWaysAgree makes a plan from n and p, and makes it again from its other
// letters.
func TestPlanWaysAgree(t *testing.T) {
	for _, n := range planKeysGrid {
		for _, asked := range planRatesGrid {
			plan := mustPlan(t, Config{Keys: n, Rate: asked})
			if again := mustPlan(t, Config{Keys: n, Bits: plan.Bits, Probes: plan.Probes}); again != plan {
				t.Errorf("n %d, p %g: from n, m and k: %v, want %v", n, asked, again, plan)
			}
			best := mustPlan(t, Config{Keys: n, Bits: plan.Bits})
			if best.Blocks != plan.Blocks || best.Rate > plan.Rate*(1+1e-5) {
				t.Errorf("n %d, p %g: from n and m: %v, want no worse than %v", n, asked, best, plan)
			}
			for perLine := 1; perLine <= 8; perLine++ {
				if r := rate.Paired(n, plan.Blocks, perLine); r < best.Rate*(1-1e-5) || r == best.Rate && 2*perLine < best.Probes {
					t.Errorf("n %d, m %d: k %d has rate %g, no more than k %d's %g", n, plan.Bits, 2*perLine, r, best.Probes, best.Rate)
				}
			}
			most := mustPlan(t, Config{Rate: asked, Bits: plan.Bits})
			if most.Keys < n || most.Blocks != plan.Blocks || most.Rate > asked {
				t.Errorf("n %d, p %g: from p and m: %v, want room for n", n, asked, most)
			}
			if p := mustPlan(t, Config{Keys: most.Keys, Rate: asked}); p.Blocks != plan.Blocks {
				t.Errorf("p %g, m %d hold %d keys, but that many want m %d", asked, plan.Bits, most.Keys, p.Bits)
			}
			if p := mustPlan(t, Config{Keys: most.Keys + 1, Rate: asked}); p.Blocks == plan.Blocks {
				t.Errorf("p %g, m %d hold more than %d keys", asked, plan.Bits, most.Keys)
			}
			if p, err := (Config{Keys: n, Rate: asked, Bits: plan.Bits}).Plan(); err != nil || p != best {
				t.Errorf("n %d, p %g, m %d: %v, %v, want %v", n, asked, plan.Bits, p, err, best)
			}
			if plan.Blocks > 1 {
				if _, err := (Config{Keys: n, Rate: asked, Bits: plan.Bits - 1}).Plan(); !errors.Is(err, ErrRate) {
					t.Errorf("n %d, p %g, m %d: %v, want ErrRate", n, asked, plan.Bits-1, err)
				}
			}
		}
	}
}

func TestPlanKeepsProbes(t *testing.T) {
	for probes := 2; probes <= maxProbes; probes += 2 {
		for _, c := range []Config{
			{Keys: 12345, Rate: 0.003},
			{Keys: 12345, Bits: 1 << 18},
			{Rate: 0.003, Bits: 1 << 18},
		} {
			free := mustPlan(t, c)
			c.Probes = probes
			plan := mustPlan(t, c)
			if plan.Probes != probes {
				t.Errorf("%+v: k %d", c, plan.Probes)
			}
			if plan.Blocks < free.Blocks || plan.Keys > free.Keys {
				t.Errorf("%+v: %v is better than with k free, %v", c, plan, free)
			}
		}
	}
}

func TestPlanFolds(t *testing.T) {
	for _, folds := range []uint64{1, 2, 3, 7, 64, 1000} {
		for _, c := range []Config{
			{Keys: 50_000, Rate: 0.01, Folds: folds},
			{Keys: 50_000, Bits: 1000 * 4096, Folds: folds},
			{Rate: 0.01, Bits: 1000 * 4096, Folds: folds},
		} {
			f, err := c.New()
			if err != nil {
				t.Fatal(err)
			}
			if f.Plan().Blocks%folds != 0 {
				t.Errorf("%+v: %d blocks", c, f.Plan().Blocks)
			}
			if c.Bits != 0 && f.Plan().Bits > c.Bits {
				t.Errorf("%+v: m %d is above what was given", c, f.Plan().Bits)
			}
			g, err := f.Fold(folds)
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			} else if g.Plan().Blocks != f.Plan().Blocks/folds {
				t.Errorf("%+v: folded from %d to %d blocks", c, f.Plan().Blocks, g.Plan().Blocks)
			}
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config Config
		want   error
		says   []string
	}{
		{"nothing", Config{}, ErrConfig, []string{"two of Keys (n), Rate (p) and Bits (m)"}},
		{"n alone", Config{Keys: 10}, ErrConfig, []string{"two of"}},
		{"p alone", Config{Rate: 0.01}, ErrConfig, []string{"two of"}},
		{"m alone", Config{Bits: 1 << 20}, ErrConfig, []string{"two of"}},
		{"n 0", Config{Keys: 0, Rate: 0.01}, ErrConfig, []string{"each above zero"}},
		{"p 0", Config{Keys: 10, Rate: 0}, ErrConfig, []string{"each above zero"}},
		{"p 1", Config{Keys: 10, Rate: 1}, ErrConfig, []string{"above 0 and below 1, not 1"}},
		{"p 2", Config{Keys: 10, Rate: 2}, ErrConfig, []string{"not 2"}},
		{"p negative", Config{Keys: 10, Rate: -0.5}, ErrConfig, []string{"not -0.5"}},
		{"p NaN", Config{Keys: 10, Rate: math.NaN()}, ErrConfig, []string{"not NaN"}},
		{"p infinite", Config{Keys: 10, Rate: math.Inf(1)}, ErrConfig, []string{"not +Inf"}},
		{"p NaN beside n and m", Config{Keys: 10, Bits: 4096, Rate: math.NaN()}, ErrConfig, []string{"not NaN"}},
		{"p too low", Config{Keys: 10, Rate: 1e-13}, ErrRate, []string{"1e-13", "1e-12"}},
		{"p too low for the hash", Config{Keys: 1 << 40, Rate: 1e-8}, ErrRate, []string{"1099511627776 keys", "6e-08", "1e-08", "raise the rate"}},
		{"k odd", Config{Keys: 10, Rate: 0.01, Probes: 7}, ErrConfig, []string{"one of [2 4 6 8 10 12 14 16], not 7"}},
		{"k 18", Config{Keys: 10, Rate: 0.01, Probes: 18}, ErrConfig, []string{"not 18"}},
		{"k negative", Config{Keys: 10, Rate: 0.01, Probes: -2}, ErrConfig, []string{"not -2"}},
		{"n above 2^44", Config{Keys: 1<<44 + 1, Rate: 0.01}, ErrConfig, []string{"17592186044417 keys", "17592186044416"}},
		{"n huge", Config{Keys: math.MaxUint64, Rate: 0.01}, ErrConfig, []string{"17592186044416"}},
		{"m above 2^45", Config{Keys: 10, Bits: 1<<45 + 4096}, ErrConfig, []string{"35184372092928 bits", "35184372088832"}},
		{"m huge", Config{Rate: 0.01, Bits: math.MaxUint64}, ErrConfig, []string{"35184372088832"}},
		{"folds above 2^33", Config{Keys: 10, Rate: 0.01, Folds: 1<<33 + 1}, ErrConfig, []string{"8589934593", "8589934592"}},
		{"more than 2^33 blocks", Config{Keys: 4e12, Rate: 0.01}, ErrRate, []string{"4000000000000 keys", "0.01", "4398046511104 bytes"}},
		{"folds round past 2^33 blocks", Config{Keys: 3.6e12, Rate: 0.01, Folds: 1<<32 + 1}, ErrRate, []string{"4398046511104 bytes"}},
		{"three that contradict", Config{Keys: 1000, Rate: 0.01, Bits: 8192}, ErrRate, []string{"8192 bits", "1000 keys", "0.01", "leave one of"}},
		{"no room for one key", Config{Rate: 1e-12, Bits: 4096, Probes: 2}, ErrRate, []string{"4096 bits", "1e-12"}},
		{"budget", Config{Keys: 1e6, Rate: 0.01, Budget: 1_000_000}, ErrBudget, []string{"1000000 keys", "1210368 bytes", "the budget is 1000000"}},
		{"budget with m", Config{Keys: 1e6, Bits: 1 << 20, Budget: 1<<17 - 1}, ErrBudget, []string{"131072 bytes", "131071"}},
		{"secret too short", Config{Keys: 10, Rate: 0.01, Secret: []byte("short")}, ErrConfig, []string{"16 bytes, not 5"}},
		{"secret empty", Config{Keys: 10, Rate: 0.01, Secret: []byte{}}, ErrConfig, []string{"16 bytes, not 0"}},
		{"secret and seed", Config{Keys: 10, Rate: 0.01, Seed: 1, Secret: make([]byte, 16)}, ErrConfig, []string{"Seed or Secret, not both"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := tt.config.New()
			if f != nil || !errors.Is(err, tt.want) {
				t.Fatalf("New = %v, %v, want an error that is %q", f, err, tt.want)
			}
			if !strings.HasPrefix(err.Error(), "bloom: ") || strings.Count(err.Error(), "bloom: ") != 1 {
				t.Errorf("error %q, want the prefix once", err)
			}
			for _, says := range tt.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("error %q does not say %q", err, says)
				}
			}
		})
	}
}

// TestPlanReachesItsLimits plans, without making, what is just allowed.
func TestPlanReachesItsLimits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config Config
		blocks uint64
	}{
		{"m 2^45", Config{Keys: 1e12, Bits: 1 << 45}, 1 << 33},
		{"m rounds down to 2^45", Config{Keys: 1e12, Bits: 1<<45 + 4095}, 1 << 33},
		{"folds 2^33", Config{Keys: 1, Rate: 0.01, Folds: 1 << 33}, 1 << 33},
		{"n 2^44", Config{Keys: 1 << 44, Rate: 0.5}, 0},
		{"n 2^44 in one block", Config{Keys: 1 << 44, Bits: 1}, 1},
		{"budget to the byte", Config{Keys: 1e6, Rate: 0.01, Budget: 1_210_368}, 2364},
		{"m below a block", Config{Keys: 10, Bits: 1}, 1},
		{"k free below 2^33 blocks", Config{Keys: 3.6e12, Rate: 0.01}, 0},
		{"the lowest rate", Config{Keys: 1e6, Rate: 1e-12}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, err := tt.config.Plan()
			if err != nil || plan.Blocks > kernel.MaxBlocks || tt.blocks != 0 && plan.Blocks != tt.blocks {
				t.Errorf("Plan = %+v, %v, want %d blocks", plan, err, tt.blocks)
			}
		})
	}
	// A bug's test: nothing within 2^44 keys was over the rate, and n became 2^64-1.
	if plan := mustPlan(t, Config{Rate: 0.5, Bits: 1 << 45}); plan.Keys != maxKeys || plan.Rate > 0.5 {
		t.Errorf("p 0.5 in 2^45 bits: %+v, want n %d", plan, uint64(maxKeys))
	}
}

// TestBlockArithmetic checks hi64(h*B) up to the limit of 2^33 blocks: the block
// is in range, rises with h, and folds.
func TestBlockArithmetic(t *testing.T) {
	block := func(h, blocks uint64) uint64 {
		hi, _ := bits.Mul64(h, blocks)
		return hi
	}
	const seed = 5
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200_000 {
		// Every size of B is as likely as any other, up to the limit itself.
		fold := random.Uint64()>>(31+random.IntN(33)) + 1
		unit := uint64(kernel.MaxBlocks)/fold + 1
		small := min(random.Uint64N(unit)+random.Uint64N(2), kernel.MaxBlocks/fold)
		if small == 0 {
			continue
		}
		blocks := small * fold
		h := random.Uint64()
		if random.IntN(4) == 0 { // at a block's border
			h = blockStart(random.Uint64N(blocks), blocks) - random.Uint64N(2)
		}
		at := block(h, blocks)
		if at >= blocks {
			t.Fatalf("seed %d: hash %#x lies in block %d of %d", seed, h, at, blocks)
		}
		if folded := block(h, small); folded != at/fold {
			t.Fatalf("seed %d: hash %#x, block %d of %d: folded by %d it is %d, want %d", seed, h, at, blocks, fold, folded, at/fold)
		}
		if more := h + random.Uint64N(math.MaxUint64-h)>>random.IntN(64); block(more, blocks) < at {
			t.Fatalf("seed %d: hash %#x lies before hash %#x in %d blocks", seed, more, h, blocks)
		}
	}
	for _, blocks := range []uint64{1, 3, 1<<33 - 1, 1 << 33} {
		if block(0, blocks) != 0 || block(math.MaxUint64, blocks) != blocks-1 {
			t.Errorf("%d blocks: hashes 0 and 2^64-1 are not in the first and last", blocks)
		}
	}
	// The kernel does as much: a key's bits are all in its block.
	for range 2000 {
		blocks := random.Uint64N(20) + 1
		words, _, err := memory.Words(blocks * kernel.WordsPerBlock)
		if err != nil {
			t.Fatal(err)
		}
		f := kernel.Paired{Words: words, Blocks: blocks, Rows: kernel.RowsFor(8)}
		h := random.Uint64()
		f.Add(h)
		for i, word := range f.Words {
			if word != 0 && uint64(i/kernel.WordsPerBlock) != block(h, blocks) {
				t.Fatalf("seed %d: hash %#x set a bit in block %d of %d", seed, h, i/kernel.WordsPerBlock, blocks)
			}
		}
	}
}

// blockStart is the least hash of a block: the quotient of block * 2^64 and
// blocks, rounded up.
func blockStart(block, blocks uint64) uint64 {
	quotient, rest := bits.Div64(block, 0, blocks)
	if rest > 0 {
		quotient++
	}
	return quotient
}
