package bloom_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
)

// TestPlansOnEveryProcessor: a plan is the same to the last bit of its rate,
// whatever processor it is worked out on. See internal/elementary.
func TestPlansOnEveryProcessor(t *testing.T) {
	// Where package math and fused operations gave another number of blocks.
	for _, tt := range []struct {
		name   string
		plan   func(bloom.Config) (bloom.Plan, error)
		config bloom.Config
		blocks uint64
	}{
		{"split blocks", bloom.Config.PlanSplitBlock, bloom.Config{Keys: 74_000_000, Rate: 1e-8}, 51_297_179},
		{"paired lines", bloom.Config.Plan, bloom.Config{Keys: 19_842_663_090, Rate: 1e-8}, 235_405_994},
	} {
		plan, err := tt.plan(tt.config)
		if err != nil || plan.Blocks != tt.blocks {
			t.Errorf("%s, %d keys at %g: %d blocks (%v), want %d", tt.name, tt.config.Keys, tt.config.Rate, plan.Blocks, err, tt.blocks)
		}
	}

	const want uint64 = 0x7b519b0e5e1e8706 // frozen: made with Go 1.26 on amd64, before internal/elementary was
	digest := fnv.New64a()
	r := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		n := uint64(math.Ldexp(1+r.Float64(), r.IntN(35)))
		p := math.Ldexp(1-r.Float64()/2, -1-r.IntN(38))
		m := n * (2 + r.Uint64N(40))
		var plans []bloom.Plan
		note := func(p bloom.Plan, _ error) { plans = append(plans, p) }
		note(bloom.Config{Keys: n, Rate: p}.Plan())
		note(bloom.Config{Bits: m, Rate: p}.Plan())
		note(bloom.Config{Bits: m, Keys: n}.Plan())
		note(bloom.Config{Keys: n, Rate: max(p, 1e-8)}.PlanSplitBlock())
		note(classic.Config{Keys: n + 1<<14, Rate: p}.Plan())
		note(classic.Config{Keys: n%4096 + 1, Rate: max(p, 1e-4)}.Plan())
		note(bloom.ScalableConfig{First: n, Rate: p}.Plan())
		for _, p := range plans {
			fmt.Fprintln(digest, p.Keys, math.Float64bits(p.Rate), p.Bits, p.Probes, p.Blocks)
		}
		for formula := classic.FormulaTruncated; formula <= classic.FormulaNPMBloomFilters; formula++ {
			m, k, err := formula.Size(n, p)
			fmt.Fprintln(digest, m, k, err == nil)
		}
	}
	if got := digest.Sum64(); got != want {
		t.Errorf("the digest of plans and sizes is %#x, want %#x", got, want)
	}
}
